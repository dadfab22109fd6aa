//! The map in words.

use std::fmt::Write;

use comfy_table::{ContentArrangement, Table};
use serde::Serialize;

use super::map::{Map, Route};
use crate::bench::STYLE;

/// All of it, for programs.
#[derive(Serialize)]
pub(super) struct Whole<'a> {
    #[serde(flatten)]
    pub(super) map: &'a Map,
    pub(super) route: &'a Route,
}

pub(super) fn text(map: &Map, route: &Route) -> String {
    let mut text = state(map);
    for cluster in &map.clusters {
        let _ = writeln!(
            text,
            "cluster {}: {}",
            cluster.name,
            hosts(map, &cluster.hosts)
        );
    }
    let mut networks = table(&["network", "driver", "security", "hosts"]);
    for network in &map.networks {
        let hosts = hosts(map, &network.hosts);
        networks.add_row([&network.name, network.driver, network.security, &hosts]);
    }
    let mut channels = table(&["channel", "over", "hosts", "gateways"]);
    for channel in &map.channels {
        let over = match channel.is_virtual {
            true => format!("{} joined", channel.over.join(", ")),
            false => format!("network {}", channel.over.join(", ")),
        };
        let gateways = match channel.gateways.is_empty() {
            true => "none needed".to_owned(),
            false => hosts(map, &channel.gateways),
        };
        channels.add_row([&channel.name, &over, &hosts(map, &channel.hosts), &gateways]);
    }
    let _ = writeln!(text, "\n{}\n\n{}\n", lines(&networks), lines(&channels));
    let _ = writeln!(text, "{}", way(map, route));
    text
}

/// How a job that runs is.
fn state(map: &Map) -> String {
    let mut text = String::new();
    let Some(job) = &map.job else {
        return text;
    };
    let processes = match map.size() {
        1 => "1 process".to_owned(),
        more => format!("{more} processes"),
    };
    let ended = match job.ended.len() {
        0 => String::new(),
        ended => format!(", {ended} ended"),
    };
    let age = match (job.seconds / 60, job.seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    };
    let _ = writeln!(
        text,
        "job {} ({}): {processes}{ended}, started {age} ago",
        job.pid, job.program
    );
    for (rank, how) in job.ended.iter().take(SHOWN) {
        let _ = writeln!(text, "rank {rank} {how}");
    }
    if job.ended.len() > SHOWN {
        let _ = writeln!(text, "and {} more", job.ended.len() - SHOWN);
    }
    let gone = map
        .hosts
        .iter()
        .enumerate()
        .filter(|(_, host)| host.is_gone);
    let gone: Vec<usize> = gone.map(|(index, _)| index).collect();
    if !gone.is_empty() {
        let _ = writeln!(text, "gone: {}", hosts(map, &gone));
    }
    text.push('\n');
    text
}

/// The way from one rank to another, as a sentence.
pub(super) fn way(map: &Map, route: &Route) -> String {
    let name = |host: usize| &map.hosts[host].name;
    let Route { from, to, .. } = route;
    let ends = format!(
        "rank {from} on {} to rank {to} on {}",
        name(route.from_host),
        name(route.to_host)
    );
    if let Some(rank) = route.ended {
        return format!("{ends}: rank {rank} has ended.");
    }
    if route.from_host == route.to_host {
        return format!("{ends}: through memory.");
    }
    let Some((latency, rate)) = route.expected else {
        let advice = match map.hosts.iter().any(|host| host.is_gone) {
            true => "hosts that were on it are gone",
            false => "put a host on networks of both",
        };
        return format!("{ends}: no way on the channel {}; {advice}.", map.channel);
    };
    let mut steps = name(route.from_host).clone();
    for (network, host) in &route.steps {
        let _ = write!(
            steps,
            " -- {} --> {}",
            map.networks[*network].name,
            name(*host)
        );
    }
    let gateways = match route.steps.len() - 1 {
        0 => "directly".to_owned(),
        1 => "through 1 gateway".to_owned(),
        more => format!("through {more} gateways"),
    };
    format!(
        "{ends}, channel {}, {gateways}: {steps}.\nThe software alone takes {latency:.1} us for a short message and passes {:.1} GB/s; cables add to that.",
        map.channel,
        rate as f64 / 1e9
    )
}

/// Names of hosts, with the ranks of those that have few: `a (0, 1), b (2), and 96 more`.
fn hosts(map: &Map, hosts: &[usize]) -> String {
    if hosts.len() == map.hosts.len() && hosts.len() > SHOWN {
        return format!("all {}", hosts.len());
    }
    let name = |host: &usize| map.hosts[*host].name.clone();
    let mut names: Vec<String> = hosts.iter().take(SHOWN).map(name).collect();
    if hosts.len() > SHOWN {
        names.push(format!("and {} more", hosts.len() - SHOWN));
    }
    names.join(", ")
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(118);
    table.set_header(header);
    table
}

fn lines(table: &Table) -> String {
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// Hosts that are named one by one.
const SHOWN: usize = 12;
