use mizzen::{Mailbox, Result};

fn receive(inbox: &Mailbox) -> Result<f64> {
    let mut halo = [0.0f64; 64];
    let mut edge = [0.0f64; 8];
    let mut incoming = inbox.retrieve()?;
    incoming.unpack_cheaper(&mut halo)?;
    incoming.unpack_cheaper(&mut edge)?;
    let scale: f64 = incoming.unpack_express()?;
    incoming.finish()?;
    Ok(scale * halo[0] + edge[7])
}

pub(crate) fn main() {
    let sums = mizzen::local(1, |deck| {
        let inbox = deck.mailbox()?;
        let mut message = mizzen::Message::new();
        message
            .pack_safer(&[2.0f64; 64])
            .pack_safer(&[1.0f64; 8])
            .pack_safer(&3.0f64);
        inbox.address().post(&mut message)?;
        receive(&inbox)
    });
    assert_eq!(sums.unwrap(), [7.0]);
}
