//! A message that is under way belongs to the operation.

use mizzen::{MailboxRef, Message};

async fn post(to: &MailboxRef) -> mizzen::Result<()> {
    let mut message = Message::new();
    message.pack_safer(&1u64);
    let posting = to.post_async(message);
    message.pack_safer(&2u64);
    posting.await
}

fn main() {
    let _ = post;
}
