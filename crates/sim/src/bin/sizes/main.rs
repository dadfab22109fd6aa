//! `sizes [--svg FILE]`: names and membership of large jobs, in virtual time: messages, bytes and memory, as a table and as a drawing.
//!
//! 100, 1,000 and 10,000 processes on 10, 50 and 200 hosts. All bind a name; all fetch one name; a host dies. Agents and the root are the
//! real machines; a process is a row. What agents say to each other is counted with its bytes, except beats and grants, which go on
//! whatever happens; what a process and its agent say is counted at the process. Then what is kept of the ways through 2 to 1,000 clusters.

#![forbid(unsafe_code)]

mod cluster;
mod drawing;
mod tally;
mod ways;

use std::process::ExitCode;

use cluster::Cluster;
use tally::{Figures, Phase};

const JOBS: [(u32, u32); 3] = [(10, 100), (50, 1_000), (200, 10_000)];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let svg = match &arguments[..] {
        [] => None,
        [flag, file] if flag == "--svg" => Some(file),
        _ => {
            eprintln!("sizes [--svg FILE]");
            return ExitCode::from(2);
        }
    };
    let figures: Vec<Figures> = JOBS.iter().flat_map(|job| run(job.0, job.1)).collect();
    print!("{}", tally::table(&figures));
    let mut complaints = tally::complaints(&figures);
    let (table, others) = ways::table();
    print!("{table}");
    complaints.extend(others);
    for complaint in &complaints {
        println!("sizes: {complaint}");
    }
    if let Some(file) = svg {
        if let Err(error) = std::fs::write(file, drawing::draw(&figures)) {
            eprintln!("sizes: {file}: {error}");
            return ExitCode::FAILURE;
        }
    }
    if complaints.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run(hosts: u32, processes: u32) -> Vec<Figures> {
    let mut cluster = Cluster::new(hosts, processes);
    let mut figures = vec![];
    let mut note = |cluster: &mut Cluster, phase| figures.push(cluster.figures(phase));
    cluster.start();
    note(&mut cluster, Phase::Start);
    cluster.bind_all();
    note(&mut cluster, Phase::Bind);
    cluster.fetch_one();
    note(&mut cluster, Phase::Fetch);
    cluster.lose_host();
    note(&mut cluster, Phase::HostLost);
    figures
}
