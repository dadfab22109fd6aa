//! Posting receives into borrowed memory, for scopes.
#![allow(unsafe_code)]

use super::posted::{LentReceive, Whose};
use super::state::Mailbox;
use crate::plain::Plain;

impl Mailbox {
    /// Posts a receive.
    ///
    /// # Safety
    ///
    /// What this returns is dropped before `'m` ends: it is not leaked.
    pub(crate) unsafe fn post_lent<'m, T: Plain + Send + 'static>(
        &self,
        from: Whose,
        memory: &'m mut [T],
    ) -> LentReceive<'m> {
        // SAFETY: passed on.
        unsafe { LentReceive::post(self.exchange(), from, memory) }
    }
}
