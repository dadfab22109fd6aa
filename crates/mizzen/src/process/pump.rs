//! Draining the shared lanes: whoever waits for anything takes what came for anybody.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mizzen_lane::{Arrival, Exact, LaneError};

use super::Process;
use super::channel::SHARED_LANE;
use super::link::{Inbound, MemoryLink, News, WINDOW};
use crate::lock::{lock, try_lock};
use crate::mailbox::{Account as Due, Core, Delivery, Undelivered};
use crate::message::{Flags, Payload, discard};
use crate::net::{Networks, Polling};
use crate::rank::MailboxId;

/// Messages taken from one lane before the next lane gets its turn.
const BATCH: usize = 64;

/// Messages taken from the lane of a peer that is gone: all that it holds, and a window for what was posted while we looked.
/// A peer that was cut off may live on, and post for ever.
const LAST_MESSAGES: u32 = SHARED_LANE.slots() + WINDOW;

impl Process {
    /// Drains all shared lanes into the mailboxes' queues.
    pub(crate) fn pump_all(self: &Arc<Self>) {
        let (_, links) = self.links();
        for link in &links {
            self.pump(link);
        }
        self.poll_networks();
    }

    /// Moves what can be moved on networks, unless another thread is doing it.
    #[inline]
    pub(crate) fn poll_networks(self: &Arc<Self>) {
        if let Some(networks) = self.networks.get() {
            networks.pump(Some(self));
        }
    }

    /// The same for a thread that waits for something from there.
    #[inline]
    pub(crate) fn watch_networks(self: &Arc<Self>) {
        if let Some(networks) = self.networks.get() {
            networks.watch(self);
        }
    }

