//! The mailbox: the receiving end, with one owner.

mod core;

use ::core::cell::{Cell, RefCell};
use ::core::fmt;
use ::core::future::poll_fn;
use ::core::task::{Context, Poll};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use mizzen_lane::Arrival;

pub(crate) use self::core::{Account, Core, Delivery, Entry, LaneIn};
use crate::address::MailboxRef;
use crate::crash;
use crate::error::{Error, RetrieveError};
use crate::memory::Borrowed;
use crate::message::{Flags, Incoming, Payload, Plain, discard};
use crate::net::Polling;
use crate::process::Handle;
use crate::process::bells::REACTOR_BELL;
use crate::process::link::MemoryLink;
use crate::rank::{Address, ProcessId, Rank};
use crate::wait::{Crowd, Patience, Step};

/// The receiving end of messages. It has one owner, who may move it to another thread but not share it.
///
/// Messages of one sender come in the order in which it sent them. Several senders take turns: none starves.
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
    process: Handle,
    core: Arc<Core>,
    lanes: RefCell<Vec<LaneIn>>,
    links: RefCell<Vec<Arc<MemoryLink>>>,
    links_version: Cell<u64>,
    /// The place that had the last message, where the next look begins.
    hot: Cell<usize>,
    /// How many messages in a row it had, so that the others get their turn.
    streak: Cell<u32>,
    crowd: Crowd,
}

/// How long to sleep while credits could not be returned because a lane is full.
const UNTOLD_NAP: Duration = Duration::from_micros(200);

/// Messages that one place may have in a row before the others are looked at.
const TURN: u32 = 32;

/// A message taken out of the mailbox, not yet opened.
struct Taken {
    source: ProcessId,
    flags: Flags,
    payload: Payload,
    lender: Option<Arc<MemoryLink>>,
}

fn take_entry(entry: Entry) -> Result<Taken, RetrieveError> {
    match entry {
        Entry::Message(delivery) => Ok(delivery.take()),
        Entry::Gone(gone) => Err(RetrieveError::PeerGone(gone)),
    }
}

impl Delivery {
    /// Takes the message out of the mailbox: whoever sent it may send another.
    fn take(self) -> Taken {
        if let Some(account) = &self.account {
            account.retrieved();
        }
        Taken {
            source: self.source,
            flags: self.flags,
            payload: self.payload,
            lender: self.lender,
        }
    }
}

impl Mailbox {
    pub(crate) fn new(process: Handle, core: Arc<Core>) -> Self {
        Self {
            process,
            core,
            lanes: RefCell::default(),
            links: RefCell::default(),
            links_version: Cell::new(u64::MAX),
            hot: Cell::new(0),
            streak: Cell::new(0),
            crowd: Crowd::default(),
        }
    }

    /// The address of this mailbox. Whoever has it may post.
    #[must_use]
    pub fn address(&self) -> MailboxRef {
        MailboxRef::new(self.process.clone(), self.full_address())
    }

    /// Waits for the next message.
    ///
    /// # Errors
    ///
    /// [`RetrieveError::PeerGone`] once for each process that had sent here and died, or on which this mailbox
    /// [depends](Self::depend_on) and which died or left; everything it sent before has been retrieved then.
    pub fn retrieve<'m>(&self) -> Result<Incoming<'m>, RetrieveError> {
        self.retrieve_until(None)
    }

    /// The next message if there is one now.
    ///
    /// # Errors
    ///
    /// As [`retrieve`](Self::retrieve).
    pub fn try_retrieve<'m>(&self) -> Result<Option<Incoming<'m>>, RetrieveError> {
        self.poll().map(|taken| self.open(taken?)).transpose()
    }

    /// Waits for the next message until `deadline`.
    ///
    /// # Errors
    ///
    /// [`RetrieveError::TimedOut`] when it has passed; otherwise as [`retrieve`](Self::retrieve).
    pub fn retrieve_deadline<'m>(&self, deadline: Instant) -> Result<Incoming<'m>, RetrieveError> {
        self.retrieve_until(Some(deadline))
    }

