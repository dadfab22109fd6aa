//! Groups: members that do something together.
//!
//! A [`Group`] is one member's seat in a group: of all processes of the job ([`Deck::group`]), of some of them ([`Group::split`]), or of threads of several
//! ([`Group::seats`]). All members call the same operations in the same order; each call returns when this member's part is done.
//!
//! ```
//! use mizzen::group::Sum;
//!
//! mizzen::local(4, |deck| {
//!     let mut group = deck.group()?;
//!     let mean = group.all_reduce_value(f64::from(deck.rank().0), Sum)? / f64::from(group.size());
//!     assert_eq!(mean, 1.5);
//!     let mut parameters = [0.0; 3];
//!     if group.member() == 0 {
//!         parameters = [0.5, 1.0, 2.0];
//!     }
//!     group.broadcast(0, &mut parameters)?;
//!     assert_eq!(parameters[2], 2.0);
//!     group.barrier()
//! }).unwrap();
//! ```
//!
//! | file | subject |
//! | --- | --- |
//! | `operations.rs` | what members do together |
//! | `making.rs` | groups of some members, and of threads |
//! | `op.rs`, `parts.rs` | how data are combined; data of which each member has a part |
//! | `run.rs` | carrying a schedule out |
//! | `seat.rs`, `roster.rs` | messages between members; who they are |
//! | `call.rs`, `error.rs` | what a member does, in words; what can go wrong |

mod call;
mod error;
mod making;
mod op;
mod operations;
mod parts;
mod roster;
mod run;
mod seat;

use core::fmt;
use core::panic::Location;
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use mizzen_core::service::{MailboxId, lock, reserved};
use mizzen_core::{Incarnation, Result};
use mizzen_proto::group::cost::{Costs, choose};
use mizzen_proto::group::plan::{Operation, Order, Stage, stages};

pub use self::error::{Doing, GroupError};
pub use self::op::{And, Max, Min, Number, Op, Or, Product, Sum, Xor, commutative, ordered};
pub use self::parts::Parts;
pub use mizzen_proto::group::schedule::Member;

use self::call::Call;
use self::roster::Roster;
use self::seat::Seat;
use crate::deck::{Deck, Kept};

/// A member's seat in a group. It may move to another thread, but not be shared: a member does one thing at a time.
///
/// Errors of operations are [`GroupError`]s ([`Error::service`](crate::Error::service)). After one that is not only about this call, the group is over: for all its members.
pub struct Group {
    seat: Option<Seat>,
    plans: Plans,
    /// Where the seat goes back to.
    home: Option<Weak<Home>>,
}

/// The seats that a process has in the groups of all processes, while nobody uses them.
#[derive(Default)]
pub(crate) struct Home {
    group: Mutex<Option<Seat>>,
    barrier: Mutex<Option<(Seat, Plans)>>,
}

impl Kept for Home {
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
        let home = self.keep(|_| Ok(Home::default()))?;
        let kept = lock(&home.group).take();
        let seat = match kept {
            Some(seat) => seat,
            None => self.seat_among_all(reserved::GROUP)?,
        };
        Ok(Group {
            seat: Some(seat),
            plans: Plans::default(),
            home: Some(Arc::downgrade(&home)),
        })
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
        let home = self.keep(|_| Ok(Home::default()))?;
        let mut barrier = lock(&home.barrier);
        if barrier.is_none() {
            *barrier = Some((self.seat_among_all(reserved::BARRIER)?, Plans::default()));
        }
        match &mut *barrier {
            Some((seat, plans)) => Ok(operations::barrier(seat, plans, call)?),
            None => Ok(()),
        }
    }

    fn seat_among_all(&self, mailbox: MailboxId) -> Result<Seat> {
        if self.incarnation() != Incarnation(0) {
            return Err(GroupError::Late.into());
        }
        let inbox = self.process.take_reserved(mailbox);
        let inbox = inbox.ok_or(GroupError::Taken)?;
        let roster = Roster::everybody(&self.process, &self.topology()?, mailbox);
        let me = Member(self.rank().0);
        Ok(Seat::new(self.process.clone(), inbox, me, roster))
    }
}

impl Group {
    fn new(seat: Seat) -> Self {
        Self {
            seat: Some(seat),
            plans: Plans::default(),
            home: None,
        }
    }

    /// This member's number in the group.
    #[must_use]
    pub fn member(&self) -> Member {
        self.seat.as_ref().map_or(Member(0), |seat| seat.me)
    }

    /// Number of members.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.seat.as_ref().map_or(0, |seat| seat.roster.size())
    }

    /// The process that a member is in. `None` if there is no such member.
    #[must_use]
    pub fn rank_of(&self, member: impl Into<Member>) -> Option<mizzen_core::Rank> {
        let (member, seat) = (member.into(), self.seat.as_ref()?);
        (member.0 < seat.roster.size()).then(|| seat.roster.rank(member))
    }

    /// Ends the group for all members: each gets [`GroupError::Revoked`] in the operation it is in, or in its next one.
    ///
    /// ```
    /// use mizzen::group::GroupError;
    ///
    /// mizzen::local(2, |deck| {
    ///     let mut group = deck.group()?;
    ///     if group.member() == 0 {
    ///         group.revoke();
    ///     } else {
    ///         let error = group.barrier().unwrap_err();
    ///         assert!(matches!(error.service(), Some(GroupError::Revoked { .. })));
    ///     }
    ///     deck.finish()
    /// }).unwrap();
    /// ```
    pub fn revoke(&mut self) {
        if let Some(seat) = &mut self.seat {
            seat.revoke();
        }
    }

    fn parts(&mut self) -> (&mut Seat, &mut Plans) {
        match &mut self.seat {
            Some(seat) => (seat, &mut self.plans),
            None => unreachable!("a group has its seat until it is dropped"),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let home = self.home.as_ref().and_then(Weak::upgrade);
        if let (Some(home), Some(mut seat)) = (home, self.seat.take()) {
            seat.abandon();
            *lock(&home.group) = Some(seat);
        }
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("member", &self.member())
            .field("size", &self.size())
            .finish()
    }
}

/// What was planned before.
#[derive(Default)]
pub(crate) struct Plans(HashMap<(Operation, Order, u32), Arc<[Stage]>>);

impl Plans {
    /// More are not remembered.
    const MOST: usize = 256;

    /// How a member goes about an operation on so many bytes.
    fn stages(
        &mut self,
        seat: &Seat,
        operation: Operation,
        order: Order,
        bytes: usize,
    ) -> Arc<[Stage]> {
        // All members plan for the same length: that of a power of two.
        let magnitude = bytes.max(1).next_power_of_two().trailing_zeros();
        let key = (operation, order, magnitude);
        if let Some(known) = self.0.get(&key) {
            return Arc::clone(known);
        }
        let layout = &seat.roster.layout;
        let way = choose(layout, operation, order, 1 << magnitude, &Costs::default());
        let planned = way.map(|way| stages(layout, seat.me, operation, order, way));
        let planned: Arc<[Stage]> = planned.unwrap_or_default().into();
        if self.0.len() >= Self::MOST {
            self.0.clear();
        }
        self.0.insert(key, Arc::clone(&planned));
        planned
    }
}
