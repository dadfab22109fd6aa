//! Remote procedures, whatever the path between the ranks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use super::{Job, meet, pair};

use mizzen::{CallError, Deck, Message, Result};

/// Rank 0 serves, rank 1 calls; both end together.
fn serve_and_call<S>(
    job: &Job<'_>,
    serve: impl Fn(&Deck) -> Result<S> + Sync,
    call: impl Fn(&Deck) -> Result<()> + Sync,
) {
    job.run(2, |deck| {
        if deck.rank() == 0 {
            let _service = serve(&deck)?;
            return meet(&deck, "end");
        }
        call(&deck)?;
        meet(&deck, "end")
    });
}

pub(crate) fn arguments_and_results_of_any_length_arrive(job: &Job<'_>) {
    serve_and_call(
        job,
        |deck| {
            deck.serve("reverse", |mut bytes: Vec<u8>| {
                bytes.reverse();
                bytes
            })
        },
        |deck| {
            let mut reverse = deck.client::<[u8], Vec<u8>>("reverse")?;
            for len in [
                0,
                1,
                30,
                40,
                41,
                100,
                1007,
                1008,
                1009,
                5000,
                100_000,
                3 << 20,
            ] {
                let bytes: Vec<u8> = (0..len).map(|at| at as u8).collect();
                let mut reversed = bytes.clone();
                reversed.reverse();
                assert_eq!(reverse.call(&bytes)?, reversed, "{len} bytes");
            }
            Ok(())
        },
    );
}

pub(crate) fn errors_of_the_function_arrive_with_their_type(job: &Job<'_>) {
    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    enum Refusal {
        Odd(u32),
    }
    serve_and_call(
        job,
        |deck| {
            deck.serve("half", |x: u32| {
                if x % 2 == 0 {
                    Ok(x / 2)
                } else {
                    Err(Refusal::Odd(x))
                }
            })
        },
        |deck| {
            let mut half = deck.client::<u32, Result<u32, Refusal>>("half")?;
            assert_eq!(half.call(&8)?, Ok(4));
            assert_eq!(half.call(&7)?, Err(Refusal::Odd(7)));
            Ok(())
        },
    );
}

pub(crate) fn a_panic_costs_one_call_and_not_the_service(job: &Job<'_>) {
    serve_and_call(
        job,
        |deck| {
            deck.serve("fragile", |x: u32| {
                assert!(x != 13, "thirteen is too much");
                x
            })
        },
        |deck| {
            let mut fragile = deck.client::<u32, u32>("fragile")?;
            let error = fragile.call(&13).unwrap_err();
            assert!(
                matches!(error.service(), Some(CallError::Panicked { message, .. }) if message.contains("thirteen"))
            );
            assert!(error.to_string().contains("panicked at rank 0"));
            assert_eq!(fragile.call(&12)?, 12);
            Ok(())
        },
    );
}

pub(crate) fn a_long_word_of_a_panic_is_no_answer(job: &Job<'_>) {
    serve_and_call(
        job,
        |deck| {
            deck.serve("wordy", |long: u32| -> String {
                panic!("{}", "w".repeat(long as usize))
            })
        },
        |deck| {
            let mut wordy = deck.client::<u32, String>("wordy")?;
            for long in [10, 2000, 5000, 100_000] {
                let error = wordy.call(&long).unwrap_err();
                assert!(
                    matches!(error.service(), Some(CallError::Panicked { message, .. }) if message.len() == long as usize),
                    "{error}"
                );
            }
            Ok(())
        },
    );
}

pub(crate) fn wrong_types_are_refused_with_a_sentence(job: &Job<'_>) {
    serve_and_call(
        job,
        |deck| deck.serve("long", |text: String| text.len() as u64),
        |deck| {
            let mut wrong = deck.client::<[u8; 3], u64>("long")?;
            let error = wrong.call(&[200, 1, 1]).unwrap_err();
            assert!(
                matches!(error.service(), Some(CallError::Refused { .. })),
                "{error}"
            );
            let mut wrong = deck.client::<str, String>("long")?;
            let error = wrong.call("abc").unwrap_err();
            assert!(
                matches!(error.service(), Some(CallError::Answer { .. })),
                "{error}"
            );
            let error = deck.raw_client("long")?.call(&mut Message::new());
            assert!(error.is_err());
            Ok(())
        },
    );
}

