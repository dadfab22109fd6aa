//! Posts and retrievals under way: how many, how large, whether a thread is made for them, and what a silent reader stops.
//!
//! `operations under-way COUNT`: so many posts wait for a reader at once, as tasks and in a scope, and so many retrievals for
//! messages.
//! `operations posted COUNT`: rank 0 posts so many receives; the others' messages come in another order.
//! `operations crossing BYTES`: all ranks post so many bytes to all others, and read then.
//! `operations round-trips`: eight bytes to and fro, blocking and awaited.
//! `operations silent`: rank 0 fills what may wait for rank 1, and measures how fast it posts to rank 2 before and after.

mod round_trips;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use mizzen::{Deck, Error, Mailbox, Message, PostError, Receive};
use mizzen_checks::allocated::{self, Counting};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a message that waits counts for, at most, beside its bytes.
const BYTES_EACH: isize = 512;
const LARGE: usize = 30 << 10;

fn main() -> Result<()> {
    let mut options = std::env::args().skip(1);
    let mode = options.next().context("which check?")?;
    let number = options.next().map(|number| number.parse::<usize>());
    let deck = Deck::join()?;
    let outcome = match (mode.as_str(), number) {
        ("under-way", Some(Ok(count))) => retrievals_under_way(&deck, count)
            .and_then(|()| posts_under_way(&deck, count))
            .and_then(|()| scope_under_way(&deck, count)),
        ("posted", Some(Ok(count))) => receives_posted(&deck, count),
        ("crossing", Some(Ok(bytes))) => crossing(&deck, bytes),
        ("round-trips", None) => round_trips::round_trips(&deck),
        ("silent", None) => silent(&deck),
        _ => bail!(
            "operations under-way COUNT | posted COUNT | crossing BYTES | round-trips | silent"
        ),
    };
    if let Err(error) = outcome {
        // Who leaves in order waits for readers, and there may be none.
        eprintln!("operations: {error:#}");
        std::process::exit(1);
    }
    Ok(deck.finish()?)
}

/// Threads of this process.
fn threads() -> Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// A waker that wakes the one thread that polls everything, and counts.
struct Woken(Thread, AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.unpark();
    }
}

type Operation<'a> = Pin<Box<dyn Future<Output = mizzen::Result<()>> + 'a>>;

