//! Serde values that came in messages.
//!
//! An address inside a value is nothing but numbers until it belongs to the process that uses it. Serde cannot be told which
//! process that is, so it is left where the thread that decodes finds it.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::error::UnpackError;
use crate::process::Process;

scoped_tls::scoped_thread_local! {
    /// The process for which this thread decodes a value.
    static READER: Arc<Process>
}

/// Decodes a value that came to `process`: addresses inside it are for use by that process.
///
/// # Errors
///
/// [`UnpackError::Decode`] if the bytes are not a `T`.
#[inline]
pub fn decode<T: DeserializeOwned>(process: &Arc<Process>, bytes: &[u8]) -> Result<T, UnpackError> {
    READER
        .set(process, || postcard::from_bytes(bytes))
        .map_err(UnpackError::decode)
}

/// Gives `read` the process for which this thread decodes a value. `None` if it does not.
pub(crate) fn with_reader<T>(read: impl FnOnce(&Arc<Process>) -> T) -> Option<T> {
    READER.is_set().then(|| READER.with(read))
}
