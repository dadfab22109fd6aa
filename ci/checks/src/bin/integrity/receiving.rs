//! The receiver: takes messages in every way there is, and checks each.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use fastrand::Rng;
use mizzen::{Deck, Error, Incoming, Mailbox, Receive, RetrieveError, UnpackError};
use mizzen_checks::{checksum, peak_memory_mib};

use super::plan::{HEADER, LONGEST, Plan, THREADS};

/// The most posted receives at a time.
const POSTED: u64 = 16;

pub(super) fn receive(deck: &Deck, pool: &[u8], senders: u64, each: u64) -> anyhow::Result<()> {
    let mut inbox = deck.mailbox()?;
    deck.bind("integrity", &inbox)?;
    let mut judge = Judge::new(pool, senders, each);
    let mut turns = Rng::with_seed(7);
    let mut ways = [0u64; 6];
    let started = Instant::now();
    while judge.left > 0 {
        // One rank that has something to send still.
        let some = |random: &mut Rng| judge.rank_with_some(random.u64(..senders));
        let way = match turns.u8(..64) {
            0..4 => {
                judge.take(smol::block_on(inbox.retrieve_async())?)?;
                1
            }
            4..8 => {
                judge.take_or_give_up(&mut inbox)?;
                2
            }
            8..10 => {
                judge.take(inbox.retrieve_from(some(&mut turns))?)?;
                3
            }
            10 => {
                let count = turns.u64(1..=POSTED).min(judge.left);
                judge.take_posted(&inbox, None, count)?;
                4
            }
            11 => {
                let rank = some(&mut turns);
                let count = turns.u64(1..=POSTED).min(judge.left_of(rank));
                judge.take_posted(&inbox, Some(rank), count)?;
                5
            }
            _ => {
                judge.take(inbox.retrieve()?)?;
                0
            }
        };
        ways[way] += 1;
    }
    let extra = inbox.retrieve_timeout(Duration::from_millis(200));
    ensure!(
        matches!(extra, Err(Error::Retrieve(RetrieveError::TimedOut { .. }))),
        "a message too many came: {extra:?}"
    );
    let seconds = started.elapsed().as_secs_f64() - 0.2;
    let (messages, bytes) = (senders * each, judge.bytes);
    println!(
        "integrity: {messages} messages of {senders} senders, {} at most 56 B, mean {} B: 0 lost, 0 doubled, 0 out of order, \
         0 torn; {:.2} million/s, {:.2} GB/s; peak memory of the receiver {} MiB",
        judge.short,
        bytes / messages,
        messages as f64 / seconds / 1e6,
        bytes as f64 / seconds / 1e9,
        peak_memory_mib(),
    );
    let [
        plain,
        awaited,
        given_up,
        of_a_rank,
        posted,
        posted_of_a_rank,
    ] = ways;
    println!(
        "taken plainly {plain} times, awaited {awaited}, awaited and given up {given_up}, of a rank {of_a_rank}, by up to {POSTED} \
         posted receives {posted}, of a rank {posted_of_a_rank}"
    );
    Ok(())
}

/// Knows what comes next of each sender.
struct Judge<'a> {
    pool: &'a [u8],
    plans: Vec<Rng>,
    next: Vec<u64>,
    each: u64,
    left: u64,
    bytes: u64,
    short: u64,
    scratch: Vec<u8>,
    /// Memory for posted receives.
    memory: Vec<Vec<u8>>,
}

impl<'a> Judge<'a> {
    fn new(pool: &'a [u8], senders: u64, each: u64) -> Self {
        Self {
            pool,
            plans: (0..senders).map(Rng::with_seed).collect(),
            next: vec![0; senders as usize],
            each,
            left: senders * each,
            bytes: 0,
            short: 0,
            scratch: vec![0; LONGEST],
            memory: vec![vec![0; LONGEST]; POSTED as usize],
        }
    }

    /// How many messages of a rank have not come.
    fn left_of(&self, rank: u32) -> u64 {
        let first = u64::from(rank - 1) * THREADS;
        let of_sender = |sender: u64| self.each - self.next[sender as usize];
        (first..first + THREADS).map(of_sender).sum()
    }

    /// The rank of a sender, or the next that has something to send still.
    fn rank_with_some(&self, sender: u64) -> u32 {
        let senders = self.next.len() as u64;
        let rank = |sender: u64| (sender % senders / THREADS) as u32 + 1;
        let mut ranks = (sender..sender + senders).map(rank);
        ranks
            .find(|rank| self.left_of(*rank) > 0)
            .expect("a message is left")
    }

    fn take(&mut self, incoming: Incoming<'_>) -> anyhow::Result<()> {
        let mut scratch = core::mem::take(&mut self.scratch);
        let (header, len) = unpack(incoming, &mut scratch)?;
        self.check(header, &scratch[..len])?;
        self.scratch = scratch;
        Ok(())
    }

