//! The calling side.

use core::fmt;
use core::future::poll_fn;
use core::marker::PhantomData;
use core::task::{Context, Poll};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mizzen_core::service::SHORT_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::calls::{Calls, Dropped, Ended, State};
use super::error::CallError;
use super::find;
use super::request::{Body, open};
use super::wire::{COMPACT_MAX, HEADER, Header, Kind};
use crate::deck::Deck;
use mizzen_core::Endpoint;
use mizzen_core::Mailbox;
use mizzen_core::MailboxRef;
use mizzen_core::Sender;
use mizzen_core::service::{Next, deadline_in};
use mizzen_core::{Error, FetchError, PostError, RetrieveError};
use mizzen_core::{Incoming, Message};
use mizzen_core::{ProcessId, Rank};

/// How many calls of one client may wait for their answers. Beginning one more waits for an answer first.
const WINDOW: usize = 256;

/// The calling side of a service: from [`Deck::client`](crate::Deck::client) and its kin. `A` is what the service takes, `R` what
/// it returns.
///
/// It has one owner, as a [`Sender`] has; [`again`](Self::again) makes another one. It finds the service when it is first used, and
/// finds it again if the process that served it is gone or serves it no more. What was under way then has failed: whether it
/// was carried out is not known, so nothing is called twice.
pub struct Client<A: ?Sized, R> {
    target: Target,
    session: u32,
    inbox: Mailbox,
    path: Option<Path>,
    /// Who was called last: errors name it also when the path to it is gone.
    last_server: Option<Rank>,
    patience: Duration,
    calls: Calls,
    dropped: Arc<Dropped>,
    _types: PhantomData<fn(&A) -> R>,
}

/// A call under way. [`Client::wait`] gives its result, at the client that began it. If it is dropped, the call is carried out
/// all the same, and its result is dropped when it comes.
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
enum Target {
    Any(String),
    At(String, Rank),
    Address(MailboxRef),
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
struct Waiting<'a, A: ?Sized, R> {
    client: &'a mut Client<A, R>,
    call: u64,
}

impl<A: ?Sized, R> Drop for Waiting<'_, A, R> {
    fn drop(&mut self) {
        // Nothing, if the answer was taken.
        self.client.give_up(self.call);
    }
}

/// Numbers of sessions, each for itself in this process.
static SESSIONS: AtomicU32 = AtomicU32::new(0);

impl<A: Serialize + ?Sized, R: DeserializeOwned> Client<A, R> {
    fn new(process: &Endpoint, target: Target) -> Result<Self, Error> {
        Ok(Self {
            target,
            session: 0,
            inbox: Mailbox::open_in(process)?,
            path: None,
            last_server: None,
            patience: Deck::FETCH_PATIENCE,
            calls: Calls::default(),
            dropped: Arc::default(),
            _types: PhantomData,
        })
    }

    pub(super) fn any(process: &Endpoint, name: &str) -> Result<Self, Error> {
        Self::new(process, Target::Any(name.to_owned()))
    }

    pub(super) fn at(process: &Endpoint, rank: Rank, name: &str) -> Result<Self, Error> {
        let (service, size) = (name.to_owned(), process.size());
        if rank.0 >= size {
            return Err(Error::from(CallError::NoSuchRank {
                service,
                rank,
                size,
            }));
        }
        Self::new(process, Target::At(service, rank))
    }

    pub(super) fn of(process: &Endpoint, address: MailboxRef) -> Result<Self, Error> {
        Self::new(process, Target::Address(address))
    }

    /// Another client of the same service, for another thread.
    ///
    /// # Errors
    ///
    /// [`MailboxError`](crate::MailboxError) if the process has as many mailboxes as it may.
    pub fn again(&self) -> Result<Self, Error> {
        let mut again = Self::new(self.inbox.process(), self.target.clone())?;
        again.patience = self.patience;
        Ok(again)
    }

    /// Calls, and waits for the result.
    ///
    /// # Errors
    ///
    /// [`CallError`] if there is none.
    #[inline]
    pub fn call(&mut self, arguments: &A) -> Result<R, CallError> {
        let call = self.begin(arguments, 0)?;
        self.wait_until(call, None)
    }

