//! The part of a mailbox that others touch: deliverers, the reactor, and peers that open lanes to it.

mod entry;
mod queue;

use core::{fmt, iter};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread;

use mizzen_lane::{Arrival, Consumer, Peek, Watch};

use crate::counters::{Counter, Rows};
use crate::error::Gone;
use crate::link::{Account as LaneAccount, Ending, MemoryLink};
use crate::lock::lock;
use crate::rank::{MailboxId, ProcessId, Rank};

pub(crate) use self::entry::{Account, Creditor, Delivery, Entry, Undelivered};
use self::queue::Queue;
pub(crate) use self::queue::{Searched, Wanted};

/// A mailbox as others see it.
///
/// | field | writer | reader |
/// | --- | --- | --- |
/// | `watch` | the owner, when it sleeps and wakes | all senders |
/// | `queue`, `queued` | whoever drains a shared lane; the owner takes out | the owner |
/// | `new_lanes`, `news` | whoever opens a lane | the owner, which moves them to its own list |
/// | `waker`, `peeks` | the owner | the reactor or the workers: whoever looks for the task |
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) id: MailboxId,
    pub(crate) watch: Watch,
    queue: Mutex<Queue>,
    pub(crate) queued: AtomicUsize,
    /// Written and read under the lock of `queue`.
    closed: AtomicBool,
    new_lanes: Mutex<Vec<LaneIn>>,
    news: AtomicBool,
    told_gone: Mutex<HashSet<ProcessId>>,
    depends: Mutex<HashSet<Rank>>,
    waker: Mutex<Option<Awaiting>>,
    peeks: Mutex<Vec<LanePeek>>,
    pub(crate) counts: MailboxCounts,
}

/// What is counted of a mailbox, besides the positions of its lanes.
#[derive(Debug, Default)]
pub(crate) struct MailboxCounts {
    /// How often its owner slept, and was woken by its own process.
    pub(crate) sleeps: Counter,
    pub(crate) wakes: Counter,
    /// Messages from networks. Written under the lock of the queue.
    network: AtomicU64,
    /// Messages from networks that never were in the queue. Written by the owner.
    caught: Counter,
    /// Messages of lanes that have ended.
    ended_lanes: Counter,
    /// Accounts with peers that are gone, whose last messages may still be retrieved.
    ended: Mutex<Vec<Arc<LaneAccount>>>,
    /// Messages of such accounts that nobody else has any more.
    ended_accounts: Counter,
}

impl MailboxCounts {
    fn note_network(&self) {
        let known = self.network.load(Ordering::Relaxed);
        self.network.store(known + 1, Ordering::Relaxed);
    }

    /// The owner has caught a message from a network.
    pub(crate) fn note_caught(&self) {
        self.caught.add_alone();
    }

    #[cfg(test)]
    pub(crate) fn caught(&self) -> u64 {
        self.caught.get()
    }

    /// A lane has ended, after so many messages.
    pub(crate) fn note_lane_end(&self, messages: u64) {
        self.ended_lanes.add(messages);
    }

    /// A peer is gone with which the mailbox had an account.
    pub(crate) fn keep(&self, account: Arc<LaneAccount>) {
        let mut ended = lock(&self.ended);
        ended.push(account);
        // One of each life of a peer at most: those that nobody changes any more are added up.
        ended.retain(|account| {
            let stays = Arc::strong_count(account) > 1;
            if !stays {
                self.ended_accounts.add(account.count());
            }
            stays
        });
    }

    /// Messages retrieved, but for those of lanes and links that still are.
    fn ended(&self) -> u64 {
        let ended: u64 = lock(&self.ended).iter().map(|one| one.count()).sum();
        ended + self.ended_accounts.get() + self.ended_lanes.get()
    }
}

/// A task that awaits a message.
#[derive(Debug)]
struct Awaiting {
    waker: Waker,
    looker: Looker,
    what: What,
}

/// What a task awaits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// Anything that comes.
    Anything,
    /// Something of one rank, not among what was searched before.
    Of(Wanted, Searched),
    /// Only news: the message that a worker opens must come first.
    News,
}

/// A lane of a mailbox as others see it.
#[derive(Debug)]
pub(crate) struct LanePeek {
    rank: Rank,
    peek: Peek,
}

/// Who looks at a mailbox that a task awaits. Only it may write its watch meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looker {
    /// The thread that wakes tasks of foreign runtimes.
    Reactor,
    /// The workers of this process.
    Workers,
}

