//! One connection: two ends, and two ways that keep the order of what they carry.

use std::collections::VecDeque;

use mizzen_proto::time::Time;

use crate::ids::{HostId, Place};

/// An end of a connection: the dialler's is 0, the listener's 1. The way from an end has its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Side(pub(crate) u8);

impl Side {
    pub(crate) const DIALLER: Side = Side(0);
    pub(crate) const LISTENER: Side = Side(1);
    pub(crate) const BOTH: [Side; 2] = [Side::DIALLER, Side::LISTENER];

    pub(crate) const fn other(self) -> Side {
        Side(1 - self.0)
    }
}

#[derive(Debug)]
pub(crate) struct Connection<P> {
    ends: [End; 2],
    ways: [Way<P>; 2],
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub(crate) place: Place,
    pub(crate) host: HostId,
    pub(crate) state: EndState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndState {
    /// The dialler waits for an answer, the listener has not heard of it.
    Opening,
    Open,
    /// It was told that the connection is no more, or it closed it, or it does not live any more.
    Gone,
}

/// From one end to the other.
#[derive(Debug)]
pub(crate) struct Way<P> {
    pub(crate) queue: VecDeque<Item<P>>,
    /// When the last of the queue arrives.
    pub(crate) last: Time,
    /// Arrivals that a cut prevented.
    pub(crate) stalled: u32,
    /// Nothing more is taken.
    pub(crate) is_shut: bool,
}

/// What goes along a way.
#[derive(Debug)]
pub(crate) enum Item<P> {
    Open,
    Opened,
    Refused,
    Message(P),
    End,
}

impl<P> Connection<P> {
    pub(crate) fn new(dialler: End, listener: End) -> Self {
        Self {
            ends: [dialler, listener],
            ways: [Way::new(), Way::new()],
        }
    }

    pub(crate) fn end(&self, side: Side) -> &End {
        &self.ends[side.0 as usize]
    }

    pub(crate) fn end_mut(&mut self, side: Side) -> &mut End {
        &mut self.ends[side.0 as usize]
    }

    pub(crate) fn way(&self, from: Side) -> &Way<P> {
        &self.ways[from.0 as usize]
    }

    pub(crate) fn way_mut(&mut self, from: Side) -> &mut Way<P> {
        &mut self.ways[from.0 as usize]
    }

    /// The side of a place that has not left the connection.
    pub(crate) fn side_of(&self, place: Place) -> Option<Side> {
        let mut sides = Side::BOTH.into_iter();
        sides.find(|side| {
            let end = self.end(*side);
            end.place == place && end.state != EndState::Gone
        })
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ends.iter().all(|end| end.state == EndState::Gone)
    }
}

impl<P> Way<P> {
    fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            last: Time(0),
            stalled: 0,
            is_shut: false,
        }
    }

    /// Loses all but the first `kept` of what is under way, and takes nothing more.
    pub(crate) fn shut(&mut self, kept: usize) -> usize {
        let lost = self.queue.len().saturating_sub(kept);
        self.queue.truncate(kept);
        self.is_shut = true;
        lost
    }
}
