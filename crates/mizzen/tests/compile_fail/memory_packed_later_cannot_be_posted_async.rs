//! Memory that is read when the message goes must outlive the future.

use mizzen::{MailboxRef, Message};

async fn post(to: &MailboxRef) -> mizzen::Result<()> {
    let mut counts = [0u32; 3];
    let mut message = Message::new();
    let key = message.pack_later(&mut counts);
    message.later(&key)[0] = 1;
    to.post_async(message).await
}

fn main() {
    let _ = post;
}
