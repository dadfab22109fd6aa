//! Attaching a process to its networks, and, where some hosts share none, to the gateways between them.

use std::net::IpAddr;
use std::sync::{Arc, Weak};

use mizzen_driver::Driver;
use mizzen_identity::Credentials;
use mizzen_networks::{Directory, Opened, RELAYED, RelayedDriver, RelayedOptions, Ways, open};
use mizzen_proto::boot::{Network, Span};
use mizzen_proto::membership::HostId;
use mizzen_proto::session::JobId;

use super::engine::Engine;
use super::link::Control;
use super::networks::{Attached, Networks};
use crate::error::JoinError;
use crate::rank::ProcessId;

/// Where a process is.
pub(crate) struct Place<'a> {
    /// Where those networks listen that name no interfaces.
    pub(crate) address: Option<IpAddr>,
    pub(crate) networks: &'a [Network],
    /// Which of the job's hosts this is, and which share which networks, if there are gateways.
    pub(crate) host: HostId,
    pub(crate) spans: &'a [Span],
}

/// Attaches the process `me` to all networks of its place.
pub(crate) fn attach(
    process: &Weak<dyn Control>,
    me: ProcessId,
    credentials: &Credentials,
    place: &Place<'_>,
) -> Result<Networks, JoinError> {
    let mut all = Vec::new();
    let job = JobId(credentials.identity().job());
    for network in place.networks {
        let Opened { driver, manner } = open_network(credentials, network, place.address)?;
        let engine = Engine::start(process.clone(), me, job, driver)?;
        all.push(Attached {
            name: network.name.clone(),
            manner,
            engine,
        });
    }
    if place.spans.is_empty() {
        return Ok(Networks::new(all, None));
    }
    // The last: who shares a network needs no gateway.
    let directory = Directory::new()?;
    let driver = relayed(me, credentials, place, &directory)?;
    let engine = Engine::start(process.clone(), me, job, driver)?;
    all.push(Attached {
        name: RELAYED.to_owned(),
        manner: "gateways".to_owned(),
        engine,
    });
    Ok(Networks::new(all, Some(directory)))
}

/// The driver whose links go through gateways. It has ports of its own, where agents are believed and processes are not.
fn relayed(
    me: ProcessId,
    credentials: &Credentials,
    place: &Place<'_>,
    directory: &Arc<Directory>,
) -> Result<Box<dyn Driver>, JoinError> {
    let credentials = credentials.for_gateways()?;
    let mut drivers = Vec::new();
    for network in place.networks {
        let Opened { driver, .. } =
            open_network(&credentials, &network.elsewhere(), place.address)?;
        drivers.push((network.name.clone(), driver));
    }
    let options = RelayedOptions {
        me,
        host: place.host,
        ways: Ways::new(place.spans),
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
