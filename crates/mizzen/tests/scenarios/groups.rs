//! Groups, whatever the path between the processes of their members.

use std::time::{Duration, Instant};

use mizzen::group::{
    Costs, Group, GroupError, Max, Min, Number, Op, Parts, Product, Sum, Xor, commutative, ordered,
};
use mizzen::{Deck, Plain, Result};
use mizzen_proto::group::plan::{Shape, Way};

use super::Job;

/// Element `at` of member `of`.
trait Sample: Plain + Copy + PartialEq + core::fmt::Debug {
    fn sample(of: u32, at: usize) -> Self;
}

macro_rules! samples {
    ($($number:ty)*) => {$(
        impl Sample for $number {
            fn sample(of: u32, at: usize) -> Self {
                // Small enough for sums and products to be exact.
                ((of as usize * 7 + at * 3) % 5 + 1) as $number
            }
        }
    )*};
}

samples!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 usize isize f32 f64);

fn samples<T: Sample>(of: u32, len: usize) -> Vec<T> {
    (0..len).map(|at| T::sample(of, at)).collect()
}

/// What some members have, combined in their order.
fn reference<T: Sample, O: Op<T>>(
    members: impl IntoIterator<Item = u32>,
    len: usize,
    op: O,
) -> Vec<T> {
    let mut all = members.into_iter().map(|member| samples(member, len));
    let mut data: Vec<T> = all.next().unwrap_or_default();
    all.for_each(|next| op.combine(&mut data, &next));
    data
}

/// Operations that combine.
fn combining<T: Sample, O: Op<T>>(group: &mut Group, len: usize, op: O) -> Result<()> {
    let (me, size) = (group.member(), group.size());
    let mine = samples::<T>(me.0, len);
    let all = reference(0..size, len, op);
    let mut data = mine.clone();
    group.all_reduce(&mut data, op)?;
    assert_eq!(data, all, "all_reduce of {size}");
    let mut into = vec![T::new_zeroed(); len];
    group.all_reduce_into(&mine, &mut into, op)?;
    assert_eq!(into, all, "all_reduce_into of {size}");
    let root = len as u32 % size;
    let mut data = mine.clone();
    group.reduce(root, &mut data, op)?;
    let expected = if me == root { &all } else { &mine };
    assert_eq!(&data, expected, "reduce of {size} at {root}");
    let mut data = mine.clone();
    group.scan(&mut data, op)?;
    assert_eq!(data, reference(0..=me.0, len, op), "scan of {size}");
    let mut data = mine.clone();
    group.exclusive_scan(&mut data, op)?;
    let before = if me == 0 {
        mine
    } else {
        reference(0..me.0, len, op)
    };
    assert_eq!(data, before, "exclusive_scan of {size}");
    let from = samples::<T>(me.0, len * size as usize);
    let mut part = vec![T::new_zeroed(); len];
    group.reduce_scatter_into(&from, &mut part, op)?;
    let whole = reference(0..size, len * size as usize, op);
    assert_eq!(
        part,
        whole[me.index() * len..][..len],
        "reduce_scatter of {size}"
    );
    Ok(())
}

