//! The threads that run items, and the calling thread, which fetches more, takes results and hears of losses.

use core::ops::ControlFlow;
use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_bytes::ByteBuf;
use tracing::{debug, debug_span};

use super::board::{Arrived, Board, Foreign, Work, encoding};
use super::lending::{Answer, Ask, Lender, MapId, NoResult, SERVICE};
use super::progress::{Listener, Teller};
use super::report::{PoolError, Report};
use super::settings::Settings;
use crate::deck::Deck;
use crate::rpc::{CallError, Client};
use mizzen_core::service::{deadline_in, decode, lock, panic_message};
use mizzen_core::{
    ArenaError, Error, Gone, Incarnation, Mailbox, PostError, ProcessId, Rank, ReachError,
    RetrieveError,
};

/// How much work a process takes over at once. Long beside the time that it takes to get it, also from a busy process that must
/// first be given a core; short beside the time at the end in which others have nothing to do.
const PORTION: Duration = Duration::from_millis(10);
/// How often the calling thread looks while there is work enough: it takes a core from those that work. When there is little, it
/// is called.
const TICK: Duration = Duration::from_millis(10);
/// How long to wait for the others when none of them has anything: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_micros(200);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);
/// How long to wait for the service of a process that has not begun.
const PATIENCE: Duration = Duration::from_millis(20);
/// How often to try to send a result to a process that is there and does not serve: five seconds in all.
const TRIES: u32 = 250;
/// How often to ask such a process again, if it is long in coming; and one that was lost.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// Runs one map.
pub(super) fn run<T, R>(
    deck: &Deck,
    settings: Settings<'_>,
    items: impl IntoIterator<Item = T>,
    function: &(impl Fn(T) -> R + Sync),
    take: impl FnMut(usize, R) -> ControlFlow<()>,
) -> Result<Report, Error>
where
    T: Serialize + DeserializeOwned + Send + 'static,
    R: Serialize + DeserializeOwned + Send + 'static,
{
    let started = Instant::now();
    let board = Arc::new(Board::new(items, deck.process.clone()));
    let registry = super::lending::of(deck)?;
    let map = registry.open(&settings.name, Arc::clone(&board) as Arc<dyn Lender>);
    let span =
        debug_span!(parent: deck.process.span(), "map", name = map.name, number = map.number);
    let _inside = span.enter();
    debug!(
        items = board.left(),
        threads = settings.threads,
        "map begun"
    );
    let bench = Bench {
        deck,
        board: &board,
        map: &map,
        function,
        results: Mutex::default(),
        cost: Cost::default(),
    };
    let outcome = std::thread::scope(|threads| {
        for _ in 0..settings.threads {
            threads.spawn(|| bench.work());
        }
        // Threads end with the map, also with one that failed, and if `take` panics.
        let mut end = End(Some(&*board));
        let outcome = Caller::new(&bench, settings).and_then(|mut caller| {
            let outcome = caller.attend(take);
            caller.teller.end(board.tally());
            outcome
        });
        if outcome.is_ok() {
            end.0 = None;
            board.end();
        }
        outcome
    });
    registry.close(&map);
    outcome?;
    let mut report = board.report();
    report.items = report.by_rank.values().sum();
    report.time = started.elapsed();
    debug!("map ended: {report}");
    Ok(report)
}

/// Ends a map that is not over.
struct End<'a, T, R>(Option<&'a Board<T, R>>);

impl<T, R> Drop for End<'_, T, R> {
    fn drop(&mut self) {
        if let Some(board) = self.0 {
            board.cancel();
            board.end();
        }
    }
}

/// What the threads of one map share.
struct Bench<'a, T, R, F> {
    deck: &'a Deck,
    board: &'a Board<T, R>,
    map: &'a MapId,
    function: &'a F,
    /// The ways by which results go to their owners.
    results: Mutex<HashMap<Rank, Client<Ask, Answer>>>,
    cost: Cost,
}

