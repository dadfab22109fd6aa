//! Posting to a peer on a network.

use std::sync::Arc;

use mizzen_proto::id::{MailboxId, StreamId};
use mizzen_proto::link::{Plan, Refused};
use mizzen_proto::wire::BODY_MAX;

use super::bodies::{Lending, Owned};
use super::cut::Cut;
use super::link::{Control, Expired, Hub, NetLink, OUTBOX_MAX, State, Waits};
use super::sharing::TOGETHER;
use crate::caller::Caller;
use crate::error::{ArenaError, PostError};
use crate::message::Outgoing;
use crate::progress::Progress;
use crate::wait::Until;

/// Whether a message was paid for, or waits until it can be.
enum Paid {
    Now,
    Later,
}

impl NetLink {
    /// Posts a message. Returns when its memory may be used again: a short one is copied, the body of a longer one is
    /// pushed, and that of a very long one sent when its receiver has a place for it.
    #[track_caller]
    pub(crate) fn post(
        self: &Arc<Self>,
        control: &dyn Control,
        to: MailboxId,
        stream: StreamId,
        message: Outgoing<'_>,
        until: Until,
    ) -> Result<(), PostError> {
        let _call = Caller::enter();
        let Some(hub) = self.hub.upgrade().filter(|_| !self.is_ended()) else {
            return Err(self.peer_gone());
        };
        let cut = Cut::of(message, hub.limits().head_max);
        if cut.head_len + cut.body_len <= hub.limits().eager_max {
            self.post_eager(control, &*hub, to, stream, &cut, until)
        } else {
            self.post_long(control, &*hub, to, stream, &cut, until)
        }
    }

    fn post_eager(
        self: &Arc<Self>,
        control: &dyn Control,
        hub: &dyn Hub,
        to: MailboxId,
        stream: StreamId,
        cut: &Cut<'_>,
        until: Until,
    ) -> Result<(), PostError> {
        let queue = |state: &mut State, _: Plan| {
            state.queue(cut.post_frame(to, stream));
        };
        if self.sharing.note(stream) {
            self.wait_to_pay(control.progress(), (to, stream), cut, until, queue)?;
            if self.lock().outbox.len() >= TOGETHER {
                self.push();
            } else {
                hub.flush_soon(self);
            }
            return Ok(());
        }
        if let Some(posted) = self.post_now(control, hub, (to, stream), cut) {
            return posted;
        }
        self.wait_to_pay(control.progress(), (to, stream), cut, until, queue)?;
        self.push();
        Ok(())
    }

    fn post_long(
        self: &Arc<Self>,
        control: &dyn Control,
        hub: &dyn Hub,
        to: MailboxId,
        stream: StreamId,
        cut: &Cut<'_>,
        until: Until,
    ) -> Result<(), PostError> {
        let offer = |lending: Lending| {
            let (mut lending, mut offered) = (Some(lending), None);
            let where_to = (to, stream);
            self.wait_to_pay(control.progress(), where_to, cut, until, |state, plan| {
                let (offer, body) = match plan {
                    Plan::Offer(offer) => (offer, None),
                    Plan::Push(offer, body) => (offer, Some(body)),
                    // It is longer than `eager_max`.
                    Plan::Eager => return,
                };
                if let Some(lending) = lending.take() {
                    let frame = cut.offer_frame(to, stream, offer, body.is_some());
                    state.queue_offer(frame, offer, body, lending);
                    offered = Some(offer);
                }
            })
            .map(|_| offered)
        };
        if let Until::Now = until {
            // Nobody waits for the receiver, so the body must outlive this call.
            if !self
                .lock()
                .has_room(to, (cut.head_len + cut.body_len) as usize)
            {
                let rank = self.peer.rank;
                return Err(PostError::Busy { rank });
            }
            offer(Lending::owned(Owned::new(to, cut.copy_body())))?;
            self.push();
            return Ok(());
        }
        let mut pieces = Vec::with_capacity(cut.body.len() + 1);
        cut.each_piece(|piece| pieces.push(piece));
        self.send_borrowed(
            control.progress(),
            hub,
            (to, !matches!(until, Until::Taken)),
            &pieces,
            until.deadline(),
            offer,
        )
    }

