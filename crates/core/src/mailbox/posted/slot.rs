//! One posted receive.
//!
//! | stage | next |
//! | --- | --- |
//! | posted | matched, when a message comes; done, if that is short, or none can come; over, if it is withdrawn |
//! | matched, with a long message | being filled, by the thread that waits for it or by a worker |
//! | being filled | done |
//! | done | over, when its user has taken what came |
//!
//! The exchange moves it on from `posted`, under its lock, which is taken before that of the slot.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use super::memory::Target;
use crate::bells::Bells;
use crate::error::{Error, UnpackError};
use crate::lock::lock;
use crate::mailbox::look::Taken;
use crate::message::{Flags, Payload, ticket_at};
use crate::rank::{ProcessId, Rank};

/// Whose messages a receive wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Anybody,
    /// One rank, of which this life was over when the receive was posted.
    Rank(Rank, Option<ProcessId>),
}

/// What came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    pub(super) source: Rank,
    pub(super) count: usize,
}

/// What came, and the memory that it is in.
pub(super) type Filled = (Came, Box<dyn Target>);

/// Who is told that a receive is done.
#[derive(Debug)]
pub(in crate::mailbox) enum Waiter {
    Task(Waker),
    /// A thread, by its bell.
    Thread {
        bell: u32,
        /// Whether it fills the memory itself, if a long message comes.
        fills: bool,
    },
}

impl Waiter {
    pub(super) fn wake(self, bells: &Bells) {
        match self {
            Self::Task(waker) => waker.wake(),
            Self::Thread { bell, .. } => bells.ring(bell),
        }
    }
}

/// One posted receive.
pub(super) struct Slot {
    pub(super) from: Whose,
    /// Whether it is done or over.
    is_done: AtomicBool,
    state: Mutex<State>,
}

struct State {
    stage: Stage,
    /// Not here while it is being filled.
    memory: Option<Box<dyn Target>>,
    waiter: Option<Waiter>,
}

enum Stage {
    Posted,
    Matched(Box<Taken>),
    Filling,
    Done(Result<Came, Error>),
    Over,
}

/// What became of a message that was given to a receive.
pub(super) struct Given {
    /// It did not fit, and is nobody's.
    pub(super) back: Option<Taken>,
    /// Somebody must fill the memory with it.
    pub(super) needs_filling: bool,
    /// Who waits for the receive, and is to be woken.
    pub(super) waiter: Option<Waiter>,
    /// Whether anybody waited for it.
    pub(super) was_awaited: bool,
}

/// How a receive was ended by its user.
pub(super) enum Withdrawn {
    /// No message was for it. Whether anybody waited for it.
    Posted { was_awaited: bool },
    /// It had ended with an error, which its user knows, or which is not about a message.
    Failed,
    /// A message was, also if it did not fit.
    TooLate,
}

