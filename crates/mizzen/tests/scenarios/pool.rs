//! The work pool, whatever the path between the ranks.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};

use super::{Job, inbox_of, meet};

use mizzen::{Deck, PoolError};

/// Keeps a core busy.
fn burn(time: Duration) {
    let started = Instant::now();
    while started.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn at_root<T>(deck: &Deck, items: impl IntoIterator<Item = T>) -> Vec<T> {
    if deck.rank() == 0 {
        items.into_iter().collect()
    } else {
        Vec::new()
    }
}

pub(crate) fn results_come_in_the_order_of_the_items(job: &Job<'_>) {
    job.run(3, |deck| {
        let results = deck.pool().map(at_root(&deck, 0..500u64), |x| {
            burn(Duration::from_micros(x % 7 * 20));
            x * x
        })?;
        let expected = at_root(&deck, (0..500).map(|x| x * x));
        assert_eq!(results, expected);
        Ok(())
    });
}

pub(crate) fn every_rank_may_have_items_and_gets_their_results(job: &Job<'_>) {
    job.run(3, |deck| {
        let mine = deck.rank().0 * 1000;
        let results = deck.pool().map(mine..mine + 50, |x| {
            burn(Duration::from_micros(100));
            x.to_string()
        })?;
        let expected = (mine..mine + 50).map(|x| x.to_string());
        assert!(results.into_iter().eq(expected));
        Ok(())
    });
}

pub(crate) fn others_help_the_one_that_has_all_the_work(job: &Job<'_>) {
    const HELPED: usize = 31;
    job.run(2, |deck| {
        let inbox = (deck.rank() == 0).then(|| inbox_of(&deck, "helped"));
        let inbox = Mutex::new(inbox.transpose()?);
        let (helped, waited) = (deck.fetch("helped")?, Once::new());
        let items = at_root(&deck, 0..200u32);
        let outcome = deck.pool().threads(1).map_reported(items, |x| {
            // However late the other comes, there is work left.
            match &*inbox.lock().unwrap() {
                Some(inbox) => waited.call_once(|| {
                    (0..HELPED).for_each(|_| drop(inbox.retrieve().unwrap()));
                }),
                None => helped.send(&x).unwrap(),
            }
            x
        })?;
        let report = &outcome.report;
        if deck.rank() == 0 {
            assert_eq!(report.items, 200);
            let elsewhere = report.by_rank.get(&1.into()).copied().unwrap_or(0);
            assert!(elsewhere >= HELPED, "{report}");
            assert!(report.to_string().contains("by rank 1"), "{report}");
        } else {
            assert!(report.helped >= HELPED, "{report}");
        }
        Ok(())
    });
}

pub(crate) fn maps_follow_each_other(job: &Job<'_>) {
    job.run(3, |deck| {
        for round in 0..20u32 {
            let results = deck.pool().map(at_root(&deck, 0..10), |x: u32| x + round)?;
            assert!(
                results
                    .iter()
                    .copied()
                    .eq(at_root(&deck, 0..10).iter().map(|x| x + round))
            );
        }
        Ok(())
    });
}

pub(crate) fn a_panic_fails_the_map_of_its_owner_with_words(job: &Job<'_>) {
    job.run(2, |deck| {
        let results = deck.pool().map(at_root(&deck, 0..100u32), |x| {
            std::thread::sleep(Duration::from_micros(200));
            assert!(x != 57, "not this one");
            x
        });
        let Err(error) = results else {
            assert!(deck.rank() == 1, "rank 0 has the item");
            return Ok(());
        };
        let Some(PoolError::Panicked { index, message, .. }) = error.service() else {
            return Err(error);
        };
        assert_eq!((*index, deck.rank().0), (57, 0));
        assert!(message.contains("not this one"));
        Ok(())
    });
}

pub(crate) fn a_map_is_ended_when_enough_is_known(job: &Job<'_>) {
    job.run(2, |deck| {
        let mut seen = HashSet::new();
        let report = deck.pool().for_each(
            at_root(&deck, 0..10_000u32),
            |x| {
                std::thread::sleep(Duration::from_micros(100));
                x
            },
            |index, x| {
                assert_eq!(index as u32, x);
                assert!(seen.insert(index), "delivered twice");
                if seen.len() == 20 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            },
        )?;
        if deck.rank() == 0 {
            assert!(report.cancelled && seen.len() == 20, "{report}");
        }
        Ok(())
    });
}

pub(crate) fn a_process_may_come_late_and_leave_early(job: &Job<'_>) {
    job.run(3, |deck| {
        // Processes of a slow network may be there at very different times.
        meet(&deck, "start")?;
        if deck.rank() == 1 {
            std::thread::sleep(Duration::from_millis(100));
        }
        let pool = deck.pool().threads(1);
        let pool = match deck.rank().0 {
            2 => pool.help_for(Duration::from_millis(80)),
            _ => pool,
        };
        let outcome = pool.map_reported(at_root(&deck, 0..400u32), |x| {
            std::thread::sleep(Duration::from_millis(1));
            x
        })?;
        if deck.rank() == 0 {
            assert_eq!(outcome.results, (0..400).collect::<Vec<_>>());
        } else {
            assert!(outcome.report.helped > 0, "{}", outcome.report);
        }
        Ok(())
    });
}

pub(crate) fn an_empty_map_returns(job: &Job<'_>) {
    job.run(3, |deck| {
        let nothing: Vec<u32> = deck.pool().map(Vec::new(), |x| x)?;
        assert!(nothing.is_empty());
        Ok(())
    });
}

pub(crate) fn the_function_may_borrow_what_surrounds_it(job: &Job<'_>) {
    job.run(2, |deck| {
        let table: Vec<u32> = (0..50).map(|x| x * 3).collect();
        let results = deck.pool().map(at_root(&deck, 0..50usize), |x| table[x])?;
        if deck.rank() == 0 {
            assert_eq!(results, table);
        }
        Ok(())
    });
}

pub(crate) fn in_a_job_of_one_the_pool_is_the_threads_of_the_process(job: &Job<'_>) {
    job.run(1, |deck| {
        let results = deck.pool().threads(4).map(0..100u32, |x| x + 1)?;
        assert!(results.into_iter().eq(1..101));
        Ok(())
    });
}
