//! The part of a mailbox that others touch: deliverers, the reactor, and peers that open lanes to it.

use core::fmt;
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

use mizzen_lane::{Consumer, Peek, Watch};

use crate::error::Gone;
use crate::link::{Account as LaneAccount, MemoryLink};
use crate::lock::lock;
use crate::message::{Flags, Payload};
use crate::rank::{MailboxId, ProcessId, Rank};

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
    queue: Mutex<VecDeque<Entry>>,
    pub(crate) queued: AtomicUsize,
    /// Written and read under the lock of `queue`.
    closed: AtomicBool,
    new_lanes: Mutex<Vec<LaneIn>>,
    news: AtomicBool,
    told_gone: Mutex<HashSet<ProcessId>>,
    depends: Mutex<HashSet<Rank>>,
    waker: Mutex<Option<Awaiting>>,
    peeks: Mutex<Vec<Peek>>,
}

/// A task that awaits a message.
#[derive(Debug)]
struct Awaiting {
    waker: Waker,
    looker: Looker,
}

/// Who looks at a mailbox that a task awaits. Only he may write its watch meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Looker {
    /// The thread that wakes tasks of foreign runtimes.
    Reactor,
    /// The workers of this process.
    Crew,
}

/// What lies in a mailbox's queue.
#[derive(Debug)]
pub(crate) enum Entry {
    Message(Delivery),
    Gone(Gone),
}

/// A message on its way into a mailbox.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) source: ProcessId,
    pub(crate) flags: Flags,
    pub(crate) payload: Payload,
    /// Whose memory the payload refers to.
    pub(crate) lender: Option<Arc<MemoryLink>>,
    /// To whom a credit is due when it is retrieved.
    pub(crate) account: Option<Account>,
}

/// To whom credits for a message are due.
#[derive(Debug)]
pub(crate) enum Account {
    Lane(Arc<LaneAccount>),
    /// On a network: for so many bytes of a mailbox.
    Net {
        link: Arc<dyn Creditor>,
        mailbox: MailboxId,
        bytes: u64,
    },
}

/// A link on a network, which gives its peer credit for what was retrieved.
pub(crate) trait Creditor: fmt::Debug + Send + Sync {
    /// A message of so many bytes was retrieved.
    fn retrieved(&self, mailbox: MailboxId, bytes: u64);
}

impl Account {
    /// The message was retrieved.
    #[inline]
    pub(crate) fn retrieved(&self) {
        match self {
            Self::Lane(account) => account.retrieved(),
            Self::Net {
                link,
                mailbox,
                bytes,
            } => link.retrieved(*mailbox, *bytes),
        }
    }
}

/// Why a message was not queued.
#[derive(Debug)]
pub(crate) enum Undelivered {
    /// The mailbox is closed.
    Closed(Delivery),
    /// Its sender has a window of messages in the queue already: it does not keep to its credits.
    Overrun(Delivery),
}

impl Undelivered {
    pub(crate) fn into_delivery(self) -> Delivery {
        match self {
            Self::Closed(delivery) | Self::Overrun(delivery) => delivery,
        }
    }
}

impl Delivery {
    /// With whom a message that came over a shared lane is counted. Those from networks are counted by their protocol.
    fn lane_account(&self) -> Option<&LaneAccount> {
        match &self.account {
            Some(Account::Lane(account)) => Some(account),
            _ => None,
        }
    }
}

impl Entry {
    fn lane_account(&self) -> Option<&LaneAccount> {
        match self {
            Self::Message(delivery) => delivery.lane_account(),
            Self::Gone(_) => None,
        }
    }
}

