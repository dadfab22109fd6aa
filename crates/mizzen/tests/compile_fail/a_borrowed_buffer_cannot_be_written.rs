use mizzen::{Mailbox, Result};

fn receive(inbox: &Mailbox) -> Result<()> {
    let (_, tile) = inbox.receive_lent::<u32, f32>()?;
    tile[0] = 1.0;
    Ok(())
}

fn main() {}
