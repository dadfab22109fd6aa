//! Where things are in a lane's memory, and how a slot announces itself.
//!
//! Sender's region: a block for the sender's own state, then the slots, then the byte ring.
//! Receiver's region: one line.
//!
//! A message that is a little too long for a slot takes two, which lie in one block of two lines: a processor that fetches the one
//! fetches the other too, so both cost hardly more than one. Such a message begins at an even slot. Where an odd one is next, it
//! goes through the byte ring, and the slot after it is even.
//!
//! | region | offset | word | writer | reader | ordering |
//! | --- | --- | --- | --- | --- | --- |
//! | sender | 0 | `waiting`: bell number + 1 of a sender blocked on a full lane, or 0 | sender | receiver | fences, see `signal` |
//! | sender | 128 + 64·i | 7 payload words of slot i | sender | receiver | relaxed; ordered by the control word |
//! | sender | 128 + 64·i + 56 | control word of slot i | sender | receiver | release / acquire; that of a second slot relaxed, ordered by the first |
//! | sender | 128 + 64·i + 16 | of a message that grows: how many of its bytes are written | sender | receiver | release / acquire |
//! | sender | after the slots | byte ring | sender | receiver | plain copies; ordered by the control word |
//! | receiver | 0 | `released`: slots read so far, never decreasing | receiver | sender | release (max) / acquire |

/// The bytes that fit into one slot beside its control word.
pub const SLOT_MAX: usize = 56;
/// The same in 8-byte words.
pub(crate) const SLOT_WORDS: usize = SLOT_MAX / 8;
/// The bytes that fit into two slots, which are as many as a short message may take.
pub const SHORT_MAX: usize = 2 * SLOT_MAX;

pub(crate) const LINE: usize = 64;
/// How a control word says [`Kind::Growing`].
const GROWING: u8 = 5;
/// The payload word of a message that grows in which its sender says how many bytes are written.
pub(crate) const WRITTEN: usize = 2;
/// Two lines that are fetched together, and where they begin.
const BLOCK: usize = 2 * LINE;

/// How large a lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    slots: u32,
    bytes: u32,
}

impl Shape {
    /// Bytes of the receiver's region.
    pub const RECEIVER_BYTES: usize = LINE;
    /// The most slots a lane may have: positions are compared modulo 2³².
    pub const MAX_SLOTS: u32 = 1 << 16;
    /// The most bytes a lane's byte ring may have.
    pub const MAX_BYTES: u32 = 1 << 26;

    /// A lane of `slots` slots and a byte ring of `bytes` bytes.
    ///
    /// # Panics
    ///
    /// If either is not a power of two or is beyond its maximum: shapes are constants of the program.
    #[must_use]
    pub const fn new(slots: u32, bytes: u32) -> Self {
        assert!(slots.is_power_of_two() && slots >= 2 && slots <= Self::MAX_SLOTS);
        assert!(bytes.is_power_of_two() && bytes >= 64 && bytes <= Self::MAX_BYTES);
        Self { slots, bytes }
    }

    /// Bytes of the sender's region.
    #[must_use]
    pub const fn sender_bytes(self) -> usize {
        self.bytes_offset() + self.bytes as usize
    }

    /// The longest eager message: a quarter of the byte ring, so that several are under way at once.
    #[must_use]
    pub const fn eager_max(self) -> usize {
        self.bytes as usize / 4
    }

    /// How many slots: the most messages that are in a lane at once.
    #[must_use]
    pub const fn slots(self) -> u32 {
        self.slots
    }

    pub(crate) const fn bytes(self) -> u32 {
        self.bytes
    }

    /// The line of the slot at `position`, counted from the start of the sender's region.
    pub(crate) const fn slot_line(self, position: u32) -> usize {
        BLOCK / LINE + (position & (self.slots - 1)) as usize
    }

    pub(crate) const fn bytes_offset(self) -> usize {
        BLOCK + self.slots as usize * LINE
    }
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A message in one slot, or, longer than [`SLOT_MAX`], the first of two.
    Short,
    Eager,
    Close,
    /// The second slot of a short message.
    Second,
    /// An eager message that is still being written. Its control word becomes that of an eager one with its last byte: before that it
    /// is announced only to those who copy it out meanwhile.
    Growing,
}

/// The word that announces a slot: sequence number, kind, length of a short message, and the user's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    pub(crate) kind: Kind,
    pub(crate) len: u8,
    pub(crate) tag: u16,
}

