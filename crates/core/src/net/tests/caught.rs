//! Which messages go from the driver to the thread that waits, and which through the queue of its mailbox.

use std::thread;
use std::time::{Duration, Instant};

use super::inbox_of;
use crate::message::Flags;
use crate::net::Catch;
use crate::rank::{Incarnation, ProcessId, Rank};
use crate::testing::local_over_tcp;

/// How long some message that is waited for may take to be caught, on a machine that others use, too.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn only_the_message_that_is_waited_for_is_caught() {
    local_over_tcp(1, |deck| {
        let inbox = inbox_of(&deck)?;
        let id = inbox.full_address().mailbox;
        let other = deck.mailbox()?.full_address().mailbox;
        let core = deck.process.mailboxes.get(id).unwrap();
        let first = ProcessId::new(Rank(3), Incarnation(0));
        let later = ProcessId::new(Rank(3), Incarnation(1));
        let short = Flags::SINGLE;
        let sent = short.with(Flags::FOREIGN);
        for (from, to, flags, message) in [
            (later, id, sent, [1; 8].as_slice()),
            (first, other, sent, &[1; 8]),
            (first, id, short, &[1; 8]),
            (first, id, Flags::FOREIGN, &[1; 8]),
            (first, id, sent, &[1; 7]),
            (first, id, sent, &[1; 9]),
            (first, id, sent, &[]),
        ] {
            let mut target = [0; 8];
            let mut catch = Catch::new(&core, short, &mut target);
            assert!(!catch.take(from, to, flags, message));
            assert!(!catch.is_over());
            assert_eq!(target, [0; 8]);
        }
        let mut target = [0; 8];
        let mut catch = Catch::new(&core, short, &mut target);
        assert!(catch.take(first, id, sent, &[1; 8]));
        assert!(!catch.take(first, id, sent, &[2; 8]), "one is enough");
        assert!(catch.is_over());
        assert_eq!(target, [1; 8]);
        Ok(())
    })
    .unwrap();
}

/// Numbers, alone, in company, and long ones, in bursts, so that some are caught and others find a queue.
#[test]
fn what_is_caught_does_not_overtake_what_is_queued() {
    const COUNT: u64 = 10_000;
    let company = |number: u64| match number % 7 {
        3 => Some(3),
        5 => Some(3_000),
        _ => None,
    };
    local_over_tcp(2, |deck| {
        let inbox = inbox_of(&deck)?;
        if deck.rank() != 0 {
            let mut sender = deck.fetch("inbox 0")?.sender()?;
            for number in 0..COUNT {
                match company(number) {
                    Some(len) => sender.send(&vec![number; len][..])?,
                    None => sender.send(&number)?,
                }
                if number % 64 == 0 {
                    thread::sleep(Duration::from_micros(100));
                }
            }
            return deck.process.flush(None).map_err(Into::into);
        }
        for number in 0..COUNT {
            match company(number) {
                Some(len) => assert_eq!(inbox.receive_vec::<u64>()?, vec![number; len]),
                None => assert_eq!(inbox.receive::<u64>()?, number),
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn who_waits_catches_and_all_are_counted() {
    local_over_tcp(2, |deck| {
        let inbox = inbox_of(&deck)?;
        let [mine, other] = [deck.rank().0, 1 - deck.rank().0];
        let mut sender = deck.fetch(&format!("inbox {other}"))?.sender()?;
        let core = deck.process.mailboxes.get(inbox.full_address().mailbox);
        let counts = &core.unwrap().counts;
        let started = Instant::now();
        for number in 0u64.. {
            if mine == 0 {
                let is_enough = counts.caught() > 10 || started.elapsed() > PATIENCE;
                sender.send(&(if is_enough { u64::MAX } else { number }))?;
            }
            let got = inbox.receive::<u64>()?;
            if mine == 1 {
                sender.send(&got)?;
            }
            if got == u64::MAX {
                break;
            }
            assert_eq!(got, number);
        }
        if mine == 0 {
            assert!(counts.caught() > 10);
        }
        Ok(())
    })
    .unwrap();
}
