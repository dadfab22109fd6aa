//! This process's place in the job: its mailboxes, its links to peers, its arena and its names.
//!
//! A rank of a local job (`mizzen::local`) is such a place too; its peers are other places in the same OS process.

pub(crate) mod bells;
pub(crate) mod channel;
mod handle;
pub(crate) mod link;
mod names;
mod peers;
pub(crate) mod post;
mod pump;
pub(crate) mod stream;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use mizzen_lane::{Region, Returns, Watch};
use mizzen_shm::{SegmentError, barrier};

use self::bells::{BELL_BYTES, BellNumbers};
use self::link::MemoryLink;
use self::names::Names;
use self::peers::Peers;
use crate::error::{Departure, Gone, MailboxError};
use crate::mailbox::Core;
use crate::memory::{Arena, Memory, Shared};
use crate::net::Networks;
use crate::rank::{MailboxId, ProcessId, Rank, mailbox_id, slot_of};
use crate::tasks::Crew;

pub(crate) use self::handle::Handle;
pub(crate) use self::peers::{Neighbours, Path};

/// The most mailboxes a process has at once: the size of its table of watches. One of them is not the program's.
pub(crate) const MAX_MAILBOXES: usize = 1 + 16_384;
/// Where every process is told that others have finished: its first mailbox (see `finish.rs`).
pub(crate) const FINISH_MAILBOX: MailboxId = MailboxId(0);
/// Bytes of the watches of a process.
pub(crate) const WATCH_BYTES: usize = MAX_MAILBOXES * 4;

/// A process of the job, or a rank of a local one.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) id: ProcessId,
    pub(crate) size: u32,
    pub(crate) host: String,
    pub(crate) memory: Memory,
    pub(crate) arena: Arc<Arena>,
    /// Our mailboxes' watches, which peers read, and our threads' bells, which peers raise.
    pub(crate) watches: Shared,
    pub(crate) bells: Shared,
    pub(crate) bell_numbers: BellNumbers,
    mailboxes: RwLock<Mailboxes>,
    pub(crate) peers: Peers,
    names: Names,
    links: RwLock<Vec<Arc<MemoryLink>>>,
    links_changed: AtomicU64,
    reactor: Mutex<Option<crate::reactor::Reactor>>,
    /// The workers, once there is something to do for them.
    crew: OnceLock<Arc<Crew>>,
    /// The network, if this process is on one.
    pub(crate) networks: OnceLock<Networks>,
    /// Whether the user wants to know how peers are reached.
    pub(crate) show_paths: AtomicBool,
    /// Where buffers come back that a network filled here and a thread of ours reads.
    own_returns: OnceLock<Returns>,
    /// Objects of the user that refer to this process.
    handles: AtomicUsize,
    has_left: AtomicBool,
    /// Whether somebody owns the first mailbox.
    has_finished: AtomicBool,
    /// Processes that left in order, and the mailboxes they had posted to: if they turn out to have failed, these are told.
    left: Mutex<HashMap<ProcessId, Vec<MailboxId>>>,
    /// Why the whole job fails, if it does: every mailbox is told, also those made later.
    failure: OnceLock<Gone>,
}

#[derive(Debug, Default)]
struct Mailboxes {
    slots: Vec<Slot>,
    /// Free slots, the one that is free the longest first: late messages find it free for as long as possible.
    free: std::collections::VecDeque<u32>,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    core: Option<Arc<Core>>,
}

impl Process {
    /// The place of `id` in a job of `size` processes.
    pub(crate) fn new(
        id: ProcessId,
        size: u32,
        host: String,
        memory: Memory,
        neighbours: Neighbours,
    ) -> Result<Arc<Self>, SegmentError> {
        let watches = memory.make("mizzen-watches", WATCH_BYTES)?;
        let bells = memory.make_open("mizzen-bells", BELL_BYTES)?;
        let process = Arc::new(Self {
            id,
            size,
            host,
            memory,
            arena: Arc::new(Arena::new(memory)),
            watches,
            bells,
            bell_numbers: BellNumbers::new(),
            mailboxes: RwLock::default(),
            peers: Peers::new(neighbours),
            names: Names::new(),
            links: RwLock::default(),
            links_changed: AtomicU64::new(0),
            reactor: Mutex::default(),
            crew: OnceLock::new(),
            networks: OnceLock::new(),
            show_paths: AtomicBool::new(false),
            own_returns: OnceLock::new(),
            handles: AtomicUsize::new(0),
            has_left: AtomicBool::new(false),
            has_finished: AtomicBool::new(false),
            left: Mutex::default(),
            failure: OnceLock::new(),
        });
        let first = process.open_mailbox();
        debug_assert!(first.is_ok_and(|core| core.id == FINISH_MAILBOX));
        Ok(process)
    }

