//! The hosts that a user names, and how they are reached.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use anyhow::{bail, ensure};
use mizzen_proto::boot::MAX_HOST;

/// A host to run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    /// How it is called in the job.
    pub(crate) name: String,
    /// How the user and the remote shell call it.
    pub(crate) reached_as: String,
    /// Where its processes listen; empty: they choose.
    pub(crate) bind: String,
}

impl Host {
    /// One that is called as it is reached.
    pub(crate) fn new(name: &str, bind: &str) -> Self {
        Self {
            name: name.to_owned(),
            reached_as: name.to_owned(),
            bind: bind.to_owned(),
        }
    }

    /// Whether it is this machine, to be reached without a remote shell. One that was asked for is used: it may lead
    /// elsewhere, into a container for instance.
    pub(crate) fn is_here(&self, remote_shell: &str) -> bool {
        let is_loopback = |address: IpAddr| address.is_loopback();
        let this = rustix::system::uname();
        remote_shell == DEFAULT_REMOTE_SHELL
            && (self.reached_as.eq_ignore_ascii_case("localhost")
                || self.reached_as.parse().is_ok_and(is_loopback)
                || this.nodename().to_string_lossy() == self.reached_as)
    }
}

pub(crate) fn this_host() -> Host {
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    Host::new(&name, "")
}

/// Checks that there is a command to run others with.
pub(crate) fn check_remote_shell(shell: &str) -> anyhow::Result<()> {
    ensure!(
        shell.split_whitespace().next().is_some(),
        "the remote shell is empty; give a command such as --remote-shell 'ssh {{host}}'"
    );
    Ok(())
}

/// A host and a port, as an address that all hosts of this site can use.
pub(crate) fn door(text: &str) -> Result<SocketAddr, String> {
    let mut addresses = text.to_socket_addrs().map_err(|error| {
        format!("{error}; write the host and the port of the gateway, as in gw.a.example:4434")
    })?;
    addresses
        .next()
        .ok_or_else(|| "it has no address".to_owned())
}

/// The hosts of `--hosts`.
pub(crate) fn parse_hosts(texts: &[String]) -> anyhow::Result<Vec<Host>> {
    let mut hosts: Vec<Host> = Vec::new();
    for text in texts {
        let (name, bind) = text.split_once('=').unwrap_or((text, ""));
        // A leading dash would be an option to the remote shell.
        let odd = |c: char| c.is_whitespace() || c.is_control();
        if name.is_empty() || name.starts_with('-') || name.contains(odd) || text.len() > MAX_HOST {
            bail!(
                "{text:?} is not the name of a host; give --hosts h1,h2 or --hosts h1=10.0.0.1,h2=10.0.0.2"
            );
        }
        ensure!(
            hosts.iter().all(|host| host.name != name),
            "host {name} is named twice; name it once: processes are dealt evenly"
        );
        hosts.push(Host::new(name, bind));
    }
    Ok(hosts)
}

/// The host of each rank: dealt in blocks, the first hosts getting what is left over.
pub(crate) fn deal(size: u32, hosts: usize) -> impl Iterator<Item = usize> {
    let (each, more) = (size as usize / hosts, size as usize % hosts);
    (0..hosts).flat_map(move |host| std::iter::repeat_n(host, each + usize::from(host < more)))
}

/// Asks for nothing: there is nobody to answer.
pub(crate) const DEFAULT_REMOTE_SHELL: &str = "ssh -o BatchMode=yes {host}";
