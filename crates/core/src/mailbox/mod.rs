//! The mailbox: the receiving end, with one owner.

mod look;

use core::fmt;
use core::future::poll_fn;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mizzen_lane::SHORT_MAX;
use zerocopy::FromBytes;

pub use self::look::Taken;
use self::look::{Places, Reach};
use crate::address::MailboxRef;
use crate::crash;
use crate::delivery::{Core, Looker};

use crate::bells::REACTOR_BELL;
use crate::endpoint::Endpoint;
use crate::error::{Error, MailboxError, RetrieveError, UnpackError};
use crate::incoming::Incoming;
use crate::memory::{Borrowed, LoanTicket};
use crate::message::{Flags, Mark};
use crate::plain::Plain;
use crate::process::Process;
use crate::progress::{Polling, Progress};
use crate::rank::{Address, ProcessId, Rank};
use crate::threads;
use crate::wait::{Crowd, Patience, Step, deadline_in, spin};
use crate::workers::with_seat;

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
    process: Endpoint,
    core: Arc<Core>,
    places: Places,
    crowd: Crowd,
    /// What the user is told that it waits for, if that takes long.
    awaited: Option<Box<str>>,
}

impl Endpoint {
    /// The mailbox that this process has from the start ([`FIRST_MAILBOX`](crate::service::FIRST_MAILBOX)), once: it has one
    /// owner.
    #[must_use]
    pub fn take_first_mailbox(&self) -> Option<Mailbox> {
        let core = Process::take_first_mailbox(self)?;
        Some(Mailbox::new(self.clone(), core))
    }
}

/// A message taken out of a mailbox for the runtime's own use.
pub enum Next {
    /// A short one of a single piece: so many bytes of the slot.
    Short {
        /// How many.
        len: usize,
        /// Who sent it.
        source: ProcessId,
    },
    /// Any other.
    Other(Taken),
}

/// How long to sleep while credits could not be returned because a lane is full.
const UNTOLD_NAP: Duration = Duration::from_micros(200);

impl Mailbox {
    /// A new mailbox of a process.
    ///
    /// # Errors
    ///
    /// [`MailboxError::TooMany`] if the process has as many as it may.
    pub fn open_in(process: &Endpoint) -> Result<Self, MailboxError> {
        let core = process.mailboxes.open()?;
        Ok(Self::new(process.clone(), core))
    }

    fn new(process: Endpoint, core: Arc<Core>) -> Self {
        Self {
            process,
            core,
            places: Places::new(),
            crowd: Crowd::default(),
            awaited: None,
        }
    }

