//! Posting receives into borrowed memory, for scopes.
#![allow(unsafe_code)]

use super::posted::{LentReceive, Whose};
use super::state::Mailbox;
use crate::error::Error;
use crate::plain::Plain;
use crate::rank::Rank;

impl Mailbox {
    /// Posts a receive, of a message of one rank if one is named.
    ///
    /// # Errors
    ///
    /// As [`post_receive_from`](Self::post_receive_from).
    ///
    /// # Safety
    ///
    /// What this returns is dropped before `'m` ends: it is not leaked.
    pub(crate) unsafe fn post_lent<'m, T: Plain + Send + 'static>(
        &self,
        from: Option<Rank>,
        memory: &'m mut [T],
    ) -> Result<LentReceive<'m>, Error> {
        let whose = match from {
            Some(rank) => self.whose(rank)?,
            None => Whose::Anybody,
        };
        // SAFETY: passed on.
        Ok(unsafe { LentReceive::post(self.exchange(), whose, memory) })
    }
}
