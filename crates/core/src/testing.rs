//! What tests inside this crate write programs with: as `mizzen::Deck`, with its insides in reach.

use std::time::Duration;

use crate::address::MailboxRef;
use crate::endpoint::Endpoint;
use crate::error::{ArenaError, BindError, FetchError, JoinError, MailboxError, Result};
use crate::mailbox::Mailbox;
use crate::memory::Lent;
use crate::plain::Plain;

use crate::rank::Rank;

/// How long a test waits for a name.
const PATIENCE: Duration = Duration::from_secs(30);

/// A process of a test's job.
#[derive(Clone, Debug)]
pub(crate) struct Deck {
    pub(crate) process: Endpoint,
}

/// As `mizzen::local`.
pub(crate) fn local<T: Send>(size: u32, body: impl Fn(Deck) -> Result<T> + Sync) -> Result<Vec<T>> {
    crate::local(size, |process| body(Deck { process }))
}

/// The same through TCP on the loopback interface.
pub(crate) fn local_over_tcp<T: Send>(
    size: u32,
    body: impl Fn(Deck) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    crate::local_over_tcp(size, |process| body(Deck { process }))
}

impl Deck {
    pub(crate) fn new(process: Endpoint) -> Self {
        Self { process }
    }

    pub(crate) fn join() -> Result<Self, JoinError> {
        Endpoint::join().map(Self::new)
    }

    pub(crate) fn lend<T: Plain>(&self, count: usize) -> Result<Lent<T>, ArenaError> {
        let mut buffer = self.process.lend_unzeroed(count)?;
        buffer.zero();
        Ok(buffer)
    }

    pub(crate) fn lend_unzeroed<T: Plain>(&self, count: usize) -> Result<Lent<T>, ArenaError> {
        self.process.lend_unzeroed(count)
    }

    pub(crate) fn rank(&self) -> Rank {
        self.process.id().rank
    }

    pub(crate) fn mailbox(&self) -> Result<Mailbox, MailboxError> {
        Mailbox::open_in(&self.process)
    }

    pub(crate) fn bind(&self, name: &str, mailbox: &Mailbox) -> Result<(), BindError> {
        self.process.bind(name, mailbox.full_address())
    }

    pub(crate) fn fetch(&self, name: &str) -> Result<MailboxRef, FetchError> {
        let address = self.process.fetch(name, Some(PATIENCE))?;
        Ok(MailboxRef::new(self.process.clone(), address))
    }
}
