//! Names of things that cross the driver's boundary.

use std::fmt;
use std::str::FromStr;

/// One process, as the layer above names it.
///
/// Both ends use the same value for the same process. The layer above encodes rank and incarnation
/// in it; a driver only compares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u64);

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "peer {:#x}", self.0)
    }
}

/// One body in flight between two peers in one direction.
///
/// The layer above chooses it; both ends use the same value for the same body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyId(pub u64);

impl fmt::Display for BodyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "body {:#x}", self.0)
    }
}

/// Where a driver can be reached: text that only a driver of the same kind understands.
///
/// For TCP it reads `10.0.0.1:4000,10.0.1.1:4000`. It travels in names and messages, so its length is
/// bounded and it is printable ASCII without spaces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locator(Box<str>);

impl Locator {
    /// The longest locator, in bytes: twenty IPv6 addresses with ports.
    pub const MAX_LEN: usize = 1024;

    /// Checks `text` and keeps it.
    ///
    /// # Errors
    ///
    /// When the text is empty, too long, or not printable ASCII.
    pub fn new(text: &str) -> Result<Self, LocatorError> {
        if text.is_empty() {
            return Err(LocatorError::Empty);
        }
        if text.len() > Self::MAX_LEN {
            return Err(LocatorError::TooLong { len: text.len() });
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(LocatorError::NotPrintable);
        }
        Ok(Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Locator {
    type Err = LocatorError;

    fn from_str(text: &str) -> Result<Self, LocatorError> {
        Self::new(text)
    }
}

/// Why text is not a locator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocatorError {
    /// No text.
    #[error("locator is empty")]
    Empty,
    /// More text than a locator may hold.
    #[error("locator has {len} bytes, more than {max}", max = Locator::MAX_LEN)]
    TooLong {
        /// Its length.
        len: usize,
    },
    /// Spaces, control characters or other than ASCII.
    #[error("locator is not printable ASCII without spaces")]
    NotPrintable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locator_keeps_its_text() {
        let locator = Locator::new("10.0.0.1:4000,[::1]:4000").unwrap();
        assert_eq!(locator.as_str(), "10.0.0.1:4000,[::1]:4000");
        assert_eq!(locator.to_string().parse::<Locator>().unwrap(), locator);
    }

    #[test]
    fn a_locator_is_bounded_and_printable() {
        assert_eq!(Locator::new(""), Err(LocatorError::Empty));
        assert_eq!(Locator::new("a b"), Err(LocatorError::NotPrintable));
        assert_eq!(Locator::new("\u{e9}"), Err(LocatorError::NotPrintable));
        assert!(Locator::new(&"x".repeat(Locator::MAX_LEN)).is_ok());
        let len = Locator::MAX_LEN + 1;
        assert_eq!(
            Locator::new(&"x".repeat(len)),
            Err(LocatorError::TooLong { len })
        );
    }
}
