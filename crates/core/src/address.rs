//! The address of a mailbox.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::task::{Context, Poll};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mizzen_proto::id::StreamId;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::blocking::block_in_place;
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::{ArenaError, PostError, Result, UnpackError};
use crate::incoming::Incoming;
use crate::link::{MemoryLink, Route};
use crate::memory::LentBuffer;
use crate::message::{Mark, Message, Outgoing, Single};
use crate::net::NetLink;
use crate::peers::Path;
use crate::plain::PlainBytes;
use crate::process::Process;
use crate::rank::{Address, MailboxId, ProcessId, Rank, channel_of};
use crate::sender::Sender;
use crate::values::with_reader;
use crate::wait::Until;

/// The address of a mailbox: anyone who has it may post. It can be cloned, packed into a message, and bound to a name.
///
/// One address reaches a thread of this process, another process of this host, or another host: the path is chosen
/// when it is first used. Messages that one thread posts to one mailbox arrive in order.
///
/// It is a serde type, so that it may be a part of a value or an argument of a call, and a key of a map:
///
/// ```
/// mizzen::local(1, |deck| {
///     let inbox = deck.mailbox()?;
///     let _greeter = deck.serve("greet", |who: mizzen::MailboxRef| who.send(&7u64).is_ok())?;
///     let mut greet = deck.client::<mizzen::MailboxRef, bool>("greet")?;
///     assert!(greet.call(&inbox.address())?);
///     assert_eq!(inbox.receive::<u64>()?, 7);
///     Ok(())
/// }).unwrap();
/// ```
#[derive(Clone)]
pub struct MailboxRef {
    process: Endpoint,
    address: Address,
    /// The path, once it has been used.
    opened: OnceLock<Opened>,
}

/// The path to a mailbox.
#[derive(Clone)]
pub(crate) enum Opened {
    Memory {
        link: Arc<MemoryLink>,
        route: Arc<Route>,
    },
    Net(Arc<NetLink>),
}

impl MailboxRef {
    /// The address as this process uses it.
    #[must_use]
    pub fn new(process: Endpoint, address: Address) -> Self {
        Self {
            process,
            address,
            opened: OnceLock::new(),
        }
    }

