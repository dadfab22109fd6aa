//! A message that a thread waits for, taken on its way from the driver to the queue of its mailbox.
//!
//! Most messages of a program that cares for time are waited for, and whoever waits looks at the network itself. Such a message needs
//! no memory of its own, no place in a queue, and nobody to be woken.

use crate::delivery::Core;
use crate::message::Flags;
use crate::rank::{MailboxId, ProcessId};

/// What a thread waits for: one plain piece of just that length. Its mailbox has nothing else that came over a network.
pub(crate) struct Catch<'a> {
    mine: &'a Core,
    flags: Flags,
    target: &'a mut [u8],
    is_over: bool,
}

impl<'a> Catch<'a> {
    /// `flags` as its sender marks it.
    pub(crate) fn new(mine: &'a Core, flags: Flags, target: &'a mut [u8]) -> Self {
        Self {
            mine,
            flags,
            target,
            is_over: false,
        }
    }

    /// Whether it was there.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes a message that came, if it is the one. What came before it is in the queue: whoever puts it there has the port.
    pub(super) fn take(
        &mut self,
        from: ProcessId,
        to: MailboxId,
        flags: Flags,
        message: &[u8],
    ) -> bool {
        // What earlier lives of a rank sent, and the news of their end, comes before what a later one sends.
        let is_first = from.incarnation.0 == 0 && self.mine.is_queue_empty();
        if self.is_over
            || to != self.mine.id
            || flags != self.flags.with(Flags::FOREIGN)
            || message.len() != self.target.len()
            || !is_first
        {
            return false;
        }
        self.target.copy_from_slice(message);
        self.is_over = true;
        true
    }
}
