//! Tasks of 650 bytes that move from process to process.
//!
//! `mizzen run -n 2 -- voyage 100000` times one task that goes to and fro.
//! `mizzen run -n 4 --on-death restart -- voyage 1000000 kill` has 32 tasks wander while ranks 2 and 3 are killed again and
//! again, and checks that every task comes home with all its steps. New tasks follow until all kills were seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};
use mizzen::{Deck, Migrate, Rank, Step};
use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};

/// The serialised state is 650 bytes long: this, and the numbers before it.
const BALLAST: usize = 627;
const TASKS: u64 = 32;
/// How often ranks 2 and 3 are killed, each.
const LIVES: u32 = 5;
/// They take a few seconds, and a busy machine some more.
const KILLED_WITHIN: Duration = Duration::from_secs(60);
/// What a migration must not take, in microseconds: some hundred times what it does, even over TCP.
const MIGRATION_US: f64 = 5_000.0;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Voyage {
    /// Steps still to be made.
    left: [u8; 4],
    /// A chain over all steps.
    chain: [u8; 8],
    /// How often it really went elsewhere.
    moved: [u8; 4],
    at: [u8; 4],
    #[serde(with = "serde_bytes")]
    ballast: Vec<u8>,
    wanders: bool,
}

impl Voyage {
    fn new(steps: u32, seed: u64, wanders: bool) -> Self {
        Self {
            left: steps.to_le_bytes(),
            chain: seed.to_le_bytes(),
            moved: [0; 4],
            at: u32::MAX.to_le_bytes(),
            ballast: (0..BALLAST).map(|at| (at as u64 ^ seed) as u8).collect(),
            wanders,
        }
    }
}

fn next(chain: u64) -> u64 {
    (chain ^ chain >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ chain << 7
}

impl Migrate for Voyage {
    const NAME: &'static str = "voyage";
    type Output = Voyage;

    fn step(&mut self, deck: &Deck) -> Step<Voyage> {
        let (here, size) = (deck.rank().0, deck.size());
        let left = u32::from_le_bytes(self.left);
        if here.to_le_bytes() != self.at {
            self.at = here.to_le_bytes();
            self.moved = (u32::from_le_bytes(self.moved) + 1).to_le_bytes();
        }
        if left == 0 {
            return Step::Done(self.clone());
        }
        let chain = next(u64::from_le_bytes(self.chain));
        self.chain = chain.to_le_bytes();
        self.left = (left - 1).to_le_bytes();
        let far = if self.wanders {
            1 + (chain % u64::from(size - 1)) as u32
        } else {
            1
        };
        Step::Move(Rank((here + far) % size))
    }
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let migrations = arguments.next().unwrap_or("100000".into());
    let migrations: u32 = migrations.parse().context("give a number of migrations")?;
    let kill = arguments.next().as_deref() == Some("kill");
    let deck = Deck::join()?;
    deck.at_least(2)?;
    deck.register::<Voyage>()?;
    let rank = deck.rank().0;
    let inbox = deck.mailbox()?;
    deck.bind(&format!("end {rank}"), &inbox)?;
    if rank > 0 {
        let incarnation = deck.incarnation().0;
        if kill && rank > 1 {
            let news = u64::from(rank) << 32 | u64::from(incarnation);
            deck.fetch("lives")?.send(&news)?;
        }
        if kill && rank > 1 && incarnation < LIVES {
            let life = Duration::from_millis(200 + 150 * u64::from(rank));
            std::thread::spawn(move || {
                std::thread::sleep(life);
                let _ = kill_process(getpid(), Signal::KILL);
            });
        }
        inbox.receive::<u8>()?;
        return Ok(());
    }
    let lives = kill.then(|| Lives::watch(&deck)).transpose()?;
    for rank in 1..deck.size() {
        deck.fetch(&format!("end {rank}"))?;
    }
    if let Some(lives) = lives {
        wander(&deck, migrations, lives)?
    } else {
        to_and_fro(&deck, migrations)?
    }
    for rank in 1..deck.size() {
        deck.fetch(&format!("end {rank}"))?.send(&0u8)?;
    }
    Ok(())
}

fn to_and_fro(deck: &Deck, migrations: u32) -> anyhow::Result<()> {
    let bytes = postcard::to_allocvec(&Voyage::new(0, 0, false))?.len();
    // Warm paths, and memory that was touched before.
    deck.spawn_at(0, Voyage::new(2000, 0, false))?.join()?;
    let mut runs = Vec::new();
    for _ in 0..9 {
        let started = Instant::now();
        let state = deck
            .spawn_at(0, Voyage::new(migrations, 1, false))?
            .join()?;
        let moved = u32::from_le_bytes(state.moved);
        ensure!(
            moved > migrations / 2,
            "it moved {moved} times in {migrations} steps"
        );
        runs.push(started.elapsed().as_secs_f64() * 1e6 / f64::from(migrations));
    }
    runs.sort_by(f64::total_cmp);
    println!(
        "one task of {bytes} bytes, {migrations} migrations: {:.2} µs each ({:.2} to {:.2})",
        runs[4], runs[0], runs[8]
    );
    ensure!(
        runs[4] < MIGRATION_US,
        "that is not below {MIGRATION_US} µs: something waits"
    );
    Ok(())
}

/// Sees ranks 2 and 3 come back, until each was killed as often as it should be.
struct Lives {
    are_over: Arc<AtomicBool>,
    watching: JoinHandle<anyhow::Result<u32>>,
}

impl Lives {
    fn watch(deck: &Deck) -> anyhow::Result<Self> {
        let inbox = deck.mailbox()?;
        deck.bind("lives", &inbox)?;
        let are_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&are_over);
        let watching = std::thread::spawn(move || {
            let mut latest = [0u32; 2];
            while latest != [LIVES; 2] {
                match inbox.receive::<u64>() {
                    Ok(news) => {
                        let rank = (news >> 32) as usize;
                        let known = latest.get_mut(rank.wrapping_sub(2));
                        *known.context("a life of another rank")? = news as u32;
                    }
                    // It was killed: another life of it comes.
                    Err(error) if error.lost().is_some() => (),
                    Err(error) => return Err(error.into()),
                }
            }
            over.store(true, Ordering::Release);
            Ok(latest.iter().sum())
        });
        Ok(Self { are_over, watching })
    }

    /// Whether there is nobody left to be killed, or to see it.
    fn are_over(&self) -> bool {
        self.are_over.load(Ordering::Acquire) || self.watching.is_finished()
    }
}

