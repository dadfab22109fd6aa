//! Fingerprints of public keys, which people tell each other.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest::{SHA256, digest};

/// By what a key is known: the SHA-256 of its SubjectPublicKeyInfo (RFC 7469, 2.4).
///
/// Its text is `sha256:` and 64 hexadecimal digits in lower case, and there is one text for each. Of the key and not of a certificate,
/// so that a certificate can be renewed without telling anybody.
///
/// ```
/// use mizzen_identity::{Pin, SiteKey};
///
/// let pin = SiteKey::generate()?.pin();
/// assert_eq!(pin.to_string().parse::<Pin>()?, pin);
/// assert!(pin.to_string().to_uppercase().parse::<Pin>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pin([u8; LENGTH]);

impl Pin {
    /// The pin of a key, as certificates hold it.
    pub(crate) fn of(public_info: &[u8]) -> Self {
        let mut pin = [0; LENGTH];
        pin.copy_from_slice(digest(&SHA256, public_info).as_ref());
        Self(pin)
    }
}

/// A text is not a pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a pin is {PREFIX} and {} hexadecimal digits in lower case, as `mizzen site show` prints it",
    2 * LENGTH
)]
pub struct PinError;

impl FromStr for Pin {
    type Err = PinError;

    fn from_str(text: &str) -> Result<Self, PinError> {
        let digits = text.strip_prefix(PREFIX).ok_or(PinError)?.as_bytes();
        if digits.len() != 2 * LENGTH {
            return Err(PinError);
        }
        let mut pin = [0; LENGTH];
        for (byte, pair) in pin.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Self(pin))
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pin({self})")
    }
}

fn digit(character: u8) -> Result<u8, PinError> {
    match character {
        b'0'..=b'9' => Ok(character - b'0'),
        b'a'..=b'f' => Ok(character - b'a' + 10),
        _ => Err(PinError),
    }
}

const PREFIX: &str = "sha256:";
const LENGTH: usize = 32;
