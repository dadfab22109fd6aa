//! Operations of a scope: under way without a thread, in order, and over when the scope is.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::event::{PollFd, PollFlags, poll};

use mizzen::{
    Deck, Error, Mailbox, MailboxRef, Message, PostError, Result, Transferred, UnpackError,
};

use super::{Job, bytes, inbox_of, meet, pair};

/// More than may wait for a mailbox, and than may be unread.
const BEYOND: usize = 80 << 20;
/// A message that is part of the allowance.
const LARGE: usize = 30 << 10;

fn of(bytes: &[u8]) -> Message<'_> {
    let mut message = Message::new();
    message.pack_cheaper(bytes);
    message
}

/// Posts until no more may wait for a mailbox: how many. Nobody reads it meanwhile.
pub(super) fn fill(inbox: &MailboxRef) -> Result<u64> {
    let large = vec![0u8; LARGE];
    let mut count = 0;
    // The path itself takes some now and then: until the smallest finds no room several times in a row.
    let mut refused = 0;
    while refused < 100 {
        let len = if refused == 0 { LARGE } else { 1 };
        match inbox.try_post(&mut of(&large[..len])) {
            Ok(()) => (count, refused) = (count + 1, 0),
            Err(Error::Post(PostError::Busy { .. })) => refused += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

pub(super) fn skip(inbox: &Mailbox, count: u64) -> Result<()> {
    (0..count).try_for_each(|_| inbox.retrieve().map(drop))
}

/// Compares without printing megabytes.
fn check(got: &[u8], number: usize, len: usize) {
    assert_eq!(got.len(), len);
    assert!(got == bytes(number, len), "message {number} is intact");
}

fn is_gone<T>(outcome: &Result<T>) -> bool {
    matches!(
        outcome,
        Err(Error::Post(
            PostError::PeerGone(_) | PostError::Closed { .. }
        ))
    )
}

/// The closure calls nothing of the library until the reader has all of the message.
pub(crate) fn what_is_posted_goes_on_while_the_closure_computes(job: &Job<'_>) {
    pair(
        job,
        |deck, inbox| {
            check(&inbox.receive_vec::<u8>()?, 1, BEYOND);
            deck.fetch("answer")?.send(&1u8)
        },
        |deck, inbox| {
            let answer = inbox_of(deck, "answer")?;
            let descriptor = answer.descriptor()?;
            let long = bytes(1, BEYOND);
            deck.scope(|scope| {
                let posted = scope.post(&inbox, of(&long));
                while answer.try_retrieve()?.is_none() {
                    let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
                    poll(&mut descriptors, None).expect("it is a descriptor");
                }
                posted.wait()
            })
        },
    );
}

pub(crate) fn very_long_messages_that_are_posted_to_each_other_first_cross(job: &Job<'_>) {
    job.run(2, |deck| {
        let me = deck.rank().0 as usize;
        let inbox = inbox_of(&deck, &format!("inbox {me}"))?;
        let other = deck.fetch(&format!("inbox {}", 1 - me))?;
        let (mine, mut theirs) = (bytes(me, BEYOND), vec![0; BEYOND]);
        deck.scope(|scope| {
            let posted = scope.post(&other, of(&mine));
            inbox.retrieve()?.unpack_express_into(&mut theirs[..])?;
            posted.wait()
        })?;
        check(&theirs, 1 - me, BEYOND);
        Ok(())
    });
}

pub(crate) fn a_rank_posts_a_very_long_message_to_itself(job: &Job<'_>) {
    job.run(1, |deck| {
        let inbox = deck.mailbox()?;
        let (address, long) = (inbox.address(), bytes(3, BEYOND));
        deck.scope(|scope| {
            let posted = scope.post(&address, of(&long));
            check(&inbox.receive_vec::<u8>()?, 3, BEYOND);
            posted.wait()
        })
    });
}

pub(crate) fn what_is_posted_later_comes_after_what_is_under_way(job: &Job<'_>) {
    pair(
        job,
        |deck, inbox| {
            let filled = inbox_of(deck, "filled")?.receive::<u64>()?;
            skip(&inbox, filled)?;
            for number in 0..40 {
                check(&inbox.receive_vec::<u8>()?, number, 8);
            }
            check(&inbox.receive_vec::<u8>()?, 40, BEYOND);
            check(&inbox.receive_vec::<u8>()?, 41, 8);
            check(&inbox.receive_vec::<u8>()?, 42, 60_000);
            assert_eq!(inbox.receive::<u64>()?, 43);
            Ok(())
        },
        |deck, inbox| {
            let filled = deck.fetch("filled")?;
            let count = fill(&inbox)?;
            let short: Vec<_> = (0..40).map(|number| bytes(number, 8)).collect();
            let (long, next, last) = (bytes(40, BEYOND), bytes(41, 8), bytes(42, 60_000));
            deck.scope(|scope| {
                for short in &short {
                    drop(scope.post(&inbox, of(short)));
                }
                let posted = scope.post(&inbox, of(&long));
                assert!(!posted.is_done());
                filled.send(&count)?;
                // One of the scope, one that may wait behind it, and one by the short path.
                drop(scope.post(&inbox, of(&next)));
                inbox.post(&mut of(&last))?;
                inbox.send(&43u64)?;
                posted.wait()
            })
        },
    );
}

/// What is posted later takes nothing that one before it needs.
pub(crate) fn messages_that_together_exceed_what_may_be_unread_go_one_after_the_other(
    job: &Job<'_>,
) {
    const LENGTHS: [usize; 5] = [20 << 20, 60 << 20, 30 << 20, BEYOND, 63 << 20];
    pair(
        job,
        |deck, inbox| {
            inbox_of(deck, "gate")?.receive::<u8>()?;
            for (number, len) in LENGTHS.into_iter().enumerate() {
                check(&inbox.receive_vec::<u8>()?, number, len);
            }
            Ok(())
        },
        |deck, inbox| {
            let gate = deck.fetch("gate")?;
            let all: Vec<_> = (0..).zip(LENGTHS).map(|(n, len)| bytes(n, len)).collect();
            deck.scope(|scope| {
                let posted: Vec<_> = all.iter().map(|one| scope.post(&inbox, of(one))).collect();
                gate.send(&0u8)?;
                posted.into_iter().try_for_each(|one| one.wait())
            })
        },
    );
}

pub(crate) fn posts_of_a_scope_keep_their_order_whatever_their_length(job: &Job<'_>) {
    const LENGTHS: [usize; 6] = [8, 5_000, 0, 60_000, 300_000, 3 << 20];
    const COUNT: usize = 60;
    pair(
        job,
        |deck, inbox| {
            let filled = inbox_of(deck, "filled")?.receive::<u64>()?;
            skip(&inbox, filled)?;
            for number in 0..COUNT {
                let len = LENGTHS[number % LENGTHS.len()];
                check(&inbox.receive_vec::<u8>()?, number, len);
            }
            Ok(())
        },
        |deck, inbox| {
            let filled = deck.fetch("filled")?;
            let count = fill(&inbox)?;
            let all: Vec<_> = (0..COUNT)
                .map(|number| bytes(number, LENGTHS[number % LENGTHS.len()]))
                .collect();
            deck.scope(|scope| {
                let posted: Vec<_> = all.iter().map(|one| scope.post(&inbox, of(one))).collect();
                filled.send(&count)?;
                posted.into_iter().try_for_each(|one| one.wait())
            })
        },
    );
}

pub(crate) fn the_death_of_a_rank_ends_what_is_under_way_to_it(job: &Job<'_>) {
    job.run_losing(0, 2, |deck| {
        if deck.rank() == 0 {
            let (inbox, gate) = (inbox_of(&deck, "inbox")?, inbox_of(&deck, "gate")?);
            gate.receive::<u8>()?;
            return job.die((deck, inbox, gate));
        }
        let (inbox, gate) = (deck.fetch("inbox")?, deck.fetch("gate")?);
        let (long, short) = (bytes(1, BEYOND), bytes(2, 8));
        deck.scope(|scope| {
            let long = scope.post(&inbox, of(&long));
            // What waits behind it may be copied, and lost.
            let second = scope.post(&inbox, of(&short));
            assert!(!long.is_done());
            gate.send(&0u8)?;
            let outcome = long.wait();
            assert!(is_gone(&outcome), "{outcome:?}");
            drop(second);
            Ok(())
        })
    });
}

pub(crate) fn the_leave_of_a_rank_ends_what_is_under_way_to_it(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 0 {
            let _inbox = inbox_of(&deck, "inbox")?;
            return inbox_of(&deck, "gate")?.receive::<u8>().map(drop);
        }
        let (inbox, gate) = (deck.fetch("inbox")?, deck.fetch("gate")?);
        let long = bytes(1, BEYOND);
        deck.scope(|scope| {
            let posted = [scope.post(&inbox, of(&long)), scope.post(&inbox, of(&long))];
            gate.send(&0u8)?;
            for posted in posted {
                let outcome = posted.wait();
                // What was announced was posted, and is thrown away with its mailbox.
                assert!(outcome.is_ok() || is_gone(&outcome), "{outcome:?}");
            }
            Ok(())
        })
    });
}

pub(crate) fn a_mailbox_that_closes_ends_what_is_under_way_to_it(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 0 {
            let (inbox, gate) = (inbox_of(&deck, "inbox")?, inbox_of(&deck, "gate")?);
            gate.receive::<u8>()?;
            drop(inbox);
            return gate.receive::<u8>().map(drop);
        }
        let (inbox, gate) = (deck.fetch("inbox")?, deck.fetch("gate")?);
        fill(&inbox)?;
        let short = bytes(1, 8);
        deck.scope(|scope| {
            let posted: Vec<_> = (0..100).map(|_| scope.post(&inbox, of(&short))).collect();
            gate.send(&0u8)?;
            for posted in posted {
                // Some may have found room before.
                let outcome = posted.wait();
                assert!(outcome.is_ok() || is_gone(&outcome), "{outcome:?}");
            }
            gate.send(&0u8)
        })
    });
}

