//! An unopened request, and its reply.

use core::fmt;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::session::Session;
use super::wire::{HEADER, Header, Kind};
use mizzen_core::Mailbox;
use mizzen_core::service::{Lead, Lease, Led, Next, Taken, decode};
use mizzen_core::{Borrowed, Endpoint, Error, Plain, UnpackError};
use mizzen_core::{Incoming, Message};
use mizzen_core::{ProcessId, Rank};

/// A call as it arrived: its header is read, its arguments are not.
pub(super) struct Asked<'a> {
    pub(super) session: Arc<Session>,
    pub(super) header: Header,
    pub(super) body: Body<'a>,
}

impl Asked<'_> {
    /// Whether somebody waits for the answer.
    pub(super) fn is_wanted(&self) -> bool {
        self.header.kind == Kind::Call
    }

    /// Who asked, and the arguments. `None` if they are not what the function takes; then the caller was told so.
    #[inline]
    pub(super) fn read<A: serde::de::DeserializeOwned>(self) -> Option<(Arc<Session>, A)> {
        self.read_as(|body, process| body.decode(process))
    }

    /// The same, read in some way.
    #[inline]
    pub(super) fn read_as<A>(
        self,
        read: impl FnOnce(Body<'_>, &Endpoint) -> Result<A, Error>,
    ) -> Option<(Arc<Session>, A)> {
        let wanted = self.is_wanted();
        match read(self.body, self.session.process()) {
            Ok(arguments) => Some((self.session, arguments)),
            Err(error) => {
                if wanted {
                    let cause = error.to_string();
                    self.session.answer(self.header.call, Kind::Refused, &cause);
                }
                None
            }
        }
    }
}

/// The arguments of a call, or its result.
pub(super) enum Body<'a> {
    /// The value of a short message, behind its header.
    Value(&'a [u8]),
    /// The same in memory of its own.
    Owned(Vec<u8>),
    /// What follows the header, in memory of its own, not opened yet.
    Led(Led),
    /// What follows the header piece.
    Pieces(Box<Incoming<'static>>),
    /// The value, and the buffer that was handed over with it.
    Lent(Cow<'a, [u8]>, LentBody),
}

/// A lent buffer, not looked at yet. In memory of its own: every body would be as large otherwise, and bodies are moved.
pub(super) enum LentBody {
    Held(Box<Lease>),
    /// The next piece of this.
    Packed(Box<Incoming<'static>>),
}

impl LentBody {
    fn read<T: Plain>(self) -> Result<Borrowed<T>, Error> {
        match self {
            Self::Held(lease) => Ok(lease.read()?),
            Self::Packed(mut incoming) => incoming.unpack_lent(),
        }
    }
}

impl Body<'_> {
    /// The value.
    #[inline]
    pub(super) fn decode<T: serde::de::DeserializeOwned>(
        self,
        process: &Endpoint,
    ) -> Result<T, Error> {
        match self {
            Self::Value(bytes) => Ok(decode(process, bytes)?),
            other => other.decode_long(process),
        }
    }

    #[inline(never)]
    fn decode_long<T: serde::de::DeserializeOwned>(self, process: &Endpoint) -> Result<T, Error> {
        match self {
            Self::Value(bytes) => Ok(decode(process, bytes)?),
            Self::Owned(bytes) => Ok(decode(process, &bytes)?),
            Self::Led(led) => match led.single() {
                Some(bytes) => Ok(decode(process, bytes)?),
                None => decode_only(led.open(process)),
            },
            Self::Pieces(incoming) => decode_only(*incoming),
            Self::Lent(..) => Err(UnpackError::Lent.into()),
        }
    }

    /// The value, and the lent buffer behind it, if there is one.
    pub(super) fn decode_lent<T: serde::de::DeserializeOwned, U: Plain>(
        self,
        process: &Endpoint,
    ) -> Result<(T, Option<Borrowed<U>>), Error> {
        let mut incoming = match self {
            Self::Lent(value, buffer) => {
                return Ok((decode(process, &value)?, Some(buffer.read()?)));
            }
            Self::Pieces(incoming) => incoming,
            Self::Led(led) if led.single().is_none() => Box::new(led.open(process)),
            other => return Ok((other.decode(process)?, None)),
        };
        let value = incoming.unpack_encoded()?;
        let buffer = match incoming.pieces_left() {
            0 => None,
            _ => Some(incoming.unpack_lent()?),
        };
        Ok((value, buffer))
    }

    /// The same, for as long as it takes.
    pub(super) fn keep(self) -> Body<'static> {
        match self {
            Self::Value(bytes) => Body::Owned(bytes.to_vec()),
            Self::Owned(bytes) => Body::Owned(bytes),
            Self::Led(led) => Body::Led(led),
            Self::Pieces(incoming) => Body::Pieces(incoming),
            Self::Lent(value, buffer) => Body::Lent(Cow::Owned(value.into_owned()), buffer),
        }
    }

    /// The same, holding nothing of the sender's: answers that wait for their turn would otherwise fill the lane, and the one
    /// whose turn it is would find no room.
    pub(super) fn set_aside(self) -> Result<Body<'static>, Error> {
        match self {
            Self::Led(led) => Ok(Body::Led(led.tightened())),
            Self::Pieces(incoming) => Ok(Body::Pieces(Box::new(incoming.detach()?))),
            other => Ok(other.keep()),
        }
    }
}

