//! A path of one's own to a mailbox.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mizzen_lane::{SHORT_MAX, Watch};
use mizzen_proto::id::StreamId;
use zerocopy::{Immutable, IntoBytes};

use crate::crash;
use crate::endpoint::Endpoint;
use crate::error::PostError;
use crate::link::MemoryLink;
use crate::link::OpenLane;
use crate::memory::{Lent, LoanTicket};
use crate::message::{Encoded, Flags, Mark, Message, Outgoing, Single};
use crate::net::NetLink;
use crate::plain::Plain;
use crate::process::Process;
use crate::rank::{MailboxId, Rank};
use crate::wait::Until;

/// An opened path from one thread to one mailbox, with a lane of its own: no lock and no atomic read-modify-write on the
/// way of a short message. It may move to another thread, but not be shared.
///
/// ```
/// mizzen::local(1, |deck| {
///     let inbox = deck.mailbox()?;
///     let mut sender = inbox.address().sender()?;
///     for number in 0..100u64 {
///         sender.send(&number)?;
///     }
///     for number in 0..100u64 {
///         assert_eq!(inbox.receive::<u64>()?, number);
///     }
///     Ok(())
/// }).unwrap();
/// ```
pub struct Sender {
    process: Endpoint,
    path: Path,
    _not_sync: PhantomData<Cell<()>>,
}

enum Path {
    /// A lane of our own.
    Memory(Lane),
    /// A stream of our own.
    Net {
        link: Arc<NetLink>,
        mailbox: MailboxId,
        stream: StreamId,
    },
}

struct Lane {
    link: Arc<MemoryLink>,
    open: OpenLane,
    watch: Watch,
}

impl Sender {
    pub(crate) fn open(
        process: Endpoint,
        link: Arc<MemoryLink>,
        mailbox: MailboxId,
    ) -> Result<Self, PostError> {
        let open = link.channel.open_lane(&link.fate, mailbox)?;
        let watch = link.watch(mailbox);
        Ok(Self {
            process,
            path: Path::Memory(Lane { link, open, watch }),
            _not_sync: PhantomData,
        })
    }

    pub(crate) fn over_net(process: Endpoint, link: Arc<NetLink>, mailbox: MailboxId) -> Self {
        let stream = link.new_stream();
        Self {
            process,
            path: Path::Net {
                link,
                mailbox,
                stream,
            },
            _not_sync: PhantomData,
        }
    }

    /// The process that owns the mailbox.
    #[must_use]
    pub fn rank(&self) -> Rank {
        match &self.path {
            Path::Memory(lane) => lane.link.peer.rank,
            Path::Net { link, .. } => link.peer.rank,
        }
    }

    /// Sends one plain value.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post).
    #[inline]
    pub fn send<T: IntoBytes + Immutable + ?Sized>(&mut self, value: &T) -> Result<(), PostError> {
        let (bytes, mark) = (value.as_bytes(), Mark::of::<T>());
        match &mut self.path {
            Path::Memory(lane) => lane.send(&self.process, bytes, mark),
            Path::Net { .. } => self.post_net(Outgoing::single(&[bytes], mark), Until::Forever),
        }
    }

    /// Sends one serde value.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post), or if the value refuses to be serialised.
    pub fn send_value<T: serde::Serialize + ?Sized>(&mut self, value: &T) -> Result<(), PostError> {
        let mut message = Message::new();
        message.pack_value(value)?;
        self.post(&mut message)
    }

    /// Posts a message. Returns when its memory may be used again.
    ///
    /// # Errors
    ///
    /// [`PostError::PeerGone`] or [`PostError::Closed`] if nobody can receive it any more.
    pub fn post(&mut self, message: &mut Message<'_>) -> Result<(), PostError> {
        self.post_until(message, Until::Forever)
    }

    /// Posts a message if there is room for it now.
    ///
    /// # Errors
    ///
    /// [`PostError::Busy`] if not; otherwise as [`post`](Self::post).
    pub fn try_post(&mut self, message: &mut Message<'_>) -> Result<(), PostError> {
        self.post_until(message, Until::Now)
    }

