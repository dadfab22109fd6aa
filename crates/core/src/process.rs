//! This process's place in the job: its mailboxes, its links to peers, its arena and its names.
//!
//! A rank of a local job (`mizzen::local`) is such a place too; its peers are other places in the same OS process.

mod flushing;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod tests;

use core::fmt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use mizzen_proto::boot::{self, Death};
use mizzen_proto::membership::{Admission, Epoch};
use mizzen_proto::registry::{Answer, Question};
use mizzen_shm::SegmentError;
use tracing::{Span, debug, warn};

use crate::bells::{Bells, REACTOR_BELL};
use crate::counters::{Counted as _, CounterRow, Counters, Rows, by_object, summary};
use crate::delivery::Core;
use crate::error::{
    BindError, Departure, FetchError, Gone, ReachError, TopologyError, UnpackError,
};
use crate::link::{MailboxNotice, MemoryLink};
use crate::links::{Links, WithLinks};
use crate::lock::lock;
use crate::mailboxes::Mailboxes;
use crate::memory::{Arena, Ending, HandedTicket, Holding, Memory, Place, SlabId};
use crate::names::{Courier, Names, NobodyKeeps};
use crate::net::{Catch, Control, NetLink, Networks};
use crate::operations::{Operation, Operations};
use crate::peers::{Path, Peers};
use crate::progress::{Progress, Then};
use crate::rank::{
    Address, ChannelId, Incarnation, KnownChannel, MailboxId, ProcessId, Rank, reserved,
};
use crate::reactor::Reactor;
use crate::roll::{Kind, WaitsFor};
use crate::standing::Standing;
use crate::topology::Topology;
use crate::verdicts::Verdicts;
use crate::wait::Noted;
use crate::wait::{Contention, Patience, Step};
use crate::workers::Workers;

/// How many processes that are gone are named one by one.
const NAMED_GONE: usize = 8;
/// How long a rank may take to answer when it is first reached.
const CONNECT_PATIENCE: Duration = Duration::from_secs(30);
/// How long the link to the owner of a buffer may take that was handed on to us: the owner has it, and our keeper is about to. In
/// searches for bytes that break something, there is none.
const OWNER_PATIENCE: Duration =
    Duration::from_secs(if cfg!(feature = "fuzzing") { 0 } else { 10 });
/// How long to sleep between looks for it.
const OWNER_NAP: Duration = Duration::from_millis(1);
/// How long a process that leaves sleeps between looks whether what it posted has gone.
const FLUSH_NAP: Duration = Duration::from_micros(200);
/// How long it waits for one that takes nothing at all, unless agents are more patient than that.
pub(crate) const LEAVE_PATIENCE: Duration = Duration::from_secs(30);

/// A process of the job, or a rank of a local one: the things it consists of.
pub struct Process {
    weak: Weak<Self>,
    /// What its events belong to.
    pub(crate) span: Span,
    pub(crate) id: ProcessId,
    pub(crate) size: u32,
    pub(crate) host: String,
    pub(crate) bells: Arc<Bells>,
    pub(crate) mailboxes: Arc<Mailboxes>,
    pub(crate) links: Arc<Links>,
    /// The networks, if this process is on any.
    pub(crate) networks: OnceLock<Networks>,
    pub(crate) peers: Peers,
    /// The channels that programs may name, from number 1 on.
    pub(crate) channels: OnceLock<Vec<KnownChannel>>,
    /// Which lives have ended.
    verdicts: Verdicts,
    names: Names,
    pub(crate) neighbours: Box<dyn Neighbours>,
    /// What is under way without a thread of its own.
    pub(crate) operations: Arc<Operations>,
    reactor: Mutex<Option<Reactor>>,
    /// The workers, once there is something to do for them.
    workers: OnceLock<Arc<Workers>>,
    /// Objects of the user that refer to this process.
    pub(crate) handles: AtomicUsize,
    has_left: AtomicBool,
    /// The launcher said that all other processes have ended and none will be started again.
    pub(crate) is_last: AtomicBool,
    /// Which of the reserved mailboxes somebody owns: a bit for each.
    taken_reserved: AtomicU32,
    /// The counted objects of services.
    pub(crate) counters: Counters,
    /// What is moved on while threads wait for something else.
    pub(crate) standing: Standing,
    /// Processes that left in order, and the mailboxes they had posted to: if they turn out to have failed, these are told.
    left: Mutex<HashMap<ProcessId, Vec<MailboxId>>>,
}