pub(crate) fn the_end_of_a_scope_waits_for_what_is_under_way(job: &Job<'_>) {
    pair(
        job,
        |deck, inbox| {
            // Nothing is read before the closure is at its end.
            inbox_of(deck, "gate")?.receive::<u8>()?;
            for number in [1, 2] {
                check(&inbox.receive_vec::<u8>()?, number, BEYOND);
            }
            Ok(())
        },
        |deck, inbox| {
            let gate = deck.fetch("gate")?;
            let mut long = [bytes(1, BEYOND), bytes(2, BEYOND)];
            deck.scope(|scope| {
                for long in &long {
                    // Nobody waits for them.
                    drop(scope.post(&inbox, of(long)));
                }
                gate.send(&0u8)
            })?;
            // The memory is its owner's again.
            long.iter_mut().for_each(|long| long.fill(0));
            Ok(())
        },
    );
}

pub(crate) fn a_panic_in_a_scope_takes_back_what_is_under_way(job: &Job<'_>) {
    /// The next message that was not taken back. One that had been announced is an error, or not there.
    fn next(inbox: &Mailbox) -> Result<u64> {
        loop {
            let taken_back = match inbox.retrieve() {
                Ok(mut incoming) if incoming.next_len() == Some(BEYOND) => {
                    incoming.unpack_vec::<u8>().map(drop)
                }
                Ok(mut incoming) => return incoming.unpack_express(),
                Err(error) => Err(error),
            };
            match taken_back {
                Err(Error::Unpack(UnpackError::Retracted)) => (),
                other => panic!("it was taken back: {other:?}"),
            }
        }
    }
    let post_and_panic = |deck: &Deck, inbox: &MailboxRef, long: &[u8], count: usize| {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            deck.scope(|scope| {
                let posted: Vec<_> = (0..count).map(|_| scope.post(inbox, of(long))).collect();
                assert!(posted.iter().all(|posted| !posted.is_done()));
                std::panic::panic_any(7u8);
            });
        }));
        assert!(outcome.is_err_and(|panic| panic.is::<u8>()));
    };
    pair(
        job,
        |deck, inbox| {
            let filled = inbox_of(deck, "filled")?.receive::<u64>()?;
            assert_eq!(next(&inbox)?, 7);
            skip(&inbox, filled)?;
            assert_eq!(next(&inbox)?, 8);
            Ok(())
        },
        |deck, inbox| {
            let mut long = bytes(1, BEYOND);
            // Some of it is announced.
            post_and_panic(deck, &inbox, &long, 1);
            long.fill(9);
            inbox.send(&7u64)?;
            // None of them is: they wait behind all that may.
            let count = fill(&inbox)?;
            post_and_panic(deck, &inbox, &long, 10);
            long.fill(10);
            deck.fetch("filled")?.send(&count)?;
            inbox.send(&8u64)
        },
    );
}

