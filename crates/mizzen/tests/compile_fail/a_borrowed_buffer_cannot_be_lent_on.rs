use mizzen::{Mailbox, Result, Sender};

fn forward(inbox: &Mailbox, sender: &mut Sender) -> Result<()> {
    let (header, tile) = inbox.receive_lent::<u32, f32>()?;
    sender.post_lent(&header, tile)?;
    Ok(())
}

fn main() {}
