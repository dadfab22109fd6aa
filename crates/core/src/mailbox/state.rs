//! The mailbox itself: what it consists of, and its life.

use core::cell::{Cell, OnceCell};
use core::fmt;
use std::sync::Arc;
use std::task::Waker;

use tracing::debug;

use super::descriptor::{Descriptor, Event};
use super::look::{Outcome, Places, Reach, Taken};
use super::posted::{Exchange, Waiter};
use crate::address::MailboxRef;
use crate::bells::REACTOR_BELL;
use crate::crash;
use crate::delivery::{Core, Looker, What};
use crate::endpoint::Endpoint;
use crate::error::{Error, MailboxError, RetrieveError, UnpackError};
use crate::incoming::Incoming;
use crate::process::Process;
use crate::rank::{Address, ChannelId, MailboxId, Rank, channel_of};
use crate::roll::WaitsFor;
use crate::wait::Contention;

/// The receiving end of messages. It has one owner, which may move it to another thread but not share it.
///
/// Messages of one sender arrive in the order in which it sent them. Several senders take turns, so that none starves.
///
/// ```
/// mizzen::local(2, |deck| {
///     if deck.rank() == 0 {
///         let inbox = deck.mailbox()?;
///         deck.bind("answers", &inbox)?;
///         assert_eq!(inbox.receive::<u64>()?, 42);
///     } else {
///         deck.fetch("answers")?.send(&42u64)?;
///     }
///     Ok(())
/// }).unwrap();
/// ```
pub struct Mailbox {
    pub(super) process: Endpoint,
    pub(super) core: Arc<Core>,
    pub(super) places: Places,
    pub(super) contention: Contention,
    /// What the user is told that it waits for, if that takes long.
    pub(super) awaited: Option<Box<WaitsFor>>,
    /// When it was last served among several mailboxes: the higher, the later.
    pub(super) served: Cell<u64>,
    /// Made when it is first asked for.
    pub(super) event: OnceCell<Arc<Event>>,
    /// Whether the descriptor's waker was left, and nobody else's since.
    pub(super) is_armed: Cell<bool>,
    /// Made when a receive is first posted. It has the places while any are.
    pub(super) exchange: OnceCell<Arc<Exchange>>,
}

impl Endpoint {
    /// One of the mailboxes that this process has from the start ([`reserved`](crate::service::reserved)), once: it has one
    /// owner.
    #[must_use]
    pub fn take_reserved(&self, mailbox: MailboxId) -> Option<Mailbox> {
        let core = Process::take_reserved(self, mailbox)?;
        Some(Mailbox::new(self.clone(), core))
    }
}

impl Mailbox {
    /// A new mailbox of a process.
    ///
    /// # Errors
    ///
    /// [`MailboxError::TooMany`] if the process has no room for another.
    pub fn open_in(process: &Endpoint) -> Result<Self, MailboxError> {
        Self::open_on(process, ChannelId::DEFAULT)
    }

    /// Another mailbox of the same process, on the same channel.
    ///
    /// # Errors
    ///
    /// As [`open_in`](Self::open_in).
    pub fn open_beside(&self) -> Result<Self, MailboxError> {
        Self::open_on(&self.process, channel_of(self.core.id))
    }

    /// A new mailbox on a channel.
    pub(crate) fn open_on(process: &Endpoint, channel: ChannelId) -> Result<Self, MailboxError> {
        let core = process.mailboxes.open(channel)?;
        debug!(parent: &process.span, mailbox = %core.id, "mailbox opened");
        Ok(Self::new(process.clone(), core))
    }

    fn new(process: Endpoint, core: Arc<Core>) -> Self {
        Self {
            process,
            core,
            places: Places::new(),
            contention: Contention::default(),
            awaited: None,
            served: Cell::new(0),
            event: OnceCell::new(),
            is_armed: Cell::new(false),
            exchange: OnceCell::new(),
        }
    }

    /// Sets what the user is told that this mailbox waits for, if it takes long.
    pub fn wait_for_what(&mut self, awaited: WaitsFor) {
        self.awaited = Some(Box::new(awaited));
    }

