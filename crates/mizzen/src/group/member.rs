//! What the program holds of a group.

use core::fmt;
use std::sync::{Mutex, Weak};

use mizzen_core::Rank;
use mizzen_core::service::lock;
use mizzen_proto::group::schedule::Member;

use super::plans::Plans;
use super::seat::Seat;

/// A member's seat in a group. It may move to another thread, but not be shared: a member does one thing at a time.
///
/// Errors of operations are [`GroupError`](crate::GroupError)s ([`Error::service`](crate::Error::service)). After one, the group is over: for all its members.
pub struct Group {
    seat: Option<Seat>,
    plans: Plans,
    /// Where the seat goes back to.
    home: Option<Weak<Home>>,
}

/// Where the seat in the group of all processes is, while nobody uses it.
pub(super) type Home = Mutex<Option<Seat>>;

impl Group {
    pub(super) fn new(seat: Seat, home: Option<Weak<Home>>) -> Self {
        Self {
            seat: Some(seat),
            plans: Plans::default(),
            home,
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
    pub fn rank_of(&self, member: impl Into<Member>) -> Option<Rank> {
        let (member, seat) = (member.into(), self.seat.as_ref()?);
        (member.0 < seat.roster.size()).then(|| seat.roster.rank(member))
    }

    /// Ends the group for all members: each gets [`GroupError::Revoked`](crate::GroupError::Revoked) in the operation it is in, or in its next one.
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

    pub(super) fn seat(&self) -> Option<&Seat> {
        self.seat.as_ref()
    }

    pub(super) fn parts(&mut self) -> (&mut Seat, &mut Plans) {
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
            *lock(&home) = Some(seat);
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