/// The receiving end of a sender's own lane.
pub(crate) struct LaneIn {
    pub(crate) consumer: Consumer,
    pub(crate) link: Arc<MemoryLink>,
    /// The sender will not touch the lane again.
    pub(crate) done: Arc<AtomicBool>,
    /// Whether all that earlier lives of its sender sent was taken, and their end told.
    pub(crate) is_due: bool,
    /// Of a lane that all who post from this OS process share: what its end is told by.
    ending: Option<Arc<Ending>>,
    on_drop: Option<Box<dyn FnOnce() + Send>>,
}

impl Core {
    pub(crate) fn new(id: MailboxId, watch: Watch) -> Self {
        Self {
            id,
            watch,
            queue: Mutex::default(),
            queued: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            new_lanes: Mutex::default(),
            news: AtomicBool::new(false),
            told_gone: Mutex::default(),
            depends: Mutex::default(),
            waker: Mutex::default(),
            peeks: Mutex::default(),
            counts: MailboxCounts::default(),
        }
    }

    /// Queues a message; a closed mailbox, or one with too many of the sender's, returns it. The caller wakes the owner.
    pub(crate) fn deliver(&self, delivery: Delivery) -> Option<Undelivered> {
        let mut queue = lock(&self.queue);
        if self.closed.load(Ordering::Relaxed) {
            return Some(Undelivered::Closed(delivery));
        }
        if let Some(account) = delivery.lane_account() {
            if !account.has_room() {
                return Some(Undelivered::Overrun(delivery));
            }
            account.note_queued();
        } else {
            self.counts.note_network();
        }
        queue.push(Entry::Message(delivery));
        self.queued.store(queue.len(), Ordering::Release);
        None
    }

