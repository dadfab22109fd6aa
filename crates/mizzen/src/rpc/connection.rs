//! A client's connection to its service: finding it, posting to it, taking its answers.

use core::fmt;
use core::future::poll_fn;
use core::marker::PhantomData;
use core::task::{Context, Poll};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use mizzen_core::service::{Kind as WaitKind, WaitsFor};
use mizzen_core::service::{SHORT_MAX, quick_looks};

use super::calls::{Calls, Dropped, Ended, State};
use super::error::CallError;
use super::find;
use super::request::{Body, open};
use super::wire::{HEADER, Header, Kind};
use crate::deck::Deck;
use mizzen_core::Endpoint;
use mizzen_core::Mailbox;
use mizzen_core::MailboxRef;
use mizzen_core::Message;
use mizzen_core::Sender;
use mizzen_core::service::{Led, Next};
use mizzen_core::{Borrowed, Error, FetchError, Plain, PostError, RetrieveError};
use mizzen_core::{ProcessId, Rank};

/// How many calls of one client may wait for their answers. Beginning one more waits for an answer first.
const WINDOW: usize = 256;

/// The connection of one client. It finds the service when it is first used, and finds it again if the process that served it
/// is gone or serves it no more.
pub(super) struct Connection {
    target: Target,
    session: u32,
    inbox: Mailbox,
    path: Option<Path>,
    /// Who was called last: errors name it also when the path to it is gone.
    last_server: Option<Rank>,
    timeout: Duration,
    calls: Calls,
    dropped: Arc<Dropped>,
}

/// A call under way. `wait` of the client that began it gives its result. If it is dropped, the call is still carried
/// out, and its result is dropped when it comes.
#[must_use = "`wait` gives its result, and `cancel` says that it is not wanted"]
pub struct Call<R> {
    number: u64,
    /// Whose it is, and where its end is noted. `None` when it was handed back.
    client: Option<Arc<Dropped>>,
    _result: PhantomData<fn() -> R>,
}

impl<R> Drop for Call<R> {
    fn drop(&mut self) {
        if let Some(client) = &self.client {
            client.add(self.number);
        }
    }
}

/// Who is called.
#[derive(Clone)]
pub(super) enum Target {
    Any(String),
    At(String, Rank),
    Address(MailboxRef),
}

impl Target {
    /// Whoever serves the name.
    pub(crate) fn any(name: &str) -> Self {
        Self::Any(name.to_owned())
    }

    /// One process.
    pub(crate) fn at(process: &Endpoint, rank: Rank, name: &str) -> Result<Self, CallError> {
        let (service, size) = (name.to_owned(), process.size());
        if rank >= size {
            return Err(CallError::NoSuchRank {
                service,
                rank,
                size,
            });
        }
        Ok(Self::At(service, rank))
    }
}

struct Path {
    sender: Sender,
    server: ProcessId,
}

/// What a message to a client was.
enum Answer {
    /// The answer that was waited for: so many bytes of the slot, with its header.
    Short(Kind, usize),
    /// The same, elsewhere.
    Other(Kind, Body<'static>),
    /// Something else, which was seen to.
    No,
}

/// A future that waits for the answer to a call.
struct Waiting<'a> {
    connection: &'a mut Connection,
    call: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // Nothing, if the answer was taken.
        self.connection.give_up(self.call);
    }
}

/// Numbers of sessions, each for itself in this process.
static SESSIONS: AtomicU32 = AtomicU32::new(0);

impl Connection {
    pub(super) fn new(process: &Endpoint, target: Target) -> Result<Self, Error> {
        Ok(Self {
            target,
            session: 0,
            inbox: Mailbox::open_in(process)?,
            path: None,
            last_server: None,
            timeout: Deck::FETCH_TIMEOUT,
            calls: Calls::default(),
            dropped: Arc::default(),
        })
    }

    /// Another one to the same service.
    pub(super) fn try_clone(&self) -> Result<Self, Error> {
        let mut clone = Self::new(self.inbox.process(), self.target.clone())?;
        clone.timeout = self.timeout;
        Ok(clone)
    }

