use mizzen::{Mailbox, Result};

fn receive(inbox: &Mailbox) -> Result<bool> {
    inbox.receive::<bool>()
}

fn main() {}
