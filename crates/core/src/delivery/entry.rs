//! What lies in a mailbox's queue: messages, with whom they are accounted for, and the news of ends.

use core::fmt;
use std::sync::Arc;

use crate::error::Gone;
use crate::link::{Account as LaneAccount, MemoryLink};
use crate::message::{Flags, Payload};
use crate::rank::{MailboxId, ProcessId, Rank};

/// What lies in a mailbox's queue.
#[derive(Debug)]
pub(crate) enum Entry {
    Message(Delivery),
    Gone(Gone),
}

/// A message on its way into a mailbox.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) source: ProcessId,
    pub(crate) flags: Flags,
    pub(crate) payload: Payload,
    /// Whose memory the payload refers to.
    pub(crate) lender: Option<Arc<MemoryLink>>,
    /// To whom a credit is due when it is retrieved.
    pub(crate) account: Option<Account>,
}

/// To whom credits for a message are due.
#[derive(Debug)]
pub(crate) enum Account {
    Lane(Arc<LaneAccount>),
    /// On a network: for so many bytes of a mailbox.
    Net {
        link: Arc<dyn Creditor>,
        mailbox: MailboxId,
        bytes: u64,
    },
}

/// A link on a network, which gives its peer credit for what was retrieved.
pub(crate) trait Creditor: fmt::Debug + Send + Sync {
    /// A message of so many bytes was retrieved.
    fn retrieved(&self, mailbox: MailboxId, bytes: u64);
}

impl Account {
    /// The message was retrieved.
    #[inline]
    pub(crate) fn retrieved(&self) {
        match self {
            Self::Lane(account) => account.retrieved(),
            Self::Net {
                link,
                mailbox,
                bytes,
            } => link.retrieved(*mailbox, *bytes),
        }
    }
}

/// Why a message was not queued.
#[derive(Debug)]
pub(crate) enum Undelivered {
    /// The mailbox is closed.
    Closed(Delivery),
    /// Its sender has a window of messages in the queue already: it does not keep to its credits.
    Overrun(Delivery),
}

impl Undelivered {
    pub(crate) fn into_delivery(self) -> Delivery {
        match self {
            Self::Closed(delivery) | Self::Overrun(delivery) => delivery,
        }
    }
}

impl Delivery {
    /// With whom a message that came over a shared lane is counted. Those from networks are counted by their protocol.
    pub(super) fn lane_account(&self) -> Option<&LaneAccount> {
        match &self.account {
            Some(Account::Lane(account)) => Some(account),
            _ => None,
        }
    }
}

impl Entry {
    /// Who sent it, or is gone.
    pub(super) fn rank(&self) -> Rank {
        match self {
            Self::Message(delivery) => delivery.source.rank,
            Self::Gone(gone) => gone.rank(),
        }
    }

    pub(super) fn lane_account(&self) -> Option<&LaneAccount> {
        match self {
            Self::Message(delivery) => delivery.lane_account(),
            Self::Gone(_) => None,
        }
    }
}