pub(crate) fn posts_under_way_are_waited_for_in_any_order(job: &Job<'_>) {
    const MAILBOXES: usize = 3;
    job.run(2, |deck| {
        let name = |index: usize| format!("inbox {index}");
        if deck.rank() == 0 {
            let inboxes: Vec<_> = (0..MAILBOXES)
                .map(|index| inbox_of(&deck, &name(index)))
                .collect::<Result<_>>()?;
            for (index, inbox) in inboxes.iter().enumerate() {
                check(&inbox.receive_vec::<u8>()?, index, BEYOND);
            }
            return Ok(());
        }
        let long: Vec<_> = (0..MAILBOXES).map(|index| bytes(index, BEYOND)).collect();
        deck.scope(|scope| {
            let mut posted = Vec::new();
            for (index, long) in long.iter().enumerate() {
                posted.push(scope.post(&deck.fetch(&name(index))?, of(long)));
            }
            posted.into_iter().rev().try_for_each(|one| one.wait())
        })
    });
}

pub(crate) fn a_post_is_done_though_nobody_waits_for_it(job: &Job<'_>) {
    pair(
        job,
        |_, inbox| {
            check(&inbox.receive_vec::<u8>()?, 1, BEYOND);
            Ok(())
        },
        |deck, inbox| {
            let long = bytes(1, BEYOND);
            deck.scope(|scope| {
                let posted = scope.post(&inbox, of(&long));
                while !posted.is_done() {
                    std::thread::yield_now();
                }
                Ok(())
            })
        },
    );
}

