//! What a test holds of a simulated network: it attaches drivers to it and disturbs their links.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::SimOptions;
use super::network::{Network, locator_of};
use crate::{Locator, PeerId};

/// A handle on a simulated network. Clones are the same network.
#[derive(Debug, Clone)]
pub struct SimNet(Arc<Mutex<Network>>);

impl SimNet {
    /// A network without processes.
    #[must_use]
    pub fn new(options: SimOptions) -> Self {
        Self(Arc::new(Mutex::new(Network::new(options))))
    }

    /// A locator at which there is nobody.
    #[must_use]
    pub fn nowhere(&self) -> Locator {
        locator_of(PeerId(u64::MAX))
    }

    /// Breaks the link between two processes, as a failing cable would: some of what is on its way is
    /// lost, then both ends learn of it.
    pub fn cut(&self, a: PeerId, b: PeerId) {
        self.network().cut(a, b);
    }

    /// Makes `peer` refuse every new link from now on.
    pub fn refuse(&self, peer: PeerId) {
        self.network().refuse(peer);
    }

    /// Sets the delay between two processes, both ways, to exactly `ticks`.
    pub fn set_delay(&self, a: PeerId, b: PeerId, ticks: u64) {
        self.network().set_delay(a, b, ticks);
    }

    /// How many links there are.
    #[must_use]
    pub fn links(&self) -> usize {
        self.network().links()
    }

    /// The clock, in ticks.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.network().now()
    }

    pub(super) fn network(&self) -> MutexGuard<'_, Network> {
        // A test that panicked while it held the lock has failed already; others need not fail with it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