/// Operations that move data about.
fn moving<T: Sample>(group: &mut Group, len: usize) -> Result<()> {
    let (me, size) = (group.member(), group.size());
    let members = || 0..size;
    let root = (len as u32 + 1) % size;
    let mut data = samples::<T>(me.0, len);
    group.broadcast(root, &mut data)?;
    assert_eq!(
        data,
        samples::<T>(root, len),
        "broadcast of {size} from {root}"
    );
    // Each has something else: nothing, or as much as its number says.
    let length = |member: u32| {
        if member % 3 == 2 {
            0
        } else {
            len + member as usize
        }
    };
    let own = samples::<T>(me.0, length(me.0));
    let parts: Parts<T> = members()
        .map(|member| samples(member, length(member)))
        .collect();
    assert_eq!(group.all_gather(&own)?, parts, "all_gather of {size}");
    let gathered = group.gather(root, &own)?;
    assert_eq!(
        gathered,
        (me == root).then(|| parts.clone()),
        "gather of {size} at {root}"
    );
    let given = (me == root).then_some(&parts);
    assert_eq!(
        group.scatter(root, given)?,
        own,
        "scatter of {size} from {root}"
    );
    // All have as much.
    let mine = samples::<T>(me.0, len);
    let whole: Vec<T> = members()
        .flat_map(|member| samples::<T>(member, len))
        .collect();
    let mut all = vec![T::new_zeroed(); whole.len()];
    group.all_gather_into(&mine, &mut all)?;
    assert_eq!(all, whole, "all_gather_into of {size}");
    let mut all = vec![T::new_zeroed(); whole.len()];
    group.gather_into(root, &mine, (me == root).then_some(&mut all[..]))?;
    assert!(
        me != root || all == whole,
        "gather_into of {size} at {root}"
    );
    let mut part = vec![T::new_zeroed(); len];
    group.scatter_into(root, (me == root).then_some(&whole[..]), &mut part)?;
    assert_eq!(part, mine, "scatter_into of {size} from {root}");
    // From each to each.
    let between = |from: u32, to: u32| {
        samples::<T>(from * 31 + to, (from as usize + 2 * to as usize) % 4 * len)
    };
    let out: Parts<T> = members().map(|to| between(me.0, to)).collect();
    let came: Parts<T> = members().map(|from| between(from, me.0)).collect();
    assert_eq!(group.all_to_all(&out)?, came, "all_to_all of {size}");
    let even = |from: u32, to: u32| samples::<T>(from * 17 + to, len);
    let out: Vec<T> = members().flat_map(|to| even(me.0, to)).collect();
    let expected: Vec<T> = members().flat_map(|from| even(from, me.0)).collect();
    let mut came = vec![T::new_zeroed(); out.len()];
    group.all_to_all_into(&out, &mut came)?;
    assert_eq!(came, expected, "all_to_all_into of {size}");
    Ok(())
}

fn every_operation<T: Sample + Number>(group: &mut Group, len: usize) -> Result<()> {
    moving::<T>(group, len)?;
    combining::<T, _>(group, len, Sum)?;
    combining::<T, _>(group, len, Min)?;
    combining::<T, _>(group, len, Max)?;
    combining::<T, _>(
        group,
        len,
        commutative(|a: &mut T, b: &T| *a = a.greatest(*b)),
    )?;
    // What comes first stays: it matters which that is.
    combining::<T, _>(group, len, ordered(|_: &mut T, _: &T| ()))?;
    combining::<T, _>(group, len, ordered(|a: &mut T, b: &T| *a = *b))
}

/// Runs something in threads, each with a seat.
fn in_threads(
    deck: &Deck,
    threads: usize,
    body: impl Fn(&mut Group) -> Result<()> + Sync,
) -> Result<()> {
    let seats = deck.group()?.seats(threads)?;
    std::thread::scope(|scope| {
        let run = |mut seat: Group| {
            let body = &body;
            scope.spawn(move || body(&mut seat))
        };
        let threads: Vec<_> = seats.into_iter().map(run).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap())
    })
}

pub(crate) fn every_operation_of_every_type_comes_to_the_reference(job: &Job<'_>) {
    job.run(3, |deck| {
        let mut group = deck.group()?;
        for len in [0, 1, 13] {
            every_operation::<u8>(&mut group, len)?;
            every_operation::<i16>(&mut group, len)?;
            every_operation::<u32>(&mut group, len)?;
            every_operation::<i64>(&mut group, len)?;
            every_operation::<u128>(&mut group, len)?;
            every_operation::<usize>(&mut group, len)?;
            every_operation::<f32>(&mut group, len)?;
            every_operation::<f64>(&mut group, len)?;
        }
        combining::<u16, _>(&mut group, 5, Xor)?;
        combining::<i8, _>(&mut group, 5, Product)?;
        deck.finish()
    });
}

pub(crate) fn operations_on_much_data_come_to_the_reference(job: &Job<'_>) {
    job.run(3, |deck| {
        let mut group = deck.group()?;
        for len in [5_000, 70_001, 400_003] {
            moving::<u32>(&mut group, len)?;
            combining::<f64, _>(&mut group, len / 2, Sum)?;
            combining::<u64, _>(&mut group, len / 2, ordered(|a: &mut u64, b: &u64| *a = *b))?;
        }
        deck.finish()
    });
}

