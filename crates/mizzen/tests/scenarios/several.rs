//! Waiting for several mailboxes, and by descriptors.

use std::cell::Cell;
use std::sync::Mutex;
use std::task::Poll;
use std::time::{Duration, Instant};

use mizzen::{Deck, Descriptor, Error, Mailbox, Message, Result};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};

use super::operations::{Runtime, is_timeout, poll_once};
use super::{Job, bytes, inbox_of, meet, pair};

fn two(deck: &Deck) -> Result<(Mailbox, Mailbox)> {
    Ok((inbox_of(deck, "a")?, inbox_of(deck, "b")?))
}

pub(crate) fn the_first_message_of_several_mailboxes_is_retrieved(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 1 {
            let (a, b) = (deck.fetch("a")?, deck.fetch("b")?);
            let turn = inbox_of(&deck, "turn")?;
            for number in 0..40u64 {
                // In no order that the receiver could guess.
                let to = if (number * number) % 7 < 3 { &a } else { &b };
                to.send(&number)?;
                turn.receive::<u8>()?;
            }
            return Ok(());
        }
        let (mut a, mut b) = two(&deck)?;
        let turn = deck.fetch("turn")?;
        let mut either = mizzen::select([&mut a, &mut b]);
        for number in 0..40u64 {
            let (which, mut incoming) = either.retrieve()?;
            assert_eq!(which, usize::from((number * number) % 7 >= 3));
            assert_eq!(either.last(), Some(which));
            assert_eq!(incoming.unpack_express::<u64>()?, number);
            turn.send(&0u8)?;
        }
        Ok(())
    });
}

/// Counts, without a clock: whoever has something is served within as many retrievals as there are mailboxes.
pub(crate) fn a_busy_mailbox_does_not_keep_the_others_waiting(job: &Job<'_>) {
    const BUSY: usize = 100;
    job.run(2, |deck| {
        if deck.rank() == 1 {
            let [busy, also, quiet] = ["busy", "also", "quiet"].map(|name| deck.fetch(name));
            let (busy, also) = (busy?, also?);
            for number in 0..BUSY as u64 {
                busy.send(&number)?;
                also.send(&number)?;
            }
            quiet?.send(&7u64)?;
            return meet(&deck, "all is sent");
        }
        let mut busy = inbox_of(&deck, "busy")?;
        let mut also = inbox_of(&deck, "also")?;
        let mut quiet = inbox_of(&deck, "quiet")?;
        meet(&deck, "all is sent")?;
        let mut served = [0usize; 3];
        let mut any = mizzen::select([&mut busy, &mut also, &mut quiet]);
        for _ in 0..3 {
            served[any.retrieve()?.0] += 1;
        }
        assert_eq!(served, [1, 1, 1]);
        for _ in 0..2 * (BUSY - 1) {
            served[any.retrieve()?.0] += 1;
            assert!(served[0].abs_diff(served[1]) <= 1, "{served:?}");
        }
        assert_eq!(served, [BUSY, BUSY, 1]);
        assert!(any.try_retrieve()?.is_none());
        Ok(())
    });
}

pub(crate) fn mailboxes_take_turns_however_often_they_are_selected_anew(job: &Job<'_>) {
    job.run(1, |deck| {
        let mut inboxes = [deck.mailbox()?, deck.mailbox()?, deck.mailbox()?];
        for inbox in &inboxes {
            let address = inbox.address();
            (0..10u8).try_for_each(|number| address.send(&number))?;
        }
        let mut served = [0; 3];
        for _ in 0..30 {
            let (which, _) = mizzen::select(&mut inboxes).retrieve()?;
            served[which] += 1;
            let (most, least) = (served.iter().max(), served.iter().min());
            assert!(most.unwrap() - least.unwrap() <= 1, "{served:?}");
        }
        Ok(())
    });
}

