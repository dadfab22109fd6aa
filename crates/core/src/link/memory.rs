//! A link through memory: what this process shares with one peer that is a thread of it, or a process of the same host.
//!
//! Each side has one shared lane to the other, over which all its threads post to all the other's mailboxes; a table in
//! which it gives back the other's lent buffers; and a view of the other's watches and bells.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use mizzen_lane::{
    Call, Consumer, Latch, Lender, Peek, Published, Refused, Region, SharedProducer, Slate, Watch,
    call_after_publish, call_quietly, is_awake_and_last,
};
use mizzen_shm::barrier;

use super::behind::{Behind, Route};
use super::channel::{Channel, Disconnected};
use super::counts::LinkCounts;
use super::fate::Fate;
use super::mailbox_lane::MailboxLane;
use super::owners::Owners;
use super::pausing::Pausing;
use super::pulling::Pulling;
use crate::bells::ring;
use crate::counters::{Counted, Counter, Rows};
use crate::error::{Departure, Gone, PostError, UnpackError};
use crate::lock::lock;
use crate::memory::{
    Arena, Borrower, HandedTicket, Holding, Loan, LoanTicket, Place, SlabId, Tables, lender,
};
use crate::message::{AnyTicket, Encoded, Flags, Payload, lent_tickets, ticket_at};
use crate::rank::{MAX_MAILBOXES, MailboxId, ProcessId, SLATE_LINES, SlateUse, slot_of};

/// Messages that a process may have posted to one mailbox without their being retrieved. Bounds the memory of a mailbox
/// that nobody reads; large enough that a credit message is rare. A peer with more of them in a mailbox's queue is cut off.
pub(crate) const WINDOW: u32 = 256;

/// Mailboxes of which there is news that a peer has no room for: one that makes us answer and never reads, far above what
/// an honest one can cause.
const UNSENT_NOTICES_MAX: usize = 1 << 16;

/// Messages that are to be discarded and whose slab did not come yet: far above what an honest peer can cause, and one that
/// goes beyond loses what it lent.
const UNREAD_MAX: usize = 1 << 14;
/// The most slabs of its arena that a peer may have shown us: twice as many as it can have blocks, because it tells of new
/// ones before it tells that old ones are gone.
const MAX_SLABS: usize = 2 * Arena::MAX_BLOCKS;
/// The most bytes of them together. An arena whose every block is in a slab of small ones of its own has 8 GiB, one that
/// keeps all large ones it may keep has 5 GiB, and its long messages have 8 GiB; they count as the peer's memory, and as our
/// addresses.
const MAX_SLABS_BYTES: usize = 16 << 30;

/// In `unsent`: notices to the peer, and messages.
const NOTICES: u8 = 1;
const BEHIND: u8 = 2;

/// A link through memory to one peer.
#[derive(Debug)]
pub(crate) struct MemoryLink {
    pub(crate) peer: ProcessId,
    /// Our shared lane to the peer.
    pub(crate) lane: SharedProducer,
    /// The peer's shared lane to us. Whoever waits for anything drains it.
    pub(crate) inbound: Latch<Inbound>,
    pub(crate) peek: Peek,
    /// The peer's watches and bells.
    pub(crate) watches: Region,
    pub(crate) bells: Region,
    /// The peer's blocks at us, and ours at the peer.
    pub(crate) lender: Lender,
    pub(crate) borrower: Borrower,
    /// Slabs of the peer's arena that we know, and those of ours that the peer knows.
    slabs: Mutex<Slabs>,
    slab_came: Condvar,
    /// Messages to discard, with the buffers that are lent with them, when their slab comes.
    unread: Mutex<Vec<LoanTicket>>,
    shown: Mutex<BTreeSet<u32>>,
    /// One of the latter, that was asked for last, plus one; or 0.
    shown_last: AtomicU64,
    /// Slabs of the peer that it showed to others, for us to hand on buffers of them.
    shown_to: Mutex<HashMap<(u32, ProcessId), Place>>,
    /// Whether others hand on buffers of the peer to us.
    is_handed: AtomicBool,
    /// Where buffers belong that the peer hands on.
    owners: Weak<dyn Owners>,
    routes: Mutex<HashMap<MailboxId, Arc<Route>>>,
    /// What we could not tell the peer because our lane to it was full.
    unsent_notices: Mutex<HashMap<MailboxId, MailboxNotice>>,
    /// Messages of ours that found no room.
    pub(super) behind: Behind,
    /// Which of these there are.
    unsent: AtomicU8,
    pub(crate) channel: Box<dyn Channel>,
    /// How the peer's long messages come.
    pub(crate) pulling: Pulling,
    /// How ours wait for that.
    pub(crate) pausing: Pausing,
    pub(crate) fate: Fate,
    pub(crate) counts: LinkCounts,
    cleaned: AtomicBool,
    /// Whether all that the peer had posted over its shared lane is where it belongs, after the end.
    is_delivered: AtomicBool,
}

