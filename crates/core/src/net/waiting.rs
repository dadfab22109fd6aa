//! Messages to one peer that were posted and found no credits, in memory of their own.

use std::collections::BTreeMap;
use std::task::Waker;

use mizzen_proto::id::{MailboxId, StreamId};

use super::cut::Cut;
use crate::link::{Backlog, Queued};

/// A message of its own memory.
pub(super) struct Posted {
    pub(super) stream: StreamId,
    flags: [u8; Cut::FLAGS],
    head: Vec<u8>,
    pub(super) body: Vec<u8>,
}

impl Posted {
    pub(super) fn of(stream: StreamId, cut: &Cut<'_>) -> Self {
        Self {
            stream,
            flags: cut.flags,
            head: cut.copy_head(),
            body: cut.copy_body(),
        }
    }

    pub(super) fn with_cut<T>(&self, run: impl FnOnce(&Cut<'_>) -> T) -> T {
        run(&Cut::of_bytes(self.flags, &[&self.head], &[&self.body]))
    }
}

/// What waits for the credits of one peer's mailboxes.
#[derive(Default)]
pub(super) struct Behind {
    /// None of them is empty.
    pub(super) queues: BTreeMap<MailboxId, Backlog<Queued<Posted>>>,
    /// Tasks that wait until less waits.
    pub(super) posters: BTreeMap<MailboxId, Vec<Waker>>,
}

impl Behind {
    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Whether something waits for a mailbox: what is posted to it then waits behind it.
    pub(super) fn is_behind(&self, to: MailboxId) -> bool {
        self.queues.contains_key(&to)
    }
}