    /// As [`call`](Self::call), waiting at most as long as said. The service is told when nobody waits any more.
    ///
    /// # Errors
    ///
    /// [`CallError::TimedOut`] if the answer did not come in time; otherwise as [`call`](Self::call).
    pub fn call_timeout(&mut self, arguments: &A, timeout: Duration) -> Result<R, CallError> {
        let deadline = deadline_in(timeout);
        let call = self.begin(arguments, patience(timeout))?;
        self.wait_until(call, deadline)
    }

    /// Calls, for async tasks of any runtime. If the future is dropped, the call is [cancelled](Self::cancel).
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn call_async(&mut self, arguments: &A) -> Result<R, CallError> {
        let call = self.begin(arguments, 0)?;
        let (kind, body) = self.settle_async(call).await?;
        self.result(kind, body)
    }

    /// Begins a call. Up to 256 may be under way at once; one more waits until one of them was answered.
    ///
    /// ```
    /// mizzen::local(1, |deck| {
    ///     let _double = deck.serve("double", |x: u32| 2 * x)?;
    ///     let mut double = deck.client::<u32, u32>("double")?;
    ///     let calls: Vec<_> = (0..10).map(|x| double.start(&x)).collect::<Result<_, _>>()?;
    ///     for (x, call) in calls.into_iter().enumerate() {
    ///         assert_eq!(double.wait(call)?, 2 * x as u32);
    ///     }
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    #[inline]
    pub fn start(&mut self, arguments: &A) -> Result<Call<R>, CallError> {
        let number = self.begin(arguments, 0)?;
        Ok(self.call_of(number))
    }

    /// Waits for the result of a call that this client [began](Self::start).
    ///
    /// # Errors
    ///
    /// [`CallError::OtherClient`] if another client began it; otherwise as [`call`](Self::call).
    #[inline]
    pub fn wait(&mut self, call: Call<R>) -> Result<R, CallError> {
        let number = self.number_of(call)?;
        self.wait_until(number, None)
    }

    /// The same, for async tasks.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    pub async fn wait_async(&mut self, call: Call<R>) -> Result<R, CallError> {
        let number = self.number_of(call)?;
        let (kind, body) = self.settle_async(number).await?;
        self.result(kind, body)
    }

    /// Gives up a call: its result is not wanted, and the service is told so ([`is_cancelled`](crate::is_cancelled)).
    /// A call of another client is only dropped.
    pub fn cancel(&mut self, call: Call<R>) {
        if let Ok(number) = self.number_of(call) {
            self.give_up(number);
        }
    }

    /// Calls without waiting for anything: there is no result, and no news whether the call was carried out.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call), as far as sending goes.
    pub fn notify(&mut self, arguments: &A) -> Result<(), CallError> {
        self.ensure_path()?;
        let header = self.header(0, Kind::Notify, 0);
        self.send(header, arguments)
    }

    #[inline]
    fn begin(&mut self, arguments: &A, patience_ms: u32) -> Result<u64, CallError> {
        let number = self.reserve()?;
        let header = self.header(number, Kind::Call, patience_ms);
        if let Err(error) = self.send(header, arguments) {
            self.calls.end(number);
            return Err(error);
        }
        Ok(number)
    }

    #[inline]
    fn wait_until(&mut self, call: u64, deadline: Option<Instant>) -> Result<R, CallError> {
        let mut slot = [0; SHORT_MAX];
        let (kind, body) = self.settle(call, deadline, &mut slot)?;
        self.result(kind, body)
    }

    #[inline]
    fn send(&mut self, header: Header, arguments: &A) -> Result<(), CallError> {
        let mut short = [0; SHORT_MAX];
        short[..HEADER].copy_from_slice(&header.encode());
        if let Ok(used) = postcard::to_slice(arguments, &mut short[HEADER..]) {
            let len = HEADER + used.len();
            return self.post(|sender| sender.send(&short[..len]));
        }
        self.send_long(header, arguments)
    }

    #[cold]
    fn send_long(&mut self, header: Header, arguments: &A) -> Result<(), CallError> {
        let bytes = postcard::to_extend(arguments, header.encode().to_vec())
            .map_err(|error| self.not_posted(PostError::encode(error)))?;
        if bytes.len() <= COMPACT_MAX {
            return self.post(|sender| sender.send(&bytes[..]));
        }
        let mut message = Message::new();
        message.pack_cheaper(&bytes[HEADER..]);
        message.set_lead(Some(header.encode()));
        self.post(|sender| sender.post(&mut message))
    }

    #[inline]
    fn result(&self, kind: Kind, body: Body<'_>) -> Result<R, CallError> {
        if kind != Kind::Done {
            return Err(self.failure(kind, body));
        }
        body.decode().map_err(|cause| CallError::Answer {
            service: self.service(),
            cause,
        })
    }
}