    /// Waits for the next message, at most as long as said.
    ///
    /// # Errors
    ///
    /// As [`retrieve_deadline`](Self::retrieve_deadline).
    pub fn retrieve_timeout<'m>(&self, timeout: Duration) -> Result<Incoming<'m>, RetrieveError> {
        self.retrieve_until(Some(Instant::now() + timeout))
    }

    /// The next message, for async tasks of any runtime. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// As [`retrieve`](Self::retrieve).
    pub async fn retrieve_async<'m>(&mut self) -> Result<Incoming<'m>, RetrieveError> {
        let mailbox = self;
        poll_fn(move |context| mailbox.poll_retrieve(context)).await
    }

    /// Waits for a message that is one plain value.
    ///
    /// # Errors
    ///
    /// As [`retrieve`](Self::retrieve), or if the message is something else.
    #[inline]
    pub fn receive<T: Plain>(&self) -> Result<T, Error> {
        let (mut patience, mut polling) = (Patience::until(None, &self.crowd), None);
        loop {
            if let Some(value) = self.receive_hot() {
                return Ok(value);
            }
            if let Some(taken) = self.poll() {
                return self.receive_taken(taken?);
            }
            self.wait(&mut patience, &mut polling)?;
        }
    }

    /// Waits for a message that is any number of plain values.
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive).
    pub fn receive_vec<T: Plain>(&self) -> Result<Vec<T>, Error> {
        Ok(self.retrieve()?.unpack_vec()?)
    }

    /// Waits for a message that is one serde value.
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive).
    #[cfg(feature = "serde")]
    pub fn receive_value<T: serde::de::DeserializeOwned>(&self) -> Result<T, Error> {
        Ok(self.retrieve()?.unpack_value()?)
    }

    /// Waits for a message of a header and a lent buffer, which is read in place and given back when dropped.
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive).
    pub fn receive_lent<H: Plain, T: Plain>(&self) -> Result<(H, Borrowed<T>), Error> {
        let mut incoming = self.retrieve()?;
        Ok((incoming.unpack_express()?, incoming.unpack_lent()?))
    }

    /// Says that this mailbox waits for something from `rank`: if that process dies or leaves, retrieving says so even if
    /// it had never sent anything here.
    pub fn depend_on(&self, rank: Rank) {
        self.core.depend_on(rank);
        if let Some(gone) = self.process.peers.last_gone(rank) {
            self.core.tell_gone(gone);
        }
    }

    pub(crate) fn full_address(&self) -> Address {
        Address {
            process: self.process.id,
            mailbox: self.core.id,
        }
    }

    fn retrieve_until<'m>(&self, deadline: Option<Instant>) -> Result<Incoming<'m>, RetrieveError> {
        self.wait_until(deadline).and_then(|taken| self.open(taken))
    }

    #[inline]
    fn wait_until(&self, deadline: Option<Instant>) -> Result<Taken, RetrieveError> {
        let (mut patience, mut polling) = (Patience::until(deadline, &self.crowd), None);
        loop {
            if let Some(outcome) = self.poll() {
                return outcome;
            }
            self.wait(&mut patience, &mut polling)?;
        }
    }

    /// Waits a little after a look that found nothing.
    #[inline]
    fn wait<'a>(
        &'a self,
        patience: &mut Patience<'_>,
        polling: &mut Option<Polling<'a>>,
    ) -> Result<(), RetrieveError> {
        let step = patience.step(|| self.is_hot_ready());
        match step {
            Step::Again if polling.is_none() => *polling = self.process.start_polling(),
            Step::Sleep(_) => polling.take().into_iter().for_each(Polling::sleep),
            _ => (),
        }
        match step {
            Step::Again => (),
            Step::Expired(waited) => return Err(RetrieveError::TimedOut { waited }),
            // While a peer's lane is full of others' messages, ours to it cannot be told: look again soon.
            Step::Sleep(_) if self.has_untold() => std::thread::sleep(UNTOLD_NAP),
            Step::Sleep(nap) => {
                if let Some(waited) = patience.remarkable() {
                    self.process
                        .remark(waited, "for a message to one of its mailboxes");
                }
                self.process.sleep(
                    nap,
                    |bell| self.core.watch.announce_sleep(bell),
                    || self.is_ready(),
                    || self.core.watch.announce_awake(),
                );
            }
        }
        Ok(())
    }

    /// The value at the place that had the last message, if the next is there and is a short one of just that value. Most
    /// messages of a program that cares for time are.
    #[inline]
    fn receive_hot<T: Plain>(&self) -> Option<T> {
        if self.streak.get() >= TURN {
            return None;
        }
        let mut lanes = self.lanes.borrow_mut();
        let lane = lanes.get_mut(self.hot.get())?;
        let mut value = T::new_zeroed();
        if !lane
            .consumer
            .poll_exact(Flags::SINGLE.0, value.as_mut_bytes())
        {
            return None;
        }
        self.streak.set(self.streak.get() + 1);
        Some(value)
    }

    fn receive_taken<T: Plain>(&self, taken: Taken) -> Result<T, Error> {
        Ok(self.open(taken)?.unpack_express()?)
    }

    fn poll_retrieve<'m>(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Incoming<'m>, RetrieveError>> {
        self.core.watch.announce_awake();
        if let Some(outcome) = self.poll() {
            return Poll::Ready(outcome.and_then(|taken| self.open(taken)));
        }
        if self.process.ensure_reactor().is_err() {
            // No thread for the reactor: ask again at once rather than never.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.core.set_waker(Some(context.waker().clone()));
        self.core.watch.announce_sleep(REACTOR_BELL);
        if self.is_ready() {
            self.core.set_waker(None);
            self.core.watch.announce_awake();
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Looks once at all places a message can come from: the lanes and, as one more place, the queue with the shared lanes
    /// that fill it. Begins where the last message was, unless that place had its turn.
    #[inline]
    fn poll(&self) -> Option<Result<Taken, RetrieveError>> {
        if self.core.has_news() {
            self.take_news();
        }
        let mut lanes = self.lanes.borrow_mut();
        let count = lanes.len();
        let start = if self.streak.get() < TURN {
            self.hot.get()
        } else {
            self.hot.get() + 1
        };
        for step in 0..=count {
            let place = (start + step) % (count + 1);
            if place == count {
                if let Some(outcome) = self.poll_queue(&lanes) {
                    self.note_place(place);
                    return Some(outcome);
                }
                continue;
            }
            let lane = &mut lanes[place];
            // Read before the lane: what the peer sent before it went is there then.
            let ended = lane.link.is_ended() || lane.done.load(Ordering::Acquire);
            let (flags, payload) = match lane.consumer.poll() {
                Ok(Some(Arrival::Short(short))) => {
                    (Flags(short.tag), Payload::Short { short, from: 0 })
                }
                Ok(Some(Arrival::Eager(eager))) => (Flags(eager.tag), Payload::Eager(eager)),
                Ok(None) if !ended => continue,
                other => {
                    let closed = matches!(other, Ok(Some(Arrival::Closed)));
                    let lane = lanes.swap_remove(place);
                    self.core
                        .set_peeks(lanes.iter().map(|lane| lane.consumer.peek()).collect());
                    drop(lanes);
                    self.end_lane(lane, closed, other.is_err());
                    return self.poll();
                }
            };
            self.note_place(place);
            let lender = flags.refers_to_lender().then(|| Arc::clone(&lane.link));
            return Some(Ok(Taken {
                source: lane.link.peer,
                flags,
                payload,
                lender,
            }));
        }
        None
    }

    /// A lane has no more messages: its sender closed it, is gone, or wrote nonsense.
    #[cold]
    fn end_lane(&self, lane: LaneIn, closed: bool, broken: bool) {
        if broken {
            lane.link.cut_off();
        }
        let orderly = closed || lane.done.load(Ordering::Acquire);
        if let Some(gone) = lane
            .link
            .gone()
            .filter(|gone| !orderly && gone.is_failure())
        {
            self.core.tell_gone(gone);
        }
    }

    fn poll_queue(&self, lanes: &[LaneIn]) -> Option<Result<Taken, RetrieveError>> {
        match self.core.next_entry() {
            // The news of a death comes after what its senders' lanes still hold, also those opened a moment ago.
            Some(Entry::Gone(gone))
                if self.core.has_news()
                    || lanes.iter().any(|lane| lane.still_holds_messages_of(gone)) =>
            {
                self.core.requeue(Entry::Gone(gone));
                return None;
            }
            Some(entry) => return Some(take_entry(entry)),
            None => (),
        }
        self.refresh_links();
        for link in self.links.borrow().iter() {
            if let Some(delivery) = self.process.pump_for(link, &self.core) {
                return Some(Ok(delivery.take()));
            }
        }
        self.process.poll_networks();
        // Others' messages may have hidden ours, and networks bring theirs here: they were queued meanwhile.
        self.core.next_entry().map(take_entry)
    }

    #[inline]
    fn note_place(&self, place: usize) {
        let again = self.hot.get() == place && self.streak.get() < TURN;
        self.streak
            .set(if again { self.streak.get() + 1 } else { 0 });
        self.hot.set(place);
    }

    #[inline]
    fn is_hot_ready(&self) -> bool {
        self.lanes
            .borrow()
            .get(self.hot.get())
            .is_some_and(|lane| lane.consumer.is_ready())
    }

    #[inline]
    fn open<'m>(&self, taken: Taken) -> Result<Incoming<'m>, RetrieveError> {
        let rank = taken.source.rank;
        Incoming::open(
            Arc::clone(&self.process),
            taken.source,
            taken.flags,
            taken.payload,
            taken.lender.as_deref(),
        )
        .map_err(|cause| RetrieveError::Malformed { rank, cause })
    }

    fn take_news(&self) {
        let new = self.core.take_new_lanes();
        let mut lanes = self.lanes.borrow_mut();
        lanes.extend(new);
        // The list may have been replaced just when these were opened.
        self.core
            .set_peeks(lanes.iter().map(|lane| lane.consumer.peek()).collect());
    }

    fn refresh_links(&self) {
        if self.links_version.get() != self.process.links_version() {
            let (version, links) = self.process.links();
            self.links_version.set(version);
            *self.links.borrow_mut() = links;
        }
    }

    fn has_untold(&self) -> bool {
        self.links.borrow().iter().any(|link| link.has_untold())
    }

    /// Whether a look would find something.
    fn is_ready(&self) -> bool {
        self.core.queued.load(Ordering::Acquire) > 0
            || self.core.has_news()
            || self.links_version.get() != self.process.links_version()
            || self.lanes.borrow().iter().any(LaneIn::wants_a_look)
            || self.links.borrow().iter().any(|link| link.peek.is_ready())
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        crash::point("mailbox.drop");
        self.core.watch.announce_closed();
        self.core.close();
        self.process.close_mailbox(self.core.id);
        self.take_news();
        // What nobody will read gives back what it borrowed.
        while let Some(entry) = self.core.next_entry() {
            if let Entry::Message(Delivery {
                flags,
                payload,
                lender: Some(lender),
                ..
            }) = entry
            {
                discard(flags, &payload, &lender);
            }
        }
        for lane in self.lanes.get_mut() {
            while let Ok(Some(arrival)) = lane.consumer.poll() {
                let (flags, payload) = match arrival {
                    Arrival::Short(short) => (Flags(short.tag), Payload::Short { short, from: 0 }),
                    Arrival::Eager(eager) => (Flags(eager.tag), Payload::Eager(eager)),
                    Arrival::Closed => break,
                };
                discard(flags, &payload, &lane.link);
            }
        }
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