/// How many slots a short message of `len` bytes takes, with its address word on a shared lane.
#[inline]
pub(crate) const fn slots_of(len: usize) -> u32 {
    if len <= SLOT_MAX { 1 } else { 2 }
}

/// The bytes that an address takes before a payload.
#[inline]
pub(crate) const fn lead(address: Option<u64>) -> usize {
    if address.is_some() {
        size_of::<u64>()
    } else {
        0
    }
}

/// Whether a message of two slots may begin at this one.
#[inline]
pub(crate) const fn begins_block(position: u32) -> bool {
    position % 2 == 0
}

impl Control {
    /// What the second slot of a short message says.
    pub(crate) const SECOND: Self = Self {
        kind: Kind::Second,
        len: 0,
        tag: 0,
    };

    /// The word for the slot at `position`. A slot is announced when it holds `position + 1`; memory starts
    /// as zero, and what a slot held one lap earlier differs by the number of slots.
    pub(crate) const fn encode(self, position: u32) -> u64 {
        let kind = match self.kind {
            Kind::Short => 1u8,
            Kind::Eager => 2,
            Kind::Close => 3,
            Kind::Second => 4,
            Kind::Growing => GROWING,
        };
        position.wrapping_add(1) as u64
            | (kind as u64) << 32
            | (self.len as u64) << 40
            | (self.tag as u64) << 48
    }

    /// Whether `word` announces the slot at `position`, be it of a message that still grows.
    pub(crate) const fn announces(word: u64, position: u32) -> bool {
        word as u32 == position.wrapping_add(1)
    }

    /// Whether `word` announces the slot at `position`, and all of its message is there.
    pub(crate) const fn announces_whole(word: u64, position: u32) -> bool {
        Self::announces(word, position) && (word >> 32) as u8 != GROWING
    }

    /// The parts of an announced word, or `None` if the peer wrote nonsense.
    pub(crate) const fn decode(word: u64) -> Option<Self> {
        let kind = match (word >> 32) as u8 {
            1 => Kind::Short,
            2 => Kind::Eager,
            3 => Kind::Close,
            4 => Kind::Second,
            GROWING => Kind::Growing,
            _ => return None,
        };
        let len = (word >> 40) as u8;
        if len as usize > SHORT_MAX {
            return None;
        }
        Some(Self {
            kind,
            len,
            tag: (word >> 48) as u16,
        })
    }
}

/// Where an eager message lies in the byte ring: the second payload word of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) offset: u32,
    pub(crate) len: u32,
}

impl Extent {
    pub(crate) const fn encode(self) -> u64 {
        self.offset as u64 | (self.len as u64) << 32
    }

    /// The extent, if it lies inside a byte ring of this shape.
    pub(crate) const fn decode(word: u64, shape: Shape) -> Option<Self> {
        let (offset, len) = (word as u32, (word >> 32) as u32);
        if offset as u64 + len as u64 > shape.bytes as u64 {
            return None;
        }
        Some(Self { offset, len })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_control_word_decodes_to_what_was_encoded() {
        for kind in [
            Kind::Short,
            Kind::Eager,
            Kind::Close,
            Kind::Second,
            Kind::Growing,
        ] {
            for len in 0..=SHORT_MAX as u8 {
                for position in [0, 1, 63, u32::MAX - 1, u32::MAX] {
                    let control = Control {
                        kind,
                        len,
                        tag: 0xbeef,
                    };
                    let word = control.encode(position);
                    assert!(Control::announces(word, position));
                    assert!(!Control::announces(word, position.wrapping_add(64)));
                    assert_eq!(Control::decode(word), Some(control));
                }
            }
        }
    }

    #[test]
    fn nonsense_of_a_peer_is_refused() {
        assert_eq!(Control::decode(0), None);
        assert_eq!(Control::decode(9 << 32), None);
        assert_eq!(
            Control::decode(1 << 32 | (SHORT_MAX as u64 + 1) << 40),
            None
        );
        let shape = Shape::new(4, 64);
        assert_eq!(
            Extent::decode(Extent { offset: 1, len: 64 }.encode(), shape),
            None
        );
        assert_eq!(Extent::decode(u64::MAX, shape), None);
        assert!(Extent::decode(Extent { offset: 0, len: 64 }.encode(), shape).is_some());
    }
}
