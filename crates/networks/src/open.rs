//! The driver of a network: which one, where it listens, whom it believes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use mizzen_driver::{Driver, PeerId};
use mizzen_identity::{Credentials, Role};
use mizzen_ofi::{OfiDriver, OfiOptions};
use mizzen_proto::boot::{Carrier, Door, Network};
use mizzen_proto::id::{Incarnation, ProcessId, Rank};
use mizzen_proto::membership::{AgentId, HostId};
use mizzen_tcp::{Far, Records, Security, TcpDriver, TcpOptions, Through, interfaces};

use crate::peer::{agent_id, process_id};

/// A driver that is attached to its network.
pub struct Opened {
    /// The driver.
    pub driver: Box<dyn Driver>,
    /// What a user is told of it: its kind, and whether it is sealed.
    pub manner: String,
}

/// Attaches whoever has these credentials to a network. `address`, if given, is where it listens if it names no interfaces.
///
/// # Errors
///
/// What a user is told: that an interface is missing, an address cannot be listened at, or libfabric is not there.
pub fn open(
    credentials: &Credentials,
    network: &Network,
    address: Option<IpAddr>,
) -> Result<Opened, String> {
    let Listening { listen, offered } = Listening::choose(network, address)?;
    let (records, sealed) = if network.trusted {
        (Records::Clear, "TRUSTED: not encrypted")
    } else {
        (Records::Sealed, "TLS 1.3")
    };
    let far = (network.streams > 0).then_some(Far { pace: network.pace });
    let through = network.door.as_ref().map(through).transpose()?;
    let tcp = |port, records| {
        let options = TcpOptions::new(own_id(credentials), security(credentials).records(records))
            .listen(SocketAddr::new(listen, port))
            .far(far)
            .through(through.clone())
            .offered(offered.clone());
        let options = match through {
            Some(_) => options.dial_patience(DOOR_PATIENCE),
            None => options,
        };
        TcpDriver::new(options).map_err(|error| error.to_string())
    };
    match &network.carrier {
        Carrier::Tcp { port } => Ok(Opened {
            driver: Box::new(tcp(*port, records)?),
            manner: format!("tcp, {sealed}"),
        }),
        // Who is who is proved over TCP, and keys are exchanged there; the fabric carries the rest, in clear.
        Carrier::Ofi { provider } => {
            let bootstrap = Box::new(tcp(0, Records::Sealed)?);
            let mut options = OfiOptions::new();
            if !provider.is_empty() {
                options = options.provider(provider);
            }
            let address = offered.first().copied();
            if let Some(address) = address.or((!listen.is_unspecified()).then_some(listen)) {
                options = options.at(address);
            }
            let driver = OfiDriver::new(bootstrap, options).map_err(|error| error.to_string())?;
            let manner = format!("libfabric {}, {sealed}", driver.provider());
            let driver = Box::new(driver);
            Ok(Opened { driver, manner })
        }
    }
}

/// What the gateway of the site is told when somebody of another one is dialled.
fn through(door: &Door) -> Result<Through, String> {
    let at = door.at.parse().map_err(|_| {
        let at = &door.at;
        format!("the gateway of the site cannot be at {at:?}, which is no address and port")
    })?;
    Ok(Through::new(at).header(Through::MEETING, &door.meeting))
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
            [..] => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        Ok(Self { listen, offered })
    }
}

fn security(credentials: &Credentials) -> Security {
    let known = credentials.clone();
    // The certificate says which life of whom it is: the driver compares that with whom it wants.
    let identify = move |connection: &_| Some(id_of(&known.peer(connection).ok()?));
    Security::new(
        credentials.client_config(),
        credentials.server_config(),
        Arc::new(identify),
    )
}

fn own_id(credentials: &Credentials) -> PeerId {
    id_of(credentials.identity())
}

fn id_of(who: &mizzen_identity::Identity) -> PeerId {
    let (number, life) = (who.rank(), who.incarnation());
    match who.role() {
        Role::Process => process_id(ProcessId::new(Rank(number), Incarnation(life))),
        Role::Agent => agent_id(AgentId::new(HostId(number), life)),
    }
}

/// How long it may take to dial somebody at another site: that one may have to dial back.
const DOOR_PATIENCE: Duration = Duration::from_secs(15);
