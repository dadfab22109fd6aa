//! What a process is attached to, and the channels that programs name: over which of its networks each reaches a peer.
//!
//! A channel has drivers of its own, so that its messages wait for no others. A virtual channel reaches whom it shares no network with
//! through the gateways of the channel that everybody is on.

use std::sync::Arc;

use mizzen_networks::RELAYED;
use mizzen_proto::boot::Channel;

use super::engine::Engine;

/// A network that a process is attached to.
#[derive(Debug)]
pub(super) struct Attached {
    /// What the job's file calls it.
    pub(super) name: String,
    /// What a user is told of it: its driver, and whether it is sealed.
    pub(super) manner: String,
    pub(super) engine: Arc<Engine>,
}

/// A channel that programs name, as this process is on it.
#[derive(Debug)]
pub(super) struct Plane {
    pub(super) name: String,
    /// What carries it here, in order of preference. Without any, this process is not on it.
    pub(super) own: Vec<Attached>,
    /// Whether it joins several networks, so that gateways lead on.
    is_joined: bool,
}

impl Plane {
    pub(super) fn new(channel: &Channel, own: Vec<Attached>) -> Self {
        Self {
            name: channel.name.clone(),
            own,
            is_joined: channel.is_joined,
        }
    }

    /// What a channel's own driver for a network is called in locators.
    pub(super) fn own_name(channel: &str, network: &str) -> String {
        format!("{channel}:{network}")
    }

    /// What carries it, in order of preference; `all` is what carries the channel that everybody is on.
    pub(super) fn carriers<'a>(&'a self, all: &'a [Attached]) -> Vec<&'a Attached> {
        let mut relayed = all.iter().filter(|attached| attached.name == RELAYED);
        let gateways = relayed.next().filter(|_| self.is_joined && self.is_on());
        self.own.iter().chain(gateways).collect()
    }

    /// Whether this process is on it.
    pub(super) fn is_on(&self) -> bool {
        !self.own.is_empty()
    }
}
