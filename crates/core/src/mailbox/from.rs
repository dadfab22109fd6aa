//! Retrieving what one rank sent. What others sent stays where it is: in their lanes, and in the queue.

use core::cell::Cell;
use core::future::poll_fn;
use core::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::asynchronous::Awaiting;
use super::look::{Outcome, Reach};
use super::state::Mailbox;
use super::waiting::{Awaited, Wait};
use crate::delivery::{Searched, Wanted, What};
use crate::error::{Error, Gone, RetrieveError};
use crate::incoming::Incoming;
use crate::rank::{ProcessId, Rank};
use crate::roll::{Kind, WaitsFor};
use crate::wait::{deadline_in, spin};

impl Mailbox {
    /// Waits for the next message of `rank`. Messages of others stay where they are, in their order, for the next
    /// [`retrieve`](Self::retrieve); their senders get no credit for them before.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     if deck.rank() == 0 {
    ///         let inbox = deck.mailbox()?;
    ///         deck.bind("reports", &inbox)?;
    ///         // In the order of ranks, whoever is first.
    ///         for rank in 1..3u32 {
    ///             assert_eq!(inbox.retrieve_from(rank)?.unpack_express::<u32>()?, 10 * rank);
    ///         }
    ///     } else {
    ///         deck.fetch("reports")?.send(&(10 * deck.rank().0))?;
    ///     }
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`RetrieveError::PeerGone`] if `rank` died or left and everything it sent here has been retrieved, whether or not this
    /// mailbox [depends](Self::depend_on) on it, and as often as it is asked. [`RetrieveError::NoSuchRank`] if the job has no
    /// such rank. Otherwise as [`retrieve`](Self::retrieve); but the loss of other ranks is told there, not here.
    #[track_caller]
    pub fn retrieve_from<'m>(&self, rank: impl Into<Rank>) -> Result<Incoming<'m>, Error> {
        Ok(self.retrieve_from_until(rank.into(), None)?)
    }

    /// The next message of `rank`, if there is one now.
    ///
    /// # Errors
    ///
    /// As [`retrieve_from`](Self::retrieve_from).
    pub fn try_retrieve_from<'m>(
        &self,
        rank: impl Into<Rank>,
    ) -> Result<Option<Incoming<'m>>, Error> {
        let of_rank = OfRank::new(self, rank.into())?;
        while let Some(taken) = of_rank.poll(Reach::All) {
            if let Some(outcome) = self.open_whole(taken?) {
                return Ok(Some(outcome?));
            }
        }
        Ok(None)
    }

    /// Waits for the next message of `rank` until `deadline`.
    ///
    /// # Errors
    ///
    /// [`RetrieveError::TimedOut`] when it has passed; otherwise as [`retrieve_from`](Self::retrieve_from).
    #[track_caller]
    pub fn retrieve_from_deadline<'m>(
        &self,
        rank: impl Into<Rank>,
        deadline: Instant,
    ) -> Result<Incoming<'m>, Error> {
        Ok(self.retrieve_from_until(rank.into(), Some(deadline))?)
    }

    /// Waits for the next message of `rank` for at most `timeout`.
    ///
    /// # Errors
    ///
    /// As [`retrieve_from_deadline`](Self::retrieve_from_deadline).
    #[track_caller]
    pub fn retrieve_from_timeout<'m>(
        &self,
        rank: impl Into<Rank>,
        timeout: Duration,
    ) -> Result<Incoming<'m>, Error> {
        Ok(self.retrieve_from_until(rank.into(), deadline_in(timeout))?)
    }

    /// The next message of `rank`, for async tasks of any runtime. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// As [`retrieve_from`](Self::retrieve_from).
    pub async fn retrieve_from_async<'m>(
        &mut self,
        rank: impl Into<Rank>,
    ) -> Result<Incoming<'m>, Error> {
        let mut search = Search::new(self, rank.into())?;
        let mut awaiting = Awaiting::new(self);
        let retrieve = poll_fn(move |context| {
            awaiting.poll(context, |mailbox, context| {
                let of_rank = OfRank::of(mailbox, search);
                let outcome = of_rank.poll_retrieve(context);
                search = of_rank.search.get();
                outcome
            })
        });
        Ok(retrieve.await?)
    }

    #[track_caller]
    fn retrieve_from_until<'m>(
        &self,
        rank: Rank,
        deadline: Option<Instant>,
    ) -> Result<Incoming<'m>, RetrieveError> {
        let of_rank = OfRank::new(self, rank)?;
        loop {
            let taken = of_rank.wait_until(deadline)?;
            if let Some(outcome) = self.open_whole(taken) {
                return outcome;
            }
        }
    }
}

/// A search for what one rank sends.
#[derive(Clone, Copy)]
struct Search {
    wanted: Wanted,
    /// How far it has come in the queue.
    searched: Searched,
    /// The life of the rank that was over when the search began. That of a later one ends the search, even if yet another
    /// begins.
    over: Option<ProcessId>,
}

impl Search {
    fn new(mailbox: &Mailbox, rank: Rank) -> Result<Self, RetrieveError> {
        let process = &mailbox.process;
        let size = process.size;
        if rank.0 >= size {
            return Err(RetrieveError::NoSuchRank { rank, size });
        }
        Ok(Self {
            wanted: Wanted {
                rank,
                failed: None,
                on_network: None,
            },
            searched: Searched::default(),
            over: process.peers.latest_gone(rank).map(|gone| gone.process()),
        })
    }
}

