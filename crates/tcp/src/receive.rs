//! The receiving half of a link.
//!
//! Frames are read into a buffer and handed out from there. The bytes of a body that the buffer holds
//! already are copied to their place; the others are read straight into it. The buffer is taken from a pool
//! when there is something to read, and given back when it is empty: a quiet link has none.

use std::collections::BTreeMap;
use std::io::{self, IoSliceMut};

use mizzen_driver::{BodyId, Event, LossReason, PeerId, Refused, Scatter};
use rustix::io::Errno;

use crate::header::{Asked, Header, Last, MAX_FRAME};
use crate::session::{Scratch, Took};
use crate::wire::Wire;

#[derive(Debug)]
pub(crate) struct ReceiveHalf {
    peer: PeerId,
    buffer: Buffer,
    places: BTreeMap<BodyId, Scatter>,
    piece: Option<Piece>,
    /// A body that waits for its place, and the link with it.
    waiting: Option<BodyId>,
    /// For how many frames more a pushed body is expected behind one: as long as they come.
    bodies_expected: u8,
    /// Whether the network may have more than was read.
    has_more: bool,
    /// Whether the end of the stream may be there already, announced by an edge that is past. Then only a
    /// read of nothing means that all is read.
    may_have_ended: bool,
}

/// A piece of a body, partly read. Its body has a place with room for `left`.
#[derive(Debug, Clone, Copy)]
struct Piece {
    body: BodyId,
    left: usize,
    last: Last,
}

/// What a turn of reading came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// Everything that the network had.
    All,
    /// It stopped for the sake of others, or of the budget.
    More,
    /// The link is to be given up.
    Lost(LossReason),
}

impl ReceiveHalf {
    pub(crate) fn new(peer: PeerId) -> Self {
        Self {
            peer,
            buffer: Buffer::default(),
            places: BTreeMap::new(),
            piece: None,
            waiting: None,
            bodies_expected: 0,
            has_more: true,
            may_have_ended: true,
        }
    }

    pub(crate) fn check_body(&self, body: BodyId, max: usize) -> Result<(), Refused> {
        if self.places.contains_key(&body) {
            return Err(Refused::BodyInUse { body });
        }
        if self.places.len() == max {
            return Err(Refused::TooManyBodies { max });
        }
        Ok(())
    }

    /// Gives a body its place. Returns whether the link has waited for it.
    pub(crate) fn recv_body(&mut self, body: BodyId, place: Scatter) -> bool {
        self.places.insert(body, place);
        let waited = self.waiting == Some(body);
        if waited {
            self.waiting = None;
        }
        waited
    }

    pub(crate) fn handle_readable(&mut self) {
        self.has_more = true;
    }

    pub(crate) fn handle_hang_up(&mut self) {
        self.may_have_ended = true;
    }