    /// Says that the calling thread polls networks all the time until it drops what this returns.
    #[inline]
    pub(crate) fn start_polling(&self) -> Option<Polling<'_>> {
        self.networks.get().map(Networks::start_polling)
    }

    /// One of our mailboxes closed: peers on networks are told.
    pub(crate) fn close_on_networks(&self, mailbox: MailboxId) {
        if let Some(networks) = self.networks.get() {
            networks.close_mailbox(mailbox);
        }
    }

    /// Drains one shared lane, unless another thread is doing it.
    pub(crate) fn pump(self: &Arc<Self>, link: &Arc<MemoryLink>) {
        if link.has_untold() {
            link.tell_untold();
        }
        if !link.peek.is_ready() {
            return;
        }
        let Some(mut inbound) = try_lock(&link.inbound) else {
            return;
        };
        for _ in 0..BATCH {
            if !self.pump_one(link, &mut inbound) {
                return;
            }
        }
    }

    /// Takes what a peer that is gone had posted.
    pub(super) fn drain(self: &Arc<Self>, link: &Arc<MemoryLink>, inbound: &mut Inbound) {
        for _ in 0..LAST_MESSAGES {
            if !self.pump_one(link, inbound) {
                return;
            }
        }
    }

    /// Takes what came before anybody here knew the lane, which is at most what it holds. What comes later wakes those it is
    /// for, so that a peer which goes on posting does not keep us here.
    pub(crate) fn take_backlog(self: &Arc<Self>, link: &Arc<MemoryLink>) {
        for _ in 0..(SHARED_LANE.slots() as usize).div_ceil(BATCH) {
            // Who else drains the lane may stop at a message of its own, with some for sleepers behind it: so we wait for it.
            let mut inbound = lock(&link.inbound);
            for _ in 0..BATCH {
                if !self.pump_one(link, &mut inbound) {
                    return;
                }
            }
        }
    }

    /// As `pump`, but a message for `mine` is returned instead of queued, if nothing is queued before it.
    #[inline]
    pub(crate) fn pump_for(
        self: &Arc<Self>,
        link: &Arc<MemoryLink>,
        mine: &Arc<Core>,
    ) -> Option<Delivery> {
        if link.has_untold() {
            link.tell_untold();
        }
        if !link.peek.is_ready() {
            return None;
        }
        let mut inbound = try_lock(&link.inbound)?;
        for _ in 0..BATCH {
            let (to, delivery) = self.next(link, &mut inbound)?;
            match delivery {
                Some(delivery) if to == mine.id && mine.is_queue_empty() => return Some(delivery),
                Some(delivery) => {
                    let goes_on = self.dispatch(link, &mut inbound, to, delivery);
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
    pub(super) fn pump_one(
        self: &Arc<Self>,
        link: &Arc<MemoryLink>,
        inbound: &mut Inbound,
    ) -> bool {
        match self.next(link, inbound) {
            None => false,
            Some((_, None)) => true,
            Some((to, Some(delivery))) => self.dispatch(link, inbound, to, delivery),
        }
    }

    /// The next message of a shared lane and its mailbox; words between runtimes are handled here and give `None`.
    fn next(
        &self,
        link: &Arc<MemoryLink>,
        inbound: &mut Inbound,
    ) -> Option<(MailboxId, Option<Delivery>)> {
        let arrival = match inbound.consumer.poll() {
            Ok(arrival) => arrival?,
            Err(LaneError::Corrupt | LaneError::TooSmall) => {
                link.cut_off();
                return None;
            }
        };
        let (to, flags, payload) = match arrival {
            // Every slot of a shared lane begins with an address.
            Arrival::Short(short) if short.bytes().len() < 8 => {
                link.cut_off();
                return None;
            }
            Arrival::Short(short) => (short.to(), short.tag, Payload::Short { short, from: 8 }),
            // Bytes of a shared lane are freed at once: one mailbox must not hold up the others.
            Arrival::Eager(eager) => (eager.to, eager.tag, Payload::Eager(eager).detach()),
            Arrival::Closed => return Some((MailboxId(0), None)),
        };
        let (to, flags) = (MailboxId(to), Flags(flags));
        if flags.has(Flags::CONTROL) {
            let mut news = [0; 4];
            if payload.len() == news.len() {
                payload.copy_out(0, &mut news);
                link.handle_control(to, News(u32::from_ne_bytes(news)));
            }
            return Some((to, None));
        }
        let account = inbound.account(to, || Arc::downgrade(link));
        let lender = flags.refers_to_lender().then(|| Arc::clone(link));
        let delivery = Delivery {
            source: link.peer,
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
        link: &MemoryLink,
        inbound: &mut Inbound,
        to: MailboxId,
        delivery: Delivery,
    ) -> bool {
        let refused = match self.mailbox(to) {
            Some(core) => {
                let refused = core.deliver(delivery);
                self.wake(&core);
                refused
            }
            None => Some(Undelivered::Closed(delivery)),
        };
        match refused {
            None => true,
            Some(Undelivered::Closed(delivery)) => {
                discard(delivery.flags, &delivery.payload, link);
                // A peer may name any number of mailboxes that are not there: nothing is kept of them.
                inbound.close_account(to);
                link.tell(to, News::CLOSED);
                true
            }
            Some(Undelivered::Overrun(delivery)) => {
                discard(delivery.flags, &delivery.payload, link);
                link.cut_off();
                false
            }
        }
    }
}

impl MemoryLink {
    /// Takes the next message of the shared lane into `target`, if it is a short one of just that length for `mine`, and
    /// none of its messages waits elsewhere.
    pub(crate) fn take_exact(
        self: &Arc<Self>,
        mine: &Core,
        flags: Flags,
        target: &mut [u8],
    ) -> Exact {
        if self.has_untold() || !mine.is_queue_empty() {
            return Exact::Other;
        }
        if !self.peek.is_ready() {
            return Exact::Nothing;
        }
        let Some(mut inbound) = try_lock(&self.inbound) else {
            return Exact::Nothing;
        };
        // Who queues messages has the lock: what was sent before is queued already.
        if !mine.is_queue_empty() {
            return Exact::Other;
        }
        let to = mine.id;
        let found = inbound.consumer.poll_exact(flags.0, Some(to.0), target);
        if found == Exact::Taken {
            inbound.account(to, || Arc::downgrade(self)).retrieved();
        }
        found
    }
}

impl Core {
    fn is_queue_empty(&self) -> bool {
        self.queued.load(Ordering::Acquire) == 0
    }
}
