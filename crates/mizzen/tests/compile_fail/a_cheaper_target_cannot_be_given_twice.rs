use mizzen::{Mailbox, Result};

fn receive(inbox: &Mailbox) -> Result<()> {
    let mut halo = [0.0f64; 64];
    let mut incoming = inbox.retrieve()?;
    incoming.unpack_cheaper(&mut halo)?;
    incoming.unpack_cheaper(&mut halo)?;
    incoming.finish()?;
    Ok(())
}

fn main() {}
