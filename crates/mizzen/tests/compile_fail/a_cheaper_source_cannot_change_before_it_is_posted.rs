use mizzen::{MailboxRef, Message, Result};

fn send(to: &MailboxRef) -> Result<f64> {
    let mut halo = [0.0f64; 64];
    let mut message = Message::new();
    message.pack_cheaper(&halo);
    halo[0] = 1.0;
    to.post(&mut message)?;
    Ok(halo[0])
}

fn main() {}
