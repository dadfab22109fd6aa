//! What is kept of the ways in a job of many clusters: by a process, and by a gateway.

use std::fmt::Write;
use std::time::Duration;

use mizzen_proto::id::{Incarnation, ProcessId, Rank};
use mizzen_proto::membership::HostId;
use mizzen_proto::relay::{Gateway, LinkId, Peer};
use mizzen_proto::route::{Cost, Hosts, Part, Plan, Table};
use mizzen_proto::time::Time;

/// Clusters, and processes in each.
const JOBS: [(u32, u32); 8] = [
    (2, 100),
    (2, 1_000),
    (10, 100),
    (10, 1_000),
    (100, 100),
    (100, 1_000),
    (1_000, 100),
    (1_000, 1_000),
];
/// Clusters below each in the tree in which they hang together: a thousand are three deep.
const BELOW: u32 = 10;
/// What a gateway has (`mizzen_networks::Memory`), and how many processes of its own cluster are connected to the one that is looked at.
const POOL: u64 = 1 << 30;
const SHARED: u64 = 1 << 20;
const NEAR: u32 = 100;

/// Bytes, in one job.
struct Figures {
    clusters: u32,
    processes: u32,
    process: usize,
    gateway: usize,
    reserved: u64,
}

/// A table in Markdown, and what is wrong with it.
pub(crate) fn table() -> (String, Vec<String>) {
    let figures: Vec<Figures> = JOBS.iter().map(|job| look(job.0, job.1)).collect();
    let mut text = String::from(
        "\n| clusters | processes in each | ways at a process, bytes | at a gateway, bytes | memory a gateway reserves for links, MiB |\n| --- | --- | --- | --- | --- |\n",
    );
    for one in &figures {
        let (clusters, processes) = (one.clusters, one.processes);
        let reserved = one.reserved as f64 / f64::from(1 << 20);
        let _ = writeln!(
            text,
            "| {clusters} | {processes} | {} | {} | {reserved:.1} |",
            one.process, one.gateway
        );
    }
    let mut complaints = Vec::new();
    for pair in figures
        .windows(2)
        .filter(|pair| pair[0].clusters == pair[1].clusters)
    {
        let of = |one: &Figures| (one.process, one.gateway, one.reserved);
        if of(&pair[0]) != of(&pair[1]) {
            let clusters = pair[0].clusters;
            complaints.push(format!(
                "what is kept of {clusters} clusters grows with their processes"
            ));
        }
    }
    (text, complaints)
}

/// Each cluster has a gateway and a network; its gateway is on the network of that above it as well.
fn look(clusters: u32, processes: u32) -> Figures {
    let cost = Cost {
        latency: Duration::from_micros(10),
        rate: 1_000_000_000,
    };
    let first = |cluster: u32| clusters + cluster * processes;
    let parts = (0..clusters).map(|cluster| {
        let below =
            (BELOW * cluster + 1..=BELOW * cluster + BELOW).filter(|below| *below < clusters);
        let gateways = below.chain([cluster]);
        let inside = first(cluster)..first(cluster) + processes;
        Part {
            hosts: gateways.chain(inside).map(HostId).collect::<Hosts>(),
            cost,
        }
    });
    let plan = Plan::new(parts.collect());
    let of = |host| plan.memory() + Table::new(&plan, HostId(host), |_| false).memory();
    // That of the second cluster: one above it, and as many below as there are.
    let neighbours =
        (0..clusters).filter(|other| *other == 0 || *other > 1 && (*other - 1) / BELOW == 1);
    let mut gateway = Gateway::new(POOL, SHARED);
    let near = (0..NEAR).map(|rank| Peer::End(ProcessId::new(Rank(rank), Incarnation(0))));
    let others = neighbours.map(|other| Peer::Gateway(HostId(other)));
    for (link, peer) in (0..).zip(near.chain(others)) {
        gateway
            .handle_link(LinkId(link), peer, Time(0))
            .expect("it has memory for so few");
    }
    Figures {
        clusters,
        processes,
        process: of(first(clusters - 1)),
        gateway: of(1),
        reserved: gateway.reserved(),
    }
}
