//! What is to be reported, and to whom.

use mizzen_driver::{Event, PeerId};

/// Something to be reported, of one circuit.
pub(super) struct Kept {
    pub(super) peer: PeerId,
    pub(super) circuit: u64,
    pub(super) what: What,
}

pub(super) enum What {
    Connected { dialled: bool },
    Frame(Vec<u8>),
    Event(Event<'static>),
}

/// Where events go, as far as there is a budget.
pub(super) struct Report<'a> {
    pub(super) sink: &'a mut dyn FnMut(Event<'_>),
    pub(super) left: usize,
}
