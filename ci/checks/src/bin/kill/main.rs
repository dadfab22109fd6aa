//! Kills a process again and again, at random moments or at each named step, and checks what the survivors see.
//!
//! `mizzen run -n 3 --on-death restart -- kill LIVES FILE`. Rank 0 judges, rank 1 dies, rank 2 goes on talking to rank 0
//! all the time. With the feature `crash-points` the first lives of rank 1 end at each step of `mizzen::crash::POINTS` in
//! turn, three visits each; the others are killed from outside. FILE is where rank 1 notes what it has committed.
//!
//! Between hosts (`kill LIVES FILE hosts`) what a killed process had posted may be on its way: it may be missing at the
//! end, never in the middle; and its death may take longer to be known.
//!
//! A long message is announced before it is written. One that its sender did not finish, and had not committed therefore, is
//! an error that names the dead, never a message.
//!
//! Rank 1 sends three streams: by a `Sender`, by posts, some of them awaited or in a scope, and whole messages for receives that
//! were posted.

mod posted;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use fastrand::Rng;
#[cfg(feature = "crash-points")]
use mizzen::crash;
use mizzen::{
    Deck, Error, Gone, Incoming, Mailbox, MailboxRef, Message, PostError, RetrieveError,
    UnpackError,
};
use mizzen_checks::{Mapped, checksum, open_descriptors};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

/// How soon survivors must know.
const BOUND: Duration = Duration::from_millis(100);
/// The same between hosts.
const HOSTS_BOUND: Duration = Duration::from_secs(3);
/// Messages of a life that ends by itself.
const SCRIPT: u64 = 400;
/// Streams of messages of one life.
const STREAMS: usize = 3;
/// The most lives.
const MAX_LIVES: usize = 1 << 16;
/// Visits of each step.
#[cfg(feature = "crash-points")]
const VISITS: [u32; 3] = [1, 2, 17];

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let lives: u32 = arguments
        .next()
        .context("usage: kill LIVES FILE")?
        .parse()?;
    let file = arguments.next().context("which file?")?;
    let counts = Counts(Mapped::open(&file, STREAMS * MAX_LIVES)?);
    let path = match arguments.next().as_deref() {
        None => Path::Memory,
        Some("hosts") => Path::Hosts,
        Some(other) => bail!("{other:?} is not `hosts`"),
    };
    let deck = Deck::join()?;
    ensure!(
        deck.size() == 3,
        "start it with `mizzen run -n 3 --on-death restart`"
    );
    match deck.rank().0 {
        0 => judge(&deck, lives, &counts, path),
        1 => die(deck, &counts),
        _ => go_on(&deck),
    }
}

/// How rank 1 is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    Memory,
    Hosts,
}

/// How many messages of each stream each life of rank 1 has committed, in a file that survives it.
struct Counts(Mapped);

impl Counts {
    fn stream(&self, life: u32, stream: usize) -> &AtomicU64 {
        self.0.word(life as usize * STREAMS + stream)
    }
}

/// The steps at which life number `life` ends by itself.
#[cfg(not(feature = "crash-points"))]
fn plan(_life: u32) -> Option<(&'static str, u32)> {
    None
}

/// The steps at which life number `life` ends by itself.
#[cfg(feature = "crash-points")]
fn plan(life: u32) -> Option<(&'static str, u32)> {
    let step = crash::POINTS.get(life as usize / VISITS.len())?;
    Some((step, VISITS[life as usize % VISITS.len()]))
}

