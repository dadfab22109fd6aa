//! Waiting for a posted receive with a thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::exchange::Exchange;
use super::slot::{Slot, Waiter, Whose};
use crate::error::RetrieveError;
use crate::mailbox::lonely::check_anybody;
use crate::mailbox::look::Reach;
use crate::progress::{Polling, Progress};
use crate::roll::{Kind, WaitsFor};
use crate::wait::{Contention, Noted, Patience, Step};

/// How long to sleep while credits could not be returned because a lane is full.
const NOTICES_NAP: Duration = Duration::from_micros(200);

impl Exchange {
    /// Waits until a receive is done. Without a deadline, the thread copies a long message itself.
    pub(super) fn wait(
        &self,
        slot: &Arc<Slot>,
        deadline: Option<Instant>,
    ) -> Result<(), RetrieveError> {
        let contention = Contention::default();
        let mut patience = if self.is_network_hot() {
            Patience::on_network(deadline, &contention)
        } else {
            Patience::until(deadline, &contention)
        };
        let fills = deadline.is_none();
        let mine = fills.then_some(slot);
        let mut polling = None;
        let mut reach = Reach::Some;
        let mut has_slept = false;
        let mut noted = Noted::default();
        loop {
            if !slot.is_done() {
                self.look(mine, reach);
            }
            if slot.is_done() {
                return Ok(());
            }
            if fills && slot.is_matched() {
                // It may sleep until the rest has come: then the networks' own thread must look at them, not this one.
                polling = None;
                if self.fill(slot) {
                    return Ok(());
                }
            }
            match patience.step() {
                Step::Again => {
                    reach = Reach::Some;
                    polling.get_or_insert_with(|| Polling::start(&*self.process));
                }
                Step::Sleep(nap) => {
                    if has_slept && fills && slot.from == Whose::Anybody {
                        let came = || !slot.is_posted() || self.has_anything();
                        check_anybody(&self.process, || patience.waited(), came)?;
                    }
                    polling.take().into_iter().for_each(Polling::sleep);
                    noted.keep(&mut patience, || waits_for(slot));
                    if let Some(waited) = patience.remarkable() {
                        self.process.remark(waited, &describe(slot));
                    }
                    // The first time not for long: then it finds out whether anybody is left.
                    let nap = if has_slept { nap } else { nap.min(FIRST_NAP) };
                    self.sleep(slot, fills, nap);
                    (has_slept, reach) = (true, Reach::All);
                }
                // What the looks before had not come to.
                Step::Expired(_) if reach == Reach::Some => reach = Reach::All,
                Step::Expired(waited) => return Err(RetrieveError::TimedOut { waited }),
            }
        }
    }

    #[cold]
    fn sleep(&self, slot: &Arc<Slot>, fills: bool, nap: Duration) {
        self.core.counts.sleeps.add(1);
        if self.has_unsent_notices() {
            std::thread::sleep(NOTICES_NAP);
            return;
        }
        self.process.standing.watch();
        self.process.bells.sleep(
            nap,
            |bell| self.leave(slot, Waiter::Thread { bell, fills }),
            || slot.is_done() || fills && slot.is_matched(),
            || self.retract(slot),
        );
    }

    fn is_network_hot(&self) -> bool {
        self.with(|inner| {
            let places = inner.places.as_ref();
            places.is_some_and(|places| places.is_network_hot())
        })
    }

    fn has_unsent_notices(&self) -> bool {
        self.with(|inner| {
            let places = inner.places.as_ref();
            places.is_some_and(|places| places.has_unsent_notices())
        })
    }

    fn has_anything(&self) -> bool {
        self.with(|inner| {
            let places = inner.places.as_ref();
            places.is_some_and(|places| places.is_ready(&self.process, &self.core))
        })
    }
}

/// How long a thread that waits for anybody sleeps before it finds out whether anybody is left.
const FIRST_NAP: Duration = Duration::from_millis(5);

#[cold]
fn waits_for(slot: &Slot) -> WaitsFor {
    let whom = match slot.from {
        Whose::Anybody => vec![],
        Whose::Rank(rank, _) => vec![rank],
    };
    WaitsFor::some(Kind::Message, whom, describe(slot))
}

#[cold]
fn describe(slot: &Slot) -> String {
    match slot.from {
        Whose::Anybody => "for the message of a posted receive".to_owned(),
        Whose::Rank(rank, _) => format!("for the message of a posted receive from rank {rank}"),
    }
}
