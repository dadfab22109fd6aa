//! Draining the shared lanes: a thread that waits for anything takes what has come for anybody.

use std::sync::Arc;

use mizzen_lane::{Arrival, Exact, LaneError};

use crate::delivery::{Account as Due, Core, Delivery, Undelivered};
use crate::link::{Inbound, MailboxNotice, MemoryLink, SHARED_LANE, WINDOW};
use crate::mailboxes::Mailboxes;
use crate::message::{Flags, Payload};
use crate::rank::MailboxId;

/// Messages taken from one lane before the next lane gets its turn.
const BATCH: usize = 64;

/// Messages taken from the lane of a peer that is gone: all that it holds, and a window for what was posted while we looked.
/// A peer that was cut off may live on, and post for ever.
const LAST_MESSAGES: u32 = SHARED_LANE.slots() + WINDOW;

impl MemoryLink {
    /// Drains one shared lane, unless another thread is doing it.
    pub(crate) fn pump(self: &Arc<Self>, mailboxes: &Mailboxes) {
        self.send_unsent();
        if !self.peek.is_ready() {
            return;
        }
        let Some(mut inbound) = self.inbound.try_lock() else {
            return;
        };
        for _ in 0..BATCH {
            if !self.pump_one(mailboxes, &mut inbound) {
                return;
            }
        }
    }

    /// Takes what a peer that is gone had posted.
    pub(crate) fn drain(self: &Arc<Self>, mailboxes: &Mailboxes, inbound: &mut Inbound) {
        for _ in 0..LAST_MESSAGES {
            if !self.pump_one(mailboxes, inbound) {
                return;
            }
        }
    }

    /// The same of a process that is dead. A thread of it may have been killed between claiming its place and announcing its
    /// message: what others had posted behind it comes all the same.
    pub(crate) fn drain_dead(self: &Arc<Self>, mailboxes: &Mailboxes, inbound: &mut Inbound) {
        for _ in 0..SHARED_LANE.slots() {
            self.drain(mailboxes, inbound);
            if !inbound.consumer.step_over_gap() {
                return;
            }
        }
    }

    /// Takes what came before anybody here knew the lane, which is at most what it holds. What comes later wakes those it is
    /// for, so that a peer which goes on posting does not keep us here.
    pub(crate) fn take_backlog(self: &Arc<Self>, mailboxes: &Mailboxes) {
        for _ in 0..(SHARED_LANE.slots() as usize).div_ceil(BATCH) {
            // Who else drains the lane may stop at a message of its own, with some for sleepers behind it: so we wait for it.
            let mut inbound = self.inbound.lock();
            for _ in 0..BATCH {
                if !self.pump_one(mailboxes, &mut inbound) {
                    return;
                }
            }
        }
    }

    /// As `pump`, but a message for `mine` is returned instead of queued, if nothing is queued before it.
    #[inline]
    pub(crate) fn pump_for(
        self: &Arc<Self>,
        mailboxes: &Mailboxes,
        mine: &Arc<Core>,
    ) -> Option<Delivery> {
        self.send_unsent();
        if !self.peek.is_ready() {
            return None;
        }
        let mut inbound = self.inbound.try_lock()?;
        for _ in 0..BATCH {
            let (to, delivery) = self.next(&mut inbound)?;
            match delivery {
                Some(delivery) if to == mine.id && mine.is_queue_empty() => return Some(delivery),
                Some(delivery) => {
                    let goes_on = self.dispatch(mailboxes, &mut inbound, to, delivery);
                    if !goes_on {
                        return None;
                    }
                }
                None => (),
            }
        }
        None
    }

    /// Takes one message of a shared lane to where it belongs. `false` if there was none, or there shall be no more.
    fn pump_one(self: &Arc<Self>, mailboxes: &Mailboxes, inbound: &mut Inbound) -> bool {
        match self.next(inbound) {
            None => false,
            Some((_, None)) => true,
            Some((to, Some(delivery))) => self.dispatch(mailboxes, inbound, to, delivery),
        }
    }

