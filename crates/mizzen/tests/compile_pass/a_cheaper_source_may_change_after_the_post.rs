use mizzen::Message;

pub(crate) fn main() {
    mizzen::local(1, |deck| {
        let inbox = deck.mailbox()?;
        let to = inbox.address();
        let mut halo = [1.0f64; 8];
        let mut message = Message::new();
        message.pack_cheaper(&halo);
        to.post(&mut message)?;
        halo[0] = 2.0;
        to.send(&halo)?;
        assert_eq!(inbox.receive::<[f64; 8]>()?[0], 1.0);
        assert_eq!(inbox.receive::<[f64; 8]>()?[0], 2.0);
        Ok(())
    })
    .unwrap();
}