    /// The process that owns the mailbox.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.address.process.rank
    }

    /// Sends one plain value.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post).
    #[inline]
    #[track_caller]
    pub fn send<T: PlainBytes + ?Sized>(&self, value: &T) -> Result<()> {
        Ok(self.post_single(value.as_bytes(), Mark::of::<T>(), Until::Forever)?)
    }

    /// Sends one serde value.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post), or if the value cannot be serialised.
    #[track_caller]
    pub fn send_value<T: serde::Serialize + ?Sized>(&self, value: &T) -> Result<()> {
        let mut message = Message::new();
        message.pack_value(value)?;
        self.post(&mut message)
    }

    /// Posts a message. Returns when its memory may be used again.
    ///
    /// It does not wait for the reader as long as less than 64 MiB of this process's messages wait for it at this mailbox: what
    /// finds no room in lanes or networks is copied, and goes when there is some. Beyond that it waits, and the launcher says for
    /// whom if it takes long. Each message counts for its bytes and 64 more. A process that leaves the job waits until all that
    /// it posted has gone, unless a reader takes nothing at all for 30 seconds.
    ///
    /// Between hosts, a message of more than 2 MiB goes from this memory straight into the receiver's if the receiver comes
    /// within some milliseconds; if not, it is copied. [`post_in_place`](Self::post_in_place) never copies it.
    ///
    /// # Errors
    ///
    /// [`PostError::PeerGone`] or [`PostError::Closed`] if nobody can receive it any more.
    #[track_caller]
    pub fn post(&self, message: &mut Message<'_>) -> Result<()> {
        Ok(self.post_until(message, Until::Forever)?)
    }

    /// Posts a message, waiting for the reader of a very long one on another host: its bytes go from where they lie straight
    /// into the reader's memory, and no copy is made in between. For those who wait for an answer to it in any case; two
    /// processes that post to each other in this way before they read wait for ever.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post).
    #[track_caller]
    pub fn post_in_place(&self, message: &mut Message<'_>) -> Result<()> {
        Ok(self.post_until(message, Until::Taken)?)
    }

    /// Posts a message if there is room for it now.
    ///
    /// # Errors
    ///
    /// [`PostError::Busy`] if not; otherwise as [`post`](Self::post).
    pub fn try_post(&self, message: &mut Message<'_>) -> Result<()> {
        Ok(self.post_until(message, Until::Now)?)
    }

    /// Posts a message, waiting for room for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`PostError::TimedOut`] if there was no room in time; otherwise as [`post`](Self::post).
    #[track_caller]
    pub fn post_timeout(&self, message: &mut Message<'_>, timeout: Duration) -> Result<()> {
        Ok(self.post_until(message, Until::within(timeout))?)
    }

    /// Posts a header and a lent buffer, which moves to the receiver. A [`Borrowed`](crate::Borrowed) one is handed on.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post).
    #[track_caller]
    pub fn post_lent<H: PlainBytes + ?Sized>(
        &self,
        header: &H,
        buffer: impl LentBuffer,
    ) -> Result<()> {
        let mut message = Message::new();
        message.pack_cheaper(header).pack_lent(buffer);
        self.post(&mut message)
    }

    /// Sends one plain value, or a slice of them, as [`post_async`](Self::post_async) posts: a copy of it, made now.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post).
    pub async fn send_async<T: PlainBytes + ?Sized>(&self, value: &T) -> Result<()> {
        let mut message = Message::new();
        message.pack_safer(value);
        self.post_async(message).await
    }

    /// Opens a private path to the mailbox, as [`sender`](Self::sender) does, without blocking its thread.
    ///
    /// # Errors
    ///
    /// As [`sender`](Self::sender).
    pub async fn sender_async(&self) -> Result<Sender> {
        let address = self.clone();
        let open = async move { block_in_place(|| address.sender()) };
        self.process.workers().spawn(open).await?
    }

    /// Opens a private path to the mailbox: the fastest way for one thread to send often.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post).
    #[track_caller]
    pub fn sender(&self) -> Result<Sender> {
        let _call = Caller::enter();
        match self.opened()? {
            Opened::Memory { link, route } => {
                let (process, link) = (self.process.clone(), Arc::clone(link));
                Ok(Sender::open(process, link, route.mailbox)?)
            }
            Opened::Net(link) => Ok(Sender::over_net(
                self.process.clone(),
                Arc::clone(link),
                self.address.mailbox,
            )),
        }
    }

    /// The address itself, without the process that uses it.
    #[must_use]
    pub fn full_address(&self) -> Address {
        self.address
    }

    /// The address as it is packed into messages.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.address.process.to_u64().to_le_bytes());
        bytes[8..].copy_from_slice(&self.address.mailbox.0.to_le_bytes());
        bytes
    }

    /// The address that was packed in this way, for use by `process`. `None` if it is not an address of this job.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], process: &Endpoint) -> Option<Self> {
        let (owner, mailbox) = bytes.split_first_chunk::<8>()?;
        let mailbox = u64::from_le_bytes(mailbox.try_into().ok()?);
        let address = Address {
            process: ProcessId::from_u64(u64::from_le_bytes(*owner)),
            mailbox: MailboxId(mailbox),
        };
        Self::of_job(address, process)
    }

    /// An address that came from somebody, for use by `process`. `None` if it is none of this job.
    fn of_job(address: Address, process: &Endpoint) -> Option<Self> {
        let is_known = address.process.rank < process.size();
        is_known.then(|| Self::new(process.clone(), address))
    }

    #[track_caller]
    fn post_single(&self, bytes: &[u8], mark: Mark, until: Until) -> Result<(), PostError> {
        match self.opened()? {
            Opened::Memory { link, route } => {
                link.post(&**self.process, route, &Single(bytes, mark), until)
            }
            Opened::Net(link) => self.post_net(link, Outgoing::single(&[bytes], mark), until),
        }
    }

    #[track_caller]
    fn post_until(&self, message: &mut Message<'_>, until: Until) -> Result<(), PostError> {
        match self.opened()? {
            Opened::Memory { link, route } => {
                let links = &self.process.links;
                let posted = match link.show_lent(&**self.process, message, until) {
                    Ok(()) => link.post(&**self.process, route, &message.wire(), until),
                    Err(error) => Err(error),
                };
                match posted {
                    Ok(()) => link.give_lent(links, message),
                    Err(_) => MemoryLink::keep_lent(links, message),
                }
                posted
            }
            Opened::Net(link) => {
                let posted = self.post_net(link, message.foreign()?.outgoing(), until);
                if posted.is_ok() {
                    message.drop_lent();
                }
                posted
            }
        }
    }

    #[track_caller]
    fn post_net(
        &self,
        link: &Arc<NetLink>,
        message: Outgoing<'_>,
        until: Until,
    ) -> Result<(), PostError> {
        let to = self.address.mailbox;
        link.post(&**self.process, to, StreamId::default(), message, until)
    }

    /// The same attempt by a task, which is woken when there may be room.
    pub(crate) fn poll_post(
        &self,
        message: &mut Message<'static>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), PostError>> {
        match self.post_until(message, Until::Now) {
            Err(PostError::Busy { .. } | PostError::Memory(ArenaError::AllOut { .. })) => {
                message.shrink();
            }
            posted => return Poll::Ready(posted),
        }
        let waits = match self.opened()? {
            Opened::Memory { link, route } => link.await_room(route, context.waker()),
            Opened::Net(link) => link.await_room(self.address.mailbox, context.waker()),
        };
        if !waits {
            self.process.ask_again(context.waker());
        }
        Poll::Pending
    }

    /// Finds the path to the mailbox. A worker does, if that takes time.
    pub(crate) async fn open_async(&self) -> Result<()> {
        if self.opened.get().is_some() {
            return Ok(());
        }
        let peer = self.address.process;
        let channel = channel_of(self.address.mailbox);
        let peers = &self.process.peers;
        let known = peers.usable(channel, peer.rank, peer.incarnation);
        if known.is_none() {
            let address = self.clone();
            let open = async move { block_in_place(|| address.opened().map(drop)) };
            self.process.workers().spawn(open).await??;
        }
        self.opened()?;
        Ok(())
    }

    /// The process that uses the address.
    pub(crate) fn process(&self) -> &Arc<Process> {
        &self.process
    }

    pub(crate) fn mailbox(&self) -> MailboxId {
        self.address.mailbox
    }

    /// The path, found if it was not yet.
    #[inline]
    #[track_caller]
    pub(crate) fn opened(&self) -> Result<&Opened, PostError> {
        match self.opened.get() {
            Some(opened) => Ok(opened),
            None => self.open(),
        }
    }

    #[cold]
    #[track_caller]
    fn open(&self) -> Result<&Opened, PostError> {
        let _call = Caller::enter();
        let channel = channel_of(self.address.mailbox);
        let opened = match self.process.reach_life_on(channel, self.address.process)? {
            Path::Memory(link) => {
                let route = link.route(self.address.mailbox);
                Opened::Memory { link, route }
            }
            Path::Net(link) => Opened::Net(link),
        };
        Ok(self.opened.get_or_init(|| opened))
    }
}

