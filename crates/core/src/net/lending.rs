//! Threads that lend their memory to the driver: for a body that they post, or for one that they read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mizzen_driver::{Driver, Part, PartMut};
use mizzen_proto::id::{BodyId, MailboxId, OfferId};

use super::bodies::{Lending, Owned, WHOLE_MAX, Wanted};
use super::link::{Expired, Hub, NetLink, State, Waits};
use super::outcome::{End, Outcome};
use super::session::NetSession;
use crate::error::{Departure, PostError, UnpackError};
use crate::link::ALLOWANCE;
use crate::links::Links;
use crate::progress::Progress;
use crate::rank::ProcessId;

/// How long a poster waits for the reader of a long body, which then goes from the poster's memory straight into the reader's.
/// Longer than a reader that waits needs to wake up, and about what the copy takes that is made otherwise.
const READER_PATIENCE: Duration = Duration::from_millis(5);

/// Keeps a thread from unwinding while the driver has its memory.
struct Borrowing<'a> {
    hub: &'a dyn Hub,
    link: &'a Arc<NetLink>,
    end: &'a End,
}

impl Drop for Borrowing<'_> {
    fn drop(&mut self) {
        if self.end.get().is_none() {
            self.hub.cut(self.link, Departure::ConnectionLost);
        }
    }
}

impl NetLink {
    /// Waits until the driver has no memory of a body any more: how the body ended.
    pub(super) fn wait_for_end(
        self: &Arc<Self>,
        hub: &dyn Hub,
        end: &End,
        waits: Waits,
    ) -> Outcome {
        // If this thread unwinds.
        let borrowing = Borrowing {
            hub,
            link: self,
            end,
        };
        let outcome = loop {
            let Some(around) = hub.control() else {
                hub.cut(self, Departure::ConnectionLost);
                break end.get().unwrap_or(Outcome::Lost);
            };
            if let Ok(outcome) = self.wait(around.progress(), None, waits, |_| end.get()) {
                break outcome;
            }
        };
        drop(borrowing);
        outcome
    }

    /// Offers a body in the caller's memory with `offer`, and waits until it was sent, or never will be.
    pub(super) fn send_borrowed(
        self: &Arc<Self>,
        progress: &dyn Progress,
        hub: &dyn Hub,
        (to, may_be_copied): (MailboxId, bool),
        pieces: &[&[u8]],
        deadline: Option<Instant>,
        offer: impl FnOnce(Lending) -> Result<Option<OfferId>, PostError>,
    ) -> Result<(), PostError> {
        let end = Arc::<End>::default();
        let borrowing = Borrowing {
            hub,
            link: self,
            end: &end,
        };
        let parts = pieces.iter().map(|piece| Part::of(piece)).collect();
        let offer = match offer(Lending::of(parts, Arc::clone(&end))) {
            Ok(Some(offer)) => offer,
            // A copy of it waits for credits; or it will not go.
            left => {
                // The parts are gone with the `Lending`: there is nothing to wait for.
                if Arc::strong_count(&end) == 1 {
                    end.set(Outcome::Declined);
                }
                self.push();
                return left.map(|_| ());
            }
        };
        self.push();
        if may_be_copied {
            self.wait_or_keep(progress, deadline, to, offer, pieces, &end);
        }
        let len = pieces.iter().map(|piece| piece.len()).sum();
        let mut retracted = false;
        let outcome = match self.wait(progress, deadline, Waits::ToPost, |_| end.get()) {
            Ok(outcome) => outcome,
            Err(Expired) => {
                // The peer answers with a decline, unless it has accepted already: then the body goes.
                self.retract(offer, len);
                retracted = true;
                self.push();
                loop {
                    if let Ok(outcome) = self.wait(progress, None, Waits::ToPost, |_| end.get()) {
                        break outcome;
                    }
                }
            }
        };
        drop(borrowing);
        match outcome {
            Outcome::Declined if retracted => Err(PostError::TimedOut {
                rank: self.peer.rank,
            }),
            Outcome::Done | Outcome::Declined => Ok(()),
            Outcome::Lost | Outcome::Retracted => Err(self.peer_gone()),
        }
    }
}

impl NetLink {
    /// Waits a moment for the reader of a body; if it does not come, the body is copied.
    fn wait_or_keep(
        &self,
        progress: &dyn Progress,
        deadline: Option<Instant>,
        to: MailboxId,
        offer: OfferId,
        pieces: &[&[u8]],
        end: &End,
    ) {
        if self.wait_awake(progress, deadline, |_| end.get()).is_some() {
            return;
        }
        // If another waits already, the reader does something else.
        if self.lock().bodies.kept(to) == 0 {
            let soon = Instant::now() + READER_PATIENCE;
            let soon = deadline.map_or(soon, |deadline| deadline.min(soon));
            let waited = self.wait(progress, Some(soon), Waits::ToPost, |_| end.get());
            if waited.is_ok() {
                return;
            }
        }
        self.keep(to, offer, pieces);
    }