pub(crate) fn try_and_deadline_forms_of_several_do_not_wait_longer(job: &Job<'_>) {
    job.run(1, |deck| {
        let (mut a, mut b) = (deck.mailbox()?, deck.mailbox()?);
        let to_b = b.address();
        let mut either = mizzen::select([&mut a, &mut b]);
        assert!(either.try_retrieve()?.is_none());
        let late = either.retrieve_timeout(Duration::from_millis(10));
        assert!(is_timeout(&late), "{late:?}");
        assert_eq!(either.last(), None);
        let late = either.retrieve_deadline(Instant::now());
        assert!(is_timeout(&late), "{late:?}");
        to_b.send(&1u8)?;
        assert_eq!(either.retrieve_timeout(Duration::MAX)?.0, 1);
        to_b.send(&2u8)?;
        assert_eq!(either.retrieve_deadline(Instant::now())?.0, 1);
        to_b.send(&3u8)?;
        let found = either.try_retrieve()?.expect("it was sent");
        assert_eq!((found.0, found.1.source().0), (1, 0));
        Ok(())
    });
}

pub(crate) fn messages_of_every_kind_come_to_several_mailboxes(job: &Job<'_>) {
    const EACH: usize = 40;
    const LENGTHS: [usize; 4] = [8, 5_000, 120_000, 0];
    job.run(3, |deck| {
        let names = ["a", "b", "c"];
        if deck.rank() != 0 {
            let addresses: Vec<_> = names
                .map(|name| deck.fetch(name))
                .into_iter()
                .collect::<Result<_, _>>()?;
            let mut senders = Vec::new();
            for address in &addresses {
                senders.push(address.sender()?);
            }
            for number in 0..EACH {
                for which in 0..names.len() {
                    let data = bytes(number, LENGTHS[(number + which) % LENGTHS.len()]);
                    let mut message = Message::new();
                    message.pack_safer(&(number as u64)).pack_cheaper(&data[..]);
                    match deck.rank().0 {
                        1 => addresses[which].post(&mut message)?,
                        _ => senders[which].post(&mut message)?,
                    }
                }
            }
            return Ok(());
        }
        let mut inboxes = Vec::new();
        for name in names {
            inboxes.push(inbox_of(&deck, name)?);
        }
        let mut any = mizzen::select(&mut inboxes);
        // What came of each rank to each mailbox.
        let mut came = [[0; 3]; 3];
        for _ in 0..2 * EACH * names.len() {
            let (which, mut incoming) = any.retrieve()?;
            let came = &mut came[incoming.source().0 as usize][which];
            assert_eq!(incoming.unpack_express::<u64>()?, *came as u64);
            let data = bytes(*came, LENGTHS[(*came + which) % LENGTHS.len()]);
            assert_eq!(incoming.unpack_vec::<u8>()?, data);
            *came += 1;
        }
        assert_eq!(came, [[0; 3], [EACH; 3], [EACH; 3]]);
        Ok(())
    });
}

pub(crate) fn several_mailboxes_are_awaited_under_every_runtime(job: &Job<'_>) {
    const EACH: u64 = 60;
    job.run(2, |deck| {
        if deck.rank() == 1 {
            let a = deck.fetch("a")?;
            let mut b = deck.fetch("b")?.sender()?;
            for number in 0..EACH * Runtime::ALL.len() as u64 {
                match number % 2 {
                    0 => a.send(&number)?,
                    _ => b.send(&number)?,
                }
            }
            return Ok(());
        }
        let (mut a, mut b) = two(&deck)?;
        let mut next = [0, 1];
        for runtime in Runtime::ALL {
            runtime.block_on(async {
                for _ in 0..EACH {
                    let mut either = mizzen::select([&mut a, &mut b]);
                    let (which, mut incoming) = either.retrieve_async().await?;
                    assert_eq!(incoming.unpack_express::<u64>()?, next[which]);
                    next[which] += 2;
                }
                Ok::<(), Error>(())
            })?;
        }
        assert_eq!(next[0] + next[1], 2 * EACH * Runtime::ALL.len() as u64 + 1);
        Ok(())
    });
}

