//! Remote procedures: services by name, and calls to them.
//!
//! A service is a mailbox that the workers of its process look at. A client opens a path to it with a message that names its own
//! mailbox; from then on a call is one message there, and the answer is one message back. Arguments and results of any serde
//! type go with the call's header in one message. In the raw form any pieces follow the header: the service unpacks the first
//! of them, makes memory for the rest, and the rest goes straight there.
//!
//! | file | subject |
//! | --- | --- |
//! | `wire.rs` | the header before arguments and results |
//! | `service.rs` | what is served: its mailbox, and who is served |
//! | `session.rs` | the way back to one client |
//! | `handler.rs` | the program's functions: plain, async, raw |
//! | `request.rs` | an unopened request, and its reply |
//! | `client.rs`, `raw.rs` | the calling side: values, messages |
//! | `lent.rs` | calls that pass lent buffers, both sides |
//! | `connection.rs`, `calls.rs` | its connection to the service, and its calls under way |
//! | `find.rs` | who serves a name |
//! | `error.rs` | why a call failed |

mod calls;
mod client;
mod connection;
mod error;
mod find;
mod handler;
mod lent;
mod raw;
mod request;
mod service;
mod session;
mod sessions;
mod wire;

pub use client::Client;
pub use connection::Call;
use connection::Target;
pub use error::CallError;
pub use handler::is_cancelled;
pub use raw::RawClient;
pub use request::{Reply, Request};
pub use service::Service;

use core::future::Future;
use core::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::deck::Deck;
use mizzen_core::Error;
use mizzen_core::MailboxRef;
use mizzen_core::Rank;
use mizzen_core::service::Caller;
use mizzen_core::{Borrowed, LentBuffer, Plain};

