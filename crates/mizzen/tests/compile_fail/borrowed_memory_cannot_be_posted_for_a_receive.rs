//! A receive may be dropped or leaked at any time while its memory is filled, so that must not be borrowed.

use mizzen::{Mailbox, Result};

fn receive(inbox: &Mailbox) -> Result<[f64; 100]> {
    let mut row = [0.0f64; 100];
    inbox.post_receive(&mut row[..]).wait()?;
    Ok(row)
}

fn main() {
    let _ = receive;
}
