//! The messages of a sender have an order: the next one is posted when the one before is on its way.

use mizzen::{Message, Sender};

async fn post(to: &mut Sender) -> mizzen::Result<()> {
    let first = to.post_async(Message::new());
    let second = to.post_async(Message::new());
    first.await?;
    second.await
}

fn main() {
    let _ = post;
}