    /// The address of this mailbox. Whoever has it may post.
    #[must_use]
    pub fn address(&self) -> MailboxRef {
        MailboxRef::new(self.process.clone(), self.full_address())
    }

    /// Says that this mailbox waits for something from `rank`: if that process dies or leaves, retrieving returns an error even
    /// if it has never sent anything here.
    pub fn depend_on(&self, rank: impl Into<Rank>) {
        let rank = rank.into();
        self.core.depend_on(rank);
        if let Some(gone) = self.process.peers.last_gone(rank) {
            self.core.tell_gone(gone);
        }
    }

    /// The address itself, without the process that uses it.
    #[must_use]
    pub fn full_address(&self) -> Address {
        Address {
            process: self.process.id,
            mailbox: self.core.id,
        }
    }

    #[inline]
    pub(super) fn poll(&self, reach: Reach) -> Option<Outcome> {
        self.places.poll(&self.process, &self.core, reach)
    }

    /// Whether there is a message where the last one came from, as far as a quick look tells.
    #[inline]
    pub fn is_likely(&self) -> bool {
        self.places.is_hot_ready(&self.core)
    }

    /// Whether a look at everything would find something.
    pub fn is_ready(&self) -> bool {
        self.places.is_ready(&self.process, &self.core)
    }

    /// Whose mailbox it is.
    pub fn process(&self) -> &Endpoint {
        &self.process
    }

    /// What others see of this mailbox.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Whoever sends to this mailbox must ring the bell of this number from now on; without one, nobody needs to be woken.
    pub fn set_bell(&self, bell: Option<u32>) {
        match (self.sharing(), bell) {
            (Some(exchange), Some(bell)) => {
                let fills = false;
                exchange.leave_owner(Waiter::Thread { bell, fills }, self.awaits());
            }
            (Some(exchange), None) => exchange.attend_owner(),
            (None, Some(bell)) => self.core.watch.announce_sleep(bell),
            (None, None) => self.core.watch.announce_awake(),
        }
    }

    /// Whoever has the places, if receives are posted: it alone writes the watch then.
    fn sharing(&self) -> Option<&Arc<Exchange>> {
        let exchange = self.exchange.get()?;
        self.places.is_elsewhere().then_some(exchange)
    }

