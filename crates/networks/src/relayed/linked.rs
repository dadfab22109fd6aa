//! One circuit that is there: what waits to be sent on it, and where what comes goes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::IoSlice;
use std::time::Duration;

use mizzen_driver::{BodyId, Event, Gather, PeerId, Scatter, Way};
use mizzen_identity::SEAL;
use mizzen_proto::membership::HostId;
use mizzen_proto::relay::{
    Broken, COVER, Circuit, Cover, FRAGMENT_HEADER, FRAME_HEADER, FragmentHeader, Lane,
    PIECE_HEADER, PieceHeader, Route,
};
use mizzen_proto::route::FRAGMENT;
use mizzen_proto::time::Time;

use super::dial::Dial;
use super::guard::Guard;
use super::links::{Inner, Links, Sent, Via};

/// One end of it.
pub(super) struct Linked {
    pub(super) host: HostId,
    pub(super) circuit: u64,
    pub(super) line: Circuit,
    pub(super) via: Via,
    /// Since when it is there.
    pub(super) since: Time,
    /// Whether the caller knows of it.
    pub(super) is_reported: bool,
    pub(super) has_turn: bool,
    pub(super) wants_room: bool,
    /// The other end is to hear that it has granted too little.
    pub(super) wants_word: bool,
    /// Whether it is sealed.
    pub(super) guard: Guard,
    /// What is said next to prove who we are.
    pub(super) flight: Option<Vec<u8>>,
    /// What was sealed, and its driver had no room for.
    covered: Option<Covered>,
    /// The wish that it fulfils, until the caller knows of it.
    pub(super) dial: Option<Dial>,
    /// Frames that were taken and did not go yet.
    pub(super) queue: VecDeque<Vec<u8>>,
    pub(super) queued: usize,
    pub(super) outgoing: VecDeque<Outgoing>,
    pub(super) incoming: BTreeMap<BodyId, Incoming>,
    /// Names in use, until their end is reported.
    pub(super) sending: BTreeSet<BodyId>,
    pub(super) receiving: BTreeSet<BodyId>,
    /// What came before its turn.
    pub(super) early: BTreeMap<u64, Vec<u8>>,
}

/// A fragment that was sealed with its number: nothing else ever has that.
struct Covered {
    header: FragmentHeader,
    cover: [u8; COVER],
    contents: Vec<u8>,
    /// How long it was before: so the ends count.
    length: usize,
}

pub(super) struct Outgoing {
    body: BodyId,
    source: Gather,
    offset: u64,
    total: u64,
}

pub(super) struct Incoming {
    place: Scatter,
    total: u64,
}

/// What a circuit has sent.
pub(super) enum Next {
    Nothing,
    Stuck,
    /// What nobody waits for.
    Other,
    Frame,
    /// Of a body; which, if it was the last.
    Piece(Option<BodyId>),
}

impl Linked {
    /// A circuit with a process on this host, through this gateway.
    pub(super) fn new(host: HostId, circuit: u64, line: Circuit, via: Via, since: Time) -> Self {
        Self {
            host,
            circuit,
            line,
            via,
            since,
            is_reported: false,
            has_turn: false,
            wants_room: false,
            wants_word: false,
            guard: Guard::None,
            flight: None,
            covered: None,
            dial: None,
            queue: VecDeque::new(),
            queued: 0,
            outgoing: VecDeque::new(),
            incoming: BTreeMap::new(),
            sending: BTreeSet::new(),
            receiving: BTreeSet::new(),
            early: BTreeMap::new(),
        }
    }

    /// Has a body sent, when its turn comes.
    pub(super) fn send_body(&mut self, body: BodyId, source: Gather) {
        self.sending.insert(body);
        let total = source.remaining() as u64;
        self.outgoing.push_back(Outgoing {
            body,
            source,
            offset: 0,
            total,
        });
    }

    /// Says where a body goes.
    pub(super) fn recv_body(&mut self, body: BodyId, place: Scatter) {
        self.receiving.insert(body);
        let total = place.remaining() as u64;
        self.incoming.insert(body, Incoming { place, total });
    }

