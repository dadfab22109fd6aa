//! The calling side: messages of any pieces.

use core::fmt;
use std::time::Duration;

use mizzen_core::service::Caller;
use mizzen_core::service::SHORT_MAX;
use mizzen_core::{Endpoint, Error, Incoming, Message, Rank};

use super::connection::{Call, Connection, Target};
use super::request::{Body, Pieces};
use super::wire::Kind;

/// The calling side of a [raw service](crate::Deck::serve_raw), made by [`Deck::raw_client`](crate::Deck::raw_client): messages
/// of any pieces go there and come back. For values, there is [`Client`](crate::Client).
///
/// ```
/// use mizzen::Message;
///
/// mizzen::local(1, |deck| {
///     let _echo = deck.serve_raw("length", |request| {
///         let (incoming, reply) = request.open();
///         reply.send(Message::new().pack_safer(&(incoming.next_len().unwrap_or(0) as u64)));
///     })?;
///     let mut length = deck.raw_client("length")?;
///     let mut answer = length.call(Message::new().pack_cheaper(&[1u8; 3000][..]))?;
///     assert_eq!(answer.unpack_express::<u64>()?, 3000);
///     Ok(())
/// }).unwrap();
/// ```
pub struct RawClient(Connection);

impl RawClient {
    pub(super) fn new(process: &Endpoint, target: Target) -> Result<Self, Error> {
        Connection::new(process, target).map(Self)
    }

    /// Another client of the same service, for another thread.
    ///
    /// # Errors
    ///
    /// [`MailboxError`](crate::MailboxError) if the process has no room for another mailbox.
    pub fn try_clone(&self) -> Result<Self, Error> {
        self.0.try_clone().map(Self)
    }

    /// Calls with a message, and waits for the message that is the answer: one message each way, from the memory that the pieces
    /// refer to straight into the memory that the other side unpacks them to.
    ///
    /// # Errors
    ///
    /// [`CallError`](crate::CallError) if there is no answer: [`Error::service`] finds it.
    #[track_caller]
    pub fn call<'m>(&mut self, message: &mut Message<'_>) -> Result<Incoming<'m>, Error> {
        let _call = Caller::enter();
        let number = self.begin(message)?;
        self.settle(number)
    }

    /// Begins a call. Up to 256 may be under way at once; the next one waits until one of them has been answered.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    #[track_caller]
    pub fn start(&mut self, message: &mut Message<'_>) -> Result<Call<Incoming<'static>>, Error> {
        let _call = Caller::enter();
        let number = self.begin(message)?;
        Ok(self.0.call_of(number))
    }

    /// Waits for the answer to a call that this client [began](Self::start).
    ///
    /// # Errors
    ///
    /// [`CallError::OtherClient`](crate::CallError::OtherClient) if another client began it; otherwise as [`call`](Self::call).
    #[track_caller]
    pub fn wait<'m>(&mut self, call: Call<Incoming<'static>>) -> Result<Incoming<'m>, Error> {
        let _call = Caller::enter();
        let number = self.0.number_of(call)?;
        self.settle(number)
    }

    /// Gives up a call: its answer is not wanted, and the service is told so. A call that another client began is only
    /// dropped.
    pub fn cancel(&mut self, call: Call<Incoming<'static>>) {
        if let Ok(number) = self.0.number_of(call) {
            self.0.give_up(number);
        }
    }

    /// Sends a message that is not answered.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call), as far as sending goes.
    #[track_caller]
    pub fn notify(&mut self, message: &mut Message<'_>) -> Result<(), Error> {
        let _call = Caller::enter();
        self.0.ensure_path()?;
        self.post(0, Kind::Notify, message)
    }

    /// How long a call waits for somebody to serve the name, if nobody does yet. By default,
    /// [`Deck::FETCH_TIMEOUT`](crate::Deck::FETCH_TIMEOUT).
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.0.set_timeout(timeout);
    }

    /// The process that is called, once the service was found.
    #[must_use]
    pub fn rank(&self) -> Option<Rank> {
        self.0.rank()
    }

    fn begin(&mut self, message: &mut Message<'_>) -> Result<u64, Error> {
        let number = self.0.reserve()?;
        if let Err(error) = self.post(number, Kind::Call, message) {
            self.0.forget(number);
            return Err(error);
        }
        Ok(number)
    }

    fn settle<'m>(&mut self, number: u64) -> Result<Incoming<'m>, Error> {
        match self.0.settle_pieces_quickly(number) {
            Some((Kind::Done, led)) => return Ok(led.open(self.0.process())),
            Some((kind, led)) => return Err(self.0.failure(kind, Body::Led(led)).into()),
            None => (),
        }
        let mut slot = [0; SHORT_MAX];
        let (kind, body) = self.0.settle(number, None, &mut slot)?;
        match Pieces::of(body) {
            Ok(pieces) if kind == Kind::Done => Ok(pieces.open(self.0.process())),
            Ok(pieces) => Err(self.0.failure(kind, pieces.into()).into()),
            Err(body) => Err(self.0.failure(kind, body).into()),
        }
    }

    fn post(&mut self, call: u64, kind: Kind, message: &mut Message<'_>) -> Result<(), Error> {
        Ok(self.0.post_message(call, kind, message)?)
    }
}

impl fmt::Debug for RawClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe(f.debug_struct("RawClient"))
    }
}