pub(crate) fn several_messages_are_finished_at_once(job: &Job<'_>) {
    const LENGTHS: [usize; 5] = [100, 300_000, 3 << 20, 12 << 20, BEYOND];
    job.run(2, |deck| {
        let name = |index: usize| format!("inbox {index}");
        if deck.rank() == 1 {
            let all: Vec<_> = (0..).zip(LENGTHS).map(|(n, len)| bytes(n, len)).collect();
            return deck.scope(|scope| {
                for (index, one) in all.iter().enumerate() {
                    drop(scope.post(&deck.fetch(&name(index))?, of(one)));
                }
                Ok(())
            });
        }
        let inboxes: Vec<_> = (0..LENGTHS.len())
            .map(|index| inbox_of(&deck, &name(index)))
            .collect::<Result<_>>()?;
        let mut targets = LENGTHS.map(|len| vec![0u8; len]);
        deck.scope(|scope| {
            let mut finished = Vec::new();
            for (inbox, target) in inboxes.iter().zip(&mut targets) {
                let mut incoming = inbox.retrieve()?;
                incoming.unpack_cheaper(&mut target[..])?;
                finished.push(scope.finish(incoming));
            }
            finished.into_iter().rev().try_for_each(|one| one.wait())
        })?;
        for (number, target) in targets.iter().enumerate() {
            check(target, number, LENGTHS[number]);
        }
        Ok(())
    });
}

pub(crate) fn messages_are_finished_while_others_are_posted(job: &Job<'_>) {
    job.run(2, |deck| {
        let me = deck.rank().0 as usize;
        let inbox = inbox_of(&deck, &format!("inbox {me}"))?;
        let other = deck.fetch(&format!("inbox {}", 1 - me))?;
        let mine = [bytes(me, BEYOND), bytes(2 + me, 5 << 20)];
        let mut theirs = [vec![0; BEYOND], vec![0; 5 << 20]];
        deck.scope(|scope| {
            for mine in &mine {
                drop(scope.post(&other, of(mine)));
            }
            for theirs in &mut theirs {
                let mut incoming = inbox.retrieve()?;
                incoming.unpack_cheaper(&mut theirs[..])?;
                // The end of the scope waits for it.
                drop(scope.finish(incoming));
            }
            Ok::<_, Error>(())
        })?;
        check(&theirs[0], 1 - me, BEYOND);
        check(&theirs[1], 3 - me, 5 << 20);
        Ok(())
    });
}

