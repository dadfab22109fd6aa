//! A private path to a mailbox.

use core::cell::Cell;
use core::fmt;
use core::future::poll_fn;
use core::marker::PhantomData;
use core::task::{Context, Poll};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mizzen_lane::{Parts, SHORT_MAX, Watch};
use mizzen_proto::id::StreamId;

use crate::bells::REACTOR_BELL;
use crate::caller::Caller;
use crate::endpoint::Endpoint;
use crate::error::{ArenaError, PostError, Result};
use crate::link::{LONGEST_TO_WAIT, LaneBehind, LaneOut, MemoryLink, try_send};
use crate::memory::{Block, Buffer, LentBuffer, LoanTicket, Made};
use crate::message::{Encoded, Flags, LED_MAX, Mark, Message, Outgoing, Single};
use crate::net::NetLink;
use crate::plain::PlainBytes;
use crate::process::Process;
use crate::progress::Progress;
use crate::rank::{MailboxId, Rank};
use crate::roll::{Kind, WaitsFor};
use crate::wait::Noted;
use crate::wait::Until;

/// A private path from one thread to one mailbox, with its own lane: a short message takes no lock and no atomic
/// read-modify-write. It may move to another thread, but not be shared.
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
    Memory(Lane),
    /// The lane is full, and messages wait for room in it.
    Left(LeftLane),
    Net {
        link: Arc<NetLink>,
        mailbox: MailboxId,
        stream: StreamId,
    },
}

/// How long to sleep between looks for room, where nobody else looks.
const ROOM_NAP: Duration = Duration::from_millis(1);

/// A lane of our own.
struct Lane {
    link: Arc<MemoryLink>,
    out: LaneOut,
}

