//! The socket between two linked processes of a host, and the lanes of senders that were opened over it.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use mizzen_lane::Ring;
use mizzen_shm::{Access, Fault, Segment, Socket, SocketError, View, region_of_view};

use super::packet::{LaneNumber, Packet};
use super::pair::{MAX_LINES, Pair};
use crate::bells::ring;
use crate::crash;
use crate::delivery::LaneIn;
use crate::error::{ArenaError, Departure, PostError};
use crate::link::Fate;
use crate::link::MemoryLink;
use crate::link::{Channel, Disconnected, LaneEnd, OpenLane, SENDER_LANE};
use crate::lock::lock;
use crate::mailboxes::Mailboxes;
use crate::memory::{Place, Shared, SlabId};
use crate::rank::{MailboxId, ProcessId};

/// How long the peer may take to answer: its keeper thread does nothing else, so longer means that it is stopped.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);

/// Packets that may wait for a peer whose socket is full; more means that it is stopped, and its link is given up.
const MAX_BACKLOG: usize = 1 << 16;
/// Slabs that a peer may have us show to others at once.
const MAX_SHOWING: usize = 16;

/// The socket to a linked process.
#[derive(Debug)]
pub(crate) struct SocketChannel {
    socket: Socket,
    /// The process at the other end.
    pid: u32,
    ours: Pair,
    theirs: OnceLock<Pair>,
    last_lane: AtomicU64,
    /// Lanes of our senders to the peer.
    out: Mutex<HashMap<LaneNumber, LaneOut>>,
    answered: Condvar,
    /// Lanes of the peer's senders to us.
    inbound: Mutex<LanesIn>,
    /// Slabs of the peer that we asked it to show to others, and its answers.
    asked: Mutex<HashMap<(u32, ProcessId), Shown>>,
    was_shown: Condvar,
    /// Slabs of ours that the peer asked us to show to others, and that we are about to.
    showing: AtomicUsize,
    /// Packets that the socket did not take yet.
    backlog: Mutex<VecDeque<Vec<u8>>>,
    has_backlog: AtomicBool,
}

/// What became of a slab that the peer shall show to another process.
#[derive(Debug)]
struct Shown {
    /// Threads that wait for it.
    waiting: usize,
    answer: Option<Option<Place>>,
}

#[derive(Debug, Default)]
struct LaneOut {
    answer: Option<Answer>,
    closed: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Opened { line: u32 },
    NoMailbox,
    Full,
}

#[derive(Debug, Default)]
struct LanesIn {
    /// A line is used again when the sender is done with it and the receiver has dropped it.
    open: HashMap<LaneNumber, LaneInState>,
    free_lines: Vec<u32>,
    next_line: u32,
}

#[derive(Debug)]
struct LaneInState {
    line: u32,
    unused: bool,
    done: Arc<AtomicBool>,
    mailbox: MailboxId,
}

