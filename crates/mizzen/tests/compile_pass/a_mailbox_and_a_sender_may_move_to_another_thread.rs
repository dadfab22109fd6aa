pub(crate) fn main() {
    mizzen::local(1, |deck| {
        let inbox = deck.mailbox()?;
        let mut sender = inbox.address().sender()?;
        let receiver = std::thread::spawn(move || inbox.receive::<u64>());
        std::thread::spawn(move || sender.send(&7u64))
            .join()
            .unwrap()?;
        assert_eq!(receiver.join().unwrap()?, 7);
        Ok(())
    })
    .unwrap();
}