/// Rank 1: sends and receives in every way until it is killed.
fn die(deck: Deck, counts: &Counts) -> anyhow::Result<()> {
    let life = deck.incarnation().0;
    let plan = plan(life);
    #[cfg(feature = "crash-points")]
    if let Some((step, visit)) = plan {
        crash::arm(step, visit);
    }
    let judge = deck.fetch("judge")?;
    let inbox = deck.mailbox()?;
    let mut hello = Message::new();
    hello
        .pack_safer(&[u64::MAX, u64::from(life), u64::from(std::process::id())])
        .pack_mailbox(&inbox.address());
    judge.post(&mut hello)?;
    if inbox.receive::<u64>()? == 0 {
        return Ok(());
    }
    let mut sender = judge.sender()?;
    let posted = deck.fetch("posted")?;
    let mut heard = 2;
    for number in 0.. {
        if plan.is_some() && number == SCRIPT {
            break;
        }
        let mut message = numbered(&deck, 0, number)?;
        if number % 5 == 4 {
            smol::block_on(sender.post_async(message))?;
        } else {
            sender.post(&mut message)?;
        }
        counts.stream(life, 0).store(number + 1, Ordering::Release);
        if number % 3 == 0 {
            let mut message = numbered(&deck, 1, number / 3)?;
            match number % 4 {
                0 => judge.post(&mut message)?,
                1 => smol::block_on(judge.post_async(message))?,
                _ => deck.scope(|scope| scope.post(&judge, message).wait())?,
            }
            counts
                .stream(life, 1)
                .store(number / 3 + 1, Ordering::Release);
        }
        if number % 2 == 0 {
            posted::send(&posted, number / 2)?;
            counts
                .stream(life, 2)
                .store(number / 2 + 1, Ordering::Release);
        }
        while let Some(mut incoming) = inbox.try_retrieve()? {
            ensure!(
                incoming.unpack_express::<u64>()? == heard,
                "rank 1 hears in order"
            );
            heard += 1;
        }
    }
    drop(sender);
    drop(inbox);
    drop((judge, posted, deck));
    kill_process(rustix::process::getpid(), Signal::KILL)?;
    Ok(())
}

/// Message `number` of `stream`: short, eager, long or lent.
fn numbered(deck: &Deck, stream: u64, number: u64) -> anyhow::Result<Message<'static>> {
    let len = [8, 600, 70_000, 5_000][number as usize % 4];
    let payload = vec![number as u8 ^ stream as u8; len];
    let mut message = Message::new();
    message.pack_safer(&[stream, number, checksum(&payload, number)]);
    if number % 4 == 3 {
        let mut lent = deck.lend::<u8>(len)?;
        lent.copy_from_slice(&payload);
        message.pack_lent(lent);
    } else {
        message.pack_safer(&payload[..]);
    }
    Ok(message)
}

/// Rank 2: asks rank 0 for an answer all the time.
fn go_on(deck: &Deck) -> anyhow::Result<()> {
    let inbox = deck.mailbox()?;
    deck.bind("bystander", &inbox)?;
    let mut sender = deck.fetch("echo")?.sender()?;
    let (mut rounds, mut longest) = (0u64, Duration::ZERO);
    loop {
        let asked = Instant::now();
        sender.send(&rounds)?;
        let answer = inbox.receive::<u64>()?;
        longest = longest.max(asked.elapsed());
        if answer == u64::MAX {
            println!("bystander: {rounds} round trips meanwhile, the longest {longest:.1?}");
            return Ok(());
        }
        ensure!(answer == rounds, "the bystander's answers come in order");
        rounds += 1;
    }
}

/// What the echo and the judge tell each other.
const STARTED: u64 = 1;
const STOP: u64 = 2;

fn echo(deck: &Deck, inbox: &Mailbox, state: &AtomicU64) -> anyhow::Result<()> {
    let mut back = deck.fetch("bystander")?.sender()?;
    loop {
        let number = inbox.receive::<u64>()?;
        let _ = state.compare_exchange(0, STARTED, Ordering::AcqRel, Ordering::Acquire);
        if state.load(Ordering::Acquire) == STOP {
            back.send(&u64::MAX)?;
            return Ok(());
        }
        back.send(&number)?;
    }
}

/// Rank 0: kills rank 1 and checks.
fn judge(deck: &Deck, lives: u32, counts: &Counts, path: Path) -> anyhow::Result<()> {
    let inbox = deck.mailbox()?;
    deck.bind("judge", &inbox)?;
    inbox.depend_on(1);
    let mut posted = deck.mailbox()?;
    deck.bind("posted", &posted)?;
    let echo_inbox = deck.mailbox()?;
    deck.bind("echo", &echo_inbox)?;
    let state = AtomicU64::new(0);
    std::thread::scope(|threads| {
        let shared = &state;
        let echoing = threads.spawn(move || echo(deck, &echo_inbox, shared));
        while state.load(Ordering::Acquire) != STARTED && !echoing.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut bench = Bench {
            inbox: &inbox,
            posted: &mut posted,
            counts,
            path,
        };
        let verdict = judge_lives(&mut bench, lives);
        state.store(STOP, Ordering::Release);
        echoing.join().expect("the echo does not panic")?;
        verdict
    })
}

