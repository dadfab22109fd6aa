//! The job, as those see it who ask how it is.

use std::time::Duration;

use mizzen_config::JobFile;
use mizzen_proto::rollcall::Report;

use super::cast::Cast;
use super::job::Job;
use super::options::Run;
use crate::hang::Hang;
use crate::running::Running;

/// What does not change while it runs.
pub(super) struct Appearance {
    program: String,
    file: Option<String>,
    hosts: Vec<String>,
    places: Vec<usize>,
}

impl Appearance {
    pub(super) fn new(options: &Run, cast: &Cast) -> Self {
        let program = options.program.first();
        Self {
            program: program.map_or(String::new(), |program| {
                program.to_string_lossy().into_owned()
            }),
            file: cast.file.as_ref().map(JobFile::text).map(str::to_owned),
            hosts: cast.hosts.iter().map(|host| host.name.clone()).collect(),
            places: cast.places.clone(),
        }
    }

    pub(super) fn hang(&self, job: &Job, report: Report, age: Duration) -> Hang {
        let hang = Hang {
            pid: std::process::id(),
            program: self.program.clone(),
            seconds: age.as_secs(),
            hosts: self.hosts.clone(),
            places: self.places.clone(),
            pids: job.pids(),
            report,
        };
        hang.printable()
    }

    pub(super) fn running(&self, job: &Job, age: Duration) -> Running {
        Running {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            program: self.program.clone(),
            seconds: age.as_secs(),
            file: self.file.clone(),
            hosts: self.hosts.clone(),
            places: self.places.clone(),
            gone: job.gone(),
            ended: job.ended(),
        }
    }
}
