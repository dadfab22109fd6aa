//! Messages from each process to each other, all the time.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use mizzen::{Deck, Error, Gone, MailboxRef, PostError, Rank, RetrieveError};

use super::names;
use super::place::{Place, now};

/// How often each sends to each other.
const PAUSE: Duration = Duration::from_millis(5);
/// How long a receiver waits before it looks at other things.
const LOOK: Duration = Duration::from_millis(50);
/// How long those that are left may take to say how many they sent.
const LAST: Duration = Duration::from_secs(30);
/// How long a name may take at the start of the job.
const START: Duration = Duration::from_secs(30);
/// The bit of a number that says that it is the last.
const IS_LAST: u64 = 1 << 63;

/// Those who are gone.
type Lost = Mutex<BTreeMap<Rank, Gone>>;

pub(super) fn talk(place: &Place) -> anyhow::Result<()> {
    let deck = &place.deck;
    let inbox = deck.mailbox()?;
    deck.bind(&format!("inbox {}", deck.rank()), &inbox)?;
    let names = names::Names::bind(place)?;
    let mut others = Vec::new();
    for rank in deck.others() {
        others.push((rank, deck.fetch_timeout(&format!("inbox {rank}"), START)?));
        inbox.depend_on(rank);
    }
    println!("ready {}", std::process::id());
    let lost = Lost::default();
    let (news, told) = std::sync::mpsc::channel();
    std::thread::scope(|threads| {
        let sending = threads.spawn(|| send(place, others, &lost));
        let naming = threads.spawn(|| names.answer(place, told));
        let heard = Listener::new(deck, &lost, news).listen(place, &inbox);
        let heard = heard.inspect_err(|error| println!("rank {}: {error:#}", deck.rank()));
        let sent = sending.join().expect("senders do not panic");
        let named = naming.join().expect("names do not panic");
        heard.and(sent).and(named)
    })?;
    deck.flush().or_else(|error| match error.lost() {
        // It was told of before.
        Some(_) => Ok(()),
        None => Err(error),
    })?;
    Ok(())
}

/// Sends numbers to all who are left until it is over, and then says which was the last.
fn send(place: &Place, mut others: Vec<(Rank, MailboxRef)>, lost: &Lost) -> anyhow::Result<()> {
    let me = u64::from(place.deck.rank().0) << 40;
    for number in 1.. {
        let is_over = place.is_over();
        let word = me | number | if is_over { IS_LAST } else { 0 };
        let mut left = Vec::new();
        for (rank, address) in others {
            match address.send(&word) {
                Ok(()) => left.push((rank, address)),
                Err(Error::Post(PostError::PeerGone(_))) => (),
                Err(error) if lost.lock().is_ok_and(|lost| lost.contains_key(&rank)) => {
                    println!("rank {rank} is gone and says: {error}");
                }
                Err(error) => bail!("rank {rank}: {error}"),
            }
        }
        others = left;
        if is_over {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// What has come, of whom.
struct Listener<'a> {
    lost: &'a Lost,
    news: Sender<Rank>,
    heard: BTreeMap<Rank, Heard>,
    silence: Duration,
}

struct Heard {
    /// The next number.
    next: u64,
    at: Instant,
    has_ended: bool,
}

impl<'a> Listener<'a> {
    fn new(deck: &Deck, lost: &'a Lost, news: Sender<Rank>) -> Self {
        let at = Instant::now();
        let heard = |rank| {
            let (next, has_ended) = (1, false);
            (
                rank,
                Heard {
                    next,
                    at,
                    has_ended,
                },
            )
        };
        Self {
            lost,
            news,
            heard: deck.others().map(heard).collect(),
            silence: Duration::ZERO,
        }
    }

    fn listen(mut self, place: &Place, inbox: &mizzen::Mailbox) -> anyhow::Result<()> {
        let mut over = None;
        while over.is_none() || self.heard.values().any(|heard| !heard.has_ended) {
            if over.is_none() && place.is_over() {
                over = Some(Instant::now());
            }
            let late = over.is_some_and(|over: Instant| over.elapsed() > LAST);
            ensure!(!late, "not all who are left said how many they had sent");
            match inbox.retrieve_timeout(LOOK) {
                Ok(mut incoming) => {
                    let source = incoming.source();
                    let word = incoming.unpack_express::<u64>()?;
                    self.take(source, word)?;
                }
                Err(Error::Retrieve(RetrieveError::TimedOut { .. })) => (),
                Err(Error::Retrieve(RetrieveError::PeerGone(gone))) => self.lose(gone)?,
                Err(Error::Retrieve(RetrieveError::NobodyLeft { .. })) if over.is_some() => break,
                Err(Error::Retrieve(RetrieveError::NobodyLeft { .. })) => {
                    std::thread::sleep(LOOK);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let all: u64 = self.heard.values().map(|heard| heard.next - 1).sum();
        println!("silence {} ms", self.silence.as_millis());
        println!("all of {all} messages came");
        Ok(())
    }

    fn take(&mut self, source: Rank, word: u64) -> anyhow::Result<()> {
        let is_last = word & IS_LAST != 0;
        let word = word & !IS_LAST;
        let (rank, number) = (Rank((word >> 40) as u32), word & ((1 << 40) - 1));
        ensure!(
            rank == source,
            "a message of rank {rank} is said to be of rank {source}"
        );
        let is_lost = self.lost.lock().is_ok_and(|lost| lost.contains_key(&rank));
        ensure!(
            !is_lost,
            "message {number} of rank {rank} came behind the news of its end"
        );
        let Some(heard) = self.heard.get_mut(&rank) else {
            bail!("a message of rank {rank}, which does not exist");
        };
        ensure!(
            number == heard.next && !heard.has_ended,
            "message {number} of rank {rank} came, {} was next",
            heard.next
        );
        heard.next += 1;
        heard.has_ended = is_last;
        self.silence = self.silence.max(heard.at.elapsed());
        heard.at = Instant::now();
        Ok(())
    }

    fn lose(&mut self, gone: Gone) -> anyhow::Result<()> {
        let rank = gone.rank();
        // Who has said its last word may leave before the others have.
        let has_ended = self.heard.get(&rank).is_some_and(|heard| heard.has_ended);
        let what = if has_ended { "done with" } else { "lost" };
        println!("{what} {rank} at {}: {gone}", now());
        let known = self
            .lost
            .lock()
            .ok()
            .and_then(|mut lost| lost.insert(rank, gone));
        ensure!(known.is_none(), "the end of rank {rank} was told twice");
        if let Some(heard) = self.heard.get_mut(&rank) {
            heard.has_ended = true;
        }
        // Nobody listens when it is over.
        let _ = self.news.send(rank);
        Ok(())
    }
}