pub(crate) fn one_to_33_members_come_to_the_reference(job: &Job<'_>) {
    job.run(3, |deck| {
        for size in 1..=33 {
            // As even as can be: with few members, some processes have none.
            let threads = (size + deck.rank().index()) / 3;
            in_threads(&deck, threads, |seat| {
                assert_eq!(seat.size() as usize, size);
                moving::<u32>(seat, 3)?;
                combining::<f64, _>(seat, 7, Sum)?;
                combining::<u64, _>(seat, 3, ordered(|a: &mut u64, b: &u64| *a = *b))?;
                combining::<u32, _>(seat, 700, Sum)
            })?;
        }
        deck.finish()
    });
}

pub(crate) fn every_way_comes_to_the_reference_and_costs_are_agreed_on(job: &Job<'_>) {
    job.run(5, |deck| {
        let mut group = deck.group()?;
        let measured = group.tune(None)?;
        let links = [measured.host, measured.cluster, measured.far];
        let links = links.map(|link| [link.latency, link.kilobyte]);
        let all = group.all_gather(&[links])?;
        assert!(all.all().iter().all(|of| *of == links), "the same at all");
        let given = Costs {
            combining: 123,
            ..measured
        };
        // What the first gives counts, whatever others give.
        let costs = (group.member() != 1).then_some(given);
        assert_eq!(group.tune(costs)?, given);
        let mut some = group.split(Some(deck.rank().0 / 3), 0)?.expect("a colour");
        assert_eq!(some.tune(None)?, given, "a split inherits them");
        for by_levels in [false, true] {
            for shape in [
                Shape::Exchange,
                Shape::Circulant,
                Shape::Ring,
                Shape::Tree,
                Shape::Flat,
            ] {
                group.force(Some(Way { shape, by_levels }));
                for len in [3, 40_001] {
                    moving::<u32>(&mut group, len)?;
                    combining::<u64, _>(&mut group, len, Sum)?;
                }
            }
        }
        deck.finish()
    });
}

pub(crate) fn nobody_passes_a_barrier_before_all_have_come(job: &Job<'_>) {
    job.run(4, |deck| {
        deck.barrier()?;
        let mut group = deck.group()?;
        for round in 0..20 {
            let late = round % deck.size();
            let begun = Instant::now();
            if deck.rank() == late {
                std::thread::sleep(Duration::from_millis(5));
            }
            if round % 2 == 0 {
                deck.barrier()?;
            } else {
                group.barrier()?;
            }
            assert!(deck.rank() != late || begun.elapsed() >= Duration::from_millis(5));
            // All have begun this round: nobody is further than one before it.
            let least = group.all_reduce_value(round, Min)?;
            assert_eq!(least, round);
        }
        deck.finish()
    });
}

pub(crate) fn groups_do_not_mix_their_messages(job: &Job<'_>) {
    job.run(4, |deck| {
        let mut all = deck.group()?;
        let me = deck.rank().0;
        let mut rows = all.split(Some(me / 2), me)?.expect("a colour");
        let mut columns = all.split(Some(me % 2), 9 - me)?.expect("a colour");
        assert_eq!(columns.member(), 1 - me / 2, "by key, from the last");
        assert_eq!(columns.rank_of(0).unwrap(), 2 + me % 2);
        let some = all.split((me != 1).then_some(7), 0)?;
        assert_eq!(some.is_none(), me == 1);
        for round in 0..50 {
            let (row, column) = (
                rows.all_reduce_value(me + round, Sum)?,
                columns.all_reduce_value(me, Sum)?,
            );
            assert_eq!(row, (me / 2) * 4 + 1 + 2 * round);
            assert_eq!(column, (me % 2) * 2 + 2);
            // One row is ahead of the other.
            if me < 2 {
                rows.barrier()?;
            }
        }
        let words: Vec<String> = rows.all_gather_values(&format!("rank {me}"))?;
        assert_eq!(words.len(), 2);
        let value = rows.broadcast_value(1, (rows.member() == 1).then(|| vec![me; 3]))?;
        assert_eq!(value, [me / 2 * 2 + 1; 3]);
        let mut near = all.by_host()?;
        near.barrier()?;
        let mut cluster = all.by_cluster()?;
        assert!(cluster.size() >= near.size());
        cluster.barrier()?;
        assert!(all.by_network("of another job")?.is_none());
        all.on_channel("default")?.expect("everybody").barrier()?;
        assert!(matches!(
            deck.group().unwrap_err().service(),
            Some(GroupError::Taken)
        ));
        drop(all);
        deck.group()?.barrier()?;
        deck.finish()
    });
}

