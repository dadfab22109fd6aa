//! What a user says about a map.

use std::time::Duration;

/// What a user says about a map before it begins.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) name: String,
    pub(super) threads: usize,
    pub(super) progress: Option<bool>,
    pub(super) help_for: Option<Duration>,
}