/// Remote procedures.
impl Deck {
    /// Serves a function under a name: any process may call it. It runs on the workers of this process, several calls at a
    /// time if there are several workers. An error that it returns reaches the caller with its type.
    ///
    /// ```
    /// mizzen::local(2, |deck| {
    ///     let root = |x: f64| if x < 0.0 { Err(format!("{x} has no root")) } else { Ok(x.sqrt()) };
    ///     let _service = (deck.rank() == 0).then(|| deck.serve("root", root)).transpose()?;
    ///     let mut root = deck.client::<f64, Result<f64, String>>("root")?;
    ///     assert_eq!(root.call(&9.0)?, Ok(3.0));
    ///     assert_eq!(root.call(&-1.0)?, Err("-1 has no root".to_owned()));
    ///     // A service ends with its process: this serves until nobody calls any more.
    ///     deck.finish()
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`BindError::Taken`](crate::BindError::Taken) if this process serves the name already.
    pub fn serve<A, R>(
        &self,
        name: &str,
        function: impl Fn(A) -> R + Send + Sync + 'static,
    ) -> Result<Service, Error>
    where
        A: DeserializeOwned + 'static,
        R: Serialize + 'static,
    {
        Service::of_function(&self.process, name, function)
    }

    /// Serves an async function: a call that waits occupies no worker. A call that nobody waits for any more ends where it
    /// awaits.
    ///
    /// ```
    /// mizzen::local(1, |deck| {
    ///     let _service = deck.serve_async("echo", |word: String| async move { word })?;
    ///     let mut echo = deck.client::<str, String>("echo")?;
    ///     assert_eq!(echo.call("here")?, "here");
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`serve`](Self::serve).
    pub fn serve_async<A, R, O>(
        &self,
        name: &str,
        function: impl Fn(A) -> O + Send + Sync + 'static,
    ) -> Result<Service, Error>
    where
        A: DeserializeOwned + 'static,
        R: Serialize + 'static,
        O: Future<Output = R> + Send + 'static,
    {
        let handler = handler::Async {
            function,
            workers: Arc::downgrade(self.process.workers()),
            arguments: PhantomData,
        };
        Service::start(&self.process, name, handler)
    }

    /// Serves a function that takes a lent buffer beside its arguments, and may return one: it is called with
    /// [`Client::call_lent`]. On one host neither is copied. What it returns is a buffer that it made with
    /// [`Deck::lend`], or the one that it was given, handed on.
    ///
    /// ```
    /// mizzen::local(2, |deck| {
    ///     let lender = deck.clone();
    ///     let _service = deck.serve_lent("scale", move |factor: f64, values: mizzen::Borrowed<f64>| {
    ///         let Ok(mut scaled) = lender.lend_unzeroed::<f64>(values.len()) else {
    ///             return (Err("there is no memory for so many".to_owned()), None);
    ///         };
    ///         scaled.iter_mut().zip(values.iter()).for_each(|(to, from)| *to = factor * from);
    ///         (Ok(()), Some(scaled))
    ///     })?;
    ///     let mut scale = deck.client_at::<f64, Result<(), String>>(1 - deck.rank().0, "scale")?;
    ///     let mut values = deck.lend::<f64>(100_000)?;
    ///     values.fill(1.5);
    ///     let (outcome, scaled) = scale.call_lent::<f64>(&2.0, values)?;
    ///     assert_eq!(outcome, Ok(()));
    ///     assert_eq!(scaled.unwrap()[99_999], 3.0);
    ///     deck.finish()
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`serve`](Self::serve).
    pub fn serve_lent<A, T, R, L>(
        &self,
        name: &str,
        function: impl Fn(A, Borrowed<T>) -> (R, Option<L>) + Send + Sync + 'static,
    ) -> Result<Service, Error>
    where
        A: DeserializeOwned + 'static,
        T: Plain + 'static,
        R: Serialize + 'static,
        L: LentBuffer + 'static,
    {
        Service::start(&self.process, name, lent::Lending::new(function))
    }

    /// Serves requests that the function opens itself: it reads the first pieces and makes memory for the rest, which goes
    /// straight there. The answer is sent from the memory that the function's message refers to.
    ///
    /// ```
    /// use mizzen::{Message, Request};
    ///
    /// fn scale(request: Request) -> mizzen::Result<()> {
    ///     let (mut incoming, reply) = request.open();
    ///     let (factor, count): (f64, u64) = (incoming.unpack_express()?, incoming.unpack_express()?);
    ///     let mut values = vec![0.0f64; count as usize];
    ///     incoming.unpack_cheaper(&mut values[..])?;
    ///     incoming.finish()?;
    ///     values.iter_mut().for_each(|value| *value *= factor);
    ///     reply.send(Message::new().pack_cheaper(&values[..]));
    ///     Ok(())
    /// }
    ///
    /// mizzen::local(1, |deck| {
    ///     // A request that cannot be read is dropped: its caller is told that there is no answer.
    ///     let _service = deck.serve_raw("scale", |request| scale(request).unwrap_or_default())?;
    ///     let values = vec![1.5f64; 100_000];
    ///     let mut request = Message::new();
    ///     request.pack_safer(&2.0f64).pack_safer(&(values.len() as u64)).pack_cheaper(&values[..]);
    ///     let mut scale = deck.raw_client("scale")?;
    ///     let mut scaled = vec![0.0f64; values.len()];
    ///     let mut answer = scale.call(&mut request)?;
    ///     answer.unpack_cheaper(&mut scaled[..])?;
    ///     answer.finish()?;
    ///     assert_eq!(scaled[99_999], 3.0);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// As [`serve`](Self::serve).
    pub fn serve_raw(
        &self,
        name: &str,
        function: impl Fn(Request) + Send + Sync + 'static,
    ) -> Result<Service, Error> {
        Service::start(&self.process, name, handler::Raw(function))
    }

    /// A client of the service of any process: of this one if it serves the name, or else of the one that served it first. `A`
    /// and `R` are what the function takes and returns; a client may name a borrowed form of `A`, such as `str` for `String`.
    ///
    /// # Errors
    ///
    /// [`MailboxError`](crate::MailboxError) if the process has no room for another mailbox. If nobody serves the name, the
    /// first call says so.
    #[track_caller]
    pub fn client<A, R>(&self, name: &str) -> Result<Client<A, R>, Error>
    where
        A: Serialize + ?Sized,
        R: DeserializeOwned,
    {
        let _call = Caller::enter();
        Client::new(&self.process, Target::any(name))
    }

    /// A client of the service of one process.
    ///
    /// # Errors
    ///
    /// [`CallError::NoSuchRank`] if the job is smaller; otherwise as [`client`](Self::client).
    #[track_caller]
    pub fn client_at<A, R>(&self, rank: impl Into<Rank>, name: &str) -> Result<Client<A, R>, Error>
    where
        A: Serialize + ?Sized,
        R: DeserializeOwned,
    {
        let _call = Caller::enter();
        Client::new(&self.process, Target::at(&self.process, rank.into(), name)?)
    }

    /// A client of the service with this [address](Service::address).
    ///
    /// # Errors
    ///
    /// As [`client`](Self::client).
    #[track_caller]
    pub fn client_of<A, R>(&self, service: &MailboxRef) -> Result<Client<A, R>, Error>
    where
        A: Serialize + ?Sized,
        R: DeserializeOwned,
    {
        let _call = Caller::enter();
        Client::new(&self.process, Target::Address(service.clone()))
    }

    /// A client that calls a [raw service](Self::serve_raw) of any process with messages.
    ///
    /// # Errors
    ///
    /// As [`client`](Self::client).
    #[track_caller]
    pub fn raw_client(&self, name: &str) -> Result<RawClient, Error> {
        let _call = Caller::enter();
        RawClient::new(&self.process, Target::any(name))
    }

    /// A client that calls a raw service of one process with messages.
    ///
    /// # Errors
    ///
    /// As [`client_at`](Self::client_at).
    #[track_caller]
    pub fn raw_client_at(&self, rank: impl Into<Rank>, name: &str) -> Result<RawClient, Error> {
        let _call = Caller::enter();
        RawClient::new(&self.process, Target::at(&self.process, rank.into(), name)?)
    }
}
