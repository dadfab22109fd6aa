//! Everything that was found, on one host or several.

use serde::Serialize;

use super::report::{Finding, Report, Try, Verdict};

/// The hosts, and what is between them.
#[derive(Debug)]
pub(crate) struct Examined {
    pub(crate) hosts: Vec<Host>,
    pub(crate) connections: Vec<Connection>,
}

/// A host, and what its side said.
#[derive(Debug, Serialize)]
pub(crate) struct Host {
    #[serde(rename = "host")]
    pub(crate) name: String,
    /// The address to listen at that the user gave; empty: none.
    pub(crate) bind: String,
    /// Why there is no report.
    pub(crate) failure: Option<String>,
    pub(crate) clock: Option<Clock>,
    pub(crate) report: Option<Report>,
}

/// The clock of a host beside ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Clock {
    /// By how much it is ahead.
    pub(crate) ahead_ns: i64,
    /// By how much that may be wrong: half of the time that asking took.
    pub(crate) uncertain_ns: u64,
}

/// An attempt of a host to connect to another.
#[derive(Debug, Serialize)]
pub(crate) struct Connection {
    pub(crate) from: String,
    #[serde(flatten)]
    pub(crate) attempt: Try,
}

/// Something that is not as it should be, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Remark {
    pub(crate) verdict: Verdict,
    pub(crate) what: String,
    pub(crate) hosts: Vec<String>,
    pub(crate) advice: String,
}

/// What was looked at, host by host.
#[derive(Debug)]
pub(crate) struct Row<'a> {
    pub(crate) what: &'a str,
    pub(crate) cells: Vec<Option<&'a Finding>>,
}

impl Examined {
    /// What was looked at, in the order of the hosts.
    pub(crate) fn rows(&self) -> Vec<Row<'_>> {
        let mut rows: Vec<Row<'_>> = Vec::new();
        for (index, host) in self.hosts.iter().enumerate() {
            // Where a row goes that the hosts before do not have: behind the last that they have too.
            let mut next = 0;
            let findings = host.report.iter().flat_map(|report| &report.findings);
            for finding in findings {
                let known = rows.iter().position(|row| row.what == finding.what);
                let place = known.unwrap_or_else(|| {
                    let what = &finding.what;
                    let cells = vec![None; self.hosts.len()];
                    rows.insert(next, Row { what, cells });
                    next
                });
                rows[place].cells[index] = Some(finding);
                next = place + 1;
            }
        }
        rows
    }
}

impl Row<'_> {
    pub(crate) fn verdict(&self) -> Verdict {
        let verdicts = self.cells.iter().flatten().map(|finding| finding.verdict);
        verdicts.max().unwrap_or(Verdict::Ok)
    }

    /// Whether hosts differ where they should not.
    pub(crate) fn differs(&self) -> bool {
        let mut values = self
            .cells
            .iter()
            .flatten()
            .filter(|finding| !finding.varies);
        let first = values.next();
        values.any(|finding| Some(&finding.value) != first.map(|first| &first.value))
    }
}

/// The verdict on all: a sentence.
pub(crate) fn summary(remarks: &[Remark], several: bool) -> String {
    let bad: Vec<String> = remarks
        .iter()
        .filter(|remark| remark.verdict == Verdict::Bad)
        .map(|remark| match several && !remark.hosts.is_empty() {
            true => format!("{} ({})", remark.what, remark.hosts.join(", ")),
            false => remark.what.clone(),
        })
        .collect();
    match (bad.is_empty(), remarks.len()) {
        (false, _) => format!("Not ready: {}.", bad.join("; ")),
        (true, 0) => "Ready.".to_owned(),
        (true, 1) => "Ready, with 1 remark.".to_owned(),
        (true, count) => format!("Ready, with {count} remarks."),
    }
}