/// The slabs that a peer has shown us.
#[derive(Debug, Default)]
struct Slabs {
    known: BTreeMap<u32, Region>,
    bytes: usize,
}

impl Slabs {
    /// Whether there may be one more of so many bytes.
    fn has_room(&self, bytes: usize) -> bool {
        self.known.len() < MAX_SLABS
            && bytes <= Arena::LARGEST_SLAB
            && self.bytes + bytes <= MAX_SLABS_BYTES
    }

    fn add(&mut self, number: u32, region: Region) -> bool {
        // Two threads of the peer may show the same one.
        self.remove(number);
        let fits = self.has_room(region.len());
        if fits {
            self.bytes += region.len();
            self.known.insert(number, region);
        }
        fits
    }

    fn remove(&mut self, number: u32) {
        if let Some(region) = self.known.remove(&number) {
            self.bytes -= region.len();
        }
    }
}

/// The receiving end of the peer's shared lane.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub(crate) consumer: Consumer,
    pub(crate) accounts: HashMap<MailboxId, Arc<Account>>,
    /// The account that was needed last: it often is the next one too.
    last: Option<Arc<Account>>,
}

impl Inbound {
    /// The account of a mailbox with the peer at the other end of `link`.
    #[inline]
    pub(crate) fn account(
        &mut self,
        mailbox: MailboxId,
        link: impl FnOnce() -> Weak<MemoryLink>,
    ) -> &Arc<Account> {
        let account = match self.last.take().filter(|last| last.mailbox == mailbox) {
            Some(last) => last,
            None => Arc::clone(
                self.accounts
                    .entry(mailbox)
                    .or_insert_with(|| Account::new(link(), mailbox)),
            ),
        };
        self.last.insert(account)
    }

    /// The mailbox is gone, and its account with it. Whether it had one.
    pub(crate) fn close_account(&mut self, mailbox: MailboxId, counts: &LinkCounts) -> bool {
        self.last = None;
        let closed = self.accounts.remove(&mailbox);
        if let Some(account) = &closed {
            counts.notices_sent.add(account.notices.get());
        }
        closed.is_some()
    }
}

/// What we owe a peer for messages of one mailbox: credits are returned in batches of half a window.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) link: Weak<MemoryLink>,
    pub(crate) mailbox: MailboxId,
    /// How many were retrieved. The peer was told of all but those since the last half of a window.
    retrieved: AtomicU64,
    /// How often credits were returned. Only the owner of the mailbox does.
    notices: Counter,
    /// How many of its messages are in the mailbox's queue, under whose lock this changes.
    queued: AtomicU32,
}

/// What a process tells another about one of its mailboxes: credits, or that it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MailboxNotice(pub(crate) u32);

impl MailboxNotice {
    pub(crate) const CLOSED: Self = Self(u32::MAX);

    fn credits(credits: u32) -> Self {
        Self(credits.min(WINDOW))
    }

    fn is_closed(self) -> bool {
        self == Self::CLOSED
    }

