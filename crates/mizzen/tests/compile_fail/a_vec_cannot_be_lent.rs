//! Only buffers of an arena move: a `Vec` is packed in another way.

fn main() {
    let _ = mizzen::local(1, |deck| {
        let inbox = deck.mailbox()?;
        inbox.address().post_lent(&1u32, vec![1u8, 2, 3])
    });
}
