//! Headers on the stack, and taking them off received bytes.

use std::ops::Deref;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{FrameKind, HEADER_MAX, layout};
use crate::ProtocolError;

/// The encoded header of one frame: a few bytes on the stack.
#[derive(Clone, Copy)]
pub struct HeaderBytes {
    bytes: [u8; HEADER_MAX],
    len: u8,
}

impl HeaderBytes {
    pub(super) fn new(header: &[u8]) -> Self {
        let mut bytes = [0; HEADER_MAX];
        bytes[..header.len()].copy_from_slice(header);
        let len = header.len() as u8;
        Self { bytes, len }
    }

    pub(super) fn bare(kind: u8) -> Self {
        let zero = [0; 7];
        Self::new(layout::Bare { kind, zero }.as_bytes())
    }

    pub(super) fn one_word(kind: u8, word: u64) -> Self {
        let (zero, word) = ([0; 7], word.into());
        Self::new(layout::OneWord { kind, zero, word }.as_bytes())
    }

    pub(super) fn two_words(kind: u8, words: [u64; 2]) -> Self {
        let (zero, words) = ([0; 7], words.map(Into::into));
        Self::new(layout::TwoWords { kind, zero, words }.as_bytes())
    }
}

impl Deref for HeaderBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl std::fmt::Debug for HeaderBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02x?}", &self[..])
    }
}

/// Takes the header off a frame that has a payload.
pub(super) fn split<H>(kind: FrameKind, bytes: &[u8]) -> Result<(&H, &[u8]), ProtocolError>
where
    H: FromBytes + KnownLayout + Immutable + Unaligned,
{
    H::ref_from_prefix(bytes).map_err(|_| ProtocolError::Truncated {
        kind,
        need: size_of::<H>(),
        have: bytes.len(),
    })
}

/// Takes the header off a frame that has none.
pub(super) fn exact<H>(kind: FrameKind, bytes: &[u8]) -> Result<&H, ProtocolError>
where
    H: FromBytes + KnownLayout + Immutable + Unaligned,
{
    let (header, rest) = split::<H>(kind, bytes)?;
    if !rest.is_empty() {
        return Err(ProtocolError::Trailing {
            kind,
            end: size_of::<H>(),
            extra: rest.len(),
        });
    }
    Ok(header)
}

/// Reserved bytes are zero, so that a later version can give them a meaning (docs/wire.md §2.3).
pub(super) fn zeros(kind: FrameKind, reserved: &[u8]) -> Result<(), ProtocolError> {
    if reserved.iter().any(|&byte| byte != 0) {
        return Err(ProtocolError::Reserved { kind });
    }
    Ok(())
}