    /// Both: a closed mailbox needs no credits.
    fn and(self, other: Self) -> Self {
        if self.is_closed() || other.is_closed() {
            Self::CLOSED
        } else {
            Self::credits(self.0 + other.0)
        }
    }
}

/// The memory and the lanes a link is made of.
pub(crate) struct Parts {
    pub(crate) lane: SharedProducer,
    pub(crate) inbound: Consumer,
    pub(crate) watches: Region,
    pub(crate) bells: Region,
    pub(crate) ours: Tables,
    pub(crate) theirs: Tables,
    pub(crate) owners: Weak<dyn Owners>,
}

impl MemoryLink {
    pub(crate) fn new(peer: ProcessId, parts: Parts, channel: Box<dyn Channel>) -> Self {
        Self {
            peer,
            lane: parts.lane,
            peek: parts.inbound.peek(),
            inbound: Latch::new(Inbound {
                consumer: parts.inbound,
                accounts: HashMap::new(),
                last: None,
            }),
            watches: parts.watches,
            bells: parts.bells,
            lender: lender(parts.ours.returns, parts.theirs.revocations),
            borrower: Borrower::new(peer, parts.theirs.returns, parts.ours.revocations),
            slabs: Mutex::default(),
            slab_came: Condvar::new(),
            unread: Mutex::default(),
            shown: Mutex::default(),
            shown_last: AtomicU64::new(0),
            shown_to: Mutex::default(),
            is_handed: AtomicBool::new(false),
            owners: parts.owners,
            routes: Mutex::default(),
            unsent_notices: Mutex::default(),
            behind: Behind::default(),
            unsent: AtomicU8::new(0),
            pulling: Pulling::of(channel.pid()),
            pausing: Pausing::default(),
            channel,
            fate: Fate::of(peer),
            counts: LinkCounts::default(),
            cleaned: AtomicBool::new(false),
            is_delivered: AtomicBool::new(false),
        }
    }

    /// The route to one of the peer's mailboxes.
    pub(crate) fn route(&self, mailbox: MailboxId) -> Arc<Route> {
        let mut routes = lock(&self.routes);
        let route = routes.entry(mailbox).or_insert_with(|| {
            let watch = self.watch(mailbox);
            let route = Route::new(mailbox, watch, WINDOW);
            Arc::new(if self.channel.has_mailbox_lanes() {
                route.with_own_lane()
            } else {
                route
            })
        });
        Arc::clone(route)
    }

    /// The watch of one of the peer's mailboxes. An impossible mailbox gets the first watch: it will be refused as closed.
    pub(crate) fn watch(&self, mailbox: MailboxId) -> Watch {
        let slot = (slot_of(mailbox) as usize) % MAX_MAILBOXES;
        Watch::new(self.watches.clone(), slot, barrier::everywhere())
    }

    /// One of the peer's slates.
    pub(crate) fn slate(&self, slate: SlateUse) -> Slate {
        Slate::new(self.watches.clone(), slate.line(), SLATE_LINES)
    }

    /// Wakes the owner of a mailbox if it sleeps, after a message was announced. If the mailbox was closed meanwhile, the
    /// message is lost as any other that its owner did not read: it was posted, and what it lent is given back.
    #[inline]
    pub(crate) fn call(&self, watch: &Watch) {
        if let Call::Bell(number) = call_after_publish(watch) {
            self.wake(number);
        }
    }

    /// Wakes whoever sleeps and must know of a message that was just announced over the shared lane: the owner of its mailbox, and
    /// those for whom something was announced behind it.
    #[inline]
    fn call_posted(&self, watch: &Watch, published: Published<'_>) {
        if !is_awake_and_last(watch, &published) {
            self.call(watch);
            self.call_following(published);
        }
    }