    /// Reads and hands out at most `budget` events; counts them in `reported`.
    pub(crate) fn receive(
        &mut self,
        wire: &mut Wire,
        pool: &mut Pool,
        budget: usize,
        reported: &mut usize,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Received {
        let budget = budget.min(*reported + EVENTS_TURN);
        let mut bytes_left = BYTES_TURN;
        let received = loop {
            match self.hand_out(budget, reported, sink) {
                Ok(_) if self.waiting.is_some() => break Received::All,
                Ok(0) => break Received::More,
                Ok(_) if !self.has_more => break Received::All,
                Ok(_) if bytes_left == 0 => break Received::More,
                Ok(needed) => match self.read(wire, pool, needed) {
                    Ok(0) => break Received::Lost(LossReason::Closed),
                    Ok(len) => bytes_left = bytes_left.saturating_sub(len),
                    Err(Errno::AGAIN) => {
                        (self.has_more, self.may_have_ended) = (false, false);
                        break Received::All;
                    }
                    Err(Errno::INTR) => {}
                    Err(errno) => break Received::Lost(reason_of(errno)),
                },
                Err(violation) => break Received::Lost(LossReason::Violation(violation)),
            }
        };
        self.buffer.give_back_if_empty(pool);
        received
    }

    /// The bodies that did not arrive, and how many bytes of each did.
    pub(crate) fn into_missing(self) -> impl Iterator<Item = (BodyId, usize)> {
        let places = self.places.into_iter();
        places.map(|(body, place)| (body, place.filled()))
    }

    /// Hands out what is in the buffer. Returns how many bytes the next step needs to have in the buffer or
    /// in place, and 0 when the budget is used up.
    fn hand_out(
        &mut self,
        budget: usize,
        reported: &mut usize,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<usize, &'static str> {
        loop {
            if *reported >= budget || self.waiting.is_some() {
                return Ok(0);
            }
            if self.piece.is_some() {
                let missing = self.fill_piece(reported, sink);
                if missing > 0 {
                    return Ok(missing);
                }
                continue;
            }
            let Some(header) = self.buffer.filled().first_chunk() else {
                return Ok(Header::LEN);
            };
            match Header::decode(header)? {
                Header::Frame { len } => {
                    let total = Header::LEN + len;
                    let Some(frame) = self.buffer.filled().get(Header::LEN..total) else {
                        return Ok(total);
                    };
                    *reported += 1;
                    self.bodies_expected = self.bodies_expected.saturating_sub(1);
                    sink(Event::Frame {
                        peer: self.peer,
                        bytes: frame,
                    });
                    self.buffer.consume(total);
                }
                Header::Piece {
                    body,
                    len,
                    last,
                    asked,
                } => {
                    let Some(place) = self.places.get(&body) else {
                        if asked == Asked::For {
                            return Err("a body nobody asked for");
                        }
                        self.waiting = Some(body);
                        *reported += 1;
                        let peer = self.peer;
                        sink(Event::BodyWaiting { peer, body });
                        continue;
                    };
                    let room = place.remaining();
                    // Also: a piece is empty only if it is a whole body.
                    let fits = match last {
                        Last::Yes => len == room,
                        Last::No => 0 < len && len < room,
                    };
                    if !fits {
                        return Err("a body of another length");
                    }
                    if asked == Asked::Perhaps {
                        self.bodies_expected = BODIES_EXPECTED;
                    }
                    self.buffer.consume(Header::LEN);
                    self.piece = Some(Piece {
                        body,
                        left: len,
                        last,
                    });
                }
            }
        }
    }

    /// Copies what the buffer has of the piece to its place, and says how much is missing.
    fn fill_piece(&mut self, reported: &mut usize, sink: &mut dyn FnMut(Event<'_>)) -> usize {
        let Some(piece) = &mut self.piece else {
            return 0;
        };
        let body = piece.body;
        let place = self
            .places
            .get_mut(&body)
            .expect("a piece exists only while its body has a place");
        let here = &self.buffer.filled()[..piece.left.min(self.buffer.filled().len())];
        place.copy_from(here);
        piece.left -= here.len();
        let copied = here.len();
        self.buffer.consume(copied);
        if piece.left > 0 {
            return piece.left;
        }
        if piece.last == Last::Yes {
            self.places.remove(&body);
            *reported += 1;
            sink(Event::BodyReceived {
                peer: self.peer,
                body,
            });
        }
        self.piece = None;
        0
    }

    /// Reads once: into the place of a piece, or else into the buffer.
    fn read(&mut self, wire: &mut Wire, pool: &mut Pool, needed: usize) -> Result<usize, Errno> {
        if self.piece.is_none() {
            return self.read_ahead(wire, pool, needed);
        }
        let mut slices: [IoSliceMut<'_>; MAX_SLICES] =
            std::array::from_fn(|_| IoSliceMut::new(&mut []));
        let mut used = 0;
        let mut in_place = 0;
        if let Some(piece) = &self.piece {
            let place = self.places.get_mut(&piece.body);
            let place = place.expect("a piece exists only while its body has a place");
            used = place.fill(piece.left, &mut slices[..MAX_SLICES - 1]);
            in_place = slices[..used].iter().map(|slice| slice.len()).sum();
            if in_place == piece.left {
                let room = self.buffer.room(pool, 0);
                let len = room.len().min(SPARE_BEHIND_PIECE);
                slices[used] = IoSliceMut::new(&mut room[..len]);
                used += 1;
            }
        }
        let Took { len, is_all } = wire.read(&mut slices[..used], &mut pool.scratch)?;
        // epoll(7): a short read means that all is read, and that an edge will follow. The end of the stream has
        // no edge of its own if it came before this read.
        self.has_more = !is_all || self.may_have_ended;
        let placed = len.min(in_place);
        if let Some(piece) = &mut self.piece {
            if let Some(place) = self.places.get_mut(&piece.body) {
                place.advance(placed);
                piece.left -= placed;
            }
        }
        self.buffer.end += len - placed;
        Ok(len)
    }
}

impl ReceiveHalf {
    /// Reads once into the buffer.
    fn read_ahead(
        &mut self,
        wire: &mut Wire,
        pool: &mut Pool,
        needed: usize,
    ) -> Result<usize, Errno> {
        // Bytes of bodies should not take the way through the buffer.
        let spare = if self.places.is_empty() && self.bodies_expected == 0 {
            Buffer::LEN
        } else {
            SPARE_WITH_BODIES
        };
        let room = self.buffer.room(pool, needed);
        let offered = room.len().min(spare.max(needed));
        let Took { len, is_all } = wire.read(
            &mut [IoSliceMut::new(&mut room[..offered])],
            &mut pool.scratch,
        )?;
        self.has_more = !is_all || self.may_have_ended;
        self.buffer.end += len;
        Ok(len)
    }
}

/// Bytes read and not yet handed out.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Option<Box<[u8]>>,
    start: usize,
    end: usize,
}

/// Buffers that no link needs just now.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    buffers: Vec<Box<[u8]>>,
    /// For links whose bytes are sealed.
    scratch: Scratch,
}

impl Buffer {
    /// Room for the longest frame, and for many short ones at a time.
    const LEN: usize = 2 * (Header::LEN + MAX_FRAME);