pub(crate) fn members_that_do_different_things_are_told_what(job: &Job<'_>) {
    job.run(3, |deck| {
        let mut group = deck.group()?;
        group.barrier()?;
        let outcome = if deck.rank() == 1 {
            group.broadcast(0, &mut [0u32; 3])
        } else {
            group.all_reduce(&mut [0.5f64; 2], Sum)
        };
        let error = outcome.unwrap_err();
        let Some(GroupError::Differs { .. }) = error.service() else {
            panic!("{error}");
        };
        let text = error.to_string();
        assert!(
            text.contains("member 1 does broadcast of 3 u32, root 0 at ")
                && text.contains("groups.rs:"),
            "{text}"
        );
        assert!(text.contains("all_reduce of 2 f64 by Sum at "), "{text}");
        assert!(
            group
                .barrier()
                .unwrap_err()
                .service::<GroupError>()
                .is_some(),
            "it is over"
        );
        deck.finish()
    });
}

/// Each waits for the other, and nobody has sent anything.
pub(crate) fn members_that_wait_for_each_other_are_told_why(job: &Job<'_>) {
    job.run(2, |deck| {
        let mut group = deck.group()?;
        let other = 1 - deck.rank().0;
        let text = group.broadcast(other, &mut [0u8]).unwrap_err().to_string();
        for root in [0, 1] {
            let does = format!("member {} does broadcast of 1 u8, root {root}", 1 - root);
            assert!(text.contains(&does), "{text}");
        }
        deck.finish()
    });
}

pub(crate) fn members_that_give_what_does_not_fit_end_the_group(job: &Job<'_>) {
    job.run(3, |deck| {
        let mut group = deck.group()?;
        let mut all = vec![0u32; if deck.rank() == 2 { 5 } else { 6 }];
        let error = group.all_gather_into(&[1u32, 2], &mut all).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("member 2 gave it what does not fit") && text.contains("5 where 6"),
            "{text}"
        );
        let mut other = deck.group();
        assert!(other.is_err(), "it is in use");
        drop(group);
        other = deck.group();
        assert!(other?.barrier().is_err(), "it is over");
        deck.barrier()?;
        deck.finish()
    });
}

pub(crate) fn a_group_that_is_revoked_ends_for_all(job: &Job<'_>) {
    job.run(3, |deck| {
        let mut group = deck.group()?;
        group.barrier()?;
        if deck.rank() == 2 {
            group.revoke();
        }
        let error = group.barrier().unwrap_err();
        assert!(
            matches!(error.service(), Some(GroupError::Revoked { member, .. }) if *member == 2),
            "{error}"
        );
        deck.finish()
    });
}

/// What it had sent in the operation before may have been lost with it.
pub(crate) fn the_death_of_a_member_ends_the_operation_at_all(job: &Job<'_>) {
    let lost = job.run_losing(1, 4, |deck| {
        let mut group = deck.group()?;
        let begun = Instant::now();
        let error = loop {
            match group.all_reduce_value(1u64, Sum) {
                Ok(sum) => assert_eq!(sum, 4),
                Err(error) => break error,
            }
            if deck.rank() == 1 {
                return job.die((deck, group));
            }
        };
        assert!(
            matches!(error.service(), Some(GroupError::Lost { member, .. }) if *member == 1),
            "{error}"
        );
        assert_eq!(error.lost(), Some(1.into()));
        assert!(begun.elapsed() < Duration::from_secs(10));
        // A member that fails earlier does not leave before the others have heard of it.
        let again = group.barrier().unwrap_err();
        assert_eq!(again.to_string(), error.to_string());
        deck.finish().unwrap_err();
        Ok(())
    });
    assert_ne!(lost, super::Ended::Well);
}

