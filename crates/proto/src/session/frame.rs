//! What a session puts on the wire: greetings, refusals, stamps (docs/wire-sessions.md §21 to §24).

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::error::SessionError;
use super::limits::{EXPECTED_MAX, TAKEN_MAX};
use super::options::{ClusterId, JobId, MemoryForm};
use crate::credit::Credits;
use crate::id::{BodyId, ProcessId};

/// The version that has sessions.
pub const SESSION_VERSION: u16 = crate::wire::VERSION;

/// The bytes of a [`Stamp`].
pub const STAMP: usize = size_of::<StampLayout>();

/// The longest greeting.
pub const GREETING_MAX: usize =
    size_of::<GreetingLayout>() + EXPECTED_MAX * size_of::<BodyLayout>();

/// Whether a greeting asks or answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Turn {
    /// From the process that dialled.
    Ask = 1,
    /// From the process that was dialled.
    Answer = 2,
}

/// A body that its receiver waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// Its name.
    pub body: BodyId,
    /// How many of its bytes are where they belong, from the first on.
    pub in_place: u64,
}

/// The first frame of each end on a connection: who, and how far it has come (docs/wire-sessions.md §21).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// How numbers lie in the sender's memory.
    pub form: MemoryForm,
    /// The sender's cluster.
    pub cluster: ClusterId,
    /// The sender's job.
    pub job: JobId,
    /// Who speaks.
    pub from: ProcessId,
    /// Who should be listening.
    pub to: ProcessId,
    /// Which connection of the session this is.
    pub connection: u64,
    /// The last number that was accepted.
    pub received_through: u64,
    /// The first number that can be sent again.
    pub oldest_kept: u64,
    /// What each mailbox grants.
    pub window: Credits,
    /// Whether it asks or answers.
    pub turn: Turn,
    /// The bodies that the sender waits for, by name.
    pub expected: Vec<Expected>,
}

/// Why a connection is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is a newer one.
    Superseded {
        /// The newest number.
        newest: u64,
    },
    /// The session is over.
    Ended {
        /// The last number that was accepted; it is final.
        received_through: u64,
    },
    /// There is no such session here.
    Stranger,
    /// The life of who dials has ended, this process was told: nothing of it is taken any more.
    Fenced {
        /// The last number that was accepted before; it is final.
        received_through: u64,
    },
}

/// What comes before each frame (docs/wire-sessions.md §22.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The number of the frame; 0 for one that does not count.
    pub number: u64,
    /// The last number that the sender has accepted.
    pub received_through: u64,
}

/// A frame of a session's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionFrame {
    /// The first of a connection.
    Greeting(Greeting),
    /// The only one of a connection.
    Refusal(Refusal),
    /// An acknowledgement alone.
    Acknowledge(Stamp),
    /// These bodies have come.
    Taken(Stamp, Vec<BodyId>),
    /// The last that counts.
    Bye(Stamp),
}

/// What is behind a stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stamped<'a> {
    Acknowledge,
    Taken(Names<'a>),
    Bye,
    Frame(&'a [u8]),
}

/// Names of bodies, as they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Names<'a>(&'a [U64]);

impl Names<'_> {
    pub(super) fn iter(&self) -> impl Iterator<Item = BodyId> + '_ {
        self.0.iter().map(|name| BodyId(name.get()))
    }
}

impl Greeting {
    /// The greeting in `bytes`.
    ///
    /// # Errors
    /// Why they are none of this version. No input panics.
    pub fn decode(bytes: &[u8]) -> Result<Self, SessionError> {
        let malformed = SessionError::Malformed {
            expected: "a greeting",
            len: bytes.len(),
        };
        if bytes.first() != Some(&GREETING) {
            return Err(malformed);
        }
        // Another version may have another length: its number is the better complaint.
        if let Some(&[low, high]) = bytes.get(2..4) {
            let theirs = u16::from_le_bytes([low, high]);
            if theirs != SESSION_VERSION {
                return Err(SessionError::Version {
                    ours: SESSION_VERSION,
                    theirs,
                });
            }
        }
        let (header, rest) = GreetingLayout::ref_from_prefix(bytes).map_err(|_| malformed)?;
        let bodies = <[BodyLayout]>::ref_from_bytes(rest).map_err(|_| malformed)?;
        let grow = bodies
            .windows(2)
            .all(|pair| pair[0].body.get() < pair[1].body.get());
        if bodies.len() > EXPECTED_MAX || !grow || header.zero != [0; 2] {
            return Err(malformed);
        }
        let turn = match header.turn {
            1 => Turn::Ask,
            2 => Turn::Answer,
            _ => return Err(malformed),
        };
        Ok(Self {
            form: MemoryForm::from_u8s(header.byte_order, header.word).ok_or(malformed)?,
            cluster: ClusterId(header.cluster.get()),
            job: JobId(header.job),
            from: ProcessId::from_u64(header.from.get()),
            to: ProcessId::from_u64(header.to.get()),
            connection: header.connection.get(),
            received_through: header.received_through.get(),
            oldest_kept: header.oldest_kept.get(),
            window: Credits::new(header.window_messages.get(), header.window_bytes.get()),
            turn,
            expected: bodies
                .iter()
                .map(|one| Expected {
                    body: BodyId(one.body.get()),
                    in_place: one.in_place.get(),
                })
                .collect(),
        })
    }

