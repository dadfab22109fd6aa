//! What the user may ask the doctor for.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::ensure;
use clap::Args;

use super::report::MAX_HOSTS;
use crate::hosts::{DEFAULT_REMOTE_SHELL, Host, check_remote_shell, door, parse_hosts};

/// Say whether hosts are ready for parallel programs, and what to do if not.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The hosts to look at, as in `mizzen run`: `name` or `name=address to listen on`. By default, this one.
    #[arg(long, value_name = "HOST,…", value_delimiter = ',')]
    pub(crate) hosts: Vec<String>,

    /// The command that runs another on a host; split at blanks, `{host}` is the host's name. It must not ask for anything.
    #[arg(long, value_name = "COMMAND", default_value = DEFAULT_REMOTE_SHELL)]
    pub(crate) remote_shell: String,

    /// Where the mizzen command is on the other hosts. By default, where it is here.
    #[arg(long, value_name = "PATH")]
    pub(crate) agent_path: Option<PathBuf>,

    /// How long all hosts together have to answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) patience: u64,

    /// Print all that was found as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,

    /// Look at the way to another site instead: who dials whom, how far it is, and what fills it.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["hosts", "json"])]
    pub(crate) site: Option<String>,

    /// With --site: where the gateway of this site is, for its jobs.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:4434", value_parser = door)]
    pub(crate) door: SocketAddr,

    /// With --site: what the cable between the sites carries, in Mbit/s.
    #[arg(long, value_name = "MBIT", requires = "site", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) rate: Option<u64>,
}

impl Doctor {
    /// The hosts; none: this one, without a remote shell.
    pub(crate) fn hosts(&self) -> anyhow::Result<Vec<Host>> {
        check_remote_shell(&self.remote_shell)?;
        let hosts = parse_hosts(&self.hosts)?;
        ensure!(
            hosts.len() <= MAX_HOSTS,
            "{} hosts are more than the {MAX_HOSTS} that can be looked at together; name some of them",
            hosts.len()
        );
        for host in &hosts {
            ensure!(
                host.bind.is_empty() || host.bind.parse::<std::net::IpAddr>().is_ok(),
                "{:?} is not an address; give --hosts {}=10.0.0.1, or only the name",
                host.bind,
                host.name
            );
        }
        Ok(hosts)
    }
}
