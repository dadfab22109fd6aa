//! Pairs of threads, one of each pair at each side, that all exchange short messages at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mizzen::{Mailbox, Sender};

use super::found::Found;
use crate::bench::figures::{Runs, Said, quantile};
use crate::bench::floor::turns::{self, Turns};
use crate::bench::floor::wire::{self, Wire};
use crate::bench::plan::Test;
use crate::bench::side::{Side, connect};

/// How long the pairs play in one run of one of the two.
const RUN: Duration = Duration::from_millis(400);
/// How long they play with a clock reading in each round, for the longest gap.
const TIMED: Duration = Duration::from_millis(200);

/// The ball that ends the game.
const LAST: u64 = u64::MAX;

/// One end of a pair.
trait Player: Send {
    fn send(&mut self, ball: u64) -> anyhow::Result<()>;
    fn receive(&mut self) -> anyhow::Result<u64>;
}

/// What the pairs of one run did, as the first side saw it.
struct Game {
    /// Of one round.
    messages: f64,
    rounds: Vec<f64>,
    took: Duration,
    /// Nanoseconds; zero if nobody looked at the clock.
    longest_gap: f64,
}

pub(crate) fn measure(side: &mut Side, pairs: u32) -> anyhow::Result<Found> {
    if side.plan.path.is_network() {
        let address = side.plan.places[0].address;
        let mut floor = Wire::connect(&mut side.meeting, side.number, pairs, address)?;
        return beside(side, pairs, &mut floor, wire::NAME);
    }
    let (memory, number) = (side.memory, side.number);
    let bare = |pair| Bare {
        turns: Turns::new(memory, number, pair),
        last: 0,
    };
    let mut floor: Vec<Bare> = (0..pairs as usize).map(bare).collect();
    beside(side, pairs, &mut floor, turns::NAME)
}

fn beside(
    side: &mut Side,
    pairs: u32,
    floor: &mut [impl Player],
    floor_name: &str,
) -> anyhow::Result<Found> {
    let mut ours = ours(side, pairs)?;
    let mut runs = Runs::default();
    let (mut worst, mut longest_gap) = (1.0, 0.0);
    game(side, &mut ours, TIMED, Clock::Stopped)?;
    for _ in 0..side.plan.runs {
        let bare = game(side, floor, RUN, Clock::Stopped)?;
        let carried = game(side, &mut ours, RUN, Clock::Stopped)?;
        let timed = game(side, &mut ours, TIMED, Clock::EachRound)?;
        runs.push(bare.messages_per_second(), carried.messages_per_second());
        worst = carried.worst().max(worst);
        longest_gap = timed.longest_gap.max(longest_gap);
        side.say(&Said::Progress)?;
    }
    let mut figures = runs.figures(&side.plan, "msg/s", floor_name);
    figures.size = Some(8);
    figures.threads = pairs;
    figures.rate_per_s = Some(figures.value);
    figures.worst = Some(worst);
    figures.longest_gap_ns = Some(longest_gap);
    Ok(Found { runs, figures })
}

impl Game {
    fn messages_per_second(&self) -> f64 {
        self.messages * self.rounds.iter().sum::<f64>() / self.took.as_secs_f64()
    }

    /// How many times slower the slowest pair was than the median one.
    fn worst(&self) -> f64 {
        quantile(&self.rounds, 0.5) / quantile(&self.rounds, 0.0).max(1.0)
    }
}

/// When players look at the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clock {
    Stopped,
    EachRound,
}

struct Bare {
    turns: Turns,
    last: u64,
}

impl Player for Bare {
    #[inline]
    fn send(&mut self, ball: u64) -> anyhow::Result<()> {
        self.turns.send(ball);
        Ok(())
    }

    #[inline]
    fn receive(&mut self) -> anyhow::Result<u64> {
        self.last = self.turns.receive(self.last);
        Ok(self.last)
    }
}

impl Player for Wire {
    fn send(&mut self, ball: u64) -> anyhow::Result<()> {
        Wire::send(self, ball)
    }

    fn receive(&mut self) -> anyhow::Result<u64> {
        Wire::receive(self)
    }
}

struct Ours {
    inbox: Mailbox,
    other: Sender,
}

impl Player for Ours {
    #[inline]
    fn send(&mut self, ball: u64) -> anyhow::Result<()> {
        Ok(self.other.send(&ball)?)
    }

    #[inline]
    fn receive(&mut self) -> anyhow::Result<u64> {
        Ok(self.inbox.receive()?)
    }
}

fn ours(side: &Side, pairs: u32) -> anyhow::Result<Vec<Ours>> {
    let mut players = Vec::new();
    for pair in 0..pairs {
        let name = format!("pair {pair} of {pairs}");
        let (inbox, other) = connect(&side.deck, side.number, &name)?;
        let other = other.sender()?;
        players.push(Ours { inbox, other });
    }
    Ok(players)
}

/// All pairs play for some time.
fn game(
    side: &mut Side,
    players: &mut [impl Player],
    time: Duration,
    clock: Clock,
) -> anyhow::Result<Game> {
    let stop = AtomicBool::new(false);
    let is_first = side.is_first();
    let one_way = side.plan.test == Test::Streams;
    side.meeting.meet();
    let game = std::thread::scope(|threads| {
        let started = Instant::now();
        let playing: Vec<_> = players
            .iter_mut()
            .map(|player| {
                let stop = &stop;
                threads.spawn(move || match is_first {
                    true => lead(player, stop, clock, one_way),
                    false => follow(player, one_way),
                })
            })
            .collect();
        if is_first {
            std::thread::sleep(time);
        }
        stop.store(true, Ordering::Relaxed);
        let took = started.elapsed();
        let (mut rounds, mut longest_gap) = (Vec::new(), 0.0);
        for player in playing {
            let (count, gap) = player.join().expect("players do not panic")?;
            rounds.push(count as f64);
            longest_gap = f64::max(gap.as_nanos() as f64, longest_gap);
        }
        anyhow::Ok(Game {
            messages: if one_way { 1.0 } else { 2.0 },
            rounds,
            took,
            longest_gap,
        })
    })?;
    side.meeting.meet();
    Ok(game)
}

/// Throws balls until told to stop: how many came back, and the longest wait for one.
fn lead(
    player: &mut impl Player,
    stop: &AtomicBool,
    clock: Clock,
    one_way: bool,
) -> anyhow::Result<(u64, Duration)> {
    let (mut rounds, mut longest) = (0, Duration::ZERO);
    let mut before = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        rounds += 1;
        player.send(rounds)?;
        if !one_way {
            let ball = player.receive()?;
            anyhow::ensure!(ball == rounds, "ball {ball} came back for ball {rounds}");
        }
        if clock == Clock::EachRound {
            let now = Instant::now();
            longest = longest.max(now - before);
            before = now;
        }
    }
    player.send(LAST)?;
    player.receive()?;
    Ok((rounds, longest))
}

/// Throws back every ball, or only the last one: so the next game finds both as they were.
fn follow(player: &mut impl Player, one_way: bool) -> anyhow::Result<(u64, Duration)> {
    for rounds in 0.. {
        let ball = player.receive()?;
        if !one_way || ball == LAST {
            player.send(ball)?;
        }
        if ball == LAST {
            return Ok((rounds, Duration::ZERO));
        }
    }
    unreachable!("the last ball comes before the numbers end")
}
