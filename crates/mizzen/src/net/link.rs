//! A link to one peer on a network.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::IoSlice;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};
use std::time::{Duration, Instant};

use mizzen_driver::Driver;
use mizzen_proto::id::{MailboxId, OfferId, StreamId};
use mizzen_proto::link::{CONTROL_MAX, Link, LinkOptions};
use mizzen_proto::names::NAMES_MAX;
use mizzen_proto::wire::{Frame, NameFrame};

use super::bodies::Bodies;
use super::engine::{Engine, driver_id, lock};
use super::networks::Polling;
use super::sharing::Sharing;
use crate::error::{Departure, Gone, PostError, ReachError};
use crate::process::Process;
use crate::rank::ProcessId;
use crate::tasks::without_place;
use crate::wait::{Crowd, Patience, Step};

/// A link to one life of one peer on a network.
pub(crate) struct NetLink {
    pub(crate) peer: ProcessId,
    pub(super) engine: Weak<Engine>,
    state: Mutex<State>,
    /// Something that a waiting thread may wait for has happened.
    pub(super) changed: Condvar,
    /// Whether the link is in its engine's list of work.
    pub(super) is_marked: AtomicBool,
    streams: AtomicU32,
    pub(super) sharing: Sharing,
    /// Whether the driver carries bodies that were not asked for.
    pub(super) can_push: bool,
    gone: OnceLock<Gone>,
    ended: AtomicBool,
}

/// The protocol and what waits. The holder of the port takes from `outbox` and `bodies`, everyone adds.
pub(super) struct State {
    /// `None` once the link has ended.
    pub(super) link: Option<Link>,
    /// Frames in the order in which they must go. Posters wait when there are [`OUTBOX_MAX`]; a peer that causes answers
    /// beyond [`UNREAD_MAX`] and does not read them is cut off.
    pub(super) outbox: VecDeque<Vec<u8>>,
    pub(super) bodies: Bodies,
    /// The mailboxes in which the peer's offers lie.
    pub(super) announced: BTreeMap<OfferId, MailboxId>,
    /// Mailboxes of ours to which the peer posted: they are told when it is lost.
    pub(super) posted_to: BTreeSet<MailboxId>,
    /// The peer said bye.
    pub(super) has_left: bool,
    /// The link is about to end by our decision: what still comes is ignored.
    pub(super) is_condemned: bool,
}

/// What is due to a peer when a message of it is retrieved.
#[derive(Debug)]
pub(crate) struct NetAccount {
    pub(super) link: Arc<NetLink>,
    pub(super) mailbox: MailboxId,
    pub(super) bytes: u64,
}

/// The deadline has passed.
pub(super) struct Expired;

/// Frames that wait for the driver before posters wait, too: 16 MiB of the longest. The protocol's own frames and
/// those about names are not held back, and have a bound of their own: [`UNREAD_MAX`].
pub(super) const OUTBOX_MAX: usize = 256;

/// Frames that wait for a peer when it is cut off for asking on without reading: as many of the protocol's own as one that
/// reads can cause (docs/wire.md §8.3), and word of every name that a holder may have.
pub(super) const UNREAD_MAX: usize = CONTROL_MAX + NAMES_MAX;

/// While a thread waits for a peer, others of this host may wait for it: how often it looks at their lanes.
const LANES_NAP: Duration = Duration::from_millis(1);

impl NetLink {
    pub(super) fn new(engine: &Engine, options: LinkOptions) -> Self {
        let peer = options.peer;
        let mut link = Link::new(options);
        let hello = link.poll_transmit();
        Self {
            peer,
            engine: engine.weak.clone(),
            state: Mutex::new(State {
                link: Some(link),
                outbox: hello.iter().map(Frame::to_vec).collect(),
                bodies: Bodies::default(),
                announced: BTreeMap::new(),
                posted_to: BTreeSet::new(),
                has_left: false,
                is_condemned: false,
            }),
            changed: Condvar::new(),
            is_marked: AtomicBool::new(false),
            streams: AtomicU32::new(1),
            sharing: Sharing::new(),
            can_push: engine.can_push,
            gone: OnceLock::new(),
            ended: AtomicBool::new(false),
        }
    }

