//! The scenarios, each with its oracles.

pub mod broker;
pub mod group;
pub mod link;
pub mod members;
mod mesh;
pub mod network;
pub mod relay;
pub mod session;
mod size;

use crate::campaign::Scenario;

/// All of them.
pub const ALL: &[Scenario] = &[
    network::SCENARIO,
    network::CLUSTERS,
    link::WHOLE,
    link::CUT,
    session::LIVING,
    session::MORTAL,
    members::SCENARIO,
    members::NAMES,
    broker::SCENARIO,
    relay::SCENARIO,
    group::SCENARIO,
];