/// Has tasks make so many steps, and more until ranks 2 and 3 were killed as often as they should be.
fn wander(deck: &Deck, migrations: u32, lives: Lives) -> anyhow::Result<()> {
    let steps = migrations / TASKS as u32;
    let started = Instant::now();
    let (mut home, mut moved) = (0, 0u64);
    loop {
        moved += round(deck, steps)?;
        home += TASKS;
        if lives.are_over() {
            break;
        }
        ensure!(
            started.elapsed() < KILLED_WITHIN,
            "ranks 2 and 3 were not killed {LIVES} times each within {KILLED_WITHIN:?}"
        );
    }
    let watched = lives.watching.join();
    let kills = watched.map_err(|_| anyhow!("the watch of the kills failed"))??;
    let made = u64::from(steps) * home;
    println!(
        "all {home} tasks came home with all {made} steps in {:.1?}; {moved} migrations; ranks 2 and 3 were killed {kills} times",
        started.elapsed()
    );
    ensure!(
        kills == 2 * LIVES,
        "ranks 2 and 3 were killed {kills} times"
    );
    ensure!(
        moved > made / 2,
        "only {moved} of {made} steps were migrations"
    );
    Ok(())
}

/// One voyage of each task. Returns how often they really moved.
fn round(deck: &Deck, steps: u32) -> anyhow::Result<u64> {
    let remotes: Vec<_> = (0..TASKS)
        .map(|task| deck.spawn_at(0, Voyage::new(steps, task, true)))
        .collect::<Result<_, _>>()?;
    let mut moved = 0;
    for (task, remote) in remotes.into_iter().enumerate() {
        let state = remote.join()?;
        let expected = (0..steps).fold(task as u64, |chain, _| next(chain));
        let whole = Voyage::new(0, task as u64, true).ballast == state.ballast;
        ensure!(
            whole && u64::from_le_bytes(state.chain) == expected && state.left == [0; 4],
            "task {task} lost some of its state"
        );
        moved += u64::from(u32::from_le_bytes(state.moved));
    }
    Ok(moved)
}