/// What every life is judged with.
struct Bench<'a> {
    inbox: &'a Mailbox,
    /// For the stream of whole messages.
    posted: &'a mut Mailbox,
    counts: &'a Counts,
    path: Path,
}

fn judge_lives(bench: &mut Bench<'_>, lives: u32) -> anyhow::Result<()> {
    let mut random = Rng::with_seed(u64::from(std::process::id()));
    let mut delays = Vec::new();
    let (mut messages, mut kills, mut at_steps) = (0u64, 0u32, BTreeMap::new());
    let mut descriptors = None;
    loop {
        let Some((life, pid, address)) = greet(bench.inbox)? else {
            continue;
        };
        if life >= lives {
            address.send(&0u64)?;
            break;
        }
        // Descriptors when one life and the bystander are linked, as after every life before.
        let open = open_descriptors();
        let first = if life < 2 {
            open
        } else {
            *descriptors.get_or_insert(open)
        };
        ensure!(
            open <= first + 4,
            "life {life}: {open} descriptors are open, and {first} were at the beginning"
        );
        let verdict = judge_life(bench, life, pid, address, &mut random)
            .with_context(|| format!("life {life}, which ends at {:?}", plan(life)))?;
        messages += verdict.messages;
        delays.push((verdict.delay, life));
        kills += 1;
        if let Some((step, _)) = plan(life) {
            *at_steps.entry(step).or_insert(0) += 1;
        }
    }
    delays.sort();
    let (worst, longest) = delays.last().context("no life was judged")?;
    let (median, _) = delays[delays.len() / 2];
    println!(
        "kill: {kills} deaths seen with a link ({} of them in lives planned to end at one of {} steps), {messages} messages of the dead read once each, none \
         torn, none missing; told after {median:.2?} (median), {worst:.2?} (worst, life {longest})",
        at_steps.values().sum::<u32>(),
        at_steps.len(),
    );
    let bound = if bench.path == Path::Hosts {
        HOSTS_BOUND
    } else {
        BOUND
    };
    ensure!(
        *worst <= bound,
        "the worst report took {worst:?}, of life {longest}, which ends at {:?}",
        plan(*longest)
    );
    Ok(())
}

/// Waits for the next life of rank 1 to say hello. `None` if one died on the way.
fn greet(inbox: &Mailbox) -> anyhow::Result<Option<(u32, Pid, MailboxRef)>> {
    let mut incoming = match inbox.retrieve_timeout(Duration::from_secs(20)) {
        Ok(incoming) => incoming,
        Err(Error::Retrieve(RetrieveError::PeerGone(_))) => return Ok(None),
        Err(error) => bail!("no new life of rank 1 came: {error}"),
    };
    let [mark, life, pid] = incoming.unpack_express::<[u64; 3]>()?;
    ensure!(mark == u64::MAX, "the first message of a life is its hello");
    let pid = Pid::from_raw(pid as i32).context("a process number")?;
    Ok(Some((life as u32, pid, incoming.unpack_mailbox()?)))
}

struct Verdict {
    messages: u64,
    delay: Duration,
}

