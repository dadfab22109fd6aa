use mizzen::{Mailbox, Result};

fn receive(inbox: &Mailbox) -> Result<bool> {
    let flags = inbox.post_receive(vec![false; 100]).wait()?;
    Ok(flags[0])
}

fn main() {
    let _ = receive;
}
