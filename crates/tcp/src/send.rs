//! The sending half of a link.
//!
//! A frame is written straight from the caller's slices; only what the network did not take is copied to
//! the queue, and what is queued goes out together. A body is written straight from the lender's memory,
//! in pieces, one of each body in turn; frames go between pieces.

use std::collections::{HashSet, VecDeque};
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;

use mizzen_driver::{BodyId, Gather, PeerId, Refused};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use crate::header::{Header, Last, MAX_FRAME, MAX_PIECE};

#[derive(Debug)]
pub(crate) struct SendHalf {
    peer: PeerId,
    /// Frames, or the end of one, that the network had no room for.
    queue: VecDeque<u8>,
    /// The first is the one that `piece` is of.
    bodies: VecDeque<(BodyId, Gather)>,
    piece: Option<Piece>,
    /// Bodies whose end was not yet reported.
    in_flight: HashSet<BodyId>,
    /// Whether the last write was taken whole.
    has_room: bool,
    /// Whether a frame was refused and the sender waits to hear of room.
    is_awaited: bool,
    /// Whether something was written since somebody asked.
    has_written: bool,
    failure: Option<io::ErrorKind>,
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
            queue: VecDeque::new(),
            bodies: VecDeque::new(),
            piece: None,
            in_flight: HashSet::new(),
            has_room: true,
            is_awaited: false,
            has_written: false,
            failure: None,
        }
    }

    pub(crate) fn send_frame(
        &mut self,
        socket: &OwnedFd,
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
        if self.failure.is_some() || self.queue.len() + total > MAX_QUEUE {
            // After a failure the loss is about to be reported; until then there is no room.
            self.is_awaited = true;
            return Err(Refused::Busy { peer: self.peer });
        }
        let header = Header::Frame { len }.encode();
        let is_next = self.queue.is_empty() && self.piece.is_none();
        let written = if is_next {
            self.write_frame(socket, &header, frame, total)
        } else {
            0
        };
        self.enqueue(&header, frame, written);
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

    pub(crate) fn send_body(&mut self, body: BodyId, source: Gather) {
        self.in_flight.insert(body);
        self.bodies.push_back((body, source));
    }

    /// The end of a body was reported: its id may be used again.
    pub(crate) fn forget(&mut self, body: BodyId) {
        self.in_flight.remove(&body);
    }

    pub(crate) fn handle_room(&mut self) {
        self.has_room = true;
    }

    /// Writes what the network takes, and names each body that is written to `sent`.
    pub(crate) fn flush(&mut self, socket: &OwnedFd, mut sent: impl FnMut(BodyId)) -> Flushed {
        let mut budget = FLUSH_TURN;
        while self.has_room && self.failure.is_none() {
            if budget == 0 {
                return Flushed::More;
            }
            let written = if self.piece.is_some() {
                let written = self.write_piece(socket);
                self.finish_piece(&mut sent);
                written
            } else if !self.queue.is_empty() {
                self.write_queue(socket)
            } else if let Some((body, source)) = self.bodies.front() {
                self.piece = Some(Piece::of(*body, source));
                continue;
            } else {
                break;
            };
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
        is_stranded || self.failure.is_some()
    }

    pub(crate) fn failure(&self) -> Option<io::ErrorKind> {
        self.failure
    }

    /// The bodies that were not written to their end.
    pub(crate) fn into_unsent(self) -> impl Iterator<Item = BodyId> {
        self.bodies.into_iter().map(|(body, _)| body)
    }

    fn takes_any_frame(&self) -> bool {
        self.queue.len() + Header::LEN + MAX_FRAME <= MAX_QUEUE
    }

    fn write_frame(
        &mut self,
        socket: &OwnedFd,
        header: &[u8],
        frame: &[IoSlice<'_>],
        total: usize,
    ) -> usize {
        if !self.has_room {
            return 0;
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
        self.write(socket, &slices[..used], offered)
    }

    /// Copies what is not `written` of a frame to the queue.
    fn enqueue(&mut self, header: &[u8], frame: &[IoSlice<'_>], written: usize) {
        let mut skip = written;
        let slices = std::iter::once(header).chain(frame.iter().map(|slice| &slice[..]));
        for slice in slices {
            let skipped = skip.min(slice.len());
            self.queue.extend(&slice[skipped..]);
            skip -= skipped;
        }
    }

    fn write_queue(&mut self, socket: &OwnedFd) -> usize {
        let queue = std::mem::take(&mut self.queue);
        let (first, second) = queue.as_slices();
        let written = self.write(
            socket,
            &[IoSlice::new(first), IoSlice::new(second)],
            queue.len(),
        );
        if written < queue.len() {
            self.queue = queue;
            self.queue.drain(..written);
        }
        written
    }

    fn write_piece(&mut self, socket: &OwnedFd) -> usize {
        let (Some(piece), Some((_, source))) = (&self.piece, self.bodies.front()) else {
            return 0;
        };
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        slices[0] = IoSlice::new(&piece.header[piece.header_sent..]);
        let used = 1 + source.fill(piece.left, &mut slices[1..]);
        let offered = slices[..used].iter().map(|slice| slice.len()).sum();
        let result = write(socket, &slices[..used]);
        let written = self.note(result, offered);
        let (Some(piece), Some((_, source))) = (&mut self.piece, self.bodies.front_mut()) else {
            return written;
        };
        let of_header = written.min(Header::LEN - piece.header_sent);
        piece.header_sent += of_header;
        piece.left -= written - of_header;
        source.advance(written - of_header);
        written
    }

    /// If the piece is written: lets go of its body if it was the last, and else of its turn.
    fn finish_piece(&mut self, sent: &mut impl FnMut(BodyId)) {
        let Some(piece) = &self.piece else { return };
        if piece.left > 0 || piece.header_sent < Header::LEN {
            return;
        }
        let last = piece.last;
        self.piece = None;
        let Some((body, source)) = self.bodies.pop_front() else {
            return;
        };
        match last {
            Last::Yes => {
                drop(source);
                sent(body);
            }
            Last::No => self.bodies.push_back((body, source)),
        }
    }

    fn write(&mut self, socket: &OwnedFd, slices: &[IoSlice<'_>], offered: usize) -> usize {
        let result = write(socket, slices);
        self.note(result, offered)
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
    fn of(body: BodyId, source: &Gather) -> Self {
        let left = source.remaining().min(MAX_PIECE);
        let last = if left == source.remaining() {
            Last::Yes
        } else {
            Last::No
        };
        let header = Header::Piece {
            body,
            len: left,
            last,
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

fn write(socket: &OwnedFd, slices: &[IoSlice<'_>]) -> Result<usize, Errno> {
    // Not writev, which would raise SIGPIPE in a program that is not ours.
    sendmsg(
        socket,
        slices,
        &mut SendAncillaryBuffer::default(),
        SendFlags::NOSIGNAL,
    )
}

/// Bytes queued for one peer: a few frames, so that a burst is not refused, and no more.
const MAX_QUEUE: usize = 4 * (Header::LEN + MAX_FRAME);
/// Slices of one write. More gain nothing, and the array is on the stack.
const MAX_SLICES: usize = 64;
/// Bytes that one link writes before it is another's turn.
const FLUSH_TURN: usize = 1 << 20;