    /// Begins to await a message, gives up if none is there, and takes it plainly then. It may be one that the first attempt has
    /// begun to open: no posted receive would get that.
    fn take_or_give_up(&mut self, inbox: &mut Mailbox) -> anyhow::Result<()> {
        let mut context = Context::from_waker(Waker::noop());
        let polled = pin!(inbox.retrieve_async()).poll(&mut context);
        match polled {
            Poll::Ready(incoming) => self.take(incoming?),
            Poll::Pending => self.take(inbox.retrieve()?),
        }
    }

    /// Posts receives, takes one or the other back, and waits for the rest.
    fn take_posted(
        &mut self,
        inbox: &Mailbox,
        rank: Option<u32>,
        count: u64,
    ) -> anyhow::Result<()> {
        let mut posted: Vec<Receive<u8>> = Vec::new();
        for _ in 0..count {
            let memory = self.memory.pop().context("memory for a receive")?;
            posted.push(match rank {
                None => inbox.post_receive(memory),
                Some(rank) => inbox.post_receive_from(rank, memory)?,
            });
        }
        let last = (count % 3 == 0).then(|| posted.pop()).flatten();
        if let Some(last) = last {
            match last.cancel() {
                Ok(memory) => self.memory.push(memory),
                Err(receive) => posted.push(receive),
            }
        }
        for mut receive in posted {
            match receive.wait() {
                Ok(received) => {
                    let rank = received.source().0;
                    let (header, payload) = split(&received)?;
                    let sender = (header[0] >> 40) as u32;
                    ensure!(
                        u64::from(rank - 1) == u64::from(sender) / THREADS,
                        "a message of sender {sender} is said to be of rank {rank}"
                    );
                    self.check(header, payload)?;
                    self.memory.push(received.into_memory());
                }
                // It is of several pieces, or lent: nobody else gets it before we do.
                Err(Error::Unpack(UnpackError::Several | UnpackError::Lent)) => {
                    let Ok(memory) = receive.cancel() else {
                        bail!("a receive that failed keeps its memory");
                    };
                    self.memory.push(memory);
                    self.take(inbox.retrieve()?)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn check(&mut self, header: [u64; 2], payload: &[u8]) -> anyhow::Result<()> {
        let (sender, number) = (header[0] >> 40, header[0] & ((1 << 40) - 1));
        let expected = self
            .next
            .get_mut(sender as usize)
            .context("a sender that does not exist")?;
        ensure!(
            number == *expected,
            "sender {sender}: message {number} came, {expected} was next"
        );
        *expected += 1;
        let plan = Plan::new(&mut self.plans[sender as usize]);
        let len = payload.len();
        ensure!(
            len == plan.len,
            "sender {sender}: message {number} has {len} bytes, not {}",
            plan.len
        );
        ensure!(
            header[1] == checksum(payload, header[0]),
            "sender {sender}: message {number} is torn"
        );
        debug_assert_eq!(payload, &self.pool[plan.start..plan.start + len]);
        self.left -= 1;
        self.bytes += (len + HEADER) as u64;
        self.short += u64::from(len + HEADER <= 56);
        Ok(())
    }
}

/// The header of a message of one piece, and its payload.
fn split(whole: &[u8]) -> anyhow::Result<([u64; 2], &[u8])> {
    let (header, payload) = whole
        .split_first_chunk::<HEADER>()
        .with_context(|| format!("a message of {} bytes", whole.len()))?;
    let (first, second) = header.split_at(8);
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
    Ok(([word(first), word(second)], payload))
}

/// Takes a message of any of the three kinds apart: its header, and how many bytes of payload are in `scratch`.
fn unpack(mut incoming: Incoming<'_>, scratch: &mut [u8]) -> anyhow::Result<([u64; 2], usize)> {
    if incoming.pieces_left() == 1 {
        let whole = incoming.next_len().context("a message without pieces")?;
        ensure!(
            (HEADER..=LONGEST).contains(&whole),
            "a message of {whole} bytes"
        );
        incoming.unpack_express_into(&mut scratch[..whole])?;
        let (header, payload) = split(&scratch[..whole])?;
        let len = payload.len();
        scratch.copy_within(HEADER..whole, 0);
        return Ok((header, len));
    }
    let header = incoming.unpack_express::<[u64; 2]>()?;
    match incoming.unpack_lent::<u8>() {
        Ok(lent) => {
            ensure!(lent.len() <= LONGEST, "a buffer of {} bytes", lent.len());
            scratch[..lent.len()].copy_from_slice(&lent);
            Ok((header, lent.len()))
        }
        Err(Error::Unpack(UnpackError::NotLent)) => {
            let len = incoming
                .next_len()
                .context("a message of one piece too few")?;
            ensure!(len <= LONGEST, "a piece of {len} bytes");
            incoming.unpack_express_into(&mut scratch[..len])?;
            Ok((header, len))
        }
        Err(error) => Err(error.into()),
    }
}
