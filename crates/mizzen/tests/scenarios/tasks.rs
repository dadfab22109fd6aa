//! Tasks and workers, whatever the path between the ranks.

use std::time::{Duration, Instant};

use super::meet;
use crate::run;

use mizzen::{Deck, Error, Result};

#[test]
fn more_tasks_than_workers_that_wait_for_each_other_all_end() {
    run(1, |deck| {
        let inboxes: Vec<_> = (0..32).map(|_| deck.mailbox()).collect::<Result<_, _>>()?;
        let addresses: Vec<_> = inboxes.iter().map(|inbox| inbox.address()).collect();
        let tasks: Vec<_> = inboxes
            .into_iter()
            .enumerate()
            .map(|(number, inbox)| {
                let next = addresses.get(number + 1).cloned();
                deck.run(move || {
                    let token = inbox.receive::<u64>()? + 1;
                    if let Some(next) = next {
                        next.send(&token)?;
                    }
                    Ok::<u64, Error>(token)
                })
            })
            .collect();
        addresses[0].send(&0u64)?;
        for (number, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.join()?, number as u64 + 1);
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn tasks_that_await_messages_cost_no_thread() {
    run(2, |deck| {
        const TASKS: u32 = 200;
        if deck.rank() == 1 {
            for number in 0..TASKS {
                deck.fetch(&format!("task {number}"))?.send(&number)?;
            }
            return meet(&deck, "end");
        }
        let tasks: Vec<_> = (0..TASKS)
            .map(|number| {
                let mut inbox = deck.mailbox()?;
                deck.bind(&format!("task {number}"), &inbox)?;
                Ok(deck.run_async(async move {
                    let mut incoming = inbox.retrieve_async().await?;
                    Ok::<u32, Error>(incoming.unpack_express()?)
                }))
            })
            .collect::<Result<_>>()?;
        for (number, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.join()?, number as u32);
        }
        meet(&deck, "end")
    })
    .unwrap();
}

#[test]
fn a_mailbox_is_awaited_retrieved_and_awaited_again() {
    run(1, |deck| {
        let mut inbox = deck.mailbox()?;
        let address = inbox.address();
        for round in 0..20u64 {
            let task = deck.run_async(async move {
                let value = inbox.retrieve_async().await?.unpack_express::<u64>()?;
                Ok::<_, Error>((value, inbox))
            });
            std::thread::sleep(Duration::from_micros(100 * round));
            address.send(&round)?;
            let (value, back) = task.join()?;
            assert_eq!(value, round);
            inbox = back;
            address.send(&round)?;
            assert_eq!(inbox.receive::<u64>()?, round);
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_panic_reaches_who_joins() {
    run(1, |deck| {
        let task = deck.run(|| -> u32 { panic!("in a task") });
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| task.join()));
        assert!(caught.is_err());
        assert_eq!(deck.run(|| 5).join(), 5, "the worker goes on");
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_blocked_task_is_woken_while_all_workers_compute() {
    run(1, |deck| {
        let inbox = deck.mailbox()?;
        let address = inbox.address();
        let waiting = deck.run(move || inbox.receive::<u64>());
        std::thread::sleep(Duration::from_millis(20));
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let busy: Vec<_> = (0..4)
            .map(|_| {
                let stop = std::sync::Arc::clone(&stop);
                deck.run(move || {
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(20));
        let sent = Instant::now();
        address.send(&1u64)?;
        assert_eq!(waiting.join()?, 1);
        assert!(sent.elapsed() < Duration::from_millis(500));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        busy.into_iter().for_each(|task| task.join());
        Ok(())
    })
    .unwrap();
}

#[test]
fn ranks_start_and_leave_with_workers_many_times() {
    for _ in 0..20 {
        run(2, |deck: Deck| {
            let tasks: Vec<_> = (0..10u32).map(|x| deck.run(move || x)).collect();
            let sum: u32 = tasks.into_iter().map(|task| task.join()).sum();
            assert_eq!(sum, 45);
            meet(&deck, "end")
        })
        .unwrap();
    }
}

#[test]
fn a_wait_inside_of_a_wait_or_one_that_panics_costs_no_worker() {
    run(1, |deck| {
        let inboxes: Vec<_> = (0..16).map(|_| deck.mailbox()).collect::<Result<_, _>>()?;
        let addresses: Vec<_> = inboxes.iter().map(|inbox| inbox.address()).collect();
        let nested: Vec<_> = inboxes
            .into_iter()
            .map(|inbox| {
                let inner = deck.clone();
                deck.run(move || inner.blocking(|| inbox.receive::<u64>()))
            })
            .collect();
        for _ in 0..16 {
            let inner = deck.clone();
            let panics = deck.run(move || inner.blocking(|| panic!("while it is away")));
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| panics.join()));
            assert!(caught.is_err());
        }
        assert_eq!(deck.run(|| 7).join(), 7, "there is a worker left");
        for address in &addresses {
            address.send(&3u64)?;
        }
        for task in nested {
            assert_eq!(task.join()?, 3);
        }
        Ok(())
    })
    .unwrap();
}
