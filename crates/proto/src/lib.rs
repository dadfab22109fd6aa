//! Protocol logic of Mizzen as state machines: no IO, clock, thread or payload.
//!
//! A driver moves *frames* (unasked, short, first in first out) and *bodies* (asked for, straight into
//! place). This crate decides which; the engine of `mizzen-core` moves the bytes. `docs/wire.md` is the
//! specification: every rule here cites its paragraph there, as `docs/wire.md §n`.
//!
//! | module | subject |
//! | --- | --- |
//! | [`boot`] | what launcher, agents and processes say to each other |
//! | [`broker`] | introductions of the processes of a host |
//! | [`id`] | who and what: processes, mailboxes, offers, bodies, requests |
//! | [`wire`] | frames as bytes |
//! | [`credit`] | how much a peer may send to a mailbox unread |
//! | [`link`] | one link to one peer: posts, offers, credits, leaving |
//! | [`session`] | what outlives connections: numbers, acknowledgements, resuming, the account |
//! | [`membership`] | who belongs to the job and who lives: the root, agents, verdicts |
//! | [`registry`] | names, kept by the agents of the hosts |
//! | [`route`] | ways through clusters of clusters |
//! | [`relay`] | gateways that hand on what is not for them |
//! | [`group`] | collective operations of groups: who sends what to whom |
//! | [`rollcall`] | why nothing happens: who waits for whom |
//! | [`time`] | what a machine is told of the clock |
//!
//! Commands are verbs, input is `handle_*`, output is `poll_*`. A [`ProtocolError`] means that the peer
//! broke a rule: it costs the peer its link and nothing else.

#![forbid(unsafe_code)]

pub mod boot;
pub mod broker;
pub mod credit;
mod error;
pub mod group;
pub mod id;
mod kind;
pub mod link;
pub mod membership;
pub mod registry;
pub mod relay;
pub mod rollcall;
pub mod route;
pub mod session;
pub mod time;
pub mod wire;

pub use error::ProtocolError;
