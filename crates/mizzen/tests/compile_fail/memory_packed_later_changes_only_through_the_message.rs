use mizzen::{MailboxRef, Message, Result};

fn send(to: &MailboxRef) -> Result<u32> {
    let mut counts = [0u32; 3];
    let mut message = Message::new();
    let key = message.pack_later(&mut counts);
    counts[0] = 1;
    message.later(&key)[1] = 2;
    to.post(&mut message)?;
    Ok(counts[0])
}

fn main() {}
