//! What is looked at on a host: one file per subject.
//!
//! A probe returns findings and never fails: what cannot be found out is a finding too. It may take long, or for ever, if the
//! kernel or a library does: each has its own thread, and is abandoned after [`PATIENCE`].

mod addresses;
mod attempts;
mod cgroup;
mod command;
mod container;
mod cores;
mod fabric;
pub(crate) mod interfaces;
mod limits;
mod memory;
mod read;
mod readable;
mod system;
mod tcp;
mod words;

use std::sync::mpsc;
use std::time::{Duration, Instant};

pub(crate) use readable::serve as serve_readable;

use super::report::Finding;

/// Looks at everything on this host.
pub(crate) fn look() -> Vec<Finding> {
    look_with(PROBES, PATIENCE)
}

/// The version of the kernel.
pub(crate) fn kernel() -> String {
    system::kernel()
}

struct Probe {
    subject: &'static str,
    look: fn() -> Vec<Finding>,
}

/// In the order of the table.
const PROBES: &[Probe] = &[
    probe("system", system::look),
    probe("cores", cores::look),
    probe("memory", memory::look),
    probe("limits", limits::look),
    probe("what the kernel allows", attempts::look),
    probe("container", container::look),
    probe("interfaces", interfaces::look),
    probe("TCP", tcp::look),
    probe("libfabric", fabric::fabric),
];

const fn probe(subject: &'static str, look: fn() -> Vec<Finding>) -> Probe {
    Probe { subject, look }
}

fn look_with(probes: &'static [Probe], patience: Duration) -> Vec<Finding> {
    let (sender, receiver) = mpsc::channel();
    for (i, probe) in probes.iter().enumerate() {
        let sender = sender.clone();
        // Without a thread the sender is dropped, and the probe counts as one that did not answer.
        let _ = std::thread::Builder::new()
            .name(probe.subject.to_owned())
            .spawn(move || {
                let _ = sender.send((i, (probe.look)()));
            });
    }
    drop(sender);
    let deadline = Instant::now() + patience;
    let mut found: Vec<Option<Vec<Finding>>> = probes.iter().map(|_| None).collect();
    while found.iter().any(Option::is_none) {
        let left = deadline.saturating_duration_since(Instant::now());
        let Ok((i, findings)) = receiver.recv_timeout(left) else {
            break;
        };
        found[i] = Some(findings);
    }
    let missing = |probe: &Probe| {
        vec![Finding::warn(
            probe.subject,
            format!("no answer within {} s", patience.as_secs()),
            "Looking at this took too long; look at it by hand.",
        )]
    };
    let all = probes.iter().zip(found);
    all.flat_map(|(probe, findings)| findings.unwrap_or_else(|| missing(probe)))
        .collect()
}

/// How long all probes together may take. The slowest that works is libfabric, which looks for adapters.
const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_that_hangs_or_panics_is_a_finding() {
        const SLOW: &[Probe] = &[
            probe("first", || vec![Finding::ok("first", "here")]),
            probe("stuck", || {
                loop {
                    std::thread::park();
                }
            }),
            probe("broken", || panic!("as the test wants")),
            probe("last", || vec![Finding::ok("last", "here")]),
        ];
        let found = look_with(SLOW, Duration::from_secs(2));
        let what: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(what, ["first", "stuck", "broken", "last"]);
        assert!(found[1].value.starts_with("no answer"));
    }

    #[test]
    fn this_host_can_be_looked_at() {
        let found = look();
        assert!(found.len() > 20, "{found:?}");
        for finding in &found {
            assert!(!finding.value.is_empty(), "{finding:?}");
            let silent = finding.advice.is_empty();
            assert_eq!(
                silent,
                finding.verdict == super::super::report::Verdict::Ok,
                "{finding:?}"
            );
        }
    }
}