    /// Posts if there is room, and wakes those who must know of it. Always inlined: this is the way of a short message.
    #[inline(always)]
    pub(crate) fn attempt(&self, route: &Route, message: &impl Encoded) -> Result<(), Refused> {
        if let Some(lane) = route.own.as_ref().and_then(|own| self.own_lane(route, own)) {
            return lane.attempt(&route.watch, message, |bell| self.wake(bell));
        }
        let flags = message.flags();
        let short = message.with_short(SharedProducer::SHORT_MAX, |bytes| {
            self.lane.try_short(flags.0, route.mailbox.0, bytes)
        });
        let published = match short {
            Some(published) => published?,
            None => self.lane.try_eager(flags.0, route.mailbox.0, message)?,
        };
        self.call_posted(&route.watch, published);
        Ok(())
    }

    /// The lane of a mailbox of this OS process. If that is closed, what is for it goes over the shared lane: whoever drains that gives
    /// back what was lent with it, and says that the mailbox is closed.
    #[inline]
    fn own_lane<'a>(
        &self,
        route: &Route,
        own: &'a OnceLock<Option<MailboxLane>>,
    ) -> Option<&'a MailboxLane> {
        let open = || self.channel.open_mailbox_lane(route.mailbox);
        own.get_or_init(open)
            .as_ref()
            .filter(|lane| !lane.is_over())
    }

    /// Wakes a thread of the peer.
    #[cold]
    pub(crate) fn wake(&self, bell: u32) {
        self.counts.wakes.add(1);
        ring(&self.bells, bell);
    }

    /// As `call`, after a message on a lane of a sender's own.
    #[inline]
    pub(crate) fn call_quietly(&self, watch: &Watch) -> Result<(), PostError> {
        match call_quietly(watch) {
            Call::Awake => Ok(()),
            other => self.call_cold(other),
        }
    }

    #[cold]
    fn call_cold(&self, call: Call) -> Result<(), PostError> {
        match call {
            Call::Awake => (),
            Call::Bell(number) => self.wake(number),
            Call::Closed => {
                let rank = self.peer.rank;
                return Err(PostError::Closed { rank });
            }
        }
        Ok(())
    }

    /// Whether a mailbox can be posted to, as far as is known.
    #[inline]
    pub(crate) fn check(&self, watch: &Watch) -> Result<(), PostError> {
        if self.fate.is_ended() {
            return Err(self.gone_or_died());
        }
        if watch.call() == Call::Closed {
            return Err(PostError::Closed {
                rank: self.peer.rank,
            });
        }
        Ok(())
    }

    /// News about one of the peer's mailboxes.
    pub(crate) fn handle_control(&self, mailbox: MailboxId, news: MailboxNotice) {
        let Some(route) = lock(&self.routes).get(&mailbox).cloned() else {
            return;
        };
        if news.is_closed() {
            route.closed.store(true, Ordering::Release);
            lock(&self.routes).remove(&mailbox);
            self.counts.mailbox_lanes_sent.add(route.sent());
            return;
        }
        route.add_credits(news.0, WINDOW);
    }

    /// Tells the peer news about one of our mailboxes, now or when its lane has room again. Whether it was credits, and told now:
    /// then the caller counts it.
    pub(crate) fn tell(&self, mailbox: MailboxId, news: MailboxNotice) -> bool {
        if self.try_tell(mailbox, news) {
            if news.is_closed() {
                self.counts.notices_sent.add(1);
            }
            return !news.is_closed();
        }
        let mut unsent_notices = lock(&self.unsent_notices);
        if unsent_notices.len() >= UNSENT_NOTICES_MAX && !unsent_notices.contains_key(&mailbox) {
            drop(unsent_notices);
            self.cut_off();
            return false;
        }
        let pending = unsent_notices.entry(mailbox).or_insert(MailboxNotice(0));
        *pending = pending.and(news);
        self.mark_unsent(NOTICES, true);
        false
    }

    /// Tells what could not be told before, as far as there is room.
    pub(super) fn send_notices(&self) {
        let mut unsent_notices = lock(&self.unsent_notices);
        let before = unsent_notices.len();
        unsent_notices.retain(|mailbox, news| !self.try_tell(*mailbox, *news));
        let told = before - unsent_notices.len();
        self.counts.notices_sent.add(told as u64);
        self.mark_unsent(NOTICES, !unsent_notices.is_empty());
    }

    /// Whether the peer must be told something for which there was no room.
    #[inline]
    pub(crate) fn has_unsent_notices(&self) -> bool {
        self.unsent.load(Ordering::Acquire) & NOTICES != 0
    }

    /// Whether messages to the peer wait for room.
    #[inline]
    pub(crate) fn has_behind(&self) -> bool {
        self.unsent.load(Ordering::Acquire) & BEHIND != 0
    }

    /// Whether any of it found no room.
    #[inline]
    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent.load(Ordering::Acquire) != 0
    }

    /// Whether messages to the peer wait for room, under the lock of their lists.
    pub(super) fn mark_behind(&self, is_any: bool) {
        self.mark_unsent(BEHIND, is_any);
    }

    fn mark_unsent(&self, kind: u8, is_any: bool) {
        if is_any {
            self.unsent.fetch_or(kind, Ordering::Release);
        } else {
            self.unsent.fetch_and(!kind, Ordering::Release);
        }
    }

    fn try_tell(&self, mailbox: MailboxId, news: MailboxNotice) -> bool {
        match self
            .lane
            .try_short(Flags::CONTROL.0, mailbox.0, &news.0.to_ne_bytes())
        {
            Ok(published) => {
                fence(Ordering::SeqCst);
                self.call_following(published);
                true
            }
            Err(_) => false,
        }
    }

    /// Wakes the receivers behind a gap in the shared lane that was just filled. After `call`, whose fence orders our
    /// announcement before the look at the next slot.
    pub(crate) fn call_following(&self, mut published: Published<'_>) {
        while let Some(to) = published.following() {
            self.call(&self.watch(MailboxId(to)));
        }
    }

    /// The buffer that the peer lent with `ticket`.
    pub(crate) fn borrow(&self, ticket: LoanTicket) -> Result<Holding, UnpackError> {
        let owner = self.peer;
        let loan = self.borrow_block(ticket)?;
        Ok(Holding { loan, owner })
    }

    /// The block that the peer lent with `ticket`.
    pub(crate) fn borrow_block(&self, ticket: LoanTicket) -> Result<Loan, UnpackError> {
        let region = self.slab(ticket.slab)?;
        self.lender
            .borrow(region, ticket)
            .ok_or(UnpackError::Malformed)
    }

    /// A buffer of the peer's that another handed on to us.
    pub(crate) fn take_over(&self, ticket: LoanTicket) -> Result<Holding, UnpackError> {
        let owner = self.peer;
        let slab = self
            .slab(ticket.slab)
            .inspect_err(|_| self.lender.give_back_handed(ticket))?;
        let taken = self.lender.take_over(slab, ticket);
        let loan = taken.map_err(|_| UnpackError::TakenBack)?;
        let loan = loan.ok_or(UnpackError::Malformed)?;
        Ok(Holding { loan, owner })
    }

    /// Gives back a buffer that was handed on, by the peer or to it, and that nobody will read.
    pub(crate) fn give_back_handed(&self, handed: HandedTicket) {
        if let Some(owners) = self.owners.upgrade() {
            owners.give_back(handed);
        }
    }

    /// Has the peer show one of its slabs to another process: the number of that at the peer.
    pub(crate) fn ask_to_show(&self, slab: SlabId, to: ProcessId) -> Option<Place> {
        if self.fate.is_ended() {
            return None;
        }
        if let Some(place) = lock(&self.shown_to).get(&(slab.0, to)) {
            return Some(*place);
        }
        let place = self.channel.ask_to_show(&self.fate, slab, to)?;
        lock(&self.shown_to).insert((slab.0, to), place);
        Some(place)
    }

    /// Others hand on buffers of the peer to us.
    pub(crate) fn note_handed(&self) {
        self.is_handed.store(true, Ordering::Release);
    }

    /// Whether others hand on buffers of the peer to us.
    pub(crate) fn is_handed(&self) -> bool {
        self.is_handed.load(Ordering::Acquire)
    }

    /// Gives back what a message of the peer that nobody will read has borrowed.
    pub(crate) fn discard(&self, flags: Flags, payload: &Payload) {
        let give_back = |ticket: LoanTicket| self.lender.give_back(ticket);
        let is_ticket = [Flags::LONG, Flags::STREAM, Flags::HANDED];
        if flags.has(Flags::LONG) && flags.has(Flags::LENT) {
            if let Some(ticket) = ticket_at(payload, 0) {
                self.discard_with_lent(ticket);
            }
        } else if is_ticket.into_iter().any(|flag| flags.has(flag)) {
            ticket_at(payload, 0).into_iter().for_each(give_back);
        } else if flags.has(Flags::LENT) {
            self.discard_lent(payload);
        }
    }

    /// Gives back a long message that nobody will read, and the buffers that were lent with it: their tickets are in its
    /// block.
    fn discard_with_lent(&self, ticket: LoanTicket) {
        let Some(block) = self.borrow_to_discard(ticket) else {
            return;
        };
        self.discard_lent(&Payload::Block(Box::new(block)));
    }

    /// Gives back the lent buffers of a message with a table.
    fn discard_lent(&self, payload: &Payload) {
        for lent in lent_tickets(payload) {
            match lent {
                AnyTicket::Own(ticket) => self.lender.give_back(ticket),
                AnyTicket::Handed(handed) => self.give_back_handed(handed),
            }
        }
    }

    /// The same for a message that nobody will read, without waiting for its slab: if that is still on its way, the message
    /// is discarded when it comes.
    fn borrow_to_discard(&self, ticket: LoanTicket) -> Option<Loan> {
        let slabs = lock(&self.slabs);
        if let Some(region) = slabs.known.get(&ticket.slab) {
            return self.lender.borrow(region.clone(), ticket);
        }
        let mut unread = lock(&self.unread);
        if unread.len() < UNREAD_MAX {
            unread.push(ticket);
        }
        None
    }

    /// Makes sure that the peer knows a slab of ours before it gets a block of it. An error is returned when the link has ended, not
    /// before: posts that take another way would still succeed, and whoever was told that the peer is gone must not see that.
    pub(crate) fn show_slab(&self, arena: &Arena, slab: SlabId) -> Result<(), PostError> {
        self.try_show_slab(arena, slab).map_err(|_| {
            self.await_end();
            self.gone_or_died()
        })
    }

    /// The same at once, for who looks for another way then.
    pub(crate) fn try_show_slab(&self, arena: &Arena, slab: SlabId) -> Result<(), Disconnected> {
        // Whoever asks has a block in it, so nobody drops it meanwhile.
        let mark = u64::from(slab.0) + 1;
        if self.shown_last.load(Ordering::Acquire) == mark {
            return Ok(());
        }
        if lock(&self.shown).contains(&slab.0) {
            self.shown_last.store(mark, Ordering::Release);
            return Ok(());
        }
        let Some(shared) = arena.slab(slab) else {
            return Ok(());
        };
        self.channel.show_slab(slab, &shared)?;
        lock(&self.shown).insert(slab.0);
        Ok(())
    }

    /// The peer's end of the channel is closed: waits for the news why, which is under way.
    fn await_end(&self) {
        /// Longer than a signal takes through an agent on a busy machine.
        const PATIENCE: Duration = Duration::from_secs(1);
        let slabs = lock(&self.slabs);
        let is_unheard = |_: &mut _| !self.fate.is_ended();
        // In vain: then it counts as dead for this post.
        let _ = self
            .slab_came
            .wait_timeout_while(slabs, PATIENCE, is_unheard);
    }

    /// One of our slabs is gone: the peer need not keep it.
    pub(crate) fn hide_slab(&self, slab: SlabId) {
        let _ = self.shown_last.compare_exchange(
            u64::from(slab.0) + 1,
            0,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if lock(&self.shown).remove(&slab.0) {
            self.channel.hide_slab(slab);
        }
    }

    /// The peer has dropped a slab. What we borrowed of it keeps it alive.
    pub(crate) fn remove_slab(&self, slab: SlabId) {
        lock(&self.slabs).remove(slab.0);
        lock(&self.shown_to).retain(|(known, _), _| *known != slab.0);
    }

    /// Whether the peer may show us one more slab, of so many bytes.
    pub(crate) fn has_room_for_slab(&self, bytes: usize) -> bool {
        lock(&self.slabs).has_room(bytes)
    }

    /// The peer showed us a slab. `false` if it has shown too many.
    pub(crate) fn add_slab(&self, slab: SlabId, region: Region) -> bool {
        let (fits, unread): (bool, Vec<LoanTicket>) = {
            let mut slabs = lock(&self.slabs);
            let fits = slabs.add(slab.0, region);
            let mut kept = lock(&self.unread);
            let (now, later) = kept.iter().partition(|ticket| ticket.slab == slab.0);
            *kept = later;
            (fits, now)
        };
        self.slab_came.notify_all();
        for ticket in unread {
            self.discard_with_lent(ticket);
        }
        fits
    }

    /// The peer wrote nonsense: the link ends, and the keeper notices by the socket.
    pub(crate) fn cut_off(&self) {
        self.end(Departure::Misbehaved);
        self.channel.cut();
    }

    /// Whether nobody has cleaned up after the link yet; the caller shall.
    pub(crate) fn claim_cleaning(&self) -> bool {
        !self.cleaned.swap(true, Ordering::AcqRel)
    }

    /// The peer is gone, and what it had posted over its shared lane was taken to where it belongs. Whoever cleans up says so.
    pub(crate) fn note_delivered(&self) {
        // Release pairs with the acquire below: the queues before this.
        self.is_delivered.store(true, Ordering::Release);
    }

    /// Whether the peer is gone and nothing more comes over its shared lane: only then an owner whose lane from it has ended may be
    /// told so, or the news would overtake what was posted.
    #[inline]
    pub(crate) fn is_delivered(&self) -> bool {
        self.is_delivered.load(Ordering::Acquire)
    }

    /// Ends the link. The first reason counts.
    pub(crate) fn end(&self, how: Departure) {
        self.fate.end(Gone::new(self.peer, how));
        // Who has just looked, and is about to wait, has the lock.
        drop(lock(&self.slabs));
        self.slab_came.notify_all();
    }

    /// How many messages of the peer the owners of our mailboxes have retrieved, added to what came over other links.
    pub(crate) fn add_retrieved(&self, counts: &mut HashMap<MailboxId, u64>) {
        for (mailbox, account) in &self.inbound.lock().accounts {
            *counts.entry(*mailbox).or_default() += account.count();
        }
    }

    /// How many mailboxes, of either end, something is kept about.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn mailboxes_tracked(&self) -> usize {
        let (routes, unsent_notices) = (lock(&self.routes).len(), lock(&self.unsent_notices).len());
        self.inbound.lock().accounts.len() + routes + unsent_notices
    }

    /// How the peer went.
    pub(crate) fn gone(&self) -> Option<Gone> {
        self.fate.gone()
    }

    pub(crate) fn gone_or_died(&self) -> PostError {
        PostError::PeerGone(self.fate.gone_or(Departure::Died))
    }

    /// Whether [`slab`](Self::slab) would not wait for it.
    pub(crate) fn knows_slab(&self, slab: u32) -> bool {
        lock(&self.slabs).known.contains_key(&slab) || self.fate.is_ended()
    }

    /// A slab of the peer. It was shown before its first block was sent, so it is known or about to be.
    pub(crate) fn slab(&self, slab: u32) -> Result<Region, UnpackError> {
        /// A shown slab is on its way through a socket and one thread; longer than this is nonsense of the peer.
        const PATIENCE: Duration = Duration::from_secs(2);
        let mut slabs = lock(&self.slabs);
        let mut deadline = None;
        loop {
            if let Some(region) = slabs.known.get(&slab) {
                return Ok(region.clone());
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(UnpackError::Malformed);
            }
            if let Some(gone) = self.gone() {
                // What it showed before it went has been read already.
                return Err(UnpackError::PeerGone(gone));
            }
            slabs = self
                .slab_came
                .wait_timeout(slabs, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }
}

impl Counted for MemoryLink {
    fn count(&self, rows: &mut Rows) {
        let counts = &self.counts;
        // What is read first is the smaller: a message that goes meanwhile makes no difference below zero.
        let heard = counts.notices_received.get();
        let accounts: u64 = {
            let inbound = self.inbound.lock();
            let accounts = inbound.accounts.values();
            accounts.map(|account| account.notices.get()).sum()
        };
        let told = counts.notices_sent.get() + accounts;
        let taken = counts.mailbox_lanes_taken.count();
        let open: u64 = lock(&self.routes).values().map(|route| route.sent()).sum();
        let mailbox_lanes = counts.mailbox_lanes_sent.get() + open;
        rows.object(
            format_args!("link to rank {}", self.peer),
            &[
                (
                    "messages_sent",
                    self.lane.sent().saturating_sub(told) + mailbox_lanes + self.behind.messages(),
                ),
                (
                    "messages_received",
                    self.peek.taken().saturating_sub(heard) + taken,
                ),
                ("copies", counts.long_messages.get()),
                ("bytes_copied", counts.long_bytes.get()),
                ("pulls", counts.pulled_messages.get()),
                ("bytes_pulled", counts.pulled_bytes.get()),
                ("credits_exhausted", counts.credits_exhausted.get()),
                ("lane_full", counts.lane_full.get()),
                ("left_behind", counts.left_behind.get()),
                ("sleeps", counts.sleeps.get()),
                ("wakes", counts.wakes.get()),
            ],
        );
    }
}

impl Account {
    fn new(link: Weak<MemoryLink>, mailbox: MailboxId) -> Arc<Self> {
        Arc::new(Self {
            link,
            mailbox,
            retrieved: AtomicU64::new(0),
            notices: Counter::default(),
            queued: AtomicU32::new(0),
        })
    }

    /// Whether the peer may have one more message in the mailbox's queue. A message that was retrieved without having been
    /// queued is not counted: it takes no memory of ours, and the way it goes is the fastest.
    pub(crate) fn has_room(&self) -> bool {
        self.queued.load(Ordering::Relaxed) < WINDOW
    }

    /// A message was put into the mailbox's queue.
    pub(crate) fn note_queued(&self) {
        let queued = self.queued.load(Ordering::Relaxed);
        self.queued.store(queued + 1, Ordering::Relaxed);
    }

    /// A message was taken out of it.
    pub(crate) fn note_unqueued(&self) {
        let queued = self.queued.load(Ordering::Relaxed);
        self.queued
            .store(queued.saturating_sub(1), Ordering::Relaxed);
    }

    /// One message of the mailbox was retrieved. Only its owner calls this, so nobody else counts meanwhile.
    #[inline]
    pub(crate) fn retrieved(&self) {
        let retrieved = self.retrieved.load(Ordering::Relaxed) + 1;
        self.retrieved.store(retrieved, Ordering::Relaxed);
        if retrieved % u64::from(WINDOW / 2) == 0 {
            self.return_credits();
        }
    }

    #[cold]
    fn return_credits(&self) {
        if let Some(link) = self.link.upgrade() {
            if link.tell(self.mailbox, MailboxNotice::credits(WINDOW / 2)) {
                self.notices.add_alone();
            }
        }
    }

    /// How many messages were retrieved.
    pub(crate) fn count(&self) -> u64 {
        self.retrieved.load(Ordering::Relaxed)
    }
}