pub(crate) fn a_member_that_leaves_ends_what_needs_it_and_nothing_before(job: &Job<'_>) {
    job.run(3, |deck| {
        let mut group = deck.group()?;
        let mut sum = 0;
        for round in 0..30u64 {
            sum += group.all_reduce_value(round, Sum)?;
        }
        assert_eq!(sum, 3 * (0..30).sum::<u64>());
        if deck.rank() == 0 {
            return Ok(());
        }
        let error = group.barrier().unwrap_err();
        assert!(
            matches!(error.service(), Some(GroupError::Lost { member, .. }) if *member == 0),
            "{error}"
        );
        Ok(())
    });
}

/// The first operation of a group, after which some leave at once, while others have not begun.
pub(crate) fn who_has_done_its_part_may_leave(job: &Job<'_>) {
    job.repeat(3, |deck| {
        if deck.rank() == 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut count = [1u32];
        deck.group()?.scan(&mut count, Sum)?;
        assert_eq!(count[0], deck.rank().0 + 1);
        Ok(())
    });
}

pub(crate) fn a_panic_in_an_operation_is_told_to_the_others(job: &Job<'_>) {
    job.run(2, |deck| {
        let mut group = deck.group()?;
        let panics = deck.rank() == 0;
        let op = commutative(move |_: &mut u32, _: &u32| assert!(!panics, "on purpose"));
        let combine = std::panic::AssertUnwindSafe(|| group.reduce(0, &mut [1], op));
        let outcome = std::panic::catch_unwind(combine);
        assert_eq!(outcome.is_err(), panics);
        drop(group);
        let error = deck.group()?.barrier().unwrap_err();
        assert!(
            matches!(error.service(), Some(GroupError::Panicked { member, .. }) if *member == 0),
            "{error}"
        );
        deck.finish()
    });
}

/// More than may be unread goes round in a ring of members, who all send first.
pub(crate) fn very_long_data_are_exchanged_by_all_at_once(job: &Job<'_>) {
    job.run(2, |deck| {
        let mut group = deck.group()?;
        let (me, each) = (deck.rank().0 as u8, 70 << 20);
        let out = vec![me + 1; 2 * each];
        let mut came = vec![0; 2 * each];
        group.all_to_all_into(&out, &mut came)?;
        assert!(
            came[..each].iter().all(|byte| *byte == 1)
                && came[each..].iter().all(|byte| *byte == 2)
        );
        deck.finish()
    });
}

/// Survivors find out how far all have come, and go on without the one that is lost.
pub(crate) fn survivors_settle_shrink_and_go_on(job: &Job<'_>) {
    job.run_losing(0, 4, |deck| {
        let mut group = deck.group()?;
        let mut done = 0;
        while group.all_reduce_value(1u64, Sum).is_ok() {
            done += 1;
            if deck.rank() == 0 && done == 5 {
                return job.die((deck, group));
            }
        }
        assert_eq!(group.done(), done);
        let settled = group.settle()?;
        // Nobody goes on with a sum before all have given theirs.
        assert!(settled.done <= done && done <= settled.done + 1);
        assert_eq!(settled.lost, [0]);
        assert_eq!(group.agree(0b110 | u64::from(deck.rank().0))?, 0b110);
        let mut group = group.shrink()?;
        assert_eq!((group.size(), group.member().0), (3, deck.rank().0 - 1));
        for len in [1, 10, 100_000] {
            let mut data = vec![deck.rank().0; len];
            group.all_reduce(&mut data, Sum)?;
            assert_eq!(data, vec![1 + 2 + 3; len]);
        }
        // The lowest that is left may be lost too.
        let all = group.all_gather(&[settled.done])?;
        assert_eq!(all.all(), [settled.done; 3]);
        deck.finish().unwrap_err();
        Ok(())
    });
}

/// A group that was ended otherwise than by a loss begins again, with all.
pub(crate) fn a_group_that_was_revoked_shrinks_to_all_its_members(job: &Job<'_>) {
    job.run(3, |deck| {
        let mut group = deck.group()?.split(Some(0), 2 - deck.rank().0)?.unwrap();
        if deck.rank() == 1 {
            group.revoke();
        }
        assert!(group.barrier().is_err());
        let mut group = group.shrink()?;
        assert_eq!((group.size(), group.member().0), (3, 2 - deck.rank().0));
        group.barrier()?;
        // All agree, or are told that they do not do the same.
        let other = if group.member() == 2 {
            group.agree(1).map(drop)
        } else {
            group.settle().map(drop)
        };
        let error = other.unwrap_err();
        assert!(
            matches!(error.service(), Some(GroupError::Differs { first, .. }) if first.member == 0),
            "{error}"
        );
        deck.finish()
    });
}

