//! The calls of a client that are under way.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::request::Body;
use super::wire::Kind;
use mizzen_core::service::lock;
use mizzen_core::{Error, Gone, UnpackError};

/// What is known of a call.
pub(super) enum State {
    /// It is not answered yet.
    Waiting,
    /// It is, and nobody has looked at the answer yet.
    Answered(Box<(Kind, Body<'static>)>),
    /// It is not answered yet, and nobody wants the answer. It counts as waiting until then: answers that come must have room.
    Abandoned,
    /// It will not be.
    Lost(Ended),
    /// Nobody wants to know.
    Over,
}

/// Why calls are not answered.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ended {
    Gone(Gone),
    Stopped,
}

/// Calls by their numbers, which follow each other.
pub(super) struct Calls {
    first: u64,
    states: VecDeque<State>,
    waiting: usize,
    /// The first call is the only one, waits, and is not among the states: as every one is of a client that waits for each.
    is_alone: bool,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            // 0 is the number of what is not answered.
            first: 1,
            states: VecDeque::new(),
            waiting: 0,
            is_alone: false,
        }
    }
}

impl Calls {
    /// The number of a new call.
    #[inline]
    pub(super) fn begin(&mut self) -> u64 {
        self.waiting += 1;
        if self.waiting == 1 && self.states.is_empty() {
            self.is_alone = true;
            return self.first;
        }
        self.begin_beside()
    }

    fn begin_beside(&mut self) -> u64 {
        self.note_alone();
        self.states.push_back(State::Waiting);
        self.first + self.states.len() as u64 - 1
    }

    /// How many are not answered yet.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The call that is alone gets a state, as others have.
    fn note_alone(&mut self) {
        if core::mem::take(&mut self.is_alone) {
            self.states.push_back(State::Waiting);
        }
    }

    /// Whether it is the only call, which waits.
    #[inline]
    pub(super) fn is_alone(&self, call: u64) -> bool {
        self.is_alone && call == self.first
    }

    fn state(&mut self, call: u64) -> Option<&mut State> {
        self.note_alone();
        let index = usize::try_from(call.checked_sub(self.first)?).ok()?;
        self.states.get_mut(index)
    }

    /// An answer has come. One that nobody waits for is dropped.
    pub(super) fn answer(&mut self, call: u64, kind: Kind, body: Body<'_>) {
        let Some(state) = self.state(call) else {
            return;
        };
        *state = match state {
            State::Waiting => match body.set_aside() {
                Ok(body) => State::Answered(Box::new((kind, body))),
                Err(Error::Unpack(UnpackError::PeerGone(gone))) => State::Lost(Ended::Gone(gone)),
                Err(_) => State::Answered(Box::new((Kind::Unanswered, Body::Owned(Vec::new())))),
            },
            State::Abandoned => State::Over,
            _ => return,
        };
        self.waiting -= 1;
        self.forget_first();
    }

    /// Whether a call is not answered yet.
    #[inline]
    pub(super) fn is_waiting(&mut self, call: u64) -> bool {
        self.is_alone(call) || matches!(self.state(call), Some(State::Waiting))
    }

    /// No call that waits will be answered.
    pub(super) fn lose(&mut self, ended: Ended) {
        self.note_alone();
        for state in &mut self.states {
            match state {
                State::Waiting => *state = State::Lost(ended),
                State::Abandoned => *state = State::Over,
                _ => (),
            }
        }
        self.waiting = 0;
        self.forget_first();
    }

    /// What came of a call, once; it is over then. `None` while it waits.
    #[inline]
    pub(super) fn take(&mut self, call: u64) -> Option<State> {
        if self.is_alone(call) {
            return None;
        }
        self.take_state(call)
    }

    fn take_state(&mut self, call: u64) -> Option<State> {
        let state = match self.state(call) {
            None | Some(State::Abandoned) => State::Over,
            Some(State::Waiting) => return None,
            Some(state) => core::mem::replace(state, State::Over),
        };
        self.forget_first();
        Some(state)
    }

    /// Nobody wants to know what comes of a call.
    #[inline]
    pub(super) fn end(&mut self, call: u64) {
        if self.is_alone(call) {
            self.is_alone = false;
            self.waiting = 0;
            self.first += 1;
            return;
        }
        self.end_state(call);
    }

    fn end_state(&mut self, call: u64) {
        if let Some(state) = self.state(call) {
            if let State::Waiting | State::Abandoned = core::mem::replace(state, State::Over) {
                self.waiting -= 1;
            }
            self.forget_first();
        }
    }

    /// Whoever began a call has dropped it.
    pub(super) fn abandon(&mut self, call: u64) {
        match self.state(call) {
            Some(state @ State::Waiting) => *state = State::Abandoned,
            Some(State::Abandoned) | None => (),
            Some(state) => {
                *state = State::Over;
                self.forget_first();
            }
        }
    }

    /// How many are remembered.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.states.len() + usize::from(self.is_alone)
    }

    fn forget_first(&mut self) {
        while let Some(State::Over) = self.states.front() {
            self.states.pop_front();
            self.first += 1;
        }
    }
}

/// What a client and its calls share: which of them were dropped before their results were taken. There are at most as many as
/// the client has calls.
#[derive(Default)]
pub(super) struct Dropped {
    numbers: Mutex<Vec<u64>>,
    any: AtomicBool,
}

impl Dropped {
    pub(super) fn add(&self, call: u64) {
        lock(&self.numbers).push(call);
        self.any.store(true, Ordering::Release);
    }

    /// Whether there are some that were not taken.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    #[cold]
    pub(super) fn take(&self) -> Vec<u64> {
        let mut numbers = lock(&self.numbers);
        self.any.store(false, Ordering::Relaxed);
        core::mem::take(&mut numbers)
    }
}
