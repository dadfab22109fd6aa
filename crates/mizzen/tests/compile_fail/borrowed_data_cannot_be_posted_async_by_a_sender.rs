//! As by address: a future may be dropped or leaked at any time.

use mizzen::{Message, Sender};

async fn post(to: &mut Sender) -> mizzen::Result<()> {
    let text = String::from("borrowed");
    let mut message = Message::new();
    message.pack_cheaper(text.as_bytes());
    to.post_async(message).await
}

fn main() {
    let _ = post;
}