pub(crate) fn many_calls_under_way_are_answered_each_with_its_own(job: &Job<'_>) {
    serve_and_call(
        job,
        |deck| deck.serve("square", |x: u64| x * x),
        |deck| {
            let mut square = deck.client::<u64, u64>("square")?;
            // More than may be under way at once.
            let calls: Vec<_> = (0..1000)
                .map(|x| square.start(&x))
                .collect::<Result<_, _>>()?;
            for (x, call) in calls.into_iter().enumerate().rev() {
                assert_eq!(square.wait(call)?, (x * x) as u64);
            }
            Ok(())
        },
    );
}

pub(crate) fn a_call_has_a_deadline_and_the_service_learns_that_nobody_waits(job: &Job<'_>) {
    serve_and_call(
        job,
        |deck| {
            let told = Arc::new(AtomicBool::new(false));
            let seen = Arc::clone(&told);
            let slow = deck.serve("slow", move |long: bool| {
                let started = Instant::now();
                while long && !mizzen::is_cancelled() && started.elapsed().as_secs() < 10 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                told.fetch_or(mizzen::is_cancelled(), Ordering::AcqRel);
            })?;
            let told = deck.serve("told", move |()| seen.load(Ordering::Acquire))?;
            Ok((slow, told))
        },
        |deck| {
            let mut slow = deck.client::<bool, ()>("slow")?;
            slow.call(&false)?;
            let started = Instant::now();
            let error = slow
                .call_timeout(&true, Duration::from_millis(50))
                .unwrap_err();
            assert!(
                matches!(error.service(), Some(CallError::TimedOut { .. })),
                "{error}"
            );
            assert!(started.elapsed() < Duration::from_secs(3));
            let mut told = deck.client::<(), bool>("told")?;
            let patience = Instant::now();
            while !told.call(&())? {
                assert!(
                    patience.elapsed() < Duration::from_secs(5),
                    "it was not told"
                );
            }
            slow.call(&false)?;
            Ok(())
        },
    );
}

pub(crate) fn an_async_function_that_nobody_waits_for_ends_where_it_awaits(job: &Job<'_>) {
    struct Ended(Arc<AtomicU32>);
    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::AcqRel);
        }
    }
    serve_and_call(
        job,
        |deck| {
            let ended = Arc::new(AtomicU32::new(0));
            let seen = Arc::clone(&ended);
            let never = deck.serve_async("never", move |wait: bool| {
                let guard = Ended(Arc::clone(&ended));
                async move {
                    if wait {
                        std::future::pending::<()>().await;
                    }
                    drop(guard);
                    wait
                }
            })?;
            let ended = deck.serve("ended", move |()| seen.load(Ordering::Acquire))?;
            Ok((never, ended))
        },
        |deck| {
            let mut never = deck.client::<bool, bool>("never")?;
            assert!(!never.call(&false)?);
            let call = never.start(&true)?;
            never.cancel(call);
            let mut ended = deck.client::<(), u32>("ended")?;
            let patience = Instant::now();
            while ended.call(&())? < 2 {
                assert!(patience.elapsed() < Duration::from_secs(5), "it goes on");
            }
            Ok(())
        },
    );
}

pub(crate) fn one_way_calls_are_carried_out_in_their_order(job: &Job<'_>) {
    serve_and_call(
        job,
        |deck| {
            let seen = std::sync::Mutex::new(Vec::new());
            deck.serve("note", move |x: u32| {
                let mut seen = seen.lock().unwrap();
                seen.push(x);
                seen.len() as u32
            })
        },
        |deck| {
            let mut note = deck.client::<u32, u32>("note")?;
            for x in 0..500 {
                note.notify(&x)?;
            }
            let patience = Instant::now();
            // Several workers may be at it: the answer may overtake the last of them.
            while note.call(&1000)? < 501 {
                assert!(patience.elapsed() < Duration::from_secs(5));
            }
            Ok(())
        },
    );
}

