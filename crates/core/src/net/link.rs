//! A link to one peer on a network.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

use mizzen_driver::Driver;
use mizzen_lane::{Mark, Marked};
use mizzen_proto::id::{BodyId, MailboxId, OfferId, StreamId};
use mizzen_proto::link::{CONTROL_MAX, Link, LinkOptions};
use mizzen_proto::membership::Admission;
use mizzen_proto::time::Time;
use mizzen_proto::wire::{Frame, is_post};

use super::bodies::{Bodies, Lending};
use super::condition::Condition;
use super::session::NetSession;
use super::sharing::Sharing;
use super::waiting::Behind;
use crate::blocking::block_in_place;
use crate::counters::{Counted, Rows};
use crate::delivery::Creditor;
use crate::error::{Departure, Gone, PostError, Sureness, Untaken};
use crate::link::Fate;
use crate::links::WithLinks;
use crate::lock::lock;
use crate::mailboxes::Mailboxes;
use crate::progress::{Polling, Progress};
use crate::rank::{ChannelId, ProcessId};
use crate::roll::{Kind, WaitsFor};
use crate::wait::{Contention, Noted, Patience, Step};

/// What a link needs of the engine that pumps its driver.
pub(crate) trait Hub: Send + Sync {
    /// What the driver can carry.
    fn limits(&self) -> &Limits;

    /// Notes that a link has something for the driver; the caller then kicks.
    fn mark(&self, link: &Arc<NetLink>);

    /// Sees to the links that have something for the driver, unless another thread does.
    fn kick(&self);

    /// Lets `run` use the driver and the session of a link, unless another thread has the port.
    fn with_session(&self, link: &Arc<NetLink>, control: &dyn Control, run: Run<'_>);

    /// A link's frames wait for others: whoever looks at the network next sends them, or the engine's thread does, soon.
    fn flush_soon(&self, link: &Arc<NetLink>);

    /// Ends a link at once. When this returns, the driver touches none of the memory lent for it.
    fn cut(&self, link: &Arc<NetLink>, how: Departure);

    /// The process around the engine, if it is there.
    fn control(&self) -> Option<Arc<dyn Control>>;
}

/// Something that is done by who has the port.
pub(crate) type Run<'a> = &'a mut dyn FnMut(&mut dyn Driver, &mut NetSession, Time);

/// What a driver can carry.
#[derive(Debug)]
pub(crate) struct Limits {
    /// The longest head of a message with a body.
    pub(super) head_max: u64,
    /// The longest message that goes whole in one frame: copied twice, but without a word before or after it.
    pub(super) eager_max: u64,
    /// The most parts of one body.
    pub(super) max_parts: usize,
    /// Whether it carries bodies that were not asked for.
    pub(super) can_push: bool,
}

/// The process around an engine: where messages go, and who decides about peers.
pub(crate) trait Control: WithLinks {
    /// Where messages are delivered.
    fn mailboxes(&self) -> &Mailboxes;

    /// What the verdicts say about a life of a process. `None`: the job has no such process.
    fn admission(&self, peer: ProcessId) -> Option<Admission>;

    /// How a life of a process went, if it is gone.
    fn gone(&self, peer: ProcessId) -> Option<Gone>;

    /// Whether a launcher says which processes died.
    fn has_launcher(&self) -> bool;

    /// How long a process that leaves waits for a peer that takes nothing at all, where a launcher says which processes died.
    fn leave_patience(&self) -> Duration;

    /// A peer cannot be reached: asks whether it has left.
    fn ask_about(&self, peer: ProcessId);

    /// There is a link, on a channel, or on any.
    fn connected(&self, channel: Option<ChannelId>, link: Arc<NetLink>);