fn judge_life(
    bench: &mut Bench<'_>,
    life: u32,
    pid: Pid,
    address: MailboxRef,
    random: &mut Rng,
) -> anyhow::Result<Verdict> {
    let Bench {
        inbox,
        posted,
        counts,
        path,
    } = bench;
    let victim = pidfd_open(pid, PidfdFlags::empty());
    let (tell_death, death) = mpsc::channel();
    let is_gone = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(move || {
            if let Ok(victim) = &victim {
                let mut watched = [rustix::event::PollFd::new(
                    victim,
                    rustix::event::PollFlags::IN,
                )];
                while rustix::event::poll(&mut watched, None).is_err() {}
            }
            let _ = tell_death.send(Instant::now());
        });
        let pushing = threads.spawn(move || push(&address));
        let is_gone = &is_gone;
        let taking = threads.spawn(move || posted::take(posted, is_gone));
        let kill_at = Instant::now() + Duration::from_micros(random.u64(..8000));
        let kill_at = plan(life).is_none().then_some(kill_at);
        let followed = follow(inbox, pid, kill_at);
        let told = Instant::now();
        is_gone.store(true, Ordering::Release);
        let taken = taking.join().expect("the taker does not panic");
        let (gone, next) = followed?;
        let next = [next[0], next[1], taken?];
        ensure!(
            gone.rank() == 1 && gone.process().incarnation.0 == life,
            "the dead is named: {gone}"
        );
        let died = death.recv().context("the watcher ended")?;
        let (refused, pushed_until) = pushing.join().expect("the pusher does not panic");
        ensure!(
            refused.is_some_and(|gone| gone.rank() == 1),
            "the blocked sender got a typed error"
        );
        for (stream, came) in next.into_iter().enumerate() {
            let committed = counts.stream(life, stream).load(Ordering::Acquire);
            let complete = *path == Path::Hosts || came >= committed;
            ensure!(
                complete && came <= committed + 1,
                "stream {stream}: {committed} were committed and {came} came"
            );
        }
        let delay = told
            .saturating_duration_since(died)
            .max(pushed_until.saturating_duration_since(died));
        Ok(Verdict {
            messages: next.iter().sum(),
            delay,
        })
    })
}

/// Reads the first two streams until rank 1 is gone, and kills it meanwhile, if it does not end by itself: who is gone, and how
/// many came.
fn follow(
    inbox: &Mailbox,
    pid: Pid,
    mut kill_at: Option<Instant>,
) -> anyhow::Result<(Gone, [u64; 2])> {
    let mut next = [0u64; 2];
    loop {
        if kill_at.is_some_and(|at| Instant::now() >= at) {
            kill_process(pid, Signal::KILL)?;
            kill_at = None;
        }
        let most = match kill_at {
            None => Duration::from_secs(10),
            Some(_) => Duration::from_micros(50),
        };
        match inbox.retrieve_timeout(most) {
            Ok(incoming) => {
                let (stream, number) = match read(incoming) {
                    Ok(read) => read,
                    // The rest of a long message died with its sender.
                    Err(error) if is_gone(&error) => continue,
                    Err(error) => return Err(error),
                };
                ensure!(
                    number == next[stream],
                    "stream {stream}: {number} came, {} was next",
                    next[stream]
                );
                next[stream] += 1;
            }
            Err(Error::Retrieve(RetrieveError::PeerGone(gone))) => return Ok((gone, next)),
            Err(Error::Retrieve(RetrieveError::TimedOut { .. })) if kill_at.is_some() => (),
            Err(error) => bail!("the death was not reported: {error}"),
        }
    }
}

/// Sends to rank 1 until that fails: who is gone, and when we knew.
fn push(address: &MailboxRef) -> (Option<Gone>, Instant) {
    let gone = |error: &Error| match error {
        Error::Post(PostError::PeerGone(gone)) => Some(*gone),
        _ => None,
    };
    let mut sender = match address.sender() {
        Ok(sender) => sender,
        Err(error) => return (gone(&error), Instant::now()),
    };
    for number in 1u64.. {
        if let Err(error) = sender.send(&number) {
            if !matches!(error, Error::Post(PostError::Closed { .. })) {
                return (gone(&error), Instant::now());
            }
            // A life that ends in order closes its mailbox before it dies.
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    (None, Instant::now())
}

/// Whether a message could not be read because its sender is gone.
fn is_gone(error: &anyhow::Error) -> bool {
    let gone = |error: &UnpackError| matches!(error, UnpackError::PeerGone(_));
    match error.downcast_ref::<Error>() {
        Some(Error::Unpack(error)) => gone(error),
        _ => error.downcast_ref::<UnpackError>().is_some_and(gone),
    }
}

/// Checks a message of rank 1: its stream and number.
fn read(mut incoming: Incoming<'_>) -> anyhow::Result<(usize, u64)> {
    let [stream, number, sum] = incoming.unpack_express::<[u64; 3]>()?;
    ensure!(stream < 2, "stream {stream}");
    let payload = match incoming.unpack_lent::<u8>() {
        Ok(lent) => lent.to_vec(),
        Err(_) => incoming.unpack_vec::<u8>()?,
    };
    ensure!(
        sum == checksum(&payload, number),
        "stream {stream}: message {number} is torn"
    );
    Ok((stream as usize, number))
}
