use mizzen::{Incoming, Mailbox, Result};

fn receive(inbox: &Mailbox) -> Result<()> {
    let mut incoming: Incoming<'_> = inbox.retrieve()?;
    {
        let mut halo = [0.0f64; 64];
        incoming.unpack_cheaper(&mut halo)?;
    }
    incoming.finish()?;
    Ok(())
}

fn main() {}
