//! What a roll-call showed, as the launcher tells it.

use anyhow::{Context, ensure};
use mizzen_proto::rollcall::{Report, Wait};
use serde::{Deserialize, Serialize};

/// What a roll-call showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hang {
    /// The process id of the launcher.
    pub(crate) pid: u32,
    pub(crate) program: String,
    /// How long the job has been running, in seconds.
    pub(crate) seconds: u64,
    pub(crate) hosts: Vec<String>,
    /// The host of each rank.
    pub(crate) places: Vec<usize>,
    /// The process id of each rank on its host, if it was started.
    pub(crate) pids: Vec<Option<u32>>,
    pub(crate) report: Report,
}

impl Hang {
    /// Takes what somebody sent who says that it is a launcher.
    pub(crate) fn decode(bytes: &[u8]) -> anyhow::Result<Self> {
        let hang: Self =
            serde_json::from_slice(bytes).context("it is not of this version of mizzen")?;
        let (hosts, size) = (hang.hosts.len(), hang.places.len());
        let ends = hang.report.ends.iter();
        let named = ends.flat_map(|end| {
            let steps = end.steps.iter().map(|step| &step.rank);
            end.ranks.iter().chain(&end.held).chain(steps)
        });
        let classes = hang.report.classes.iter().flat_map(|class| &class.ranks);
        let is_there = |rank: &u32| (*rank as usize) < size;
        ensure!(
            hang.places.iter().all(|host| *host < hosts)
                && hang.pids.len() == size
                && named.chain(classes).all(is_there),
            "it speaks of ranks or hosts that it does not have"
        );
        Ok(hang.printable())
    }

    /// The same without what would command a terminal: much of it was said by processes.
    pub(crate) fn printable(mut self) -> Self {
        let steps = self.report.ends.iter_mut().flat_map(|end| &mut end.steps);
        let classes = self.report.classes.iter_mut();
        let waits = steps
            .map(|step| &mut step.wait)
            .chain(classes.filter_map(|class| class.wait.as_mut()));
        let clean = |text: &mut String| text.retain(|letter| !letter.is_control());
        for Wait {
            what,
            at,
            thread,
            operation,
            ..
        } in waits
        {
            clean(what);
            clean(thread);
            at.iter_mut().for_each(|place| clean(&mut place.file));
            if let Some(operation) = operation {
                clean(&mut operation.group);
                clean(&mut operation.name);
            }
        }
        clean(&mut self.program);
        self.hosts.iter_mut().for_each(clean);
        self
    }
}