    /// Nothing is queued from now on.
    pub(crate) fn close(&self) {
        let _no_delivery_meanwhile = lock(&self.queue);
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Queues the news that a process is gone, once for each, and before what its next life has sent. The caller wakes the owner.
    pub(crate) fn tell_gone(&self, gone: Gone) {
        if lock(&self.told_gone).insert(gone.process()) {
            let mut queue = lock(&self.queue);
            queue.push_gone(gone);
            self.queued.store(queue.len(), Ordering::Release);
        }
    }

    /// The owner has learnt by itself that a process is gone: it need not be told. `false` if it was, or is about to be.
    pub(crate) fn note_told(&self, gone: Gone) -> bool {
        lock(&self.told_gone).insert(gone.process())
    }

    /// Whether nothing waits in the queue.
    #[inline]
    pub(crate) fn is_queue_empty(&self) -> bool {
        self.queued.load(Ordering::Acquire) == 0
    }

    /// Takes the oldest entry of the queue whose time has come.
    pub(crate) fn next_entry(&self, is_too_early: impl Fn(&Entry) -> bool) -> Option<Entry> {
        if self.queued.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut queue = lock(&self.queue);
        let entry = queue.pop(is_too_early);
        self.note_taken(&queue, entry)
    }

    /// Takes the oldest such entry of the queue whose time has come; the others stay where they are. What was searched before was
    /// searched for the same.
    pub(crate) fn next_entry_where(
        &self,
        is_it: impl Fn(&Entry) -> bool,
        is_too_early: impl Fn(&Entry) -> bool,
        searched: &mut Searched,
    ) -> Option<Entry> {
        if self.queued.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut queue = lock(&self.queue);
        let place = queue.find(is_it, is_too_early, searched)?;
        let entry = queue.take(place);
        self.note_taken(&queue, entry)
    }

    fn note_taken(&self, queue: &Queue, entry: Option<Entry>) -> Option<Entry> {
        self.queued.store(queue.len(), Ordering::Release);
        if let Some(account) = entry.as_ref().and_then(Entry::lane_account) {
            account.note_unqueued();
        }
        entry
    }

    /// Whether the queue has a wanted entry.
    pub(crate) fn has_entry_of(&self, wanted: Wanted, searched: &mut Searched) -> bool {
        self.has_entry_where(|entry| wanted.is(entry), searched)
    }

    /// Whether the queue has such an entry.
    pub(crate) fn has_entry_where(
        &self,
        is_it: impl Fn(&Entry) -> bool,
        searched: &mut Searched,
    ) -> bool {
        self.queued.load(Ordering::Acquire) > 0
            && lock(&self.queue).find(is_it, |_| false, searched).is_some()
    }

    /// Whether the news of the end of a life before this one waits in the queue.
    pub(crate) fn has_gone_before(&self, life: ProcessId) -> bool {
        self.queued.load(Ordering::Acquire) > 0 && lock(&self.queue).has_gone_before(life)
    }

    /// Takes out a message that is not to be retrieved after all.
    pub(crate) fn remove(&self, is_it: impl Fn(&Delivery) -> bool) -> Option<Delivery> {
        let mut queue = lock(&self.queue);
        let place = queue.find_message(is_it)?;
        let entry = queue.take(place);
        match self.note_taken(&queue, entry) {
            Some(Entry::Message(delivery)) => Some(delivery),
            _ => None,
        }
    }

    /// Opens a lane into the mailbox. The caller wakes the owner. `false`: it is closed.
    pub(crate) fn add_lane(&self, lane: LaneIn) -> bool {
        let mut new_lanes = lock(&self.new_lanes);
        // Whoever closes it takes the new lanes after that.
        if self.closed.load(Ordering::Relaxed) {
            return false;
        }
        lock(&self.peeks).push(lane.peek());
        new_lanes.push(lane);
        self.look();
        true
    }

    /// The owner shall look at its lanes, although nothing may have come.
    pub(crate) fn look(&self) {
        self.news.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.news.load(Ordering::Acquire)
    }

    /// Lanes opened since the owner last asked.
    pub(crate) fn take_new_lanes(&self) -> Vec<LaneIn> {
        self.news.store(false, Ordering::Release);
        core::mem::take(&mut lock(&self.new_lanes))
    }

    pub(crate) fn set_peeks(&self, peeks: Vec<LanePeek>) {
        *lock(&self.peeks) = peeks;
    }

    pub(crate) fn depend_on(&self, rank: Rank) {
        lock(&self.depends).insert(rank);
    }

    /// The ranks on which it depends, in order.
    pub(crate) fn dependencies(&self) -> Vec<Rank> {
        let mut ranks: Vec<Rank> = lock(&self.depends).iter().copied().collect();
        ranks.sort_unstable();
        ranks
    }

    pub(crate) fn depends_on(&self, rank: Rank) -> bool {
        lock(&self.depends).contains(&rank)
    }

    /// A task awaits a message, and `looker` shall wake it.
    pub(crate) fn set_waker(&self, waker: Waker, looker: Looker, what: What) {
        *lock(&self.waker) = Some(Awaiting {
            waker,
            looker,
            what,
        });
    }

    /// Whether a task awaits something and was not woken yet.
    pub(crate) fn has_waker(&self) -> bool {
        lock(&self.waker).is_some()
    }

    /// No task awaits anything: the owner does what it wants with the watch.
    pub(crate) fn clear_waker(&self) {
        *lock(&self.waker) = None;
    }

    /// Wakes the task that waits for this mailbox if there is something to take. `true` if `looker` need not look here any
    /// more.
    pub(crate) fn wake_task(&self, looker: Looker, links: &[Arc<MemoryLink>]) -> bool {
        let mut waker = lock(&self.waker);
        match &mut *waker {
            Some(awaiting) if awaiting.looker == looker => {
                if !self.has(&mut awaiting.what, links) {
                    return false;
                }
            }
            _ => return true,
        }
        if let Some(awaiting) = waker.take() {
            drop(waker);
            awaiting.waker.wake();
        }
        true
    }

    /// Lets `looker` change the watch, if a task waits for it.
    pub(crate) fn change_watch(&self, looker: Looker, change: impl FnOnce(&Watch)) {
        let waker = lock(&self.waker);
        if waker.as_ref().is_some_and(|by| by.looker == looker) {
            change(&self.watch);
        }
    }

    /// Its counters, as far as they are kept here: messages of accounts with peers that are linked come on top.
    pub(crate) fn count(&self, from_links: u64, rows: &mut Rows) {
        let lanes: u64 = lock(&self.peeks).iter().map(|lane| lane.peek.taken()).sum();
        let network = self.counts.network.load(Ordering::Relaxed) + self.counts.caught.get();
        let messages = from_links + lanes + network + self.counts.ended();
        rows.object(
            format_args!("mailbox {}", self.id),
            &[
                ("messages_received", messages),
                (
                    "messages_waiting",
                    self.queued.load(Ordering::Relaxed) as u64,
                ),
                ("sleeps", self.counts.sleeps.get()),
                ("wakes", self.counts.wakes.get()),
            ],
        );
    }

    /// Whether there may be what the task awaits.
    pub(crate) fn has_awaited(&self, links: &[Arc<MemoryLink>]) -> bool {
        let mut waker = lock(&self.waker);
        let what = waker.as_mut().map(|awaiting| &mut awaiting.what);
        self.has(what.unwrap_or(&mut What::Anything), links)
    }

    fn has(&self, what: &mut What, links: &[Arc<MemoryLink>]) -> bool {
        if self.has_news() {
            return true;
        }
        match what {
            What::News => false,
            What::Anything => {
                self.queued.load(Ordering::Acquire) > 0
                    || lock(&self.peeks).iter().any(|lane| lane.peek.is_ready())
                    || links.iter().any(|link| link.peek.is_ready())
            }
            // What others sent stays where it is, and must not wake the task again and again.
            What::Of(wanted, searched) => {
                let rank = wanted.rank;
                self.has_entry_of(*wanted, searched)
                    || lock(&self.peeks)
                        .iter()
                        .any(|lane| lane.rank == rank && lane.peek.is_ready())
                    || links
                        .iter()
                        .any(|link| link.peer.rank == rank && link.peek.is_ready())
            }
        }
    }
}

impl LaneIn {
    pub(crate) fn new(
        consumer: Consumer,
        link: Arc<MemoryLink>,
        done: Arc<AtomicBool>,
        on_drop: impl FnOnce() + Send + 'static,
    ) -> Self {
        Self {
            is_due: link.peer.incarnation.0 == 0,
            consumer,
            link,
            done,
            ending: None,
            on_drop: Some(Box::new(on_drop)),
        }
    }