/// Who else is in the job, and who introduces us.
pub(crate) trait Neighbours: Send + Sync {
    /// The path on a channel to a life of a rank or to a later one, to which there is none yet, opened within `patience`.
    fn reach(
        &self,
        process: &Arc<Process>,
        channel: ChannelId,
        first: ProcessId,
        patience: Duration,
    ) -> Result<Path, ReachError>;

    /// Asks whoever keeps names, for `process`. The answer comes to [`Process::handle_answer`].
    fn ask_name(&self, process: &Process, question: Question) -> Result<(), NobodyKeeps>;

    /// Who is where in the job of `process`.
    fn topology(&self, process: &Process) -> Result<Topology, TopologyError> {
        Ok(Topology::of_one_host(
            process.id,
            &process.host,
            process.size,
        ))
    }

    /// Tells everyone that `me` leaves.
    fn leave(&self, me: ProcessId, how: Departure);

    /// Whether a launcher or `mizzen::local` started the job. If not, it is a job of one.
    fn is_launched(&self) -> bool;

    /// Whether a launcher says which processes died.
    fn has_launcher(&self) -> bool {
        false
    }

    /// How long a process that leaves waits for one that takes nothing at all of what was sent to it.
    fn leave_patience(&self) -> Duration {
        LEAVE_PATIENCE
    }

    /// A rank cannot be reached: asks whoever knows whether it has left. The answer comes as any other word of it.
    fn ask_about(&self, _rank: Rank) {}

    /// Whether no other process can send us anything any more.
    fn others_are_gone(&self, process: &Process) -> bool;

    /// How long a rank waits for a message when all others have ended, if not for ever.
    fn longest_lonely_wait(&self) -> Option<Duration> {
        None
    }

    /// Has the launcher tell the user something about this process, if there is one.
    fn remark(&self, _text: String) {}

    /// Has the launcher show how far a map of this process is, if there is one.
    fn tell_progress(&self, _progress: boot::Progress) {}
}

impl Process {
    /// The place of `id` in a job of `size` processes.
    pub(crate) fn new(
        id: ProcessId,
        size: u32,
        host: String,
        memory: Memory,
        neighbours: Box<dyn Neighbours>,
    ) -> Result<Arc<Self>, SegmentError> {
        let bells = Bells::new(memory)?;
        let mailboxes = Arc::new(Mailboxes::new(memory, Arc::clone(&bells))?);
        for number in 0..reserved::COUNT {
            let opened = mailboxes.open(ChannelId::DEFAULT);
            debug_assert!(opened.is_ok_and(|core| core.id == MailboxId(number.into())));
        }
        Ok(Arc::new_cyclic(|weak| Self {
            weak: weak.clone(),
            // Of the highest level, so that every event says whose it is, at whatever level they are shown.
            span: tracing::error_span!("process", rank = %id),
            id,
            size,
            host,
            bells,
            mailboxes,
            links: Arc::new(Links::new(id, Arena::new(memory))),
            networks: OnceLock::new(),
            peers: Peers::default(),
            channels: OnceLock::new(),
            verdicts: Verdicts::default(),
            names: Names::new(id),
            neighbours,
            operations: Arc::default(),
            reactor: Mutex::default(),
            workers: OnceLock::new(),
            handles: AtomicUsize::new(0),
            has_left: AtomicBool::new(false),
            is_last: AtomicBool::new(false),
            taken_reserved: AtomicU32::new(0),
            counters: Counters::default(),
            standing: Standing::default(),
            left: Mutex::default(),
        }))
    }

    /// A reserved mailbox, once: it has one owner.
    pub(crate) fn take_reserved(&self, mailbox: MailboxId) -> Option<Arc<Core>> {
        let bit = 1_u32.checked_shl(mailbox.0 as u32)?;
        let taken = self.taken_reserved.fetch_or(bit, Ordering::AcqRel) & bit != 0;
        self.mailboxes.get(mailbox).filter(|_| !taken)
    }

