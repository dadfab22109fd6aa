//! Bytes that only launcher and agents may know.

use zeroize::Zeroize;

/// The secret of the job's authority: wiped when dropped, never printed. Empty if the job has one host.
///
/// ```
/// let secret = mizzen_proto::boot::Secret::new(vec![1, 2, 3]);
/// assert_eq!(secret.as_bytes(), [1, 2, 3]);
/// assert_eq!(format!("{secret:?}"), "Secret(..)");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Takes the bytes. The caller must wipe other copies.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Without its bytes.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}
