//! A message that is under way belongs to the operation.

use mizzen::{MailboxRef, Message};

async fn post(to: &MailboxRef) -> mizzen::Result<()> {
    let mut message = Message::new();
    message.pack_safer(&1u64);
    to.post_async(message).await?;
    to.post_async(message).await
}

fn main() {
    let _ = post;
}