/// What one rank sends to a mailbox.
struct OfRank<'a> {
    mailbox: &'a Mailbox,
    search: Cell<Search>,
}

impl<'a> OfRank<'a> {
    fn new(mailbox: &'a Mailbox, rank: Rank) -> Result<Self, RetrieveError> {
        Ok(Self::of(mailbox, Search::new(mailbox, rank)?))
    }

    fn of(mailbox: &'a Mailbox, search: Search) -> Self {
        let search = Cell::new(search);
        Self { mailbox, search }
    }

    #[track_caller]
    fn wait_until(&self, deadline: Option<Instant>) -> Outcome {
        let mut wait = Wait::new(self, deadline);
        wait.for_anybody = deadline.is_none();
        loop {
            if let Some(outcome) = self.poll(wait.reach) {
                wait.note_found();
                return outcome;
            }
            spin(wait.patience.quick_looks(), || self.is_ready());
            wait.step()?;
        }
    }

    fn poll_retrieve<'m>(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Incoming<'m>, RetrieveError>> {
        let mailbox = self.mailbox;
        mailbox.attend();
        while let Some(taken) = self.poll(Reach::All) {
            let opened = taken.map(|taken| mailbox.open_for_task(taken));
            match opened {
                Ok(None) => (),
                Ok(Some(outcome)) => return Poll::Ready(outcome),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        let Search {
            wanted, searched, ..
        } = self.refresh();
        let what = if mailbox.places.is_holding(Some(wanted.rank)) {
            What::News
        } else {
            What::Of(wanted, searched)
        };
        mailbox.leave_waker(context.waker(), what, || self.is_ready());
        Poll::Pending
    }

    /// Looks once.
    fn poll(&self, reach: Reach) -> Option<Outcome> {
        // Read before the look: what the rank sent before it went is found then.
        let gone = self.gone();
        let reach = if gone.is_some() { Reach::All } else { reach };
        if let Some(found) = self.look(reach) {
            return Some(found);
        }
        let gone = gone?;
        // Another thread may be taking its last messages out of the lane, or a worker may be opening one.
        let rank = self.search.get().wanted.rank;
        if self.is_ready() || self.mailbox.places.is_holding(Some(rank)) {
            return None;
        }
        // If it was told, that may be just now: whoever retrieves next shall not find the news again.
        if !self.mailbox.core.note_told(gone) {
            if let Some(found) = self.look(reach) {
                return Some(found);
            }
        }
        Some(Err(RetrieveError::PeerGone(gone)))
    }

    fn look(&self, reach: Reach) -> Option<Outcome> {
        let Mailbox {
            process,
            core,
            places,
            ..
        } = self.mailbox;
        let mut search = self.refresh();
        let found = places.poll_of(process, core, search.wanted, &mut search.searched, reach);
        self.search.set(search);
        found
    }

    /// How the rank went, if no life of it is there or coming, or one has ended since the search began.
    fn gone(&self) -> Option<Gone> {
        let Search { wanted, over, .. } = self.refresh();
        let peers = &self.mailbox.process.peers;
        let gone = peers.latest_gone(wanted.rank)?;
        let is_over = over != Some(gone.process()) || peers.is_gone(wanted.rank);
        (is_over && wanted.on_network != Some(gone.process())).then_some(gone)
    }

    /// The search as it is now. News that was passed over may have become due.
    fn refresh(&self) -> Search {
        let process = &self.mailbox.process;
        let mut search = self.search.get();
        let wanted = Wanted {
            rank: search.wanted.rank,
            failed: process.mailboxes.failed(),
            on_network: process.on_network(search.wanted.rank),
        };
        if wanted != search.wanted {
            search.wanted = wanted;
            search.searched = Searched::default();
            self.search.set(search);
        }
        search
    }
}

impl Awaited for OfRank<'_> {
    fn first(&self) -> &Mailbox {
        self.mailbox
    }

    fn for_each(&self, mut each: impl FnMut(&Mailbox)) {
        each(self.mailbox);
    }

    fn is_ready(&self) -> bool {
        let Mailbox {
            process,
            core,
            places,
            ..
        } = self.mailbox;
        let mut search = self.refresh();
        let is_ready = places.is_ready_of(process, core, search.wanted, &mut search.searched);
        self.search.set(search);
        is_ready
    }

    #[cold]
    fn describe(&self) -> String {
        let rank = self.search.get().wanted.rank;
        format!("for a message of rank {rank} to one of its mailboxes")
    }

    #[cold]
    fn waits_for(&self) -> WaitsFor {
        let rank = self.search.get().wanted.rank;
        WaitsFor::one(Kind::Message, rank, self.describe())
    }
}

impl<A: Awaited> Awaited for &mut A {
    fn first(&self) -> &Mailbox {
        (**self).first()
    }

    fn for_each(&self, each: impl FnMut(&Mailbox)) {
        (**self).for_each(each);
    }

    fn is_ready(&self) -> bool {
        (**self).is_ready()
    }

    fn describe(&self) -> String {
        (**self).describe()
    }

    fn waits_for(&self) -> WaitsFor {
        (**self).waits_for()
    }
}
