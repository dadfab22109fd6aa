//! Attaching a process to its networks, and, where some hosts share none, to the gateways between them.

use std::net::IpAddr;
use std::sync::{Arc, Weak};

use mizzen_driver::Driver;
use mizzen_identity::Credentials;
use mizzen_networks::{
    Directory, Opened, RELAYED, RelayedDriver, RelayedOptions, Sealing, Ways, open,
};
use mizzen_proto::boot::{Channel, Network, Span};
use mizzen_proto::membership::HostId;
use mizzen_proto::session::{JobId, MemoryForm};

use super::engine::Engine;
use super::link::Control;
use super::networks::Networks;
use super::planes::{Attached, Plane};
use crate::error::JoinError;
use crate::rank::{ChannelId, ProcessId};

/// Where a process is.
pub(crate) struct Place<'a> {
    /// Where those networks listen that name no interfaces.
    pub(crate) address: Option<IpAddr>,
    pub(crate) networks: &'a [Network],
    /// Which of the job's hosts this is, and which share which networks, if there are gateways.
    pub(crate) host: HostId,
    pub(crate) spans: &'a [Span],
    /// The networks that only channels use which programs name, and those channels.
    pub(crate) others: &'a [Network],
    pub(crate) channels: &'a [Channel],
    /// How numbers lie in its memory.
    pub(crate) form: MemoryForm,
}

/// Attaches the process `me` to all networks of its place.
pub(crate) fn attach(
    process: &Weak<dyn Control>,
    me: ProcessId,
    credentials: &Credentials,
    place: &Place<'_>,
) -> Result<Networks, JoinError> {
    let job = JobId(credentials.identity().job());
    let start = |channel, name: String, Opened { driver, manner }| -> Result<_, JoinError> {
        let engine = Engine::start(process.clone(), me, job, (place.form, channel), driver)?;
        Ok(Attached {
            name,
            manner,
            engine,
        })
    };
    let mut all = Vec::new();
    for network in place.networks {
        let opened = open_network(credentials, network, place.address)?;
        let channel = Some(ChannelId::DEFAULT);
        all.push(start(channel, network.name.clone(), opened)?);
    }
    let mut directory = None;
    if !place.spans.is_empty() {
        // The last: who shares a network needs no gateway.
        let known = Directory::new()?;
        let opened = Opened {
            driver: relayed(me, credentials, place, &known)?,
            manner: "gateways".to_owned(),
        };
        // A virtual channel may use what is made there, too: that is no path of the other channel then.
        let is_shared = place.channels.iter().any(|channel| channel.is_joined);
        let channel = (!is_shared).then_some(ChannelId::DEFAULT);
        all.push(start(channel, RELAYED.to_owned(), opened)?);
        directory = Some(known);
    }
    let mut planes = Vec::new();
    for (id, channel) in (1..).map(ChannelId).zip(place.channels) {
        let mut own = Vec::new();
        for name in &channel.networks {
            let opened = open_network(credentials, &place.named(name)?, place.address)?;
            own.push(start(
                Some(id),
                Plane::own_name(&channel.name, name),
                opened,
            )?);
        }
        planes.push(Plane::new(channel, own));
    }
    Ok(Networks::new(all, planes, directory))
}

impl Place<'_> {
    /// The network of this name, to be attached to once more.
    fn named(&self, name: &str) -> Result<Network, JoinError> {
        let mut all = self.networks.iter().chain(self.others);
        let found = all.find(|network| network.name == name);
        let unknown = || JoinError::Agent(format!("a channel is over {name}, which is no network"));
        Ok(found.ok_or_else(unknown)?.elsewhere())
    }
}

/// The driver whose links go through gateways. It has ports of its own, where agents are believed and processes are not.
fn relayed(
    me: ProcessId,
    credentials: &Credentials,
    place: &Place<'_>,
    directory: &Arc<Directory>,
) -> Result<Box<dyn Driver>, JoinError> {
    let for_gateways = credentials.for_gateways()?;
    let mut drivers = Vec::new();
    for network in place.networks {
        let Opened { driver, .. } =
            open_network(&for_gateways, &network.elsewhere(), place.address)?;
        drivers.push((network.name.clone(), driver));
    }
    let ways = Ways::new(place.spans);
    let options = RelayedOptions {
        me,
        host: place.host,
        sealing: (!ways.is_trusted()).then(|| Sealing::new(credentials.clone())),
        ways,
        directory: Arc::clone(directory),
        drivers,
    };
    Ok(Box::new(RelayedDriver::new(options)?))
}

fn open_network(
    credentials: &Credentials,
    network: &Network,
    address: Option<IpAddr>,
) -> Result<Opened, JoinError> {
    open(credentials, network, address).map_err(|cause| JoinError::Network {
        network: network.name.clone(),
        cause,
    })
}