pub(crate) fn a_body_of_unknown_size_goes_into_memory_that_the_function_makes(job: &Job<'_>) {
    serve_and_call(
        job,
        |deck| {
            deck.serve_raw("sum", |request| {
                let (mut incoming, reply) = request.open();
                let count: u64 = incoming.unpack_express().unwrap();
                let mut values = vec![0u64; count as usize];
                incoming.unpack_cheaper(&mut values[..]).unwrap();
                incoming.finish().unwrap();
                let sum: u64 = values.iter().sum();
                values.reverse();
                reply.send(Message::new().pack_safer(&sum).pack_cheaper(&values[..]));
            })
        },
        |deck| {
            let mut sum = deck.raw_client("sum")?;
            for count in [0u64, 1, 100, 10_000, 1 << 19] {
                let values: Vec<u64> = (0..count).collect();
                let mut request = Message::new();
                request.pack_safer(&count).pack_cheaper(&values[..]);
                let mut answer = sum.call(&mut request)?;
                assert_eq!(answer.unpack_express::<u64>()?, values.iter().sum::<u64>());
                let mut back = vec![0u64; count as usize];
                answer.unpack_cheaper(&mut back[..])?;
                answer.finish()?;
                assert!(back.iter().rev().eq(values.iter()));
            }
            Ok(())
        },
    );
}

/// Around each limit of how a message goes: in a slot, in two, through the lane with the header before it, and otherwise.
pub(crate) fn raw_messages_of_any_length_and_number_of_pieces_come_back(job: &Job<'_>) {
    serve_and_call(
        job,
        |deck| {
            deck.serve_raw("echo", |request| {
                let (mut incoming, reply) = request.open();
                let mut pieces = Vec::new();
                while incoming.pieces_left() > 0 {
                    pieces.push(incoming.unpack_vec::<u8>().unwrap());
                }
                let mut answer = Message::new();
                pieces.iter().for_each(|piece| {
                    answer.pack_cheaper(&piece[..]);
                });
                reply.send(&mut answer);
            })
        },
        |deck| {
            let mut echo = deck.raw_client("echo")?;
            let lengths = (0..=120).chain(1000..1030).chain((5040..=5130).step_by(3));
            for len in lengths.chain([20_000, 100_000]) {
                let bytes: Vec<u8> = (0..len).map(|at| (at * 7 + len) as u8).collect();
                for pieces in [0, 1, 2, 5] {
                    let mut message = Message::new();
                    let (first, rest) = bytes.split_at(len / 3);
                    (0..pieces).for_each(|piece| {
                        message.pack_cheaper(if piece % 2 == 0 { first } else { rest });
                    });
                    let mut answer = echo.call(&mut message)?;
                    assert_eq!(answer.pieces_left(), pieces, "{len} bytes");
                    for piece in 0..pieces {
                        let sent = if piece % 2 == 0 { first } else { rest };
                        assert_eq!(answer.unpack_vec::<u8>()?, sent, "{len} bytes");
                    }
                }
            }
            Ok(())
        },
    );
}

pub(crate) fn short_answers_that_wait_for_their_turn_are_what_was_sent(job: &Job<'_>) {
    serve_and_call(
        job,
        |deck| {
            deck.serve_raw("fill", |request| {
                let (mut incoming, reply) = request.open();
                let (value, len): (u64, u64) = (
                    incoming.unpack_express().unwrap(),
                    incoming.unpack_express().unwrap(),
                );
                reply.send(Message::new().pack_cheaper(&vec![value as u8; len as usize][..]));
            })
        },
        |deck| {
            let mut fill = deck.raw_client("fill")?;
            let len = |value: u64| value * 31 % 5_500;
            let calls: Vec<_> = (0..200u64)
                .map(|value| fill.start(Message::new().pack_safer(&value).pack_safer(&len(value))))
                .collect::<Result<_, _>>()?;
            for (value, call) in calls.into_iter().enumerate().rev() {
                let filled: Vec<u8> = fill.wait(call)?.unpack_vec()?;
                assert_eq!(filled, vec![value as u8; len(value as u64) as usize]);
            }
            Ok(())
        },
    );
}

