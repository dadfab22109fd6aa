//! Retrieving with a thread that waits, and without waiting.

use core::ops::Range;
use std::time::{Duration, Instant};

use mizzen_lane::SHORT_MAX;

use super::led::Led;
use super::look::{Outcome, Reach, Taken};
use super::state::Mailbox;
use super::waiting::Wait;
use crate::error::{Error, RetrieveError, UnpackError};
use crate::incoming::Incoming;
use crate::memory::{Borrowed, Lease, LoanTicket};
use crate::message::{Flags, Lead, Mark};
use crate::plain::Plain;
use crate::rank::ProcessId;
use crate::wait::{deadline_in, spin};

/// A message taken out of a mailbox for the runtime's own use.
pub enum Next {
    /// A short one of a single piece: so many bytes of the slot.
    Short {
        /// How many.
        len: usize,
        /// Who sent it.
        source: ProcessId,
    },
    /// A buffer that was [handed over](crate::Sender::hand_over), and the header beside it.
    Handed {
        /// Where in the slot the header is.
        header: Range<usize>,
        /// Who sent it.
        source: ProcessId,
        /// The buffer, unless its sender wrote nonsense.
        buffer: Result<Lease, UnpackError>,
    },
    /// One with a lead before it.
    Led(Lead, Led),
    /// Any other.
    Other(Taken),
}

impl Mailbox {
    /// Waits for the next message.
    ///
    /// # Errors
    ///
    /// [`RetrieveError::PeerGone`] once for each process that had sent here and died, or on which this mailbox
    /// [depends](Self::depend_on) and which died or left; everything it sent before has been retrieved then.
    /// [`RetrieveError::NobodyLeft`] if it is certain that nobody can send anything any more.
    #[track_caller]
    pub fn retrieve<'m>(&self) -> Result<Incoming<'m>, Error> {
        Ok(self.retrieve_until(None)?)
    }

    /// The next message, if there is one now.
    ///
    /// # Errors
    ///
    /// As [`retrieve`](Self::retrieve).
    pub fn try_retrieve<'m>(&self) -> Result<Option<Incoming<'m>>, Error> {
        while let Some(taken) = self.poll(Reach::All) {
            if let Some(outcome) = self.open_whole(taken?) {
                return Ok(Some(outcome?));
            }
        }
        self.arm();
        Ok(None)
    }

    /// Waits for the next message until `deadline`.
    ///
    /// # Errors
    ///
    /// [`RetrieveError::TimedOut`] when it has passed; otherwise as [`retrieve`](Self::retrieve).
    #[track_caller]
    pub fn retrieve_deadline<'m>(&self, deadline: Instant) -> Result<Incoming<'m>, Error> {
        Ok(self.retrieve_until(Some(deadline))?)
    }

    /// Waits for the next message for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`retrieve_deadline`](Self::retrieve_deadline).
    #[track_caller]
    pub fn retrieve_timeout<'m>(&self, timeout: Duration) -> Result<Incoming<'m>, Error> {
        Ok(self.retrieve_until(deadline_in(timeout))?)
    }

    /// Waits for a message that is one plain value: what [`send`](crate::MailboxRef::send) sends. A serde value is received with
    /// [`receive_value`](Self::receive_value); neither is accepted as the other.
    ///
    /// In debug builds, numbers and slices and arrays of them also know their type: a `u64` is not received as an `f64`, while
    /// signs do not matter. Bytes (`u8`) and the program's own types match everything of their length, as everything does in
    /// release builds.
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
    #[track_caller]
    pub fn receive<T: Plain>(&self) -> Result<T, Error> {
        // Filled in place: a value that moves just after it was written word by word waits for those writes.
        let mut value = T::new_zeroed();
        let flags = Mark::of::<T>().single();
        if self.take_hot(flags, value.as_mut_bytes()) {
            return Ok(value);
        }
        match self.take_as(flags, value.as_mut_bytes())? {
            None => Ok(value),
            Some(taken) => self.open(taken)?.unpack_express(),
        }
    }

    /// Waits for a message that is plain values, as many as `target` has, and puts them there: the fastest way for more than a few.
    ///
    /// ```
    /// mizzen::local(1, |deck| {
    ///     let inbox = deck.mailbox()?;
    ///     inbox.address().send(&[1.5f64; 100][..])?;
    ///     let mut row = [0.0f64; 100];
    ///     inbox.receive_into(&mut row[..])?;
    ///     assert_eq!(row, [1.5; 100]);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive). After an error, some of `target` may have been written.
    #[track_caller]
    pub fn receive_into<T: Plain + ?Sized>(&self, target: &mut T) -> Result<(), Error> {
        let flags = Mark::of::<T>().single();
        if self.take_hot(flags, target.as_mut_bytes()) {
            return Ok(());
        }
        if let Some(taken) = self.take_as(flags, target.as_mut_bytes())? {
            let mut incoming = self.open(taken)?;
            incoming.unpack_cheaper(target)?;
            incoming.finish()?;
        }
        Ok(())
    }