    /// Asks the peer to let an offer of `len` bytes be taken back. One that is held whole by who reads it comes to its end anyway.
    fn retract(&self, offer: OfferId, len: usize) {
        let mut state = self.lock();
        let has_begun = !state.bodies.is_ours(offer);
        if let Some(link) = state
            .link
            .as_mut()
            .filter(|_| !has_begun || len > ALLOWANCE)
        {
            link.retract(offer);
        }
    }

    /// Copies a body that nobody has asked for yet into memory of our own, if so much more may be there: its poster need not wait
    /// for the reader.
    fn keep(&self, to: MailboxId, offer: OfferId, pieces: &[&[u8]]) {
        let len = pieces.iter().map(|piece| piece.len()).sum();
        let may_be_kept = {
            let state = self.lock();
            state.bodies.is_ours(offer) && state.has_room(to, len)
        };
        if may_be_kept {
            // Without the lock: it takes long.
            let owned = Owned::new(to, pieces.concat());
            self.lock().bodies.replace(offer, owned);
        }
    }
}

/// A message whose body has yet to come. Dropping it declines the body.
///
/// Who asks for the body lends the memory for it: it belongs to the driver until the body has ended.
pub(super) struct NetOffered {
    pub(super) link: Arc<NetLink>,
    pub(super) offer: OfferId,
    pub(super) head: Vec<u8>,
    pub(super) body_len: usize,
    /// Whether the body comes without being asked for.
    pushed: bool,
    /// Where it goes, once somebody has asked for it.
    place: Option<Place>,
}

/// Where a body goes that somebody has asked for.
enum Place {
    /// Into memory that the driver has until the end.
    Lent { end: Arc<End>, hub: Arc<dyn Hub> },
    /// Into memory of our own first, and then here, by who reads it.
    Kept { end: Arc<End>, parts: Vec<PartMut> },
    /// It was copied out.
    Over,
}

impl NetOffered {
    pub(super) fn new(
        link: Arc<NetLink>,
        offer: OfferId,
        head: &[u8],
        body_len: u64,
        pushed: bool,
    ) -> Self {
        Self {
            link,
            offer,
            head: head.to_vec(),
            body_len: body_len as usize,
            pushed,
            place: None,
        }
    }

    pub(super) fn gone(&self) -> UnpackError {
        UnpackError::PeerGone(self.link.gone_or_lost())
    }

    /// Has the body put into `parts`, or, if it is in memory of our own already, copied there by who asks whether it is whole.
    pub(super) fn start(&mut self, parts: Vec<PartMut>) -> Result<(), UnpackError> {
        assert_eq!(
            parts.iter().map(PartMut::len).sum::<usize>(),
            self.body_len,
            "the place is as long as the body"
        );
        if self.place.is_some() {
            return Err(self.gone());
        }
        let hub = self.link.hub.upgrade();
        let (end, hub) = {
            let mut state = self.link.lock();
            if let Some(kept) = state.bodies.pushed.kept.get(&self.offer) {
                let end = Arc::clone(&kept.end);
                self.place = Some(Place::Kept { end, parts });
                return Ok(());
            }
            let Some(hub) = hub.filter(|_| state.link.is_some()) else {
                return Err(self.gone());
            };
            let end = Arc::<End>::default();
            let wanted = Wanted::whole(self.offer, parts, Arc::clone(&end));
            state.bodies.wanted.push_back(wanted);
            (end, hub)
        };
        self.place = Some(Place::Lent { end, hub });
        self.link.push();
        Ok(())
    }

    /// Asks for some of the body, from `from` on, and waits until it is in `target`.
    pub(super) fn receive_some(
        &mut self,
        from: usize,
        target: &mut [u8],
    ) -> Result<(), UnpackError> {
        let end = Arc::<End>::default();
        let parts = vec![PartMut::of(target)];
        let link = &self.link;
        let hub = link.hub.upgrade().ok_or_else(|| self.gone())?;
        let hub = &*hub;
        let borrowing = Borrowing {
            hub,
            link,
            end: &end,
        };
        let wanted = Wanted::some(self.offer, from, parts, Arc::clone(&end), None);
        if let Err(gone) = self.want(wanted) {
            // Nobody was given the memory.
            end.set(Outcome::Lost);
            return Err(gone);
        }
        let outcome = link.wait_for_end(hub, &end, Waits::ToReceive);
        drop(borrowing);
        self.outcome(outcome)
    }

    /// Has bytes of the body put into their place.
    pub(super) fn want(&self, wanted: Wanted) -> Result<(), UnpackError> {
        {
            let mut state = self.link.lock();
            if state.link.is_none() {
                return Err(self.gone());
            }
            state.bodies.wanted.push_back(wanted);
        }
        self.link.push();
        Ok(())
    }

    /// What it means to a reader that a body has ended so.
    pub(super) fn outcome(&self, outcome: Outcome) -> Result<(), UnpackError> {
        match outcome {
            Outcome::Done => Ok(()),
            Outcome::Retracted => Err(UnpackError::Retracted),
            Outcome::Declined | Outcome::Lost => Err(self.gone()),
        }
    }