    /// A link is over, and, if it has no other, with it the process at its other end, which had posted to these mailboxes.
    fn link_ended(&self, gone: Gone, posted_to: Vec<MailboxId>);
}

/// A link to one life of one peer on a network.
pub(crate) struct NetLink {
    weak: Weak<Self>,
    pub(crate) peer: ProcessId,
    pub(super) hub: Weak<dyn Hub>,
    state: Mutex<State>,
    /// Taken before the state, and only by who has the port.
    session: Mutex<NetSession>,
    /// Something that a waiting thread may wait for has happened.
    pub(super) changed: Condition,
    /// Whether the link is in its engine's list of work.
    mark: Mark,
    streams: AtomicU32,
    pub(super) sharing: Sharing,
    /// Whether the driver carries bodies that were not asked for.
    pub(super) can_push: bool,
    fate: Fate,
}

/// The protocol and what waits. The holder of the port takes from `outbox` and `bodies`, everyone adds.
pub(super) struct State {
    /// `None` once the link has ended.
    pub(super) link: Option<Link>,
    /// Frames in the order in which they must go. Posters wait when there are [`OUTBOX_MAX`]; a peer that causes answers
    /// beyond [`UNREAD_MAX`] and does not read them is cut off.
    pub(super) outbox: VecDeque<Queued>,
    pub(super) bodies: Bodies,
    /// The mailboxes in which the peer's offers lie.
    pub(super) announced: BTreeMap<OfferId, MailboxId>,
    /// Mailboxes of ours to which the peer posted: they are told when it is lost.
    pub(super) posted_to: BTreeSet<MailboxId>,
    /// The peer said bye.
    pub(super) has_left: bool,
    /// The link is about to end by our decision: what still comes is ignored.
    pub(super) is_condemned: bool,
    pub(super) counts: NetCounts,
    /// Messages that found no credits.
    pub(super) behind: Behind,
    /// We leave as soon as nothing waits any more.
    is_leaving: bool,
    /// The protocol has said bye: the session does when all before it is kept.
    pub(super) says_bye: bool,
    /// Messages that the peer did not take, and never will.
    pub(super) untaken: Untaken,
}

/// A frame on its way to the session.
pub(super) struct Queued {
    pub(super) frame: Vec<u8>,
    /// The offer whose body follows it without being asked for.
    pub(super) pushes: Option<(OfferId, BodyId)>,
}

/// What is counted of a link, under the lock that is taken anyway.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct NetCounts {
    pub(super) messages_sent: u64,
    pub(super) bytes_sent: u64,
    pub(super) messages_received: u64,
    pub(super) bytes_received: u64,
    /// Posts that found no credit, or too much before them.
    pub(super) credits_exhausted: u64,
    /// Messages that waited in memory of their own until there were credits.
    pub(super) left_behind: u64,
    pub(super) sleeps: u64,
}

/// A body that stands in the driver.
pub(super) struct StalledBody {
    pub(super) link: Arc<NetLink>,
    pub(super) body: BodyId,
    pub(super) since: Instant,
}

/// What a thread waits for at a peer, for the user if it takes long.
#[derive(Clone, Copy, Debug)]
pub(super) enum Waits {
    ToPost,
    ToReceive,
}

impl Waits {
    fn what(self, peer: ProcessId) -> String {
        match self {
            Self::ToPost => {
                format!("for room at rank {peer}, which does not read what was posted to it")
            }
            Self::ToReceive => format!("for the rest of a message of rank {peer}"),
        }
    }

    #[cold]
    fn for_whom(self, peer: ProcessId) -> WaitsFor {
        let kind = match self {
            Self::ToPost => Kind::Room,
            Self::ToReceive => Kind::Message,
        };
        WaitsFor::one(kind, peer.rank, self.what(peer))
    }
}

/// The deadline has passed.
pub(super) struct Expired;

/// Frames that wait for the driver before posters wait, too: 32 MiB of the longest. The protocol's own frames are
/// not held back, and have a bound of their own: [`UNREAD_MAX`].
pub(super) const OUTBOX_MAX: usize = 256;

/// Frames that wait for a peer when it is cut off for asking on without reading: as many of the protocol's own as one that
/// reads can cause (docs/wire.md §8.3).
pub(super) const UNREAD_MAX: usize = CONTROL_MAX;

/// While a thread waits for a peer, others of this host may wait for it: how often it looks at their lanes.
const LANES_NAP: Duration = Duration::from_millis(1);

impl NetLink {
    pub(super) fn new(
        hub: Weak<dyn Hub>,
        can_push: bool,
        options: LinkOptions,
        session: NetSession,
    ) -> Arc<Self> {
        let peer = options.peer;
        let link = Link::in_session(options);
        Arc::new_cyclic(|weak| Self {
            weak: weak.clone(),
            peer,
            hub,
            state: Mutex::new(State {
                link: Some(link),
                outbox: VecDeque::new(),
                bodies: Bodies::default(),
                announced: BTreeMap::new(),
                posted_to: BTreeSet::new(),
                has_left: false,
                is_condemned: false,
                counts: NetCounts::default(),
                behind: Behind::default(),
                is_leaving: false,
                says_bye: false,
                untaken: Untaken::default(),
            }),
            session: Mutex::new(session),
            changed: Condition::default(),
            mark: Mark::default(),
            streams: AtomicU32::new(1),
            sharing: Sharing::new(),
            can_push,
            fate: Fate::of(peer),
        })
    }