    /// The first mailbox, once: it has one owner.
    pub(crate) fn take_finish_mailbox(&self) -> Option<Arc<Core>> {
        let taken = self.has_finished.swap(true, Ordering::AcqRel);
        self.mailbox(FINISH_MAILBOX).filter(|_| !taken)
    }

    /// A new mailbox of ours.
    pub(crate) fn open_mailbox(self: &Arc<Self>) -> Result<Arc<Core>, MailboxError> {
        let mut mailboxes = self
            .mailboxes
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let fresh = mailboxes.slots.len() < MAX_MAILBOXES;
        let slot = match mailboxes.free.pop_front() {
            Some(slot) if !fresh => slot,
            other => {
                if !fresh {
                    return Err(MailboxError::TooMany {
                        limit: MAX_MAILBOXES - 1,
                    });
                }
                mailboxes.free.extend(other);
                mailboxes.slots.push(Slot {
                    generation: 0,
                    core: None,
                });
                mailboxes.slots.len() as u32 - 1
            }
        };
        let place = &mut mailboxes.slots[slot as usize];
        let watch = Watch::new(
            self.watches.region.clone(),
            slot as usize,
            barrier::everywhere(),
        );
        watch.announce_awake();
        let core = Arc::new(Core::new(mailbox_id(slot, place.generation), watch));
        place.core = Some(Arc::clone(&core));
        if let Some(gone) = self.failure.get() {
            core.tell_gone(*gone);
        }
        Ok(core)
    }

    /// The mailbox is dropped: its slot will be used again under another generation.
    pub(crate) fn close_mailbox(&self, mailbox: MailboxId) {
        for link in self.links().1 {
            let mut inbound = link.inbound.lock().unwrap_or_else(PoisonError::into_inner);
            if inbound.close_account(mailbox).is_some() {
                link.tell(mailbox, link::News::CLOSED);
            }
        }
        let mut mailboxes = self
            .mailboxes
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = mailboxes.slots.get_mut(slot_of(mailbox) as usize) {
            slot.core = None;
            slot.generation = slot.generation.wrapping_add(1);
            mailboxes.free.push_back(slot_of(mailbox));
        }
    }

    /// One of our mailboxes.
    pub(crate) fn mailbox(&self, mailbox: MailboxId) -> Option<Arc<Core>> {
        let mailboxes = self
            .mailboxes
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let core = mailboxes
            .slots
            .get(slot_of(mailbox) as usize)?
            .core
            .as_ref()?;
        (core.id == mailbox).then(|| Arc::clone(core))
    }

    /// All our mailboxes.
    pub(crate) fn all_mailboxes(&self) -> Vec<Arc<Core>> {
        let mailboxes = self
            .mailboxes
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        mailboxes
            .slots
            .iter()
            .filter_map(|slot| slot.core.clone())
            .collect()
    }

    /// The links whose lanes are to be drained, and a number that changes with them.
    pub(crate) fn links(&self) -> (u64, Vec<Arc<MemoryLink>>) {
        let links = self.links.read().unwrap_or_else(PoisonError::into_inner);
        (self.links_changed.load(Ordering::Acquire), links.clone())
    }

    #[inline]
    pub(crate) fn links_version(&self) -> u64 {
        self.links_changed.load(Ordering::Acquire)
    }

    pub(crate) fn add_link(&self, link: Arc<MemoryLink>) {
        self.change_links(|links| links.push(link));
    }

