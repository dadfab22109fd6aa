//! Time from the start to the end of a job of many processes that do nothing but join, beside as many bare processes.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};

use super::command;
use super::figures::{Figures, Runs};
use super::plan::{Plan, Work};

const FLOOR_NAME: &str = "starting as many bare processes";

pub(crate) fn measure(plan: &Plan, mut progress: impl FnMut()) -> anyhow::Result<Figures> {
    let mut runs = Runs::default();
    bare(plan)?;
    for _ in 0..plan.runs {
        runs.push(bare(plan)?, job(plan)?);
        progress();
    }
    let mut figures = runs.figures(plan, "s", FLOOR_NAME);
    figures.processes = Some(plan.processes);
    figures.pinned = false;
    Ok(figures)
}

/// Seconds to start the processes and see all of them end.
fn bare(plan: &Plan) -> anyhow::Result<f64> {
    let started = Instant::now();
    let mut children = Vec::new();
    for _ in 0..plan.processes {
        let child = command::side(&Work::Nothing)?.stdin(Stdio::null()).spawn();
        children
            .push(child.context("a process cannot be started; ask for fewer with --processes")?);
    }
    for mut child in children {
        ensure!(child.wait()?.success(), "a bare process failed");
    }
    Ok(started.elapsed().as_secs_f64())
}

/// Seconds of a whole job.
fn job(plan: &Plan) -> anyhow::Result<f64> {
    let mut launcher: Command = command::job(plan, &Work::Join, None)?;
    launcher.stdin(Stdio::null());
    let started = Instant::now();
    let status = launcher
        .status()
        .context("the launcher cannot be started")?;
    let took = started.elapsed().as_secs_f64();
    ensure!(status.success(), "the job failed; what it said is above");
    Ok(took)
}
