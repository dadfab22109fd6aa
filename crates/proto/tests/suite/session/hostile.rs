//! Random histories: any schedule, any cuts. The seed alone replays one.

use std::time::Duration;

use super::end::options;
use super::oracle::{check_account, check_flushed, check_left, check_order};
use super::world::{State, World};

/// SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Which kinds of trouble a history has; each is in half of them.
struct Menu {
    cuts: bool,
    holes: bool,
    failures: bool,
    big: bool,
    bodies: bool,
    idle: bool,
    slow_readers: bool,
    leaves: bool,
    verdict: bool,
}

impl Menu {
    fn draw(random: &mut Random) -> Self {
        let bits = random.next();
        let has = |bit: u32| bits >> bit & 1 == 1;
        Self {
            cuts: has(0),
            holes: has(1),
            failures: has(2),
            big: has(3),
            bodies: has(4),
            idle: has(5),
            slow_readers: has(6),
            leaves: has(7) && has(8),
            verdict: has(9) && has(10) && has(11),
        }
    }
}

fn step(world: &mut World, random: &mut Random, menu: &Menu) {
    let side = random.below(2);
    let live: Vec<usize> = (0..world.connections.len())
        .rev()
        .filter(|&at| world.connections[at].state != State::Dead)
        .take(6)
        .collect();
    let pick = (!live.is_empty()).then(|| live[random.below(live.len())]);
    match (random.below(100), pick) {
        (0..20, _) => {
            let pad = match (menu.big, random.below(8)) {
                (true, 0) => random.below(60_000),
                _ => random.below(300),
            };
            let body = match menu.bodies && random.below(3) == 0 {
                true => 1 + random.below(3000),
                false => 0,
            };
            let push = random.below(2) == 0;
            world.post(side, pad, body, push);
        }
        (20..30, _) if !menu.slow_readers || random.below(10) == 0 => {
            let how = random.below(4);
            world.read(side, how);
        }
        (30..36, _) => drop(world.sleep()),
        (36..40, _) if menu.idle => {
            world.now = world.now + Duration::from_millis(random.below(6000) as u64);
            world.wake();
        }
        (40, _) if menu.leaves && random.below(3) == 0 => world.leave(side),
        (41, _) if menu.verdict && random.below(3) == 0 => world.verdict(side),
        (42..46, Some(at)) if menu.cuts && world.connections[at].state == State::Up => {
            let [a, b] = [0, 1].map(|side| world.connections[at].pipes[side].len() + 1);
            let arrive = [random.below(a), random.below(b)];
            world.cut(at, arrive);
        }
        (46, Some(at)) if menu.holes => world.connections[at].is_hole[side] = true,
        (47..60, Some(at)) if world.connections[at].state == State::Dialling => {
            match menu.failures && random.below(2) == 0 {
                true => world.fail(at),
                false => world.connect(at),
            }
        }
        (60..65, Some(at)) if world.is_lost(at, side) => world.tell_lost(at, side),
        (65..100, Some(at)) => {
            let len = world.connections[at].pipes[side].len();
            let count = match random.below(3) {
                0 => 1 + random.below(40),
                1 => random.below(len + 1),
                _ => len,
            };
            world.deliver(at, side, count);
        }
        _ => {}
    }
}

/// What happened in many histories, to be sure that they were worth it.
#[derive(Debug, Default)]
struct Seen {
    connections: usize,
    delivered: usize,
    bodies: usize,
    refused: usize,
    stale: u64,
    ended: usize,
    tied: usize,
}

fn history(seed: u64, steps: usize, seen: &mut Seen) {
    let mut random = Random(seed);
    let menu = Menu::draw(&mut random);
    let first = match random.below(8) {
        // As many numbers as the history may need are left, or fewer.
        0 => u64::MAX - random.below(400) as u64,
        _ => 1,
    };
    let of = |side| {
        let mut options = options(side, seed);
        options.first_number = first;
        options
    };
    let mut world = World::with([of(0), of(1)]);
    for number in 0..steps {
        step(&mut world, &mut random, &menu);
        if number % 16 == 0 {
            check_order(&world);
        }
        seen.refused += usize::from(world.ends[0].session.kept_bytes() > 120_000);
    }
    world.settle();
    if world
        .ends
        .iter()
        .any(|end| end.ended.is_some() || end.is_leaving)
    {
        // Whoever has not heard of it hears of it.
        for side in 0..2 {
            if !world.ends[side].is_leaving && world.ends[side].ended.is_none() {
                world.leave(side);
            }
        }
        world.settle();
        check_account(&world);
        assert!(world.ends.iter().all(|end| end.ended.is_some()));
        seen.ended += 1;
    } else {
        check_flushed(&world);
        let first = random.below(2);
        world.leave(first);
        if world.connections.is_empty() {
            // They never met, so the other cannot hear of it.
            world.leave(1 - first);
        }
        world.settle();
        check_left(&world);
    }
    seen.connections += world.connections.len();
    seen.delivered += world
        .ends
        .iter()
        .map(|end| end.delivered.len())
        .sum::<usize>();
    seen.bodies += world.ends.iter().map(|end| end.bodies.len()).sum::<usize>();
    seen.stale += world.stale;
    for pair in world.connections.windows(2) {
        seen.tied += usize::from(pair[0].number == pair[1].number);
    }
}

fn run(seeds: std::ops::Range<u64>, steps: usize) -> Seen {
    let mut seen = Seen::default();
    for seed in seeds {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            history(seed, steps, &mut seen);
        }));
        if let Err(panic) = outcome {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
    seen
}

// docs/wire-sessions.md §20.3, §21.5, §22.2, §23.2, §24.4
#[test]
fn whatever_happens_messages_come_once_and_in_order_or_are_in_the_account() {
    let seeds = std::env::var("MIZZEN_SEEDS")
        .ok()
        .and_then(|seeds| seeds.parse().ok())
        .unwrap_or(1000);
    let from = std::env::var("MIZZEN_FROM")
        .ok()
        .and_then(|from| from.parse().ok())
        .unwrap_or(0);
    let seen = run(from..from + seeds, 400);
    println!("{seeds} histories: {seen:?}");
    assert!(
        seen.connections > 3000 && seen.delivered > 10_000 && seen.bodies > 1000,
        "{seen:?}"
    );
    assert!(
        seen.refused > 0 && seen.stale > 0 && seen.ended > 50 && seen.tied > 50,
        "{seen:?}"
    );
}
