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
mod handle;
mod network;
mod options;

pub use self::driver::SimDriver;
pub use self::handle::SimNet;
pub use self::options::SimOptions;
