//! A name as it would be if one process alone kept all names.

use mizzen_proto::id::Address;

use crate::linear::Object;

/// A name: free, or bound to an address.
pub(super) struct OneName;

#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    /// A bind that succeeded, or whose outcome is not known.
    Bind(Address),
    /// A bind that was told who owns the name.
    Taken(Address),
    /// By its owner, or because the owner died. Has no answer.
    Unbind(Address),
    Found(Address),
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
                // A later life of a process takes over what an earlier one had (docs/wire.md §7.4).
                let gives_way = |now: Address| {
                    now == address
                        || now.process != address.process
                            && now.process.is_fenced_by(address.process)
                };
                state.is_none_or(gives_way).then_some(Some(address))
            }
            Operation::Taken(by) => (*state == Some(by)).then_some(*state),
            Operation::Unbind(address) => Some(state.filter(|now| *now != address)),
            Operation::Found(address) => (*state == Some(address)).then_some(*state),
        }
    }
}
