//! Clusters on the loopback interface: networks that share only gateways, and processes on the first and the last of them.
#![allow(dead_code, reason = "each test uses some of it")]

pub(crate) mod hostile;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mizzen_driver::{Driver, Event, PeerId};
use mizzen_identity::{Authority, Credentials, Identity};
use mizzen_networks::{
    Directory, Gateway, GatewayOptions, Memory, Opened, RelayedDriver, RelayedOptions, Sealing,
    Ways, Who, open, process_id, stream_name,
};
use mizzen_proto::boot::{Carrier, Network, Span};
use mizzen_proto::id::{Incarnation, ProcessId, Rank};
use mizzen_proto::membership::{AgentId, HostId};

use self::hostile::{Deed, Hostile};

const CLUSTER: &str = "test";

/// Networks in a row, with gateways between neighbours.
pub(crate) struct Clusters {
    authority: Authority,
    number: [u8; 16],
    ways: Ways,
    networks: Vec<String>,
    streams: u8,
    gateways: Vec<Option<Gateway>>,
    /// Of the gateways and of all processes.
    directories: Vec<Arc<Directory>>,
    /// How many fragments processes seal with one key, if they do.
    sealing: Option<u64>,
    /// What gateways do to what they hand on.
    deed: Option<Deed>,
}

impl Clusters {
    /// With so many gateways in a row.
    pub(crate) fn new(gateways: u32) -> Self {
        Self::with(gateways, &in_a_row(gateways), 1, None)
    }

    /// With so many gateways in a row that do this to what they hand on, between processes that seal.
    pub(crate) fn hostile(gateways: u32, deed: Deed) -> Self {
        Self::with(gateways, &in_a_row(gateways), 1, Some(deed)).sealed(u64::MAX)
    }

    /// With two gateways that have so many connections with each other, and do this to what they hand on.
    pub(crate) fn striped_hostile(streams: u8, deed: Deed) -> Self {
        Self::with(2, &in_a_row(2), streams, Some(deed))
    }

    /// Has processes that are attached from now on seal what they send, so many fragments with one key.
    pub(crate) fn sealed(mut self, fragments: u64) -> Self {
        self.sealing = Some(fragments);
        self
    }

    /// With two gateways, which have so many connections with each other.
    pub(crate) fn striped(streams: u8) -> Self {
        Self::with(2, &in_a_row(2), streams, None)
    }

    /// Two networks, with so many gateways between them.
    pub(crate) fn beside(gateways: u32) -> Self {
        let between: Vec<(u32, u32)> = (0..gateways).map(|_| (0, 1)).collect();
        Self::with(1, &between, 1, None)
    }

