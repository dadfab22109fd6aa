//! The credits of all mailboxes of one link, and which of the peer's are gone (docs/wire.md §6).
//!
//! There is an entry only where something was sent and not returned (docs/wire.md §6.7), or for a bounded
//! number of mailboxes that are gone.

use std::collections::{BTreeMap, VecDeque};

use super::{GONE_MAX, Refused};
use crate::ProtocolError;
use crate::credit::{CreditOverflow, Credits, Inflow, Outflow};
use crate::id::MailboxId;

#[derive(Debug)]
pub(super) struct Flows {
    window: Credits,
    /// To mailboxes of the peer.
    out: BTreeMap<MailboxId, Path>,
    /// Those of `out` that are gone, oldest first.
    gone: VecDeque<MailboxId>,
    /// Into mailboxes of this process.
    into: BTreeMap<MailboxId, Inflow>,
}

/// What we know of one mailbox of the peer; nothing is known of an idle one.
#[derive(Debug)]
enum Path {
    Open(Outflow),
    Gone,
}

/// Whether a batch of credits became due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Now,
    NotYet,
}

impl Flows {
    pub(super) fn new(window: Credits) -> Self {
        Self {
            window,
            out: BTreeMap::new(),
            gone: VecDeque::new(),
            into: BTreeMap::new(),
        }
    }

    pub(super) fn spend(&mut self, to: MailboxId, bytes: u64) -> Result<(), Refused> {
        // Most messages go where others went before.
        let path = match self.out.get_mut(&to) {
            Some(path) => path,
            None => self.begin_out(to),
        };
        match path {
            Path::Gone => Err(Refused::Gone),
            Path::Open(flow) => flow.spend(bytes).map_err(|_| Refused::NoCredit),
        }
    }

    pub(super) fn refund(&mut self, to: MailboxId, bytes: u64) {
        if let Some(Path::Open(flow)) = self.out.get_mut(&to) {
            flow.refund(bytes);
            if flow.is_idle() {
                self.out.remove(&to);
            }
        }
    }

    pub(super) fn consume(&mut self, mailbox: MailboxId, bytes: u64) -> Due {
        let Some(flow) = self.into.get_mut(&mailbox) else {
            return Due::NotYet;
        };
        // The mailbox closed, the peer sent more before it knew, and only now do we hear of a message that
        // was taken out before: it was accounted for when the mailbox closed.
        if flow.held().checked_sub(Credits::message(bytes)).is_none() {
            return Due::NotYet;
        }
        let was_due = flow.is_due();
        flow.consume(bytes);
        if flow.is_due() && !was_due {
            Due::Now
        } else {
            Due::NotYet
        }
    }

    /// What is left to return to a peer that used the mailbox; `None` for one that did not.
    pub(super) fn close(&mut self, mailbox: MailboxId) -> Option<Credits> {
        let mut flow = self.into.remove(&mailbox)?;
        Some(flow.poll_rest().unwrap_or(Credits::ZERO))
    }

    pub(super) fn handle_message(
        &mut self,
        to: MailboxId,
        payload: &[u8],
    ) -> Result<(), ProtocolError> {
        let flow = match self.into.get_mut(&to) {
            Some(flow) => flow,
            None => self.begin_into(to),
        };
        flow.handle_message(payload.len() as u64)
            .map_err(|source| ProtocolError::Window { to, source })
    }

    pub(super) fn handle_credit(
        &mut self,
        to: MailboxId,
        credits: Credits,
    ) -> Result<(), ProtocolError> {
        let Some(Path::Open(flow)) = self.out.get_mut(&to) else {
            let unreturned = Credits::ZERO;
            let source = CreditOverflow {
                credits,
                unreturned,
            };
            return Err(ProtocolError::Credit { to, source });
        };
        flow.handle_credit(credits)
            .map_err(|source| ProtocolError::Credit { to, source })?;
        if flow.is_idle() {
            self.out.remove(&to);
        }
        Ok(())
    }

    /// What was sent and never read, or `None` if it was known to be gone: each message that was on its
    /// way causes another gone.
    pub(super) fn handle_gone(&mut self, to: MailboxId) -> Option<Credits> {
        let unread = match self.out.insert(to, Path::Gone) {
            Some(Path::Gone) => return None,
            Some(Path::Open(flow)) => flow.unreturned(),
            None => Credits::ZERO,
        };
        if self.gone.len() == GONE_MAX {
            // A post to the forgotten one is answered with gone again.
            if let Some(oldest) = self.gone.pop_front() {
                self.out.remove(&oldest);
            }
        }
        self.gone.push_back(to);
        Some(unread)
    }

    pub(super) fn poll_credit(&mut self, mailbox: MailboxId) -> Option<Credits> {
        let flow = self.into.get_mut(&mailbox)?;
        let credits = flow.poll_credit()?;
        if flow.is_idle() {
            self.into.remove(&mailbox);
        }
        Some(credits)
    }

    /// What was sent and not returned, by mailbox.
    pub(super) fn into_unread(self) -> Vec<(MailboxId, Credits)> {
        let unreturned = |(mailbox, path)| match path {
            Path::Open(flow) => Some((mailbox, flow.unreturned())),
            Path::Gone => None,
        };
        let mut unread: Vec<_> = self.out.into_iter().filter_map(unreturned).collect();
        unread.sort_by_key(|&(mailbox, _)| mailbox);
        unread
    }

    #[cold]
    fn begin_out(&mut self, to: MailboxId) -> &mut Path {
        let path = self.out.entry(to);
        path.or_insert_with(|| Path::Open(Outflow::new(self.window)))
    }

    #[cold]
    fn begin_into(&mut self, to: MailboxId) -> &mut Inflow {
        let flow = self.into.entry(to);
        flow.or_insert_with(|| Inflow::new(self.window))
    }

    pub(super) fn len(&self) -> usize {
        self.out.len() + self.into.len()
    }
}