pub(crate) fn pieces_are_finished_in_a_scope_as_without(job: &Job<'_>) {
    const LENGTHS: [usize; 4] = [10, 3 << 20, 70_000, 90_000];
    pair(
        job,
        |deck, inbox| {
            let mut targets = LENGTHS.map(|len| vec![0; len]);
            let mut again = vec![0; LENGTHS[3]];
            let mut incoming = inbox.retrieve()?;
            deck.scope(|scope| {
                let [first, long, _, last] = &mut targets;
                incoming.unpack_cheaper(&mut first[..])?;
                incoming.unpack_cheaper(&mut long[..])?;
                incoming.skip()?;
                incoming.unpack_cheaper(&mut last[..])?;
                // The last one once more.
                incoming.reset()?;
                (0..3).try_for_each(|_| incoming.skip())?;
                incoming.unpack_cheaper(&mut again[..])?;
                scope.finish(incoming).wait()
            })?;
            for index in [0, 1, 3] {
                check(&targets[index], index, LENGTHS[index]);
            }
            check(&again, 3, LENGTHS[3]);
            Ok(())
        },
        |_, inbox| {
            let pieces: Vec<_> = (0..).zip(LENGTHS).map(|(n, len)| bytes(n, len)).collect();
            let mut message = Message::new();
            for piece in &pieces {
                message.pack_cheaper(&piece[..]);
            }
            inbox.post(&mut message)
        },
    );
}

/// Its sender is gone before any of it is read: some of it can never come.
pub(crate) fn the_leave_of_a_rank_ends_what_is_finished_of_it(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 1 {
            let (inbox, gate) = (deck.fetch("inbox")?, inbox_of(&deck, "gate")?);
            let long = bytes(1, BEYOND);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                deck.scope(|scope| {
                    drop(scope.post(&inbox, of(&long)));
                    gate.receive::<u8>().expect("rank 0 has retrieved it");
                    std::panic::panic_any(7u8);
                });
            }));
            assert!(outcome.is_err_and(|panic| panic.is::<u8>()));
            return Ok(());
        }
        let inbox = inbox_of(&deck, "inbox")?;
        let mut target = vec![0u8; BEYOND];
        let mut incoming = inbox.retrieve()?;
        inbox.depend_on(1);
        deck.fetch("gate")?.send(&0u8)?;
        assert_eq!(inbox.retrieve().unwrap_err().lost(), Some(1.into()));
        deck.scope(|scope| {
            incoming.unpack_cheaper(&mut target[..])?;
            let outcome = scope.finish(incoming).wait();
            let error = outcome.expect_err("some of it never came");
            assert!(matches!(error, Error::Unpack(_)), "{error}");
            Ok(())
        })
    });
}

/// The threads of this process.
fn threads() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Threads:"));
    line.and_then(|count| count.trim().parse().ok())
        .expect("a number")
}

pub(crate) fn ten_thousand_posts_under_way_make_no_thread(job: &Job<'_>) {
    const COUNT: usize = 10_000;
    pair(
        job,
        |deck, inbox| {
            let filled = inbox_of(deck, "filled")?.receive::<u64>()?;
            skip(&inbox, filled)?;
            for number in 0..COUNT as u64 {
                assert_eq!(inbox.receive::<u64>()?, number);
            }
            Ok(())
        },
        |deck, inbox| {
            let filled = deck.fetch("filled")?;
            let count = fill(&inbox)?;
            let numbers: Vec<u64> = (0..COUNT as u64).collect();
            let before = threads();
            deck.scope(|scope| {
                let posted: Vec<_> = numbers
                    .iter()
                    .map(|number| {
                        let mut message = Message::new();
                        message.pack_cheaper(number);
                        scope.post(&inbox, message)
                    })
                    .collect();
                let under_way = threads();
                // The reactor may be new, and another rank's threads may be of this process.
                assert!(under_way <= before + 8, "{before}, then {under_way}");
                assert!(posted.iter().any(|one| !one.is_done()));
                filled.send(&count)?;
                posted.into_iter().try_for_each(|one| one.wait())
            })
        },
    );
}

