//! The sending half of a link.
//!
//! A frame is written straight from the caller's slices; only what the network did not take is copied to
//! the queue. What is queued goes out together, and so do frames that the caller gathers. A body is written
//! straight from the lender's memory, in pieces, one of each body in turn; frames go between pieces.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, IoSlice};
use std::iter;

use mizzen_driver::{BodyId, Gather, PeerId, Refused};
use rustix::io::Errno;

use crate::header::{Asked, Header, Last, MAX_FRAME, MAX_PIECE};
use crate::queue::Queue;
use crate::wire::{JOINED, JOINED_SHORT, Wire, join};

#[derive(Debug)]
pub(crate) struct SendHalf {
    peer: PeerId,
    /// Frames, or the end of one, that the network had no room for, or that wait for others.
    queue: Queue,
    /// Whether frames wait for others.
    is_gathering: bool,
    /// The first is the one that `piece` is of.
    bodies: VecDeque<Outgoing>,
    piece: Option<Piece>,
    /// Bodies whose end was not yet reported.
    in_flight: BTreeSet<BodyId>,
    /// Whether the last write was taken whole.
    has_room: bool,
    /// Whether a frame was refused and the sender waits to hear of room.
    is_awaited: bool,
    /// Whether something was written since somebody asked.
    has_written: bool,
    failure: Option<io::ErrorKind>,
}

/// A body not yet written to its end.
#[derive(Debug)]
struct Outgoing {
    body: BodyId,
    source: Gather,
    asked: Asked,
}

/// A piece of the first body, partly written.
#[derive(Debug)]
struct Piece {
    header: [u8; Header::LEN],
    header_sent: usize,
    left: usize,
    last: Last,
}

/// Whether a flush left something to do that it could do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Nothing is left, or the network has no room.
    Done,
    /// It stopped for the sake of others.
    More,
}

impl SendHalf {
    pub(crate) fn new(peer: PeerId) -> Self {
        Self {
            peer,
            queue: Queue::default(),
            is_gathering: false,
            bodies: VecDeque::new(),
            piece: None,
            in_flight: BTreeSet::new(),
            has_room: true,
            is_awaited: false,
            has_written: false,
            failure: None,
        }
    }

    pub(crate) fn send_frame(
        &mut self,
        wire: &mut Wire,
        frame: &[IoSlice<'_>],
    ) -> Result<(), Refused> {
        let len = frame.iter().map(|slice| slice.len()).sum();
        if len > MAX_FRAME {
            return Err(Refused::TooLong {
                len,
                max: MAX_FRAME,
            });
        }
        let total = Header::LEN + len;
        if self.is_gathering && self.queue.len() + total > MAX_GATHERED {
            self.write_queue(wire);
        }
        if self.failure.is_some() || self.queue.len() + total > MAX_QUEUE {
            // After a failure the loss is about to be reported; until then there is no room.
            self.is_awaited = true;
            return Err(Refused::Busy { peer: self.peer });
        }
        let header = Header::Frame { len }.encode();
        let is_next = self.queue.is_empty() && self.piece.is_none();
        let waits = self.is_gathering && total <= MAX_GATHERED;
        let written = if is_next && !waits {
            self.write_frame(wire, &header, frame, total)
        } else {
            0
        };
        if written < total {
            self.enqueue(&header, frame, written);
        }
        Ok(())
    }

    pub(crate) fn check_body(&self, body: BodyId, max: usize) -> Result<(), Refused> {
        if self.in_flight.contains(&body) {
            return Err(Refused::BodyInUse { body });
        }
        if self.in_flight.len() == max {
            return Err(Refused::TooManyBodies { max });
        }
        Ok(())
    }

    pub(crate) fn send_body(&mut self, body: BodyId, source: Gather, asked: Asked) {
        self.in_flight.insert(body);
        self.bodies.push_back(Outgoing {
            body,
            source,
            asked,
        });
    }

    /// Frames wait for others from now on, or no longer.
    pub(crate) fn set_gathering(&mut self, is_gathering: bool) {
        self.is_gathering = is_gathering;
    }

    /// The end of a body was reported: its id may be used again.
    pub(crate) fn forget(&mut self, body: BodyId) {
        self.in_flight.remove(&body);
    }

    /// Whether nothing waits to be written, and nobody for room.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.bodies.is_empty() && !self.is_awaited
    }

