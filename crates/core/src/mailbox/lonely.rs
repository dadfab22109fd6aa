//! A thread that waits for anybody, when nobody is left.

use std::time::Duration;

use crate::error::RetrieveError;
use crate::process::Process;
use crate::threads;

/// An error if nobody can send anything any more. `is_ready` says whether something came.
#[cold]
pub(super) fn check_anybody(
    process: &Process,
    waited: impl FnOnce() -> Duration,
    is_ready: impl FnOnce() -> bool,
) -> Result<(), RetrieveError> {
    let Some(gone) = process.others_if_gone() else {
        return Ok(());
    };
    // What came before that is found now: nobody is there to send after it.
    if is_ready() {
        return Ok(());
    }
    let others = process.size - 1;
    if threads::is_only_one() {
        return Err(RetrieveError::NobodyLeft { gone, others });
    }
    let (waited, longest) = (waited(), process.neighbours.longest_lonely_wait());
    match longest.filter(|longest| others > 0 && waited >= *longest) {
        Some(_) => Err(RetrieveError::NobodyCame { waited, others }),
        None => Ok(()),
    }
}