    /// Waits for a message that is any number of plain values.
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive).
    #[track_caller]
    pub fn receive_vec<T: Plain>(&self) -> Result<Vec<T>, Error> {
        self.retrieve()?.unpack_vec()
    }

    /// Waits for a message that is one serde value.
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive).
    #[track_caller]
    pub fn receive_value<T: serde::de::DeserializeOwned>(&self) -> Result<T, Error> {
        self.retrieve()?.unpack_value()
    }

    /// Waits for a message of a header and a lent buffer, which is read in place and given back when dropped.
    ///
    /// # Errors
    ///
    /// As [`receive`](Self::receive).
    #[track_caller]
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
        let header = H::read_from_bytes(&slot[TICKET..len]);
        let (Some(ticket), Ok(header)) = (slot.first_chunk(), header) else {
            return Err(UnpackError::Malformed.into());
        };
        let held = self.places.borrow(LoanTicket::from_bytes(ticket))?;
        Ok((header, Borrowed::new(held)?))
    }

    #[track_caller]
    fn retrieve_until<'m>(&self, deadline: Option<Instant>) -> Result<Incoming<'m>, RetrieveError> {
        loop {
            let taken = self.wait_until(deadline)?;
            if let Some(outcome) = self.open_whole(taken) {
                return outcome;
            }
        }
    }

    #[track_caller]
    fn wait_until(&self, deadline: Option<Instant>) -> Outcome {
        let mut wait = Wait::new(self, deadline);
        wait.for_anybody = deadline.is_none();
        let mut looks = wait.first_looks();
        loop {
            spin(looks, || self.places.is_hot_ready(&self.core));
            if let Some(outcome) = self.poll(wait.reach) {
                wait.note_found();
                return outcome;
            }
            looks = wait.patience.quick_looks();
            wait.step()?;
        }
    }

    /// Waits for the next message. If it is a short one with these flags and of just that length, at the place of the last
    /// ones, it goes straight into `target`; otherwise it is returned.
    #[inline]
    #[track_caller]
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
            if self.places.take_hot(process, core, flags, target, looks) {
                return Ok(None);
            }
            taken = self.poll(wait.reach);
            looks = wait.patience.quick_looks();
            if taken.is_none() {
                wait.step()?;
            } else {
                wait.note_found();
            }
        }
    }

    /// The same without waiting, and only at that place.
    #[inline(always)]
    fn take_hot(&self, flags: Flags, target: &mut [u8]) -> bool {
        let (process, core) = (&self.process, &self.core);
        self.places.take_hot(process, core, flags, target, 0)
    }

    /// Waits for the next message, which stays unopened. A short one of a single piece, from where the last ones came, is put into
    /// `slot` instead: nothing of it is moved again.
    ///
    /// # Errors
    ///
    /// As [`retrieve_deadline`](Self::retrieve_deadline).
    #[inline]
    #[track_caller]
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
            if let Some(handed) = self.take_handed(slot) {
                return Ok(handed);
            }
            if let Some((lead, led)) = self.places.take_hot_led(0) {
                return Ok(Next::Led(lead, led));
            }
            taken = self.poll(wait.reach);
            looks = wait.patience.quick_looks();
            if taken.is_none() {
                wait.step()?;
            } else {
                wait.note_found();
            }
        }
    }

    /// The next message, if it is a short one of a single piece from where the last ones came, and comes there within so many looks: its
    /// length and who sent it.
    #[inline]
    pub fn take_quickly(
        &self,
        slot: &mut [u8; SHORT_MAX],
        looks: u32,
    ) -> Option<(usize, ProcessId)> {
        self.places.take_hot_short(Flags::SINGLE, slot, looks)
    }

    /// The same for one with a lead before it: the lead, who sent it and what is behind it.
    #[inline]
    pub fn take_led_quickly(&self, looks: u32) -> Option<(Lead, Led)> {
        self.places.take_hot_led(looks)
    }

    /// The next message, if one look at some of the places finds it.
    pub fn try_take(&self, slot: &mut [u8; SHORT_MAX]) -> Option<Result<Next, RetrieveError>> {
        if let Some((len, source)) = self.take_quickly(slot, 0) {
            return Some(Ok(Next::Short { len, source }));
        }
        if let Some(handed) = self.take_handed(slot) {
            return Some(Ok(handed));
        }
        if let Some((lead, led)) = self.places.take_hot_led(0) {
            return Some(Ok(Next::Led(lead, led)));
        }
        Some(self.poll(Reach::Some)?.map(Next::Other))
    }

    /// Takes the next message, if it is a buffer that was handed over at the place of the last ones, and is here.
    #[inline]
    fn take_handed(&self, slot: &mut [u8; SHORT_MAX]) -> Option<Next> {
        let (len, source) = self.places.take_hot_short(Flags::HANDED, slot, 0)?;
        let ticket = slot[..len].first_chunk().ok_or(UnpackError::Malformed);
        let held = ticket.and_then(|ticket| self.places.borrow(LoanTicket::from_bytes(ticket)));
        Some(Next::Handed {
            header: LoanTicket::BYTES.min(len)..len,
            source,
            buffer: held.map(Lease),
        })
    }
}
