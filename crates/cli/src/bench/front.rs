//! The front end: starts the sides, gathers what they say, and shows it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, bail};
use indicatif::ProgressBar;

use super::command::{job, side};
use super::figures::{Figures, Said};
use super::machine::{self, Machine};
use super::memory::Source;
use super::options::Bench;
use super::plan::{Path, Plan, Test, Work};
use super::{floor, plot, startup, table, words};
use crate::run::say;

/// Measures what was asked for.
pub(crate) fn bench(options: &Bench) -> anyhow::Result<ExitCode> {
    options.check()?;
    if let Some(file) = &options.svg {
        plot::check(file)?;
    }
    let cores = cores(options);
    let mut out = std::io::stdout();
    if !options.json {
        let pinning = table::pinning(options.test, &cores);
        writeln!(out, "{}; {pinning}.", Machine::look())?;
    }
    let mut gathered = Gathered::default();
    let plans: Vec<Plan> = options.plans(&cores);
    let progress = progress(&plans);
    for plan in plans {
        let figures = if plan.test == Test::Startup {
            let figures = startup::measure(&plan, || progress.inc(1))?;
            vec![figures]
        } else {
            measure(&plan, &progress, &mut gathered)?
        };
        for line in figures {
            if options.json {
                progress.suspend(|| writeln!(out, "{}", serde_json::to_string(&line)?))?;
            }
            gathered.figures.push(line);
        }
    }
    progress.finish_and_clear();
    if !options.json {
        write!(out, "{}", table::table(&gathered.figures, options.grid))?;
        for (size, bytes_per_s) in &gathered.copies {
            writeln!(
                out,
                "One core copies {} from memory to memory at {:.1} GB/s.",
                words::size(*size),
                bytes_per_s / 1e9
            )?;
        }
    }
    gathered.warn();
    if let Some(file) = &options.svg {
        plot::draw(file, &gathered.figures)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What the sides said.
#[derive(Default)]
struct Gathered {
    figures: Vec<Figures>,
    /// By the size of a message: how fast one core copied it at best, whichever path was measured then.
    copies: BTreeMap<usize, f64>,
    disturbed: Vec<String>,
}

impl Gathered {
    /// Says when figures cannot be trusted.
    fn warn(&self) {
        if let Some(sentence) = self.disturbed.first() {
            say(&format!(
                "the machine was not quiet: {sentence}; figures marked * (\"noisy\" in JSON) may be wrong, so end other \
                 programs and measure again."
            ));
        }
    }
}

/// The cores to pin to, unless they shall not or cannot be used.
fn cores(options: &Bench) -> Vec<usize> {
    if !options.pins() {
        return Vec::new();
    }
    let cores = machine::two_cores();
    if cores.is_none() {
        say(
            "this process may use only one core, so the sides take turns on it: expect slow figures.",
        );
    }
    cores.map(Vec::from).unwrap_or_default()
}

fn progress(plans: &[Plan]) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let lines = |plan: &Plan| match plan.test {
        Test::Latency | Test::Rate | Test::Bandwidth | Test::Rpc => plan.sizes.len(),
        Test::Threads | Test::Streams => plan.threads.len(),
        Test::Idle | Test::Startup => 1,
        Test::Collectives => plan.operations.len() * plan.sizes.len(),
    };
    let runs = plans
        .iter()
        .map(|plan| lines(plan) as u64 * u64::from(plan.runs));
    ProgressBar::new(runs.sum())
}

/// Runs the sides of one plan to their end.
fn measure(
    plan: &Plan,
    progress: &ProgressBar,
    gathered: &mut Gathered,
) -> anyhow::Result<Vec<Figures>> {
    // Memory of its own: participants count from zero how often they met.
    let memory = Source::make()?;
    let authority = match plan.path {
        Path::Tls => floor::tls::new_authority()?,
        _ => String::new(),
    };
    let work = Work::Measure(Box::new(Plan {
        memory: memory.path(),
        authority,
        ..plan.clone()
    }));
    let file = job_file(plan)?;
    let mut command = match plan.path {
        Path::Thread => side(&work)?,
        _ => job(plan, &work, Some(&file))?,
    };
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = started.context("the measurement cannot be started")?;
    let stdout = child.stdout.take().context("its output was asked for")?;
    let mut figures = Vec::new();
    for line in BufReader::new(stdout).lines() {
        match serde_json::from_str(&line?)? {
            Said::Figures(line) => figures.push(*line),
            Said::Copies { size, bytes_per_s } => {
                let best = gathered.copies.entry(size).or_default();
                *best = best.max(bytes_per_s);
            }
            Said::Disturbed(sentence) => gathered.disturbed.push(sentence),
            Said::Progress => progress.inc(1),
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!(
            "the measurement over the {} path ended early ({status}); what it said is above",
            plan.path.name()
        );
    }
    Ok(figures)
}

/// The file that declares the network of a path, without a name in any file system.
fn job_file(plan: &Plan) -> anyhow::Result<File> {
    let network = match plan.path {
        Path::Ofi if plan.provider.is_empty() => "driver = \"ofi\"\nsecurity = \"trusted\"".into(),
        Path::Ofi => format!(
            "driver = \"ofi\"\nsecurity = \"trusted\"\nprovider = \"{}\"",
            plan.provider
        ),
        Path::Tls => "security = \"tls\"".to_owned(),
        _ => "security = \"trusted\"".to_owned(),
    };
    let memory = rustix::fs::memfd_create("mizzen.toml", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(memory);
    write!(file, "[[network]]\nname = \"bench\"\n{network}\n")?;
    Ok(file)
}
