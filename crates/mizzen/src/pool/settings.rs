//! What a user says about a map.

use std::time::Duration;

use super::progress::Listener;

/// What a user says about a map before it begins.
#[derive(Debug)]
pub(super) struct Settings<'d> {
    pub(super) name: String,
    pub(super) threads: usize,
    pub(super) listener: Listener<'d>,
    pub(super) help_for: Option<Duration>,
}
