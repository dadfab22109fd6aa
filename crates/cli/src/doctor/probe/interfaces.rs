//! Interfaces: which there are, and which of their addresses others can use.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use super::super::report::{Address, Finding, MAX_ADDRESSES};
use super::addresses::{Entry, NET, entries};
use super::read::read;

/// One row for each interface that is up or has an address.
pub(crate) fn look() -> Vec<Finding> {
    match interfaces() {
        Ok(found) => {
            let others = found
                .iter()
                .filter(|interface| interface.reaches_others())
                .count();
            found
                .iter()
                .filter(|interface| interface.is_worth_a_row())
                .take(MAX_ROWS)
                .map(|interface| interface.finding(others))
                .collect()
        }
        Err(error) => vec![Finding::warn(
            "interfaces",
            error.to_string(),
            "The interfaces of this host cannot be listed; processes will listen on loopback only.",
        )],
    }
}

/// The addresses that processes of this host offer to others: IPv4 first, as the TCP driver does it; or the one that they are told to use.
pub(crate) fn offered(bind: Option<IpAddr>) -> Vec<Address> {
    let found = interfaces().unwrap_or_default();
    let all = found
        .iter()
        .filter(|interface| interface.up)
        .flat_map(|interface| {
            interface.addresses.iter().map(|ip| Address {
                interface: interface.name.clone(),
                ip: *ip,
            })
        });
    choose(all.collect(), bind)
}

/// The interface that has an address.
pub(crate) fn name_of(ip: IpAddr) -> String {
    let ip = ip.to_canonical();
    let found = entries().unwrap_or_default();
    let entry = found.into_iter().find(|entry| entry.address == Some(ip));
    entry.map(|entry| entry.interface).unwrap_or_default()
}

