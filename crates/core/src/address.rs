//! The address of a mailbox.

use core::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mizzen_proto::id::StreamId;
use zerocopy::{Immutable, IntoBytes};

use crate::endpoint::Endpoint;
use crate::error::{PostError, UnpackError};
use crate::incoming::Incoming;
use crate::link::{MemoryLink, Route};
use crate::memory::Lent;
use crate::message::{Mark, Message, Outgoing, Single};
use crate::net::NetLink;
use crate::peers::Path;
use crate::plain::Plain;
use crate::rank::{Address, MailboxId, ProcessId, Rank};
use crate::sender::Sender;
use crate::wait::Until;

/// The address of a mailbox: anyone who has it may post. It can be cloned, packed into a message, and bound to a name.
///
/// One address reaches a thread of this process, another process of this host, or another host: the path is chosen
/// when it is first used. Messages that one thread posts to one mailbox arrive in order.
#[derive(Clone)]
pub struct MailboxRef {
    process: Endpoint,
    address: Address,
    /// The path, once it was used.
    opened: OnceLock<Opened>,
}

#[derive(Clone)]
enum Opened {
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
    pub fn send<T: IntoBytes + Immutable + ?Sized>(&self, value: &T) -> Result<(), PostError> {
        self.post_single(value.as_bytes(), Mark::of::<T>(), Until::Forever)
    }

    /// Sends one serde value.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post), or if the value refuses to be serialised.
    pub fn send_value<T: serde::Serialize + ?Sized>(&self, value: &T) -> Result<(), PostError> {
        let mut message = Message::new();
        message.pack_value(value)?;
        self.post(&mut message)
    }

    /// Posts a message. Returns when its memory may be used again: at once when there is room, otherwise when the receiver
    /// has made some.
    ///
    /// Between hosts, a message of more than 2 MiB goes from this memory straight into the receiver's, so `post` returns when
    /// the receiver has taken it. So does one of more than 64 KiB over libfabric, or while 4 MiB that were posted before it
    /// wait to be retrieved. Two processes that both post such a message to each other before they retrieve wait for
    /// ever: post it in a `Deck::scope`, which goes on meanwhile.
    ///
    /// # Errors
    ///
    /// [`PostError::PeerGone`] or [`PostError::Closed`] if nobody can receive it any more.
    pub fn post(&self, message: &mut Message<'_>) -> Result<(), PostError> {
        self.post_until(message, Until::Forever)
    }

    /// Posts a message if there is room for it now.
    ///
    /// # Errors
    ///
    /// [`PostError::Busy`] if not; otherwise as [`post`](Self::post).
    pub fn try_post(&self, message: &mut Message<'_>) -> Result<(), PostError> {
        self.post_until(message, Until::Now)
    }

    /// Posts a message, waiting for room at most as long as said.
    ///
    /// # Errors
    ///
    /// [`PostError::TimedOut`] when there was none in time; otherwise as [`post`](Self::post).
    pub fn post_timeout(
        &self,
        message: &mut Message<'_>,
        timeout: Duration,
    ) -> Result<(), PostError> {
        self.post_until(message, Until::within(timeout))
    }

    /// Posts a header and a lent buffer, which moves to the receiver.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post).
    pub fn post_lent<H: IntoBytes + Immutable + ?Sized, T: Plain>(
        &self,
        header: &H,
        buffer: Lent<T>,
    ) -> Result<(), PostError> {
        let mut message = Message::new();
        message.pack_cheaper(header).pack_lent(buffer);
        self.post(&mut message)
    }

    /// Opens a path of one's own to the mailbox: the fastest way for one thread to send often.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post).
    pub fn sender(&self) -> Result<Sender, PostError> {
        match self.opened()? {
            Opened::Memory { link, route } => {
                Sender::open(self.process.clone(), Arc::clone(link), route.mailbox)
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

    /// The address that was packed so, for use by `process`. `None` if it is none of this job.
    #[must_use]
    pub fn from_bytes(bytes: &[u8], process: &Endpoint) -> Option<Self> {
        let (owner, mailbox) = bytes.split_first_chunk::<8>()?;
        let mailbox = u64::from_le_bytes(mailbox.try_into().ok()?);
        let owner = ProcessId::from_u64(u64::from_le_bytes(*owner));
        (owner.rank.0 < process.size()).then(|| {
            Self::new(
                process.clone(),
                Address {
                    process: owner,
                    mailbox: MailboxId(mailbox),
                },
            )
        })
    }

    fn post_single(&self, bytes: &[u8], mark: Mark, until: Until) -> Result<(), PostError> {
        let posted = match self.opened()? {
            Opened::Memory { link, route } => {
                link.post(&**self.process, route, &Single(bytes, mark), until)
            }
            Opened::Net(link) => self.post_net(link, Outgoing::single(&[bytes], mark), until),
        };
        self.note(posted)
    }

    fn post_until(&self, message: &mut Message<'_>, until: Until) -> Result<(), PostError> {
        let posted = match self.opened()? {
            Opened::Memory { link, route } => {
                let arena = &self.process.links.arena;
                link.show_lent(arena, message)?;
                let posted = link.post(&**self.process, route, &message.wire(), until);
                if posted.is_ok() {
                    link.give_lent(arena, message);
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
        };
        self.note(posted)
    }

    fn post_net(
        &self,
        link: &Arc<NetLink>,
        message: Outgoing<'_>,
        until: Until,
    ) -> Result<(), PostError> {
        let to = self.address.mailbox;
        link.post(&**self.process, to, StreamId::default(), message, until)
    }

    /// A closed mailbox is forgotten where names are remembered.
    fn note(&self, posted: Result<(), PostError>) -> Result<(), PostError> {
        if let Err(PostError::Closed { .. } | PostError::PeerGone(_)) = posted {
            self.process.forget_address(self.address);
        }
        posted
    }

    #[inline]
    fn opened(&self) -> Result<&Opened, PostError> {
        match self.opened.get() {
            Some(opened) => Ok(opened),
            None => self.open(),
        }
    }

    #[cold]
    fn open(&self) -> Result<&Opened, PostError> {
        let opened = match self.process.reach_life(self.address.process)? {
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
    pub fn unpack_mailbox(&mut self) -> Result<MailboxRef, UnpackError> {
        let process = Endpoint::new(Arc::clone(&self.process));
        self.with_piece(|bytes| {
            MailboxRef::from_bytes(bytes, &process).ok_or(UnpackError::NotAMailbox)
        })
    }
}

impl PartialEq for MailboxRef {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl Eq for MailboxRef {}

impl fmt::Debug for MailboxRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MailboxRef")
            .field(&self.address.to_string())
            .finish()
    }
}