    fn to_vec(&self) -> Vec<u8> {
        assert!(
            self.expected.len() <= EXPECTED_MAX,
            "more bodies than a greeting names"
        );
        let header = GreetingLayout {
            kind: GREETING,
            byte_order: self.form.byte_order as u8,
            version: SESSION_VERSION.into(),
            cluster: self.cluster.0.into(),
            job: self.job.0,
            from: self.from.to_u64().into(),
            to: self.to.to_u64().into(),
            connection: self.connection.into(),
            received_through: self.received_through.into(),
            oldest_kept: self.oldest_kept.into(),
            window_bytes: self.window.bytes.into(),
            window_messages: self.window.messages.into(),
            turn: self.turn as u8,
            word: self.form.word,
            zero: [0; 2],
        };
        let mut bytes = header.as_bytes().to_vec();
        for one in &self.expected {
            let one = BodyLayout {
                body: one.body.0.into(),
                in_place: one.in_place.into(),
            };
            bytes.extend_from_slice(one.as_bytes());
        }
        bytes
    }
}

impl Refusal {
    /// The refusal in `bytes`.
    ///
    /// # Errors
    /// They are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, SessionError> {
        let malformed = SessionError::Malformed {
            expected: "an answer",
            len: bytes.len(),
        };
        let layout = RefusalLayout::ref_from_bytes(bytes).map_err(|_| malformed)?;
        let words = (layout.newest.get(), layout.received_through.get());
        if layout.kind != REFUSAL || layout.zero != [0; 6] {
            return Err(malformed);
        }
        match (layout.reason, words) {
            (1, (newest, 0)) => Ok(Self::Superseded { newest }),
            (2, (0, received_through)) => Ok(Self::Ended { received_through }),
            (3, (0, 0)) => Ok(Self::Stranger),
            (4, (0, received_through)) => Ok(Self::Fenced { received_through }),
            _ => Err(malformed),
        }
    }

    fn to_vec(self) -> Vec<u8> {
        let (reason, newest, received_through) = match self {
            Self::Superseded { newest } => (1, newest, 0),
            Self::Ended { received_through } => (2, 0, received_through),
            Self::Stranger => (3, 0, 0),
            Self::Fenced { received_through } => (4, 0, received_through),
        };
        let layout = RefusalLayout {
            kind: REFUSAL,
            reason,
            zero: [0; 6],
            newest: newest.into(),
            received_through: received_through.into(),
        };
        layout.as_bytes().to_vec()
    }
}

impl Stamp {
    /// The sixteen bytes before a frame.
    pub fn to_bytes(self) -> [u8; STAMP] {
        let layout = StampLayout {
            number: self.number.into(),
            received_through: self.received_through.into(),
        };
        zerocopy::transmute!(layout)
    }

    /// Takes the stamp off a frame, and says what is behind it.
    pub(super) fn split(bytes: &[u8]) -> Result<(Self, Stamped<'_>), SessionError> {
        let malformed = SessionError::Malformed {
            expected: "a stamped frame",
            len: bytes.len(),
        };
        let (layout, rest) = StampLayout::ref_from_prefix(bytes).map_err(|_| malformed)?;
        let stamp = Self {
            number: layout.number.get(),
            received_through: layout.received_through.get(),
        };
        let stamped = match (stamp.number, rest) {
            (0, []) => Stamped::Acknowledge,
            (0, _) => {
                let names = rest.strip_prefix(&bare(TAKEN)).ok_or(malformed)?;
                let names = <[U64]>::ref_from_bytes(names).map_err(|_| malformed)?;
                if !(1..=TAKEN_MAX).contains(&names.len()) {
                    return Err(malformed);
                }
                Stamped::Taken(Names(names))
            }
            (_, []) => return Err(malformed),
            (_, rest) if rest == bare(BYE) => Stamped::Bye,
            // Only the bytes of above are bye.
            (_, [BYE, ..]) => return Err(malformed),
            (_, rest) => Stamped::Frame(rest),
        };
        Ok((stamp, stamped))
    }
}

impl SessionFrame {
    /// All of its bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        match self {
            Self::Greeting(greeting) => greeting.to_vec(),
            Self::Refusal(refusal) => refusal.to_vec(),
            Self::Acknowledge(stamp) => stamp.to_bytes().to_vec(),
            Self::Bye(stamp) => [&stamp.to_bytes()[..], &bare(BYE)].concat(),
            Self::Taken(stamp, bodies) => {
                let mut bytes = [&stamp.to_bytes()[..], &bare(TAKEN)].concat();
                for body in bodies {
                    bytes.extend_from_slice(&body.0.to_le_bytes());
                }
                bytes
            }
        }
    }
}

const fn bare(kind: u8) -> [u8; 8] {
    [kind, 0, 0, 0, 0, 0, 0, 0]
}

const GREETING: u8 = 0x01;
const BYE: u8 = 0x02;
const REFUSAL: u8 = 0x05;
const TAKEN: u8 = 0x06;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct GreetingLayout {
    kind: u8,
    byte_order: u8,
    version: U16,
    cluster: U32,
    job: [u8; 16],
    from: U64,
    to: U64,
    connection: U64,
    received_through: U64,
    oldest_kept: U64,
    window_bytes: U64,
    window_messages: U32,
    turn: u8,
    word: u8,
    zero: [u8; 2],
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct BodyLayout {
    body: U64,
    in_place: U64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RefusalLayout {
    kind: u8,
    reason: u8,
    zero: [u8; 6],
    newest: U64,
    received_through: U64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct StampLayout {
    number: U64,
    received_through: U64,
}
