use mizzen::{MailboxRef, Result};

fn send(to: &MailboxRef) -> Result<()> {
    to.send(&String::from("pointers mean nothing elsewhere"))?;
    Ok(())
}

fn main() {}
