//! What a name may be, and where its hash puts it.

use std::fmt;

/// The longest name, in bytes of UTF-8.
pub const NAME_MAX: usize = 255;

/// A valid name: 1 to [`NAME_MAX`] bytes of UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name<'a>(&'a str);

/// What is wrong with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    /// It is empty.
    #[error("empty")]
    Empty,
    /// It is above [`NAME_MAX`].
    #[error("{len} bytes, at most {limit} allowed")]
    TooLong {
        /// Its length.
        len: usize,
        /// The limit.
        limit: usize,
    },
}

impl<'a> Name<'a> {
    /// `name`, checked.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn new(name: &'a str) -> Result<Self, NameFault> {
        match name.len() {
            0 => Err(NameFault::Empty),
            len if len > NAME_MAX => Err(NameFault::TooLong {
                len,
                limit: NAME_MAX,
            }),
            _ => Ok(Self(name)),
        }
    }

    /// The name as text.
    pub fn as_str(self) -> &'a str {
        self.0
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// FNV-1a of 64 bits (draft-eastlake-fnv).
pub(super) fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for &byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

/// The finaliser of splitmix64: the last byte of a name hardly reaches the high bits of FNV-1a, and
/// `tile0` to `tile9` would all have one holder.
pub(super) fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_not_empty_and_not_too_long() {
        let longest = "x".repeat(NAME_MAX);
        assert_eq!(Name::new(&longest).unwrap().as_str(), longest);
        assert_eq!(Name::new(""), Err(NameFault::Empty));
        let (len, limit) = (NAME_MAX + 1, NAME_MAX);
        let too_long = format!("{longest}x");
        assert_eq!(Name::new(&too_long), Err(NameFault::TooLong { len, limit }));
    }

    #[test]
    fn fnv1a_agrees_with_its_published_values() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