    /// Whether the process has left the job, or is about to.
    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Acquire)
    }

    /// The path to a rank, opened if need be.
    pub(crate) fn reach(&self, rank: Rank) -> Result<Path, ReachError> {
        self.reach_within(rank, CONNECT_PATIENCE)
    }

    /// The path to a rank, opened if need be within `patience`.
    pub(crate) fn reach_within(&self, rank: Rank, patience: Duration) -> Result<Path, ReachError> {
        let first = ProcessId::new(rank, Incarnation(0));
        self.reach_since(ChannelId::DEFAULT, first, patience)
    }

    /// The path on a channel to a life of a process or to a later one.
    fn reach_since(
        &self,
        channel: ChannelId,
        first: ProcessId,
        patience: Duration,
    ) -> Result<Path, ReachError> {
        let (rank, size) = (first.rank, self.size);
        if rank.0 >= size {
            return Err(ReachError::NoSuchRank { rank, size });
        }
        if let Some(path) = self.peers.usable(channel, rank, first.incarnation) {
            return Ok(path);
        }
        let left = || ReachError::Gone(Gone::new(self.id, Departure::Left));
        let me = self.weak.upgrade().ok_or_else(left)?;
        self.neighbours.reach(&me, channel, first, patience)
    }

    /// The path to one life of a process: never to a later one, nor to an earlier one whose link still stands.
    pub(crate) fn reach_life(&self, process: ProcessId) -> Result<Path, ReachError> {
        self.reach_life_on(ChannelId::DEFAULT, process)
    }

    /// The same on a channel.
    pub(crate) fn reach_life_on(
        &self,
        channel: ChannelId,
        process: ProcessId,
    ) -> Result<Path, ReachError> {
        if let Some(gone) = self.peers.gone(process) {
            return Err(ReachError::Gone(gone));
        }
        let path = self.reach_since(channel, process, CONNECT_PATIENCE)?;
        if path.peer() == process {
            return Ok(path);
        }
        Err(ReachError::Gone(
            self.peers
                .gone(process)
                .unwrap_or(Gone::new(process, Departure::Died)),
        ))
    }

    /// The life of a rank whose messages a network may still bring, even if somebody else has told of its end.
    pub(crate) fn on_network(&self, rank: Rank) -> Option<ProcessId> {
        self.networks.get()?.linked(rank)
    }

    /// Binds `name` to one of our mailboxes.
    pub(crate) fn bind(&self, name: &str, address: Address) -> Result<(), BindError> {
        let bound = self.names.bind(self, name, address);
        match &bound {
            Ok(()) => debug!(parent: &self.span, name, mailbox = %address, "name bound"),
            Err(error) => debug!(parent: &self.span, name, %error, "name not bound"),
        }
        bound
    }

    /// Whether this process bound the name.
    pub(crate) fn has_bound(&self, name: &str) -> bool {
        self.names.has_bound(name)
    }

    /// Frees a name that means one of our mailboxes.
    pub(crate) fn unbind(&self, name: &str, address: Address) {
        debug!(parent: &self.span, name, "name freed");
        self.names.unbind(self, name, address.mailbox);
    }

    /// What `name` means, waiting until someone binds it.
    pub(crate) fn fetch(
        &self,
        name: &str,
        patience: Option<Duration>,
    ) -> Result<Address, FetchError> {
        self.names.fetch(self, name, patience)
    }

    /// The same as `fetch`. `waits` is what the user is told that this waits for, if it takes long.
    pub(crate) fn fetch_saying(
        &self,
        name: &str,
        patience: Option<Duration>,
        waits: &dyn Fn() -> String,
    ) -> Result<Address, FetchError> {
        self.names.fetch_saying(self, name, patience, waits)
    }

    /// Whoever keeps names answers.
    pub(crate) fn handle_answer(&self, answer: Answer) {
        self.names.handle_answer(answer);
    }

    /// Whoever keeps names is gone.
    pub(crate) fn names_gone(&self) {
        self.names.close();
    }

    /// A rank was started again.
    pub(crate) fn peer_joined(&self, life: ProcessId) {
        debug!(parent: &self.span, rank = %life, "rank started again");
        self.peers.note_joined(life);
    }

    /// A mailbox of ours is dropped: peers that used it are told.
    pub(crate) fn close_mailbox(&self, mailbox: MailboxId) {
        for link in self.links.all().1 {
            let mut inbound = link.inbound.lock();
            if inbound.close_account(mailbox, &link.counts) {
                link.tell(mailbox, MailboxNotice::CLOSED);
            }
        }
        self.mailboxes.close(mailbox);
        self.names.handle_closed(self, mailbox);
        if self.has_left() {
            self.take_last();
        }
    }

    /// Takes what came to a rank that has left and is only a thread: nobody else looks at its lanes again, and what was lent with
    /// messages that nobody will read goes back.
    fn take_last(&self) {
        let (_, links) = self.links.all();
        for link in links
            .iter()
            .filter(|link| !link.channel.ends_with_its_process())
        {
            link.drain(&self.mailboxes, &mut link.inbound.lock());
        }
    }

    /// One of our mailboxes closed: peers on networks are told.
    pub(crate) fn close_on_networks(&self, mailbox: MailboxId) {
        if let Some(networks) = self.networks.get() {
            networks.close_mailbox(mailbox);
        }
    }

    /// Moves what can be moved on networks, for a thread that waits for something from there.
    #[inline]
    pub(crate) fn watch_networks(&self) {
        if let Some(networks) = self.networks.get() {
            networks.watch(self);
        }
    }

    /// The same for a thread that knows what it waits for.
    #[inline]
    pub(crate) fn catch(&self, catch: &mut Catch<'_>) {
        if let Some(networks) = self.networks.get() {
            networks.catch(self, catch);
        }
    }

    /// A peer on this host is gone: what it sent is delivered, then everyone who depends on it is told.
    pub(crate) fn end_link(&self, link: &Arc<MemoryLink>, how: Departure) {
        link.end(how);
        if !link.claim_cleaning() {
            return;
        }
        let counts = || summary(&**link);
        debug!(parent: &self.span, peer = %link.peer, ?how, counts = counts(), "link through memory ended");
        // Who left, or is only a thread of ours, may still read what we lent it, and be about to announce what it posts.
        let is_dead = how == Departure::Died && link.channel.ends_with_its_process();
        let mut posted_to = Vec::new();
        {
            let mut inbound = link.inbound.lock();
            if is_dead {
                link.drain_dead(&self.mailboxes, &mut inbound);
            } else {
                link.drain(&self.mailboxes, &mut inbound);
            }
            link.note_delivered();
            posted_to.extend(inbound.accounts.keys().copied());
            for (mailbox, account) in &inbound.accounts {
                if let Some(core) = self.mailboxes.get(*mailbox) {
                    core.counts.keep(Arc::clone(account));
                }
            }
        }
        self.links.remove(link);
        // Whoever waits for room there need not any more.
        link.move_on();
        link.borrower.end();
        link.take_back_unheard(&self.links.arena);
        if is_dead {
            link.borrower.reclaim(&self.links.arena, Ending::Killed);
        }
        let gone = link.gone().unwrap_or(Gone::new(link.peer, how));
        self.tell_senders_gone(gone, posted_to);
        self.peer_gone(gone);
    }

    /// A buffer that was handed on to us. Its owner is linked with us, or we are about to be with it.
    pub(crate) fn take_over(&self, handed: HandedTicket) -> Result<Holding, UnpackError> {
        let begun = Instant::now();
        loop {
            // What is known to be gone has left its link before that.
            let gone = self.peers.gone(handed.owner);
            if let Some(taken) = self.links.take_over(handed) {
                return taken;
            }
            if let Some(gone) = gone {
                return Err(UnpackError::PeerGone(gone));
            }
            if handed.owner.rank.0 >= self.size || begun.elapsed() >= OWNER_PATIENCE {
                return Err(UnpackError::Malformed);
            }
            std::thread::sleep(OWNER_NAP);
        }
    }

    /// Shows one of our slabs to another process of this host, so that `asker`, who holds a buffer of it, can hand that on:
    /// the number of the other one at our arena. Waits until there is a link to it.
    pub(crate) fn show_to(&self, asker: ProcessId, slab: SlabId, to: ProcessId) -> Option<Place> {
        let arena = &self.links.arena;
        // Both must be known, or nothing could be taken back when one of them dies.
        self.links.linked(asker)?.borrower.admit(arena)?;
        if to == self.id {
            return arena.admit_self(to);
        }
        let Ok(Path::Memory(link)) = self.reach_life(to) else {
            return None;
        };
        link.channel.foretell_handed().ok()?;
        link.try_show_slab(arena, slab).ok()?;
        link.borrower.admit(arena)
    }

    /// Tells the mailboxes to which a process had posted that it failed. One that left in order may still turn out to have
    /// failed, by its exit code; or it is known already, if its goodbye took longer than the launcher's word.
    fn tell_senders_gone(&self, gone: Gone, posted_to: Vec<MailboxId>) {
        let failed = |known: &Gone| known.process() == gone.process() && known.is_failure();
        let gone = self
            .peers
            .gone(gone.process())
            .filter(failed)
            .unwrap_or(gone);
        let mut left = lock(&self.left);
        let mut posted_to = posted_to;
        posted_to.extend(left.remove(&gone.process()).unwrap_or_default());
        if !gone.is_failure() {
            left.insert(gone.process(), posted_to);
            return;
        }
        drop(left);
        for core in posted_to
            .into_iter()
            .filter_map(|mailbox| self.mailboxes.get(mailbox))
        {
            self.mailboxes.tell_gone(&core, gone);
        }
    }

    /// The agent says that lives up to this one of neighbouring ranks had ended before we began.
    pub(crate) fn lives_ended(&self, first: Rank, last: Rank, life: Incarnation) {
        let last = last.min(Rank(self.size.saturating_sub(1)));
        self.verdicts.handle_fenced(first, last, life);
    }

    /// The agent says that all that happened up to this epoch was told.
    pub(crate) fn epoch_told(&self, epoch: Epoch) {
        if let Err(gap) = self.verdicts.handle_epoch(epoch) {
            warn!(parent: &self.span, "{gap}");
            let text = format!("was not told all that happened: {gap}");
            self.neighbours.remark(text);
        }
    }

    /// The agent says that a process failed.
    pub(crate) fn process_failed(&self, process: ProcessId, how: Death) {
        let gone = Gone::died(process, how);
        debug!(parent: &self.span, %gone, "the agent tells of a failure");
        // Nothing of it comes behind the news.
        self.verdicts.handle_ended(process, how);
        self.peers.note_gone(gone);
        if let Some(networks) = self.networks.get() {
            networks.pronounce(gone);
        }
        self.tell_senders_gone(gone, Vec::new());
        self.peer_gone(gone);
    }

    /// A process of the job is gone, whether or not we had a link with it.
    pub(crate) fn peer_gone(&self, gone: Gone) {
        self.peers.note_gone(gone);
        for core in self.mailboxes.all() {
            if core.depends_on(gone.rank()) {
                self.mailboxes.tell_gone(&core, gone);
            }
            // Lanes of its own senders end with it: the owner must look.
            core.look();
            self.mailboxes.wake(&core);
        }
    }

    /// The job fails because of `gone`: nobody shall wait for anything.
    pub(crate) fn fail(&self, gone: Gone) {
        self.peer_gone(gone);
        self.mailboxes.fail(gone);
    }

    /// The launcher says that no other process is left, and none will come.
    pub(crate) fn note_last(&self) {
        debug!(parent: &self.span, "all other ranks have ended");
        self.is_last.store(true, Ordering::Release);
        // Their owners look whether anybody can still send to them.
        for core in self.mailboxes.all() {
            core.look();
            self.mailboxes.wake(&core);
        }
    }

    /// All others, if none of them can send us anything any more and what they sent has been delivered.
    pub(crate) fn others_if_gone(&self) -> Option<Vec<Gone>> {
        // A link is taken away when all that came over it has been delivered.
        let delivered = self.neighbours.others_are_gone(self)
            && self.links.all().1.iter().all(|link| link.peer == self.id)
            && self.peers.is_linked_to_nobody_but(self.id)
            && self
                .networks
                .get()
                .is_none_or(|networks| !networks.has_links());
        delivered.then(|| {
            let left = |rank| Gone::new(ProcessId::new(rank, Incarnation(0)), Departure::Left);
            let how = |rank| self.peers.last_gone(rank).unwrap_or_else(|| left(rank));
            self.others().take(NAMED_GONE).map(how).collect()
        })
    }

    /// The counters of a mailbox as text.
    pub(crate) fn mailbox_summary(&self, core: &Core) -> String {
        let mut retrieved = HashMap::new();
        let links = self.links.all().1;
        links
            .iter()
            .for_each(|link| link.add_retrieved(&mut retrieved));
        let from_links = retrieved.get(&core.id).copied().unwrap_or(0);
        let mut rows = Rows::default();
        core.count(from_links, &mut rows);
        rows.summary()
    }

    /// All counters: of the process itself, its links and mailboxes, and what services added.
    pub(crate) fn counted(&self) -> Vec<CounterRow> {
        let mut rows = Rows::default();
        rows.object("process", &[("sleeps", self.bells.sleeps.get())]);
        let links = self.links.all().1;
        links.iter().for_each(|link| link.count(&mut rows));
        if let Some(networks) = self.networks.get() {
            networks.count(&mut rows);
        }
        let mut retrieved = HashMap::new();
        links
            .iter()
            .for_each(|link| link.add_retrieved(&mut retrieved));
        for core in self.mailboxes.all() {
            let from_links = retrieved.get(&core.id).copied().unwrap_or(0);
            core.count(from_links, &mut rows);
        }
        self.counters.count(&mut rows);
        rows.into_rows()
    }

    /// All other ranks of the job.
    pub(crate) fn others(&self) -> impl Iterator<Item = Rank> + use<> {
        let me = self.id.rank;
        (0..self.size).map(Rank).filter(move |rank| *rank != me)
    }

    /// The thread that wakes async tasks of this process; started when first needed.
    pub(crate) fn ensure_reactor(&self) -> std::io::Result<()> {
        let mut reactor = lock(&self.reactor);
        if reactor.is_none() {
            let (bells, links) = (Arc::clone(&self.bells), Arc::clone(&self.links));
            let (mailboxes, operations) =
                (Arc::clone(&self.mailboxes), Arc::clone(&self.operations));
            *reactor = Some(Reactor::start(bells, mailboxes, links, operations)?);
        }
        Ok(())
    }

    /// Has an operation moved on by who waits, and by the reactor.
    pub(crate) fn move_on_later(&self, operation: Arc<Operation>) {
        self.operations.add(operation);
        if self.can_move_on_later() {
            self.bells.ring(REACTOR_BELL);
        }
    }

    /// A task found no room, and nobody knows when there is some: it asks again soon.
    pub(crate) fn ask_again(&self, waker: &Waker) {
        if self.ensure_reactor().is_err() {
            waker.wake_by_ref();
            return;
        }
        self.links.ask_again(waker);
        self.bells.ring(REACTOR_BELL);
    }

    /// The workers of this process; they start when there is work.
    pub(crate) fn workers(&self) -> &Arc<Workers> {
        self.workers.get_or_init(|| {
            let progress: Weak<dyn Progress> = self.weak.clone();
            let (bells, links) = (Arc::clone(&self.bells), Arc::clone(&self.links));
            crate::workers::workers(progress, bells, links)
        })
    }

    pub(crate) fn has_workers(&self, workers: &Arc<Workers>) -> bool {
        self.workers
            .get()
            .is_some_and(|ours| Arc::ptr_eq(ours, workers))
    }

    /// A process to which messages were posted that are still in memory of ours, and how many.
    fn waiting(&self) -> Option<(ProcessId, u64)> {
        let near = self.links.all().1;
        let near = near.iter().filter(|link| link.peer != self.id);
        let near = near.map(|link| (link.peer, link.waiting()));
        let far = self.networks.get().map_or_else(Vec::new, Networks::waiting);
        near.chain(far).find(|(_, messages)| *messages > 0)
    }

    /// Waits until what was posted is where its readers find it, as long as they read at all.
    fn flush(&self) {
        let contention = Contention::default();
        let mut patience = Patience::until(None, &contention);
        let (mut last, mut since) = (None, Instant::now());
        let mut noted = Noted::default();
        while let Some((peer, messages)) = self.waiting() {
            self.pump_all();
            if last != Some((peer, messages)) {
                (last, since) = (Some((peer, messages)), Instant::now());
            }
            if since.elapsed() > self.neighbours.leave_patience() {
                let waited = since.elapsed();
                let what = format!(
                    "to leave, and leaves now: {messages} messages that rank {peer} does not read are lost"
                );
                return Progress::remark(self, waited, &what);
            }
            if let Step::Sleep(_) = patience.step() {
                let what = || format!("to leave: rank {peer} does not read what was posted to it");
                let waits = || WaitsFor::one(Kind::Room, peer.rank, what());
                noted.keep(&mut patience, waits);
                if let Some(waited) = patience.remarkable() {
                    Progress::remark(self, waited, &what());
                }
                std::thread::sleep(FLUSH_NAP);
            }
        }
    }

    /// The process leaves the job, and its peers are told. Happens once.
    pub(crate) fn leave(&self, how: Departure) {
        crate::crash::point("leave");
        if self.has_left.swap(true, Ordering::AcqRel) {
            return;
        }
        debug!(parent: &self.span, ?how, "leaves the job");
        if tracing::enabled!(tracing::Level::DEBUG) {
            for object in by_object(&self.counted()) {
                debug!(parent: &self.span, "counted: {object}");
            }
        }
        if how == Departure::Left {
            self.flush();
        }
        if let Some(workers) = self.workers.get() {
            workers.stop();
        }
        drop(lock(&self.reactor).take());
        if let Some(networks) = self.networks.get() {
            networks.leave(self, how);
        }
        if how == Departure::Left {
            self.tell_untaken();
        }
        self.neighbours.leave(self.id, how);
        self.names.close();
        self.take_last();
    }
}