/// The raw form: any pieces there, any pieces back.
impl<A: ?Sized, R> Client<A, R> {
    /// Calls a [raw service](crate::Deck::serve_raw) with a message, and waits for the message that is the answer: one message
    /// each way, from the memory that the pieces refer to straight into the memory that the other side unpacks them to.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn call_message<'m>(
        &mut self,
        message: &mut Message<'_>,
    ) -> Result<Incoming<'m>, CallError> {
        let call = self.start_message(message)?;
        self.wait_message(call)
    }

    /// Begins such a call.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub fn start_message(
        &mut self,
        message: &mut Message<'_>,
    ) -> Result<Call<Incoming<'static>>, CallError> {
        let number = self.reserve()?;
        message.set_lead(Some(self.header(number, Kind::Call, 0).encode()));
        let posted = self.post(|sender| sender.post(message));
        message.set_lead(None);
        if let Err(error) = posted {
            self.calls.end(number);
            return Err(error);
        }
        Ok(self.call_of(number))
    }

    /// Waits for the answer to such a call.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    pub fn wait_message<'m>(
        &mut self,
        call: Call<Incoming<'static>>,
    ) -> Result<Incoming<'m>, CallError> {
        let number = self.number_of(call)?;
        let mut slot = [0; SHORT_MAX];
        match self.settle(number, None, &mut slot)? {
            (Kind::Done, Body::Pieces(incoming)) => Ok(*incoming),
            (kind, body) => Err(self.failure(kind, body)),
        }
    }

    /// Sends a message to a raw service that is not answered.
    ///
    /// # Errors
    ///
    /// As [`notify`](Self::notify).
    pub fn notify_message(&mut self, message: &mut Message<'_>) -> Result<(), CallError> {
        self.ensure_path()?;
        message.set_lead(Some(self.header(0, Kind::Notify, 0).encode()));
        let posted = self.post(|sender| sender.post(message));
        message.set_lead(None);
        posted
    }

    /// Which life of which process is called, once the service was found.
    pub(crate) fn server(&self) -> Option<ProcessId> {
        self.path.as_ref().map(|path| path.server)
    }

    /// How long a call waits for somebody to serve the name, if nobody does yet. Without it:
    /// [`Deck::FETCH_PATIENCE`](crate::Deck::FETCH_PATIENCE).
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// The process that is called, once the service was found.
    #[must_use]
    pub fn rank(&self) -> Option<Rank> {
        match (&self.path, &self.target) {
            (Some(path), _) => Some(path.server.rank),
            (None, Target::At(_, rank)) => Some(*rank),
            (None, Target::Address(address)) => Some(address.rank()),
            (None, Target::Any(_)) => None,
        }
    }

    fn call_of<T>(&self, number: u64) -> Call<T> {
        Call {
            number,
            client: Some(Arc::clone(&self.dropped)),
            _result: PhantomData,
        }
    }

    /// The number of a call of ours, which is over for whoever had it.
    fn number_of<T>(&self, mut call: Call<T>) -> Result<u64, CallError> {
        let ours = |client: &mut Arc<Dropped>| Arc::ptr_eq(client, &self.dropped);
        match call.client.take_if(ours) {
            Some(_) => Ok(call.number),
            None => Err(CallError::OtherClient {
                service: self.service(),
            }),
        }
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

    fn header(&self, call: u64, kind: Kind, patience_ms: u32) -> Header {
        Header {
            call,
            session: self.session,
            kind,
            patience_ms,
        }
    }

    fn service(&self) -> String {
        match &self.target {
            Target::Any(name) | Target::At(name, _) => name.clone(),
            Target::Address(address) => format!("{address:?}"),
        }
    }

    /// A number for a new call, when there is room for it.
    #[inline]
    fn reserve(&mut self) -> Result<u64, CallError> {
        self.forget_dropped();
        self.ensure_path()?;
        while self.calls.waiting() >= WINDOW {
            self.take_answer(None, None, &mut [0; SHORT_MAX])?;
        }
        Ok(self.calls.begin())
    }

    #[inline]
    fn ensure_path(&mut self) -> Result<(), CallError> {
        if self.path.is_none() {
            self.find()?;
        }
        Ok(())
    }

    /// Finds the service, and opens a path to it.
    #[cold]
    fn find(&mut self) -> Result<(), CallError> {
        let process = self.inbox.process().clone();
        let patience = self.patience;
        let (found, rank) = match &self.target {
            Target::Any(name) => (find::of_any(&process, name, patience), None),
            Target::At(name, rank) => {
                let found = find::of_rank(&process, name, *rank, patience);
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
        self.inbox
            .wait_for_what(format!("for rank {server} to answer a call to {service:?}"));
        self.last_server = Some(server.rank);
        self.path = Some(Path { sender, server });
        Ok(())
    }

    #[inline]
    fn post(
        &mut self,
        post: impl FnOnce(&mut Sender) -> Result<(), PostError>,
    ) -> Result<(), CallError> {
        // Whoever posts has found the service before: the header names the session.
        let Some(path) = &mut self.path else {
            return Err(self.lost(Ended::Stopped));
        };
        match post(&mut path.sender) {
            Ok(()) => Ok(()),
            Err(cause) => Err(self.post_failed(cause)),
        }
    }

    #[cold]
    fn post_failed(&mut self, cause: PostError) -> CallError {
        let ended = match &cause {
            PostError::PeerGone(gone) => Some(Ended::Gone(*gone)),
            PostError::Closed { .. } => Some(Ended::Stopped),
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

    fn not_posted(&self, cause: PostError) -> CallError {
        CallError::Post {
            service: self.service(),
            cause,
        }
    }

    /// Waits for what comes of a call.
    #[inline]
    fn settle<'a>(
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

    async fn settle_async(&mut self, call: u64) -> Result<(Kind, Body<'static>), CallError> {
        let waiting = Waiting { client: self, call };
        poll_fn(|context| waiting.client.poll_settled(call, context)).await
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
            State::Answered(kind, body) => Ok((kind, body)),
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
        let is_server = self.path.as_ref().is_some_and(|path| path.server == source);
        if !is_server || header.session != self.session {
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
                keeper: None,
                near: Vec::new(),
            },
        }
    }

    fn give_up(&mut self, call: u64) {
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
    fn failure(&self, kind: Kind, body: Body<'_>) -> CallError {
        let service = self.service();
        let Some(rank) = self.server_rank() else {
            return self.not_served(Duration::ZERO);
        };
        match kind {
            Kind::Panicked => CallError::Panicked {
                service,
                rank,
                message: body.decode().unwrap_or_default(),
            },
            Kind::Refused => CallError::Refused {
                service,
                rank,
                cause: body.decode().unwrap_or_default(),
            },
            Kind::Unanswered => CallError::Unanswered { service, rank },
            Kind::TooLong => {
                let (bytes, limit) = body.decode().unwrap_or_default();
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
                cause: body.decode().unwrap_or_default(),
            },
            _ => CallError::Answer {
                service,
                cause: mizzen_core::UnpackError::Malformed,
            },
        }
    }
}

fn patience(timeout: Duration) -> u32 {
    u32::try_from(timeout.as_millis())
        .unwrap_or(u32::MAX)
        .max(1)
}

impl<A: ?Sized, R> Drop for Client<A, R> {
    fn drop(&mut self) {
        self.tell(Kind::Close, 0);
    }
}

impl<A: ?Sized, R> fmt::Debug for Client<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("service", &self.service())
            .field("rank", &self.rank())
            .finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for Call<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Call").field(&self.number).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_dropped_call_leaves_the_table() {
        static GO_ON: AtomicBool = AtomicBool::new(false);
        crate::local(1, |deck| {
            let _echo = deck.serve("echo", |x: u32| {
                while x == 0 && !GO_ON.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
                x
            })?;
            let mut echo = deck.client::<u32, u32>("echo")?;
            // Not answered when it is dropped: its late answer finds nobody.
            drop(echo.start(&0)?);
            GO_ON.store(true, Ordering::Release);
            for x in 1..1000 {
                drop(echo.start(&x)?);
            }
            let last = echo.start(&1000)?;
            assert_eq!(echo.wait(last)?, 1000);
            // The workers answer in any order: what is missing still comes.
            while echo.calls.waiting() > 0 {
                echo.take_answer(None, None, &mut [0; mizzen_core::service::SHORT_MAX])?;
            }
            assert_eq!(echo.calls.len(), 0, "calls in the table");
            Ok(())
        })
        .unwrap();
    }
}