    /// Which life of which process is called, once the service was found.
    pub(super) fn server(&self) -> Option<ProcessId> {
        self.path.as_ref().map(|path| path.server)
    }

    /// The process that calls.
    pub(super) fn process(&self) -> &Endpoint {
        self.inbox.process()
    }

    /// How long to wait for somebody to serve the name.
    pub(super) fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// The process that is called, once the service was found.
    pub(super) fn rank(&self) -> Option<Rank> {
        match (&self.path, &self.target) {
            (Some(path), _) => Some(path.server.rank),
            (None, Target::At(_, rank)) => Some(*rank),
            (None, Target::Address(address)) => Some(address.rank()),
            (None, Target::Any(_)) => None,
        }
    }

    pub(super) fn call_of<T>(&self, number: u64) -> Call<T> {
        Call {
            number,
            client: Some(Arc::clone(&self.dropped)),
            _result: PhantomData,
        }
    }

    /// The number of a call of ours, which is over for whoever had it.
    pub(super) fn number_of<T>(&self, mut call: Call<T>) -> Result<u64, CallError> {
        let ours = |client: &mut Arc<Dropped>| Arc::ptr_eq(client, &self.dropped);
        match call.client.take_if(ours) {
            Some(_) => Ok(call.number),
            None => Err(CallError::OtherClient {
                service: self.service(),
            }),
        }
    }

    /// A call that was not made.
    #[cold]
    pub(super) fn forget(&mut self, call: u64) {
        self.calls.end(call);
    }

    /// The value of an answer.
    #[inline]
    pub(super) fn decode<R: DeserializeOwned>(&self, body: Body<'_>) -> Result<R, CallError> {
        body.decode(self.inbox.process())
            .map_err(|cause| self.unreadable(cause))
    }

    /// The value of an answer, and the lent buffer behind it, if there is one.
    pub(super) fn decode_lent<R: DeserializeOwned, U: Plain>(
        &self,
        body: Body<'_>,
    ) -> Result<(R, Option<Borrowed<U>>), CallError> {
        body.decode_lent(self.inbox.process())
            .map_err(|cause| self.unreadable(cause))
    }

    #[cold]
    fn unreadable(&self, cause: Error) -> CallError {
        CallError::Answer {
            service: self.service(),
            cause: Box::new(cause),
        }
    }

    /// What an answer says that is no result.
    fn words<T: DeserializeOwned + Default>(&self, body: Body<'_>) -> T {
        body.decode(self.inbox.process()).unwrap_or_default()
    }

    /// Takes answers until every call that was begun is over: how many are left in the table.
    #[cfg(test)]
    pub(super) fn settle_all(&mut self) -> Result<usize, CallError> {
        while self.calls.waiting() > 0 {
            self.take_answer(None, None, &mut [0; SHORT_MAX])?;
        }
        Ok(self.calls.len())
    }

    /// What a client shows of itself.
    pub(super) fn describe(&self, mut client: fmt::DebugStruct<'_, '_>) -> fmt::Result {
        client
            .field("service", &self.service())
            .field("rank", &self.rank())
            .finish_non_exhaustive()
    }

    /// Calls that were dropped leave the table.
    #[inline]
    fn forget_dropped(&mut self) {
        if self.dropped.any() {
            for call in self.dropped.take() {
                self.calls.abandon(call);
            }
        }
    }

    pub(super) fn header(&self, call: u64, kind: Kind, patience_ms: u32) -> Header {
        Header {
            call,
            session: self.session,
            kind,
            patience_ms,
        }
    }

    pub(super) fn service(&self) -> String {
        match &self.target {
            Target::Any(name) | Target::At(name, _) => name.clone(),
            Target::Address(address) => format!("{address:?}"),
        }
    }

    /// A number for a new call, when there is room for it.
    #[inline]
    pub(super) fn reserve(&mut self) -> Result<u64, CallError> {
        self.forget_dropped();
        self.ensure_path()?;
        while self.calls.waiting() >= WINDOW {
            self.take_answer(None, None, &mut [0; SHORT_MAX])?;
        }
        Ok(self.calls.begin())
    }

