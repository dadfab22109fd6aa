//! What the user may ask for.

use clap::error::{ContextKind, ContextValue};
use clap::{Parser, Subcommand};

use crate::bench::Bench;
use crate::doctor::Doctor;
use crate::run::{AFTER_RUN, Run, processes};
use crate::site::{Gateway, Site};
use crate::topo::Topo;
use crate::why::Why;

/// Starts and watches parallel programs.
#[derive(Debug, Parser)]
#[command(name = "mizzen", version, about)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Options {
    /// What the user asked for; ends this process if it cannot be understood, with a hint if there is one.
    pub(crate) fn read() -> Self {
        let args: Vec<String> = std::env::args_os()
            .map(|arg| arg.to_string_lossy().into_owned())
            .collect();
        Self::try_parse().unwrap_or_else(|error| hint(error, &args).exit())
    }
}

/// Adds what was probably meant: people who know `mpirun` write `-np 4`.
fn hint(mut error: clap::Error, args: &[String]) -> clap::Error {
    let Some(ContextValue::String(refused)) = error.get(ContextKind::InvalidValue) else {
        return error;
    };
    let written = format!("-n{refused}");
    let Some(at) = args.iter().position(|arg| *arg == written) else {
        return error;
    };
    let Some(behind) = refused.strip_prefix('p') else {
        return error;
    };
    let count = match behind.trim_start_matches('=') {
        "" => args.get(at + 1).map_or("", String::as_str),
        count => count,
    };
    if processes(count).is_ok() {
        let meant = format!("did you mean -n {count}?");
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![meant.into()]),
        );
    }
    error
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a program as several processes, and wait for all of them.
    #[command(after_help = AFTER_RUN)]
    Run(Box<Run>),
    Bench(Box<Bench>),
    Doctor(Box<Doctor>),
    Topo(Box<Topo>),
    Why(Why),
    Site(Box<Site>),
    Gateway(Box<Gateway>),
    /// Take part in a measurement. Run by `mizzen bench`.
    #[command(hide = true)]
    BenchSide {
        /// What to do, as JSON.
        work: String,
    },
    /// Look at one host. Run by `mizzen doctor` through the remote shell.
    #[command(hide = true)]
    DoctorSide,
    /// Let another process read this one's memory. Run by the sides of `mizzen doctor`.
    #[command(hide = true)]
    DoctorReadable,
    /// Start the processes of one host. Run by `mizzen run` through the remote shell.
    #[command(hide = true)]
    Agent,
    /// End processes when the one that started them is gone. Run by agents.
    #[command(hide = true)]
    Guard,
}
