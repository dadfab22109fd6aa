//! Calls that pass lent buffers, so that on one host neither a large argument nor a large result is copied.

use core::marker::PhantomData;
use std::sync::Arc;

use mizzen_core::service::{Buffer, Caller, SHORT_MAX};
use mizzen_core::{Borrowed, Error, LentBuffer, Message, Plain, Sender, UnpackError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::client::Client;
use super::handler::{Handler, carry_out};
use super::request::Asked;
use super::session::Session;
use super::wire::Kind;

impl<A: Serialize + ?Sized, R: DeserializeOwned> Client<A, R> {
    /// Calls a [service of lent buffers](crate::Deck::serve_lent), and waits for the result. The buffer moves to the service, and
    /// what the service lends moves here: on one host neither is copied, however long they are. The result may have no buffer.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call). The service refuses to be called if it takes no buffer, or one of another type. The buffer has
    /// gone back to its owner then.
    #[track_caller]
    pub fn call_lent<U: Plain>(
        &mut self,
        arguments: &A,
        buffer: impl LentBuffer,
    ) -> Result<(R, Option<Borrowed<U>>), Error> {
        let _call = Caller::enter();
        let number = self.connection.reserve()?;
        if let Err(error) = self.post_lent(number, arguments, buffer) {
            self.connection.forget(number);
            return Err(error);
        }
        let mut slot = [0; SHORT_MAX];
        match self.connection.settle(number, None, &mut slot)? {
            (Kind::Done, body) => Ok(self.connection.decode_lent(body)?),
            (kind, body) => Err(self.connection.failure(kind, body).into()),
        }
    }

    fn post_lent(
        &mut self,
        number: u64,
        arguments: &A,
        buffer: impl LentBuffer,
    ) -> Result<(), Error> {
        let mut short = [0; SHORT_MAX];
        let header = self.connection.header(number, Kind::Call, 0);
        let mut buffer = Buffer::of(buffer);
        if let Some(len) = header.encode_with(arguments, &mut short) {
            let hand_over = |sender: &mut Sender| Ok(sender.hand_over(&short[..len], buffer)?);
            match self.connection.post(hand_over)? {
                None => return Ok(()),
                Some(left) => buffer = left,
            }
        }
        let mut message = Message::new();
        message
            .pack_value(arguments)
            .map_err(|cause| self.connection.not_posted(cause))?
            .pack_buffer(buffer);
        Ok(self
            .connection
            .post_message(number, Kind::Call, &mut message)?)
    }
}

/// A function from arguments and a lent buffer to a result, and perhaps a buffer.
pub(super) struct Lending<F, A, T>(F, PhantomData<fn(A, T)>);

impl<F, A, T> Lending<F, A, T> {
    pub(super) fn new(function: F) -> Self {
        Self(function, PhantomData)
    }
}

impl<A, T, R, L, F> Handler for Lending<F, A, T>
where
    A: DeserializeOwned,
    T: Plain,
    R: Serialize,
    L: LentBuffer,
    F: Fn(A, Borrowed<T>) -> (R, Option<L>) + Send + Sync,
{
    fn handle(&self, asked: Asked<'_>) -> Option<Arc<Session>> {
        let (call, wanted) = (asked.header.call, asked.is_wanted());
        let read = asked.read_as(|body, process| match body.decode_lent(process)? {
            (arguments, Some(buffer)) => Ok((arguments, buffer)),
            (_, None) => Err(UnpackError::NotLent.into()),
        });
        let (session, (arguments, buffer)) = read?;
        let function = || (self.0)(arguments, buffer);
        carry_out(
            session,
            call,
            wanted,
            function,
            |session, outcome| match outcome {
                (result, Some(buffer)) => session.answer_lent(call, &result, buffer),
                (result, None) => session.answer(call, Kind::Done, &result),
            },
        )
    }
}
