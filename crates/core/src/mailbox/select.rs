//! Waiting for several mailboxes at once: one look at each in turn, one sleep for all.

use core::cell::{Cell, RefCell};
use core::fmt;
use core::future::poll_fn;
use core::task::{Context, Poll};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::asynchronous::Awaiting;
use super::look::{Outcome, Reach, Taken};
use super::state::Mailbox;
use super::waiting::{Awaited, Wait};
use crate::error::{Error, RetrieveError};
use crate::incoming::Incoming;
use crate::roll::{Kind, WaitsFor};
use crate::wait::{deadline_in, spin};

/// Waits for the first message of several mailboxes of one process.
///
/// Whichever of them was served longest ago is looked at first, so that a busy mailbox does not keep the others waiting: one that
/// has a message is served within as many retrievals as there are mailboxes. That is remembered by the mailboxes themselves, so it
/// makes no difference whether a `Select` is kept or made anew each time.
///
/// ```
/// mizzen::local(1, |deck| {
///     let (mut orders, mut prices) = (deck.mailbox()?, deck.mailbox()?);
///     let (to_orders, to_prices) = (orders.address(), prices.address());
///     for number in 0..3u64 {
///         to_orders.send(&number)?;
///     }
///     to_prices.send(&0.5f64)?;
///
///     let mut either = mizzen::select([&mut orders, &mut prices]);
///     let (first, _) = either.retrieve()?;
///     let (second, mut incoming) = either.retrieve()?;
///     // The orders that wait do not keep the price from its turn.
///     assert_eq!((first, second), (0, 1));
///     assert_eq!(incoming.unpack_express::<f64>()?, 0.5);
///     Ok(())
/// }).unwrap();
/// ```
pub fn select<'a>(mailboxes: impl IntoIterator<Item = &'a mut Mailbox>) -> Select<'a> {
    let mailboxes: Vec<_> = mailboxes.into_iter().collect();
    let mut order: Vec<usize> = (0..mailboxes.len()).collect();
    order.sort_by_key(|index| mailboxes[*index].served.get());
    Select {
        mailboxes,
        order: RefCell::new(order),
        last: Cell::new(None),
    }
}

/// Several mailboxes that are waited for at once. Made by [`select`].
pub struct Select<'a> {
    mailboxes: Vec<&'a mut Mailbox>,
    /// Which was served longest ago, first.
    order: RefCell<Vec<usize>>,
    last: Cell<Option<usize>>,
}