impl<T, R, F> Bench<'_, T, R, F>
where
    T: Serialize + DeserializeOwned + Send,
    R: Serialize + DeserializeOwned + Send,
    F: Fn(T) -> R,
{
    /// Who tells `listener` how far it is.
    fn teller<'l>(&self, listener: Listener<'l>) -> Teller<'l> {
        Teller::new(listener, &self.deck.process, self.map)
    }

    /// One thread that runs items.
    fn work(&self) {
        let me = self.deck.rank();
        loop {
            match self.board.next() {
                Work::Over => return,
                Work::Own(index, item) => {
                    let result = match self.run(item) {
                        Ok(result) => Arrived::Here(result),
                        Err(message) => Arrived::Failed(PoolError::Panicked {
                            index,
                            rank: me,
                            message,
                        }),
                    };
                    self.board.finish(index, me, result);
                }
                Work::Foreign(foreign) => self.run_foreign(foreign),
            }
        }
    }

    fn run(&self, item: T) -> Result<R, String> {
        let started = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| (self.function)(item)));
        self.cost.note(started.elapsed());
        result.map_err(|panic: Box<dyn Any + Send>| panic_message(&*panic))
    }

    fn run_foreign(&self, foreign: Foreign) {
        let Foreign { owner, index, item } = foreign;
        // Types that panic while they are read or written cost the item, not the thread.
        let result = catch_unwind(AssertUnwindSafe(|| self.run_packed(&item)));
        let result = result.unwrap_or_else(|panic| Err(panic_message(&*panic)));
        let ask = |result| Ask::Result {
            map: self.map.clone(),
            owner: owner.incarnation.0,
            rank: self.deck.rank().0,
            index,
            result,
        };
        let mut sent = self.send(owner, &ask(result.map_err(NoResult::Panicked)));
        if let Sent::TooLong { bytes, limit } = sent {
            sent = self.send(owner, &ask(Err(NoResult::TooLong { bytes, limit })));
        }
        if sent != Sent::Yes {
            // Who is gone, or has ended its map early, does not want the rest either.
            self.board.forget(owner.rank);
        }
        self.board.note_helped();
    }

    fn run_packed(&self, item: &[u8]) -> Result<ByteBuf, String> {
        let item = decode(&self.deck.process, item);
        let item = item.map_err(|error| format!("it cannot be read there: {error}"))?;
        let bytes = postcard::to_allocvec(&self.run(item)?);
        bytes
            .map(ByteBuf::from)
            .map_err(|error| format!("its result cannot be sent: {error}"))
    }

    /// Sends a result, again and again unless its owner is gone or has ended its map, or it can never be sent.
    fn send(&self, owner: ProcessId, result: &Ask) -> Sent {
        for _ in 0..TRIES {
            let sent = self.try_send(owner.rank, result);
            if sent != Sent::No || self.deck.process.is_life_gone(owner) {
                return sent;
            }
        }
        Sent::No
    }

    fn try_send(&self, owner: Rank, result: &Ask) -> Sent {
        let mut results = lock(&self.results);
        let client = match results.remove(&owner) {
            Some(client) => Ok(client),
            None => self.deck.client_at(owner, SERVICE),
        };
        let Ok(mut client) = client else {
            return Sent::No;
        };
        client.set_timeout(PATIENCE);
        match client.notify(result) {
            Ok(()) => {
                results.insert(owner, client);
                Sent::Yes
            }
            Err(error) => Sent::failed(&error),
        }
    }
}

/// What came of an attempt to send a result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    Yes,
    No,
    /// It is longer than a message may be, and always will be.
    TooLong {
        bytes: u64,
        limit: u64,
    },
}

impl Sent {
    fn failed(error: &Error) -> Self {
        if let Some(CallError::Post { cause, .. }) = error.service() {
            if let Error::Post(PostError::Memory(ArenaError::TooLong { bytes, limit })) = &**cause {
                let (bytes, limit) = (*bytes as u64, *limit as u64);
                return Self::TooLong { bytes, limit };
            }
        }
        Self::No
    }
}

/// What an item takes here, about.
#[derive(Default)]
struct Cost {
    nanoseconds: AtomicU64,
}

impl Cost {
    fn note(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
        let known = self.nanoseconds.load(Ordering::Relaxed);
        let next = match known {
            0 => took,
            // Threads that overwrite each other's values do no harm.
            known => known - known / 16 + took / 16,
        };
        self.nanoseconds.store(next.max(1), Ordering::Relaxed);
    }

