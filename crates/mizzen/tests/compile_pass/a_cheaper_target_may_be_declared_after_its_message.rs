use mizzen::{Mailbox, Result};

/// The length is known only after an express piece: the target comes after the message, and is dropped before it.
fn receive(inbox: &Mailbox) -> Result<Vec<f64>> {
    let mut incoming = inbox.retrieve()?;
    let length: u64 = incoming.unpack_express()?;
    let mut halo = vec![0.0f64; length as usize];
    incoming.unpack_cheaper(&mut halo[..])?;
    incoming.finish()?;
    Ok(halo)
}

pub(crate) fn main() {
    let halos = mizzen::local(1, |deck| {
        let inbox = deck.mailbox()?;
        let halo = vec![1.5f64; 100];
        let mut message = mizzen::Message::new();
        message.pack_safer(&100u64).pack_cheaper(&halo[..]);
        inbox.address().post(&mut message)?;
        receive(&inbox)
    });
    assert_eq!(halos.unwrap(), [vec![1.5; 100]]);
}