    /// Networks from 0 to `last`, and for each gateway the two that it is on.
    fn with(last: u32, between: &[(u32, u32)], streams: u8, deed: Option<Deed>) -> Self {
        static JOBS: AtomicU64 = AtomicU64::new(0);
        let mut number = [0; 16];
        number[..8].copy_from_slice(&JOBS.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        number[8..12].copy_from_slice(&std::process::id().to_le_bytes());
        let networks: Vec<String> = (0..=last).map(|index| format!("n{index}")).collect();
        let spans: Vec<Span> = (0..=last).map(|index| span(index, last, between)).collect();
        let mut clusters = Self {
            authority: Authority::new(CLUSTER, number).expect("a name of a cluster"),
            number,
            ways: Ways::new(&spans),
            networks,
            streams,
            gateways: Vec::new(),
            directories: Vec::new(),
            sealing: None,
            deed,
        };
        for (index, on) in (0..).zip(between) {
            let directory = directory();
            let gateway = clusters.gateway(index, *on, &directory);
            clusters.directories.push(directory);
            clusters.gateways.push(Some(gateway));
        }
        clusters.tell();
        clusters
    }

    /// Has them not do so.
    pub(crate) fn plain(mut self) -> Self {
        self.sealing = None;
        self
    }

    /// A gateway.
    pub(crate) fn at(&self, index: usize) -> &Gateway {
        self.gateways[index].as_ref().expect("one that is there")
    }

    /// What the process that was attached last is told of gateways.
    pub(crate) fn far_directory(&self) -> Arc<Directory> {
        Arc::clone(self.directories.last().expect("a process"))
    }

    /// The gateway of a host dies, and all are told.
    pub(crate) fn kill(&mut self, host: HostId) {
        self.gateways[(host.0 - FIRST_GATEWAY) as usize] = None;
        for directory in &self.directories {
            directory.set(host, None);
        }
    }

    /// A process: those with even ranks are on the first network, those with odd ones on the last.
    pub(crate) fn attach(&mut self, me: PeerId) -> RelayedDriver {
        let Who::Process(process) = Who::from(me) else {
            panic!("{me} is an agent");
        };
        let rank = process.rank.0;
        let (network, driver) = self.bare(me);
        let directory = directory();
        self.directories.push(Arc::clone(&directory));
        self.tell();
        let options = RelayedOptions {
            me: process,
            host: HostId(rank),
            ways: self.ways.clone(),
            directory,
            drivers: vec![(network, driver)],
            sealing: self
                .sealing
                .map(|fragments| Sealing::new(self.credentials(process)).fragments(fragments)),
        };
        RelayedDriver::new(options).expect("descriptors")
    }

    /// The driver of a process for gateways, by itself, and its network.
    pub(crate) fn bare(&self, me: PeerId) -> (String, Box<dyn Driver>) {
        let Who::Process(process) = Who::from(me) else {
            panic!("{me} is an agent");
        };
        let credentials = self.credentials(process);
        let network = match process.rank.0 % 2 {
            0 => self.networks.first(),
            _ => self.networks.last(),
        };
        let network = network.expect("a network").clone();
        let driver = driver(&credentials, &network);
        (network, driver)
    }

    fn credentials(&self, process: ProcessId) -> Credentials {
        let (rank, life) = (process.rank.0, process.incarnation.0);
        let identity = Identity::new(CLUSTER, self.number, rank, life).expect("a good name");
        self.authority.credentials(&identity).expect("an authority")
    }

    fn gateway(&self, index: u32, on: (u32, u32), directory: &Arc<Directory>) -> Gateway {
        let agent = AgentId::new(HostId(FIRST_GATEWAY + index), 1);
        let identity = Identity::agent(CLUSTER, self.number, agent.host.0, agent.life);
        let identity = identity.expect("a good name");
        let credentials = self.authority.credentials(&identity).expect("an authority");
        let on = [on.0, on.1].map(|index| &self.networks[index as usize]);
        let mut drivers = Vec::new();
        for network in on {
            for stream in 0..self.streams {
                let driver = driver(&credentials, network);
                let driver = match &self.deed {
                    None => driver,
                    Some(deed) => Box::new(Hostile::new(driver, Arc::clone(deed))),
                };
                drivers.push((stream_name(network, stream), driver));
            }
        }
        let options = GatewayOptions {
            agent,
            ways: self.ways.clone(),
            directory: Arc::clone(directory),
            drivers,
            memory: Memory::default(),
        };
        Gateway::start(options).expect("descriptors and a thread")
    }

    fn tell(&self) {
        for gateway in self.gateways.iter().flatten() {
            let at = gateway.at();
            for directory in &self.directories {
                directory.set(at.agent.host, Some(at.clone()));
            }
        }
    }
}

fn in_a_row(gateways: u32) -> Vec<(u32, u32)> {
    (0..gateways).map(|left| (left, left + 1)).collect()
}

pub(crate) fn process(rank: u32) -> ProcessId {
    ProcessId::new(Rank(rank), Incarnation(0))
}

pub(crate) fn id(rank: u32) -> PeerId {
    process_id(process(rank))
}

/// Polls all until one has seen what is wanted.
pub(crate) fn until(
    drivers: &mut [RelayedDriver],
    at: usize,
    mut wanted: impl FnMut(&Event<'_>) -> bool,
) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut is_there = false;
    while !is_there {
        assert!(Instant::now() < deadline, "waited in vain");
        for (index, driver) in drivers.iter_mut().enumerate() {
            let mut look = |event: Event<'_>| is_there |= index == at && wanted(&event);
            driver.poll(64, &mut look).expect("a network that works");
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Links the first with the second.
pub(crate) fn link(drivers: &mut [RelayedDriver]) {
    let at = drivers[1].locator().clone();
    drivers[0].connect(id(1), &at).expect("a good locator");
    until(drivers, 0, |event| matches!(event, Event::Connected { .. }));
}

fn directory() -> Arc<Directory> {
    Directory::new().expect("a descriptor")
}

fn driver(credentials: &Credentials, name: &str) -> Box<dyn Driver> {
    let network = Network {
        name: name.into(),
        carrier: Carrier::Tcp { port: 0 },
        interfaces: Vec::new(),
        trusted: true,
        streams: 0,
        pace: 0,
        door: None,
    };
    let credentials = credentials.for_gateways().expect("settings");
    let opened = open(&credentials, &network, Some(Ipv4Addr::LOCALHOST.into()));
    let Opened { driver, .. } = opened.expect("a free port on the loopback interface");
    driver
}

/// The hosts of a network: even ones on the first, odd ones on the last, and its gateways.
fn span(index: u32, last: u32, between: &[(u32, u32)]) -> Span {
    let ends = (0..FIRST_GATEWAY).filter(|host| match host % 2 {
        0 => index == 0,
        _ => index == last,
    });
    let gateways = (FIRST_GATEWAY..).zip(between);
    let gateways = gateways.filter(|(_, (left, right))| [*left, *right].contains(&index));
    let hosts = ends.chain(gateways.map(|(host, _)| host));
    Span {
        network: format!("n{index}"),
        hosts: hosts.map(|host| (host, host + 1)).collect(),
        trusted: true,
    }
}

/// Hosts below are those of processes.
const FIRST_GATEWAY: u32 = 400;