/// The only piece of a message.
fn decode_only<T: serde::de::DeserializeOwned>(mut incoming: Incoming<'_>) -> Result<T, Error> {
    let value = incoming.unpack_encoded()?;
    // A buffer that nobody expects is not dropped as if it had been read.
    match incoming.pieces_left() {
        0 => Ok(value),
        _ => Err(UnpackError::Lent.into()),
    }
}

/// The header and the body of a message to a service, or back. `None` if it is nonsense.
#[inline]
pub(super) fn open<'a>(
    mailbox: &Mailbox,
    next: Next,
    slot: &'a [u8],
) -> Option<(ProcessId, Header, Body<'a>)> {
    match next {
        Next::Short { len, source } => {
            let bytes = slot.get(..len)?;
            let header = Header::decode(bytes)?;
            Some((source, header, Body::Value(&bytes[HEADER..])))
        }
        Next::Handed {
            header,
            source,
            buffer,
        } => {
            let bytes = slot.get(header)?;
            let value = Cow::Borrowed(bytes.get(HEADER..)?);
            let body = Body::Lent(value, LentBody::Held(Box::new(buffer.ok()?)));
            Some((source, Header::decode(bytes)?, body))
        }
        Next::Led(lead, led) => open_led(&lead, led),
        Next::Other(taken) => open_other(mailbox, taken),
    }
}

fn open_led<'a>(lead: &Lead, led: Led) -> Option<(ProcessId, Header, Body<'a>)> {
    Some((led.source(), Header::decode(lead)?, Body::Led(led)))
}

fn open_other<'a>(mailbox: &Mailbox, taken: Taken) -> Option<(ProcessId, Header, Body<'a>)> {
    let source = taken.source;
    if taken.is_led() {
        let (lead, led) = taken.split_lead()?;
        return open_led(&lead, led);
    }
    if taken.is_single() {
        let (header, value) = taken.split_single::<HEADER>()?;
        return Some((source, Header::decode(&header)?, Body::Owned(value)));
    }
    let is_handed = taken.is_handed();
    let mut incoming = mailbox.open(taken).ok()?;
    if is_handed {
        let mut bytes = incoming.unpack_vec::<u8>().ok()?;
        let header = Header::decode(&bytes)?;
        let value = Cow::Owned(bytes.split_off(HEADER));
        let buffer = LentBody::Packed(Box::new(incoming));
        return Some((source, header, Body::Lent(value, buffer)));
    }
    let header: [u8; HEADER] = incoming.unpack_express().ok()?;
    let header = Header::decode(&header)?;
    Some((source, header, Body::Pieces(Box::new(incoming))))
}

/// A message of any pieces, not moved until it is opened: an open one is long.
pub(super) enum Pieces {
    Led(Led),
    Opened(Box<Incoming<'static>>),
}

impl Pieces {
    /// What a message has besides a header, if that is not only a value behind a header of a client that is not raw.
    pub(super) fn of(body: Body<'_>) -> Result<Self, Body<'_>> {
        match body {
            Body::Led(led) => Ok(Self::Led(led)),
            Body::Pieces(incoming) => Ok(Self::Opened(incoming)),
            other => Err(other),
        }
    }

    fn source(&self) -> Rank {
        match self {
            Self::Led(led) => led.source().rank,
            Self::Opened(incoming) => incoming.source(),
        }
    }

    #[inline(always)]
    pub(super) fn open<'m>(self, process: &Endpoint) -> Incoming<'m> {
        match self {
            Self::Led(led) => led.open(process),
            Self::Opened(incoming) => *incoming,
        }
    }
}

impl From<Pieces> for Body<'_> {
    fn from(pieces: Pieces) -> Self {
        match pieces {
            Pieces::Led(led) => Self::Led(led),
            Pieces::Opened(incoming) => Self::Pieces(incoming),
        }
    }
}

/// A call to a [raw service](crate::Deck::serve_raw), not opened yet. [`open`](Self::open) it where you have the memory for it.
pub struct Request {
    pieces: Pieces,
    reply: Reply,
}

impl Request {
    /// `None` if it was made by a client that is not raw; it is told so.
    pub(super) fn new(asked: Asked<'_>) -> Option<Self> {
        let Asked {
            session,
            header,
            body,
        } = asked;
        let Ok(pieces) = Pieces::of(body) else {
            if header.kind == Kind::Call {
                let cause = "it is a raw service; call it with a `raw_client`";
                session.answer(header.call, Kind::Refused, &cause);
            }
            return None;
        };
        let reply = Reply {
            session,
            header,
            source: pieces.source(),
            wanted: header.kind == Kind::Call,
        };
        Some(Self { pieces, reply })
    }

    /// The arguments, to be unpacked piece by piece, and the reply, to be sent afterwards.
    #[inline]
    pub fn open<'m>(self) -> (Incoming<'m>, Reply) {
        (self.pieces.open(self.reply.session.process()), self.reply)
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

    /// How long the caller said it would wait, counted from its call; `None` if it waits as long as it takes.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
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
