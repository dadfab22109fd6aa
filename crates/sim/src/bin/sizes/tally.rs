//! What was counted, as a table.

use std::fmt::Write;
use std::time::Duration;

/// What the job did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Start,
    Bind,
    Fetch,
    HostLost,
}

impl Phase {
    pub(crate) const ALL: [Phase; 4] = [Self::Start, Self::Bind, Self::Fetch, Self::HostLost];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Bind => "all bind a name",
            Self::Fetch => "all fetch one name",
            Self::HostLost => "a host dies",
        }
    }
}

/// Messages and bytes, both ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Count {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl Count {
    pub(crate) fn add(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes as u64;
    }
}

/// One phase of one job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) phase: Phase,
    pub(crate) hosts: u32,
    pub(crate) processes: u32,
    pub(crate) took: Duration,
    /// Of the agents but the first.
    pub(crate) agent: Count,
    /// Of the first agent, which is the root and the coordinator of names.
    pub(crate) root: Count,
    pub(crate) process: Count,
    /// Bytes of tables afterwards, the largest of each.
    pub(crate) agent_memory: u64,
    pub(crate) root_memory: u64,
    pub(crate) process_memory: u64,
}

/// A table in Markdown.
pub(crate) fn table(figures: &[Figures]) -> String {
    let mut text = String::from(
        "| processes | hosts | | took | busiest agent | root | busiest process | memory: agent | root | process |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for one in figures {
        let count = |count: Count| format!("{} / {}", count.messages, size(count.bytes));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.1} ms | {} | {} | {} | {} | {} | {} |",
            one.processes,
            one.hosts,
            one.phase.name(),
            one.took.as_secs_f64() * 1e3,
            count(one.agent),
            count(one.root),
            count(one.process),
            size(one.agent_memory),
            size(one.root_memory),
            size(one.process_memory),
        );
    }
    text
}

/// What must not grow with the job, and does.
pub(crate) fn complaints(figures: &[Figures]) -> Vec<String> {
    let mut complaints = vec![];
    for phase in Phase::ALL {
        let all: Vec<&Figures> = figures.iter().filter(|one| one.phase == phase).collect();
        let (Some(small), Some(large)) = (all.first(), all.last()) else {
            continue;
        };
        let grown = large.processes / small.processes;
        let mut check = |what: &str, from: u64, to: u64| {
            // A hundred times the job may not make it ten times as much.
            if to > from.max(16) * u64::from(grown) / 10 {
                complaints.push(format!(
                    "{}: {what} at a process grew from {from} to {to}",
                    phase.name()
                ));
            }
        };
        check("messages", small.process.messages, large.process.messages);
        check("bytes", small.process.bytes, large.process.bytes);
        check("memory", small.process_memory, large.process_memory);
    }
    complaints
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}
