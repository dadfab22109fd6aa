//! One wait for a message: looking, and sleeping with all watches on the same bell.

use core::panic::Location;
use std::time::{Duration, Instant};

use super::lonely::check_anybody;
use super::look::Reach;
use super::state::Mailbox;
use crate::error::RetrieveError;
use crate::process::Process;
use crate::progress::{Polling, Progress};
use crate::roll::{Kind, WaitsFor};
use crate::wait::{Noted, Patience, Step};

/// How long to sleep while credits could not be returned because a lane is full.
const NOTICES_NAP: Duration = Duration::from_micros(200);
/// How long a thread that waits for anybody sleeps before it finds out whether anybody is left.
const FIRST_NAP: Duration = Duration::from_millis(5);

/// What a thread waits for: something in one mailbox, or in one of several of the same process.
pub(super) trait Awaited {
    /// The first of the mailboxes.
    fn first(&self) -> &Mailbox;

    /// Calls `each` with each of the mailboxes.
    fn for_each(&self, each: impl FnMut(&Mailbox));

    /// Whether a look at everything would find something.
    fn is_ready(&self) -> bool;

    /// What the user is told, after "has waited 10 s".
    fn describe(&self) -> String;

    /// What is waited for, and of whom.
    fn waits_for(&self) -> WaitsFor;
}

impl Awaited for Mailbox {
    fn first(&self) -> &Mailbox {
        self
    }

    fn for_each(&self, mut each: impl FnMut(&Mailbox)) {
        each(self);
    }

    fn is_ready(&self) -> bool {
        self.places.is_ready(&self.process, &self.core)
    }

    #[cold]
    fn describe(&self) -> String {
        /// More than these say less.
        const NAMED: usize = 3;
        if let Some(awaited) = &self.awaited {
            return awaited.what.clone();
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

    #[cold]
    fn waits_for(&self) -> WaitsFor {
        let (kind, whom) = match &self.awaited {
            Some(awaited) => (awaited.kind, awaited.whom.clone()),
            None => (Kind::Message, self.core.dependencies()),
        };
        WaitsFor::some(kind, whom, self.describe())
    }
}

impl Mailbox {
    /// Has the launcher tell the user that the owner of this mailbox has waited so long, and for what.
    pub fn tell_waited(&self, waited: Duration) {
        self.process.remark(waited, &self.describe());
    }
}

/// One wait for a message.
pub(super) struct Wait<'a, A> {
    awaited: &'a A,
    pub(super) patience: Patience<'a>,
    polling: Option<Polling<'a>>,
    /// How far the next look shall go.
    pub(super) reach: Reach,
    pub(super) has_slept: bool,
    /// Whether it lasts until anybody sends something: then it is an error if nobody can.
    pub(super) for_anybody: bool,
    noted: Noted,
}

impl<'a, A: Awaited> Wait<'a, A> {
    #[inline]
    pub(super) fn new(awaited: &'a A, deadline: Option<Instant>) -> Self {
        let Mailbox {
            places, contention, ..
        } = awaited.first();
        Self {
            awaited,
            patience: if places.is_network_hot() {
                Patience::on_network(deadline, contention)
            } else {
                Patience::until(deadline, contention)
            },
            polling: None,
            reach: Reach::Some,
            has_slept: false,
            for_anybody: false,
            noted: Noted::default(),
        }
    }

    /// How long to stay at the hot place before the first look elsewhere: not at all, unless the last two messages came
    /// there. A full look just when the answer comes would cost more than half of a round trip.
    #[inline]
    pub(super) fn first_looks(&self) -> u32 {
        if self.awaited.first().places.is_hot_likely() {
            self.patience.quick_looks()
        } else {
            0
        }
    }

    /// Something was found.
    #[inline]
    pub(super) fn note_found(&self) {
        if !self.has_slept {
            self.awaited.first().contention.note_in_time();
        }
    }

    /// Waits a little after a look that found nothing.
    #[track_caller]
    pub(super) fn step(&mut self) -> Result<(), RetrieveError> {
        match self.patience.step() {
            Step::Again => {
                self.reach = Reach::Some;
                if self.polling.is_none() {
                    self.polling = Some(Polling::start(self.process()));
                }
                Ok(())
            }
            Step::Sleep(nap) => {
                // Most waits are over soon, and to find out whether anybody is left takes longer than to wake up.
                if self.for_anybody && !self.has_slept {
                    self.sleep(nap.min(FIRST_NAP));
                    return Ok(());
                }
                if self.for_anybody {
                    let awaited = self.awaited;
                    let waited = || self.patience.waited();
                    check_anybody(&awaited.first().process, waited, || awaited.is_ready())?;
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

    fn process(&self) -> &'a Process {
        &self.awaited.first().process
    }

    #[cold]
    #[track_caller]
    fn sleep(&mut self, nap: Duration) {
        let (process, awaited) = (self.process(), self.awaited);
        self.reach = Reach::All;
        self.has_slept = true;
        let mut is_untold = false;
        awaited.for_each(|mailbox| {
            mailbox.attend();
            mailbox.core.counts.sleeps.add(1);
            is_untold |= mailbox.places.has_unsent_notices();
        });
        self.polling.take().into_iter().for_each(Polling::sleep);
        // While a peer's lane is full of others' messages, ours to it cannot be told: look again soon.
        if is_untold {
            std::thread::sleep(NOTICES_NAP);
            return;
        }
        let at = Location::caller();
        let what = || awaited.waits_for().called_from(at);
        self.noted.keep(&mut self.patience, what);
        if let Some(waited) = self.patience.remarkable() {
            process.remark(waited, &awaited.describe());
        }
        // The peer for which this thread waits may be waiting for a receive that was posted.
        process.standing.watch();
        process.bells.sleep(
            nap,
            |bell| awaited.for_each(|mailbox| mailbox.set_bell(Some(bell))),
            || awaited.is_ready(),
            || awaited.for_each(|mailbox| mailbox.set_bell(None)),
        );
        self.patience.note_woken();
    }
}
