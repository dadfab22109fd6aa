//! Bytes that must not be seen: wiped when dropped, never printed.

use std::fmt;

use zeroize::Zeroizing;

use crate::identity::MAX_CLUSTER;

/// The longest secret of an authority, in bytes: version, cluster, job, time, both halves of the key.
pub const MAX_SECRET: usize = 1 + 1 + MAX_CLUSTER + 16 + 8 + 32 + 32;

/// The secret of an [`Authority`](crate::Authority), on its way from the launcher to an agent.
///
/// Whoever has it can be any process of the job. Send it only over connections that are authenticated and encrypted, or that do
/// not leave the host; never in arguments, the environment or a file.
///
/// ```
/// let secret = mizzen_identity::Authority::new("local", [1; 16])?.to_secret();
/// assert!(secret.as_bytes().len() <= mizzen_identity::MAX_SECRET);
/// assert_eq!(format!("{secret:?}"), "Secret(..)");
/// # Ok::<(), mizzen_identity::AuthorityError>(())
/// ```
pub struct Secret(Zeroizing<Vec<u8>>);

impl Secret {
    pub(crate) fn new(bytes: Zeroizing<Vec<u8>>) -> Self {
        Self(bytes)
    }

    /// The bytes. Wipe every copy that you make.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Without its bytes.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
