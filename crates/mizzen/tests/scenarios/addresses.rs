//! Addresses inside values, whatever the path between the ranks.

use std::collections::HashMap;

use super::{Job, meet};

use mizzen::{Error, MailboxRef, Rank, UnpackError};

pub(crate) fn an_address_is_an_argument_and_a_result_of_a_call(job: &Job<'_>) {
    job.run(2, |deck| {
        let inbox = deck.mailbox()?;
        let own = inbox.address();
        let tell = move |(who, word): (MailboxRef, u64)| who.send(&word).map(|()| own.clone()).ok();
        let _service = deck.serve("tell", tell)?;
        let other = Rank(1) - deck.rank().0;
        let mut client = deck.client_at::<(MailboxRef, u64), Option<MailboxRef>>(other, "tell")?;
        let there = client.call(&(inbox.address(), 7))?;
        let there = there.expect("the other told us");
        assert_eq!(there.rank(), other);
        there.send(&8u64)?;
        // One by the service there, one by the other rank itself: each has our address, and they come in any order.
        let mut words = [inbox.receive::<u64>()?, inbox.receive()?];
        words.sort_unstable();
        assert_eq!(words, [7, 8]);
        meet(&deck, "end")
    });
}

// Its hash is that of numbers that never change; what changes behind it is the way there.
#[allow(clippy::mutable_key_type)]
pub(crate) fn an_address_is_a_key_and_a_part_of_a_value(job: &Job<'_>) {
    job.run(2, |deck| {
        let inbox = deck.mailbox()?;
        deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
        let addresses = deck
            .ranks()
            .map(|rank| deck.fetch(&format!("inbox {rank}")));
        let addresses = addresses.collect::<mizzen::Result<Vec<_>>>()?;
        let by_address: HashMap<_, _> = addresses.into_iter().zip(deck.ranks()).collect();
        assert_eq!(by_address[&inbox.address()], deck.rank());
        for other in deck.others() {
            let (to, _) = by_address
                .iter()
                .find(|(_, rank)| **rank == other)
                .expect("it is there");
            to.send_value(&by_address)?;
        }
        let theirs: HashMap<MailboxRef, Rank> = inbox.receive_value()?;
        assert_eq!(theirs, by_address);
        meet(&deck, "end")
    });
}

pub(crate) fn an_address_of_no_rank_of_the_job_is_refused(job: &Job<'_>) {
    job.run(1, |deck| {
        let inbox = deck.mailbox()?;
        // As an address is written: a process that is not there, and a mailbox.
        inbox.address().send_value(&(77u64, 1u64))?;
        let refused = inbox.receive_value::<MailboxRef>();
        assert!(
            matches!(&refused, Err(Error::Unpack(UnpackError::Decode(_)))),
            "{refused:?}"
        );
        Ok(())
    });
}