    #[inline]
    pub(super) fn ensure_path(&mut self) -> Result<(), CallError> {
        if self.path.is_none() {
            self.find()?;
        }
        Ok(())
    }

    /// Finds the service, and opens a path to it.
    #[cold]
    fn find(&mut self) -> Result<(), CallError> {
        let process = self.inbox.process().clone();
        let timeout = self.timeout;
        let (found, rank) = match &self.target {
            Target::Any(name) => (find::of_any(&process, name, timeout), None),
            Target::At(name, rank) => {
                let found = find::of_rank_unless_gone(&process, name, *rank, timeout);
                let found = found.map_err(|gone| CallError::PeerGone {
                    service: self.service(),
                    gone,
                })?;
                (found, Some(*rank))
            }
            Target::Address(address) => (Ok(address.full_address()), None),
        };
        let address = found.map_err(|cause| CallError::NotServed {
            service: self.service(),
            rank,
            cause,
        })?;
        let server = address.process;
        // What an earlier service still says is not for this one.
        self.session = SESSIONS.fetch_add(1, Ordering::Relaxed) % Header::SESSIONS;
        let sender = MailboxRef::new(process, address).sender();
        let mut sender = sender.map_err(|cause| self.not_posted(cause))?;
        let mut hello = [0; HEADER + 16];
        hello[..HEADER].copy_from_slice(&self.header(0, Kind::Open, 0).encode());
        hello[HEADER..].copy_from_slice(&self.inbox.address().to_bytes());
        sender
            .send(&hello)
            .map_err(|cause| self.not_posted(cause))?;
        self.inbox.depend_on(server.rank);
        let service = self.service();
        let what = format!("for rank {server} to answer a call to {service:?}");
        let waits = WaitsFor::one(WaitKind::Answer, server.rank, what);
        self.inbox.wait_for_what(waits);
        self.last_server = Some(server.rank);
        self.path = Some(Path { sender, server });
        Ok(())
    }

    #[inline]
    pub(super) fn post<T>(
        &mut self,
        post: impl FnOnce(&mut Sender) -> Result<T, Error>,
    ) -> Result<T, CallError> {
        // Whoever posts has found the service before: the header names the session.
        let Some(path) = &mut self.path else {
            return Err(self.lost(Ended::Stopped));
        };
        match post(&mut path.sender) {
            Ok(posted) => Ok(posted),
            Err(cause) => Err(self.post_failed(cause)),
        }
    }

    /// Posts a message behind the header of a call.
    pub(super) fn post_message(
        &mut self,
        call: u64,
        kind: Kind,
        message: &mut Message<'_>,
    ) -> Result<(), CallError> {
        message.set_lead(Some(self.header(call, kind, 0).encode()));
        let posted = self.post(|sender| sender.post_in_place(message));
        message.set_lead(None);
        posted
    }

    #[cold]
    fn post_failed(&mut self, cause: Error) -> CallError {
        let ended = match &cause {
            Error::Post(PostError::PeerGone(gone)) => Some(Ended::Gone(*gone)),
            Error::Post(PostError::Closed { .. }) => Some(Ended::Stopped),
            _ => None,
        };
        match ended {
            Some(ended) => {
                let error = self.lost(ended);
                self.lose(ended);
                error
            }
            None => self.not_posted(cause),
        }
    }

    pub(super) fn not_posted(&self, cause: Error) -> CallError {
        CallError::Post {
            service: self.service(),
            cause: Box::new(cause),
        }
    }

    /// The answer to a call, if it is the only one, and the answer is short and comes at once, as most do: what it is, and how many bytes
    /// of the slot.
    #[inline]
    pub(super) fn settle_quickly(
        &mut self,
        call: u64,
        slot: &mut [u8; SHORT_MAX],
    ) -> Option<(Kind, usize)> {
        if !self.calls.is_alone(call) {
            return None;
        }
        let (len, source) = self.inbox.take_quickly(slot, quick_looks())?;
        let header = Header::decode(&slot[..len]);
        let Some(header) = header.filter(|header| self.is_answer(header, call, source)) else {
            self.file_other(len, source, slot);
            return None;
        };
        self.calls.end(call);
        Some((header.kind, len))
    }