    /// The next message of a shared lane and its mailbox; words between runtimes are handled here and give `None`.
    fn next(self: &Arc<Self>, inbound: &mut Inbound) -> Option<(MailboxId, Option<Delivery>)> {
        let arrival = match inbound.consumer.poll() {
            Ok(arrival) => arrival?,
            Err(LaneError::Corrupt | LaneError::TooSmall) => {
                self.cut_off();
                return None;
            }
        };
        let (to, flags, payload) = match arrival {
            // Every slot of a shared lane begins with an address.
            Arrival::Short(short) if short.bytes().len() < 8 => {
                self.cut_off();
                return None;
            }
            Arrival::Short(short) => (short.to(), short.tag, Payload::Short { short, from: 8 }),
            Arrival::Double(double) => {
                let tag = double.tag;
                let (to, bytes) = double.split_address();
                (to, tag, Payload::Owned(bytes))
            }
            // Bytes of a shared lane are freed at once: one mailbox must not hold up the others.
            Arrival::Eager(eager) => (eager.to, eager.tag, Payload::Eager(eager).detach()),
            Arrival::Closed => return Some((MailboxId(0), None)),
        };
        let (to, flags) = (MailboxId(to), Flags(flags));
        if flags.has(Flags::CONTROL) {
            // Who takes from the lane has its lock.
            self.counts.notices_received.add_alone();
            let mut news = [0; 4];
            if payload.len() == news.len() {
                payload.copy_out(0, &mut news);
                self.handle_control(to, MailboxNotice(u32::from_ne_bytes(news)));
            }
            return Some((to, None));
        }
        let account = inbound.account(to, || Arc::downgrade(self));
        let lender = flags.refers_to_lender().then(|| Arc::clone(self));
        let delivery = Delivery {
            source: self.peer,
            flags,
            payload,
            lender,
            account: Some(Due::Lane(Arc::clone(account))),
        };
        Some((to, Some(delivery)))
    }

    /// Queues a message for its mailbox. `false` if the peer is cut off because of it.
    fn dispatch(
        &self,
        mailboxes: &Mailboxes,
        inbound: &mut Inbound,
        to: MailboxId,
        delivery: Delivery,
    ) -> bool {
        let refused = match mailboxes.get(to) {
            Some(core) => {
                let refused = core.deliver(delivery);
                mailboxes.wake(&core);
                refused
            }
            None => Some(Undelivered::Closed(delivery)),
        };
        match refused {
            None => true,
            Some(Undelivered::Closed(delivery)) => {
                self.discard(delivery.flags, &delivery.payload);
                // A peer may name any number of mailboxes that are not there: nothing is kept of them.
                inbound.close_account(to, &self.counts);
                self.tell(to, MailboxNotice::CLOSED);
                true
            }
            Some(Undelivered::Overrun(delivery)) => {
                self.discard(delivery.flags, &delivery.payload);
                self.cut_off();
                false
            }
        }
    }

    /// Takes the next message of the shared lane into `target`, if it is one of just that length for `mine`, and
    /// none of its messages waits elsewhere. If there is none, looks up to `looks` times more, a moment apart.
    #[inline]
    pub(crate) fn take_exact(
        self: &Arc<Self>,
        mine: &Core,
        flags: Flags,
        target: &mut [u8],
        looks: u32,
    ) -> Exact {
        if self.has_unsent_notices() || !mine.is_queue_empty() {
            return Exact::Other;
        }
        let Some(mut inbound) = self.inbound.try_lock() else {
            return Exact::Nothing;
        };
        // Who queues messages has the latch: what was sent before is queued already.
        if !mine.is_queue_empty() {
            return Exact::Other;
        }
        let (to, mut left) = (mine.id, looks);
        let found = loop {
            match inbound.consumer.poll_exact(flags.0, Some(to.0), target) {
                Exact::Nothing if left > 0 && !inbound.is_wanted() => left -= 1,
                found => break found,
            }
            core::hint::spin_loop();
        };
        if found == Exact::Taken {
            inbound.account(to, || Arc::downgrade(self)).retrieved();
        }
        found
    }
}
