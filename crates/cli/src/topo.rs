//! `mizzen topo`: which hosts are on which networks, who is a gateway, and the way from one rank to another.

mod drawing;
mod map;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Args;
use mizzen_config::{DEFAULT_CHANNEL, JobFile};

use crate::hosts::{deal, parse_hosts, this_host};
use crate::run::{processes, without_file};
use crate::running::{Running, ask};
use map::Map;

/// Show a job's hosts, networks and gateways, and the way from one rank to another, before it is started or while it runs.
#[derive(Debug, Args)]
pub(crate) struct Topo {
    /// The job's file, as for `mizzen run`. Without it, all hosts are on one network.
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,

    /// The hosts, as for `mizzen run`. By default those that the file names, or this one.
    #[arg(long, value_name = "HOST,…", value_delimiter = ',')]
    hosts: Vec<String>,

    /// Hosts that carry no processes, as for `mizzen run`.
    #[arg(long, value_name = "HOST,…", value_delimiter = ',', requires = "hosts")]
    gateways: Vec<String>,

    /// How many processes. By default one on each host.
    #[arg(short = 'n', long = "processes", value_name = "N", value_parser = processes)]
    processes: Option<u32>,

    /// Show a job that runs, by the process id of its `mizzen run` on this host. Without one, the only job of this user here.
    #[arg(long, value_name = "PID", num_args = 0..=1, conflicts_with_all = ["file", "hosts", "gateways", "processes"])]
    job: Option<Option<u32>>,

    /// The channel whose ways to show.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_CHANNEL)]
    channel: String,

    /// Show the way from one rank to another. By default from the first to the last.
    #[arg(long, value_name = "RANK,RANK", value_delimiter = ',', num_args = 1)]
    route: Vec<u32>,

    /// Draw all of it into this file.
    #[arg(long, value_name = "PATH")]
    svg: Option<PathBuf>,

    /// Print all of it as one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn topo(options: &Topo) -> anyhow::Result<ExitCode> {
    let map = match options.job {
        Some(job) => running(&ask(job)?, &options.channel)?,
        None => planned(options)?,
    };
    let size = map.size();
    let (from, to) = match options.route[..] {
        [] => (0, size - 1),
        [from, to] => (from, to),
        _ => anyhow::bail!("a way has two ends; give --route 0,5"),
    };
    for rank in [from, to] {
        ensure!(rank < size, "there is no rank {rank}: the job has {size}");
    }
    let route = map.route(from, to);
    if let Some(path) = &options.svg {
        std::fs::write(path, drawing::draw(&map, &route))
            .with_context(|| format!("{} cannot be written", path.display()))?;
    }
    match options.json {
        true => println!(
            "{}",
            serde_json::to_string(&text::Whole {
                map: &map,
                route: &route
            })?
        ),
        false => print!("{}", text::text(&map, &route)),
    }
    // A script may ask whether there is a way.
    Ok(match route.is_there() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// A job that is not started yet.
fn planned(options: &Topo) -> anyhow::Result<Map> {
    let file = match &options.file {
        Some(path) => JobFile::read(path).context("the job's file cannot be used")?,
        None => without_file()?,
    };
    let hosts = options.hosts(&file)?;
    let carriers = hosts.len() - options.gateways.len();
    let size = options.processes.unwrap_or(carriers as u32);
    let dealt = deal(size, carriers).collect();
    Map::new(&file, hosts, dealt, &options.channel)
}

fn running(running: &Running, channel: &str) -> anyhow::Result<Map> {
    let file = match &running.file {
        Some(text) => JobFile::parse("the job's file", text)
            .context("the job was started by another version of mizzen")?,
        None => without_file()?,
    };
    let (hosts, places) = (running.hosts.clone(), running.places.clone());
    Ok(Map::new(&file, hosts, places, channel)?.of(running))
}

impl Topo {
    fn hosts(&self, file: &JobFile) -> anyhow::Result<Vec<String>> {
        let all: Vec<String> = self.hosts.iter().chain(&self.gateways).cloned().collect();
        let given = parse_hosts(&all)?;
        if !given.is_empty() {
            return Ok(given.into_iter().map(|host| host.name).collect());
        }
        let named = map::named_hosts(file);
        Ok(match named.is_empty() {
            true => vec![this_host().name],
            false => named,
        })
    }
}