fn choose(all: Vec<Address>, bind: Option<IpAddr>) -> Vec<Address> {
    if let Some(ip) = bind {
        // Loopback has more addresses than are listed.
        let listed = all.into_iter().find(|address| address.ip == ip);
        let unlisted = || Address {
            interface: "unlisted".to_owned(),
            ip,
        };
        return vec![listed.unwrap_or_else(unlisted)];
    }
    let (loopback, others): (Vec<Address>, Vec<Address>) = all
        .into_iter()
        .partition(|address| address.ip.is_loopback());
    let mut found: Vec<Address> = others
        .into_iter()
        .filter(|address| !is_link_local(address.ip))
        .collect();
    if found.is_empty() {
        found = loopback;
    }
    found.sort_by_key(|address| address.ip.is_ipv6());
    found.truncate(MAX_ADDRESSES);
    found
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Interface {
    name: String,
    up: bool,
    addresses: Vec<IpAddr>,
    kind: Kind,
    mtu: Option<u32>,
    /// In Mb/s.
    speed: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Loopback,
    /// With a device behind it.
    Device,
    /// Joins containers or virtual machines of this host, and nothing else.
    InnerBridge,
    Virtual,
}

fn interfaces() -> std::io::Result<Vec<Interface>> {
    Ok(gather(entries()?)
        .into_iter()
        .map(|interface| interface.with_details(Path::new(NET)))
        .collect())
}

/// One of each name, in the order in which they come.
fn gather(entries: Vec<Entry>) -> Vec<Interface> {
    let mut found: Vec<Interface> = Vec::new();
    for entry in entries {
        let known = found
            .iter()
            .position(|interface| interface.name == entry.interface);
        let index = known.unwrap_or_else(|| {
            found.push(Interface {
                name: entry.interface,
                up: entry.up,
                addresses: Vec::new(),
                kind: Kind::Virtual,
                mtu: None,
                speed: None,
            });
            found.len() - 1
        });
        found[index].up |= entry.up;
        found[index].addresses.extend(entry.address);
    }
    found
}

impl Interface {
    /// Adds what the kernel says in `/sys/class/net`.
    fn with_details(mut self, net: &Path) -> Self {
        let folder = net.join(&self.name);
        self.mtu = read(folder.join("mtu")).and_then(|text| text.parse().ok());
        // Unknown is -1, or an error.
        self.speed = read(folder.join("speed")).and_then(|text| text.parse().ok());
        self.kind = self.kind_in(net, &folder);
        self
    }

    fn kind_in(&self, net: &Path, folder: &Path) -> Kind {
        let loopback = |ip: &IpAddr| ip.is_loopback();
        if self.name == "lo" || (!self.addresses.is_empty() && self.addresses.iter().all(loopback))
        {
            return Kind::Loopback;
        }
        if folder.join("device").exists() {
            return Kind::Device;
        }
        if folder.join("bridge").exists() {
            // A bridge with a device in it leads out of this host.
            let ports = std::fs::read_dir(folder.join("brif"))
                .into_iter()
                .flatten()
                .flatten();
            let mut devices =
                ports.map(|port| -> PathBuf { net.join(port.file_name()).join("device") });
            if devices.any(|device| device.exists()) {
                return Kind::Virtual;
            }
            return Kind::InnerBridge;
        }
        let inner = ["docker", "virbr", "cni", "flannel", "lxcbr", "podman"];
        if inner.iter().any(|prefix| self.name.starts_with(prefix)) {
            return Kind::InnerBridge;
        }
        Kind::Virtual
    }

    fn reaches_others(&self) -> bool {
        let usable = self.addresses.iter().any(|ip| !is_link_local(*ip));
        self.up && usable && matches!(self.kind, Kind::Device | Kind::Virtual)
    }

    fn is_worth_a_row(&self) -> bool {
        self.kind == Kind::Loopback
            || !self.addresses.is_empty()
            || (self.up && self.kind == Kind::Device)
    }

    /// `others` is how many interfaces lead to other hosts.
    fn finding(&self, others: usize) -> Finding {
        let what = format!("interface {}", self.name);
        let value = self.describe();
        let finding = match self.kind {
            Kind::Loopback if !self.up => Finding::warn(
                &what,
                value,
                "Programs that talk to themselves over TCP do not work; as root: ip link set lo up.",
            ),
            Kind::InnerBridge if self.up && !self.addresses.is_empty() && others > 0 => {
                Finding::note(
                    &what,
                    value,
                    format!(
                        "{} joins containers or virtual machines of this host, and other hosts lose time trying its address; \
                     name the address to use: --hosts NAME=ADDRESS.",
                        self.name
                    ),
                )
            }
            _ => Finding::ok(&what, value),
        };
        finding.varying()
    }

    /// `192.0.2.2, fd00::2; up, 10 Gb/s, mtu 1500`.
    fn describe(&self) -> String {
        let shown = self.addresses.iter().filter(|ip| !is_link_local(**ip));
        let addresses: Vec<String> = shown.map(IpAddr::to_string).collect();
        let mut text = if addresses.is_empty() {
            "no address".to_owned()
        } else {
            addresses.join(", ")
        };
        text.push_str(if self.up { "; up" } else { "; down" });
        match self.kind {
            Kind::InnerBridge => text.push_str(", bridge"),
            Kind::Virtual => text.push_str(", virtual"),
            Kind::Loopback | Kind::Device => {}
        }
        match self.speed {
            Some(speed) if speed >= 1000 => {
                text.push_str(&format!(", {} Gb/s", f64::from(speed) / 1000.0));
            }
            Some(speed) => text.push_str(&format!(", {speed} Mb/s")),
            None => {}
        }
        if let Some(mtu) = self.mtu {
            text.push_str(&format!(", mtu {mtu}"));
        }
        text
    }
}

/// Without the name of an interface, which means something else on another host, these lead nowhere.
fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// Interfaces that are shown: a host with many containers has one for each.
const MAX_ROWS: usize = 32;

#[cfg(test)]
mod tests;
