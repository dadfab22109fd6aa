//! The longest time-outs that can be said: as good as none, and no reason to panic.

use std::time::Duration;

use mizzen::Message;

use super::{Job, inbox_of, meet};

pub(crate) fn the_longest_timeout_is_as_good_as_none(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 1 {
            let inbox = deck.fetch_timeout("inbox", Duration::MAX)?;
            let mut message = Message::new();
            message.pack_safer(&1u64);
            inbox.post_timeout(&mut message, Duration::MAX)?;
            // Over a memory path, a long message is sent another way if there is a deadline.
            let long = vec![1u64; 100_000];
            let mut longer = Message::new();
            longer.pack_safer(&long[..]);
            inbox.post_timeout(&mut longer, Duration::MAX)?;
            // The two ways have no common order.
            meet(&deck, "both received")?;
            inbox.sender()?.post_timeout(&mut message, Duration::MAX)?;
        } else {
            let inbox = inbox_of(&deck, "inbox")?;
            let next = || inbox.retrieve_timeout(Duration::MAX);
            assert_eq!(next()?.unpack_express::<u64>()?, 1);
            assert_eq!(next()?.unpack_vec::<u64>()?.len(), 100_000);
            meet(&deck, "both received")?;
            assert_eq!(next()?.unpack_express::<u64>()?, 1);
        }
        meet(&deck, "end")
    });
}

pub(crate) fn a_call_and_a_pool_may_take_the_longest_timeout(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 0 {
            let _double = deck.serve("double", |x: u64| 2 * x)?;
            meet(&deck, "served")?;
            meet(&deck, "called")?;
        } else {
            meet(&deck, "served")?;
            let mut double = deck.client::<u64, u64>("double")?;
            double.set_timeout(Duration::MAX);
            assert_eq!(double.call_timeout(&21, Duration::MAX)?, 42);
            meet(&deck, "called")?;
        }
        let items = if deck.rank() == 0 { 0..50 } else { 0..0u64 };
        let squares = deck.pool().help_for(Duration::MAX).map(items, |x| x * x)?;
        assert_eq!(squares.len(), if deck.rank() == 0 { 50 } else { 0 });
        Ok(())
    });
}
