//! This command, started again: as one side, or as the launcher of a job of sides.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;

use anyhow::Context;
use mizzen_proto::boot::AGENT_FD;

use super::plan::{Plan, Work};

/// This command as one side.
pub(crate) fn side(work: &Work) -> anyhow::Result<Command> {
    let mut command = this_command()?;
    command.arg("bench-side").arg(serde_json::to_string(work)?);
    Ok(command)
}

/// This command as the launcher of a job of sides.
pub(crate) fn job(plan: &Plan, work: &Work, file: Option<&File>) -> anyhow::Result<Command> {
    let mut command = this_command()?;
    command.args(["run", "--no-label", "-n", &plan.job_size().to_string()]);
    if plan.path.is_network() {
        let hosts = plan.places.iter();
        let hosts = hosts.map(|place| format!("{}={}", place.host, place.address));
        command.args(["--hosts", &hosts.collect::<Vec<_>>().join(",")]);
        command.args(["--remote-shell", &plan.remote_shell]);
        if let Some(file) = file {
            let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
            command.args(["--file", &path]);
        }
    }
    let side = side(work)?;
    command
        .arg("--")
        .arg(side.get_program())
        .args(side.get_args());
    Ok(command)
}

fn this_command() -> anyhow::Result<Command> {
    let itself = std::env::current_exe().context("the path of this command is not known")?;
    let mut command = Command::new(itself);
    // A measurement inside a job is a job of its own.
    command.env_remove(AGENT_FD);
    Ok(command)
}