impl SocketChannel {
    pub(super) fn new(socket: Socket, pid: u32, ours: Pair) -> Self {
        Self {
            socket,
            pid,
            ours,
            theirs: OnceLock::new(),
            last_lane: AtomicU64::new(0),
            out: Mutex::default(),
            answered: Condvar::new(),
            inbound: Mutex::default(),
            asked: Mutex::default(),
            was_shown: Condvar::new(),
            showing: AtomicUsize::new(0),
            backlog: Mutex::default(),
            has_backlog: AtomicBool::new(false),
        }
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The peer's segment, which comes with its hello.
    pub(super) fn set_theirs(&self, theirs: Pair) {
        let _ = self.theirs.set(theirs);
    }

    /// Sends a packet without ever waiting for the peer: what its socket does not take now, the keeper sends later. The
    /// keeper itself must not wait, or two of them could wait for each other.
    pub(super) fn send_later(&self, packet: &Packet) -> Result<(), Disconnected> {
        let mut backlog = lock(&self.backlog);
        if backlog.len() >= MAX_BACKLOG {
            return Err(Disconnected);
        }
        backlog.push_back(packet.encode());
        self.flush_locked(&mut backlog)
    }

    /// Sends what waits, as far as the socket takes it. `true` if something is left.
    pub(super) fn flush(&self) -> bool {
        let mut backlog = lock(&self.backlog);
        // A peer that hung up is noticed by its socket.
        let _ = self.flush_locked(&mut backlog);
        !backlog.is_empty()
    }

    fn flush_locked(&self, backlog: &mut VecDeque<Vec<u8>>) -> Result<(), Disconnected> {
        while let Some(packet) = backlog.front() {
            match self.socket.try_send(packet, &[]) {
                Ok(()) => drop(backlog.pop_front()),
                Err(SocketError::Busy) => {
                    self.has_backlog.store(true, Ordering::Release);
                    return Ok(());
                }
                Err(_) => {
                    backlog.clear();
                    return Err(Disconnected);
                }
            }
        }
        self.has_backlog.store(false, Ordering::Release);
        Ok(())
    }

    /// Whether something waits to be sent.
    pub(super) fn has_backlog(&self) -> bool {
        self.has_backlog.load(Ordering::Acquire)
    }

    pub(super) fn say_bye(&self) {
        let _ = self.socket.try_send(&Packet::Bye.encode(), &[]);
    }

    pub(super) fn send_with(
        &self,
        packet: &Packet,
        segments: &[&Shared],
    ) -> Result<(), Disconnected> {
        let fds: Vec<BorrowedFd<'_>> = segments
            .iter()
            .filter_map(|shared| shared.segment.as_ref())
            .map(|segment| segment.fd())
            .collect();
        self.socket
            .send(&packet.encode(), &fds)
            .map_err(|_| Disconnected)
    }

    /// The peer's sender opened a lane to one of our mailboxes.
    pub(super) fn handle_open_lane(
        self: &Arc<Self>,
        mailboxes: &Mailboxes,
        link: &Arc<MemoryLink>,
        lane: LaneNumber,
        mailbox: MailboxId,
        memory: OwnedFd,
    ) -> Result<(), Disconnected> {
        let Some(core) = mailboxes.get(mailbox) else {
            return self.send_later(&Packet::LaneRefused { lane, full: false });
        };
        let done = Arc::new(AtomicBool::new(false));
        let Some(line) = lock(&self.inbound).open(lane, Arc::clone(&done), mailbox) else {
            return self.send_later(&Packet::LaneRefused { lane, full: true });
        };
        crash::point("receiver.open.claimed");
        let Some(memory) = self.lane_memory(line, memory) else {
            lock(&self.inbound).close(lane);
            return self.send_later(&Packet::LaneRefused { lane, full: true });
        };
        let bells = link.bells.clone();
        // The line is free for another lane when nobody holds a message of this one any more.
        let in_use = LineInUse {
            channel: Arc::clone(self),
            lane,
        };
        let consumer = memory.consumer_calling(move |bell| {
            let _ = &in_use;
            ring(&bells, bell);
        });
        let channel = Arc::clone(self);
        let on_drop = move || channel.lane_dropped(lane);
        core.add_lane(LaneIn::new(consumer, Arc::clone(link), done, on_drop));
        mailboxes.wake(&core);
        crash::point("receiver.open.added");
        self.send_later(&Packet::LaneOpened { lane, line })
    }

    /// The memory of a lane of the peer's: its slots, and our line.
    fn lane_memory(&self, line: u32, slots: OwnedFd) -> Option<Ring> {
        let view = View::attach(
            slots,
            SENDER_LANE.sender_bytes(),
            Access::ReadOnly,
            Fault::Sparse,
        )
        .ok()?;
        self.ours.receiving_end(view, line)
    }

    pub(super) fn handle_lane_opened(&self, lane: LaneNumber, line: u32) {
        self.answer(lane, Answer::Opened { line });
    }

    pub(super) fn handle_lane_refused(&self, lane: LaneNumber, full: bool) {
        self.answer(
            lane,
            if full {
                Answer::Full
            } else {
                Answer::NoMailbox
            },
        );
    }

    pub(super) fn handle_lane_closed(&self, lane: LaneNumber) {
        if let Some(out) = lock(&self.out).get(&lane) {
            out.closed.store(true, Ordering::Release);
        }
    }

    /// The peer's sender is done; the owner of the mailbox shall notice when it has read all.
    pub(super) fn handle_lane_done(&self, mailboxes: &Mailboxes, lane: LaneNumber) {
        let mailbox = {
            let mut inbound = lock(&self.inbound);
            let Some(state) = inbound.open.get(&lane) else {
                return;
            };
            state.done.store(true, Ordering::Release);
            let mailbox = state.mailbox;
            if state.unused {
                inbound.close(lane);
            }
            mailbox
        };
        if let Some(core) = mailboxes.get(mailbox) {
            core.look();
            mailboxes.wake(&core);
        }
    }

    /// Whether the peer may have us show one more slab to another process. If so, `answer_shown` ends it.
    pub(super) fn begin_to_show(&self) -> bool {
        // One that asks for too many is answered as if it had begun: both counts go down again.
        self.showing.fetch_add(1, Ordering::Relaxed) < MAX_SHOWING
    }

    /// Tells the peer that a slab of ours was shown to another process.
    pub(super) fn answer_shown(&self, number: u32, to: ProcessId, place: Option<Place>) {
        self.showing.fetch_sub(1, Ordering::Relaxed);
        let place = place.map_or(0, Place::number);
        let _ = self.send_later(&Packet::Shown { number, to, place });
    }

    /// The peer showed a slab of its own to another process.
    pub(super) fn handle_shown(&self, number: u32, to: ProcessId, place: Option<Place>) {
        if let Some(shown) = lock(&self.asked).get_mut(&(number, to)) {
            shown.answer = Some(place);
        }
        self.was_shown.notify_all();
    }

    /// Waits for the peer's answer.
    fn await_shown(&self, peer: &Fate, key: (u32, ProcessId)) -> Option<Place> {
        let deadline = Instant::now() + ANSWER_PATIENCE;
        let mut asked = lock(&self.asked);
        loop {
            if let Some(answer) = asked.get(&key).and_then(|shown| shown.answer) {
                return answer;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if peer.is_ended() || left.is_zero() {
                return None;
            }
            // The link may end between the look and the wait: look again soon.
            let nap = left.min(Duration::from_millis(50));
            asked = self
                .was_shown
                .wait_timeout(asked, nap)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Wakes whoever waits for an answer that will not come.
    pub(super) fn hang_up(&self) {
        self.answered.notify_all();
        self.was_shown.notify_all();
    }

    fn await_lane(&self, lane: LaneNumber, peer: &Fate) -> Result<Answer, PostError> {
        let deadline = Instant::now() + ANSWER_PATIENCE;
        let mut out = lock(&self.out);
        loop {
            if let Some(answer) = out.get(&lane).and_then(|out| out.answer) {
                return Ok(answer);
            }
            if peer.is_ended() {
                return Err(PostError::PeerGone(peer.gone_or(Departure::Died)));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(PostError::TimedOut {
                    rank: peer.peer.rank,
                });
            }
            // The link may end between the look and the wait: look again soon.
            let nap = left.min(Duration::from_millis(50));
            out = self
                .answered
                .wait_timeout(out, nap)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn answer(&self, lane: LaneNumber, answer: Answer) {
        if let Some(out) = lock(&self.out).get_mut(&lane) {
            out.answer = Some(answer);
        }
        self.answered.notify_all();
    }

    /// Our sender will not touch the lane again.
    fn lane_done(&self, lane: LaneNumber) {
        lock(&self.out).remove(&lane);
        let _ = self.send_later(&Packet::LaneDone { lane });
    }

    /// Our mailbox's owner dropped the lane.
    fn lane_dropped(&self, lane: LaneNumber) {
        let done = lock(&self.inbound)
            .open
            .get(&lane)
            .is_none_or(|state| state.done.load(Ordering::Acquire));
        if !done {
            let _ = self.send_later(&Packet::LaneClosed { lane });
        }
    }

    /// Nobody uses the lane's line any more.
    fn line_unused(&self, lane: LaneNumber) {
        let mut inbound = lock(&self.inbound);
        let Some(state) = inbound.open.get_mut(&lane) else {
            return;
        };
        state.unused = true;
        if state.done.load(Ordering::Acquire) {
            inbound.close(lane);
        }
    }
}

/// The way to another process of this host.
impl Channel for Arc<SocketChannel> {
    fn open_lane(&self, peer: &Fate, mailbox: MailboxId) -> Result<OpenLane, PostError> {
        let gone = || PostError::PeerGone(peer.gone_or(Departure::Died));
        let segment = Segment::create("mizzen-lane", SENDER_LANE.sender_bytes(), Fault::Sparse)
            .map_err(|error| PostError::Memory(ArenaError::Memory(error)))?;
        let lane = LaneNumber(self.last_lane.fetch_add(1, Ordering::Relaxed) + 1);
        let closed = Arc::default();
        lock(&self.out).insert(
            lane,
            LaneOut {
                answer: None,
                closed: Arc::clone(&closed),
            },
        );
        crash::point("sender.open.made");
        let packet = Packet::OpenLane { lane, mailbox }.encode();
        let sent = self.socket.send(&packet, &[segment.fd()]);
        // The packet has the descriptor now. A lane that kept its own would cost one for each sender.
        let memory = region_of_view(segment.into_view());
        let answer = match sent {
            Ok(()) => self.await_lane(lane, peer),
            Err(_) => Err(gone()),
        };
        crash::point("sender.open.answered");
        let rank = peer.peer.rank;
        let opened = answer.and_then(|answer| match answer {
            Answer::Opened { line } => {
                let theirs = self.theirs.get();
                let producer = theirs.and_then(|theirs| theirs.sending_end(memory, line));
                producer.ok_or_else(gone)
            }
            Answer::NoMailbox => Err(PostError::Closed { rank }),
            Answer::Full => Err(PostError::Busy { rank }),
        });
        match opened {
            Ok(producer) => {
                let channel = Arc::clone(self);
                let end = LaneEnd::new(move || channel.lane_done(lane));
                Ok(OpenLane {
                    producer,
                    closed,
                    _end: end,
                })
            }
            Err(error) => {
                self.lane_done(lane);
                Err(error)
            }
        }
    }

    fn show_slab(&self, slab: SlabId, shared: &Shared) -> Result<(), Disconnected> {
        crash::point("lend.show");
        let packet = Packet::Slab {
            number: slab.0,
            bytes: shared.region.len() as u64,
        };
        self.send_with(&packet, &[shared])
    }

    fn foretell_handed(&self) -> Result<(), Disconnected> {
        self.send_with(&Packet::Handed, &[])
    }

    fn ask_to_show(&self, peer: &Fate, slab: SlabId, to: ProcessId) -> Option<Place> {
        let key = (slab.0, to);
        let is_first = {
            let mut asked = lock(&self.asked);
            let shown = asked.entry(key).or_insert(Shown {
                waiting: 0,
                answer: None,
            });
            shown.waiting += 1;
            shown.waiting == 1
        };
        let packet = Packet::ShowTo { number: slab.0, to };
        let is_asked = !is_first || self.send_with(&packet, &[]).is_ok();
        let answer = is_asked.then(|| self.await_shown(peer, key)).flatten();
        let mut asked = lock(&self.asked);
        if let Some(shown) = asked.get_mut(&key) {
            shown.waiting -= 1;
            if shown.waiting == 0 {
                asked.remove(&key);
            }
        }
        answer
    }

    fn hide_slab(&self, slab: SlabId) {
        let _ = self.send_later(&Packet::SlabGone { number: slab.0 });
    }

    fn pid(&self) -> Option<u32> {
        Some(self.pid)
    }

    fn ends_with_its_process(&self) -> bool {
        true
    }

    /// Asks the peer to drain its lane, unless its socket is full of such requests.
    fn remind(&self) {
        let _ = self.socket.try_send(&Packet::Remind.encode(), &[]);
    }

    fn cut(&self) {
        let _ = rustix::net::shutdown(self.socket.as_fd(), rustix::net::Shutdown::Both);
        self.answered.notify_all();
    }
}

/// Kept by everything that may write to the line of a lane.
struct LineInUse {
    channel: Arc<SocketChannel>,
    lane: LaneNumber,
}

impl Drop for LineInUse {
    fn drop(&mut self) {
        self.channel.line_unused(self.lane);
    }
}

impl LanesIn {
    fn open(&mut self, lane: LaneNumber, done: Arc<AtomicBool>, mailbox: MailboxId) -> Option<u32> {
        if self.open.contains_key(&lane) {
            return None;
        }
        let line = match self.free_lines.pop() {
            Some(line) => line,
            None if self.next_line < MAX_LINES => {
                self.next_line += 1;
                self.next_line - 1
            }
            None => return None,
        };
        self.open.insert(
            lane,
            LaneInState {
                line,
                unused: false,
                done,
                mailbox,
            },
        );
        Some(line)
    }

    fn close(&mut self, lane: LaneNumber) {
        if let Some(state) = self.open.remove(&lane) {
            self.free_lines.push(state.line);
        }
    }
}