    /// What the user shall be told that this mailbox waits for, if it takes long.
    pub fn wait_for_what(&mut self, awaited: String) {
        self.awaited = Some(awaited.into());
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
    /// [`RetrieveError::NobodyLeft`] if it is certain that nobody can send anything any more.
    pub fn retrieve<'m>(&self) -> Result<Incoming<'m>, RetrieveError> {
        self.retrieve_until(None)
    }

    /// The next message if there is one now.
    ///
    /// # Errors
    ///
    /// As [`retrieve`](Self::retrieve).
    pub fn try_retrieve<'m>(&self) -> Result<Option<Incoming<'m>>, RetrieveError> {
        while let Some(taken) = self.poll(Reach::All) {
            if let Some(outcome) = self.open_whole(taken?) {
                return outcome.map(Some);
            }
        }
        Ok(None)
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
        self.retrieve_until(deadline_in(timeout))
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

    /// Waits for a message that is one plain value: what [`send`](MailboxRef::send) sends. A serde value is received with
    /// [`receive_value`](Self::receive_value), and neither as the other.
    ///
    /// In debug builds, numbers, and slices and arrays of them, also know which they are: a `u64` is not received as `f64`; signs do not matter.
    /// Bytes (`u8`) and types of the program's own go with everything of their length, as do all in release builds.
    ///
    /// ```
    /// use mizzen::{Error, UnpackError};
    /// mizzen::local(1, |deck| {
    ///     let inbox = deck.mailbox()?;
    ///     inbox.address().send(&7u64)?;
    ///     let mistaken = inbox.receive_value::<String>();
    ///     assert!(matches!(mistaken, Err(Error::Unpack(UnpackError::NotAValue))));
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`retrieve`](Self::retrieve), or if the message is something else.
    #[inline]
    pub fn receive<T: Plain>(&self) -> Result<T, Error> {
        // Filled in place: a value that moves just after it was written word by word waits for those writes.
        let mut value = T::new_zeroed();
        let flags = Mark::of::<T>().single();
        if self.take_hot(flags, value.as_mut_bytes()) {
            return Ok(value);
        }
        match self.take_as(flags, value.as_mut_bytes())? {
            None => Ok(value),
            Some(taken) => Ok(self.open(taken)?.unpack_express()?),
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
    pub fn receive_value<T: serde::de::DeserializeOwned>(&self) -> Result<T, Error> {
        Ok(self.retrieve()?.unpack_value()?)
    }

    /// Waits for a message of a header and a lent buffer, which is read in place and given back when dropped.
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive).
    pub fn receive_lent<H: Plain, T: Plain>(&self) -> Result<(H, Borrowed<T>), Error> {
        const TICKET: usize = LoanTicket::BYTES;
        let mut slot = [0; SHORT_MAX];
        let len = TICKET + size_of::<H>();
        let taken = if len <= slot.len() {
            self.take_as(Flags::HANDED, &mut slot[..len])?
        } else {
            Some(self.wait_until(None)?)
        };
        if let Some(taken) = taken {
            let mut incoming = self.open(taken)?;
            return Ok((incoming.unpack_express()?, incoming.unpack_lent()?));
        }
        let ticket = LoanTicket::read_from_bytes(&slot[..TICKET]);
        let header = H::read_from_bytes(&slot[TICKET..len]);
        let (Ok(ticket), Ok(header)) = (ticket, header) else {
            return Err(UnpackError::Malformed.into());
        };
        let loan = self.places.borrow(ticket)?;
        Ok((header, Borrowed::new(loan)?))
    }

    /// Says that this mailbox waits for something from `rank`: if that process dies or leaves, retrieving says so even if
    /// it had never sent anything here.
    pub fn depend_on(&self, rank: Rank) {
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

    fn retrieve_until<'m>(&self, deadline: Option<Instant>) -> Result<Incoming<'m>, RetrieveError> {
        loop {
            let taken = self.wait_until(deadline)?;
            if let Some(outcome) = self.open_whole(taken) {
                return outcome;
            }
        }
    }

    fn wait_until(&self, deadline: Option<Instant>) -> Result<Taken, RetrieveError> {
        let mut wait = Wait::new(self, deadline);
        wait.for_anybody = deadline.is_none();
        let mut looks = wait.first_looks();
        loop {
            spin(looks, || self.places.is_hot_ready(&self.core));
            if let Some(outcome) = self.poll(wait.reach) {
                if !wait.has_slept {
                    self.crowd.note_in_time();
                }
                return outcome;
            }
            looks = wait.patience.quick_looks();
            wait.step()?;
        }
    }

    /// Waits for the next message. If it is a short one with these flags and of just that length, at the place of the last
    /// ones, it goes straight into `target`; otherwise it is returned.
    #[inline]
    fn take_as(&self, flags: Flags, target: &mut [u8]) -> Result<Option<Taken>, RetrieveError> {
        let (process, core) = (&self.process, &self.core);
        let mut wait = Wait::new(self, None);
        wait.for_anybody = true;
        let mut taken = self.places.end_turn(process, core, wait.reach);
        let mut looks = wait.first_looks();
        loop {
            if let Some(taken) = taken {
                return taken.map(Some);
            }
            if self.places.take_hot(core, flags, target, looks) {
                return Ok(None);
            }
            taken = self.poll(wait.reach);
            looks = wait.patience.quick_looks();
            if taken.is_none() {
                wait.step()?;
            } else if !wait.has_slept {
                self.crowd.note_in_time();
            }
        }
    }

    /// The same without waiting, and only at that place.
    #[inline(always)]
    fn take_hot(&self, flags: Flags, target: &mut [u8]) -> bool {
        self.places.take_hot(&self.core, flags, target, 0)
    }

    #[inline]
    fn poll(&self, reach: Reach) -> Option<Result<Taken, RetrieveError>> {
        self.places.poll(&self.process, &self.core, reach)
    }

    fn poll_retrieve<'m>(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Incoming<'m>, RetrieveError>> {
        loop {
            match self.poll_take(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(taken)) => {
                    if let Some(outcome) = self.open_whole(taken) {
                        return Poll::Ready(outcome);
                    }
                }
            }
        }
    }

    /// The next message, unopened; if there is none, the task is woken when there is.
    pub fn poll_take(&mut self, context: &mut Context<'_>) -> Poll<Result<Taken, RetrieveError>> {
        self.core.clear_waker();
        self.core.watch.announce_awake();
        if let Some(outcome) = self.poll(Reach::All) {
            return Poll::Ready(outcome);
        }
        self.await_message(context.waker());
        Poll::Pending
    }

    /// Has the task woken when there is something. A task of our own workers is woken by the one of them that looks for work;
    /// any other by the reactor.
    fn await_message(&self, waker: &Waker) {
        let core = &self.core;
        let by_crew = with_seat(|seat| {
            // A thread may serve one rank of a local job and call on another.
            let seat = seat.filter(|seat| self.process.has_crew(seat.crew()));
            seat.inspect(|seat| {
                core.set_waker(waker.clone(), Looker::Crew);
                seat.crew().await_mailbox(core);
            })
            .is_some()
        });
        if by_crew {
            return;
        }
        if self.process.ensure_reactor().is_err() {
            // No thread for the reactor: ask again at once rather than never.
            waker.wake_by_ref();
            return;
        }
        core.set_waker(waker.clone(), Looker::Reactor);
        core.watch.announce_sleep(REACTOR_BELL);
        if self.places.is_ready(&self.process, core) {
            core.clear_waker();
            core.watch.announce_awake();
            waker.wake_by_ref();
        }
    }

    /// Waits for the next message, which stays unopened. A short one of a single piece, from where the last ones came, is put into
    /// `slot` instead: nothing of it is moved again.
    ///
    /// # Errors
    ///
    /// As [`retrieve_deadline`](Self::retrieve_deadline).
    #[inline]
    pub fn take(
        &self,
        deadline: Option<Instant>,
        slot: &mut [u8; SHORT_MAX],
    ) -> Result<Next, RetrieveError> {
        let mut wait = Wait::new(self, deadline);
        let reach = wait.reach;
        let mut taken = self.places.end_turn(&self.process, &self.core, reach);
        let mut looks = wait.first_looks();
        loop {
            if let Some(taken) = taken {
                return taken.map(Next::Other);
            }
            if let Some((len, source)) = self.places.take_hot_short(Flags::SINGLE, slot, looks) {
                return Ok(Next::Short { len, source });
            }
            taken = self.poll(wait.reach);
            looks = wait.patience.quick_looks();
            if taken.is_none() {
                wait.step()?;
            } else if !wait.has_slept {
                self.crowd.note_in_time();
            }
        }
    }

    /// The same without waiting: one look at some of the places.
    #[inline]
    pub fn try_take(&self, slot: &mut [u8; SHORT_MAX]) -> Option<Result<Next, RetrieveError>> {
        if let Some((len, source)) = self.places.take_hot_short(Flags::SINGLE, slot, 0) {
            return Some(Ok(Next::Short { len, source }));
        }
        Some(self.poll(Reach::Some)?.map(Next::Other))
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

    /// Whoever sends to this mailbox must raise the bell of this number from now on; without one, nobody needs to be called.
    pub fn set_bell(&self, bell: Option<u32>) {
        match bell {
            Some(bell) => self.core.watch.announce_sleep(bell),
            None => self.core.watch.announce_awake(),
        }
    }

    /// Opens a message. `None`: its sender was lost before even its beginning was there, which is no message; the loss is
    /// reported for itself.
    #[inline]
    fn open_whole<'m>(&self, taken: Taken) -> Option<Result<Incoming<'m>, RetrieveError>> {
        match self.open(taken) {
            Err(RetrieveError::Malformed {
                cause: UnpackError::PeerGone(_) | UnpackError::Retracted,
                ..
            }) => None,
            outcome => Some(outcome),
        }
    }

    /// Opens a message that was taken unopened.
    ///
    /// # Errors
    ///
    /// [`RetrieveError::Malformed`] if its sender broke the format, or was lost before its beginning was there.
    #[inline]
    pub fn open<'m>(&self, taken: Taken) -> Result<Incoming<'m>, RetrieveError> {
        let rank = taken.source.rank;
        Incoming::open(
            Arc::clone(&self.process),
            taken.source,
            taken.flags,
            taken.payload,
            taken.lender.as_ref(),
        )
        .map_err(|cause| RetrieveError::Malformed { rank, cause })
    }
}

impl Mailbox {
    /// What it waits for, after "has waited 10 s".
    #[cold]
    fn awaited(&self) -> String {
        /// More than these say less.
        const NAMED: usize = 3;
        if let Some(awaited) = &self.awaited {
            return awaited.to_string();
        }
        let mut what = "for a message to one of its mailboxes".to_owned();
        let ranks = self.core.dependencies();
        if (1..=NAMED).contains(&ranks.len()) {
            let ranks: Vec<_> = ranks.iter().map(|rank| format!("rank {rank}")).collect();
            what.push_str(", which depends on ");
            what.push_str(&ranks.join(" and "));
        }
        what
    }
}

/// One wait for a message.
struct Wait<'a> {
    mailbox: &'a Mailbox,
    patience: Patience<'a>,
    polling: Option<Polling<'a>>,
    /// How far the next look shall go.
    reach: Reach,
    has_slept: bool,
    /// Whether it lasts until anybody sends something: then it is an error if nobody can.
    for_anybody: bool,
}

impl<'a> Wait<'a> {
    fn new(mailbox: &'a Mailbox, deadline: Option<Instant>) -> Self {
        Self {
            mailbox,
            patience: if mailbox.places.is_network_hot() {
                Patience::on_network(deadline, &mailbox.crowd)
            } else {
                Patience::until(deadline, &mailbox.crowd)
            },
            polling: None,
            reach: Reach::Some,
            has_slept: false,
            for_anybody: false,
        }
    }

    /// How long to stay at the hot place before the first look elsewhere: not at all, unless the last two messages came
    /// there. A full look just when the answer comes would cost more than half of a round trip.
    #[inline]
    fn first_looks(&self) -> u32 {
        if self.mailbox.places.is_hot_likely() {
            self.patience.quick_looks()
        } else {
            0
        }
    }

    /// Waits a little after a look that found nothing.
    fn step(&mut self) -> Result<(), RetrieveError> {
        match self.patience.step() {
            Step::Again => {
                self.reach = Reach::Some;
                if self.polling.is_none() {
                    self.polling = Some(Polling::start(&**self.mailbox.process));
                }
                Ok(())
            }
            Step::Sleep(nap) => {
                if self.for_anybody {
                    self.check_anybody()?;
                }
                self.sleep(nap);
                Ok(())
            }
            // What the looks before had not come to.
            Step::Expired(_) if self.reach == Reach::Some => {
                self.reach = Reach::All;
                Ok(())
            }
            Step::Expired(waited) => Err(RetrieveError::TimedOut { waited }),
        }
    }

    /// An error if nobody can send anything any more.
    #[cold]
    fn check_anybody(&self) -> Result<(), RetrieveError> {
        let Mailbox {
            process,
            core,
            places,
            ..
        } = self.mailbox;
        let Some(gone) = process.others_if_gone() else {
            return Ok(());
        };
        // What came before that is found now: nobody is there to send after it.
        if !threads::is_only_one() || places.is_ready(process, core) {
            return Ok(());
        }
        let others = process.size - 1;
        Err(RetrieveError::NobodyLeft { gone, others })
    }

    #[cold]
    fn sleep(&mut self, nap: Duration) {
        let Mailbox {
            process,
            core,
            places,
            ..
        } = self.mailbox;
        self.reach = Reach::All;
        self.has_slept = true;
        core.clear_waker();
        self.polling.take().into_iter().for_each(Polling::sleep);
        // While a peer's lane is full of others' messages, ours to it cannot be told: look again soon.
        if places.has_untold() {
            std::thread::sleep(UNTOLD_NAP);
            return;
        }
        if let Some(waited) = self.patience.remarkable() {
            process.remark(waited, &self.mailbox.awaited());
        }
        process.bells.sleep(
            nap,
            |bell| core.watch.announce_sleep(bell),
            || places.is_ready(process, core),
            || core.watch.announce_awake(),
        );
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        crash::point("mailbox.drop");
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