    /// The same of a lane that is the mailbox's own.
    pub(crate) fn of_mailbox(
        consumer: Consumer,
        link: Arc<MemoryLink>,
        ending: Arc<Ending>,
    ) -> Self {
        link.counts
            .mailbox_lanes_taken
            .add(&ending, consumer.peek());
        let (over, reader) = (Arc::clone(&ending), Arc::clone(&link));
        let on_drop = move || {
            over.end();
            reader.counts.mailbox_lanes_taken.end(&over);
        };
        let mut lane = Self::new(consumer, link, Arc::default(), on_drop);
        lane.ending = Some(ending);
        lane
    }

    /// What is in the lane will be discarded. Whether that takes a fence in all threads first.
    pub(crate) fn begin_ending(&self) -> bool {
        self.ending.as_deref().map(Ending::begin).is_some()
    }

    /// After that fence: all that is left, but for what is discarded by who posts it.
    pub(crate) fn rest(&mut self) -> impl Iterator<Item = Arrival> {
        let (peek, consumer) = (self.consumer.peek(), &mut self.consumer);
        let bound = self.ending.as_deref().map(Ending::bound);
        let is_to_come = move || {
            let left = |bound: u32| bound.wrapping_sub(peek.passed() as u32) as i32;
            bound.is_some_and(|bound| left(bound) > 0)
        };
        iter::from_fn(move || {
            loop {
                match consumer.poll() {
                    // Whoever has claimed the slot is writing to it.
                    Ok(None) if is_to_come() => thread::yield_now(),
                    arrival => return arrival.ok().flatten(),
                }
            }
        })
    }
}

impl LaneIn {
    pub(crate) fn peek(&self) -> LanePeek {
        LanePeek {
            rank: self.link.peer.rank,
            peek: self.consumer.peek(),
        }
    }

    /// Whether a look would find a message, or the end of the lane.
    pub(crate) fn wants_a_look(&self) -> bool {
        self.consumer.is_ready() || self.has_ended()
    }

    /// Whether nothing more comes over it. Its sender may have posted over the shared lane too: that is in the queue then.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        self.link.is_delivered() || self.done.load(Ordering::Acquire)
    }

    pub(crate) fn still_holds_messages_of(&self, gone: Gone) -> bool {
        self.link.peer == gone.process() && self.consumer.is_ready()
    }

    /// Whether an earlier life of the same rank sent something over it that was not taken, or its end was not noticed.
    pub(crate) fn is_unread_before(&self, life: ProcessId) -> bool {
        let peer = self.link.peer;
        peer.rank == life.rank && peer.incarnation < life.incarnation && self.wants_a_look()
    }
}

impl Drop for LaneIn {
    fn drop(&mut self) {
        if let Some(on_drop) = self.on_drop.take() {
            on_drop();
        }
    }
}

impl fmt::Debug for LaneIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneIn")
            .field("from", &self.link.peer)
            .finish_non_exhaustive()
    }
}
