//! The header before arguments and results.

use mizzen_core::service::{Lead, SHORT_MAX};
use serde::Serialize;

/// Bytes of a header.
pub(super) const HEADER: usize = size_of::<Lead>();
/// A message of header and value that is at most this long is one piece; a longer one has two.
pub(super) const COMPACT_MAX: usize = 1024;

/// What is before the arguments of a call, and before its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// The client's number for the call.
    pub(super) call: u64,
    /// The client, as it called itself when it opened the path; 24 bits.
    pub(super) session: u32,
    pub(super) kind: Kind,
    /// How long the client waits, in milliseconds; 0: as long as it takes.
    pub(super) patience_ms: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Opens a path; the client's mailbox follows.
    Open,
    /// A call; its arguments follow.
    Call,
    /// A call that is not answered.
    Notify,
    /// Nobody waits for the call any more.
    Cancel,
    /// The client ends.
    Close,
    /// The result follows.
    Done,
    /// The handler panicked; its message follows.
    Panicked,
    /// The arguments are not what the service takes; a sentence follows.
    Refused,
    /// The handler gave no answer.
    Unanswered,
    /// The service ends: no call will be answered any more.
    Stopped,
    /// The result is longer than a message may be; its length and the limit follow.
    TooLong,
    /// The result could not be posted; a sentence follows.
    Unposted,
}

impl Kind {
    const ALL: [Self; 12] = [
        Self::Open,
        Self::Call,
        Self::Notify,
        Self::Cancel,
        Self::Close,
        Self::Done,
        Self::Panicked,
        Self::Refused,
        Self::Unanswered,
        Self::Stopped,
        Self::TooLong,
        Self::Unposted,
    ];
}

impl Header {
    pub(super) const SESSIONS: u32 = 1 << 24;

    #[inline]
    pub(super) fn encode(self) -> Lead {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.call.to_le_bytes());
        bytes[8..12].copy_from_slice(&(self.session << 8 | self.kind as u32).to_le_bytes());
        bytes[12..].copy_from_slice(&self.patience_ms.to_le_bytes());
        bytes
    }

    /// Puts this and `value` behind it into `slot`: how many bytes that is. `None`: it is too long.
    #[inline]
    pub(super) fn encode_with<T: Serialize + ?Sized>(
        self,
        value: &T,
        slot: &mut [u8; SHORT_MAX],
    ) -> Option<usize> {
        let (header, rest) = slot.split_at_mut(HEADER);
        header.copy_from_slice(&self.encode());
        let used = postcard::to_slice(value, rest).ok()?;
        Some(HEADER + used.len())
    }

    /// The header at the beginning of `bytes`, if it is one.
    #[inline]
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (call, rest) = bytes.split_first_chunk()?;
        let (who, rest) = rest.split_first_chunk()?;
        let (patience_ms, _) = rest.split_first_chunk()?;
        let who = u32::from_le_bytes(*who);
        Some(Self {
            call: u64::from_le_bytes(*call),
            session: who >> 8,
            kind: *Kind::ALL.get((who & 0xff) as usize)?,
            patience_ms: u32::from_le_bytes(*patience_ms),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Header, Kind};

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number);
            let header = Header {
                call: u64::MAX - 7,
                session: Header::SESSIONS - 1,
                kind,
                patience_ms: 1500,
            };
            assert_eq!(Header::decode(&header.encode()), Some(header));
        }
    }

    #[test]
    fn what_is_no_header_is_refused() {
        assert_eq!(Header::decode(&[0; 15]), None);
        let mut unknown = [0; 16];
        unknown[8] = 12;
        assert_eq!(Header::decode(&unknown), None);
    }
}