    /// Whether the body is where it should be. `None`: it is not whole yet.
    pub(super) fn poll(&mut self) -> Option<Result<(), UnpackError>> {
        match self.place.as_ref()? {
            Place::Lent { end, .. } => {
                let outcome = end.get()?;
                Some(self.outcome(outcome))
            }
            Place::Kept { end, .. } => {
                let outcome = end.get()?;
                let Some(Place::Kept { parts, end }) = self.place.take() else {
                    return None;
                };
                self.place = Some(Place::Over);
                drop(end);
                let copied = self.link.take_kept(self.offer, outcome, &parts);
                Some(copied.map_err(|Lost| self.gone()))
            }
            Place::Over => Some(Err(self.gone())),
        }
    }

    /// How many bytes are where they should be.
    pub(super) fn bytes_received(&self) -> usize {
        match &self.place {
            Some(Place::Lent { end, .. } | Place::Kept { end, .. }) => end.bytes_moved(),
            Some(Place::Over) | None => 0,
        }
    }

    /// Nobody wants the body any more: when this returns, nobody writes its parts.
    pub(super) fn stop(&mut self) {
        let Some(Place::Lent { end, hub }) = &self.place else {
            // Nothing was written: the body is in memory of our own, or nobody asked for it.
            self.place = None;
            return;
        };
        if self.link.lock().bodies.take_wanted(end) {
            self.place = None;
        } else {
            // It is coming, and cannot be stopped.
            self.link.wait_for_end(&**hub, end, Waits::ToReceive);
        }
    }

    /// Waits until it is, or never will be.
    pub(super) fn wait(&mut self) -> Result<(), UnpackError> {
        loop {
            if let Some(outcome) = self.poll() {
                return outcome;
            }
            let end = match &self.place {
                Some(Place::Lent { end, .. } | Place::Kept { end, .. }) => Arc::clone(end),
                _ => return Err(self.gone()),
            };
            let Some(hub) = self.link.hub.upgrade() else {
                return Err(self.gone());
            };
            self.link.wait_for_end(&*hub, &end, Waits::ToReceive);
        }
    }
}

impl Drop for NetOffered {
    fn drop(&mut self) {
        let is_answered = self.pushed || self.body_len <= WHOLE_MAX;
        if let (Some(Place::Lent { .. } | Place::Over), true) = (&self.place, is_answered) {
            return;
        }
        {
            let mut state = self.link.lock();
            state.announced.remove(&self.offer);
            if self.pushed {
                state.throw_away(self.offer);
            } else if let Some(link) = &mut state.link {
                link.decline(self.offer);
            }
            state.transmit();
        }
        self.link.push();
    }
}

/// The link was lost before the body was whole.
#[derive(Debug)]
pub(super) struct Lost;

impl State {
    /// A pushed body will never be wanted.
    pub(super) fn throw_away(&mut self, offer: OfferId) {
        let pushed = &mut self.bodies.pushed;
        match pushed.kept.get_mut(&offer) {
            Some(kept) if kept.end.get().is_none() => kept.is_wanted = false,
            Some(kept) => {
                let len = kept.len;
                pushed.kept.remove(&offer);
                self.taken(len);
            }
            None if self.link.is_some() => pushed.unwanted.push_back(offer),
            None => (),
        }
    }

    /// The memory of a pushed body is free: the peer may push as much again.
    pub(super) fn taken(&mut self, len: usize) {
        if let Some(link) = &mut self.link {
            link.taken(len as u64);
        }
    }

    /// Takes a body out of the driver's way, if it still stands there. `false` if that must be tried again.
    pub(super) fn keep_standing(
        &mut self,
        links: Option<&Links>,
        way: (&mut NetSession, &mut dyn Driver),
        peer: ProcessId,
        body: BodyId,
    ) -> bool {
        let Some(link) = &mut self.link else {
            return true;
        };
        let Some(offer) = link.waiting(body) else {
            return true;
        };
        if self.bodies.is_wanted(offer) {
            // Its reader is here: it gets its place as soon as the link is served.
            return false;
        }
        self.announced.remove(&offer);
        self.bodies.pushed.keep(links, peer, link, way, offer, true)
    }

    /// Whether a body has not been given a place yet.
    pub(super) fn is_standing(&self, body: BodyId) -> bool {
        let link = self.link.as_ref();
        link.is_some_and(|link| link.waiting(body).is_some())
    }
}

impl NetLink {
    /// A body in memory of our own has ended: copies it to `parts`.
    fn take_kept(&self, offer: OfferId, outcome: Outcome, parts: &[PartMut]) -> Result<(), Lost> {
        let kept = self.lock().bodies.pushed.kept.remove(&offer);
        let Some(kept) = kept.filter(|_| outcome == Outcome::Done) else {
            return Err(Lost);
        };
        kept.copy_to(parts);
        let len = kept.len;
        drop(kept);
        let mut state = self.lock();
        state.taken(len);
        state.transmit();
        let has_news = !state.outbox.is_empty();
        drop(state);
        if has_news {
            self.push();
        }
        Ok(())
    }
}

impl core::fmt::Debug for NetOffered {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("NetOffered")
            .field("link", &self.link)
            .field("offer", &self.offer)
            .field("body_len", &self.body_len)
            .finish_non_exhaustive()
    }
}