    /// The same for an answer of any pieces.
    #[inline]
    pub(super) fn settle_pieces_quickly(&mut self, call: u64) -> Option<(Kind, Led)> {
        if !self.calls.is_alone(call) {
            return None;
        }
        let (lead, led) = self.inbox.take_led_quickly(quick_looks())?;
        let header =
            Header::decode(&lead).filter(|header| self.is_answer(header, call, led.source()));
        let Some(header) = header else {
            self.file(None, Ok(Next::Led(lead, led)), &[]);
            return None;
        };
        self.calls.end(call);
        Some((header.kind, led))
    }

    /// Whether this is the answer to a call, and no other news of the service.
    #[inline]
    fn is_answer(&self, header: &Header, call: u64, source: ProcessId) -> bool {
        header.call == call
            && header.session == self.session
            && header.kind != Kind::Stopped
            && self.is_server(source)
    }

    /// Something else was taken.
    #[cold]
    fn file_other(&mut self, len: usize, source: ProcessId, slot: &[u8]) {
        self.file(None, Ok(Next::Short { len, source }), slot);
    }

    fn is_server(&self, source: ProcessId) -> bool {
        self.path.as_ref().is_some_and(|path| path.server == source)
    }

    /// Waits for what comes of a call.
    #[inline]
    pub(super) fn settle<'a>(
        &mut self,
        call: u64,
        deadline: Option<Instant>,
        slot: &'a mut [u8; SHORT_MAX],
    ) -> Result<(Kind, Body<'a>), CallError> {
        let (kind, len) = loop {
            if let Some(state) = self.calls.take(call) {
                return self.settled(state);
            }
            match self.take_answer(Some(call), deadline, slot) {
                Ok(Answer::Short(kind, len)) => break (kind, len),
                Ok(Answer::Other(kind, body)) => return Ok((kind, body)),
                Ok(Answer::No) => (),
                Err(error) => {
                    self.give_up(call);
                    return Err(error);
                }
            }
        };
        Ok((kind, Body::Value(&slot[HEADER..len])))
    }

    pub(super) async fn settle_async(
        &mut self,
        call: u64,
    ) -> Result<(Kind, Body<'static>), CallError> {
        let waiting = Waiting {
            connection: self,
            call,
        };
        poll_fn(|context| waiting.connection.poll_settled(call, context)).await
    }

    fn poll_settled(
        &mut self,
        call: u64,
        context: &mut Context<'_>,
    ) -> Poll<Result<(Kind, Body<'static>), CallError>> {
        loop {
            if let Some(state) = self.calls.take(call) {
                return Poll::Ready(self.settled(state));
            }
            match self.inbox.poll_take(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(taken) => {
                    let next = taken.map(Next::Other);
                    if let Answer::Other(kind, body) = self.file(Some(call), next, &[]) {
                        return Poll::Ready(Ok((kind, body)));
                    }
                }
            }
        }
    }

    fn settled(&self, state: State) -> Result<(Kind, Body<'static>), CallError> {
        match state {
            State::Answered(answer) => Ok(*answer),
            State::Lost(ended) => Err(self.lost(ended)),
            State::Waiting | State::Abandoned | State::Over => Err(CallError::NoSuchCall {
                service: self.service(),
            }),
        }
    }

    /// Takes one answer: that to `wanted` is returned, another one kept for who waits for it.
    #[inline]
    fn take_answer(
        &mut self,
        wanted: Option<u64>,
        deadline: Option<Instant>,
        slot: &mut [u8; SHORT_MAX],
    ) -> Result<Answer, CallError> {
        match self.inbox.take(deadline, slot) {
            Err(RetrieveError::TimedOut { waited }) => Err(self.timed_out(waited)),
            next => Ok(self.file(wanted, next, slot)),
        }
    }

    #[cold]
    fn timed_out(&self, waited: Duration) -> CallError {
        match self.server_rank() {
            Some(rank) => CallError::TimedOut {
                service: self.service(),
                rank,
                waited,
            },
            None => self.not_served(waited),
        }
    }

    #[inline]
    fn file(
        &mut self,
        wanted: Option<u64>,
        next: Result<Next, RetrieveError>,
        slot: &[u8],
    ) -> Answer {
        let next = match next {
            Ok(next) => next,
            Err(error) => {
                self.note_gone(&error);
                return Answer::No;
            }
        };
        let Some((source, header, body)) = open(&self.inbox, next, slot) else {
            return Answer::No;
        };
        if !self.is_server(source) || header.session != self.session {
            return Answer::No;
        }
        if header.kind == Kind::Stopped {
            self.lose(Ended::Stopped);
        } else if wanted == Some(header.call) && self.calls.is_waiting(header.call) {
            self.calls.end(header.call);
            return match body {
                Body::Value(value) => Answer::Short(header.kind, HEADER + value.len()),
                other => Answer::Other(header.kind, other.keep()),
            };
        } else {
            self.calls.answer(header.call, header.kind, body);
        }
        Answer::No
    }

    #[cold]
    fn note_gone(&mut self, error: &RetrieveError) {
        if let RetrieveError::PeerGone(gone) = error {
            let server = self.path.as_ref().map(|path| path.server);
            if server == Some(gone.process()) {
                self.lose(Ended::Gone(*gone));
            }
        }
    }

    /// The service is not there any more: the next call looks for it again.
    #[cold]
    fn lose(&mut self, ended: Ended) {
        self.path = None;
        self.calls.lose(ended);
    }

    fn lost(&self, ended: Ended) -> CallError {
        let service = self.service();
        match ended {
            Ended::Gone(gone) => CallError::PeerGone { service, gone },
            Ended::Stopped => match self.server_rank() {
                Some(rank) => CallError::Stopped { service, rank },
                None => self.not_served(Duration::ZERO),
            },
        }
    }

    /// Who is called, or was before the path to it was lost.
    fn server_rank(&self) -> Option<Rank> {
        self.rank().or(self.last_server)
    }

    fn not_served(&self, waited: Duration) -> CallError {
        let name = self.service();
        CallError::NotServed {
            service: self.service(),
            rank: None,
            cause: FetchError::Unbound {
                name,
                waited,
                near: Vec::new(),
            },
        }
    }

    pub(super) fn give_up(&mut self, call: u64) {
        if self.calls.is_waiting(call) {
            self.tell(Kind::Cancel, call);
        }
        self.calls.end(call);
    }

    /// Tells the service something that is not worth waiting for.
    fn tell(&mut self, kind: Kind, call: u64) {
        let header = self.header(call, kind, 0).encode();
        if let Some(path) = &mut self.path {
            let mut message = Message::new();
            message.pack_cheaper(&header);
            let _ = path.sender.try_post(&mut message);
        }
    }

    #[cold]
    pub(super) fn failure(&self, kind: Kind, body: Body<'_>) -> CallError {
        let service = self.service();
        let Some(rank) = self.server_rank() else {
            return self.not_served(Duration::ZERO);
        };
        match kind {
            Kind::Panicked => CallError::Panicked {
                service,
                rank,
                message: self.words(body),
            },
            Kind::Refused => CallError::Refused {
                service,
                rank,
                cause: self.words(body),
            },
            Kind::Unanswered => CallError::Unanswered { service, rank },
            Kind::TooLong => {
                let (bytes, limit) = self.words(body);
                CallError::AnswerTooLong {
                    service,
                    rank,
                    bytes,
                    limit,
                }
            }
            Kind::Unposted => CallError::AnswerNotPosted {
                service,
                rank,
                cause: self.words(body),
            },
            _ => CallError::Answer {
                service,
                cause: Box::new(mizzen_core::UnpackError::Malformed.into()),
            },
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.tell(Kind::Close, 0);
    }
}

impl<R> fmt::Debug for Call<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Call").field(&self.number).finish()
    }
}