impl Select<'_> {
    /// Waits for the first message, and says of which mailbox it is: its place among those that were given.
    ///
    /// # Errors
    ///
    /// As [`Mailbox::retrieve`]; [`last`](Self::last) says of which mailbox.
    /// [`RetrieveError::Selection`] if the mailboxes cannot be waited for at once.
    #[track_caller]
    pub fn retrieve<'m>(&mut self) -> Result<(usize, Incoming<'m>), Error> {
        Ok(self.retrieve_until(None)?)
    }

    /// The first message, if there is one now.
    ///
    /// # Errors
    ///
    /// As [`retrieve`](Self::retrieve).
    pub fn try_retrieve<'m>(&mut self) -> Result<Option<(usize, Incoming<'m>)>, Error> {
        self.check()?;
        let found = self.poll_whole(Reach::All, Mailbox::open_whole);
        if found.is_none() {
            self.for_each(Mailbox::arm);
        }
        Ok(found.transpose()?)
    }

    /// Waits for the first message until `deadline`.
    ///
    /// # Errors
    ///
    /// [`RetrieveError::TimedOut`] when it has passed; otherwise as [`retrieve`](Self::retrieve).
    #[track_caller]
    pub fn retrieve_deadline<'m>(
        &mut self,
        deadline: Instant,
    ) -> Result<(usize, Incoming<'m>), Error> {
        Ok(self.retrieve_until(Some(deadline))?)
    }

    /// Waits for the first message for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`retrieve_deadline`](Self::retrieve_deadline).
    #[track_caller]
    pub fn retrieve_timeout<'m>(
        &mut self,
        timeout: Duration,
    ) -> Result<(usize, Incoming<'m>), Error> {
        Ok(self.retrieve_until(deadline_in(timeout))?)
    }

    /// The first message, for async tasks of any runtime. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// As [`retrieve`](Self::retrieve).
    pub async fn retrieve_async<'m>(&mut self) -> Result<(usize, Incoming<'m>), Error> {
        self.check()?;
        let mut awaiting = Awaiting::new(self);
        let retrieve = poll_fn(move |context| {
            awaiting.poll(context, |select, context| select.poll_retrieve(context))
        });
        Ok(retrieve.await?)
    }

    /// Of which mailbox the last message or error was. `None` if it was of none, as a deadline that passes.
    #[must_use]
    pub fn last(&self) -> Option<usize> {
        self.last.get()
    }

    #[track_caller]
    fn retrieve_until<'m>(
        &self,
        deadline: Option<Instant>,
    ) -> Result<(usize, Incoming<'m>), RetrieveError> {
        self.check()?;
        let mut wait = Wait::new(self, deadline);
        wait.for_anybody = deadline.is_none();
        loop {
            if let Some(outcome) = self.poll_whole(wait.reach, Mailbox::open_whole) {
                wait.note_found();
                return outcome;
            }
            spin(wait.patience.quick_looks(), || self.is_likely());
            wait.step()?;
        }
    }

    fn poll_retrieve<'m>(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(usize, Incoming<'m>), RetrieveError>> {
        self.for_each(Mailbox::attend);
        if let Some(outcome) = self.poll_whole(Reach::All, Mailbox::open_for_task) {
            return Poll::Ready(outcome);
        }
        for mailbox in &self.mailboxes {
            mailbox.leave_waker(context.waker(), mailbox.awaits(), || mailbox.is_ready());
        }
        Poll::Pending
    }

    /// Looks once at each.
    fn poll_whole<'m>(
        &self,
        reach: Reach,
        open: impl Fn(&Mailbox, Taken) -> Option<Result<Incoming<'m>, RetrieveError>>,
    ) -> Option<Result<(usize, Incoming<'m>), RetrieveError>> {
        while let Some((index, outcome)) = self.poll(reach) {
            let opened = outcome.map(|taken| open(self.mailboxes[index], taken));
            match opened {
                // No message after all, or not yet.
                Ok(None) => (),
                Ok(Some(opened)) => return Some(opened.map(|incoming| (index, incoming))),
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }

    fn poll(&self, reach: Reach) -> Option<(usize, Outcome)> {
        self.last.set(None);
        let mut order = self.order.borrow_mut();
        let look = |index: &usize| self.mailboxes[*index].poll(reach);
        let (place, outcome) =
            (0..order.len()).find_map(|place| Some((place, look(&order[place])?)))?;
        let index = order.remove(place);
        let latest = order
            .iter()
            .map(|other| self.mailboxes[*other].served.get());
        let served = &self.mailboxes[index].served;
        served.set(latest.max().unwrap_or(0).max(served.get()) + 1);
        order.push(index);
        self.last.set(Some(index));
        Some((index, outcome))
    }

    fn is_likely(&self) -> bool {
        self.mailboxes.iter().any(|mailbox| mailbox.is_likely())
    }

    /// Whether one thread can sleep for all of them.
    fn check(&self) -> Result<(), RetrieveError> {
        let Some((first, others)) = self.mailboxes.split_first() else {
            return Err(RetrieveError::Selection("none was given"));
        };
        // A thread sleeps on a bell of one process; in a local job there are several.
        let bells = &first.process.bells;
        let is_strange = |other: &&mut Mailbox| !Arc::ptr_eq(&other.process.bells, bells);
        if others.iter().any(is_strange) {
            return Err(RetrieveError::Selection("they are of different ranks"));
        }
        Ok(())
    }
}

impl Awaited for Select<'_> {
    fn first(&self) -> &Mailbox {
        self.mailboxes[0]
    }

    fn for_each(&self, each: impl FnMut(&Mailbox)) {
        self.mailboxes
            .iter()
            .map(|mailbox| &**mailbox)
            .for_each(each);
    }

    fn is_ready(&self) -> bool {
        self.mailboxes.iter().any(|mailbox| mailbox.is_ready())
    }

    #[cold]
    fn describe(&self) -> String {
        format!("for a message to one of {} mailboxes", self.mailboxes.len())
    }

    #[cold]
    fn waits_for(&self) -> WaitsFor {
        WaitsFor::some(Kind::Message, vec![], self.describe())
    }
}

impl fmt::Debug for Select<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.mailboxes).finish()
    }
}
