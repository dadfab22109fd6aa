//! The piece table in front of a message's bytes.
//!
//! A message of one plain piece has no table: its bytes are the piece. Any other message begins with the number of
//! pieces and, for each, its length times four, plus one if it is lent or two if it is a serde value; all as variable-length
//! integers. A lent piece holds a descriptor of the buffer instead of its bytes.

/// What a message's tag says about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(pub(crate) u16);

impl Flags {
    /// One plain piece, no table.
    pub(crate) const SINGLE: Self = Self(1);
    /// Some pieces are lent buffers.
    pub(crate) const LENT: Self = Self(2);
    /// The payload is the descriptor of an arena block that holds the real payload.
    pub(crate) const LONG: Self = Self(4);
    /// Not a message to a mailbox but a word between the two runtimes.
    pub(crate) const CONTROL: Self = Self(8);
    /// It came over a network: lent pieces hold the bytes of their buffers. Neither in lanes nor on the wire.
    pub(crate) const FOREIGN: Self = Self(16);
    /// The payload is the descriptor of the manifest of a message that is still being written.
    pub(crate) const STREAM: Self = Self(32);
    /// A header and a lent buffer, without a table: the buffer's ticket, then the header.
    pub(crate) const HANDED: Self = Self(64);
    /// The one piece of a message without a table is a serde value.
    pub(crate) const VALUE: Self = Self(128);
    /// Which numbers the one piece of a message without a table holds, if its sender said so: see [`Mark`].
    pub(crate) const MARK: Self = Self(0x0f00);
    /// Some of the message was read and let go, so that it cannot be read again. Neither in lanes nor on the wire.
    pub(crate) const SPENT: Self = Self(0x1000);
    /// Plain data in it has the bytes of each number in the other order. Neither in lanes nor on the wire.
    pub(crate) const SWAPPED: Self = Self(0x2000);
    /// A `usize` in it has another length than ours. Neither in lanes nor on the wire.
    pub(crate) const OTHER_WORD: Self = Self(0x4000);
    /// A lead, and behind it the message as it would be without: in lanes of senders only.
    pub(crate) const LED: Self = Self(0x8000);
    /// What may be said on the wire.
    pub(crate) const ON_WIRE: Self =
        Self(Self::SINGLE.0 | Self::LENT.0 | Self::VALUE.0 | Self::MARK.0);

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether it is a message behind its lead, and nothing of it is elsewhere.
    #[inline]
    pub(crate) const fn is_led(self) -> bool {
        self.0 & !(Self::SINGLE.0 | Self::VALUE.0) == Self::LED.0
    }

    /// Whether its plain data is not as it would lie in our memory.
    #[inline(always)]
    pub(crate) const fn is_unlike(self) -> bool {
        self.0 & (Self::SWAPPED.0 | Self::OTHER_WORD.0) != 0
    }

    /// What they say about the memory that its plain data comes from.
    pub(crate) const fn unlike(self) -> Self {
        Self(self.0 & (Self::SWAPPED.0 | Self::OTHER_WORD.0))
    }

    /// Whether the message cannot be opened without the memory of its sender.
    pub(crate) const fn refers_to_lender(self) -> bool {
        self.0 & (Self::LENT.0 | Self::LONG.0 | Self::STREAM.0 | Self::HANDED.0) != 0
    }

    /// Whether it is the ticket of a long message, whose memory was taken for it.
    pub(crate) const fn is_ticket(self) -> bool {
        self.0 & (Self::LONG.0 | Self::STREAM.0) != 0
    }

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// The most pieces of one message.
pub(crate) const MAX_PIECES: usize = 1 << 16;
/// Bytes of the longest variable-length integer.
pub(crate) const VARINT_MAX: usize = 10;

/// One entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) len: u64,
    pub(crate) kind: Kind,
}

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes that are a value: plain data, the address of a mailbox, a message.
    Plain = 0,
    /// The descriptor of a lent buffer, or, over a network, its bytes.
    Lent = 1,
    /// A serde value.
    Value = 2,
}

/// Gives `value` to `push`, byte by byte.
#[inline]
pub(crate) fn write_varint(mut value: u64, mut push: impl FnMut(u8)) {
    while value >= 0x80 {
        push(value as u8 | 0x80);
        value >>= 7;
    }
    push(value as u8);
}

/// Reads an integer from the front of `bytes`: the value and how many bytes it took.
pub(crate) fn read_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (index, byte) in bytes.iter().take(VARINT_MAX).enumerate() {
        let shift = 7 * index as u32;
        let part = u64::from(byte & 0x7f);
        if shift == 63 && part > 1 {
            return None;
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Some((value, index + 1));
        }
    }
    None
}

impl Entry {
    /// As it is written in the table.
    #[inline]
    pub(crate) fn encode(self) -> u64 {
        self.len << 2 | self.kind as u64
    }

    /// What `encode` made of it.
    #[inline]
    pub(crate) fn decode(value: u64) -> Option<Self> {
        let kind = match value & 3 {
            0 => Kind::Plain,
            1 => Kind::Lent,
            2 => Kind::Value,
            _ => return None,
        };
        let len = value >> 2;
        Some(Self { len, kind })
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let (value, used) = read_varint(bytes)?;
        Some((Self::decode(value)?, used))
    }

    pub(crate) fn is_lent(self) -> bool {
        self.kind == Kind::Lent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_length_come_back() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, u64::MAX >> shift] {
                let mut bytes = Vec::new();
                write_varint(value, |byte| bytes.push(byte));
                assert_eq!(read_varint(&bytes), Some((value, bytes.len())));
                assert_eq!(
                    read_varint(&bytes[..bytes.len() - 1]),
                    None,
                    "a truncated integer is refused"
                );
            }
        }
    }

    #[test]
    fn an_entry_comes_back_with_its_kind_and_an_unknown_kind_is_refused() {
        for kind in [Kind::Plain, Kind::Lent, Kind::Value] {
            for len in [0, 31, 32, 1 << 40] {
                let mut table = Vec::new();
                write_varint(Entry { len, kind }.encode(), |byte| table.push(byte));
                assert_eq!(
                    Entry::read(&table),
                    Some((Entry { len, kind }, table.len()))
                );
            }
        }
        assert_eq!(Entry::read(&[7]), None);
    }

    #[test]
    fn an_integer_beyond_64_bits_is_refused() {
        assert_eq!(read_varint(&[0xff; 11]), None);
        assert_eq!(
            read_varint(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]),
            None
        );
    }
}
