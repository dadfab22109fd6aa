//! The way back to one client.

use core::fmt;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use mizzen_core::service::SHORT_MAX;

use super::wire::{COMPACT_MAX, HEADER, Header, Kind};
use mizzen_core::service::{Buffer, Held, Latch, block_in_place, lock};
use mizzen_core::{
    ArenaError, Endpoint, Error, LentBuffer, MailboxRef, Message, PostError, Sender,
};

/// A client of a service, as the service sees it.
pub(super) struct Session {
    process: Endpoint,
    number: u32,
    reply: Latch<WayBack>,
    /// Calls that nobody waits for any more and that may still run.
    cancelled: Mutex<HashSet<u64>>,
    has_cancelled: AtomicBool,
    /// Nobody waits for anything any more.
    closed: AtomicBool,
    /// Async handlers under way.
    running: Mutex<HashMap<u64, async_task::Task<()>>>,
}

/// How answers go to the client.
enum WayBack {
    /// Nothing was answered yet. The way is opened by whoever answers first, since that may take its time: others are served
    /// meanwhile.
    Unopened(MailboxRef),
    /// By a lane of their own.
    Lane(Box<Sender>),
    /// As any message: there was no lane to be had.
    Shared(MailboxRef),
}

impl WayBack {
    /// Sends the first `len` bytes of `slot`.
    #[inline]
    fn send_slot(&mut self, slot: &[u8; SHORT_MAX], len: usize) -> Result<(), Error> {
        match self {
            Self::Lane(lane) => lane.send_slot(slot, len),
            _ => self.send(&slot[..len]),
        }
    }

    #[cold]
    fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        match self.open()? {
            Self::Lane(lane) => lane.send(bytes),
            Self::Shared(address) | Self::Unopened(address) => address.send(bytes),
        }
    }

    fn post(&mut self, message: &mut Message<'_>) -> Result<(), Error> {
        match self.open()? {
            Self::Lane(lane) => lane.post_in_place(message),
            Self::Shared(address) | Self::Unopened(address) => address.post_in_place(message),
        }
    }

    /// Hands over a buffer at once, with a header beside it. `Some`: it has to be packed.
    fn hand_over(&mut self, header: &[u8], buffer: Buffer) -> Result<Option<Buffer>, Error> {
        match self.open()? {
            Self::Lane(lane) => Ok(lane.hand_over(header, buffer)?),
            Self::Shared(_) | Self::Unopened(_) => Ok(Some(buffer)),
        }
    }

    /// Posts if there is room now, without opening anything.
    fn try_post(&mut self, message: &mut Message<'_>) -> Result<(), Error> {
        match self {
            Self::Lane(lane) => lane.try_post(message),
            Self::Shared(address) | Self::Unopened(address) => address.try_post(message),
        }
    }

    /// Opens a lane, or goes on without one if there is none: no descriptor, no memory, too many lanes.
    #[cold]
    fn open(&mut self) -> Result<&mut Self, Error> {
        if let Self::Unopened(address) = self {
            *self = match address.sender() {
                Ok(lane) => Self::Lane(Box::new(lane)),
                Err(gone @ Error::Post(PostError::PeerGone(_) | PostError::Closed { .. })) => {
                    return Err(gone);
                }
                Err(_) => Self::Shared(address.clone()),
            };
        }
        Ok(self)
    }
}

/// Cancelled calls that are remembered.
const MOST_CANCELLED: usize = 1024;

impl Session {
    pub(super) fn new(process: Endpoint, number: u32, client: MailboxRef) -> Self {
        Self {
            process,
            number,
            reply: Latch::new(WayBack::Unopened(client)),
            cancelled: Mutex::default(),
            has_cancelled: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            running: Mutex::default(),
        }
    }

