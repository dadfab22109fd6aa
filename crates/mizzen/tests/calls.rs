//! Calls that go wrong: their callers hear of it, and hear who it was.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use mizzen::{CallError, Deck, Result};
use serde_bytes::ByteBuf;

/// More than one process of a host may leave unread.
const LONG: usize = 100 << 20;
/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a job that might wait for ever: then the test fails instead.
fn in_time<T: Send + 'static>(
    size: u32,
    body: impl Fn(Deck) -> Result<T> + Sync + Send + 'static,
) -> Result<Vec<T>> {
    let (give, take) = mpsc::channel();
    std::thread::spawn(move || give.send(mizzen::local(size, body)));
    take.recv_timeout(PATIENCE)
        .expect("the job ends, and does not wait for ever")
}

/// Waits until another rank has come so far, or the test has failed.
fn wait_for(flag: &AtomicBool) {
    let started = Instant::now();
    while !flag.load(Ordering::Acquire) && started.elapsed() < PATIENCE / 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_result_longer_than_may_be_unread_arrives() {
    mizzen::local(1, |deck| {
        let zeros = |len: u64| ByteBuf::from(vec![0; len as usize]);
        let _service = deck.serve("zeros", zeros)?;
        let mut zeros = deck.client_at::<u64, ByteBuf>(0, "zeros")?;
        for len in [LONG, 1000, LONG] {
            assert_eq!(zeros.call_timeout(&(len as u64), PATIENCE)?.len(), len);
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_result_of_a_pool_longer_than_may_be_unread_arrives() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    let lengths = in_time(2, |deck| {
        let me = deck.rank().0;
        let items = if me == 0 { 8 } else { 0u32 };
        let results = deck.pool().threads(1).map(0..items, move |_| {
            if me == 0 {
                wait_for(&BEGUN);
                return ByteBuf::new();
            }
            let is_first = !BEGUN.swap(true, Ordering::AcqRel);
            ByteBuf::from(vec![0; if is_first { LONG } else { 0 }])
        })?;
        Ok(results.iter().map(|result| result.len()).max())
    })
    .unwrap();
    assert_eq!(lengths, [Some(LONG), None]);
}

#[test]
fn a_portion_of_items_is_bounded_in_bytes() {
    static HELPED: AtomicUsize = AtomicUsize::new(0);
    static BEGUN: AtomicBool = AtomicBool::new(false);
    let lengths = in_time(2, |deck| {
        let me = deck.rank().0;
        let count = if me == 0 { 36 } else { 0 };
        let items = (0..count).map(|_| ByteBuf::from(vec![0; 8 << 20]));
        deck.pool()
            .threads(if me == 0 { 1 } else { 16 })
            .map(items, move |item| {
                if me == 0 {
                    wait_for(&BEGUN);
                } else {
                    BEGUN.store(true, Ordering::Release);
                    HELPED.fetch_add(1, Ordering::Relaxed);
                }
                item.len()
            })
    })
    .unwrap();
    assert_eq!(lengths[0], [8 << 20; 36]);
    assert!(HELPED.load(Ordering::Relaxed) > 0, "rank 1 took some over");
}

#[test]
fn the_end_of_a_service_names_the_rank_that_served() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    static ENDED: AtomicBool = AtomicBool::new(false);
    mizzen::local(2, |deck| {
        if deck.rank() == 1 {
            let service = deck.serve("slow", |(): ()| {
                BEGUN.store(true, Ordering::Release);
                wait_for(&ENDED);
            })?;
            wait_for(&BEGUN);
            drop(service);
            wait_for(&ENDED);
            return Ok(());
        }
        let mut slow = deck.client::<(), ()>("slow")?;
        let call = slow.start(&())?;
        let error = slow.wait(call).unwrap_err();
        ENDED.store(true, Ordering::Release);
        assert_eq!(error.to_string(), "rank 1 does not serve \"slow\" any more");
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_call_belongs_to_the_client_that_began_it() {
    mizzen::local(1, |deck| {
        let _echo = deck.serve("echo", |x: u32| x)?;
        let mut a = deck.client::<u32, u32>("echo")?;
        let mut b = deck.client::<u32, u32>("echo")?;
        let (of_a, of_b) = (a.start(&1)?, b.start(&2)?);
        let error = b.wait(of_a).unwrap_err();
        assert!(
            matches!(error.service(), Some(CallError::OtherClient { .. })),
            "{error}"
        );
        assert_eq!(b.wait(of_b)?, 2);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_client_of_a_rank_that_is_not_there_is_refused_at_once() {
    mizzen::local(1, |deck| {
        let error = deck.client_at::<u32, u32>(9, "echo").unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"echo\" cannot be called there: there is no rank 9, the job has 1 processes, numbered from 0"
        );
        Ok(())
    })
    .unwrap();
}