    /// Pays for a message; then `queue` is called with the state locked. Who would have to sleep until the receiver returns
    /// credits leaves the message behind, if it may.
    fn wait_to_pay(
        self: &Arc<Self>,
        progress: &dyn Progress,
        (to, stream): (MailboxId, StreamId),
        cut: &Cut<'_>,
        until: Until,
        mut queue: impl FnMut(&mut State, Plan),
    ) -> Result<Paid, PostError> {
        let rank = self.peer.rank;
        // What is pushed cannot be taken back, so who will not wait for long does not push.
        let may_push = self.can_push && !matches!(until, Until::Deadline(_));
        let mut pay = |state: &mut State| {
            let paid = self.pay(state, to, cut, may_push, &mut queue)?;
            Some(paid.map(|_| Paid::Now))
        };
        if let Some(paid) = pay(&mut self.lock()) {
            return paid;
        }
        self.lock().counts.credits_exhausted += 1;
        let paid = match until {
            Until::Now => {
                progress.poll_networks();
                pay(&mut self.lock())
            }
            _ => self.wait_awake(progress, until.deadline(), &mut pay),
        };
        if let Some(paid) = paid {
            return paid;
        }
        let mut leave = |state: &mut State| {
            let paid = pay(state);
            paid.or_else(|| {
                state
                    .leave_behind(to, stream, cut)
                    .then_some(Ok(Paid::Later))
            })
        };
        if let Until::Now = until {
            let left = leave(&mut self.lock());
            return left.unwrap_or(Err(PostError::Busy { rank }));
        }
        match self.wait(progress, until.deadline(), Waits::ToPost, leave) {
            Ok(paid) => paid,
            Err(Expired) => Err(PostError::TimedOut { rank }),
        }
    }

    /// Pays for a message, if that is possible now. `None`: there are no credits.
    pub(super) fn pay(
        &self,
        state: &mut State,
        to: MailboxId,
        cut: &Cut<'_>,
        may_push: bool,
        queue: impl FnOnce(&mut State, Plan),
    ) -> Option<Result<Plan, PostError>> {
        if state.behind.is_behind(to) {
            // Others wait already, perhaps our own.
            return None;
        }
        self.pay_now(state, to, cut, may_push, queue)
    }

    /// The same for what has waited longest.
    pub(super) fn pay_now(
        &self,
        state: &mut State,
        to: MailboxId,
        cut: &Cut<'_>,
        may_push: bool,
        queue: impl FnOnce(&mut State, Plan),
    ) -> Option<Result<Plan, PostError>> {
        let rank = self.peer.rank;
        // The link's own frames come before what is posted now.
        state.transmit();
        let Some(link) = &mut state.link else {
            return Some(Err(self.peer_gone()));
        };
        // The network is slower than we are, and the mailboxes together grant more than it holds.
        if state.outbox.len() >= OUTBOX_MAX {
            return None;
        }
        let planned = if may_push {
            link.post_or_push(to, cut.head_len, cut.body_len)
        } else {
            link.post(to, cut.head_len, cut.body_len)
        };
        match planned {
            Ok(plan) => {
                state.counts.messages_sent += 1;
                state.counts.bytes_sent += cut.head_len + cut.body_len;
                queue(state, plan);
                Some(Ok(plan))
            }
            Err(Refused::NoCredit | Refused::TooManyOffers) => None,
            Err(Refused::Gone) => Some(Err(PostError::Closed { rank })),
            Err(Refused::Leaving) => Some(Err(PostError::PeerGone(state.gone(self)))),
            Err(Refused::HeadTooLong { len, .. } | Refused::BodyTooLong { len }) => {
                Some(Err(PostError::Memory(ArenaError::TooLong {
                    bytes: len as usize,
                    limit: BODY_MAX as usize,
                })))
            }
        }
    }
}