impl Slot {
    pub(super) fn new(from: Whose, memory: Box<dyn Target>) -> Self {
        Self {
            from,
            is_done: AtomicBool::new(false),
            state: Mutex::new(State {
                stage: Stage::Posted,
                memory: Some(memory),
                waiter: None,
            }),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        // Pairs with the store in `end`.
        self.is_done.load(Ordering::Acquire)
    }

    pub(super) fn is_posted(&self) -> bool {
        matches!(lock(&self.state).stage, Stage::Posted)
    }

    /// Whether a message has come for it that nobody has begun to copy.
    pub(super) fn is_matched(&self) -> bool {
        matches!(lock(&self.state).stage, Stage::Matched(_))
    }

    /// Gives it a message. It is posted.
    pub(super) fn give(&self, taken: Taken) -> Given {
        let mut state = lock(&self.state);
        let was_awaited = state.waiter.is_some();
        let fits = match &state.memory {
            Some(memory) => fits(&taken, &**memory),
            None => Err(UnpackError::Malformed),
        };
        let mut given = Given {
            back: None,
            needs_filling: false,
            waiter: None,
            was_awaited,
        };
        match fits {
            Err(error) => {
                given.back = Some(taken);
                given.waiter = self.end(&mut state, Err(error.into()));
            }
            Ok(count) if is_here(&taken) => {
                let source = taken.source.rank;
                if let Some(memory) = &mut state.memory {
                    let len = taken.payload.len();
                    taken.payload.copy_out(0, &mut memory.bytes()[..len]);
                    memory.put_right(len, taken.flags);
                }
                given.waiter = self.end(&mut state, Ok(Came { source, count }));
            }
            Ok(_) => {
                state.stage = Stage::Matched(Box::new(taken));
                // A thread that fills it itself is told now, a task when it is done.
                match state.waiter.take() {
                    Some(thread @ Waiter::Thread { fills: true, .. }) => {
                        given.waiter = Some(thread);
                    }
                    other => {
                        state.waiter = other;
                        given.needs_filling = true;
                    }
                }
            }
        }
        given
    }

    /// No message will come for it: who is to be woken.
    pub(super) fn fail(&self, error: Error) -> Option<Waiter> {
        let mut state = lock(&self.state);
        self.end(&mut state, Err(error))
    }

    /// Leaves word of who waits. `Some`: it is posted; and whether nobody waited before.
    pub(super) fn leave(&self, waiter: Waiter) -> Option<bool> {
        let mut state = lock(&self.state);
        match state.stage {
            Stage::Posted => Some(state.waiter.replace(waiter).is_none()),
            Stage::Matched(_) | Stage::Filling => {
                state.waiter = Some(waiter);
                None
            }
            Stage::Done(_) | Stage::Over => None,
        }
    }

    /// Nobody waits any longer. `true` if somebody did, and it is posted.
    pub(super) fn retract(&self) -> bool {
        let mut state = lock(&self.state);
        state.waiter.take().is_some() && matches!(state.stage, Stage::Posted)
    }

    /// Takes out who waits.
    pub(super) fn take_waiter(&self) -> Option<Waiter> {
        lock(&self.state).waiter.take()
    }

    /// The message and the memory, if nobody has begun to copy one into the other.
    pub(super) fn begin_filling(&self) -> Option<(Box<Taken>, Box<dyn Target>)> {
        let mut state = lock(&self.state);
        match core::mem::replace(&mut state.stage, Stage::Filling) {
            Stage::Matched(taken) => Some((taken, state.memory.take()?)),
            other => {
                state.stage = other;
                None
            }
        }
    }

    /// It was filled, or could not be: who is to be woken.
    pub(super) fn end_filling(
        &self,
        memory: Box<dyn Target>,
        outcome: Result<Came, Error>,
    ) -> Option<Waiter> {
        let mut state = lock(&self.state);
        if matches!(state.stage, Stage::Over) {
            // Its user has dropped it meanwhile.
            return None;
        }
        state.memory = Some(memory);
        self.end(&mut state, outcome)
    }

    /// What came, once; and with it the memory, unless it is an error: then that stays.
    pub(super) fn take(&self) -> Option<Result<Filled, Error>> {
        let mut state = lock(&self.state);
        match core::mem::replace(&mut state.stage, Stage::Over) {
            Stage::Done(Ok(came)) => Some(Ok((came, state.memory.take()?))),
            Stage::Done(Err(error)) => Some(Err(error)),
            other => {
                state.stage = other;
                None
            }
        }
    }

    /// Ends it, if no message was for it.
    pub(super) fn withdraw(&self) -> Withdrawn {
        let mut state = lock(&self.state);
        match state.stage {
            Stage::Posted => {
                let was_awaited = state.waiter.take().is_some();
                self.end(&mut state, Err(UnpackError::NoPiece.into()));
                state.stage = Stage::Over;
                Withdrawn::Posted { was_awaited }
            }
            // A message came that it could not take, and waits for its user, who does not know of it.
            Stage::Done(Err(Error::Unpack(_))) => Withdrawn::TooLate,
            Stage::Done(Err(_)) | Stage::Over => Withdrawn::Failed,
            Stage::Matched(_) | Stage::Filling | Stage::Done(Ok(_)) => Withdrawn::TooLate,
        }
    }

    /// The memory of one that was withdrawn, or failed.
    pub(super) fn take_memory(&self) -> Option<Box<dyn Target>> {
        lock(&self.state).memory.take()
    }

    /// Nobody will ask for what came.
    pub(super) fn forget(&self) {
        let mut state = lock(&self.state);
        state.waiter = None;
        let stage = core::mem::replace(&mut state.stage, Stage::Over);
        let memory = state.memory.take();
        drop(state);
        if let Stage::Matched(taken) = stage {
            discard(&taken);
        }
        drop(memory);
    }

    fn end(&self, state: &mut State, outcome: Result<Came, Error>) -> Option<Waiter> {
        state.stage = Stage::Done(outcome);
        // Pairs with `is_done`.
        self.is_done.store(true, Ordering::Release);
        state.waiter.take()
    }
}

/// How many values a message is, if a receive into `memory` may have it: one plain piece that is not too long.
fn fits(taken: &Taken, memory: &dyn Target) -> Result<usize, UnpackError> {
    let flags = taken.flags;
    if flags.has(Flags::LENT) || flags.has(Flags::HANDED) {
        return Err(UnpackError::Lent);
    }
    if flags.has(Flags::VALUE) {
        return Err(UnpackError::NotPlain);
    }
    if !flags.has(Flags::SINGLE) {
        return Err(UnpackError::Several);
    }
    memory.count(len(taken), flags)
}

/// Bytes of a message of one piece, as its sender says.
fn len(taken: &Taken) -> usize {
    let is_ticket = taken.flags.has(Flags::LONG) || taken.flags.has(Flags::STREAM);
    let ticket = (is_ticket && taken.lender.is_some()).then(|| ticket_at(&taken.payload, 0));
    match ticket.flatten() {
        Some(ticket) => ticket.len as usize,
        None => taken.payload.len(),
    }
}

/// Whether all of its bytes are in the payload itself.
fn is_here(taken: &Taken) -> bool {
    let is_short = matches!(
        taken.payload,
        Payload::Short { .. } | Payload::Eager(_) | Payload::Owned(_) | Payload::Spare(_)
    );
    is_short && taken.lender.is_none()
}

/// Gives back what a message that nobody will read has borrowed.
pub(super) fn discard(taken: &Taken) {
    if let Some(lender) = &taken.lender {
        lender.discard(taken.flags, &taken.payload);
    }
}
