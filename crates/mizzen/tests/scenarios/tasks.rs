//! Tasks and workers, whatever the path between the ranks.

use std::sync::mpsc::{channel, sync_channel};
use std::time::{Duration, Instant};

use super::{Job, meet};

use mizzen::{Deck, Error, Result, TaskError};

pub(crate) fn more_tasks_than_workers_that_wait_for_each_other_all_end(job: &Job<'_>) {
    job.run(1, |deck| {
        let inboxes: Vec<_> = (0..32).map(|_| deck.mailbox()).collect::<Result<_, _>>()?;
        let addresses: Vec<_> = inboxes.iter().map(|inbox| inbox.address()).collect();
        let tasks: Vec<_> = inboxes
            .into_iter()
            .enumerate()
            .map(|(number, inbox)| {
                let next = addresses.get(number + 1).cloned();
                deck.spawn(move || {
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
            assert_eq!(task.join()??, number as u64 + 1);
        }
        Ok(())
    });
}

pub(crate) fn tasks_that_await_messages_cost_no_thread(job: &Job<'_>) {
    job.run(2, |deck| {
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
                Ok(deck.spawn_async(async move {
                    let mut incoming = inbox.retrieve_async().await?;
                    incoming.unpack_express::<u32>()
                }))
            })
            .collect::<Result<_>>()?;
        for (number, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.join()??, number as u32);
        }
        meet(&deck, "end")
    });
}

pub(crate) fn a_mailbox_is_awaited_retrieved_and_awaited_again(job: &Job<'_>) {
    job.run(1, |deck| {
        let mut inbox = deck.mailbox()?;
        let address = inbox.address();
        for round in 0..20u64 {
            let task = deck.spawn_async(async move {
                let value = inbox.retrieve_async().await?.unpack_express::<u64>()?;
                Ok::<_, Error>((value, inbox))
            });
            // Sooner or later after the task has begun to wait, or before.
            std::thread::sleep(Duration::from_micros(100 * round));
            address.send(&round)?;
            let (value, back) = task.join()??;
            assert_eq!(value, round);
            inbox = back;
            address.send(&round)?;
            assert_eq!(inbox.receive::<u64>()?, round);
        }
        Ok(())
    });
}

pub(crate) fn a_panic_reaches_who_joins(job: &Job<'_>) {
    job.run(1, |deck| {
        let task = deck.spawn(|| -> u32 { panic!("in a task") });
        let Err(Error::Task(TaskError::Panicked(message))) = task.join() else {
            panic!("the task has a result");
        };
        assert_eq!(message, "in a task");
        assert_eq!(deck.spawn(|| 5).join()?, 5, "the worker goes on");
        Ok(())
    });
}

pub(crate) fn a_blocked_task_is_woken_while_all_workers_compute(job: &Job<'_>) {
    job.run(1, |deck| {
        let inbox = deck.mailbox()?;
        let address = inbox.address();
        let (begin, begun) = sync_channel(0);
        let waiting = deck.spawn(move || {
            begin.send(()).expect("somebody waits for it");
            inbox.receive::<u64>()
        });
        begun.recv().expect("it is run");
        let (compute, computing) = channel();
        let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let busy: Vec<_> = (0..4)
            .map(|_| {
                let stop = std::sync::Arc::clone(&stop);
                let compute = compute.clone();
                deck.spawn(move || {
                    compute.send(()).expect("somebody waits for it");
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                })
            })
            .collect();
        // There are as many workers as cores, unless the environment says otherwise.
        computing.recv().expect("one of them is run");
        let sent = Instant::now();
        address.send(&1u64)?;
        assert_eq!(waiting.join()??, 1);
        assert!(sent.elapsed() < Duration::from_millis(500));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        busy.into_iter().try_for_each(|task| task.join())
    });
}

pub(crate) fn ranks_start_and_leave_with_workers_many_times(job: &Job<'_>) {
    job.repeat(2, |deck: Deck| {
        let tasks: Vec<_> = (0..10u32).map(|x| deck.spawn(move || x)).collect();
        let sum: u32 = tasks
            .into_iter()
            .map(|task| task.join())
            .sum::<Result<_>>()?;
        assert_eq!(sum, 45);
        meet(&deck, "end")
    });
}

pub(crate) fn a_wait_inside_of_a_wait_or_one_that_panics_costs_no_worker(job: &Job<'_>) {
    job.run(1, |deck| {
        let inboxes: Vec<_> = (0..16).map(|_| deck.mailbox()).collect::<Result<_, _>>()?;
        let addresses: Vec<_> = inboxes.iter().map(|inbox| inbox.address()).collect();
        let nested: Vec<_> = inboxes
            .into_iter()
            .map(|inbox| deck.spawn(move || mizzen::block_in_place(|| inbox.receive::<u64>())))
            .collect();
        for _ in 0..16 {
            let panics = deck.spawn(move || mizzen::block_in_place(|| panic!("while it is away")));
            assert!(panics.join().is_err());
        }
        assert_eq!(deck.spawn(|| 7).join()?, 7, "there is a worker left");
        for address in &addresses {
            address.send(&3u64)?;
        }
        for task in nested {
            assert_eq!(task.join()??, 3);
        }
        Ok(())
    });
}