    fn filled(&self) -> &[u8] {
        self.bytes
            .as_ref()
            .map_or(&[], |bytes| &bytes[self.start..self.end])
    }

    fn consume(&mut self, len: usize) {
        self.start += len;
        assert!(
            self.start <= self.end,
            "consumed more than is in the buffer"
        );
    }

    /// The free room behind what is filled, such that `needed` bytes fit in all.
    fn room(&mut self, pool: &mut Pool, needed: usize) -> &mut [u8] {
        assert!(needed <= Self::LEN, "a step needs more than a buffer holds");
        let bytes = self.bytes.get_or_insert_with(|| pool.take());
        if self.start == self.end || self.start + needed > Self::LEN {
            bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        &mut bytes[self.end..]
    }

    fn give_back_if_empty(&mut self, pool: &mut Pool) {
        if self.start == self.end {
            pool.put(self.bytes.take());
            (self.start, self.end) = (0, 0);
        }
    }
}

impl Pool {
    fn take(&mut self) -> Box<[u8]> {
        self.buffers
            .pop()
            .unwrap_or_else(|| vec![0; Buffer::LEN].into_boxed_slice())
    }

    fn put(&mut self, buffer: Option<Box<[u8]>>) {
        if let Some(buffer) = buffer.filter(|_| self.buffers.len() < MAX_POOL) {
            self.buffers.push(buffer);
        }
    }
}

fn reason_of(errno: Errno) -> LossReason {
    match errno {
        Errno::TIMEDOUT | Errno::HOSTUNREACH | Errno::NETUNREACH => LossReason::Silent,
        // A process that was killed, or that left without reading all, closes this way.
        Errno::CONNRESET | Errno::PIPE => LossReason::Closed,
        Errno::BADMSG => LossReason::Violation("records that are not sealed as they should be"),
        errno => LossReason::Broken(io::Error::from(errno).kind()),
    }
}

/// Slices of one read. More gain nothing, and the array is on the stack.
const MAX_SLICES: usize = 64;
/// Frames without a body after which none is expected behind the next.
const BODIES_EXPECTED: u8 = 16;
/// What is read into the buffer while bodies are awaited: enough for many short frames.
const SPARE_WITH_BODIES: usize = 4 * 1024;
/// What is read into the buffer behind a piece: the next header, and a few short frames.
const SPARE_BEHIND_PIECE: usize = 1024;
/// Events of one link before it is another's turn.
const EVENTS_TURN: usize = 32;
/// Bytes that one link reads before it is another's turn.
const BYTES_TURN: usize = 1 << 20;
/// Buffers to keep: links are read one at a time, so one is enough unless frames arrive in parts.
const MAX_POOL: usize = 8;
