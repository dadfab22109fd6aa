//! What a message may be written to at any time belongs to the receive.

use mizzen::{Mailbox, Result};

fn receive(inbox: &Mailbox) -> Result<f64> {
    let row = vec![0.0f64; 100];
    let mut receive = inbox.post_receive(row);
    let first = row[0];
    receive.wait()?;
    Ok(first)
}

fn main() {
    let _ = receive;
}
