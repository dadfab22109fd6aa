//! The scenarios, each with its oracles.

pub mod link;
pub mod members;
mod mesh;
pub mod names;
pub mod network;
pub mod session;
mod size;

use crate::campaign::Scenario;

/// All of them.
pub const ALL: &[Scenario] = &[
    network::SCENARIO,
    link::WHOLE,
    link::CUT,
    names::WHOLE,
    names::CUT,
    names::DEATH,
    session::LIVING,
    session::MORTAL,
    members::SCENARIO,
    members::NAMES,
];
