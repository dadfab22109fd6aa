//! The calling side: values.

use core::fmt;
use core::marker::PhantomData;
use std::time::{Duration, Instant};

use mizzen_core::service::{Caller, SHORT_MAX, deadline_in};
use mizzen_core::{Endpoint, Error, Message, PostError, ProcessId, Rank};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::connection::{Call, Connection, Target};
use super::error::CallError;
use super::request::Body;
use super::wire::{COMPACT_MAX, HEADER, Header, Kind};

/// The calling side of a service, made by [`Deck::client`](crate::Deck::client) and its variants. `A` is what the service takes,
/// `R` what it returns.
///
/// It has one owner, as a [`Sender`](crate::Sender) has; [`try_clone`](Self::try_clone) makes another one. It finds the
/// service when it is first used, and finds it again if the process that served it is gone or serves it no longer. Calls that
/// were under way have failed then: it is not known whether they were carried out, so nothing is called twice.
pub struct Client<A: ?Sized, R> {
    pub(super) connection: Connection,
    _types: PhantomData<fn(&A) -> R>,
}

impl<A: Serialize + ?Sized, R: DeserializeOwned> Client<A, R> {
    pub(super) fn new(process: &Endpoint, target: Target) -> Result<Self, Error> {
        Ok(Self {
            connection: Connection::new(process, target)?,
            _types: PhantomData,
        })
    }

    /// Another client of the same service, for another thread.
    ///
    /// # Errors
    ///
    /// [`MailboxError`](crate::MailboxError) if the process has no room for another mailbox.
    pub fn try_clone(&self) -> Result<Self, Error> {
        Ok(Self {
            connection: self.connection.try_clone()?,
            _types: PhantomData,
        })
    }

    /// Calls, and waits for the result.
    ///
    /// # Errors
    ///
    /// [`CallError`] if there is none: [`Error::service`] finds it.
    #[inline]
    #[track_caller]
    pub fn call(&mut self, arguments: &A) -> Result<R, Error> {
        let _call = Caller::enter();
        let call = self.begin(arguments, 0)?;
        Ok(self.wait_until(call, None)?)
    }

    /// As [`call`](Self::call), but waits for at most `timeout`. The service is told when nobody waits any more.
    ///
    /// # Errors
    ///
    /// [`CallError::TimedOut`] if the answer did not come in time; otherwise as [`call`](Self::call).
    #[track_caller]
    pub fn call_timeout(&mut self, arguments: &A, timeout: Duration) -> Result<R, Error> {
        let _call = Caller::enter();
        let deadline = deadline_in(timeout);
        let call = self.begin(arguments, patience(timeout))?;
        Ok(self.wait_until(call, deadline)?)
    }

    /// Calls, for async tasks of any runtime. If the future is dropped, the call is [cancelled](Self::cancel).
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn call_async(&mut self, arguments: &A) -> Result<R, Error> {
        let call = self.begin(arguments, 0)?;
        let (kind, body) = self.connection.settle_async(call).await?;
        Ok(self.result(kind, body)?)
    }

    /// Begins a call. Up to 256 may be under way at once; the next one waits until one of them has been answered.
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
    #[track_caller]
    pub fn start(&mut self, arguments: &A) -> Result<Call<R>, Error> {
        let _call = Caller::enter();
        let number = self.begin(arguments, 0)?;
        Ok(self.connection.call_of(number))
    }

    /// Waits for the result of a call that this client [began](Self::start).
    ///
    /// # Errors
    ///
    /// [`CallError::OtherClient`] if another client began it; otherwise as [`call`](Self::call).
    #[inline]
    #[track_caller]
    pub fn wait(&mut self, call: Call<R>) -> Result<R, Error> {
        let _call = Caller::enter();
        let number = self.connection.number_of(call)?;
        Ok(self.wait_until(number, None)?)
    }

