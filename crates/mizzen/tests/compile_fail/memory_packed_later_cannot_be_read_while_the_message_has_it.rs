use mizzen::{MailboxRef, Message, Result};

fn send(to: &MailboxRef) -> Result<u32> {
    let mut counts = [0u32; 3];
    let mut message = Message::new();
    message.pack_later(&mut counts);
    let first = counts[0];
    to.post(&mut message)?;
    Ok(first)
}

fn main() {}
