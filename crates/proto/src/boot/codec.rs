//! Bytes of a message, written and read: numbers, texts, lists, and what both kinds of message hold.

use super::{Death, FRAME_HEADER, MAX_FRAME, MAX_LIST, MAX_PROCESSES, Unreachable};

/// Why bytes are not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end before the message does.
    #[error("the message is cut off")]
    Truncated,
    /// There are bytes after the message.
    #[error("the message is followed by more")]
    TrailingBytes,
    /// A length or count exceeds its limit.
    #[error("a length or count exceeds its limit")]
    Limit,
    /// No message or case has this number.
    #[error("unknown kind {0}")]
    Kind(u8),
    /// A value contradicts another, or a text is not UTF-8.
    #[error("a value makes no sense")]
    Value,
}

/// Why a message cannot be sent: something exceeds its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message exceeds a limit")]
pub struct TooLarge;

pub(crate) struct Writer<'a> {
    pub(crate) out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.out.push(value);
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn u128(&mut self, value: u128) {
        self.raw(&value.to_le_bytes());
    }

    pub(crate) fn life(&mut self, rank: u32, incarnation: u32) -> Result<(), TooLarge> {
        self.u32(rank);
        self.u32(incarnation);
        Ok(())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8], limit: usize) -> Result<(), TooLarge> {
        let length = u32::try_from(bytes.len()).map_err(|_| TooLarge)?;
        if bytes.len() > limit {
            return Err(TooLarge);
        }
        self.u32(length);
        self.raw(bytes);
        Ok(())
    }

    pub(crate) fn text(&mut self, text: &str, limit: usize) -> Result<(), TooLarge> {
        self.bytes(text.as_bytes(), limit)
    }

    pub(crate) fn count(&mut self, count: usize) -> Result<(), TooLarge> {
        if count > MAX_LIST {
            return Err(TooLarge);
        }
        self.u32(u32::try_from(count).map_err(|_| TooLarge)?);
        Ok(())
    }

    pub(crate) fn death(&mut self, how: Death) -> Result<(), TooLarge> {
        let (kind, number) = match how {
            Death::Exit(code) => (1, code),
            Death::Signal(number) => (2, number),
            Death::HostLost => (3, 0),
        };
        self.raw(&[kind, number]);
        Ok(())
    }

    pub(crate) fn unreachable(&mut self, reason: Unreachable) -> Result<(), TooLarge> {
        self.u8(match reason {
            Unreachable::NoSuchRank => 1,
            Unreachable::Dead => 2,
            Unreachable::Left => 3,
        });
        Ok(())
    }
}

pub(crate) struct Reader<'a> {
    pub(crate) rest: &'a [u8],
}

impl Reader<'_> {
    /// Decodes `bytes`, all of them.
    pub(crate) fn whole<T>(
        bytes: &[u8],
        limit: usize,
        decode: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        if bytes.len() > limit {
            return Err(DecodeError::Limit);
        }
        let mut reader = Reader { rest: bytes };
        let value = decode(&mut reader)?;
        if !reader.rest.is_empty() {
            return Err(DecodeError::TrailingBytes);
        }
        Ok(value)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (first, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*first)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn u128(&mut self) -> Result<u128, DecodeError> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    pub(crate) fn bytes(&mut self, limit: usize) -> Result<Vec<u8>, DecodeError> {
        let length = usize::try_from(self.u32()?).map_err(|_| DecodeError::Limit)?;
        if length > limit {
            return Err(DecodeError::Limit);
        }
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(bytes.to_vec())
    }

    pub(crate) fn text(&mut self, limit: usize) -> Result<String, DecodeError> {
        String::from_utf8(self.bytes(limit)?).map_err(|_| DecodeError::Value)
    }

    /// Each item takes at least four bytes that arrived, so the list grows no faster than what feeds it.
    pub(crate) fn list<T>(
        &mut self,
        item: impl Fn(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = usize::try_from(self.u32()?).map_err(|_| DecodeError::Limit)?;
        if count > MAX_LIST {
            return Err(DecodeError::Limit);
        }
        (0..count).map(|_| item(self)).collect()
    }

    pub(crate) fn death(&mut self) -> Result<Death, DecodeError> {
        match self.array()? {
            [1, code] => Ok(Death::Exit(code)),
            [2, number] => Ok(Death::Signal(number)),
            [3, 0] => Ok(Death::HostLost),
            [3, _] => Err(DecodeError::Value),
            [kind, _] => Err(DecodeError::Kind(kind)),
        }
    }

    pub(crate) fn unreachable(&mut self) -> Result<Unreachable, DecodeError> {
        match self.u8()? {
            1 => Ok(Unreachable::NoSuchRank),
            2 => Ok(Unreachable::Dead),
            3 => Ok(Unreachable::Left),
            kind => Err(DecodeError::Kind(kind)),
        }
    }
}

/// A job of several hosts needs an authority, and a job of one host has none.
pub(crate) fn check_hosts(
    hosts: u32,
    size: u32,
    has_gateways: bool,
    authority: &[u8],
) -> Result<(), DecodeError> {
    // Only gateways carry no process.
    let most = if has_gateways { MAX_PROCESSES } else { size };
    if (1..=most).contains(&hosts) && (hosts > 1) != authority.is_empty() {
        Ok(())
    } else {
        Err(DecodeError::Value)
    }
}

/// Appends a header and what `encode` writes, or nothing.
pub(crate) fn frame(
    out: &mut Vec<u8>,
    encode: impl FnOnce(&mut Writer<'_>) -> Result<(), TooLarge>,
) -> Result<(), TooLarge> {
    let start = out.len();
    out.extend([0; FRAME_HEADER]);
    let result = encode(&mut Writer { out });
    let length = out.len() - start - FRAME_HEADER;
    match u32::try_from(length) {
        Ok(header) if result.is_ok() && length <= MAX_FRAME => {
            out[start..start + FRAME_HEADER].copy_from_slice(&header.to_le_bytes());
            Ok(())
        }
        _ => {
            out.truncate(start);
            Err(TooLarge)
        }
    }
}
