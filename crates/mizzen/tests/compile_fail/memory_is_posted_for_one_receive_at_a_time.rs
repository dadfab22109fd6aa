//! Two messages into one buffer would overwrite each other.

use mizzen::{Mailbox, Result};

fn receive(inbox: &Mailbox) -> Result<()> {
    let row = vec![0.0f64; 100];
    let mut first = inbox.post_receive(row);
    let mut second = inbox.post_receive(row);
    first.wait()?;
    second.wait()?;
    Ok(())
}

fn main() {
    let _ = receive;
}
