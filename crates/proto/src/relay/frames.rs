//! What goes over a link with a gateway, as bytes: little-endian, unaligned, without padding.
//!
//! | frame | from | length |
//! | --- | --- | --- |
//! | grant | a gateway, to whoever sends to it | [`GRANT`] |
//! | blocked | a gateway that waits for a grant | [`BLOCKED`] |
//! | fragment | an end; gateways change only hop and lane | [`FRAGMENT_HEADER`] and what the ends say to each other |
//! | word | an end, or a gateway that knows no way on; gateways change only the hop | [`WORD`] |

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::credit::{Grant, Lane};
use super::heading::{FlowId, Heading};
use crate::id::ProcessId;
use crate::membership::HostId;
use crate::route::{FRAGMENT, MAX_HOPS};

/// Bytes of a grant.
pub const GRANT: usize = size_of::<GrantLayout>();
/// Bytes of saying that something waits.
pub const BLOCKED: usize = size_of::<BlockedLayout>();
/// Bytes in front of a fragment's contents.
pub const FRAGMENT_HEADER: usize = size_of::<FragmentLayout>();
/// Bytes of a word.
pub const WORD: usize = size_of::<WordLayout>();

/// Where a frame goes, and whence it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Route {
    /// The host that it is for.
    pub to_host: HostId,
    /// The process there.
    pub to: ProcessId,
    /// The host that it is from.
    pub from_host: HostId,
    /// The process there.
    pub from: ProcessId,
}

impl Route {
    /// The way back.
    #[must_use]
    pub fn back(self) -> Self {
        Self {
            to_host: self.from_host,
            to: self.from,
            from_host: self.to_host,
            from: self.to,
        }
    }

    /// What belongs together: all from this process to that one.
    #[must_use]
    pub fn flow(&self) -> FlowId {
        let flow = u64::from(self.from.rank.0) << 32 | u64::from(self.to.rank.0);
        FlowId { job: 0, flow }
    }
}

/// What is in front of a fragment's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FragmentHeader {
    /// Where it goes.
    pub route: Route,
    /// How many gateways it has passed.
    pub hop: u8,
    /// Against what it goes over this link.
    pub lane: Lane,
    /// Which circuit it is of.
    pub circuit: u64,
    /// Which fragment of that circuit, from 0.
    pub number: u64,
}

impl FragmentHeader {
    /// Its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; FRAGMENT_HEADER] {
        let layout = FragmentLayout {
            kind: KIND_FRAGMENT,
            lane: match self.lane {
                Lane::Shared => 0,
                Lane::Escape(class) => class,
                Lane::Last => LAST,
            },
            hop: self.hop,
            zero: 0,
            route: RouteLayout::of(&self.route),
            circuit: self.circuit.into(),
            number: self.number.into(),
        };
        zerocopy::transmute!(layout)
    }

    /// What of it is the same at both ends: gateways change the rest.
    #[must_use]
    pub fn lasting(&self) -> [u8; FRAGMENT_HEADER] {
        let lasting = Self {
            hop: 0,
            lane: Lane::Shared,
            ..*self
        };
        lasting.to_bytes()
    }

    /// What a gateway sees of it, of so many bytes in all.
    #[must_use]
    pub fn heading(&self, length: u32) -> Heading {
        Heading {
            flow: self.route.flow(),
            to: self.route.to_host,
            process: self.route.to,
            hop: self.hop,
            length,
        }
    }
}

/// What the ends of a circuit tell each other, and gateways tell them: the newest replaces all before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// Where it goes.
    pub route: Route,
    /// How many gateways it has passed.
    pub hop: u8,
    /// Which circuit it is about.
    pub circuit: u64,
    /// What is said.
    pub said: Said,
}

/// What is said of a circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// It is asked for. If it is there, this is older than what else was said.
    Wanted {
        /// Bytes that may be sent to who asks, from the beginning.
        granted: u64,
    },
    /// It is there.
    Open {
        /// Whether who says it has dialled.
        dialled: bool,
        /// How far it is.
        progress: Progress,
    },
    /// It is no more, or never was.
    Closed,
    /// A gateway knows no way to the process that this seems to come from.
    NoWay,
}

/// How far an end is with a circuit. All of it only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Fragments sent.
    pub sent: u64,
    /// Fragments taken, in order.
    pub taken: u64,
    /// Bytes that may be sent to it, from the beginning.
    pub granted: u64,
    /// What had been granted to it when it last had to wait for more.
    pub blocked: u64,
}

