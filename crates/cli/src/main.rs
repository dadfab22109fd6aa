//! The mizzen command: starts parallel programs.
//!
//! `mizzen run` is the launcher ([`run`]). It starts an agent on each host ([`agent`]), in a thread if the job runs on this
//! host alone, through a remote shell otherwise; both speak `mizzen_proto::boot`. Where to look:
//!
//! | file | subject |
//! | --- | --- |
//! | `options.rs` | what the user may ask for |
//! | `run.rs`, `run/` | the launcher: its loop, the job it decides about, its links to agents, what it prints |
//! | `agent.rs`, `agent/` | the agent: its loop, its children, their output, their introductions, their certificates |
//! | `bench.rs`, `bench/` | the measurements |
//! | `doctor.rs`, `doctor/` | whether hosts are ready, and what to do if not |
//! | `guard.rs` | what ends the processes when even the agent is killed |
//! | `stream.rs` | frames over the byte stream between launcher and agent |
//! | `signals.rs` | signals as input, and their names |

mod agent;
mod bench;
mod doctor;
mod guard;
mod options;
mod run;
mod signals;
mod stream;

use std::process::ExitCode;

use options::{Command, Options};

fn main() -> ExitCode {
    let result = match Options::read().command {
        Command::Run(run) => run::run(*run),
        Command::Bench(options) => bench::bench(&options),
        Command::BenchSide { work } => bench::serve(&work).map(|()| ExitCode::SUCCESS),
        Command::Doctor(options) => doctor::doctor(&options),
        Command::DoctorSide => doctor::serve().map(|()| ExitCode::SUCCESS),
        Command::DoctorReadable => {
            doctor::serve_readable();
            return ExitCode::SUCCESS;
        }
        Command::Agent => agent::serve_remote().map(|()| ExitCode::SUCCESS),
        Command::Guard => {
            guard::serve();
            return ExitCode::SUCCESS;
        }
    };
    result.unwrap_or_else(|error| {
        run::say(&format!("{error:#}."));
        ExitCode::FAILURE
    })
}
