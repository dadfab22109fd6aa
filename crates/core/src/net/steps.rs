//! Posting to a peer on a network in steps: what `post.rs` does, by whoever comes along, without waiting.
//!
//! First the message waits for its turn among those to the same mailbox, and for credits; then, if it has a body, that is
//! lent to the driver, and goes when its reader has a place for it.

use std::sync::Arc;

use mizzen_driver::Part;
use mizzen_proto::id::{MailboxId, OfferId, StreamId};
use mizzen_proto::link::Plan;

use super::bodies::Lending;
use super::cut::Cut;
use super::link::{Hub, NetLink, Waits};
use super::outcome::{End, Outcome};
use crate::error::PostError;
use crate::link::{Queued, Turn};
use crate::message::Message;

/// How far a message is.
pub(crate) enum NetPost {
    /// Nobody knows of it.
    Waits(Turn),
    /// Its body is the driver's until it has ended.
    Goes(Body),
    /// It is posted, or never will be.
    Over,
}

impl NetPost {
    /// How many bytes of the body went.
    pub(crate) fn moved(&self) -> u64 {
        match self {
            Self::Goes(body) => body.end.bytes_moved() as u64,
            Self::Waits(_) | Self::Over => 0,
        }
    }
}

/// A body that was lent to the driver, with the memory that is not its user's.
pub(crate) struct Body {
    hub: Arc<dyn Hub>,
    offer: OfferId,
    end: Arc<End>,
    _table: Vec<u8>,
}

/// What became of an attempt to pay for a message.
enum Paid {
    Posted,
    Offered(Body),
    NotNow,
}

impl NetLink {
    /// A message that found no room takes its turn.
    pub(crate) fn begin_post(&self, to: MailboxId) -> NetPost {
        let turn = Turn::new();
        let mut state = self.lock();
        if state.link.is_some() {
            let queue = state.behind.queues.entry(to).or_default();
            queue.push(0, Queued::Turn(turn.clone()));
        }
        NetPost::Waits(turn)
    }

    /// Moves a message on. `Ok(None)`: it waits for its reader. `Ok(Some(false))`: some of it went. `Ok(Some(true))`: all of it.
    ///
    /// Once a body is lent, neither `message` nor `post` may be moved, changed or dropped before this has said that all is over,
    /// or [`withdraw_post`](Self::withdraw_post) has returned: the driver reads the memory.
    pub(crate) fn step_post(
        self: &Arc<Self>,
        to: MailboxId,
        message: &mut Message<'_>,
        post: &mut NetPost,
    ) -> Result<Option<bool>, PostError> {
        let stepped = match post {
            NetPost::Waits(turn) => match self.pay_in_turn(to, turn, message) {
                Ok(Paid::NotNow) => return Ok(None),
                Ok(Paid::Offered(body)) => {
                    self.end_turn(to, turn);
                    *post = NetPost::Goes(body);
                    self.push();
                    return Ok(Some(false));
                }
                paid => {
                    self.end_turn(to, turn);
                    self.push();
                    paid.map(drop)
                }
            },
            NetPost::Goes(body) => match body.end.get() {
                None => return Ok(None),
                Some(Outcome::Done | Outcome::Declined) => Ok(()),
                Some(Outcome::Lost | Outcome::Retracted) => Err(self.peer_gone()),
            },
            NetPost::Over => Ok(()),
        };
        *post = NetPost::Over;
        stepped?;
        message.drop_lent();
        Ok(Some(true))
    }

    /// Takes back a message. If its reader has asked for the body, it goes nevertheless: this waits until the driver has it no
    /// more.
    pub(crate) fn withdraw_post(self: &Arc<Self>, to: MailboxId, post: &mut NetPost) {
        match post {
            NetPost::Waits(turn) => self.end_turn(to, turn),
            NetPost::Goes(body) => self.take_back(body),
            NetPost::Over => (),
        }
        *post = NetPost::Over;
    }

    fn take_back(self: &Arc<Self>, body: &Body) {
        if body.end.get().is_some() {
            return;
        }
        if let Some(link) = &mut self.lock().link {
            link.retract(body.offer);
        }
        self.push();
        self.wait_for_end(&*body.hub, &body.end, Waits::ToPost);
    }

    /// Pays for the message whose turn it is.
    fn pay_in_turn(
        self: &Arc<Self>,
        to: MailboxId,
        turn: &Turn,
        message: &Message<'_>,
    ) -> Result<Paid, PostError> {
        let Some(hub) = self.hub.upgrade().filter(|_| !self.is_ended()) else {
            return Err(self.peer_gone());
        };
        // Before anything is prepared: most of them wait.
        let is_first = || {
            let state = self.lock();
            let first = state.behind.queues.get(&to).and_then(|queue| queue.front());
            first.is_some_and(|entry| entry.is(turn))
        };
        if !is_first() {
            return Ok(Paid::NotNow);
        }
        let foreign = message.foreign()?;
        let (stream, cut) = (
            StreamId::default(),
            Cut::of(foreign.outgoing(), hub.limits().head_max),
        );
        let mut pieces = Vec::new();
        cut.each_piece(|piece| pieces.push(piece));
        let mut state = self.lock();
        let mut offered = None;
        let paid = self.pay_now(&mut state, to, &cut, self.can_push, |state, plan| {
            let (offer, body) = match plan {
                Plan::Eager => return state.queue(cut.post_frame(to, stream)),
                Plan::Offer(offer) => (offer, None),
                Plan::Push(offer, body) => (offer, Some(body)),
            };
            let parts = pieces.iter().map(|piece| Part::of(piece)).collect();
            let end = Arc::<End>::default();
            let frame = cut.offer_frame(to, stream, offer, body.is_some());
            let lending = Lending::of(parts, Arc::clone(&end));
            state.queue_offer(frame, offer, body, lending);
            offered = Some((offer, end));
        });
        drop(state);
        match paid.transpose()? {
            None => Ok(Paid::NotNow),
            Some(_) => Ok(match offered {
                None => Paid::Posted,
                Some((offer, end)) => Paid::Offered(Body {
                    hub,
                    offer,
                    end,
                    _table: foreign.into_table(),
                }),
            }),
        }
    }

    /// Those behind the turn move on.
    fn end_turn(&self, to: MailboxId, turn: &Turn) {
        let mut state = self.lock();
        if let Some(queue) = state.behind.queues.get_mut(&to) {
            queue.remove(|entry| entry.is(turn));
            if queue.is_empty() {
                state.behind.queues.remove(&to);
            }
        }
        self.move_on(&mut state);
        state.leave_if_due();
        drop(state);
        self.push();
    }
}
