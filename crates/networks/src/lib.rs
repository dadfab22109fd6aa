//! The networks of a job: the driver of each, gateways between them, and links that go through gateways.
//!
//! A process attaches to each network that the job's file gives its host ([`open`]). Hosts that share no network reach each other through those
//! that are on several: there the agent runs a [`Gateway`], and a process has, beside the drivers of its networks, a
//! [`RelayedDriver`], which keeps the contract of all drivers and whose links go through gateways. What lies above does not know the difference.
//!
//! ```text
//!   process ── RelayedDriver ── driver of `sci` ═══ driver of `sci` ── Gateway ── driver of `bip` ═══ driver of `bip` ── RelayedDriver ── process
//!                 circuit ◀──────────────────────────────── fragments and words ─────────────────────────────────────▶ circuit
//! ```
//!
//! The decisions are pure machines: [`mizzen_proto::route`] knows the ways, [`mizzen_proto::relay`] what a gateway does with a fragment and what the
//! ends of a circuit know of each other. This crate moves the bytes.
//!
//! | module | subject |
//! | --- | --- |
//! | `open` | the driver of a network: where it listens, whom it believes |
//! | `peer` | what drivers call processes and agents |
//! | `ways` | which hosts share which networks, as everybody knows it |
//! | `directory` | which gateways there are, and where |
//! | `gateway` | what hands on |
//! | `relayed` | the driver whose links go through gateways |

mod directory;
mod gateway;
mod open;
mod peer;
mod relayed;
mod ways;

pub use directory::{Directory, GatewayAt, stream_name};
pub use gateway::{Gateway, GatewayOptions, Memory};
pub use open::{Opened, open};
pub use peer::{Who, agent_id, process_id};
pub use relayed::{RelayedDriver, RelayedOptions, Sealing};
pub use ways::{RELAYED, Ways};
