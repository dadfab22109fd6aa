//! Whole jobs of Mizzen as pure machines in virtual time: one thread, one seed, one history.
//!
//! A [`World`] says which [`Machine`]s are on which hosts, what may go wrong, and what must hold. [`run`] lets one history happen:
//! a *safety phase*, in which connections break, ways are cut, hosts pause, machines crash and clocks drift, and then a *liveness
//! phase* with a whole network, at the end of which nothing may wait any more. The same seed gives the same history, to the byte.
//!
//! | module | subject |
//! | --- | --- |
//! | `machine`, `world` | what is simulated, and what must hold |
//! | `faults`, `options` | what goes wrong, and for how long |
//! | `network`, `connection` | connections that keep order, break, and are cut |
//! | `terrain` | clusters, gateways, and the networks between them |
//! | `agenda`, `clock`, `event` | virtual time |
//! | `kernel` | runs one history |
//! | [`symbols`] | collective operations on symbols instead of numbers |
//! | `linear` | whether operations could have happened one after another |
//! | `campaign`, `history`, `tally` | runs many, and says what occurred |
//! | [`worlds`] | the scenarios |
//!
//! `docs/design/simulator.md` says why it is like this.

#![forbid(unsafe_code)]

mod agenda;
mod campaign;
mod clock;
mod connection;
mod event;
mod faults;
mod history;
mod ids;
mod kernel;
mod linear;
mod machine;
mod network;
mod options;
pub mod symbols;
mod tally;
mod terrain;
mod world;
pub mod worlds;

pub use campaign::{MARKS_FROM, Scenario, Totals, campaign, run_caught};
pub use faults::{Fault, Faults};
pub use history::Record;
pub use ids::{ConnectionId, HostId, Life, MachineId, Place};
pub use kernel::run;
pub use linear::{Done, Judgement, Object, judge};
pub use machine::{Context, Machine, Opened, Payload};
pub use options::Options;
pub use tally::{Marks, Traffic};
pub use terrain::{Terrain, Way};
pub use world::{Layout, Report, Seat, Truth, Violation, World};