pub(crate) fn what_is_lent_in_a_message_under_way_arrives(job: &Job<'_>) {
    pair(
        job,
        |deck, inbox| {
            let filled = inbox_of(deck, "filled")?.receive::<u64>()?;
            skip(&inbox, filled)?;
            for number in 0..20usize {
                let (header, buffer) = inbox.receive_lent::<u64, u8>()?;
                assert_eq!(header, number as u64);
                check(&buffer, number, 5_000);
            }
            Ok(())
        },
        |deck, inbox| {
            let filled = deck.fetch("filled")?;
            let count = fill(&inbox)?;
            deck.scope(|scope| {
                let mut posted = Vec::new();
                for number in 0..20usize {
                    let mut buffer = deck.lend::<u8>(5_000)?;
                    buffer.copy_from_slice(&bytes(number, 5_000));
                    let mut message = Message::new();
                    message.pack_safer(&(number as u64)).pack_lent(buffer);
                    posted.push(scope.post(&inbox, message));
                }
                filled.send(&count)?;
                posted.into_iter().try_for_each(|one| one.wait())
            })
        },
    );
}

/// What was told rises, and ends with everything.
fn rises_to(told: &[Transferred], total: usize) {
    let total = total as u64;
    assert!(told.is_sorted_by(|one, next| one.bytes <= next.bytes));
    assert!(told.iter().all(|one| one.total == total), "{told:?}");
    assert_eq!(told.last().map(|last| last.bytes), Some(total));
}

/// The reader goes on when it has heard that the poster was told of the beginning, which cannot be the end then: more is left
/// than may be unread.
pub(crate) fn a_scope_tells_how_far_its_messages_are(job: &Job<'_>) {
    const FIRST: usize = 20 << 20;
    pair(
        job,
        |deck, inbox| {
            let mut incoming = inbox.retrieve()?;
            let (mut first, mut rest) = (vec![0; FIRST], vec![0; BEYOND]);
            incoming.unpack_express_into(&mut first[..])?;
            meet(deck, "told")?;
            let mut told = Vec::new();
            deck.scope(|scope| {
                incoming.unpack_cheaper(&mut rest[..])?;
                let finishing = scope.finish(incoming);
                assert_eq!(finishing.progress().total, BEYOND as u64);
                finishing.wait_with_progress(|progress| told.push(progress))
            })?;
            rises_to(&told, BEYOND);
            check(&first, 1, FIRST);
            check(&rest, 2, BEYOND);
            Ok(())
        },
        |deck, address| {
            let (first, rest) = (bytes(1, FIRST), bytes(2, BEYOND));
            let mut told = Vec::new();
            deck.scope(|scope| {
                let mut message = of(&first);
                message.pack_cheaper(&rest[..]);
                let posted = scope.post(&address, message);
                posted.wait_with_progress(|progress| {
                    if told.is_empty() {
                        assert!(progress.bytes < progress.total, "{progress:?}");
                        meet(deck, "told").expect("the reader is there");
                    }
                    told.push(progress);
                })
            })?;
            rises_to(&told, FIRST + BEYOND);
            Ok(())
        },
    );
}

/// What is done at once is told as done.
pub(crate) fn a_scope_tells_of_a_short_message_once(job: &Job<'_>) {
    pair(
        job,
        |_, inbox| inbox.receive::<u64>().map(drop),
        |deck, address| {
            let mut told = Vec::new();
            deck.scope(|scope| {
                let mut message = Message::new();
                message.pack_safer(&7u64);
                let posted = scope.post(&address, message);
                posted.wait_with_progress(|progress| told.push(progress))
            })?;
            assert_eq!(told.len(), 1);
            rises_to(&told, 8);
            Ok(())
        },
    );
}
