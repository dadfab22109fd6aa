//! Where things are in a lane's memory, and how a slot announces itself.
//!
//! Sender's region: one line for the sender's own state, then the slots, then the byte ring.
//! Receiver's region: one line.
//!
//! | region | offset | word | writer | reader | ordering |
//! | --- | --- | --- | --- | --- | --- |
//! | sender | 0 | `waiting`: bell number + 1 of a sender blocked on a full lane, or 0 | sender | receiver | fences, see `signal` |
//! | sender | 64 + 64·i | 7 payload words of slot i | sender | receiver | relaxed; ordered by the control word |
//! | sender | 64 + 64·i + 56 | control word of slot i | sender | receiver | release / acquire |
//! | sender | after the slots | byte ring | sender | receiver | plain copies; ordered by the control word |
//! | receiver | 0 | `released`: slots read so far, never decreasing | receiver | sender | release (max) / acquire |

/// The bytes that fit into one slot beside its control word.
pub const SHORT_MAX: usize = 56;
/// The same in 8-byte words.
pub const SHORT_WORDS: usize = SHORT_MAX / 8;

pub(crate) const LINE: usize = 64;

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
        LINE + self.slots as usize * LINE + self.bytes as usize
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
        1 + (position & (self.slots - 1)) as usize
    }

    pub(crate) const fn bytes_offset(self) -> usize {
        LINE + self.slots as usize * LINE
    }
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Short,
    Eager,
    Close,
}

/// The word that announces a slot: sequence number, kind, length of a short message, and the user's tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Control {
    pub(crate) kind: Kind,
    pub(crate) len: u8,
    pub(crate) tag: u16,
}

impl Control {
    /// The word for the slot at `position`. A slot is announced when it holds `position + 1`; memory starts
    /// as zero, and what a slot held one lap earlier differs by the number of slots.
    pub(crate) const fn encode(self, position: u32) -> u64 {
        let kind = match self.kind {
            Kind::Short => 1,
            Kind::Eager => 2,
            Kind::Close => 3,
        };
        position.wrapping_add(1) as u64
            | kind << 32
            | (self.len as u64) << 40
            | (self.tag as u64) << 48
    }

    /// Whether `word` announces the slot at `position`.
    pub(crate) const fn announces(word: u64, position: u32) -> bool {
        word as u32 == position.wrapping_add(1)
    }

    /// The parts of an announced word, or `None` if the peer wrote nonsense.
    pub(crate) const fn decode(word: u64) -> Option<Self> {
        let kind = match (word >> 32) as u8 {
            1 => Kind::Short,
            2 => Kind::Eager,
            3 => Kind::Close,
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
        for kind in [Kind::Short, Kind::Eager, Kind::Close] {
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
        assert_eq!(Control::decode(1 << 32 | 57 << 40), None);
        let shape = Shape::new(4, 64);
        assert_eq!(
            Extent::decode(Extent { offset: 1, len: 64 }.encode(), shape),
            None
        );
        assert_eq!(Extent::decode(u64::MAX, shape), None);
        assert!(Extent::decode(Extent { offset: 0, len: 64 }.encode(), shape).is_some());
    }
}