    fn change_links(&self, change: impl FnOnce(&mut Vec<Arc<MemoryLink>>)) {
        let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut links);
        self.links_changed.fetch_add(1, Ordering::Release);
    }

    /// A peer on this host is gone: what it sent is delivered, then everyone who depends on it is told.
    pub(crate) fn end_link(self: &Arc<Self>, link: &Arc<MemoryLink>, how: Departure) {
        link.end(how);
        if !link.claim_cleaning() {
            return;
        }
        for bell in link.sleepers() {
            bells::ring(&self.bells.region, bell);
        }
        let mut posted_to = Vec::new();
        {
            let mut inbound = link.inbound.lock().unwrap_or_else(PoisonError::into_inner);
            while self.pump_one(link, &mut inbound) {}
            posted_to.extend(inbound.accounts.keys().copied());
        }
        self.change_links(|links| links.retain(|other| !Arc::ptr_eq(other, link)));
        link.close_streams();
        // Who left, or is only a thread of ours, may still read what we lent it, and gives it back in time.
        if how == Departure::Died && link.channel.ends_with_its_process() {
            link.note_reclaimed();
            self.arena.reclaim(link.peer);
        }
        let gone = link.gone().unwrap_or(Gone::new(link.peer, how));
        self.tell_senders_gone(gone, posted_to);
        self.peer_gone(gone);
    }

    /// Tells the mailboxes to which a process had posted that it failed. One that left in order may still turn out to have
    /// failed, by its exit code.
    fn tell_senders_gone(&self, gone: Gone, posted_to: Vec<MailboxId>) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let mut posted_to = posted_to;
        posted_to.extend(left.remove(&gone.process()).unwrap_or_default());
        if !gone.is_failure() {
            left.insert(gone.process(), posted_to);
            return;
        }
        drop(left);
        for core in posted_to
            .into_iter()
            .filter_map(|mailbox| self.mailbox(mailbox))
        {
            self.tell_gone(&core, gone);
        }
    }

    /// The launcher says that a process failed.
    pub(crate) fn process_failed(self: &Arc<Self>, gone: Gone) {
        self.tell_senders_gone(gone, Vec::new());
        self.peer_gone(gone);
    }

    /// A process of the job is gone, whether or not we had a link with it.
    pub(crate) fn peer_gone(self: &Arc<Self>, gone: Gone) {
        self.peers.note_gone(gone);
        self.names_lost(gone);
        if gone.is_failure() {
            self.bind_again(gone.rank());
        }
        for core in self.all_mailboxes() {
            if core.depends_on(gone.rank()) {
                self.tell_gone(&core, gone);
            }
            // Lanes of its own senders end with it: the owner must look.
            core.look();
            self.wake(&core);
        }
    }

    /// The job fails because of `gone`: nobody shall wait for anything.
    pub(crate) fn fail(self: &Arc<Self>, gone: Gone) {
        let _ = self.failure.set(gone);
        self.peer_gone(gone);
        for core in self.all_mailboxes() {
            self.tell_gone(&core, gone);
        }
    }

    /// Queues the news for a mailbox's owner.
    pub(crate) fn tell_gone(&self, core: &Core, gone: Gone) {
        core.tell_gone(gone);
        self.wake(core);
    }

    /// Wakes the owner of one of our mailboxes after something was put there.
    pub(crate) fn wake(&self, core: &Core) {
        if let mizzen_lane::Call::Bell(number) = mizzen_lane::call_after_publish(&core.watch) {
            bells::ring(&self.bells.region, number);
        }
    }

    /// The table in which this process gives back buffers to itself.
    pub(crate) fn own_returns(&self) -> &Returns {
        self.own_returns.get_or_init(|| {
            Returns::new(
                Region::heap(Returns::bytes(Arena::MAX_BLOCKS)),
                Arena::MAX_BLOCKS,
            )
        })
    }

    /// Has the launcher tell the user that a call waits for long.
    #[cold]
    pub(crate) fn remark(&self, waited: Duration, what: &str) {
        if let Neighbours::Launched(keeper) = &self.peers.neighbours {
            keeper.remark(format!("has waited {:.0} s {what}", waited.as_secs_f64()));
        }
    }

    /// Has the launcher tell the user how a peer is reached.
    #[cold]
    pub(crate) fn tell_path(&self, text: String) {
        if let Neighbours::Launched(keeper) = &self.peers.neighbours {
            keeper.tell_path(text);
        }
    }

    /// The thread that wakes async tasks of this process; started when first needed.
    pub(crate) fn ensure_reactor(self: &Arc<Self>) -> std::io::Result<()> {
        let mut reactor = self.reactor.lock().unwrap_or_else(PoisonError::into_inner);
        if reactor.is_none() {
            *reactor = Some(crate::reactor::Reactor::start(Arc::downgrade(self))?);
        }
        Ok(())
    }

    /// The workers of this process; they start when there is work.
    pub(crate) fn crew(self: &Arc<Self>) -> &Arc<Crew> {
        self.crew
            .get_or_init(|| Crew::new(self, crate::tasks::places()))
    }

    pub(crate) fn has_crew(&self, crew: &Arc<Crew>) -> bool {
        self.crew.get().is_some_and(|ours| Arc::ptr_eq(ours, crew))
    }

    /// Whether the process has left the job, or is about to.
    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Acquire)
    }

    /// The process leaves the job: the names it held go to others, and its peers are told. Happens once.
    pub(crate) fn leave(self: &Arc<Self>, how: Departure) {
        crate::crash::point("leave");
        if self.has_left.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(crew) = self.crew.get() {
            crew.stop();
        }
        drop(
            self.reactor
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        if how == Departure::Left {
            self.hand_over_names();
        }
        if let Some(networks) = self.networks.get() {
            networks.leave(how);
        }
        self.peers.leave(self.id, how);
    }
}

/// A job whose processes are all in this OS process.
#[derive(Debug)]
pub(crate) struct Universe {
    pub(crate) places: RwLock<Vec<Weak<Process>>>,
}

impl Universe {
    pub(crate) fn place(&self, rank: Rank) -> Option<Arc<Process>> {
        self.places
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(rank.0 as usize)?
            .upgrade()
    }
}