    /// A descriptor that is readable when a look may find something: for programs with an event loop of their own, by `poll`,
    /// `epoll` or what is built on them. It is made when it is first asked for, and readable then.
    ///
    /// It stays readable until [`try_retrieve`](Self::try_retrieve) has found nothing, also if only some of what there is was
    /// retrieved, as one expects of a level-triggered descriptor. It may be readable for nothing, after which a look finds
    /// nothing. Between the descriptor and the other ways to wait there is no conflict.
    ///
    /// ```
    /// use rustix::event::{PollFd, PollFlags, poll};
    ///
    /// mizzen::local(2, |deck| {
    ///     if deck.rank() == 1 {
    ///         return (1..=3u64).try_for_each(|number| deck.fetch("inbox")?.send(&number));
    ///     }
    ///     let inbox = deck.mailbox()?;
    ///     deck.bind("inbox", &inbox)?;
    ///     let descriptor = inbox.descriptor()?;
    ///     let mut sum = 0;
    ///     while sum < 6 {
    ///         // Other descriptors of the program stand beside it.
    ///         let mut descriptors = [PollFd::new(&descriptor, PollFlags::IN)];
    ///         poll(&mut descriptors, None).map_err(|error| mizzen::Error::Program(error.into()))?;
    ///         if descriptors[0].revents().contains(PollFlags::IN) {
    ///             while let Some(mut incoming) = inbox.try_retrieve()? {
    ///                 sum += incoming.unpack_express::<u64>()?;
    ///             }
    ///         }
    ///     }
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`MailboxError::Descriptor`] if the system has no descriptor or no thread left.
    pub fn descriptor(&self) -> Result<Descriptor, Error> {
        if let Some(event) = self.event.get() {
            return Ok(Descriptor(Arc::clone(event)));
        }
        let made = self.process.ensure_reactor().and_then(|()| Event::new());
        let made = made.map_err(MailboxError::Descriptor)?;
        Ok(Descriptor(Arc::clone(self.event.get_or_init(|| made))))
    }

    /// Nothing was found: the descriptor, if there is one, becomes readable when there is something.
    #[inline]
    pub(super) fn arm(&self) {
        if let Some(event) = self.event.get() {
            self.arm_with(event);
        }
    }

    #[cold]
    fn arm_with(&self, event: &Arc<Event>) {
        let has_waker = match self.sharing() {
            Some(exchange) => exchange.has_owner(),
            None => self.core.has_waker(),
        };
        if self.is_armed.get() && has_waker {
            return;
        }
        event.clear();
        self.leave_with_reactor(Arc::clone(event).into(), self.awaits());
        self.is_armed.set(true);
        if self.is_ready() {
            self.attend();
        }
    }

    /// What a task awaits that takes anything.
    pub(super) fn awaits(&self) -> What {
        if self.places.is_held() {
            What::News
        } else {
            What::Anything
        }
    }

    /// The owner looks itself: nobody needs to wake it.
    pub(super) fn attend(&self) {
        if let Some(exchange) = self.sharing() {
            exchange.attend_owner();
        } else {
            self.core.clear_waker();
            self.core.watch.announce_awake();
        }
        if self.is_armed.take() {
            if let Some(event) = self.event.get() {
                event.set();
            }
        }
    }

    /// The reactor calls `waker` when it finds `what`. Whoever leaves it must look once more.
    pub(super) fn leave_with_reactor(&self, waker: Waker, what: What) {
        if let Some(exchange) = self.sharing() {
            return exchange.leave_owner(Waiter::Task(waker), what);
        }
        self.core.set_waker(waker, Looker::Reactor, what);
        self.core.watch.announce_sleep(REACTOR_BELL);
    }

    /// Opens a message. `None`: its sender was lost before even its beginning was there, which is no message; the loss is
    /// reported for itself.
    #[inline]
    pub(super) fn open_whole<'m>(
        &self,
        taken: Taken,
    ) -> Option<Result<Incoming<'m>, RetrieveError>> {
        match self.open(taken) {
            Err(RetrieveError::Malformed {
                cause: UnpackError::PeerGone(_) | UnpackError::Retracted,
                ..
            }) => None,
            outcome => Some(outcome),
        }
    }

    /// The same for a task, which must not block: if its beginning is not here, a worker waits for it, and the message stays
    /// the next one of this mailbox. The task is woken when it is open.
    pub(super) fn open_for_task<'m>(
        &self,
        taken: Taken,
    ) -> Option<Result<Incoming<'m>, RetrieveError>> {
        if taken.may_wait() {
            self.places.open_aside(&self.process, &self.core, taken);
            return None;
        }
        self.open_whole(taken)
    }

    /// Opens a message that was taken unopened.
    ///
    /// # Errors
    ///
    /// [`RetrieveError::Malformed`] if its sender broke the format, or was lost before its beginning was there.
    #[inline]
    pub fn open<'m>(&self, taken: Taken) -> Result<Incoming<'m>, RetrieveError> {
        let rank = taken.source.rank;
        let opened = match taken.opened {
            Some(opened) => *opened,
            None => Incoming::open(
                Arc::clone(&self.process),
                taken.source,
                taken.flags,
                taken.payload,
                taken.lender.as_ref(),
            ),
        };
        opened.map_err(|cause| RetrieveError::Malformed { rank, cause })
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        crash::point("mailbox.drop");
        let counts = || self.process.mailbox_summary(&self.core);
        debug!(parent: &self.process.span, mailbox = %self.core.id, counts = counts(), "mailbox closed");
        if let Some(exchange) = self.exchange.take() {
            if let Some(places) = exchange.close() {
                self.places.come_home(&places);
            }
        }
        // Whoever looks for a task here shall not write the watch any more.
        self.core.clear_waker();
        self.core.watch.announce_closed();
        self.core.close();
        self.process.close_mailbox(self.core.id);
        self.places.discard_all(&self.core);
        self.process.close_on_networks(self.core.id);
    }
}

impl fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox")
            .field("address", &self.full_address().to_string())
            .finish_non_exhaustive()
    }
}

/// A mailbox goes to another thread with its owner.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<Mailbox>();
    is_send::<Incoming<'static>>();
};