pub(crate) fn several_mailboxes_are_awaited_on_workers(job: &Job<'_>) {
    pair(
        job,
        |deck, mut a| {
            let mut b = inbox_of(deck, "b")?;
            let task = deck.spawn_async(async move {
                let mut served = [0; 2];
                while served.iter().sum::<u32>() < 200 {
                    let mut either = mizzen::select([&mut a, &mut b]);
                    served[either.retrieve_async().await?.0] += 1;
                }
                Ok::<_, Error>(served)
            });
            assert_eq!(task.join()??, [100, 100]);
            Ok(())
        },
        |deck, a| {
            let b = deck.fetch("b")?;
            (0..100u64).try_for_each(|number| a.send(&number).and_then(|()| b.send(&number)))
        },
    );
}

pub(crate) fn several_mailboxes_are_awaited_beside_a_timer(job: &Job<'_>) {
    pair(
        job,
        |deck, mut a| {
            let mut b = deck.mailbox()?;
            Runtime::TokioOfOneThread.block_on(async {
                let mut ticks = tokio::time::interval(Duration::from_micros(100));
                let (mut sum, mut expected) = (0, (0..50u64).sum());
                expected += 1_000;
                b.address().send(&1_000u64)?;
                // Each tick drops the future; what comes meanwhile is found by the next.
                while sum < expected {
                    let mut either = mizzen::select([&mut a, &mut b]);
                    tokio::select! {
                        biased;
                        _ = ticks.tick() => (),
                        found = either.retrieve_async() => {
                            sum += found?.1.unpack_express::<u64>()?;
                        }
                    }
                }
                assert_eq!(sum, expected);
                Ok(())
            })
        },
        |_, a| (0..50u64).try_for_each(|number| a.send(&number)),
    );
}

pub(crate) fn a_selection_says_in_which_mailbox_a_loss_was_told(job: &Job<'_>) {
    job.run_losing(1, 2, |deck| {
        if deck.rank() == 1 {
            deck.fetch("b")?.send(&1u64)?;
            meet(&deck, "it was read")?;
            return job.die(deck);
        }
        let (mut a, mut b) = two(&deck)?;
        let mut either = mizzen::select([&mut a, &mut b]);
        let (which, _) = either.retrieve()?;
        assert_eq!(which, 1);
        meet(&deck, "it was read")?;
        // Among threads of a test every mailbox is told; among processes, that which heard from it.
        loop {
            let error = either.retrieve().unwrap_err();
            assert_eq!(error.lost(), Some(1.into()), "{error}");
            if either.last() == Some(1) {
                return Ok(());
            }
        }
    });
}

pub(crate) fn a_dropped_selection_loses_nothing(job: &Job<'_>) {
    pair(
        job,
        |deck, mut a| {
            let mut b = deck.mailbox()?;
            (0..20u64).try_for_each(|number| b.address().send(&number))?;
            let mut next = [0; 2];
            while next[0] < 20 || next[1] < 20 {
                let mut either = mizzen::select([&mut a, &mut b]);
                let found = match poll_once(either.retrieve_async()) {
                    Poll::Ready(found) => found?,
                    Poll::Pending => either.retrieve()?,
                };
                let (which, mut incoming) = found;
                assert_eq!(incoming.unpack_express::<u64>()?, next[which]);
                next[which] += 1;
                // One that is made, polled and dropped takes nothing when there is nothing.
                drop(mizzen::select([&mut a, &mut b]).retrieve_async());
            }
            assert!(a.try_retrieve()?.is_none() && b.try_retrieve()?.is_none());
            meet(deck, "done")
        },
        |deck, a| {
            (0..20u64).try_for_each(|number| a.send(&number))?;
            meet(deck, "done")
        },
    );
}

pub(crate) fn a_selection_of_none_is_refused(job: &Job<'_>) {
    job.run(1, |_| {
        let error = mizzen::select([]).retrieve().unwrap_err();
        assert!(error.to_string().contains("none was given"), "{error}");
        Ok(())
    });
}

