//! The mizzen command: starts parallel programs.
//!
//! `mizzen run` is the launcher ([`run`]). It starts an agent on each host ([`mizzen_agent`]), in a thread if the job runs on
//! this host alone, through a remote shell otherwise; both speak `mizzen_proto::boot`. Where to look:
//!
//! | file | subject |
//! | --- | --- |
//! | `options.rs` | what the user may ask for; the options of a command are in its folder |
//! | `distance.rs` | how far another site is, and what that means |
//! | `hosts.rs` | the hosts that a user names, and how they are reached |
//! | `run.rs`, `run/` | the launcher: its loop, the job it decides about, its links to agents, what it prints |
//! | `running.rs`, `running/` | how a job that runs is asked how it is |
//! | `bench.rs`, `bench/` | the measurements |
//! | `doctor.rs`, `doctor/` | whether hosts are ready, and what to do if not |
//! | `topo.rs`, `topo/` | hosts, networks, gateways, and the ways between ranks |
//! | `why.rs`, `hang.rs`, `hang/` | why nothing happens in a job that runs, and the words for it |
//! | `site.rs`, `site/` | who this site is, which others it believes, and its gateway |
//! | `signals.rs` | the names of signals, and what they ask for |

mod bench;
mod distance;
mod doctor;
mod hang;
mod hosts;
mod options;
mod run;
mod running;
mod signals;
mod site;
mod topo;
mod why;

use std::process::ExitCode;

use options::{Command, Options};

fn main() -> ExitCode {
    let result = match Options::read().command {
        Command::Run(run) => run::run(*run),
        Command::Bench(options) => bench::bench(&options),
        Command::BenchSide { work } => bench::serve(&work).map(|()| ExitCode::SUCCESS),
        Command::Doctor(options) => doctor::doctor(&options),
        Command::Topo(options) => topo::topo(&options),
        Command::Why(options) => why::why(&options),
        Command::Site(options) => site::site(&options),
        Command::Gateway(options) => site::gateway(&options),
        Command::DoctorSide => doctor::serve().map(|()| ExitCode::SUCCESS),
        Command::DoctorReadable => {
            doctor::serve_readable();
            return ExitCode::SUCCESS;
        }
        Command::Agent => mizzen_agent::serve_remote().map(|()| ExitCode::SUCCESS),
        Command::Guard => {
            mizzen_agent::serve_guard();
            return ExitCode::SUCCESS;
        }
    };
    result.unwrap_or_else(|error| {
        run::say(&format!("{error:#}."));
        ExitCode::FAILURE
    })
}
