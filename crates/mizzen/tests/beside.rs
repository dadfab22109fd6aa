//! Beside other runtimes: mailboxes and calls awaited in tokio's tasks, and everything used from rayon's threads.

use std::time::{Duration, Instant};

use mizzen::{Error, Result};
use rayon::prelude::*;
use rustix::time::{ClockId, clock_gettime};

fn runtime(workers: usize) -> tokio::runtime::Runtime {
    let mut builder = match workers {
        0 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    if workers > 0 {
        builder.worker_threads(workers);
    }
    builder.enable_time().build().unwrap()
}

#[test]
fn a_mailbox_is_awaited_in_a_task_of_tokio() -> Result<()> {
    for workers in [0, 2] {
        mizzen::local(2, |deck| {
            if deck.rank() == 1 {
                let inbox = deck.fetch("inbox")?;
                for number in 0..200u64 {
                    inbox.send(&number)?;
                    // Late now and then: meanwhile the task sleeps.
                    if number % 50 == 0 {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
                return Ok(());
            }
            let mut inbox = deck.mailbox()?;
            deck.bind("inbox", &inbox)?;
            runtime(workers).block_on(async move {
                let receiving = async move {
                    for number in 0..200u64 {
                        let mut message = inbox.retrieve_async().await?;
                        assert_eq!(message.unpack_express::<u64>()?, number);
                    }
                    Ok::<(), Error>(())
                };
                match workers {
                    0 => receiving.await,
                    _ => tokio::spawn(receiving).await.unwrap(),
                }
            })
        })?;
    }
    Ok(())
}

#[test]
fn a_waiting_task_of_tokio_uses_no_processor() -> Result<()> {
    mizzen::local(1, |deck| {
        let mut inbox = deck.mailbox()?;
        runtime(1).block_on(async move {
            let spent = || {
                let time = clock_gettime(ClockId::ProcessCPUTime);
                Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
            };
            let (before, started) = (spent(), Instant::now());
            let nothing = tokio::time::timeout(Duration::from_secs(1), inbox.retrieve_async());
            assert!(nothing.await.is_err(), "nothing was sent");
            let share = (spent() - before).as_secs_f64() / started.elapsed().as_secs_f64();
            assert!(
                share < 0.02,
                "waiting took {:.1} % of a core",
                share * 100.0
            );
            Ok(())
        })
    })?;
    Ok(())
}

#[test]
fn calls_are_awaited_in_tasks_of_tokio() -> Result<()> {
    mizzen::local(1, |deck| {
        let _service = deck.serve_async("double", |x: u64| async move { 2 * x })?;
        let clients: Vec<_> = (0..8)
            .map(|_| deck.client::<u64, u64>("double"))
            .collect::<Result<_>>()?;
        runtime(2).block_on(async move {
            let mut tasks = Vec::new();
            for (number, mut client) in clients.into_iter().enumerate() {
                tasks.push(tokio::spawn(async move {
                    for x in 0..50 {
                        assert_eq!(client.call_async(&x).await.unwrap(), 2 * x);
                    }
                    number
                }));
            }
            for (number, task) in tasks.into_iter().enumerate() {
                assert_eq!(task.await.unwrap(), number);
            }
            Ok(())
        })
    })?;
    Ok(())
}

#[test]
fn threads_of_rayon_send_retrieve_and_call() -> Result<()> {
    mizzen::local(1, |deck| {
        let _service = deck.serve("square", |x: u64| x * x)?;
        let sum: u64 = (0..64u64)
            .into_par_iter()
            .map(|x| {
                let inbox = deck.mailbox().unwrap();
                inbox.address().send(&x).unwrap();
                let x: u64 = inbox.receive().unwrap();
                deck.client::<u64, u64>("square").unwrap().call(&x).unwrap()
            })
            .sum();
        assert_eq!(sum, (0..64).map(|x| x * x).sum());
        Ok(())
    })?;
    Ok(())
}