    /// How many items so many threads run in the time of a portion.
    fn portion(&self, threads: usize) -> usize {
        match self.nanoseconds.load(Ordering::Relaxed) {
            0 => threads,
            cost => {
                let each = (PORTION.as_nanos() as u64 / cost).clamp(1, 1000);
                each as usize * threads
            }
        }
    }
}

/// What is known of another process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Other {
    /// It may have items.
    Open,
    /// It has not begun; ask again then, and the next time after twice as long.
    NotYet {
        again: Instant,
        pause: Duration,
    },
    Finished,
    /// It died, and may have been started again; ask again then. Nobody waits for that.
    Lost(Instant),
    /// It left.
    Gone,
}

impl Other {
    /// It has not begun. It may in a moment, if all leave a barrier together; or in minutes.
    fn not_yet(pause: Duration) -> Self {
        Self::NotYet {
            again: Instant::now() + pause,
            pause,
        }
    }

    /// What is to be done about one that is gone.
    fn without(gone: Gone) -> Self {
        if gone.is_failure() {
            Self::Lost(Instant::now() + ASK_AGAIN)
        } else {
            Self::Gone
        }
    }
}

/// The calling thread.
struct Caller<'a, T, R, F> {
    bench: &'a Bench<'a, T, R, F>,
    threads: usize,
    /// Until when to help others.
    until: Option<Instant>,
    teller: Teller<'a>,
    all: usize,
    /// Tells of processes that are gone.
    watch: Mailbox,
    others: Vec<(Rank, Other)>,
    clients: HashMap<Rank, Client<Ask, Answer>>,
    /// Who had something the last time.
    next: usize,
    pause: Duration,
    /// Call when fewer items than this wait here.
    low: usize,
}