/// A lane that was left to whoever looks for messages.
struct LeftLane {
    link: Arc<MemoryLink>,
    lane: Arc<LaneBehind>,
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
            path: Path::Memory(Lane {
                link,
                out: LaneOut {
                    mailbox,
                    open,
                    watch,
                },
            }),
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
            Path::Left(left) => left.link.peer.rank,
            Path::Net { link, .. } => link.peer.rank,
        }
    }

    /// Sends one plain value.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post).
    #[inline]
    #[track_caller]
    pub fn send<T: PlainBytes + ?Sized>(&mut self, value: &T) -> Result<()> {
        let (bytes, mark) = (value.as_bytes(), Mark::of::<T>());
        if let Path::Memory(lane) = &mut self.path {
            if lane.try_at_once(bytes, mark) {
                return Ok(lane.link.call_quietly(&lane.out.watch)?);
            }
        }
        Ok(self.send_slowly(bytes, mark)?)
    }

    /// Sends the first `len` bytes of `slot` as plain data, for services: quicker than [`send`](Self::send) if the compiler does not know
    /// how many there are.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post).
    ///
    /// # Panics
    ///
    /// If `slot` is not as long.
    #[inline]
    #[track_caller]
    pub fn send_slot(&mut self, slot: &[u8; SHORT_MAX], len: usize) -> Result<()> {
        let mark = Mark::of::<[u8]>();
        if let Path::Memory(lane) = &mut self.path {
            if lane.try_slot_at_once(slot, len, mark) {
                return Ok(lane.link.call_quietly(&lane.out.watch)?);
            }
        }
        Ok(self.send_slowly(&slot[..len], mark)?)
    }

    /// Sends one serde value.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post), or if the value cannot be serialised.
    #[track_caller]
    pub fn send_value<T: serde::Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let mut message = Message::new();
        message.pack_value(value)?;
        self.post(&mut message)
    }

    /// Posts a message. Returns when its memory may be used again.
    ///
    /// # Errors
    ///
    /// [`PostError::PeerGone`] or [`PostError::Closed`] if nobody can receive it any more.
    #[track_caller]
    pub fn post(&mut self, message: &mut Message<'_>) -> Result<()> {
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
    pub fn post_in_place(&mut self, message: &mut Message<'_>) -> Result<()> {
        Ok(self.post_until(message, Until::Taken)?)
    }

    /// Posts a message if there is room for it now.
    ///
    /// # Errors
    ///
    /// [`PostError::Busy`] if not; otherwise as [`post`](Self::post).
    pub fn try_post(&mut self, message: &mut Message<'_>) -> Result<()> {
        Ok(self.post_until(message, Until::Now)?)
    }

    /// Posts for async tasks of any runtime, as [`MailboxRef::post_async`](crate::MailboxRef::post_async) does.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post), and [`ArenaError::TooLong`] for a message that is longer than the allowance: post it by address.
    pub async fn post_async(&mut self, mut message: Message<'static>) -> Result<()> {
        let (bytes, limit) = (message.all_bytes(), LONGEST_TO_WAIT);
        if bytes > limit {
            return Err(PostError::Memory(ArenaError::TooLong { bytes, limit }).into());
        }
        let post = |context: &mut Context<'_>| self.poll_post(&mut message, context);
        Ok(poll_fn(post).await?)
    }

    /// Posts a message, waiting for room for at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`PostError::TimedOut`] if there was no room in time; otherwise as [`post`](Self::post).
    #[track_caller]
    pub fn post_timeout(&mut self, message: &mut Message<'_>, timeout: Duration) -> Result<()> {
        Ok(self.post_until(message, Until::within(timeout))?)
    }

    /// Posts a header and a lent buffer, which moves to the receiver. A [`Borrowed`](crate::Borrowed) one is handed on.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post).
    #[track_caller]
    pub fn post_lent<H: PlainBytes + ?Sized>(
        &mut self,
        header: &H,
        buffer: impl LentBuffer,
    ) -> Result<()> {
        let Some(buffer) = self.hand_over(header.as_bytes(), buffer.into_buffer())? else {
            return Ok(());
        };
        let mut message = Message::new();
        message.pack_cheaper(header).pack_buffer(buffer);
        self.post(&mut message)
    }

    /// Hands over a buffer at once, with a header beside it: a message of two pieces, as [`post_lent`](Self::post_lent) posts. `Some`: the
    /// header is too long for that, there is no room, or the buffer is not of this process and host; it can be packed then.
    ///
    /// # Errors
    ///
    /// As [`post`](Self::post).
    pub fn hand_over(
        &mut self,
        header: &[u8],
        buffer: Buffer,
    ) -> Result<Option<Buffer>, PostError> {
        match (&mut self.path, buffer) {
            (Path::Memory(lane), Buffer::Made(Made(block))) => {
                let left = lane.hand_over(&self.process, header, block)?;
                Ok(left.map(|block| Buffer::Made(Made(block))))
            }
            (_, buffer) => Ok(Some(buffer)),
        }
    }

    #[track_caller]
    fn post_until(&mut self, message: &mut Message<'_>, until: Until) -> Result<(), PostError> {
        if let Path::Memory(lane) = &mut self.path {
            if lane.try_message_at_once(message) {
                return lane.link.call_quietly(&lane.out.watch);
            }
        }
        let link = match &self.path {
            Path::Memory(lane) => Arc::clone(&lane.link),
            Path::Left(left) => Arc::clone(&left.link),
            Path::Net { .. } => {
                self.post_net(message.foreign()?.outgoing(), until)?;
                message.drop_lent();
                return Ok(());
            }
        };
        if !message.has_lent() {
            return self.post_memory(&message.wire(), until);
        }
        let posted = match link.show_lent(&**self.process, message, until) {
            Ok(()) => self.post_memory(&message.wire(), until),
            Err(error) => Err(error),
        };
        match posted {
            Ok(()) => link.give_lent(&self.process.links, message),
            Err(_) => MemoryLink::keep_lent(&self.process.links, message),
        }
        posted
    }

    fn poll_post(
        &mut self,
        message: &mut Message<'static>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), PostError>> {
        match self.post_until(message, Until::Now) {
            Err(PostError::Busy { .. } | PostError::Memory(ArenaError::AllOut { .. })) => {
                message.shrink();
            }
            posted => return Poll::Ready(posted),
        }
        let waits = match &self.path {
            Path::Memory(_) => false,
            Path::Left(left) => left.link.await_lane(&left.lane, context.waker()),
            Path::Net { link, mailbox, .. } => link.await_room(*mailbox, context.waker()),
        };
        if !waits {
            self.process.ask_again(context.waker());
        }
        Poll::Pending
    }

    #[cold]
    #[track_caller]
    fn send_slowly(&mut self, bytes: &[u8], mark: Mark) -> Result<(), PostError> {
        if let Path::Net { .. } = self.path {
            return self.post_net(Outgoing::single(&[bytes], mark), Until::Forever);
        }
        self.post_memory(&Single(bytes, mark), Until::Forever)
    }

    /// Posts through memory. Who would have to sleep leaves the lane, and its message, to whoever looks for messages.
    #[track_caller]
    fn post_memory(&mut self, message: &impl Encoded, until: Until) -> Result<(), PostError> {
        self.take_lane_back();
        let (mut begun, mut noted) = (None, Noted::default());
        loop {
            let posted = match &mut self.path {
                Path::Memory(lane) => lane.post(&self.process, message, until),
                Path::Left(LeftLane { link, lane, watch }) => {
                    link.post_behind(&**self.process, lane, watch, message, until)
                }
                Path::Net { .. } => return Ok(()),
            };
            if !matches!(posted, Err(PostError::Busy { .. })) {
                return posted;
            }
            match &self.path {
                Path::Memory(_) if self.process.can_move_on_later() => {
                    self.leave_lane();
                    continue;
                }
                _ => (),
            }
            // There is no thread to see to what waits, or this may not wait there: wait for room here.
            let rank = self.rank();
            let _call = Caller::enter();
            let what = || WaitsFor::one(Kind::Room, rank, format!("for room at rank {rank}"));
            noted.keep_after(begun.get_or_insert_with(Instant::now).elapsed(), what);
            match until {
                Until::Forever | Until::Taken => std::thread::sleep(ROOM_NAP),
                Until::Deadline(deadline) if Instant::now() < deadline => {
                    std::thread::sleep(ROOM_NAP);
                }
                Until::Deadline(_) => {
                    let rank = self.rank();
                    return Err(PostError::TimedOut { rank });
                }
                Until::Now => return posted,
            }
            self.take_lane_back();
        }
    }

    /// Takes back a lane for which nothing waits any more.
    fn take_lane_back(&mut self) {
        if let Path::Left(left) = &self.path {
            let link = Arc::clone(&left.link);
            if let Some(out) = link.take_lane(&left.lane) {
                self.path = Path::Memory(Lane { link, out });
            }
        }
    }

    fn leave_lane(&mut self) {
        let Path::Memory(Lane { link, out }) = &self.path else {
            return;
        };
        let (link, watch) = (Arc::clone(link), out.watch.clone());
        let lane = link.empty_lane();
        let left = Path::Left(LeftLane { link, lane, watch });
        let path = core::mem::replace(&mut self.path, left);
        if let (Path::Memory(Lane { link, out }), Path::Left(left)) = (path, &self.path) {
            link.leave_lane(&left.lane, out);
        }
        self.process.bells.ring(REACTOR_BELL);
    }

    #[track_caller]
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
    /// Whether whoever reads the lane is there.
    #[inline]
    fn is_open(&self) -> bool {
        !self.link.fate.is_ended() && !self.out.is_closed()
    }

    /// Sends a message that fits the lane, if there is room.
    #[inline]
    fn try_at_once(&mut self, bytes: &[u8], mark: Mark) -> bool {
        if !self.is_open() {
            return false;
        }
        let (producer, tag) = (&mut self.out.open.producer, mark.single().0);
        let sent = match bytes.len() {
            ..=SHORT_MAX => producer.try_short(tag, bytes),
            _ => producer.try_eager(tag, 0, [bytes]),
        };
        sent.is_ok()
    }

    /// The same for the first `len` bytes of a slot.
    #[inline]
    fn try_slot_at_once(&mut self, slot: &[u8; SHORT_MAX], len: usize, mark: Mark) -> bool {
        let tag = mark.single().0;
        self.is_open() && self.out.open.producer.try_slot(tag, slot, len).is_ok()
    }

    /// Sends a packed message that fits the lane and lends nothing, if there is room. A lead goes before it, unless it is so long that
    /// its receiver had better leave it in the lane.
    #[inline]
    fn try_message_at_once(&mut self, message: &Message<'_>) -> bool {
        if message.has_lent() || !self.is_open() {
            return false;
        }
        let wire = message.wire_in_lane();
        if wire.flags().has(Flags::LED) && wire.len() > LED_MAX {
            return false;
        }
        try_send(&mut self.out.open.producer, &wire).is_ok()
    }

    /// Hands over a buffer with a short header, in one slot. Returns the buffer if that cannot be.
    fn hand_over(
        &mut self,
        process: &Arc<Process>,
        header: &[u8],
        buffer: Block,
    ) -> Result<Option<Block>, PostError> {
        const TICKET: usize = LoanTicket::BYTES;
        if header.len() > SHORT_MAX - TICKET || self.out.is_closed() {
            return Ok(Some(buffer));
        }
        self.link.check(&self.out.watch)?;
        let mut slot = [0; SHORT_MAX];
        slot[..TICKET].copy_from_slice(&self.link.show(&process.links.arena, &buffer)?.to_bytes());
        let len = TICKET + header.len();
        slot[TICKET..len].copy_from_slice(header);
        let producer = &mut self.out.open.producer;
        if producer.try_slot(Flags::HANDED.0, &slot, len).is_err() {
            return Ok(Some(buffer));
        }
        // It is posted, whether anybody will read it or not: then it is given back.
        let _ = self.link.call_quietly(&self.out.watch);
        self.link.give(&process.links.arena, buffer);
        Ok(None)
    }

    #[track_caller]
    fn post(
        &mut self,
        process: &Arc<Process>,
        message: &impl Encoded,
        until: Until,
    ) -> Result<(), PostError> {
        self.link.check(&self.out.watch)?;
        if self.out.is_closed() {
            let rank = self.link.peer.rank;
            return Err(PostError::Closed { rank });
        }
        self.link.send(&**process, &mut self.out, message, until)
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        match &mut self.path {
            Path::Memory(lane) => lane.link.close_lane(&mut lane.out),
            Path::Left(left) => left.link.abandon_lane(&left.lane),
            Path::Net { .. } => (),
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