pub(crate) fn a_selection_of_two_ranks_is_refused(job: &Job<'_>) {
    let shared = Mutex::new(None);
    job.run(2, |deck| {
        if deck.rank() == 1 {
            *shared.lock().unwrap() = Some(deck.mailbox()?);
            meet(&deck, "shared")?;
            return meet(&deck, "tried");
        }
        meet(&deck, "shared")?;
        let mut theirs = shared.lock().unwrap().take().expect("it was put there");
        let mut mine = deck.mailbox()?;
        let mut both = mizzen::select([&mut mine, &mut theirs]);
        let error = both.try_retrieve().unwrap_err();
        assert!(error.to_string().contains("different ranks"), "{error}");
        drop(theirs);
        meet(&deck, "tried")
    });
}

/// Waits until the descriptor is readable.
fn readable(descriptor: &Descriptor) {
    let mut descriptors = [PollFd::new(descriptor, PollFlags::IN)];
    assert_eq!(poll(&mut descriptors, None), Ok(1));
}

fn is_readable(descriptor: &Descriptor) -> bool {
    let mut descriptors = [PollFd::new(descriptor, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut descriptors, Some(&now)).expect("it is a descriptor") == 1
}

pub(crate) fn a_descriptor_is_readable_while_there_is_something(job: &Job<'_>) {
    job.run(1, |deck| {
        let inbox = deck.mailbox()?;
        let descriptor = inbox.descriptor()?;
        assert!(is_readable(&descriptor), "until the first look");
        while inbox.try_retrieve()?.is_some() {}
        inbox.address().send(&1u64)?;
        inbox.address().send(&2u64)?;
        readable(&descriptor);
        // One at a time: it stays readable while the other is there.
        assert!(inbox.try_retrieve()?.is_some());
        readable(&descriptor);
        assert!(inbox.try_retrieve()?.is_some());
        // Whoever looks in vain a few times ends up with one that is not: nobody sends any more.
        let mut looks = 0;
        while is_readable(&descriptor) {
            assert!(inbox.try_retrieve()?.is_none());
            looks += 1;
            assert!(looks < 1_000, "it is readable for ever");
        }
        inbox.address().sender()?.send(&3u64)?;
        readable(&descriptor);
        assert!(inbox.try_retrieve()?.is_some());
        Ok(())
    });
}

pub(crate) fn a_descriptor_becomes_readable_whatever_comes(job: &Job<'_>) {
    const LENGTHS: [usize; 4] = [4, 2_000, 90_000, 400_000];
    pair(
        job,
        |deck, inbox| {
            let turn = deck.fetch("turn")?;
            let descriptor = inbox.descriptor()?;
            for number in 0..60 {
                let incoming = loop {
                    readable(&descriptor);
                    if let Some(incoming) = inbox.try_retrieve()? {
                        break incoming;
                    }
                };
                let mut incoming = incoming;
                let data = incoming.unpack_vec::<u8>()?;
                assert_eq!(data, bytes(number, LENGTHS[number % LENGTHS.len()]));
                turn.send(&0u8)?;
            }
            Ok(())
        },
        |deck, address| {
            let turn = inbox_of(deck, "turn")?;
            let mut sender = address.sender()?;
            for number in 0..60 {
                let data = bytes(number, LENGTHS[number % LENGTHS.len()]);
                let mut message = Message::new();
                message.pack_cheaper(&data[..]);
                if number % 3 == 0 {
                    sender.post(&mut message)?;
                } else {
                    address.post(&mut message)?;
                }
                // So that it is armed now and then when the next one comes.
                turn.receive::<u8>()?;
            }
            Ok(())
        },
    );
}

pub(crate) fn a_descriptor_becomes_readable_when_a_rank_is_lost(job: &Job<'_>) {
    job.run_losing(1, 2, |deck| {
        if deck.rank() == 1 {
            meet(&deck, "linked")?;
            return job.die(deck);
        }
        let inbox = deck.mailbox()?;
        inbox.depend_on(1);
        let descriptor = inbox.descriptor()?;
        assert!(inbox.try_retrieve()?.is_none());
        meet(&deck, "linked")?;
        loop {
            readable(&descriptor);
            if let Err(error) = inbox.try_retrieve() {
                assert_eq!(error.lost(), Some(1.into()), "{error}");
                return Ok(());
            }
        }
    });
}

pub(crate) fn a_descriptor_and_the_other_forms_serve_one_mailbox(job: &Job<'_>) {
    pair(
        job,
        |_, mut inbox| {
            let descriptor = inbox.descriptor()?;
            for number in 0..120u64 {
                let mut incoming = match number % 3 {
                    0 => inbox.retrieve()?,
                    1 => super::messages::block_on(inbox.retrieve_async())?,
                    _ => loop {
                        readable(&descriptor);
                        if let Some(incoming) = inbox.try_retrieve()? {
                            break incoming;
                        }
                    },
                };
                assert_eq!(incoming.unpack_express::<u64>()?, number);
            }
            Ok(())
        },
        |_, address| (0..120u64).try_for_each(|number| address.send(&number)),
    );
}

pub(crate) fn several_descriptors_are_polled_at_once(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 1 {
            let (a, b) = (deck.fetch("a")?, deck.fetch("b")?);
            return (0..50u64).try_for_each(|number| match number % 3 {
                0 => a.send(&number),
                _ => b.send(&number),
            });
        }
        let (a, b) = two(&deck)?;
        let (of_a, of_b) = (a.descriptor()?, b.descriptor()?);
        let mut found = Vec::new();
        while found.len() < 50 {
            let mut both = [&of_a, &of_b].map(|one| PollFd::new(one, PollFlags::IN));
            assert!(poll(&mut both, None).is_ok_and(|ready| ready > 0));
            for (inbox, polled) in [&a, &b].into_iter().zip(both) {
                if polled.revents().contains(PollFlags::IN) {
                    // One for each time it is readable.
                    if let Some(mut incoming) = inbox.try_retrieve()? {
                        found.push(incoming.unpack_express::<u64>()?);
                    }
                }
            }
        }
        found.sort_unstable();
        assert!(found.into_iter().eq(0..50));
        Ok(())
    });
}

