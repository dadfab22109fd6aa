//! Attaching a process to its networks: which driver, where it listens, whom it believes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};

use mizzen_driver::{Driver, PeerId};
use mizzen_identity::Credentials;
use mizzen_ofi::{OfiDriver, OfiOptions};
use mizzen_proto::boot::{Carrier, Network};
use mizzen_proto::session::JobId;
use mizzen_tcp::{Records, Security, TcpDriver, TcpOptions, interfaces};

use super::engine::Engine;
use super::id::driver_id;
use super::link::Control;
use super::networks::{Attached, Networks};
use crate::error::JoinError;
use crate::rank::{Incarnation, ProcessId, Rank};

/// Attaches the process `me` to all of `networks`. `address`, if given, is where those listen that name no interfaces.
pub(crate) fn attach(
    process: &Weak<dyn Control>,
    me: ProcessId,
    credentials: &Credentials,
    address: Option<IpAddr>,
    networks: &[Network],
) -> Result<Networks, JoinError> {
    let mut all = Vec::new();
    let job = JobId(credentials.identity().job());
    for network in networks {
        let refused = |cause: String| JoinError::Network {
            network: network.name.clone(),
            cause,
        };
        let listening = Listening::choose(network, address).map_err(refused)?;
        let (driver, manner) = open(me, credentials, network, &listening).map_err(refused)?;
        let engine = Engine::start(process.clone(), me, job, driver)?;
        all.push(Attached {
            name: network.name.clone(),
            manner,
            engine,
        });
    }
    Ok(Networks::new(all))
}

/// Where a driver listens, and what others are told.
struct Listening {
    listen: IpAddr,
    offered: Vec<IpAddr>,
}

impl Listening {
    fn choose(network: &Network, address: Option<IpAddr>) -> Result<Self, String> {
        if network.interfaces.is_empty() {
            return Ok(Self {
                listen: address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
                offered: Vec::new(),
            });
        }
        let here = interfaces().map_err(|error| error.to_string())?;
        let mut offered: Vec<IpAddr> = Vec::new();
        for wanted in &network.interfaces {
            let matching = here.iter().filter(|one| one.is_meant_by(wanted));
            for address in matching.map(|one| one.address) {
                if !offered.contains(&address) {
                    offered.push(address);
                }
            }
        }
        let listen = match offered[..] {
            [] => {
                let names: Vec<String> = here
                    .iter()
                    .map(|one| format!("{} {}", one.name, one.address))
                    .collect();
                return Err(format!(
                    "this host has no interface of {}; it has {}",
                    network.interfaces.join(", "),
                    names.join(", ")
                ));
            }
            [one] => one,
            [..] if offered.iter().all(IpAddr::is_ipv4) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            [..] => IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED),
        };
        Ok(Self { listen, offered })
    }
}

/// The driver of a network, and what a user is told of it.
fn open(
    me: ProcessId,
    credentials: &Credentials,
    network: &Network,
    place: &Listening,
) -> Result<(Box<dyn Driver>, String), String> {
    let (records, sealed) = if network.trusted {
        (Records::Clear, "TRUSTED: not encrypted")
    } else {
        (Records::Sealed, "TLS 1.3")
    };
    let tcp = |port, records| {
        let options = TcpOptions::new(driver_id(me), security(credentials).records(records))
            .listen(SocketAddr::new(place.listen, port))
            .offered(place.offered.clone());
        TcpDriver::new(options).map_err(|error| error.to_string())
    };
    match &network.carrier {
        Carrier::Tcp { port } => {
            let driver = Box::new(tcp(*port, records)?);
            Ok((driver, format!("tcp, {sealed}")))
        }
        // Who is who is proved over TCP, and keys are exchanged there; the fabric carries the rest, in clear.
        Carrier::Ofi { provider } => {
            let bootstrap = Box::new(tcp(0, Records::Sealed)?);
            let mut options = OfiOptions::new();
            if !provider.is_empty() {
                options = options.provider(provider);
            }
            let address = place.offered.first().copied();
            let address = address.or((!place.listen.is_unspecified()).then_some(place.listen));
            if let Some(address) = address {
                options = options.at(address);
            }
            let driver = OfiDriver::new(bootstrap, options).map_err(|error| error.to_string())?;
            let manner = format!("libfabric {}, {sealed}", driver.provider());
            Ok((Box::new(driver), manner))
        }
    }
}

fn security(credentials: &Credentials) -> Security {
    let known = credentials.clone();
    // The certificate says which life of which process it is: the driver compares that with whom it wants.
    let identify = move |connection: &_| -> Option<PeerId> {
        let who = known.peer(connection).ok()?;
        let process = ProcessId::new(Rank(who.rank()), Incarnation(who.incarnation()));
        Some(driver_id(process))
    };
    Security::new(
        credentials.client_config(),
        credentials.server_config(),
        Arc::new(identify),
    )
}