    pub(crate) fn handle_room(&mut self) {
        self.has_room = true;
    }

    /// Writes what the network takes, and names each body that is written to `sent`.
    pub(crate) fn flush(&mut self, wire: &mut Wire, mut sent: impl FnMut(BodyId)) -> Flushed {
        let mut budget = FLUSH_TURN;
        if self.has_room && wire.has_unsent() {
            let flushed = wire.flush().map(|()| 0);
            self.note(flushed, 0);
        }
        while self.has_room && self.failure.is_none() {
            if self.queue.is_empty() && self.bodies.is_empty() {
                break;
            }
            if budget == 0 {
                return Flushed::More;
            }
            let written = self.write_next(wire);
            self.finish_piece(&mut sent);
            budget = budget.saturating_sub(written);
        }
        Flushed::Done
    }

    /// Whether somebody waits for room, and there is.
    pub(crate) fn poll_room(&mut self) -> bool {
        let is_time = self.is_awaited && self.failure.is_none() && self.takes_any_frame();
        self.is_awaited &= !is_time;
        is_time
    }

    /// Whether there still is room when that is about to be reported. If not, the wait goes on.
    pub(crate) fn confirm_room(&mut self) -> bool {
        self.is_awaited = !self.takes_any_frame();
        !self.is_awaited
    }

    /// Whether something was written since the last time.
    pub(crate) fn poll_written(&mut self) -> bool {
        std::mem::take(&mut self.has_written)
    }

    /// Whether a frame just sent left something that no edge and no turn will see to.
    pub(crate) fn needs_flush(&self) -> bool {
        let is_stranded = self.has_room && self.piece.is_none() && !self.queue.is_empty();
        is_stranded && !self.is_gathering || self.failure.is_some()
    }

    pub(crate) fn failure(&self) -> Option<io::ErrorKind> {
        self.failure
    }

    /// The bodies that were not written to their end.
    pub(crate) fn into_unsent(self) -> impl Iterator<Item = BodyId> {
        self.bodies.into_iter().map(|outgoing| outgoing.body)
    }

    fn takes_any_frame(&self) -> bool {
        self.queue.len() + Header::LEN + MAX_FRAME <= MAX_QUEUE
    }

