//! The group and the barrier of all processes, which need no names.

use core::panic::Location;
use std::any::Any;
use std::sync::{Arc, Mutex};

use mizzen_core::service::{MailboxId, SlateUse, lock, reserved};
use mizzen_core::{Incarnation, Result};
use mizzen_proto::group::plan::Operation;
use mizzen_proto::group::schedule::Member;

use super::call::Call;
use super::error::GroupError;
use super::member::{Group, Home};
use super::plans::Plans;
use super::roster::Roster;
use super::seat::Seat;
use super::under_way;
use crate::deck::{Deck, Kept};

/// The seats that a process has among all processes.
#[derive(Default)]
struct Seats {
    group: Arc<Home>,
    barrier: Mutex<Option<(Seat, Plans)>>,
}

impl Kept for Seats {
    fn close(&self) {
        *lock(&self.group) = None;
        *lock(&self.barrier) = None;
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Deck {
    /// This process's seat in the group of all processes of the job, whose members have the numbers of their ranks. It has one seat there; when that is dropped, it may be
    /// asked for again.
    ///
    /// No name is looked up, and nobody is waited for.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     let mut group = deck.group()?;
    ///     assert_eq!((group.member().0, group.size()), (deck.rank().0, 3));
    ///     let ranks = group.all_gather(&[deck.rank().0])?;
    ///     assert_eq!(ranks.all(), [0, 1, 2]);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError::Taken`] if the process uses it already, [`GroupError::Late`] if it was started again.
    pub fn group(&self) -> Result<Group> {
        let seats = self.keep(|_| Ok(Seats::default()))?;
        let kept = lock(&seats.group).take();
        let seat = match kept {
            Some(seat) => seat,
            None => self.seat_among_all(reserved::GROUP, reserved::GROUP_SLATE)?,
        };
        Ok(Group::new(seat, Some(Arc::downgrade(&seats.group))))
    }

    /// Waits until all processes of the job have called it. One thread of each.
    ///
    /// ```
    /// mizzen::local(4, |deck| {
    ///     deck.barrier()?;
    ///     // Everybody has come.
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError::Lost`] if one is gone.
    #[track_caller]
    pub fn barrier(&self) -> Result<()> {
        let call = Call::new(
            "barrier of all processes",
            Operation::Barrier,
            Location::caller(),
        );
        let seats = self.keep(|_| Ok(Seats::default()))?;
        let mut barrier = lock(&seats.barrier);
        if barrier.is_none() {
            let seat = self.seat_among_all(reserved::BARRIER, reserved::BARRIER_SLATE)?;
            *barrier = Some((seat, Plans::default()));
        }
        match &mut *barrier {
            Some((seat, plans)) => Ok(under_way::barrier(seat, plans, call)?),
            None => Ok(()),
        }
    }

    fn seat_among_all(&self, mailbox: MailboxId, slate: SlateUse) -> Result<Seat> {
        if self.incarnation() != Incarnation(0) {
            return Err(GroupError::Late.into());
        }
        let inbox = self.process.take_reserved(mailbox);
        let inbox = inbox.ok_or(GroupError::Taken)?;
        let roster = Roster::everybody(&self.process, &self.topology()?, mailbox, slate);
        let me = Member(self.rank().0);
        Ok(Seat::new(self.process.clone(), inbox, None, me, roster))
    }
}