impl<'a, T, R, F> Caller<'a, T, R, F>
where
    T: Serialize + DeserializeOwned + Send,
    R: Serialize + DeserializeOwned + Send,
    F: Fn(T) -> R,
{
    fn new(bench: &'a Bench<'a, T, R, F>, settings: Settings<'a>) -> Result<Self, Error> {
        let (me, size) = (bench.deck.rank().0, bench.deck.size());
        let watch = bench.deck.mailbox()?;
        // Everybody begins with another one.
        let others: Vec<_> = (1..size)
            .map(|step| (Rank((me + step) % size), Other::Open))
            .collect();
        for (rank, _) in &others {
            watch.depend_on(*rank);
        }
        Ok(Self {
            bench,
            threads: settings.threads,
            until: settings.help_for.and_then(deadline_in),
            teller: bench.teller(settings.listener),
            all: bench.board.left(),
            watch,
            others,
            clients: HashMap::new(),
            next: 0,
            pause: FIRST_PAUSE,
            low: 0,
        })
    }

    /// Takes results, and sees to it that the threads have work, until there is nothing more to do.
    fn attend(&mut self, mut take: impl FnMut(usize, R) -> ControlFlow<()>) -> Result<(), Error> {
        let board = self.bench.board;
        loop {
            self.hear_of_losses();
            let fetched = self.fetch();
            let patience = if fetched { Duration::ZERO } else { self.pause };
            for (index, arrived) in board.arrived(patience, self.low) {
                let result = match arrived {
                    Arrived::Here(result) => result,
                    Arrived::Packed(bytes) => decode(&self.bench.deck.process, &bytes)
                        .map_err(|error| encoding(index, &error))?,
                    Arrived::Failed(error) => return Err(error.into()),
                };
                if take(index, result).is_break() {
                    board.cancel();
                    break;
                }
            }
            let left = board.left();
            if self.teller.is_due() {
                self.teller.tell(board.tally());
            }
            if left == 0 && board.is_settled() && board.waiting_here() == 0 && self.may_go() {
                return Ok(());
            }
        }
    }

    /// Whether nobody needs this process any more. One that has no items waits for those who have not begun: they may have
    /// some.
    fn may_go(&self) -> bool {
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return true;
        }
        self.others.iter().all(|(_, other)| match other {
            Other::Finished | Other::Lost(_) | Other::Gone => true,
            Other::NotYet { .. } => self.all > 0,
            Other::Open => false,
        })
    }

    /// What the dead had is run again.
    fn hear_of_losses(&mut self) {
        loop {
            match self.watch.try_retrieve() {
                Err(Error::Retrieve(RetrieveError::PeerGone(gone))) => {
                    let rerun = self.bench.board.lose(gone);
                    debug!(%gone, items = rerun, "a rank is gone; what it had is run again");
                    self.clients.remove(&gone.rank());
                    let others = self.others.iter_mut();
                    for (_, other) in others.filter(|(rank, _)| *rank == gone.rank()) {
                        *other = Other::without(gone);
                    }
                }
                Ok(Some(_)) => (),
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Asks others for items, if ours do not last long. `false` if nobody has any, or none are needed.
    fn fetch(&mut self) -> bool {
        let board = self.bench.board;
        let portion = self.bench.cost.portion(self.threads);
        if self.until.is_some_and(|until| Instant::now() >= until) {
            (self.pause, self.low) = (TICK, 0);
            return false;
        }
        if board.waiting_here() > portion / 2 {
            // Who has nobody to ask need not know that little is left.
            let low = if self.others.is_empty() {
                0
            } else {
                portion / 2 + 1
            };
            (self.pause, self.low) = (TICK, low);
            return false;
        }
        if self.low > 0 {
            (self.pause, self.low) = (FIRST_PAUSE, 0);
        }
        let count = self.others.len();
        for step in 0..count {
            let index = (self.next + step) % count;
            let (rank, other) = self.others[index];
            let ask = match other {
                Other::Open => true,
                Other::NotYet { again, .. } | Other::Lost(again) => Instant::now() >= again,
                Other::Finished | Other::Gone => false,
            };
            if !ask {
                continue;
            }
            match self.ask(rank, portion) {
                Ok(Some(Answer::Items { items, owner })) => {
                    self.others[index].1 = Other::Open;
                    if items.is_empty() {
                        continue;
                    }
                    let items = items.into_iter().map(|(index, item)| Foreign {
                        owner: ProcessId::new(rank, Incarnation(owner)),
                        index,
                        item: item.into_vec(),
                    });
                    board.take_over(items);
                    self.next = index;
                    self.pause = FIRST_PAUSE;
                    return true;
                }
                Ok(Some(Answer::Finished)) => {
                    self.others[index].1 = Other::Finished;
                    board.forget(rank);
                }
                Err(gone) => self.others[index].1 = Other::without(gone),
                _ => {
                    self.others[index].1 = match other {
                        Other::Lost(_) => Other::Lost(Instant::now() + ASK_AGAIN),
                        Other::NotYet { pause, .. } => self.look_for(rank, pause * 2),
                        _ => Other::not_yet(FIRST_PAUSE),
                    };
                }
            }
        }
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        false
    }

    /// A rank was asked in vain before. Perhaps it has left, and we never met: then nobody has told us.
    fn look_for(&self, rank: Rank, pause: Duration) -> Other {
        match self.bench.deck.process.reach_within(rank, PATIENCE) {
            Err(ReachError::Gone(gone)) => Other::without(gone),
            _ => Other::not_yet(pause.min(ASK_AGAIN)),
        }
    }

    /// What a rank says that is asked for items, if it says anything.
    fn ask(&mut self, rank: Rank, want: usize) -> Result<Option<Answer>, Gone> {
        let deck = self.bench.deck;
        let mut client = match self.clients.remove(&rank) {
            Some(client) => client,
            None => match deck.client_at(rank, SERVICE) {
                Ok(client) => client,
                Err(_) => return Ok(None),
            },
        };
        client.set_timeout(PATIENCE);
        let ask = Ask::items(self.bench.map, want, deck.process.id());
        match client.call(&ask) {
            Ok(answer) => {
                self.clients.insert(rank, client);
                Ok(Some(answer))
            }
            Err(error) => match error.service() {
                Some(CallError::PeerGone { gone, .. }) => Err(*gone),
                // It does not serve yet, or any more.
                _ => Ok(None),
            },
        }
    }
}