    /// Posts a message, waiting for room at most as long as said.
    ///
    /// # Errors
    ///
    /// [`PostError::TimedOut`] when there was none in time; otherwise as [`post`](Self::post).
    pub fn post_timeout(
        &mut self,
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
        &mut self,
        header: &H,
        buffer: Lent<T>,
    ) -> Result<(), PostError> {
        let buffer = match &mut self.path {
            Path::Memory(lane) => match lane.hand_over(&self.process, header.as_bytes(), buffer)? {
                None => return Ok(()),
                Some(buffer) => buffer,
            },
            Path::Net { .. } => buffer,
        };
        let mut message = Message::new();
        message.pack_cheaper(header).pack_lent(buffer);
        self.post(&mut message)
    }

    fn post_until(&mut self, message: &mut Message<'_>, until: Until) -> Result<(), PostError> {
        let has_lent = message.has_lent();
        let Path::Memory(lane) = &mut self.path else {
            self.post_net(message.foreign()?.outgoing(), until)?;
            message.drop_lent();
            return Ok(());
        };
        if has_lent {
            lane.link.show_lent(&self.process.links.arena, message)?;
        }
        lane.post(&self.process, &message.wire(), until)?;
        if has_lent {
            lane.link.give_lent(&self.process.links.arena, message);
        }
        Ok(())
    }

    fn post_net(&self, message: Outgoing<'_>, until: Until) -> Result<(), PostError> {
        let Path::Net {
            link,
            mailbox,
            stream,
        } = &self.path
        else {
            return Ok(());
        };
        link.post(&**self.process, *mailbox, *stream, message, until)
    }
}

impl Lane {
    /// The way of a short message: nothing here is for anything else.
    #[inline]
    fn send(&mut self, process: &Arc<Process>, bytes: &[u8], mark: Mark) -> Result<(), PostError> {
        let well = !self.link.is_ended() && !self.open.closed.load(Ordering::Relaxed);
        if well && self.open.producer.try_short(mark.single().0, bytes).is_ok() {
            return self.link.call_quietly(&self.watch);
        }
        self.send_slowly(process, bytes, mark)
    }

    /// The way of a header and a lent buffer that fit into a slot. Gives the buffer back if it must go another way.
    fn hand_over<T: Plain>(
        &mut self,
        process: &Arc<Process>,
        header: &[u8],
        buffer: Lent<T>,
    ) -> Result<Option<Lent<T>>, PostError> {
        const TICKET: usize = LoanTicket::BYTES;
        if header.len() > SHORT_MAX - TICKET || self.open.closed.load(Ordering::Relaxed) {
            return Ok(Some(buffer));
        }
        self.link.check(&self.watch)?;
        let mut slot = [0; SHORT_MAX];
        slot[..TICKET].copy_from_slice(self.link.show(&process.links.arena, &buffer)?.as_bytes());
        slot[TICKET..TICKET + header.len()].copy_from_slice(header);
        let slot = &slot[..TICKET + header.len()];
        if self.open.producer.try_short(Flags::HANDED.0, slot).is_err() {
            return Ok(Some(buffer));
        }
        // It is posted, whether anybody will read it or not: then it is given back.
        let _ = self.link.call_quietly(&self.watch);
        self.link.give(&process.links.arena, buffer.into_bytes());
        Ok(None)
    }

    #[cold]
    fn send_slowly(
        &mut self,
        process: &Arc<Process>,
        bytes: &[u8],
        mark: Mark,
    ) -> Result<(), PostError> {
        self.post(process, &Single(bytes, mark), Until::Forever)
    }

    fn post(
        &mut self,
        process: &Arc<Process>,
        message: &impl Encoded,
        until: Until,
    ) -> Result<(), PostError> {
        self.link.check(&self.watch)?;
        if self.open.closed.load(Ordering::Relaxed) {
            let rank = self.link.peer.rank;
            return Err(PostError::Closed { rank });
        }
        let lane = &mut self.open.producer;
        self.link
            .send(&**process, lane, &self.watch, message, until)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        crash::point("sender.drop");
        // If the lane is full, its receiver learns of the end when it has caught up.
        if self.open.producer.try_close().is_ok() {
            self.link.call(&self.watch);
        }
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("to", &self.rank())
            .finish_non_exhaustive()
    }
}
