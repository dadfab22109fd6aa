//! An unopened request, and its reply.

use core::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::session::Session;
use super::wire::{HEADER, Header, Kind};
use crate::error::UnpackError;
use crate::message::{Incoming, Message, Payload};
use crate::rank::Rank;

/// A call as it arrived: its header is read, its arguments are not.
pub(super) struct Asked {
    pub(super) session: Arc<Session>,
    pub(super) header: Header,
    pub(super) body: Body,
}

/// The arguments of a call, or its result.
pub(super) enum Body {
    /// Header and value in one short piece.
    Compact(Payload),
    /// What follows the header piece.
    Pieces(Box<Incoming<'static>>),
}

impl Body {
    /// The value.
    pub(super) fn decode<T: serde::de::DeserializeOwned>(self) -> Result<T, UnpackError> {
        let read = |bytes: &[u8]| {
            let value = bytes.get(HEADER..).ok_or(UnpackError::Malformed)?;
            postcard::from_bytes(value).map_err(UnpackError::decode)
        };
        match self {
            Self::Pieces(mut incoming) => incoming.unpack_value(),
            Self::Compact(payload) => match payload.in_place() {
                Some(bytes) => read(bytes),
                None => {
                    let mut bytes = vec![0; payload.len()];
                    payload.copy_out(0, &mut bytes);
                    read(&bytes)
                }
            },
        }
    }

    /// The same, not holding the lane that it came through.
    pub(super) fn detach(self) -> Self {
        match self {
            Self::Compact(payload) => Self::Compact(payload.detach()),
            pieces => pieces,
        }
    }
}

/// A call to a [raw service](crate::Deck::serve_raw), not opened yet. [`open`](Self::open) it where the memory is that it shall
/// go to.
pub struct Request {
    incoming: Box<Incoming<'static>>,
    reply: Reply,
}

impl Request {
    /// `None` if it was made by a client that is not raw; it is told so.
    pub(super) fn new(asked: Asked) -> Option<Self> {
        let Asked {
            session,
            header,
            body,
        } = asked;
        let Body::Pieces(incoming) = body else {
            if header.kind == Kind::Call {
                let cause = "it is a raw service; call it with `call_message`";
                session.answer(header.call, Kind::Refused, &cause);
            }
            return None;
        };
        let reply = Reply {
            session,
            header,
            source: incoming.source(),
            wanted: header.kind == Kind::Call,
        };
        Some(Self { incoming, reply })
    }

    /// The arguments, to be unpacked piece by piece, and the reply, to be sent afterwards.
    pub fn open<'m>(self) -> (Incoming<'m>, Reply) {
        (*self.incoming, self.reply)
    }

    /// The process that called.
    #[must_use]
    pub fn source(&self) -> Rank {
        self.reply.source
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("from", &self.source())
            .finish_non_exhaustive()
    }
}

/// The right to answer one call, from any thread. If it is dropped unused, the caller is told that there is no answer.
#[must_use = "the caller waits for the answer"]
pub struct Reply {
    session: Arc<Session>,
    header: Header,
    source: Rank,
    wanted: bool,
}

impl Reply {
    /// Answers with a message, from the memory that it refers to. Nothing happens if nobody waits for an answer.
    pub fn send(mut self, message: &mut Message<'_>) {
        if core::mem::take(&mut self.wanted) {
            self.session.answer_message(self.header.call, message);
        }
    }

    /// Whether the caller still waits.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.wanted && !self.session.is_cancelled(self.header.call)
    }

    /// How long the caller said it would wait, counted from its call; `None`: as long as it takes.
    #[must_use]
    pub fn patience(&self) -> Option<Duration> {
        let milliseconds = u64::from(self.header.patience_ms);
        (milliseconds > 0).then(|| Duration::from_millis(milliseconds))
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.wanted {
            self.session.say(self.header.call, Kind::Unanswered);
        }
        self.session.end(self.header.call);
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("to", &self.source)
            .finish_non_exhaustive()
    }
}