    /// The same, for async tasks.
    ///
    /// # Errors
    ///
    /// As [`wait`](Self::wait).
    pub async fn wait_async(&mut self, call: Call<R>) -> Result<R, Error> {
        let number = self.connection.number_of(call)?;
        let (kind, body) = self.connection.settle_async(number).await?;
        Ok(self.result(kind, body)?)
    }

    /// Gives up a call: its result is not wanted, and the service is told so ([`is_cancelled`](crate::is_cancelled)).
    /// A call that another client began is only dropped.
    pub fn cancel(&mut self, call: Call<R>) {
        if let Ok(number) = self.connection.number_of(call) {
            self.connection.give_up(number);
        }
    }

    /// Calls without waiting for anything: there is no result, and no word on whether the call was carried out.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call), as far as sending goes.
    #[track_caller]
    pub fn notify(&mut self, arguments: &A) -> Result<(), Error> {
        let _call = Caller::enter();
        self.connection.ensure_path()?;
        let header = self.connection.header(0, Kind::Notify, 0);
        Ok(self.send(header, arguments)?)
    }

    #[inline]
    fn begin(&mut self, arguments: &A, patience_ms: u32) -> Result<u64, CallError> {
        let number = self.connection.reserve()?;
        let header = self.connection.header(number, Kind::Call, patience_ms);
        if let Err(error) = self.send(header, arguments) {
            self.connection.forget(number);
            return Err(error);
        }
        Ok(number)
    }

    #[inline]
    fn wait_until(&mut self, call: u64, deadline: Option<Instant>) -> Result<R, CallError> {
        let mut slot = [0; SHORT_MAX];
        let (kind, body) = match self.connection.settle_quickly(call, &mut slot) {
            Some((kind, len)) => (kind, Body::Value(&slot[HEADER..len])),
            None => self.connection.settle(call, deadline, &mut slot)?,
        };
        self.result(kind, body)
    }

    #[inline]
    fn send(&mut self, header: Header, arguments: &A) -> Result<(), CallError> {
        let mut short = [0; SHORT_MAX];
        if let Some(len) = header.encode_with(arguments, &mut short) {
            return self.connection.post(|sender| sender.send_slot(&short, len));
        }
        self.send_long(header, arguments)
    }

    #[cold]
    fn send_long(&mut self, header: Header, arguments: &A) -> Result<(), CallError> {
        let bytes = postcard::to_extend(arguments, header.encode().to_vec())
            .map_err(|error| self.connection.not_posted(PostError::encode(error).into()))?;
        if bytes.len() <= COMPACT_MAX {
            return self.connection.post(|sender| sender.send(&bytes[..]));
        }
        let mut message = Message::new();
        message.pack_cheaper(&bytes[HEADER..]);
        message.set_lead(Some(header.encode()));
        self.connection
            .post(|sender| sender.post_in_place(&mut message))
    }

    #[inline]
    fn result(&self, kind: Kind, body: Body<'_>) -> Result<R, CallError> {
        if kind != Kind::Done {
            return Err(self.connection.failure(kind, body));
        }
        self.connection.decode(body)
    }
}

impl<A: ?Sized, R> Client<A, R> {
    /// Which life of which process is called, once the service was found.
    pub(crate) fn server(&self) -> Option<ProcessId> {
        self.connection.server()
    }

    /// How long a call waits for somebody to serve the name, if nobody does yet. By default,
    /// [`Deck::FETCH_TIMEOUT`](crate::Deck::FETCH_TIMEOUT).
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.connection.set_timeout(timeout);
    }

    /// The process that is called, once the service was found.
    #[must_use]
    pub fn rank(&self) -> Option<Rank> {
        self.connection.rank()
    }
}

fn patience(timeout: Duration) -> u32 {
    u32::try_from(timeout.as_millis())
        .unwrap_or(u32::MAX)
        .max(1)
}

impl<A: ?Sized, R> fmt::Debug for Client<A, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.connection.describe(f.debug_struct("Client"))
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
            assert_eq!(echo.connection.settle_all()?, 0, "calls in the table");
            Ok(())
        })
        .unwrap();
    }
}