/// Polls all of them until they are done.
fn complete(mut operations: Vec<Operation<'_>>) -> Result<usize> {
    let woken = Arc::new(Woken(std::thread::current(), AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    loop {
        let mut failed = None;
        operations.retain_mut(|operation| match operation.as_mut().poll(&mut context) {
            Poll::Pending => true,
            Poll::Ready(outcome) => {
                failed = failed.take().or(outcome.err());
                false
            }
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        if operations.is_empty() {
            return Ok(woken.1.load(Ordering::Relaxed));
        }
        std::thread::park_timeout(Duration::from_secs(10));
    }
}

fn large() -> Message<'static> {
    let mut message = Message::new();
    message.pack_safer(&vec![7u8; LARGE][..]);
    message
}

fn number(number: usize) -> Message<'static> {
    let mut message = Message::new();
    message.pack_safer(&(number as u64));
    message
}

/// Posts the same until no more may wait for a mailbox: how often.
fn fill(inbox: &mizzen::MailboxRef, message: impl Fn() -> Message<'static>) -> Result<u64> {
    for count in 0.. {
        match inbox.try_post(&mut message()) {
            Ok(()) => (),
            Err(Error::Post(PostError::Busy { .. })) => return Ok(count),
            Err(error) => return Err(error.into()),
        }
    }
    bail!("nothing stops the poster")
}

/// So many posts wait for a reader.
fn posts_under_way(deck: &Deck, count: usize) -> Result<()> {
    if deck.rank() == 1 {
        let inbox = deck.mailbox()?;
        deck.bind("inbox", &inbox)?;
        let gate = deck.mailbox()?;
        deck.bind("gate", &gate)?;
        let [large, small, all] = gate.receive::<[u64; 3]>()?;
        for _ in 0..large + small {
            let len = inbox.receive_vec::<u8>()?.len();
            ensure!(len == LARGE || len == 8, "{len} bytes");
        }
        let mut seen = vec![false; all as usize];
        for _ in 0..all {
            seen[inbox.receive::<u64>()? as usize] = true;
        }
        ensure!(seen.iter().all(|seen| *seen), "all have come");
        return Ok(());
    }
    if deck.rank() != 0 {
        return Ok(());
    }
    let (inbox, gate) = (deck.fetch("inbox")?, deck.fetch("gate")?);
    let filled = fill_up(&inbox)?;
    let before = (threads()?, allocated::bytes());
    let mut context = Context::from_waker(Waker::noop());
    let mut posts: Vec<Operation<'_>> = Vec::with_capacity(count);
    let mut all = 0;
    // Now and then there is room for one after all: the reader's process makes some.
    while posts.len() < count {
        let mut post: Operation<'_> = Box::pin(inbox.post_async(number(all)));
        match post.as_mut().poll(&mut context) {
            Poll::Pending => posts.push(post),
            Poll::Ready(outcome) => outcome?,
        }
        all += 1;
    }
    let during = (threads()?, allocated::bytes());
    let bytes = (during.1 - before.1) / count as isize;
    gate.send(&[filled[0], filled[1], all as u64])?;
    let woken = complete(posts)?;
    let after = threads()?;
    println!(
        "under way: {count} posts waited for a reader behind {} others: {bytes} B each, {} threads made, {woken} wake-ups",
        filled[0] + filled[1],
        during.0.max(after) - before.0
    );
    ensure!(bytes <= BYTES_EACH + 8, "a post under way takes {bytes} B");
    ensure!(
        during.0 == before.0 && after == before.0,
        "a thread was made"
    );
    Ok(())
}

/// Posts as much as goes without the reader reading: how many large messages, and how many short ones.
fn fill_up(inbox: &mizzen::MailboxRef) -> Result<[u64; 2]> {
    let mut filled = [0, 0];
    loop {
        let more = [fill(inbox, large)?, fill(inbox, || number(0))?];
        filled = [filled[0] + more[0], filled[1] + more[1]];
        if more == [0, 0] {
            return Ok(filled);
        }
        // The reader's process makes room for some more.
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// So many posts of a scope wait for a reader, which finds all of them in their order.
fn scope_under_way(deck: &Deck, count: usize) -> Result<()> {
    if deck.rank() == 1 {
        let inbox = deck.mailbox()?;
        deck.bind("scope's inbox", &inbox)?;
        let gate = deck.mailbox()?;
        deck.bind("scope's gate", &gate)?;
        let [filled, all] = gate.receive::<[u64; 2]>()?;
        for _ in 0..filled {
            inbox.retrieve()?;
        }
        for number in 0..all {
            ensure!(inbox.receive::<u64>()? == number, "they keep their order");
        }
        return Ok(());
    }
    if deck.rank() != 0 {
        return Ok(());
    }
    let (inbox, gate) = (deck.fetch("scope's inbox")?, deck.fetch("scope's gate")?);
    let filled = fill_up(&inbox)?.iter().sum::<u64>();
    // Now and then there is room for one after all: the reader's process makes some.
    let numbers: Vec<u64> = (0..count as u64 + 100_000).collect();
    let before = threads()?;
    let (waited, during) = deck.scope(|scope| {
        let (mut posts, mut waiting) = (Vec::with_capacity(count), 0);
        for number in &numbers {
            let mut message = Message::new();
            message.pack_cheaper(number);
            let post = scope.post(&inbox, message);
            waiting += usize::from(!post.is_done());
            posts.push(post);
            if waiting == count {
                break;
            }
        }
        let waited = posts.iter().filter(|post| !post.is_done()).count();
        let during = threads()?;
        gate.send(&[filled, posts.len() as u64])?;
        posts.into_iter().try_for_each(mizzen::Pending::wait)?;
        anyhow::Ok((waited, during))
    })?;
    let made = during.max(threads()?) - before;
    println!(
        "under way: {waited} of {count} posts of a scope waited for a reader behind {filled} others: {made} threads made"
    );
    ensure!(waited > count / 2, "most of them find no room");
    ensure!(made == 0, "a thread was made");
    Ok(())
}

/// So many retrievals wait, each for a message to a mailbox of its own.
fn retrievals_under_way(deck: &Deck, count: usize) -> Result<()> {
    let gate = deck.mailbox()?;
    if deck.rank() == 1 {
        deck.bind("addresses", &gate)?;
        let theirs = gate.receive_value::<Vec<mizzen::MailboxRef>>()?;
        for (index, inbox) in theirs.iter().enumerate().rev() {
            inbox.send(&(index as u64))?;
        }
        return Ok(());
    }
    if deck.rank() != 0 {
        return Ok(());
    }
    let gate = deck.fetch("addresses")?;
    let mut context = Context::from_waker(Waker::noop());
    let mut inboxes = (0..count)
        .map(|_| deck.mailbox())
        .collect::<mizzen::Result<Vec<Mailbox>>>()?;
    let addresses: Vec<_> = inboxes.iter().map(Mailbox::address).collect();
    let before = (threads()?, allocated::bytes());
    let mut retrievals: Vec<Operation<'_>> = inboxes
        .iter_mut()
        .enumerate()
        .map(|(index, inbox)| {
            Box::pin(async move {
                let got: u64 = inbox.retrieve_async().await?.unpack_express()?;
                assert_eq!(got, index as u64);
                Ok(())
            }) as Operation<'_>
        })
        .collect();
    retrievals.retain_mut(|retrieval| retrieval.as_mut().poll(&mut context).is_pending());
    ensure!(retrievals.len() == count, "all wait");
    let during = (threads()?, allocated::bytes());
    let bytes = (during.1 - before.1) / count as isize;
    gate.send_value(&addresses)?;
    complete(retrievals)?;
    println!("under way: {count} retrievals waited: {bytes} B each beside their mailboxes");
    ensure!(bytes <= BYTES_EACH, "a retrieval under way takes {bytes} B");
    ensure!(during.0 <= before.0 + 1, "a thread was made for each");
    Ok(())
}

/// So many receives are posted, by turns from each other rank, before anything comes. Each rank sends all of its messages at once,
/// so that they come in another order.
fn receives_posted(deck: &Deck, count: usize) -> Result<()> {
    let others = deck.size() as usize - 1;
    let each = count / others;
    if deck.rank() != 0 {
        let gate = deck.mailbox()?;
        deck.bind(&format!("gate {}", deck.rank()), &gate)?;
        let inbox = deck.fetch("posted")?;
        gate.receive::<u8>()?;
        for number in 0..each {
            inbox.send(&[number as u64, u64::from(deck.rank().0)])?;
        }
        // Who leaves ends the receives that name it.
        gate.receive::<u8>()?;
        return Ok(());
    }
    let inbox = deck.mailbox()?;
    deck.bind("posted", &inbox)?;
    let gates = deck
        .others()
        .map(|rank| deck.fetch(&format!("gate {rank}")))
        .collect::<mizzen::Result<Vec<_>>>()?;
    let memory: Vec<Vec<u64>> = (0..each * others).map(|_| vec![0; 2]).collect();
    let before = (threads()?, allocated::bytes());
    let mut receives = Vec::with_capacity(memory.len());
    for (number, memory) in memory.into_iter().enumerate() {
        receives.push(inbox.post_receive_from(1 + (number % others) as u32, memory)?);
    }
    // Each has a waker left; the first one has the reactor started.
    let mut context = Context::from_waker(Waker::noop());
    let is_done = |receive: &mut Receive<u64>| Pin::new(receive).poll(&mut context).is_ready();
    ensure!(!receives.iter_mut().any(is_done), "nothing was sent");
    let during = (threads()?, allocated::bytes());
    let bytes = (during.1 - before.1) / receives.len() as isize;
    let began = Instant::now();
    gates.iter().try_for_each(|gate| gate.send(&0u8))?;
    let operations = receives.into_iter().enumerate().map(|(number, receive)| {
        Box::pin(async move {
            let received = receive.await?;
            let rank = 1 + number % others;
            assert_eq!(received[..], [(number / others) as u64, rank as u64]);
            assert_eq!(received.source().0 as usize, rank);
            Ok(())
        }) as Operation<'_>
    });
    for operation in operations.rev() {
        complete(vec![operation])?;
    }
    let took = began.elapsed();
    let after = threads()?;
    println!(
        "posted: {} receives waited for {others} ranks: {bytes} B each beside their memory, {} threads made; all done in {:.0} ms",
        each * others,
        during.0.max(after) - before.0,
        took.as_secs_f64() * 1e3
    );
    gates.iter().try_for_each(|gate| gate.send(&0u8))?;
    ensure!(bytes <= BYTES_EACH, "a posted receive takes {bytes} B");
    ensure!(
        during.0.max(after) <= before.0 + 1,
        "a thread was made for each"
    );
    Ok(())
}

fn crossing(deck: &Deck, bytes: usize) -> Result<()> {
    let inbox = deck.mailbox()?;
    deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
    let others = deck
        .others()
        .map(|rank| deck.fetch(&format!("inbox {rank}")))
        .collect::<mizzen::Result<Vec<_>>>()?;
    let message = vec![deck.rank().0 as u8; bytes];
    let began = Instant::now();
    others
        .iter()
        .try_for_each(|other| other.send(&message[..]))?;
    let posted = began.elapsed();
    for _ in &others {
        let mut incoming = inbox.retrieve()?;
        let from = incoming.source().0 as u8;
        let got = incoming.unpack_vec::<u8>()?;
        ensure!(got == vec![from; bytes], "the bytes of rank {from}");
    }
    if deck.rank() == 0 {
        println!(
            "crossing: {} ranks posted {bytes} B to all others before they read; rank 0 took {:.1} ms to post, {:.1} ms in all",
            deck.size(),
            posted.as_secs_f64() * 1e3,
            began.elapsed().as_secs_f64() * 1e3
        );
    }
    Ok(())
}

/// Messages a second to a reader that answers each batch.
fn rate(inbox: &mizzen::MailboxRef, answers: &Mailbox) -> Result<f64> {
    const BATCHES: usize = 200;
    const BATCH: u64 = 100;
    let began = Instant::now();
    for _ in 0..BATCHES {
        for number in 0..BATCH {
            inbox.send(&number)?;
        }
        answers.receive::<u8>()?;
    }
    Ok((BATCHES as u64 * BATCH) as f64 / began.elapsed().as_secs_f64())
}

fn silent(deck: &Deck) -> Result<()> {
    const ROUNDS: usize = 11;
    /// What the poster left behind goes on as fast as it is read, although the poster sleeps: 64 MiB in a second or less. Not four
    /// messages in each of the reactor's longest naps, which would take ten.
    const READ_WITHIN: Duration = Duration::from_secs(5);
    let inbox = deck.mailbox()?;
    deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
    let gate = deck.mailbox()?;
    deck.bind(&format!("gate {}", deck.rank()), &gate)?;
    match deck.rank().0 {
        0 => {
            let (silent, other) = (deck.fetch("inbox 1")?, deck.fetch("inbox 2")?);
            let (mut ratios, mut readings) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                let before = rate(&other, &inbox)?;
                let filled = fill(&silent, large)?;
                let after = rate(&other, &inbox)?;
                ratios.push(after / before);
                let began = Instant::now();
                deck.fetch("gate 1")?.send(&filled)?;
                // The silent one has read everything.
                gate.receive::<u8>()?;
                readings.push(began.elapsed());
            }
            ratios.sort_by(f64::total_cmp);
            readings.sort();
            let (middle, reading) = (ratios[ROUNDS / 2], readings[ROUNDS / 2]);
            println!(
                "silent: with its allowance used up by one reader, posts to another keep {middle:.2} of their rate ({:.2} to {:.2}); what it had left unread took it {reading:.2?}",
                ratios[ROUNDS / 4],
                ratios[ROUNDS * 3 / 4]
            );
            deck.fetch("gate 1")?.send(&u64::MAX)?;
            other.send(&u64::MAX)?;
            // A busy machine keeps this; a poster that waits does not.
            ensure!(middle > 0.5, "a silent reader slows others down");
            ensure!(
                reading < READ_WITHIN,
                "what is left behind goes on too slowly"
            );
        }
        1 => loop {
            let filled = gate.receive::<u64>()?;
            if filled == u64::MAX {
                break;
            }
            for _ in 0..filled {
                inbox.retrieve()?;
            }
            deck.fetch("gate 0")?.send(&0u8)?;
        },
        2 => {
            let answers = deck.fetch("inbox 0")?;
            let mut count = 0;
            while inbox.receive::<u64>()? != u64::MAX {
                count += 1;
                if count % 100 == 0 {
                    answers.send(&0u8)?;
                }
            }
        }
        _ => (),
    }
    Ok(())
}
