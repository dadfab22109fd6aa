//! The piece table in front of a message's bytes.
//!
//! A message of one plain piece has no table: its bytes are the piece. Any other message begins with the number of
//! pieces and, for each, its length times two, plus one if it is lent; all as variable-length integers. A
//! lent piece holds a descriptor of the buffer instead of its bytes.

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
    /// What may be said on the wire.
    pub(crate) const ON_WIRE: Self = Self(Self::SINGLE.0 | Self::LENT.0);

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the message cannot be opened without the memory of its sender.
    pub(crate) const fn refers_to_lender(self) -> bool {
        self.0 & (Self::LENT.0 | Self::LONG.0 | Self::STREAM.0 | Self::HANDED.0) != 0
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
    pub(crate) lent: bool,
}

/// Appends `value` to `out`.
pub(crate) fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
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
    pub(crate) fn push(self, table: &mut Vec<u8>) {
        push_varint(table, self.len << 1 | u64::from(self.lent));
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let (value, used) = read_varint(bytes)?;
        Some((
            Self {
                len: value >> 1,
                lent: value & 1 == 1,
            },
            used,
        ))
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
                push_varint(&mut bytes, value);
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
    fn an_integer_beyond_64_bits_is_refused() {
        assert_eq!(read_varint(&[0xff; 11]), None);
        assert_eq!(
            read_varint(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]),
            None
        );
    }
}