impl Progress {
    /// How far an end is with a circuit that it asks for.
    #[must_use]
    pub fn of_wanted(granted: u64) -> Self {
        Self {
            granted,
            ..Self::default()
        }
    }
}

impl Word {
    /// Its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; WORD] {
        let (said, progress) = match self.said {
            Said::Open { dialled, progress } => (if dialled { 1 } else { 2 }, progress),
            Said::Closed => (3, Progress::default()),
            Said::NoWay => (4, Progress::default()),
            Said::Wanted { granted } => (5, Progress::of_wanted(granted)),
        };
        let layout = WordLayout {
            kind: KIND_WORD,
            said,
            hop: self.hop,
            zero: 0,
            route: RouteLayout::of(&self.route),
            circuit: self.circuit.into(),
            sent: progress.sent.into(),
            taken: progress.taken.into(),
            granted: progress.granted.into(),
            blocked: progress.blocked.into(),
        };
        zerocopy::transmute!(layout)
    }
}

/// What is in a fragment, for its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contents<'a> {
    /// A whole frame.
    Frame(&'a [u8]),
    /// A piece of a body.
    Piece(PieceHeader, &'a [u8]),
}

/// Which piece of which body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceHeader {
    /// The body's name.
    pub body: u64,
    /// Where the piece begins in it.
    pub offset: u64,
    /// How long the whole body is.
    pub total: u64,
}

/// What stands before a frame.
pub const FRAME_HEADER: [u8; 1] = [1];
/// Bytes in front of a piece.
pub const PIECE_HEADER: usize = size_of::<PieceLayout>();

impl PieceHeader {
    /// Its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; PIECE_HEADER] {
        let layout = PieceLayout {
            kind: KIND_PIECE,
            body: self.body.into(),
            offset: self.offset.into(),
            total: self.total.into(),
        };
        zerocopy::transmute!(layout)
    }
}

impl<'a> Contents<'a> {
    /// What is in `bytes`; none, if it is nothing.
    #[must_use]
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        if [*kind] == FRAME_HEADER {
            return Some(Contents::Frame(rest));
        }
        let (layout, piece) = PieceLayout::ref_from_prefix(bytes).ok()?;
        let header = PieceHeader {
            body: layout.body.get(),
            offset: layout.offset.get(),
            total: layout.total.get(),
        };
        let end = header.offset.checked_add(piece.len() as u64)?;
        let fits = layout.kind == KIND_PIECE && end <= header.total;
        fits.then_some(Contents::Piece(header, piece))
    }
}

/// A frame of a link with a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayFrame<'a> {
    /// What may be sent.
    Grant(Grant),
    /// Something waits, though so many shared bytes were granted.
    Blocked(u64),
    /// Something that is handed on.
    Fragment(FragmentHeader, &'a [u8]),
    /// About a circuit.
    Word(Word),
}

/// What came is no frame of a gateway's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{len} bytes that begin with {first:?} are nothing that goes through gateways")]
pub struct Malformed {
    /// How many bytes came.
    pub len: usize,
    /// The first of them.
    pub first: Option<u8>,
}

impl<'a> RelayFrame<'a> {
    /// The frame in `bytes`. One form for each: encoded again, it gives these bytes.
    ///
    /// # Errors
    /// They are none. No input panics.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let malformed = Malformed {
            len: bytes.len(),
            first: bytes.first().copied(),
        };
        let frame = match malformed.first {
            Some(KIND_GRANT) => decode_grant(bytes),
            Some(KIND_FRAGMENT) => decode_fragment(bytes),
            Some(KIND_WORD) => decode_word(bytes),
            Some(KIND_BLOCKED) => decode_blocked(bytes),
            _ => None,
        };
        frame.ok_or(malformed)
    }
}

/// The bytes of a grant.
#[must_use]
pub fn grant_bytes(grant: &Grant) -> [u8; GRANT] {
    let mut escapes = [U64::ZERO; MAX_HOPS as usize];
    for (escape, granted) in escapes.iter_mut().zip(&grant.escapes[1..]) {
        *escape = (*granted).into();
    }
    let layout = GrantLayout {
        kind: KIND_GRANT,
        zero: [0; 7],
        shared: grant.shared.into(),
        escapes,
    };
    zerocopy::transmute!(layout)
}

