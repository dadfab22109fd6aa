//! The scenarios, each with its oracles.

pub mod link;
pub mod members;
mod mesh;
pub mod network;

use crate::campaign::Scenario;

/// All of them.
pub const ALL: &[Scenario] = &[network::SCENARIO, link::WHOLE, link::CUT, members::SCENARIO];
