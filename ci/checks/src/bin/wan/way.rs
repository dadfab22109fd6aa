//! One way of the network: which packet goes on when, decided by chance from a seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::packet;

/// What the network does to packets.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Weather {
    pub(crate) delay: Duration,
    pub(crate) jitter: Duration,
    pub(crate) loss: f64,
    pub(crate) reorder: f64,
    pub(crate) duplicate: f64,
    pub(crate) corrupt: f64,
}

impl Weather {
    /// Whether the bytes of packets are needed.
    pub(crate) fn touches_bytes(&self) -> bool {
        self.duplicate > 0.0 || self.corrupt > 0.0
    }

    /// Whether each packet has its own fate.
    pub(crate) fn is_by_packet(&self) -> bool {
        self.touches_bytes() || self.loss > 0.0 || self.reorder > 0.0
    }
}

/// A packet that is to go on.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Held {
    pub(crate) due: Instant,
    /// Packets that are due together go in the order in which they came.
    turn: u64,
    pub(crate) what: Change,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// As it came, by its number.
    None(u32),
    /// With these bytes instead.
    Corrupted(u32, Vec<u8>),
    /// One that the kernel does not know of.
    Again(Vec<u8>),
}

pub(crate) struct Way {
    weather: Weather,
    rng: Rng,
    held: BinaryHeap<Reverse<Held>>,
    /// When the packet before goes on.
    last: Option<Instant>,
    turn: u64,
    pub(crate) reordered: u64,
    pub(crate) doubled: u64,
    pub(crate) corrupted: u64,
}

impl Way {
    pub(crate) fn new(weather: Weather, seed: u64) -> Self {
        Self {
            weather,
            rng: Rng::with_seed(seed),
            held: BinaryHeap::new(),
            last: None,
            turn: 0,
            reordered: 0,
            doubled: 0,
            corrupted: 0,
        }
    }

    /// A packet came, with all its bytes if the weather touches them. Returns whether it will go on.
    pub(crate) fn take(&mut self, now: Instant, id: u32, bytes: &[u8]) -> bool {
        // Always as many numbers for a packet, so that a seed means the same whatever is asked for.
        let [lost, overtaken, doubled, corrupted, jitter] = std::array::from_fn(|_| self.rng.f64());
        if lost < self.weather.loss {
            return false;
        }
        let mut due = now + self.weather.delay + self.weather.jitter.mul_f64(jitter);
        if overtaken < self.weather.reorder {
            // Those behind it do not wait for it.
            self.reordered += 1;
            due += OVERTAKEN.max(self.weather.jitter);
        } else {
            due = due.max(self.last.unwrap_or(due));
            self.last = Some(due);
        }
        let mut what = Change::None(id);
        if doubled < self.weather.duplicate {
            self.doubled += 1;
            self.hold(due, Change::Again(bytes.to_vec()));
        }
        if corrupted < self.weather.corrupt {
            if let Some(bytes) = packet::corrupt(bytes, &mut self.rng) {
                self.corrupted += 1;
                what = Change::Corrupted(id, bytes);
            }
        }
        self.hold(due, what);
        true
    }

    /// The next packet that is due by now.
    pub(crate) fn next_due(&mut self, now: Instant) -> Option<Held> {
        (self.due()? <= now)
            .then(|| self.held.pop())?
            .map(|held| held.0)
    }

    /// When the next packet goes on.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.held.peek().map(|held| held.0.due)
    }

    fn hold(&mut self, due: Instant, what: Change) {
        self.turn += 1;
        let turn = self.turn;
        self.held.push(Reverse(Held { due, turn, what }));
    }
}

/// How much longer a packet takes that is overtaken.
const OVERTAKEN: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// What a way did to so many packets: in which order they went on, and when after they came.
    fn sent(weather: Weather, seed: u64) -> Vec<(u32, Duration)> {
        let mut way = Way::new(weather, seed);
        let start = Instant::now();
        for id in 0..1_000 {
            way.take(start + Duration::from_micros(u64::from(id)), id, &[]);
        }
        let mut went = Vec::new();
        while let Some(held) = way.next_due(start + Duration::from_secs(9)) {
            if let Change::None(id) = held.what {
                let came = start + Duration::from_micros(u64::from(id));
                went.push((id, held.due - came));
            }
        }
        went
    }

    #[test]
    fn delays_and_keeps_order_with_jitter() {
        let weather = Weather {
            delay: Duration::from_millis(20),
            jitter: Duration::from_millis(3),
            ..Weather::default()
        };
        let went = sent(weather, 1);
        assert_eq!(went.len(), 1_000);
        assert!(went.windows(2).all(|two| two[0].0 < two[1].0));
        assert!(
            went.iter()
                .all(|(_, took)| (20..=23).contains(&took.as_millis()))
        );
    }

    #[test]
    fn loses_and_reorders_by_its_seed() {
        let weather = Weather {
            loss: 0.1,
            reorder: 0.1,
            ..Weather::default()
        };
        let went = sent(weather, 7);
        assert_eq!(went, sent(weather, 7));
        assert_ne!(went, sent(weather, 8));
        assert!((850..950).contains(&went.len()), "{}", went.len());
        assert!(went.windows(2).any(|two| two[0].0 > two[1].0));
    }
}
