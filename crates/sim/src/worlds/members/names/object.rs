//! A name as it would be if one agent alone kept all names and never failed.

use mizzen_proto::id::Address;

use crate::linear::Object;

pub(super) struct OneName;

#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    /// A bind that succeeded, or whose outcome is not known.
    Bind(Address),
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
    type State = Option<Address>;
    type Operation = Operation;

    fn initial() -> Option<Address> {
        None
    }

    fn apply(state: &Option<Address>, operation: &Operation) -> Option<Option<Address>> {
        match *operation {
            Operation::Bind(address) => {
                let theirs = |now: Address| now.process.is_fenced_by(address.process);
                state.is_none_or(theirs).then_some(Some(address))
            }
            Operation::Taken(address) | Operation::Found(address) => {
                (*state == Some(address)).then_some(*state)
            }
            Operation::Unbind(address) => (*state == Some(address)).then_some(None),
            Operation::MayUnbind(address) => Some(state.filter(|now| *now != address)),
            Operation::Free => state.is_none().then_some(None),
        }
    }
}
