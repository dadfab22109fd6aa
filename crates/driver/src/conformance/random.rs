//! Random workloads against an oracle. The seed alone replays a run: `MIZZEN_SEED=7 cargo test …`.

use std::collections::VecDeque;

use fastrand::Rng;

use super::Harness;
use super::fleet::{Fleet, Seen, pattern};
use crate::{BodyId, Refused};

/// Contract 6, 7, 8 and 10.
pub fn random_frames_are_as_the_oracle_says<H: Harness>(harness: H) {
    let seed = seed(1);
    let mut run = Run::new(harness, 3, seed);
    (0..1500).for_each(|_| run.send_frame());
    run.finish();
}

/// Contract 12, 13 and 14.
pub fn random_bodies_are_as_the_oracle_says<H: Harness>(harness: H) {
    let seed = seed(2);
    let mut run = Run::new(harness, 3, seed);
    (0..150).for_each(|_| run.send_body());
    run.finish();
}

/// Contract 6, 12 and 15.
pub fn random_frames_and_bodies_are_as_the_oracle_says<H: Harness>(harness: H) {
    let seed = seed(3);
    let mut run = Run::new(harness, 2, seed);
    for _ in 0..600 {
        match run.random.u64(..5) {
            0 => run.send_body(),
            _ => run.send_frame(),
        }
    }
    run.finish();
}

/// Contract 6, 11 and 12: eight processes, all to all.
pub fn random_traffic_among_eight_is_as_the_oracle_says<H: Harness>(harness: H) {
    let seed = seed(4);
    let mut run = Run::new(harness, 8, seed);
    for _ in 0..1500 {
        match run.random.u64(..20) {
            0 => run.send_body(),
            _ => run.send_frame(),
        }
    }
    run.finish();
}

/// Contract 18, 21 and 22: links are cut and made again; each carries a beginning of what was sent on it.
pub fn random_cuts_lose_no_more_than_the_end<H: Harness>(harness: H) {
    let seed = seed(5);
    let mut run = Run::new(harness, 3, seed);
    for _ in 0..20 {
        (0..run.random.u64(..40)).for_each(|_| run.send_frame());
        (0..run.random.u64(..4)).for_each(|_| run.send_body());
        (0..run.random.u64(..6)).for_each(|_| {
            run.fleet.pump();
        });
        run.cut_and_link();
    }
    run.finish();
}

/// A fleet, and what each end should report.
struct Run<H: Harness> {
    fleet: Fleet<H>,
    size: usize,
    random: Rng,
    seed: u64,
    /// By sender and receiver.
    frames: Vec<Vec<VecDeque<Vec<u8>>>>,
    bodies: Vec<(usize, usize, BodyId, Vec<u8>)>,
    serial: u64,
}

impl<H: Harness> Run<H> {
    fn new(harness: H, size: usize, seed: u64) -> Self {
        let mut fleet = Fleet::linked(harness, size);
        fleet.note(format!("seed {seed}"));
        let frames = vec![vec![VecDeque::new(); size]; size];
        Self {
            fleet,
            size,
            random: Rng::with_seed(seed),
            seed,
            frames,
            bodies: Vec::new(),
            serial: 0,
        }
    }

    fn send_frame(&mut self) {
        let (from, to) = self.pair();
        let max = self.fleet.caps(from).max_frame;
        let len = match self.random.u64(..10) {
            0 => self.random.usize(..=max),
            1..4 => self.random.usize(..5000.min(max)),
            _ => self.random.usize(..100),
        };
        let frame = self.stamped(len);
        match self.fleet.offer(from, to, &frame) {
            Ok(()) => self.frames[from][to].push_back(frame),
            Err(Refused::Busy { .. }) => {
                self.fleet.pump();
            }
            Err(refused) => panic!("{refused}; seed {}", self.seed),
        }
        if self.random.u8(..10) == 0 {
            self.fleet.pump();
            self.check_frames();
        }
    }

    fn send_body(&mut self) {
        let (from, to) = self.pair();
        let len = match self.random.u64(..10) {
            0 => self.random.usize(..1 << 20),
            1..4 => self.random.usize(..100_000),
            _ => self.random.usize(..1000),
        };
        self.serial += 1;
        let (body, bytes) = (BodyId(self.serial), pattern(self.serial ^ self.seed, len));
        let (there, here) = (self.lens(len), self.lens(len));
        match self.fleet.expect(to, from, body, &there) {
            Ok(()) => {}
            Err(Refused::TooManyBodies { .. }) => {
                self.fleet.pump();
                return;
            }
            Err(refused) => panic!("{refused}; seed {}", self.seed),
        }
        let parts = super::fleet::split(&bytes, &here);
        while let Err(refused) = self.fleet.give(from, to, body, parts.clone()) {
            assert!(
                matches!(refused, Refused::TooManyBodies { .. }),
                "{refused}; seed {}",
                self.seed
            );
            self.fleet.pump();
        }
        self.bodies.push((from, to, body, bytes));
    }

