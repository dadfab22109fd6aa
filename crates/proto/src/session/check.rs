//! Whether a greeting is from the other end of a session (docs/wire-sessions.md §21.3).

use super::error::SessionError;
use super::frame::{Greeting, Turn};
use super::options::{MemoryForm, SessionOptions};

/// Compares everything but the numbers, and its memory's form with what an earlier greeting told. What differs is no fault of the
/// peer: somebody else may have sent it.
pub(super) fn check(
    options: &SessionOptions,
    greeting: &Greeting,
    turn: Turn,
    told: Option<MemoryForm>,
) -> Result<(), SessionError> {
    let (from, to) = (greeting.from, greeting.to);
    if from != options.peer || to != options.local {
        return Err(SessionError::Stranger { from, to });
    }
    let same = [
        ("job", greeting.job == options.job),
        ("cluster", greeting.cluster == options.peer_cluster),
        ("window", greeting.window == options.window),
        ("turn", greeting.turn == turn),
        (
            "byte order or word",
            told.is_none_or(|form| greeting.form == form),
        ),
    ];
    match same.into_iter().find(|(_, is_same)| !is_same) {
        Some((field, _)) => Err(SessionError::Differs { field }),
        None => Ok(()),
    }
}
