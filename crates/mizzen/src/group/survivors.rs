//! What members do when some of them are gone: they agree on something, find out how far all have come, and go on as a smaller group. All survivors get the same
//! answer, although more of them may die meanwhile.

use core::panic::Location;

use mizzen_core::Result;
use mizzen_core::service::{Noted, SlateNumber};
use mizzen_proto::group::plan::Operation;
use mizzen_proto::group::schedule::Member;

use super::agreements::{Answer, Proposal};
use super::call::Call;
use super::error::{Doing, GroupError};
use super::member::Group;
use super::roster::{Listed, Record, Roster};
use super::seat::{LONG, Seat, Waiting};

/// How far all survivors of a group have come.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settled {
    /// How many operations all of them have done, as [`Group::done`] counts them. Some may have done more: of what needs nothing of those that are behind, as a root's broadcast.
    pub done: u64,
    /// Who is gone, in order.
    pub lost: Vec<Member>,
}

impl Group {
    /// How many operations this member has done in the group, since it was made: agreements do not count.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.seat().map_or(0, Seat::done)
    }

    /// The flags that all survivors have set, of the 64 of each. The group may have lost members, or been ended otherwise: all that are left get the same answer.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     let mut group = deck.group()?;
    ///     let has_converged = true;
    ///     let has_space = deck.rank() != 1;
    ///     let flags = group.agree(u64::from(has_converged) | u64::from(has_space) << 1)?;
    ///     assert_eq!(flags, 1, "all have converged, not all have space");
    ///     deck.finish()
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError::Differs`] if another member calls [`settle`](Self::settle) or [`shrink`](Self::shrink) instead.
    #[track_caller]
    pub fn agree(&mut self, flags: u64) -> Result<u64> {
        let call = Call::new("agree", Operation::Barrier, Location::caller());
        let (seat, _) = self.parts();
        Ok(seat.agree(call, flags, [0; 3])?.flags)
    }

    /// How far all survivors have come. When a member dies, an operation may be done at some and fail at others: this tells how many all have done, the same at
    /// all.
    ///
    /// ```
    /// mizzen::local(3, |deck| {
    ///     let mut group = deck.group()?;
    ///     group.barrier()?;
    ///     group.barrier()?;
    ///     let settled = group.settle()?;
    ///     assert_eq!((settled.done, settled.lost.len()), (2, 0));
    ///     deck.finish()
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`agree`](Self::agree).
    #[track_caller]
    pub fn settle(&mut self) -> Result<Settled> {
        let call = Call::new("settle", Operation::Barrier, Location::caller());
        let (seat, _) = self.parts();
        let answer = seat.agree(call, 0, [0; 3])?;
        let is_lost = |member: &Member| !answer.survivors.iter().any(|(of, _)| of == member);
        Ok(Settled {
            done: answer.done,
            lost: seat.roster.members().filter(is_lost).collect(),
        })
    }

    /// The group of all survivors, in their order, whatever has ended this one. If one more has died meanwhile, the first operation of the new group says so.
    ///
    /// ```
    /// use mizzen::group::Sum;
    ///
    /// mizzen::local(3, |deck| {
    ///     let mut group = deck.group()?;
    ///     if deck.rank() == 2 {
    ///         return Ok(()); // It leaves early.
    ///     }
    ///     assert!(group.barrier().is_err());
    ///     let mut group = group.shrink()?;
    ///     assert_eq!(group.all_reduce_value(1, Sum)?, 2);
    ///     deck.finish()
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`agree`](Self::agree); or if the process has no room for another mailbox.
    #[track_caller]
    pub fn shrink(mut self) -> Result<Self> {
        let call = Call::new("shrink", Operation::Barrier, Location::caller());
        let (seat, _) = self.parts();
        // It is there before anybody knows of it.
        let inbox = seat.inbox.open_beside()?;
        let slate = SlateNumber::take(&seat.process);
        let record = Listed::record(&inbox, slate.as_ref());
        let answer = seat.agree(call, 0, record)?;
        let survivors = answer.survivors.iter();
        let listed =
            |(member, record): &(Member, Record)| Listed::told(&seat.roster, *member, record);
        let listed: Vec<Listed> = survivors.clone().map(listed).collect();
        let me = survivors.clone().position(|(member, _)| *member == seat.me);
        let Some(me) = me else {
            // Others take it for lost.
            return Err(seat
                .break_off("the others have gone on without this member".to_owned())
                .into());
        };
        let (me, roster) = (Member(me as u32), Roster::listed(listed));
        let seat = Seat::new(seat.process.clone(), inbox, slate, me, roster);
        Ok(Self::new(seat, None))
    }
}

impl Seat {
    /// Comes to an agreement with all members that are left.
    fn agree(&mut self, call: Call, flags: u64, record: Record) -> Result<Answer, GroupError> {
        // Something else may have ended the group: that is no reason not to agree.
        let _ = self.begin(call);
        let proposal = Proposal {
            name: call.name.to_owned(),
            call: call.to_string(),
            flags,
            done: self.done(),
            record,
        };
        let number = self.propose(proposal);
        let answer = self.await_answer(number);
        self.end(false);
        let answer = answer?;
        match answer.differ {
            None => Ok(answer),
            Some([first, second]) => {
                let doing = |(member, call)| Doing {
                    member,
                    call: Some(call),
                };
                let (first, second) = (doing(first), doing(second));
                Err(GroupError::Differs { first, second })
            }
        }
    }

    fn await_answer(&mut self, number: u64) -> Result<Answer, GroupError> {
        let (mut waiting, mut noted) = (Waiting::default(), Noted::default());
        loop {
            if let Some(answer) = self.agreements.answer(number) {
                return Ok(answer.clone());
            }
            if !self.take_part()? {
                waiting.nap();
            }
            if let Some(times) = waiting.lasts() {
                // Who of them has left the group?
                for member in self.agreements.awaited(number) {
                    self.ask_once_more(member, times);
                    noted.keep_after(LONG * times, || self.waits_for(member));
                }
            }
        }
    }
}
