//! The bodies under way in both directions, and how far they are (docs/wire-sessions.md §23).
//!
//! ```text
//!   sender:    send ─▶ waits ──poll──▶ given ──taken, not named by a greeting──▶ (ended)
//!                        ▲──named by a greeting, from an offset──┘
//!   receiver:  expect ─▶ awaited ──received──▶ to be told ──poll, greeting──▶ (ended)
//! ```

use std::collections::{BTreeMap, VecDeque};

use super::error::SessionError;
use super::frame::Expected;
use super::limits::{EXPECTED_MAX, SENDING_MAX, TAKEN_MAX};
use super::outcome::TooManyBodies;
use crate::id::BodyId;

#[derive(Debug, Default)]
pub(super) struct Bodies {
    sending: BTreeMap<BodyId, Sending>,
    /// Those of `sending` that are to be given to the connection.
    waiting: VecDeque<BodyId>,
    awaited: BTreeMap<BodyId, Awaited>,
    /// Those of `awaited` that have no place on the connection: asked for since the greeting.
    unplaced: VecDeque<BodyId>,
    /// Those that have come on this connection, and of which the peer was not told.
    taken: VecDeque<BodyId>,
}

#[derive(Debug)]
struct Sending {
    len: u64,
    from: u64,
    /// The number of its push, behind which it goes; none for one that was asked for.
    push: Option<u64>,
}

#[derive(Debug)]
struct Awaited {
    len: u64,
    in_place: u64,
}

impl Bodies {
    pub(super) fn send(
        &mut self,
        body: BodyId,
        len: u64,
        push: Option<u64>,
    ) -> Result<(), TooManyBodies> {
        if self.sending.len() >= SENDING_MAX {
            return Err(TooManyBodies);
        }
        let from = 0;
        self.sending.insert(body, Sending { len, from, push });
        self.waiting.push_back(body);
        Ok(())
    }

    pub(super) fn expect(&mut self, body: BodyId, len: u64) -> Result<(), TooManyBodies> {
        if self.awaited.len() >= EXPECTED_MAX {
            return Err(TooManyBodies);
        }
        let in_place = 0;
        self.awaited.insert(body, Awaited { len, in_place });
        self.unplaced.push_back(body);
        Ok(())
    }

    /// So many bytes of a body are in place, whatever becomes of the connection; what was in place stays. Whether that is all.
    pub(super) fn handle_progress(&mut self, body: BodyId, in_place: u64) -> bool {
        let Some(awaited) = self.awaited.get_mut(&body) else {
            return false;
        };
        awaited.in_place = awaited.in_place.max(in_place.min(awaited.len));
        awaited.in_place == awaited.len && self.handle_received(body)
    }

    /// Whether it was awaited.
    pub(super) fn handle_received(&mut self, body: BodyId) -> bool {
        let was_awaited = self.awaited.remove(&body).is_some();
        if was_awaited {
            self.taken.push_back(body);
        }
        was_awaited
    }

    pub(super) fn handle_taken(&mut self, body: BodyId) -> Result<(), SessionError> {
        match self.sending.remove(&body) {
            Some(_) => Ok(()),
            None => Err(SessionError::UnknownBody { body }),
        }
    }

    /// A greeting came: all bodies are to be given again, from where the peer says. Returns those that it has.
    pub(super) fn handle_expected(
        &mut self,
        expected: &[Expected],
        received_through: u64,
    ) -> Result<Vec<BodyId>, SessionError> {
        for &Expected { body, in_place } in expected {
            let fits = match self.sending.get(&body) {
                Some(sending) => in_place < sending.len,
                // It was asked for, and we do not know yet.
                None => in_place == 0,
            };
            if !fits {
                return Err(SessionError::Body { body, in_place });
            }
        }
        let named: BTreeMap<_, _> = expected
            .iter()
            .map(|one| (one.body, one.in_place))
            .collect();
        let mut taken = Vec::new();
        self.sending.retain(|&body, sending| {
            let is_behind = sending.push.is_some_and(|push| push > received_through);
            sending.from = match named.get(&body) {
                Some(&in_place) => in_place,
                None if is_behind => 0,
                None => {
                    taken.push(body);
                    return false;
                }
            };
            true
        });
        self.waiting = self.sending.keys().copied().collect();
        Ok(taken)
    }

    /// What a greeting says of the bodies that this end waits for, which then have places. It tells what was taken, too.
    pub(super) fn tell_expected(&mut self) -> Vec<Expected> {
        self.taken = VecDeque::new();
        self.unplaced = VecDeque::new();
        self.awaited
            .iter()
            .map(|(&body, awaited)| Expected {
                body,
                in_place: awaited.in_place,
            })
            .collect()
    }

    /// The next body to give to the connection, and from which byte on.
    pub(super) fn poll_waiting(
        &mut self,
        was_given: impl Fn(u64) -> bool,
    ) -> Option<(BodyId, u64)> {
        let sending = &self.sending;
        let is_ready = |body: &BodyId| match sending.get(body) {
            Some(sending) => sending.push.is_none_or(&was_given),
            // It was taken meanwhile, so it is out of the way.
            None => true,
        };
        loop {
            let place = self.waiting.iter().position(is_ready)?;
            let body = self.waiting.remove(place)?;
            if let Some(sending) = self.sending.get(&body) {
                return Some((body, sending.from));
            }
        }
    }

    /// The next body that needs a place before it is asked for.
    pub(super) fn poll_unplaced(&mut self) -> Option<BodyId> {
        self.unplaced.pop_front()
    }

    pub(super) fn poll_taken(&mut self) -> Option<Vec<BodyId>> {
        if self.taken.is_empty() {
            return None;
        }
        let count = self.taken.len().min(TAKEN_MAX);
        Some(self.taken.drain(..count).collect())
    }

    /// Whether something may be to do with the connection.
    pub(super) fn has_output(&self) -> bool {
        !self.waiting.is_empty() || !self.unplaced.is_empty() || !self.taken.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sending.is_empty() && self.awaited.is_empty() && self.taken.is_empty()
    }

    pub(super) fn is_sending(&self) -> bool {
        !self.sending.is_empty()
    }

    pub(super) fn sending(&self) -> Vec<BodyId> {
        self.sending.keys().copied().collect()
    }
}
