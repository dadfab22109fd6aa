//! A slate of this process, while a member of a group has it.

use crate::endpoint::Endpoint;
use crate::mailboxes::Parting;
use crate::rank::SlateUse;

/// A slate of this process that nobody else uses: members of a group have one each.
#[derive(Debug)]
pub struct SlateNumber {
    process: Endpoint,
    slate: Option<SlateUse>,
}

impl SlateNumber {
    /// A slate, if there is one left.
    #[must_use]
    pub fn take(process: &Endpoint) -> Option<Self> {
        let slate = process.mailboxes.take_slate()?;
        Some(Self {
            process: process.clone(),
            slate: Some(slate),
        })
    }

    /// As others know it.
    #[must_use]
    pub fn get(&self) -> Option<SlateUse> {
        self.slate
    }

    /// Its owner has left; others may need it until `is_over` says so.
    pub(super) fn part(mut self, is_over: Parting) {
        if let Some(slate) = self.slate.take() {
            self.process.mailboxes.give_slate_back(slate, is_over);
        }
    }
}

impl Drop for SlateNumber {
    fn drop(&mut self) {
        if let Some(slate) = self.slate.take() {
            // Nobody has seen anything on it.
            self.process.mailboxes.slate(slate).leave(slate.time());
            let is_over = Box::new(|| true);
            self.process.mailboxes.give_slate_back(slate, is_over);
        }
    }
}
