//! A simulated network: in memory, seeded, deterministic.
//!
//! Drivers of one [`SimNet`] reach each other. Each poll of any of them moves the network's clock by one
//! tick, so there is no thread and no timer; with one thread of polls the seed decides everything:
//! delays, how deliveries are batched, where bodies are cut, when a sender is told to wait.
//!
//! ```
//! use mizzen_driver::sim::{SimNet, SimOptions};
//! use mizzen_driver::{Driver, Event, PeerId};
//!
//! let net = SimNet::new(SimOptions::rough(7));
//! let mut one = net.driver(PeerId(1));
//! let mut two = net.driver(PeerId(2));
//! one.connect(PeerId(2), two.locator()).unwrap();
//!
//! let mut up = 0;
//! while up < 2 {
//!     for driver in [&mut one, &mut two] {
//!         driver.poll(8, &mut |event| assert!(matches!(event, Event::Connected { .. }))).unwrap();
//!     }
//!     up = net.links() * 2;
//! }
//! ```

mod driver;
mod network;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use self::driver::SimDriver;

use self::network::Network;
use crate::{Locator, PeerId};

/// How a simulated network behaves.
#[derive(Debug, Clone)]
pub struct SimOptions {
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// The longest delay of a delivery, in ticks.
    pub max_delay: u64,
    /// How often a frame is refused though there is room, in a thousand.
    pub busy_per_mille: u64,
    /// The longest piece that a body travels in.
    pub max_piece: usize,
    /// The most deliveries that one poll takes from one peer.
    pub max_batch: u64,
}

impl SimOptions {
    /// No delays, no chance refusals, long pieces.
    #[must_use]
    pub fn calm(seed: u64) -> Self {
        Self {
            seed,
            max_delay: 0,
            busy_per_mille: 0,
            max_piece: 64 * 1024,
            max_batch: 64,
        }
    }

    /// Delays of up to 20 ticks, one frame in five refused, pieces and batches of any size.
    #[must_use]
    pub fn rough(seed: u64) -> Self {
        Self {
            seed,
            max_delay: 20,
            busy_per_mille: 200,
            max_piece: 16 * 1024,
            max_batch: 5,
        }
    }
}

/// A handle on a simulated network. Clones are the same network.
#[derive(Debug, Clone)]
pub struct SimNet(Arc<Mutex<Network>>);

impl SimNet {
    /// A network without processes.
    #[must_use]
    pub fn new(options: SimOptions) -> Self {
        Self(Arc::new(Mutex::new(Network::new(options))))
    }

    /// Attaches a process. If one with this id is attached, it is cut off: its successor replaces it.
    ///
    /// # Panics
    ///
    /// When the system has no descriptor left for the driver's wakeup.
    #[must_use]
    pub fn driver(&self, me: PeerId) -> SimDriver {
        SimDriver::attach(self.clone(), me)
    }

    /// A locator at which there is nobody.
    #[must_use]
    pub fn nowhere(&self) -> Locator {
        network::locator_of(PeerId(u64::MAX))
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

    fn network(&self) -> MutexGuard<'_, Network> {
        // A test that panicked while it held the lock has failed already; others need not fail with it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