    /// Breaks one link, checks what it carried, and makes it anew.
    fn cut_and_link(&mut self) {
        let (a, b) = self.pair();
        self.fleet.cut(a, b);
        self.fleet.until("both ends lose the link", |fleet| {
            fleet.losses(a, b) == 1 && fleet.losses(b, a) == 1
        });
        self.check_frames();
        for (at, other) in [(a, b), (b, a)] {
            self.frames[at][other].clear();
            let id = self.fleet.id(other);
            let is_lost = |seen: &Seen| matches!(seen, Seen::Lost(of, _) if *of == id);
            let mut seen = self.fleet.take(at);
            let lost = seen.iter().position(is_lost).expect("just awaited");
            assert!(
                seen[lost..]
                    .iter()
                    .all(|seen| !is_of(seen, id) || is_lost(seen)),
                "seed {}",
                self.seed
            );
            seen.retain(|seen| !is_of(seen, id) || matches!(seen, Seen::BodyReceived(..)));
            self.fleet.restore(at, seen);
        }
        let fleet = &self.fleet;
        self.bodies.retain(|&(from, to, body, ref bytes)| {
            let is_cut = (from, to) == (a, b) || (from, to) == (b, a);
            let arrived = fleet.has_body(to, from, body);
            assert!(
                !arrived || fleet.body(to, from, body) == *bytes,
                "wrong bytes"
            );
            !is_cut
        });
        self.fleet.link(b, a);
    }

    fn finish(mut self) {
        for (from, to, body, bytes) in std::mem::take(&mut self.bodies) {
            self.fleet
                .until("a body arrives", |fleet| fleet.has_body(to, from, body));
            assert!(
                self.fleet.body(to, from, body) == bytes,
                "{body} is wrong; seed {}",
                self.seed
            );
        }
        let awaited: Vec<usize> = (0..self.size)
            .map(|to| (0..self.size).map(|from| self.frames[from][to].len()).sum())
            .collect();
        self.fleet.until("all frames arrive", |fleet| {
            let is_frame = |seen: &&Seen| matches!(seen, Seen::Frame(..));
            awaited
                .iter()
                .enumerate()
                .all(|(at, &count)| fleet.seen(at).iter().filter(is_frame).count() >= count)
        });
        self.fleet.settle();
        self.check_frames();
        assert!(
            self.frames.iter().flatten().all(VecDeque::is_empty),
            "frames are missing; seed {}",
            self.seed
        );
        for at in 0..self.size {
            let is_loss = |seen: &Seen| matches!(seen, Seen::Lost(..) | Seen::BodyFailed(..));
            assert!(
                !self.fleet.seen(at).iter().any(is_loss),
                "a link was lost; seed {}",
                self.seed
            );
        }
    }

    /// Compares the frames that arrived with those that were sent.
    fn check_frames(&mut self) {
        for to in 0..self.size {
            let mut rest = Vec::new();
            for seen in self.fleet.take(to) {
                let Seen::Frame(peer, bytes) = seen else {
                    rest.push(seen);
                    continue;
                };
                let from = (0..self.size)
                    .find(|&from| self.fleet.id(from) == peer)
                    .expect("one of the fleet");
                let sent = self.frames[from][to].pop_front();
                assert!(
                    sent == Some(bytes),
                    "a frame from {from} to {to} is wrong; seed {}",
                    self.seed
                );
            }
            self.fleet.restore(to, rest);
        }
    }

    /// Two different processes.
    fn pair(&mut self) -> (usize, usize) {
        let from = self.random.usize(..self.size);
        (
            from,
            (from + 1 + self.random.usize(..self.size - 1)) % self.size,
        )
    }

    /// Bytes that no other frame has, if there is room for a number.
    fn stamped(&mut self, len: usize) -> Vec<u8> {
        self.serial += 1;
        pattern(self.serial ^ self.seed, len)
    }

    /// Lengths of up to eight parts with this sum.
    fn lens(&mut self, len: usize) -> Vec<usize> {
        let mut cuts: Vec<usize> = (0..self.random.u64(..8))
            .map(|_| self.random.usize(..=len))
            .collect();
        cuts.extend([0, len]);
        cuts.sort_unstable();
        cuts.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

fn is_of(seen: &Seen, id: crate::PeerId) -> bool {
    match seen {
        Seen::Connected(peer)
        | Seen::ConnectFailed(peer, _)
        | Seen::Frame(peer, _)
        | Seen::BodySent(peer, _)
        | Seen::BodyReceived(peer, _)
        | Seen::BodyWaiting(peer, _)
        | Seen::BodyFailed(peer, ..)
        | Seen::Writable(peer)
        | Seen::Lost(peer, _) => *peer == id,
    }
}

/// The seed of a case: its own, unless the environment says otherwise. Every failure names it.
fn seed(case: u64) -> u64 {
    std::env::var("MIZZEN_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(case)
}