pub(crate) fn answers_that_wait_for_their_turn_leave_room_for_others(job: &Job<'_>) {
    const LEN: usize = 20_000;
    serve_and_call(
        job,
        |deck| {
            deck.serve_raw("fill", |request| {
                let (mut incoming, reply) = request.open();
                let value: u64 = incoming.unpack_express().unwrap();
                reply.send(Message::new().pack_cheaper(&vec![value as u8; LEN][..]));
            })
        },
        |deck| {
            let mut fill = deck.raw_client("fill")?;
            // Together they are far longer than a lane, and the first is wanted last.
            let calls: Vec<_> = (0..100u64)
                .map(|value| fill.start(Message::new().pack_safer(&value)))
                .collect::<Result<_, _>>()?;
            for (value, call) in calls.into_iter().enumerate().rev() {
                let filled: Vec<u8> = fill.wait(call)?.unpack_vec()?;
                assert_eq!(filled, [value as u8; LEN]);
            }
            Ok(())
        },
    );
}

pub(crate) fn a_raw_request_that_is_dropped_is_answered_with_an_error(job: &Job<'_>) {
    serve_and_call(
        job,
        |deck| deck.serve_raw("silent", drop),
        |deck| {
            let mut silent = deck.raw_client("silent")?;
            let error = silent.call(&mut Message::new()).unwrap_err();
            assert!(
                matches!(error.service(), Some(CallError::Unanswered { .. })),
                "{error}"
            );
            Ok(())
        },
    );
}

pub(crate) fn a_service_that_ends_fails_its_calls_and_is_found_again(job: &Job<'_>) {
    job.run(2, |deck| {
        if deck.rank() == 0 {
            let (begin, begun) = sync_channel(1);
            let service = deck.serve_async("here", move |()| {
                begin.send(()).expect("somebody waits for it");
                std::future::pending::<()>()
            })?;
            meet(&deck, "first")?;
            begun.recv().expect("it is called");
            drop(service);
            meet(&deck, "again")?;
            let _service = deck.serve("here", |()| ())?;
            meet(&deck, "end")?;
        } else {
            meet(&deck, "first")?;
            let mut here = deck.client_at::<(), ()>(0, "here")?;
            let error = here.call(&()).unwrap_err();
            assert!(
                matches!(error.service(), Some(CallError::Stopped { .. })),
                "{error}"
            );
            meet(&deck, "again")?;
            here.call(&())?;
            meet(&deck, "end")?;
        }
        Ok(())
    });
}

pub(crate) fn the_death_of_who_serves_fails_the_call(job: &Job<'_>) {
    job.run_losing(0, 2, |deck| {
        if deck.rank() == 0 {
            let (begin, begun) = sync_channel(1);
            let service = deck.serve_async("last", move |()| {
                begin.send(()).expect("somebody waits for it");
                std::future::pending::<()>()
            })?;
            begun.recv().expect("it is called");
            return job.die(service);
        }
        let mut last = deck.client::<(), ()>("last")?;
        let call = last.start(&())?;
        let error = last.wait(call).unwrap_err();
        assert_eq!(error.lost(), Some(0.into()), "{error}");
        Ok(())
    });
}

pub(crate) fn services_are_called_by_rank_by_address_and_anywhere(job: &Job<'_>) {
    job.run(3, |deck| {
        let rank = deck.rank().0;
        let service = (rank > 0)
            .then(|| deck.serve("who", move |()| rank))
            .transpose()?;
        if let Some(service) = &service {
            let mut own = deck.client::<(), u32>("who")?;
            assert_eq!(own.call(&())?, rank, "one's own is the nearest");
            let mut by_address = deck.client_of::<(), u32>(&service.address())?;
            assert_eq!(by_address.call(&())?, rank);
        } else {
            for rank in [1, 2] {
                let mut at = deck.client_at::<(), u32>(rank, "who")?;
                assert_eq!(at.call(&())?, rank);
                assert_eq!(at.rank(), Some(rank.into()));
            }
            let mut any = deck.client::<(), u32>("who")?;
            assert!((1..3).contains(&any.call(&())?));
        }
        meet(&deck, "end")?;
        Ok(())
    });
}

