//! Moving on what waits for the credits of one peer.
//!
//! What `link/backlog.rs` says holds here, too. The bodies of messages that were announced and that their receiver has not asked
//! for yet count as well: they are in memory of ours.

use std::task::Waker;

use mizzen_proto::id::{MailboxId, StreamId};
use mizzen_proto::link::Plan;

use super::bodies::{Lending, Owned};
use super::cut::Cut;
use super::link::{NetLink, State};
use super::waiting::Posted;
use crate::error::{PostError, Sureness};
use crate::link::{ALLOWANCE, Backlog, Queued};

impl State {
    /// Whether so many bytes more may wait for a mailbox.
    pub(super) fn has_room(&self, to: MailboxId, len: usize) -> bool {
        let kept = self.bodies.kept(to);
        match self.behind.queues.get(&to) {
            Some(queue) => queue.has_room(kept.saturating_add(len)),
            None => Backlog::<Posted>::default().has_room(kept.saturating_add(len)),
        }
    }

    /// How many messages that were posted are still in memory of ours.
    pub(super) fn waiting(&self) -> u64 {
        let queued = self.behind.queues.values().map(Backlog::len);
        (queued.sum::<usize>() + self.bodies.kept_offers()) as u64
    }

    /// Keeps a message until there are credits for it. `false`: too much waits for the mailbox already.
    pub(super) fn leave_behind(&mut self, to: MailboxId, stream: StreamId, cut: &Cut<'_>) -> bool {
        let len = (cut.head_len + cut.body_len) as usize;
        if !self.has_room(to, len) {
            return false;
        }
        let queue = self.behind.queues.entry(to).or_default();
        queue.push(len, Queued::Message(Posted::of(stream, cut)));
        self.counts.left_behind += 1;
        true
    }

    /// A task waits until less waits for a mailbox. `false`: there is room now.
    pub(super) fn await_room(&mut self, to: MailboxId, waker: &Waker) -> bool {
        if self.link.is_none() || self.has_room(to, ALLOWANCE / 2) {
            return false;
        }
        let posters = self.behind.posters.entry(to).or_default();
        if !posters.iter().any(|known| known.will_wake(waker)) {
            posters.push(waker.clone());
        }
        true
    }

    /// The tasks that need not wait any more.
    fn take_posters(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        if self.behind.posters.is_empty() {
            return woken;
        }
        let waiting: Vec<MailboxId> = self.behind.posters.keys().copied().collect();
        for to in waiting {
            // Not one by one: half of the allowance is free then.
            if self.link.is_none() || self.has_room(to, ALLOWANCE / 2) {
                woken.extend(self.behind.posters.remove(&to).unwrap_or_default());
            }
        }
        woken
    }
}

impl NetLink {
    /// Posts what waits, as far as there are credits. To be called when there may be more of them, or when a body has gone.
    pub(super) fn move_on(&self, state: &mut State) {
        let waiting: Vec<MailboxId> = state.behind.queues.keys().copied().collect();
        for to in waiting {
            if let Some(mut queue) = state.behind.queues.remove(&to) {
                self.move_queue_on(state, to, &mut queue);
                if !queue.is_empty() {
                    state.behind.queues.insert(to, queue);
                }
            }
        }
        state.take_posters().into_iter().for_each(Waker::wake);
    }

    /// The link is over: nobody waits for anything.
    pub(super) fn drop_behind(state: &mut State) {
        let queues = core::mem::take(&mut state.behind.queues);
        for mut queue in queues.into_values() {
            while let Some(queued) = queue.pop() {
                // Who has a turn is told by itself.
                if let Queued::Message(_) = queued {
                    state.untaken.add(1, Sureness::Certain);
                }
            }
        }
        state.take_posters().into_iter().for_each(Waker::wake);
    }

    fn move_queue_on(&self, state: &mut State, to: MailboxId, queue: &mut Backlog<Queued<Posted>>) {
        // Who has a turn takes it itself.
        while let Some(Queued::Message(posted)) = queue.front() {
            let paid =
                posted.with_cut(|cut| self.pay_now(state, to, cut, self.can_push, |_, _| ()));
            match paid {
                None => return,
                Some(Ok(plan)) => {
                    if let Some(Queued::Message(posted)) = queue.pop() {
                        send(state, to, posted, plan);
                    }
                }
                // Its mailbox is closed: it is lost as anything else that nobody reads. Or its reader leaves.
                Some(Err(error)) => {
                    queue.pop();
                    if let PostError::PeerGone(_) = error {
                        state.untaken.add(1, Sureness::Certain);
                    }
                }
            }
        }
    }
}

/// Queues the frames of a message that was paid for.
fn send(state: &mut State, to: MailboxId, posted: Posted, plan: Plan) {
    let stream = posted.stream;
    let (offer, body) = match plan {
        Plan::Eager => {
            let frame = posted.with_cut(|cut| cut.post_frame(to, stream));
            state.queue(frame);
            return;
        }
        Plan::Offer(offer) => (offer, None),
        Plan::Push(offer, body) => (offer, Some(body)),
    };
    let frame = posted.with_cut(|cut| cut.offer_frame(to, stream, offer, body.is_some()));
    let lending = Lending::owned(Owned::new(to, posted.body));
    state.queue_offer(frame, offer, body, lending);
}