    /// The way back, for as long as it takes to post an answer. A worker that waits until another has posted its own gives its place away
    /// meanwhile.
    #[inline]
    fn reply(&self) -> Held<'_, WayBack> {
        self.reply
            .try_lock()
            .unwrap_or_else(|| block_in_place(|| self.reply.lock()))
    }

    /// The process that serves.
    pub(super) fn process(&self) -> &Endpoint {
        &self.process
    }

    /// Answers with a value. A client that is gone gets nothing, and need not.
    pub(super) fn answer<R: serde::Serialize>(&self, call: u64, kind: Kind, result: &R) {
        let header = self.header(call, kind);
        let mut short = [0; SHORT_MAX];
        if let Some(len) = header.encode_with(result, &mut short) {
            let posted = self.reply().send_slot(&short, len);
            return self.check(call, posted);
        }
        let bytes = postcard::to_extend(result, header.encode().to_vec());
        match bytes {
            Ok(bytes) if bytes.len() <= COMPACT_MAX => {
                let posted = self.reply().send(&bytes[..]);
                self.check(call, posted);
            }
            Ok(bytes) => {
                let mut message = Message::new();
                message.pack_cheaper(&bytes[HEADER..]);
                self.answer_pieces(call, kind, &mut message);
            }
            Err(error) => self.answer(call, Kind::Panicked, &error.to_string()),
        }
    }

    /// Answers with a value and a lent buffer.
    pub(super) fn answer_lent<R: serde::Serialize>(
        &self,
        call: u64,
        result: &R,
        buffer: impl LentBuffer,
    ) {
        let mut short = [0; SHORT_MAX];
        let mut buffer = Buffer::of(buffer);
        if let Some(len) = self
            .header(call, Kind::Done)
            .encode_with(result, &mut short)
        {
            let left = self.reply().hand_over(&short[..len], buffer);
            match left {
                Ok(None) => return,
                Ok(Some(left)) => buffer = left,
                Err(cause) => return self.explain(call, &cause),
            }
        }
        let mut message = Message::new();
        if let Err(error) = message.pack_value(result) {
            return self.answer(call, Kind::Panicked, &error.to_string());
        }
        message.pack_buffer(buffer);
        self.answer_message(call, &mut message);
    }

    /// Answers with a message.
    pub(super) fn answer_message(&self, call: u64, message: &mut Message<'_>) {
        self.answer_pieces(call, Kind::Done, message);
    }

    fn answer_pieces(&self, call: u64, kind: Kind, message: &mut Message<'_>) {
        message.set_lead(Some(self.header(call, kind).encode()));
        let posted = self.reply().post(message);
        message.set_lead(None);
        self.check(call, posted);
    }

    #[inline]
    fn check(&self, call: u64, posted: Result<(), Error>) {
        if let Err(cause) = posted {
            self.explain(call, &cause);
        }
    }

    /// An answer was not posted: its caller is told why, or it would wait for ever.
    #[cold]
    fn explain(&self, call: u64, cause: &Error) {
        let (kind, words) = match cause {
            Error::Post(PostError::PeerGone(_) | PostError::Closed { .. }) => return,
            Error::Post(PostError::Memory(ArenaError::TooLong { bytes, limit })) => (
                Kind::TooLong,
                postcard::to_allocvec(&(*bytes as u64, *limit as u64)),
            ),
            other => (Kind::Unposted, postcard::to_allocvec(&other.to_string())),
        };
        let mut bytes = self.header(call, kind).encode().to_vec();
        bytes.extend(words.unwrap_or_default());
        // If not even this can be posted, there is no way to the client.
        let _ = self.reply().send(&bytes[..]);
    }

    /// Says something that has no value.
    pub(super) fn say(&self, call: u64, kind: Kind) {
        let _ = self.reply().send(&self.header(call, kind).encode());
    }

    fn header(&self, call: u64, kind: Kind) -> Header {
        Header {
            call,
            session: self.number,
            kind,
            patience_ms: 0,
        }
    }

    /// Nobody waits for the call any more.
    pub(super) fn cancel(&self, call: u64) {
        let mut running = lock(&self.running);
        // An async handler ends where it waits. One that another worker is just about to keep finds the word in time.
        match running.remove(&call) {
            Some(task) => {
                drop(running);
                drop(task);
            }
            None => {
                let mut cancelled = lock(&self.cancelled);
                // Most of these ended before the word came. Who forgets one computes in vain, no more.
                if cancelled.len() >= MOST_CANCELLED {
                    cancelled.clear();
                }
                cancelled.insert(call);
                self.has_cancelled.store(true, Ordering::Release);
            }
        }
    }

    /// Whether the client is gone, or the service has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(super) fn is_cancelled(&self, call: u64) -> bool {
        self.has_cancelled.load(Ordering::Acquire)
            && (self.closed.load(Ordering::Acquire) || lock(&self.cancelled).contains(&call))
    }

    /// The client is gone, or the service ends: nobody waits for any call, and async handlers end where they wait.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.has_cancelled.store(true, Ordering::Release);
        let running = core::mem::take(&mut *lock(&self.running));
        drop(running);
    }

    /// Says that nothing will be answered any more, if there is room to say so.
    pub(super) fn stop(&self) {
        let header = self.header(0, Kind::Stopped).encode();
        let mut message = Message::new();
        message.pack_cheaper(&header);
        if let Some(mut reply) = self.reply.try_lock() {
            let _ = reply.try_post(&mut message);
        }
        self.close();
    }

    /// A call has ended.
    pub(super) fn end(&self, call: u64) {
        if self.has_cancelled.load(Ordering::Acquire) {
            let mut cancelled = lock(&self.cancelled);
            cancelled.remove(&call);
            let any = !cancelled.is_empty() || self.closed.load(Ordering::Acquire);
            self.has_cancelled.store(any, Ordering::Release);
        }
    }

    /// An async handler is under way.
    pub(super) fn keep(&self, call: u64, task: async_task::Task<()>) {
        let mut running = lock(&self.running);
        running.retain(|_, other| !other.is_finished());
        if task.is_finished() {
            return;
        }
        if !self.is_cancelled(call) {
            running.insert(call, task);
            return;
        }
        drop(running);
        drop(task);
        self.end(call);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