    /// A number for one more poster of ours. The stream 0 is everyone's.
    pub(crate) fn new_stream(&self) -> StreamId {
        StreamId(self.streams.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether the peer is gone.
    #[inline]
    pub(crate) fn is_ended(&self) -> bool {
        self.fate.is_ended()
    }

    /// How the peer went, if it did.
    pub(crate) fn gone(&self) -> Option<Gone> {
        self.fate.gone()
    }

    pub(crate) fn gone_or_lost(&self) -> Gone {
        self.fate.gone_or(Departure::ConnectionLost)
    }

    pub(super) fn peer_gone(&self) -> PostError {
        PostError::PeerGone(self.gone_or_lost())
    }

    /// Says bye when everything before it is done.
    pub(super) fn leave(&self) {
        let mut state = self.lock();
        state.is_leaving = true;
        state.leave_if_due();
        state.transmit();
    }

    /// How many messages that were posted are still in memory of ours.
    pub(super) fn waiting(&self) -> u64 {
        self.lock().waiting()
    }

    /// One of our mailboxes closed. `true` if there is something to send about it.
    pub(super) fn close_mailbox(&self, mailbox: MailboxId) -> bool {
        let mut state = self.lock();
        state.posted_to.remove(&mailbox);
        if let Some(link) = &mut state.link {
            link.close_mailbox(mailbox);
        }
        state.transmit();
        !state.outbox.is_empty()
    }

    /// The link is over, and the driver done with all memory lent for it. The mailboxes to tell; `None` if it was over
    /// before.
    pub(super) fn end(&self, gone: Gone) -> Option<(Gone, BTreeSet<MailboxId>)> {
        let ended = self.session().end();
        let sent = ended.sent.into_iter();
        let sent = sent.filter(|body| self.end_taken(*body)).count();
        let mut state = self.lock();
        state.link.take()?.handle_lost();
        state.untaken.messages += ended.untaken.messages;
        state.untaken.uncertain += ended.untaken.uncertain;
        state.untaken.add(sent as u64, ended.sent_bodies);
        // Of a body that is its poster's, that one is told.
        let kept = state.bodies.kept_offers() as u64;
        state.untaken.add(kept, Sureness::Certain);
        state.drop_outbox();
        let gone = match gone.how() {
            Departure::ConnectionLost if state.has_left => Gone::new(self.peer, Departure::Left),
            _ => gone,
        };
        self.fate.end(gone);
        state.bodies.lose_all();
        Self::drop_behind(&mut state);
        state.announced.clear();
        let posted_to = core::mem::take(&mut state.posted_to);
        drop(state);
        self.changed.tell();
        Some((gone, posted_to))
    }

    /// Waits until `look` finds something, as long as that is likely soon: `None` if the thread would have to sleep.
    pub(super) fn wait_awake<T>(
        &self,
        progress: &dyn Progress,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let contention = Contention::default();
        let mut patience = Patience::on_network(deadline, &contention);
        let _polling = Polling::start(progress);
        loop {
            progress.pump_all();
            if let Some(found) = look(&mut self.lock()) {
                return Some(found);
            }
            match patience.step() {
                Step::Again => (),
                Step::Sleep(_) | Step::Expired(_) => return None,
            }
        }
    }

    /// Waits until `look` finds something, moving what can be moved meanwhile: the peer may wait for us.
    pub(super) fn wait<T>(
        &self,
        progress: &dyn Progress,
        deadline: Option<Instant>,
        waits: Waits,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<T, Expired> {
        let contention = Contention::default();
        let mut patience = Patience::on_network(deadline, &contention);
        let mut polling = Some(Polling::start(progress));
        let mut noted = Noted::default();
        loop {
            progress.pump_all();
            if let Some(found) = look(&mut self.lock()) {
                return Ok(found);
            }
            match patience.step() {
                Step::Again => (),
                Step::Expired(_) => return Err(Expired),
                Step::Sleep(nap) => {
                    polling.take().into_iter().for_each(Polling::sleep);
                    noted.keep(&mut patience, || waits.for_whom(self.peer));
                    if let Some(waited) = patience.remarkable() {
                        progress.remark(waited, &waits.what(self.peer));
                    }
                    let nap = if progress.has_lanes() { LANES_NAP } else { nap };
                    let mut state = self.lock();
                    if let Some(found) = look(&mut state) {
                        return Ok(found);
                    }
                    state.counts.sleeps += 1;
                    block_in_place(|| self.changed.sleep(state, nap));
                }
            }
        }
    }

    /// A task waits until less waits for a mailbox of the peer. `false`: it need not.
    pub(crate) fn await_room(&self, to: MailboxId, waker: &Waker) -> bool {
        self.lock().await_room(to, waker)
    }

    /// Has the link's frames sent, by this thread or by the one that has the driver.
    pub(super) fn push(&self) {
        if let (Some(hub), Some(link)) = (self.hub.upgrade(), self.weak.upgrade()) {
            hub.mark(&link);
            hub.kick();
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// For who has the port, before the state.
    pub(super) fn session(&self) -> MutexGuard<'_, NetSession> {
        lock(&self.session)
    }
}

impl State {
    /// How the peer went, if it is about to be gone.
    pub(super) fn gone(&self, link: &NetLink) -> Gone {
        let left = Gone::new(link.peer, Departure::Left);
        let is_leaving = self.has_left && link.gone().is_none();
        if is_leaving {
            left
        } else {
            link.gone_or_lost()
        }
    }

    /// Leaves, if that was to be and nothing waits any more.
    pub(super) fn leave_if_due(&mut self) {
        if self.is_leaving && self.behind.is_empty() {
            if let Some(link) = &mut self.link {
                link.leave();
            }
        }
    }

    /// Puts the protocol's own frames behind those that wait: what is posted next comes after them.
    #[inline]
    pub(super) fn transmit(&mut self) {
        if self.link.as_ref().is_some_and(Link::has_output) {
            self.transmit_all();
        }
    }

    fn transmit_all(&mut self) {
        while let Some(frame) = self.link.as_mut().and_then(Link::poll_transmit) {
            match frame {
                Frame::Bye => self.says_bye = true,
                frame => self.queue(frame.to_vec()),
            }
        }
    }

    /// A frame goes behind those that wait.
    pub(super) fn queue(&mut self, frame: Vec<u8>) {
        let pushes = None;
        self.outbox.push_back(Queued { frame, pushes });
    }

    /// A frame goes before all others.
    pub(super) fn queue_first(&mut self, frame: Vec<u8>) {
        let pushes = None;
        self.outbox.push_front(Queued { frame, pushes });
    }

    /// The same as `queue` for the announcement of a body; `body` is its name if it follows without being asked for.
    pub(super) fn queue_offer(
        &mut self,
        frame: Vec<u8>,
        offer: OfferId,
        body: Option<BodyId>,
        lending: Lending,
    ) {
        let pushes = body.map(|body| (offer, body));
        self.outbox.push_back(Queued { frame, pushes });
        self.bodies.offer(offer, lending);
    }

    /// Nobody takes what waits. Messages with bodies are known by these.
    pub(super) fn drop_outbox(&mut self) {
        let dropped = self.outbox.drain(..);
        let messages = dropped.filter(|queued| is_post(&queued.frame)).count();
        self.untaken.add(messages as u64, Sureness::Certain);
    }
}

impl Marked for NetLink {
    fn mark(&self) -> &Mark {
        &self.mark
    }
}

impl Creditor for NetLink {
    fn retrieved(&self, mailbox: MailboxId, bytes: u64) {
        let mut state = self.lock();
        if let Some(link) = &mut state.link {
            link.consumed(mailbox, bytes);
        }
        state.transmit();
        if !state.outbox.is_empty() {
            drop(state);
            self.push();
        }
    }
}

impl Counted for NetLink {
    fn count(&self, rows: &mut Rows) {
        let counts = self.lock().counts;
        rows.object(
            format_args!("link to rank {}", self.peer),
            &[
                ("messages_sent", counts.messages_sent),
                ("bytes_sent", counts.bytes_sent),
                ("messages_received", counts.messages_received),
                ("bytes_received", counts.bytes_received),
                ("credits_exhausted", counts.credits_exhausted),
                ("left_behind", counts.left_behind),
                ("sleeps", counts.sleeps),
            ],
        );
    }
}

impl core::fmt::Debug for NetLink {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("NetLink")
            .field("peer", &self.peer)
            .field("gone", &self.gone())
            .finish_non_exhaustive()
    }
}