impl Progress for Process {
    fn pump_all(&self) {
        let (_, links) = self.links.all();
        for link in &links {
            link.pump(&self.mailboxes);
        }
        self.poll_networks();
        self.standing.move_on();
    }

    #[inline]
    fn poll_networks(&self) {
        if let Some(networks) = self.networks.get() {
            networks.pump(Some(self));
        }
    }

    fn add_poller(&self) {
        if let Some(networks) = self.networks.get() {
            networks.add_poller();
        }
    }

    fn remove_poller(&self, then: Then) {
        if let Some(networks) = self.networks.get() {
            networks.remove_poller(then);
        }
    }

    fn has_lanes(&self) -> bool {
        !self.links.is_empty()
    }

    fn can_move_on_later(&self) -> bool {
        !self.has_left() && self.ensure_reactor().is_ok()
    }

    fn bells(&self) -> &Arc<Bells> {
        &self.bells
    }

    #[cold]
    fn remark(&self, waited: Duration, what: &str) {
        let gone = self.others_if_gone().filter(|gone| !gone.is_empty());
        let tail = gone.map_or("", |_| "; all other ranks are gone");
        let waited = waited.as_secs_f64();
        let text = format!("has waited {waited:.0} s {what}{tail}");
        warn!(parent: &self.span, "{text}");
        self.neighbours.remark(text);
    }
}

