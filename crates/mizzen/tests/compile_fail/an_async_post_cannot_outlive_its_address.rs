//! A post under way goes by its address.

use mizzen::{Mailbox, Message};

fn post(inbox: &Mailbox) -> impl Future<Output = mizzen::Result<()>> + 'static {
    let address = inbox.address();
    address.post_async(Message::new())
}

fn main() {
    let _ = post;
}
