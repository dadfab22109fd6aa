//! Handing on gives the buffer away: it may be back at its owner at any time.

fn main() {
    let _ = mizzen::local(1, |deck| {
        let inbox = deck.mailbox()?;
        let (number, frame) = inbox.receive_lent::<u32, u8>()?;
        inbox.address().post_lent(&number, frame)?;
        assert_eq!(frame[0], 1);
        Ok(())
    });
}