impl WithLinks for Process {
    fn links(&self) -> &Links {
        &self.links
    }

    fn progress(&self) -> &dyn Progress {
        self
    }
}

impl Control for Process {
    fn mailboxes(&self) -> &Mailboxes {
        &self.mailboxes
    }

    fn admission(&self, peer: ProcessId) -> Option<Admission> {
        (peer.rank.0 < self.size).then(|| self.verdicts.admission(peer))
    }

    fn gone(&self, peer: ProcessId) -> Option<Gone> {
        self.peers.gone(peer)
    }

    fn has_launcher(&self) -> bool {
        self.neighbours.has_launcher()
    }

    fn leave_patience(&self) -> Duration {
        self.neighbours.leave_patience()
    }

    fn ask_about(&self, peer: ProcessId) {
        self.neighbours.ask_about(peer.rank);
    }

    fn connected(&self, channel: Option<ChannelId>, link: Arc<NetLink>) {
        debug!(parent: &self.span, peer = %link.peer, ?channel, "link over a network made");
        if let Some(channel) = channel {
            self.peers.add_net(channel, Path::Net(link));
        }
    }

    fn link_ended(&self, gone: Gone, posted_to: Vec<MailboxId>) {
        debug!(parent: &self.span, %gone, "link over a network ended");
        self.tell_senders_gone(gone, posted_to);
        // One that leaves says so on each of its channels, and is gone when all of them are over.
        let networks = self.networks.get();
        let has_other = || networks.is_some_and(|networks| networks.has_link(gone.process()));
        if gone.is_failure() || !has_other() {
            self.peer_gone(gone);
        }
    }
}

impl Courier for Process {
    fn ask(&self, question: Question) -> Result<(), NobodyKeeps> {
        self.neighbours.ask_name(self, question)
    }

    fn has_mailbox(&self, mailbox: MailboxId) -> bool {
        self.mailboxes.get(mailbox).is_some()
    }

    fn remark(&self, waited: Duration, what: &str) {
        Progress::remark(self, waited, what);
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("id", &self.id)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}