/// The receiving end of a sender's own lane.
pub(crate) struct LaneIn {
    pub(crate) consumer: Consumer,
    pub(crate) link: Arc<MemoryLink>,
    /// The sender will not touch the lane again.
    pub(crate) done: Arc<AtomicBool>,
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
        }
        queue.push_back(Entry::Message(delivery));
        self.queued.store(queue.len(), Ordering::Release);
        None
    }

    /// Nothing is queued from now on.
    pub(crate) fn close(&self) {
        let _no_delivery_meanwhile = lock(&self.queue);
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Queues the news that a process is gone, once for each. The caller wakes the owner.
    pub(crate) fn tell_gone(&self, gone: Gone) {
        if lock(&self.told_gone).insert(gone.process()) {
            let mut queue = lock(&self.queue);
            queue.push_back(Entry::Gone(gone));
            self.queued.store(queue.len(), Ordering::Release);
        }
    }

    /// Whether nothing waits in the queue.
    #[inline]
    pub(crate) fn is_queue_empty(&self) -> bool {
        self.queued.load(Ordering::Acquire) == 0
    }

    /// Takes the oldest entry of the queue.
    pub(crate) fn next_entry(&self) -> Option<Entry> {
        if self.queued.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut queue = lock(&self.queue);
        let entry = queue.pop_front();
        self.queued.store(queue.len(), Ordering::Release);
        if let Some(account) = entry.as_ref().and_then(Entry::lane_account) {
            account.note_unqueued();
        }
        entry
    }

    /// Puts an entry back, behind what came meanwhile.
    pub(crate) fn requeue(&self, entry: Entry) {
        let mut queue = lock(&self.queue);
        if let Some(account) = entry.lane_account() {
            account.note_queued();
        }
        queue.push_back(entry);
        self.queued.store(queue.len(), Ordering::Release);
    }

    /// Takes out a message that is not to be retrieved after all.
    pub(crate) fn remove(&self, is_it: impl Fn(&Delivery) -> bool) -> Option<Delivery> {
        let mut queue = lock(&self.queue);
        let place = queue
            .iter()
            .position(|entry| matches!(entry, Entry::Message(delivery) if is_it(delivery)))?;
        let entry = queue.remove(place);
        self.queued.store(queue.len(), Ordering::Release);
        if let Some(account) = entry.as_ref().and_then(Entry::lane_account) {
            account.note_unqueued();
        }
        match entry {
            Some(Entry::Message(delivery)) => Some(delivery),
            _ => None,
        }
    }

    /// Opens a lane into the mailbox. The caller wakes the owner.
    pub(crate) fn add_lane(&self, lane: LaneIn) {
        lock(&self.peeks).push(lane.consumer.peek());
        lock(&self.new_lanes).push(lane);
        self.look();
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

    pub(crate) fn set_peeks(&self, peeks: Vec<Peek>) {
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
    pub(crate) fn set_waker(&self, waker: Waker, looker: Looker) {
        *lock(&self.waker) = Some(Awaiting { waker, looker });
    }

    /// No task awaits anything: the owner does what it wants with the watch.
    pub(crate) fn clear_waker(&self) {
        *lock(&self.waker) = None;
    }

    /// Wakes the task that waits for this mailbox if there is something to take. `true` if `looker` need not look here any
    /// more.
    pub(crate) fn wake_task(&self, looker: Looker, links: &[Arc<MemoryLink>]) -> bool {
        let mut waker = lock(&self.waker);
        match &*waker {
            Some(awaiting) if awaiting.looker == looker => (),
            _ => return true,
        }
        if !self.has_something(links) {
            return false;
        }
        if let Some(awaiting) = waker.take() {
            drop(waker);
            awaiting.waker.wake();
        }
        true
    }

    /// Lets `looker` change the watch, if a task waits for him.
    pub(crate) fn change_watch(&self, looker: Looker, change: impl FnOnce(&Watch)) {
        let waker = lock(&self.waker);
        if waker.as_ref().is_some_and(|by| by.looker == looker) {
            change(&self.watch);
        }
    }

    /// Whether there may be something to take.
    pub(crate) fn has_something(&self, links: &[Arc<MemoryLink>]) -> bool {
        self.queued.load(Ordering::Acquire) > 0
            || self.has_news()
            || lock(&self.peeks).iter().any(Peek::is_ready)
            || links.iter().any(|link| link.peek.is_ready())
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
            consumer,
            link,
            done,
            on_drop: Some(Box::new(on_drop)),
        }
    }
}

impl LaneIn {
    /// Whether a look would find a message, or the end of the lane.
    pub(crate) fn wants_a_look(&self) -> bool {
        self.consumer.is_ready() || self.link.is_ended() || self.done.load(Ordering::Acquire)
    }

    pub(crate) fn still_holds_messages_of(&self, gone: Gone) -> bool {
        self.link.peer == gone.process() && self.consumer.is_ready()
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
