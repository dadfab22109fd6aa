//! Threads that lend their memory to the driver: for a body that they post, or for one that they read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mizzen_driver::{Driver, Part, PartMut};
use mizzen_proto::id::{BodyId, MailboxId, OfferId};

use super::bodies::{Lending, Owned, Wanted};
use super::link::{Expired, Hub, NetLink, State, Waits};
use super::outcome::{End, Outcome};
use crate::error::{Departure, PostError, UnpackError};
use crate::links::Links;
use crate::message::Offered;
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
        let offer = match offer(Lending {
            parts: pieces.iter().map(|piece| Part::of(piece)).collect(),
            end: Arc::clone(&end),
            owner: None,
        }) {
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
        let mut retracted = false;
        let outcome = match self.wait(progress, deadline, Waits::ToPost, |_| end.get()) {
            Ok(outcome) => outcome,
            Err(Expired) => {
                // The peer answers with a decline, unless it has accepted already: then the body goes.
                if let Some(link) = &mut self.lock().link {
                    link.retract(offer);
                }
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
#[derive(Debug)]
pub(super) struct NetOffered {
    link: Arc<NetLink>,
    offer: OfferId,
    head: Vec<u8>,
    body_len: usize,
    /// Whether the body comes without being asked for.
    pushed: bool,
    answered: bool,
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
            answered: false,
        }
    }

    /// Receives the body into `parts`, which together are as long as it is.
    fn receive_while(
        &mut self,
        progress: &dyn Progress,
        parts: &mut [&mut [u8]],
    ) -> Result<(), UnpackError> {
        assert_eq!(
            parts.iter().map(|part| part.len()).sum::<usize>(),
            self.body_len,
            "the place is as long as the body"
        );
        let gone = |link: &NetLink| UnpackError::PeerGone(link.gone_or_lost());
        if self.answered {
            return Err(gone(&self.link));
        }
        if self.pushed {
            if let Some(outcome) = self.link.take_kept(progress, self.offer, parts) {
                self.answered = true;
                return outcome.map_err(|Lost| gone(&self.link));
            }
        }
        let Some(hub) = self.link.hub.upgrade() else {
            return Err(gone(&self.link));
        };
        let end = Arc::<End>::default();
        let borrowing = Borrowing {
            hub: &*hub,
            link: &self.link,
            end: &end,
        };
        {
            let mut state = self.link.lock();
            if state.link.is_none() {
                end.set(Outcome::Lost);
                return Err(gone(&self.link));
            }
            if self.pushed && state.bodies.pushed.is_kept(self.offer) {
                // It was taken into our own memory just now.
                end.set(Outcome::Declined);
                drop(state);
                drop(borrowing);
                return self.receive_while(progress, parts);
            }
            self.answered = true;
            state.bodies.wanted.push_back(Wanted {
                offer: self.offer,
                parts: parts.iter_mut().map(|part| PartMut::of(part)).collect(),
                end: Arc::clone(&end),
            });
        }
        self.link.push();
        let outcome = loop {
            if let Ok(outcome) = self
                .link
                .wait(progress, None, Waits::ToReceive, |_| end.get())
            {
                break outcome;
            }
        };
        drop(borrowing);
        match outcome {
            Outcome::Done => Ok(()),
            Outcome::Retracted => Err(UnpackError::Retracted),
            Outcome::Declined | Outcome::Lost => Err(gone(&self.link)),
        }
    }
}

impl Offered for NetOffered {
    fn len(&self) -> usize {
        self.head.len() + self.body_len
    }

    fn head(&self) -> &[u8] {
        &self.head
    }

    fn max_parts(&self) -> usize {
        let hub = self.link.hub.upgrade();
        hub.map_or(1, |hub| hub.limits().max_parts)
    }

    fn receive(&mut self, parts: &mut [&mut [u8]]) -> Result<(), UnpackError> {
        let hub = self.link.hub.upgrade();
        let Some(process) = hub.and_then(|hub| hub.control()) else {
            return Err(UnpackError::PeerGone(self.link.gone_or_lost()));
        };
        self.receive_while(process.progress(), parts)
    }

    fn is(&self, link: usize, offer: OfferId) -> bool {
        Arc::as_ptr(&self.link).addr() == link && self.offer == offer
    }
}

impl Drop for NetOffered {
    fn drop(&mut self) {
        if self.answered {
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
        driver: &mut dyn Driver,
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
        self.bodies
            .pushed
            .keep(links, peer, link, driver, offer, true)
    }

    /// Whether a body has not been given a place yet.
    pub(super) fn is_standing(&self, body: BodyId) -> bool {
        let link = self.link.as_ref();
        link.is_some_and(|link| link.waiting(body).is_some())
    }
}

impl NetLink {
    /// If a body was taken into our own memory: waits until it is whole, and copies it to `parts`.
    pub(super) fn take_kept(
        self: &Arc<Self>,
        progress: &dyn Progress,
        offer: OfferId,
        parts: &mut [&mut [u8]],
    ) -> Option<Result<(), Lost>> {
        let end = {
            let state = self.lock();
            Arc::clone(&state.bodies.pushed.kept.get(&offer)?.end)
        };
        let outcome = loop {
            if let Ok(outcome) = self.wait(progress, None, Waits::ToReceive, |_| end.get()) {
                break outcome;
            }
        };
        let kept = self.lock().bodies.pushed.kept.remove(&offer);
        let Some(kept) = kept.filter(|_| outcome == Outcome::Done) else {
            return Some(Err(Lost));
        };
        let mut rest = kept.memory.bytes();
        for part in parts {
            let (here, after) = rest.split_at(part.len());
            part.copy_from_slice(here);
            rest = after;
        }
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
        Some(Ok(()))
    }
}
