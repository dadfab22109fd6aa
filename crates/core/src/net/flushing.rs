//! How far a peer is with what was sent to it, and what it never took.

use std::sync::Arc;

use mizzen_proto::id::PingToken;

use super::engine::Engine;
use super::link::{Hub, NetLink};
use crate::error::{Gone, Untaken};
use crate::lock::lock;
use crate::rank::ProcessId;

/// What was queued for a peer at some moment.
pub(crate) struct Mark {
    engine: Arc<Engine>,
    link: Arc<NetLink>,
    /// The number of the last frame of it.
    number: u64,
}

impl Mark {
    pub(crate) fn peer(&self) -> ProcessId {
        self.link.peer
    }

    /// Whether the peer has all of it, or is gone.
    pub(crate) fn is_flushed(&self) -> bool {
        self.link.is_ended()
            || self.engine.with_port(|_| {
                let session = self.link.session();
                session.session.is_flushed(self.number)
            })
    }

    /// How many messages the peer has not taken.
    pub(crate) fn messages(&self) -> u64 {
        self.engine.with_port(|_| self.link.session().messages())
    }
}

impl Engine {
    /// What is queued for each peer now.
    pub(super) fn begin_flush(self: &Arc<Self>) -> Vec<Mark> {
        let begin = |link: Arc<NetLink>| {
            let number = self.with_port(|_| {
                let session = link.session();
                let mut state = link.lock();
                if let Some(protocol) = &mut state.link {
                    // The answer brings the acknowledgement: who has nothing to say takes its time with it.
                    protocol.ping(PingToken(0));
                }
                state.transmit();
                session.session.last_number() + state.outbox.len() as u64
            });
            self.mark(&link);
            Mark {
                engine: Arc::clone(self),
                link,
                number,
            }
        };
        let marks = self.all_links().into_iter().map(begin).collect();
        self.kick();
        marks
    }

    /// What a peer did not take that is gone. Whoever has learnt from a post that it is gone finds it here: links end, and are
    /// accounted for, under the port.
    pub(super) fn take_untaken(self: &Arc<Self>) -> Option<(Gone, Untaken)> {
        self.with_port(|_| lock(&self.untaken).pop())
    }

    /// A link is over, and this was not taken.
    pub(super) fn note_untaken(&self, gone: Gone, untaken: Untaken) {
        if untaken.messages > 0 {
            lock(&self.untaken).push((gone, untaken));
        }
    }
}