pub(crate) fn services_that_call_each_other_do_not_wait_for_ever(job: &Job<'_>) {
    job.run(2, |deck| {
        let rank = deck.rank().0;
        let inner = deck.clone();
        let _down = deck.serve("down", move |depth: u32| -> u32 {
            if depth == 0 {
                return 0;
            }
            let mut other = inner.client_at::<u32, u32>(1 - rank, "down").unwrap();
            1 + other.call(&(depth - 1)).unwrap()
        })?;
        meet(&deck, "ready")?;
        // Deeper than there are workers: each waiting call gives its place to the next.
        let mut down = deck.client_at::<u32, u32>(1 - rank, "down")?;
        assert_eq!(down.call(&20)?, 20);
        meet(&deck, "end")?;
        Ok(())
    });
}

pub(crate) fn calls_are_awaited_in_tasks(job: &Job<'_>) {
    serve_and_call(
        job,
        |deck| deck.serve_async("next", |x: u32| async move { x + 1 }),
        |deck| {
            let tasks: Vec<_> = (0..8u32)
                .map(|task| {
                    let mut next = deck.client::<u32, u32>("next")?;
                    Ok(deck.spawn_async(async move {
                        let mut x = task;
                        for _ in 0..100 {
                            x = next.call_async(&x).await?;
                        }
                        Ok::<u32, mizzen::Error>(x)
                    }))
                })
                .collect::<Result<_>>()?;
            for (number, task) in tasks.into_iter().enumerate() {
                assert_eq!(task.join()??, number as u32 + 100);
            }
            Ok(())
        },
    );
}

pub(crate) fn a_name_is_served_once_by_a_process(job: &Job<'_>) {
    job.run(1, |deck| {
        let _service = deck.serve("a", |()| ())?;
        let again = deck.serve("a", |()| ()).map(drop).unwrap_err();
        assert!(again.to_string().contains("is taken"), "{again}");
        Ok(())
    });
}

pub(crate) fn one_way_calls_that_await_do_not_end_each_other(job: &Job<'_>) {
    serve_and_call(
        job,
        |deck| {
            let ended = Arc::new(AtomicU32::new(0));
            let seen = Arc::clone(&ended);
            let gate = Arc::new(AtomicBool::new(false));
            let opened = Arc::clone(&gate);
            let waits = deck.serve_async("waits", move |()| {
                let (ended, gate) = (Arc::clone(&ended), Arc::clone(&gate));
                async move {
                    std::future::poll_fn(|context| {
                        if gate.load(Ordering::Acquire) {
                            return std::task::Poll::Ready(());
                        }
                        context.waker().wake_by_ref();
                        std::task::Poll::Pending
                    })
                    .await;
                    ended.fetch_add(1, Ordering::AcqRel);
                }
            })?;
            let open = deck.serve("open", move |()| opened.store(true, Ordering::Release))?;
            let ended = deck.serve("ended", move |()| seen.load(Ordering::Acquire))?;
            Ok((waits, open, ended))
        },
        |deck| {
            let mut waits = deck.client::<(), ()>("waits")?;
            for _ in 0..5 {
                waits.notify(&())?;
            }
            let call = waits.start(&())?;
            deck.client::<(), ()>("open")?.call(&())?;
            waits.wait(call)?;
            let mut ended = deck.client::<(), u32>("ended")?;
            let patience = Instant::now();
            while ended.call(&())? < 6 {
                assert!(
                    patience.elapsed() < Duration::from_secs(5),
                    "some were ended"
                );
            }
            Ok(())
        },
    );
}

pub(crate) fn a_call_to_a_rank_that_has_left_says_so_at_once(job: &Job<'_>) {
    pair(
        job,
        |deck, inbox| {
            inbox.depend_on(1);
            assert_eq!(inbox.receive::<u8>()?, 7);
            let left = inbox.retrieve().unwrap_err();
            assert_eq!(left.lost(), Some(1.into()), "{left}");
            let begun = Instant::now();
            let outcome = deck.client_at::<(), ()>(1, "nothing")?.call(&());
            let error = outcome.unwrap_err();
            let gone = matches!(error.service(), Some(CallError::PeerGone { .. }));
            assert!(gone, "{error}");
            let in_vain = Deck::FETCH_TIMEOUT / 2;
            assert!(begun.elapsed() < in_vain, "as long as for a name");
            Ok(())
        },
        |_, address| address.send(&7u8),
    );
}
