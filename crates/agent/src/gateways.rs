//! The gateways of the job: the one of this host, if it is on several networks, and where the others are.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, ensure};
use mizzen_identity::Credentials;
use mizzen_networks::{
    Directory, Gateway, GatewayAt, GatewayOptions, Memory, Opened, Ways, open, stream_name,
};
use mizzen_proto::boot::{Start, ToProcess};
use mizzen_proto::membership::{AgentId, Epoch, HostId, MAX_LOCATOR, Members};

use crate::offers::offer;

/// In a job in which some hosts reach others through gateways only.
pub(crate) struct Gateways {
    /// Of this host.
    here: Option<Gateway>,
    directory: Arc<Directory>,
    known: BTreeMap<HostId, GatewayAt>,
    /// Of when that is.
    epoch: Epoch,
}

impl Gateways {
    /// Begins to hand on, if this host is to. None, if nobody needs gateways.
    pub(crate) fn open(
        start: &Start,
        agent: AgentId,
        credentials: &Credentials,
    ) -> anyhow::Result<Option<Self>> {
        if start.spans.is_empty() {
            return Ok(None);
        }
        let directory = Directory::new().context("no descriptor for gateways")?;
        let mut here = None;
        if start.is_gateway {
            let begun = begin(start, agent, credentials, &directory);
            let begun = begun.with_context(|| format!("{} cannot be a gateway", start.host))?;
            here = Some(begun);
        }
        Ok(Some(Self {
            here,
            directory,
            known: BTreeMap::new(),
            epoch: Epoch::default(),
        }))
    }

    /// What an agent's locator says of the gateway in it.
    pub(crate) fn add_to(&self, locator: &mut String) -> anyhow::Result<()> {
        if let Some(here) = &self.here {
            locator.push(';');
            locator.push_str(&here.at().text());
        }
        ensure!(
            locator.len() <= MAX_LOCATOR,
            "this host has too many addresses for a gateway; name the interfaces of each network in the job's file, or fewer `streams`"
        );
        Ok(())
    }

    /// Takes note of who is there now: what processes are to be told.
    pub(crate) fn handle_members(&mut self, members: &Members) -> Vec<ToProcess> {
        if std::mem::replace(&mut self.epoch, members.epoch()) == members.epoch() {
            return Vec::new();
        }
        let found = members.agents().filter_map(|agent| {
            let locator = &members.host(agent.host)?.locator;
            Some((agent.host, GatewayAt::parse(agent, locator)?))
        });
        let found: BTreeMap<HostId, GatewayAt> = found.collect();
        let before = std::mem::replace(&mut self.known, found);
        let gone = before
            .iter()
            .filter(|(host, _)| !self.known.contains_key(host));
        let mut told: Vec<ToProcess> = gone
            .map(|(_, gateway)| packet(gateway, String::new()))
            .collect();
        let new = self
            .known
            .iter()
            .filter(|(host, at)| before.get(host) != Some(at));
        told.extend(new.map(|(_, gateway)| packet(gateway, gateway.text())));
        for host in before.keys().chain(self.known.keys()) {
            self.directory.set(*host, self.known.get(host).cloned());
        }
        told
    }

    /// What a process is told that is started now.
    pub(crate) fn all(&self) -> Vec<ToProcess> {
        let known = self.known.values();
        known
            .map(|gateway| packet(gateway, gateway.text()))
            .collect()
    }
}

fn packet(gateway: &GatewayAt, locator: String) -> ToProcess {
    let AgentId { host, life } = gateway.agent;
    ToProcess::Gateway {
        host: host.0,
        life,
        locator,
    }
}

fn begin(
    start: &Start,
    agent: AgentId,
    credentials: &Credentials,
    directory: &Arc<Directory>,
) -> anyhow::Result<Gateway> {
    let credentials = credentials.for_gateways()?;
    let address = match &start.bind[..] {
        "" => None,
        given => Some(
            given
                .parse()
                .context("it is to listen at what is no address")?,
        ),
    };
    let mut drivers = Vec::new();
    for network in &start.networks {
        for stream in 0..network.streams.max(1) {
            let opened = open(&credentials, &network.for_gateways(), address);
            let Opened { driver, .. } = opened
                .map_err(anyhow::Error::msg)
                .with_context(|| format!("the network {} cannot be used", network.name))?;
            if let Some(door) = &network.door {
                offer(door, driver.locator())?;
            }
            drivers.push((stream_name(&network.name, stream), driver));
        }
    }
    let options = GatewayOptions {
        agent,
        ways: Ways::new(&start.spans),
        directory: Arc::clone(directory),
        drivers,
        memory: Memory::default(),
    };
    Ok(Gateway::start(options)?)
}