/// The bytes of saying that something waits, though so many shared bytes were granted.
#[must_use]
pub fn blocked_bytes(granted: u64) -> [u8; BLOCKED] {
    let layout = BlockedLayout {
        kind: KIND_BLOCKED,
        zero: [0; 7],
        granted: granted.into(),
    };
    zerocopy::transmute!(layout)
}

fn decode_blocked<'a>(bytes: &[u8]) -> Option<RelayFrame<'a>> {
    let layout = BlockedLayout::ref_from_bytes(bytes).ok()?;
    (layout.zero == [0; 7]).then_some(RelayFrame::Blocked(layout.granted.get()))
}

fn decode_grant<'a>(bytes: &[u8]) -> Option<RelayFrame<'a>> {
    let layout = GrantLayout::ref_from_bytes(bytes).ok()?;
    let mut grant = Grant {
        shared: layout.shared.get(),
        ..Grant::default()
    };
    for (escape, granted) in grant.escapes[1..].iter_mut().zip(&layout.escapes) {
        *escape = granted.get();
    }
    (layout.zero == [0; 7]).then_some(RelayFrame::Grant(grant))
}

fn decode_fragment(bytes: &[u8]) -> Option<RelayFrame<'_>> {
    let (layout, contents) = FragmentLayout::ref_from_prefix(bytes).ok()?;
    let lane = match layout.lane {
        0 => Lane::Shared,
        LAST => Lane::Last,
        class if class <= MAX_HOPS => Lane::Escape(class),
        _ => return None,
    };
    let header = FragmentHeader {
        route: layout.route.get(),
        hop: layout.hop,
        lane,
        circuit: layout.circuit.get(),
        number: layout.number.get(),
    };
    let fits = bytes.len() as u64 <= FRAGMENT;
    (layout.zero == 0 && fits).then_some(RelayFrame::Fragment(header, contents))
}

fn decode_word<'a>(bytes: &[u8]) -> Option<RelayFrame<'a>> {
    let layout = WordLayout::ref_from_bytes(bytes).ok()?;
    let progress = Progress {
        sent: layout.sent.get(),
        taken: layout.taken.get(),
        granted: layout.granted.get(),
        blocked: layout.blocked.get(),
    };
    let is_empty = progress == Progress::default();
    let said = match layout.said {
        dialled @ 1..=2 => Said::Open {
            dialled: dialled == 1,
            progress,
        },
        3 if is_empty => Said::Closed,
        4 if is_empty => Said::NoWay,
        5 if progress == Progress::of_wanted(progress.granted) => Said::Wanted {
            granted: progress.granted,
        },
        _ => return None,
    };
    let word = Word {
        route: layout.route.get(),
        hop: layout.hop,
        circuit: layout.circuit.get(),
        said,
    };
    (layout.zero == 0).then_some(RelayFrame::Word(word))
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RouteLayout {
    to_host: U32,
    from_host: U32,
    to: U64,
    from: U64,
}

impl RouteLayout {
    fn of(route: &Route) -> Self {
        Self {
            to_host: route.to_host.0.into(),
            from_host: route.from_host.0.into(),
            to: route.to.to_u64().into(),
            from: route.from.to_u64().into(),
        }
    }

    fn get(&self) -> Route {
        Route {
            to_host: HostId(self.to_host.get()),
            to: ProcessId::from_u64(self.to.get()),
            from_host: HostId(self.from_host.get()),
            from: ProcessId::from_u64(self.from.get()),
        }
    }
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct FragmentLayout {
    kind: u8,
    lane: u8,
    hop: u8,
    zero: u8,
    route: RouteLayout,
    circuit: U64,
    number: U64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct WordLayout {
    kind: u8,
    said: u8,
    hop: u8,
    zero: u8,
    route: RouteLayout,
    circuit: U64,
    sent: U64,
    taken: U64,
    granted: U64,
    blocked: U64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct GrantLayout {
    kind: u8,
    zero: [u8; 7],
    shared: U64,
    escapes: [U64; MAX_HOPS as usize],
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct BlockedLayout {
    kind: u8,
    zero: [u8; 7],
    granted: U64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct PieceLayout {
    kind: u8,
    body: U64,
    offset: U64,
    total: U64,
}

/// Beside [`FRAME_HEADER`].
const KIND_PIECE: u8 = 2;

const KIND_GRANT: u8 = 1;
const KIND_FRAGMENT: u8 = 2;
const KIND_WORD: u8 = 3;
const KIND_BLOCKED: u8 = 4;

/// Stands for [`Lane::Last`].
const LAST: u8 = 255;
