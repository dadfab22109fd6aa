use mizzen::{Mailbox, Result};

fn receive(inbox: &Mailbox) -> Result<f64> {
    let mut halo = [0.0f64; 64];
    let mut incoming = inbox.retrieve()?;
    incoming.unpack_cheaper(&mut halo)?;
    let first = halo[0];
    incoming.finish()?;
    Ok(first)
}

fn main() {}
