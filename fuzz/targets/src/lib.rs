//! What each fuzz target does with its bytes.
//!
//! A target hands bytes to something that reads what others wrote, and checks what may be said of it for all bytes: it
//! does not panic, it keeps its bounds, and what it takes for good is written back as it was read. `ci/fuzz` looks for
//! bytes that break this; `tests/replay.rs` runs, under plain `cargo test`, all bytes that were worth keeping.
//!
//! | target | what reads foreign bytes |
//! | --- | --- |
//! | [`frames`] | frames between hosts |
//! | [`link`] | the protocol of a whole link, driven by a hostile peer |
//! | [`boot`] | packets and frames of processes, agents and launcher |
//! | [`headers`] | the TCP driver's hello and header, packets between processes of a host |
//! | [`tcp`] | the TCP driver, over a real connection |
//! | [`config`] | the job's file, and the site's |
//! | [`lane`] | the memory of a lane, changed while it is read |
//! | [`message`] | messages of a hostile peer: tables, tickets, manifests, lent buffers |
//! | [`doctor`] | what the sides of `mizzen doctor` say |
//! | [`membership`] | frames of agents and the root about who lives |
//! | [`registry`] | frames of agents about names, packets of processes about them |
//! | [`relay`] | what goes over the links of gateways |
//! | [`session`] | greetings, refusals and stamps of sessions |
//! | [`site`] | what gateways of sites say to each other, what jobs ask of them, what proxies answer |
//! | [`identity`] | names in certificates, requests for them, the authority's secret, flights of handshakes |
//!
//! To add one: a module with `run` here, a line in [`TARGETS`], a file in
//! `fuzz/fuzz_targets` with its `[[bin]]`, seeds in `seeds.rs` or beside it, and
//! a test in `tests/replay.rs`.

#![allow(
    clippy::missing_panics_doc,
    reason = "to panic when a promise is broken is what a target is for"
)]

pub mod boot;
pub mod config;
pub mod doctor;
pub mod frames;
pub mod headers;
pub mod identity;
pub mod lane;
pub mod link;
pub mod membership;
pub mod message;
pub mod registry;
pub mod relay;
mod seeds;
pub mod session;
pub mod site;
mod tape;
pub mod tcp;

/// A target: what its folders and its program are called, and what it does.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// The name of its folders and of its program.
    pub name: &'static str,
    /// Takes any bytes, and panics if a promise is broken.
    pub run: fn(&[u8]),
    /// Inputs that honest encoders write, from which the search begins.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: [Target; 15] = [
    target("frames", frames::run, seeds::frames),
    target("link", link::run, seeds::link),
    target("boot", boot::run, seeds::boot),
    target("headers", headers::run, seeds::headers),
    target("tcp", tcp::run, seeds::tcp),
    target("config", config::run, seeds::config),
    target("lane", lane::run, seeds::lane),
    target("message", message::run, seeds::message),
    target("doctor", doctor::run, seeds::doctor),
    target("identity", identity::run, seeds::identity),
    target("membership", membership::run, membership::seeds),
    target("registry", registry::run, registry::seeds),
    target("relay", relay::run, relay::seeds),
    target("session", session::run, session::seeds),
    target("site", site::run, site::seeds),
];

const fn target(name: &'static str, run: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>) -> Target {
    Target { name, run, seeds }
}