    /// A piece of a body came; which, if it was the last of it.
    ///
    /// # Errors
    /// What the other end did wrong.
    pub(super) fn take_piece(
        &mut self,
        piece: PieceHeader,
        bytes: &[u8],
    ) -> Result<Option<BodyId>, &'static str> {
        let body = BodyId(piece.body);
        let incoming = self
            .incoming
            .get_mut(&body)
            .ok_or("a body came that was not asked for")?;
        let is_next = piece.offset == incoming.place.filled() as u64;
        if piece.total != incoming.total || !is_next {
            return Err("a body came of another length than was asked for");
        }
        incoming.place.copy_from(bytes);
        if incoming.place.remaining() > 0 {
            return Ok(None);
        }
        self.incoming.remove(&body);
        Ok(Some(body))
    }

    /// What is to be said of its bodies when it ends. Their memory is free.
    pub(super) fn end(self, peer: PeerId) -> Vec<Event<'static>> {
        let failed = |body, way, in_place| Event::BodyFailed {
            peer,
            body,
            way,
            in_place,
        };
        let sent = self.outgoing.iter();
        let sent = sent.map(|one| failed(one.body, Way::Sending, 0));
        let came = self.incoming.iter().map(|(body, one)| {
            let in_place = one.place.filled();
            failed(*body, Way::Receiving, in_place)
        });
        sent.chain(came).collect()
    }

    /// Keeps a frame of this length until it can be sent; `false` if there is no room.
    pub(super) fn keep_frame(&mut self, frame: &[IoSlice<'_>], length: usize) -> bool {
        if !self.has_room() {
            self.wants_room = true;
            return false;
        }
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&FRAME_HEADER);
        frame
            .iter()
            .for_each(|slice| bytes.extend_from_slice(slice));
        self.queued += length;
        self.queue.push_back(bytes);
        true
    }

    /// Whether it has come to its end by itself, or has not become a link in so long a time.
    pub(super) fn broken(&self, now: Time, patience: Duration) -> Option<Broken> {
        let since = self.dial.as_ref().map_or(self.since, |dial| dial.since);
        match self.guard.is_shaking() && now.since(since) >= patience {
            true => Some(Broken::Silent),
            false => self.line.broken(now),
        }
    }

    /// Whether nothing waits that goes before a frame.
    pub(super) fn is_clear(&self) -> bool {
        self.queue.is_empty() && self.flight.is_none() && self.covered.is_none()
    }

    /// Whether something was sealed that did not go yet.
    pub(super) fn has_covered(&self) -> bool {
        self.covered.is_some()
    }

    /// Whether a frame, however long, can be taken.
    pub(super) fn has_room(&self) -> bool {
        self.queued < QUEUE
    }

    /// Sends the next of what it has to send: frames before bodies.
    pub(super) fn send_next(
        &mut self,
        links: &mut Links,
        inner: &mut [Inner],
        route: Option<Route>,
        now: Time,
    ) -> Next {
        if self.covered.is_some() {
            return match self.send_covered(links, inner, now) {
                Sent::Yes => Next::Other,
                Sent::No => Next::Stuck,
            };
        }
        if let Some(flight) = self.flight.take() {
            let cover = Cover::Flight(&flight).header();
            let contents = [IoSlice::new(&cover), IoSlice::new(&flight)];
            let length = COVER + flight.len();
            let sent = self.send_as_is(links, inner, route, length, contents.into_iter(), now);
            if sent == Sent::Yes {
                return Next::Other;
            }
            self.flight = Some(flight);
            return Next::Stuck;
        }
        if self.guard.is_shaking() {
            return Next::Nothing;
        }
        if let Some(frame) = self.queue.pop_front() {
            let contents = [IoSlice::new(&frame)].into_iter();
            if self.send(links, inner, route, frame.len(), contents, now) == Sent::Yes {
                self.queued -= frame.len();
                return Next::Frame;
            }
            self.queue.push_front(frame);
            return Next::Stuck;
        }
        let Some(mut one) = self.outgoing.pop_front() else {
            return Next::Nothing;
        };
        let piece = one.source.remaining().min(PIECE);
        let header = PieceHeader {
            body: one.body.0,
            offset: one.offset,
            total: one.total,
        };
        let header = header.to_bytes();
        let mut slices = [IoSlice::new(&[]); SLICES];
        let count = one.source.fill(piece, &mut slices);
        let filled: usize = slices[..count].iter().map(|slice| slice.len()).sum();
        let parts = slices[..count].iter().map(|slice| IoSlice::new(slice));
        let contents = [IoSlice::new(&header)].into_iter().chain(parts);
        let sent = self.send(links, inner, route, header.len() + filled, contents, now);
        if sent == Sent::No {
            self.outgoing.push_front(one);
            return Next::Stuck;
        }
        one.source.advance(filled);
        one.offset += filled as u64;
        if one.source.remaining() > 0 {
            self.outgoing.push_front(one);
            return Next::Piece(None);
        }
        Next::Piece(Some(one.body))
    }

    /// Sends a fragment with these contents, if there is room for it: sealed, if the circuit is.
    pub(super) fn send<'a>(
        &mut self,
        links: &mut Links,
        inner: &mut [Inner],
        route: Option<Route>,
        length: usize,
        contents: impl Iterator<Item = IoSlice<'a>>,
        now: Time,
    ) -> Sent {
        if !matches!(self.guard, Guard::Sealed { .. }) {
            return self.send_as_is(links, inner, route, length, contents, now);
        }
        let Some((header, length)) = self.next_header(route, length) else {
            return Sent::No;
        };
        if self.covered.is_some() || !links.has_room(self.via, length + COVER + SEAL) {
            return Sent::No;
        }
        let mut room = std::mem::take(&mut links.room);
        room.clear();
        room.reserve(length + SEAL);
        contents.for_each(|slice| room.extend_from_slice(&slice));
        let Guard::Sealed { seal, .. } = &mut self.guard else {
            return Sent::No;
        };
        let taken = self.line.acknowledged();
        let Ok(phase) = seal.seal(header.number, taken, &header.lasting(), &mut room) else {
            return Sent::No;
        };
        let contents = &[][..];
        self.covered = Some(Covered {
            header,
            cover: Cover::Sealed { phase, contents }.header(),
            contents: room,
            length,
        });
        // If its driver has no room after all, it goes before anything else.
        self.send_covered(links, inner, now);
        Sent::Yes
    }

    /// Sends what was sealed.
    fn send_covered(&mut self, links: &mut Links, inner: &mut [Inner], now: Time) -> Sent {
        let Some(covered) = self.covered.take() else {
            return Sent::Yes;
        };
        let contents = [&covered.cover[..], &covered.contents];
        let length = FRAGMENT_HEADER + contents.iter().map(|part| part.len()).sum::<usize>();
        let contents = contents.into_iter().map(IoSlice::new);
        let sent = links.send(inner, self.via, covered.header, length, contents);
        match sent {
            Sent::Yes => {
                self.line.handle_sent(covered.length, now);
                links.room = covered.contents;
            }
            Sent::No => self.covered = Some(covered),
        }
        sent
    }

    /// Sends a fragment with these contents, if there is room for it, for all on the way to read.
    fn send_as_is<'a>(
        &mut self,
        links: &mut Links,
        inner: &mut [Inner],
        route: Option<Route>,
        length: usize,
        contents: impl Iterator<Item = IoSlice<'a>>,
        now: Time,
    ) -> Sent {
        let Some((header, length)) = self.next_header(route, length) else {
            return Sent::No;
        };
        let sent = links.send(inner, self.via, header, length, contents);
        if sent == Sent::Yes {
            self.line.handle_sent(length, now);
        }
        sent
    }

    /// The header of the next fragment, and its length with that, if the other end has granted it.
    fn next_header(
        &mut self,
        route: Option<Route>,
        length: usize,
    ) -> Option<(FragmentHeader, usize)> {
        let length = length + FRAGMENT_HEADER;
        if !self.line.may_send(length) {
            self.wants_word |= self.line.handle_blocked();
            return None;
        }
        let header = FragmentHeader {
            route: route?,
            hop: 0,
            lane: Lane::Shared,
            circuit: self.circuit,
            number: self.line.next_number(),
        };
        Some((header, length))
    }
}

/// The longest piece of a body.
const PIECE: usize = FRAGMENT as usize - FRAGMENT_HEADER - COVER - SEAL - PIECE_HEADER;
/// Parts of a body that go into one piece.
const SLICES: usize = 16;
/// Bytes of frames that wait for room: beyond them there is none.
const QUEUE: usize = FRAGMENT as usize;
