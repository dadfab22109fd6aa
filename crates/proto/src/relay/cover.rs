//! What is around the contents of a fragment between ends that seal: a flight of their handshake, or contents that only they can open.

/// Bytes in front of both.
pub const COVER: usize = 1;

/// What a fragment has, where its ends seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cover<'a> {
    /// A flight of the handshake.
    Flight(&'a [u8]),
    /// Sealed [`Contents`](super::Contents).
    Sealed {
        /// Whether the key was replaced an odd number of times.
        phase: bool,
        /// What only the other end can open.
        contents: &'a [u8],
    },
}

impl<'a> Cover<'a> {
    /// What is in `bytes`; none, if it is nothing.
    #[must_use]
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let (kind, contents) = bytes.split_first()?;
        match *kind {
            FLIGHT => Some(Self::Flight(contents)),
            SEALED => Some(Self::Sealed {
                phase: false,
                contents,
            }),
            SEALED_ODD => Some(Self::Sealed {
                phase: true,
                contents,
            }),
            _ => None,
        }
    }

    /// What stands in front of it.
    #[must_use]
    pub fn header(&self) -> [u8; COVER] {
        match self {
            Self::Flight(_) => [FLIGHT],
            Self::Sealed { phase: false, .. } => [SEALED],
            Self::Sealed { phase: true, .. } => [SEALED_ODD],
        }
    }
}

// None of them begins contents that are not sealed: those never pass for them.
const FLIGHT: u8 = 3;
const SEALED: u8 = 4;
const SEALED_ODD: u8 = 5;