/// Who drops its seat is waited for no more, though its process goes on.
pub(crate) fn a_member_that_drops_its_seat_is_not_waited_for(job: &Job<'_>) {
    job.run(2, |deck| {
        let mut all = deck.group()?;
        for waits in [true, false] {
            let mut group = all.split(Some(0), 0)?.unwrap();
            group.barrier()?;
            if deck.rank() == 0 {
                drop(group);
                continue;
            }
            if waits {
                let error = group.barrier().unwrap_err();
                assert!(
                    matches!(error.service(), Some(GroupError::Lost { member, gone, .. })
                        if *member == 0 && !gone.is_failure()),
                    "{error}"
                );
            }
            assert_eq!(group.settle()?.lost, [0]);
            let mut group = group.shrink()?;
            assert_eq!(group.all_reduce_value(5, Sum)?, 5);
        }
        deck.finish()
    });
}

/// One is ahead of the others, as far as may be, and then waits for them: it is woken when they come.
pub(crate) fn who_is_ahead_goes_on_when_the_others_come(job: &Job<'_>) {
    job.run(2, |deck| {
        let mut group = deck.group()?;
        group.barrier()?;
        let begun = Instant::now();
        for turn in 0..48u64 {
            if deck.rank() == 1 && turn % 4 == 0 {
                std::thread::sleep(Duration::from_millis(3));
            }
            let mut data = [turn; 2];
            group.broadcast(0, &mut data)?;
            let mut data = vec![turn; 20_000];
            group.broadcast(0, &mut data)?;
            assert_eq!(data, vec![turn; 20_000]);
        }
        group.barrier()?;
        // Not by a look every half a second, twelve times.
        assert!(
            begun.elapsed() < Duration::from_secs(3),
            "{:?}",
            begun.elapsed()
        );
        deck.finish()
    });
}

/// What a group showed is there until all have read it, though slates and trays are soon used again.
pub(crate) fn groups_come_and_go_while_their_last_words_are_read(job: &Job<'_>) {
    job.run(2, |deck| {
        let mut all = deck.group()?;
        for round in 0..60u32 {
            let mut seats = all.seats(2)?.into_iter();
            let (mut one, mut other) = (seats.next().unwrap(), seats.next().unwrap());
            std::thread::scope(|scope| {
                let run = |seat: &mut Group| {
                    let mut data = vec![round; 10_000];
                    if seat.member() != 0 {
                        data.fill(0);
                    }
                    seat.broadcast(0, &mut data).unwrap();
                    assert_eq!(data, vec![round; 10_000]);
                };
                scope.spawn(move || run(&mut one));
                scope.spawn(move || run(&mut other));
            });
        }
        deck.finish()
    });
}

/// Members on one host read lent buffers in place, the others get them by messages: what comes out is the same.
pub(crate) fn lent_buffers_come_to_the_reference(job: &Job<'_>) {
    job.run(3, |deck| {
        let mut group = deck.group()?;
        for len in [0, 1, 5, 100, 4_097, 300_000] {
            for root in 0..3 {
                let mut data = deck.lend::<u64>(len)?;
                data.copy_from_slice(&samples::<u64>(deck.rank().0, len));
                group.broadcast_lent(root, &mut data)?;
                assert_eq!(data[..], samples::<u64>(root, len)[..]);
                // Nobody sees what a member does with its buffer afterwards.
                data.fill(77);
            }
            let mut data = deck.lend::<f64>(len)?;
            for _ in 0..3 {
                data.copy_from_slice(&samples::<f64>(deck.rank().0, len));
                group.all_reduce_lent(&mut data, Sum)?;
                let sum = |at| (0..3).map(|of| f64::sample(of, at)).sum::<f64>();
                assert!(data.iter().enumerate().all(|(at, of)| *of == sum(at)));
            }
            let mut data = deck.lend::<u32>(len)?;
            data.fill(deck.rank().0 + 1);
            group.all_reduce_lent(
                &mut data,
                ordered(|so_far: &mut u32, next| *so_far = 10 * *so_far + next),
            )?;
            assert!(data.iter().all(|all| *all == 123));
        }
        deck.finish()
    });
}