pub(crate) fn a_descriptor_is_awaited_by_epoll_and_under_smol(job: &Job<'_>) {
    pair(
        job,
        |_, inbox| {
            let descriptor = inbox.descriptor()?;
            let next = Cell::new(0u64);
            let drain = |until| -> Result<()> {
                while next.get() < until {
                    let Some(mut incoming) = inbox.try_retrieve()? else {
                        break;
                    };
                    assert_eq!(incoming.unpack_express::<u64>()?, next.get());
                    next.set(next.get() + 1);
                }
                Ok(())
            };
            let failed = |error: std::io::Error| Error::Program(error.to_string().into());
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| failed(e.into()))?;
            // Edges are enough for whoever looks until there is nothing.
            let (data, flags) = (
                epoll::EventData::new_u64(0),
                epoll::EventFlags::IN | epoll::EventFlags::ET,
            );
            epoll::add(&epoll, &descriptor, data, flags).map_err(|e| failed(e.into()))?;
            while next.get() < 50 {
                let mut events = [epoll::Event {
                    flags: epoll::EventFlags::empty(),
                    data,
                }];
                epoll::wait(&epoll, &mut events, None).map_err(|e| failed(e.into()))?;
                drain(u64::MAX)?;
            }
            smol::block_on(async {
                let ready = smol::Async::new(descriptor).map_err(failed)?;
                while next.get() < 100 {
                    ready.readable().await.map_err(failed)?;
                    drain(100)?;
                }
                Ok::<(), Error>(())
            })?;
            Ok(())
        },
        |_, address| (0..100u64).try_for_each(|number| address.send(&number)),
    );
}