    /// A number for one more poster of ours. The stream 0 is everyone's.
    pub(crate) fn new_stream(&self) -> StreamId {
        StreamId(self.streams.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends a frame about names.
    pub(crate) fn send_name(self: &Arc<Self>, frame: NameFrame<'_>) -> Result<(), ReachError> {
        {
            let mut state = self.lock();
            if state.link.is_none() || state.has_left {
                return Err(ReachError::Gone(state.gone(self)));
            }
            // One that does not read what it was asked before is not asked on.
            if state.outbox.len() >= UNREAD_MAX {
                return Err(ReachError::NoPath {
                    rank: self.peer.rank,
                    cause: format!("it has left {UNREAD_MAX} frames unread"),
                });
            }
            state.transmit();
            state.outbox.push_back(Frame::Name(frame).to_vec());
        }
        self.push();
        Ok(())
    }

    /// Whether the peer is gone.
    #[inline]
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// How the peer went, if it did.
    pub(crate) fn gone(&self) -> Option<Gone> {
        self.gone.get().copied()
    }

    pub(crate) fn gone_or_lost(&self) -> Gone {
        let lost = Gone::new(self.peer, Departure::ConnectionLost);
        self.gone().unwrap_or(lost)
    }

    pub(super) fn peer_gone(&self) -> PostError {
        PostError::PeerGone(self.gone_or_lost())
    }

    /// Says bye when everything before it is done.
    pub(super) fn leave(&self) {
        let mut state = self.lock();
        if let Some(link) = &mut state.link {
            link.leave();
        }
        state.transmit();
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

    /// Gives the driver what waits for it.
    ///
    /// # Errors
    ///
    /// How the link must end, if the driver refuses what it should take.
    pub(super) fn serve(&self, driver: &mut dyn Driver) -> Result<(), Departure> {
        let (mut frames, asked) = {
            let mut state = self.lock();
            let State {
                link: Some(link),
                bodies,
                announced,
                ..
            } = &mut *state
            else {
                return Ok(());
            };
            if bodies.place_wanted(self.peer, link, announced, driver) {
                self.changed.notify_all();
            }
            if bodies.pushed.has_unwanted() {
                bodies.pushed.place_unwanted(self.peer, link, driver);
            }
            state.transmit();
            let frames = core::mem::take(&mut state.outbox);
            (frames, state.bodies.take_asked())
        };
        let was_full = frames.len() >= OUTBOX_MAX;
        let to = driver_id(self.peer);
        let together = frames.len() + asked.len() > 1;
        if together {
            driver.gather(to);
        }
        // Without the state: others post meanwhile, behind what we took.
        while let Some(frame) = frames.front() {
            match driver.send_frame(to, &[IoSlice::new(frame)]) {
                Ok(()) => drop(frames.pop_front()),
                // Room is reported; so is the loss of the link.
                Err(_) => break,
            }
        }
        // A pushed body follows its frame, and does not overtake it.
        let refused = if frames.is_empty() {
            asked.send(self.peer, driver)
        } else {
            Ok(asked)
        };
        if together {
            driver.flush(to);
        }
        let refused = refused?;
        if !frames.is_empty() || !refused.is_empty() {
            let mut state = self.lock();
            frames.append(&mut state.outbox);
            state.outbox = frames;
            state.bodies.put_back(refused);
        }
        if was_full {
            self.changed.notify_all();
        }
        Ok(())
    }

    /// The link is over, and the driver done with all memory lent for it. The mailboxes to tell; `None` if it was over
    /// before.
    pub(super) fn end(&self, how: Departure) -> Option<(Gone, BTreeSet<MailboxId>)> {
        let mut state = self.lock();
        state.link.take()?.handle_lost();
        let gone = match how {
            Departure::ConnectionLost if state.has_left => Departure::Left,
            how => how,
        };
        let gone = Gone::new(self.peer, gone);
        let _ = self.gone.set(gone);
        self.ended.store(true, Ordering::Release);
        state.bodies.lose_all();
        state.outbox.clear();
        state.announced.clear();
        let posted_to = core::mem::take(&mut state.posted_to);
        drop(state);
        self.changed.notify_all();
        Some((gone, posted_to))
    }

    /// Waits until `look` finds something, moving what can be moved meanwhile: the peer may wait for us.
    pub(super) fn wait<T>(
        &self,
        process: &Arc<Process>,
        deadline: Option<Instant>,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<T, Expired> {
        let crowd = Crowd::default();
        let mut patience = Patience::on_network(deadline, &crowd);
        let mut polling = process.start_polling();
        loop {
            process.pump_all();
            if let Some(found) = look(&mut self.lock()) {
                return Ok(found);
            }
            match patience.step() {
                Step::Again => (),
                Step::Expired(_) => return Err(Expired),
                Step::Sleep(nap) => {
                    polling.take().into_iter().for_each(Polling::sleep);
                    let (_, lanes) = process.links();
                    let nap = if lanes.is_empty() { nap } else { LANES_NAP };
                    let mut state = self.lock();
                    if let Some(found) = look(&mut state) {
                        return Ok(found);
                    }
                    let _ = without_place(|| self.changed.wait_timeout(state, nap));
                }
            }
        }
    }

    /// Has the link's frames sent, by this thread or by the one that has the driver.
    pub(super) fn push(self: &Arc<Self>) {
        if let Some(engine) = self.engine.upgrade() {
            engine.mark(self);
            engine.kick();
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
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

    /// Puts the protocol's own frames behind those that wait: what is posted next comes after them.
    pub(super) fn transmit(&mut self) {
        let Some(link) = &mut self.link else { return };
        while let Some(frame) = link.poll_transmit() {
            self.outbox.push_back(frame.to_vec());
        }
    }
}

impl NetAccount {
    /// The message was retrieved.
    pub(crate) fn retrieved(&self) {
        let mut state = self.link.lock();
        if let Some(link) = &mut state.link {
            link.consumed(self.mailbox, self.bytes);
        }
        state.transmit();
        if !state.outbox.is_empty() {
            drop(state);
            self.link.push();
        }
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