impl Message<'_> {
    /// Packs the address of a mailbox: whoever unpacks it may post to that mailbox.
    pub fn pack_mailbox(&mut self, mailbox: &MailboxRef) -> &mut Self {
        self.pack_copy(&mailbox.to_bytes())
    }
}

impl Incoming<'_> {
    /// Unpacks the address of a mailbox.
    ///
    /// # Errors
    ///
    /// [`UnpackError`] if the piece is not an address.
    pub fn unpack_mailbox(&mut self) -> Result<MailboxRef> {
        let address = self.with_piece(|process, bytes| {
            let process = Endpoint::new(Arc::clone(process));
            MailboxRef::from_bytes(bytes, &process).ok_or(UnpackError::NotAMailbox)
        });
        Ok(address?)
    }
}

impl PartialEq for MailboxRef {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl Eq for MailboxRef {}

impl Hash for MailboxRef {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address.hash(state);
    }
}

/// An address goes inside a value, as an argument or a result of a call, say.
impl Serialize for MailboxRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Address { process, mailbox } = self.address;
        (process.to_u64(), mailbox.0).serialize(serializer)
    }
}

/// Only in values that this library decodes: an address belongs to the process that received it.
impl<'de> Deserialize<'de> for MailboxRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (owner, mailbox) = Deserialize::deserialize(deserializer)?;
        let address = Address {
            process: ProcessId::from_u64(owner),
            mailbox: MailboxId(mailbox),
        };
        let for_reader =
            |process: &Arc<_>| Self::of_job(address, &Endpoint::new(Arc::clone(process)));
        match with_reader(for_reader) {
            Some(Some(address)) => Ok(address),
            Some(None) => Err(D::Error::custom(
                "the address of a mailbox is none of this job",
            )),
            None => Err(D::Error::custom(
                "the address of a mailbox is decoded outside of a message: receive it with `receive_value`, or let a service take it",
            )),
        }
    }
}

impl fmt::Debug for MailboxRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MailboxRef")
            .field(&self.address.to_string())
            .finish()
    }
}
