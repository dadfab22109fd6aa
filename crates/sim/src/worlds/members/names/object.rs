//! A name as it would be if one agent alone kept all names and never failed.

use mizzen_proto::id::Address;
use mizzen_proto::registry::Bound;

use crate::linear::Object;

pub(super) struct OneName;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum State {
    Free,
    Bound(Address),
    /// Bound, and who asked for it was not told.
    Untold(Bound),
    /// It was lost with all who kept it. Who asked for it still asks, so nobody is told that the name is free.
    Lost(Address),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    /// A bind that succeeded, or whose outcome is not known.
    Bind(Address),
    /// A bind that others may have seen, and who asked was not told of while one lived who kept it.
    BindUntold(Bound),
    /// All who kept such a bind have ended.
    MayLose(Bound),
    /// A bind by who has this address that was told who owns the name.
    Taken(Address),
    /// It did mean the address.
    Unbind(Address),
    /// It does not mean the address after this, and nobody says whether it did before: the end of an owner, an unbind whose outcome
    /// is not known, or one that was done and asked for again.
    MayUnbind(Address),
    Found(Address),
    Free,
}

impl Object for OneName {
    type State = State;
    type Operation = Operation;

    fn initial() -> State {
        State::Free
    }

    fn apply(state: &State, operation: &Operation) -> Option<State> {
        let means = state.means();
        match *operation {
            Operation::Bind(address) => state.lets_bind(address).then_some(State::Bound(address)),
            Operation::BindUntold(bound) => state
                .lets_bind(bound.address)
                .then_some(State::Untold(bound)),
            Operation::MayLose(bound) if *state == State::Untold(bound) => {
                Some(State::Lost(bound.address))
            }
            Operation::MayLose(_) => Some(*state),
            Operation::Taken(address) | Operation::Found(address) => {
                (means == Some(address)).then_some(*state)
            }
            Operation::Unbind(address) => (means == Some(address)).then_some(State::Free),
            Operation::MayUnbind(address) => {
                let ends = means == Some(address) || *state == State::Lost(address);
                Some(if ends { State::Free } else { *state })
            }
            Operation::Free => (*state == State::Free).then_some(State::Free),
        }
    }
}

impl State {
    fn means(self) -> Option<Address> {
        match self {
            Self::Bound(address) | Self::Untold(Bound { address, .. }) => Some(address),
            Self::Free | Self::Lost(_) => None,
        }
    }

    fn lets_bind(self, address: Address) -> bool {
        let theirs = |now: Address| now.process.is_fenced_by(address.process);
        self.means().is_none_or(theirs)
    }
}

#[cfg(test)]
mod tests {
    use mizzen_proto::id::{Incarnation, MailboxId, ProcessId, Rank};
    use mizzen_proto::membership::Epoch;
    use mizzen_proto::registry::FencingNumber;

    use super::*;

    fn address(rank: u32) -> Address {
        Address {
            process: ProcessId::new(Rank(rank), Incarnation(0)),
            mailbox: MailboxId(1),
        }
    }

    fn bound(rank: u32, counter: u64) -> Bound {
        let epoch = Epoch(1);
        Bound {
            number: FencingNumber { epoch, counter },
            address: address(rank),
        }
    }

    fn can_be(operations: &[Operation]) -> bool {
        let done = |state: State, operation| OneName::apply(&state, operation);
        let end = operations.iter().try_fold(OneName::initial(), done);
        end.is_some()
    }

    const OTHER: u32 = 2;

    #[test]
    fn a_bind_that_was_lost_untold_may_be_overtaken() {
        use Operation::{Bind, BindUntold, Found, MayLose, Taken};
        let seen = [BindUntold(bound(1, 1)), Found(address(1))];
        let overtaken = [Bind(address(OTHER)), Taken(address(OTHER))];
        assert!(!can_be(&[&seen[..], &overtaken].concat()));
        let lost = [MayLose(bound(1, 1))];
        assert!(can_be(&[&seen[..], &lost, &overtaken].concat()));
    }

    #[test]
    fn a_bind_that_was_lost_untold_leaves_nothing_to_see() {
        use Operation::{BindUntold, Found, Free, MayLose, MayUnbind};
        let lost = [BindUntold(bound(1, 1)), MayLose(bound(1, 1))];
        assert!(!can_be(&[&lost[..], &[Found(address(1))]].concat()));
        assert!(!can_be(&[&lost[..], &[Free]].concat()));
        let ended = [MayUnbind(address(1)), Free];
        assert!(can_be(&[&lost[..], &ended].concat()));
    }

    #[test]
    fn a_bind_that_was_told_or_done_again_is_not_lost() {
        use Operation::{Bind, BindUntold, MayLose};
        let overtaken = [MayLose(bound(1, 1)), Bind(address(OTHER))];
        for again in [Bind(address(1)), BindUntold(bound(1, 2))] {
            let done = [BindUntold(bound(1, 1)), again];
            assert!(!can_be(&[&done[..], &overtaken].concat()));
        }
    }
}
