//! A future may be dropped or leaked at any time, so what it posts must not be borrowed.

use mizzen::{MailboxRef, Message};

async fn post(to: &MailboxRef) -> mizzen::Result<()> {
    let numbers = [1u64; 100];
    let mut message = Message::new();
    message.pack_cheaper(&numbers);
    to.post_async(message).await
}

fn main() {
    let _ = post;
}