    fn write_frame(
        &mut self,
        wire: &mut Wire,
        header: &[u8],
        frame: &[IoSlice<'_>],
        total: usize,
    ) -> usize {
        if !self.has_room {
            return 0;
        }
        // Sealed records are made of one slice, too.
        let parts = iter::once(header).chain(frame.iter().map(|slice| &slice[..]));
        if total <= JOINED_SHORT {
            let joined: [u8; JOINED_SHORT] = join(parts);
            let result = wire.write(&[IoSlice::new(&joined[..total])], total);
            return self.note(result, total);
        }
        if total <= JOINED {
            let joined: [u8; JOINED] = join(parts);
            let result = wire.write(&[IoSlice::new(&joined[..total])], total);
            return self.note(result, total);
        }
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        slices[0] = IoSlice::new(header);
        let mut used = 1;
        for slice in frame
            .iter()
            .filter(|slice| !slice.is_empty())
            .take(MAX_SLICES - 1)
        {
            slices[used] = IoSlice::new(slice);
            used += 1;
        }
        let offered = slices[..used].iter().map(|slice| slice.len()).sum();
        debug_assert!(offered <= total);
        let result = wire.write(&slices[..used], offered);
        self.note(result, offered)
    }

    /// Copies what is not `written` of a frame to the queue.
    fn enqueue(&mut self, header: &[u8], frame: &[IoSlice<'_>], written: usize) {
        let mut skip = written;
        let slices = iter::once(header).chain(frame.iter().map(|slice| &slice[..]));
        for slice in slices {
            let skipped = skip.min(slice.len());
            self.queue.push(&slice[skipped..]);
            skip -= skipped;
        }
    }

    /// Writes what is queued, unless a piece is under way or the network has no room.
    fn write_queue(&mut self, wire: &mut Wire) {
        if self.piece.is_none() && self.has_room && self.failure.is_none() {
            let offered = self.queue.len();
            let result = wire.write(&[IoSlice::new(self.queue.bytes())], offered);
            let written = self.note(result, offered);
            self.queue.consume(written);
        }
    }

    /// Writes once: the rest of the piece under way, or else what is queued and the next piece behind it.
    fn write_next(&mut self, wire: &mut Wire) -> usize {
        let queued = if self.piece.is_some() {
            0
        } else {
            self.piece = self.bodies.front().map(Piece::of);
            self.queue.len()
        };
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let (mut used, mut offered) = (0, queued);
        if queued > 0 {
            slices[0] = IoSlice::new(self.queue.bytes());
            used = 1;
        }
        if let (Some(piece), Some(outgoing)) = (&self.piece, self.bodies.front()) {
            slices[used] = IoSlice::new(&piece.header[piece.header_sent..]);
            used += 1;
            used += outgoing.source.fill(piece.left, &mut slices[used..]);
            offered = slices[..used].iter().map(|slice| slice.len()).sum();
        }
        let result = wire.write(&slices[..used], offered);
        let written = self.note(result, offered);
        self.queue.consume(written.min(queued));
        self.advance_piece(written.saturating_sub(queued));
        written
    }

    /// This much of the piece and its header was written.
    fn advance_piece(&mut self, written: usize) {
        let (Some(piece), Some(outgoing)) = (&mut self.piece, self.bodies.front_mut()) else {
            return;
        };
        let of_header = written.min(Header::LEN - piece.header_sent);
        piece.header_sent += of_header;
        piece.left -= written - of_header;
        outgoing.source.advance(written - of_header);
        if piece.header_sent == 0 {
            // Not even begun: frames may go before it.
            self.piece = None;
        }
    }

    /// If the piece is written: lets go of its body if it was the last, and else of its turn.
    fn finish_piece(&mut self, sent: &mut impl FnMut(BodyId)) {
        let Some(piece) = &self.piece else { return };
        if piece.left > 0 || piece.header_sent < Header::LEN {
            return;
        }
        let last = piece.last;
        self.piece = None;
        let Some(outgoing) = self.bodies.pop_front() else {
            return;
        };
        match last {
            Last::Yes => {
                let body = outgoing.body;
                drop(outgoing);
                sent(body);
            }
            Last::No => self.bodies.push_back(outgoing),
        }
    }

    /// Remembers what a write says about the connection.
    fn note(&mut self, result: Result<usize, Errno>, offered: usize) -> usize {
        match result {
            Ok(written) => {
                // epoll(7): a short write means that there is no room, and that an edge will follow.
                self.has_room = written == offered;
                self.has_written = true;
                written
            }
            Err(Errno::AGAIN) => {
                self.has_room = false;
                0
            }
            Err(Errno::INTR) => 0,
            Err(errno) => {
                self.failure = Some(io::Error::from(errno).kind());
                0
            }
        }
    }
}

impl Piece {
    fn of(outgoing: &Outgoing) -> Self {
        let left = outgoing.source.remaining().min(MAX_PIECE);
        let last = if left == outgoing.source.remaining() {
            Last::Yes
        } else {
            Last::No
        };
        let header = Header::Piece {
            body: outgoing.body,
            len: left,
            last,
            asked: outgoing.asked,
        }
        .encode();
        Self {
            header,
            header_sent: 0,
            left,
            last,
        }
    }
}

/// Bytes queued for one peer: a few frames, so that a burst is not refused, and no more.
const MAX_QUEUE: usize = 4 * (Header::LEN + MAX_FRAME);
/// Bytes that wait for others at most: what one write carries well.
const MAX_GATHERED: usize = 64 * 1024;
/// Slices of one write. More gain nothing, and the array is on the stack.
const MAX_SLICES: usize = 64;
/// Bytes that one link writes before it is another's turn.
const FLUSH_TURN: usize = 1 << 20;
