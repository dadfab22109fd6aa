//! What a gateway is told when it is made.

use std::sync::Arc;

use mizzen_driver::Driver;
use mizzen_proto::membership::AgentId;

use crate::directory::Directory;
use crate::ways::Ways;

/// What a gateway is told when it is made.
pub struct GatewayOptions {
    /// Whose it is.
    pub agent: AgentId,
    /// Which hosts share which networks.
    pub ways: Ways,
    /// Which other gateways there are.
    pub directory: Arc<Directory>,
    /// A driver for each network of this host, by its name.
    pub drivers: Vec<(String, Box<dyn Driver>)>,
    /// How much it may hold.
    pub memory: Memory,
}

/// How many bytes a gateway may hold.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// In all.
    pub pool: u64,
    /// For the shared bytes of each link.
    pub shared: u64,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            // A bound, not a use: for nearly a thousand links.
            pool: 1 << 30,
            shared: 1 << 20,
        }
    }
}
