//! An open link: a connection and its two halves.

use std::net::SocketAddr;

use mizzen_driver::{Event, LossReason, PeerId, Way};

use crate::poller::Ready;
use crate::receive::{Pool, ReceiveHalf, Received};
use crate::send::{Flushed, SendHalf};
use crate::wire::Wire;

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) peer: PeerId,
    pub(crate) wire: Wire,
    /// Where it was dialled from, if it was not by us. A socket that was lost has forgotten it.
    pub(crate) from: Option<SocketAddr>,
    pub(crate) sender: SendHalf,
    pub(crate) receiver: ReceiveHalf,
    /// The peer's, when it agreed to this link.
    pub(crate) serial: u64,
    /// Whether the caller knows of this link.
    pub(crate) is_reported: bool,
    /// Whether it waits for its turn.
    pub(crate) is_queued: bool,
    /// Whether its pulse is taken.
    pub(crate) is_watched: bool,
}

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Done,
    More,
    Lost(LossReason),
}

impl Connection {
    pub(crate) fn new(wire: Wire, peer: PeerId, serial: u64, from: Option<SocketAddr>) -> Self {
        Self {
            peer,
            wire,
            from,
            sender: SendHalf::new(peer),
            receiver: ReceiveHalf::new(peer),
            serial,
            is_reported: false,
            is_queued: false,
            is_watched: false,
        }
    }

    pub(crate) fn handle_ready(&mut self, ready: Ready) {
        if ready.readable {
            self.receiver.handle_readable();
        }
        if ready.writable {
            self.sender.handle_room();
        }
        if ready.hung_up {
            self.receiver.handle_hang_up();
        }
    }

    /// Writes what can be written. What ends by it is added to `events`.
    #[inline]
    pub(crate) fn flush(&mut self, events: impl FnMut(Event<'static>)) -> Flushed {
        if self.sender.is_idle() && !self.wire.has_unsent() {
            return Flushed::Done;
        }
        self.flush_all(events)
    }

    fn flush_all(&mut self, mut events: impl FnMut(Event<'static>)) -> Flushed {
        let peer = self.peer;
        let flushed = self.sender.flush(&mut self.wire, |body| {
            events(Event::BodySent { peer, body })
        });
        if self.sender.poll_room() {
            events(Event::Writable { peer });
        }
        flushed
    }

    /// Reads what is there, within the budget.
    pub(crate) fn receive(
        &mut self,
        pool: &mut Pool,
        budget: usize,
        reported: &mut usize,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Turn {
        match self
            .receiver
            .receive(&mut self.wire, pool, budget, reported, sink)
        {
            Received::More => Turn::More,
            Received::Lost(reason) => Turn::Lost(reason),
            // A write that failed ends the link only here, when all that came before is handed out.
            Received::All => match self.sender.failure() {
                Some(kind) => Turn::Lost(LossReason::Broken(kind)),
                None => Turn::Done,
            },
        }
    }

    /// Closes the link, and adds what that ends to `events`.
    pub(crate) fn close(self, reason: LossReason, mut events: impl FnMut(Event<'static>)) {
        let peer = self.peer;
        let failed = |way| {
            move |(body, in_place)| Event::BodyFailed {
                peer,
                body,
                way,
                in_place,
            }
        };
        self.sender
            .into_unsent()
            .map(|body| (body, 0))
            .map(failed(Way::Sending))
            .for_each(&mut events);
        self.receiver
            .into_missing()
            .map(failed(Way::Receiving))
            .for_each(&mut events);
        events(Event::Lost { peer, reason });
    }
}
