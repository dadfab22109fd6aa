//! What shows only when hosts are compared: hosts that do not answer, versions, clocks, connections.

use mizzen_proto::boot::VERSION;

use super::examined::{Connection, Examined, Host, Remark};
use super::report::{Report, Verdict};

/// What is not as it should be between the hosts.
pub(crate) fn remarks(examined: &Examined) -> Vec<Remark> {
    let mut remarks = Vec::new();
    remarks.extend(silent(&examined.hosts));
    remarks.extend(versions(
        &examined.hosts,
        VERSION,
        env!("CARGO_PKG_VERSION"),
    ));
    remarks.extend(clocks(&examined.hosts));
    let answers = |host: &&Host| host.report.is_some() && host.failure.is_none();
    for to in examined.hosts.iter().filter(answers) {
        let others = examined.hosts.iter().filter(answers);
        let from: Vec<&str> = others
            .map(|host| host.name.as_str())
            .filter(|name| *name != to.name)
            .collect();
        remarks.extend(connections(to, &from, &examined.connections));
    }
    remarks
}

fn silent(hosts: &[Host]) -> impl Iterator<Item = Remark> {
    hosts.iter().filter_map(|host| {
        let why = host.failure.as_ref()?;
        Some(Remark {
            verdict: Verdict::Bad,
            what: match host.report {
                Some(_) => format!("lost {}", host.name),
                None => format!("no report from {}", host.name),
            },
            hosts: Vec::new(),
            advice: format!("{} could not be asked: {why}.", host.name),
        })
    })
}

/// Against this command, which is the one that would start jobs.
fn versions(hosts: &[Host], boot: u32, mizzen: &str) -> Option<Remark> {
    let having = |differs: &dyn Fn(&Report) -> bool| -> Vec<String> {
        let others = hosts
            .iter()
            .filter(|host| host.report.as_ref().is_some_and(differs));
        others.map(|host| host.name.clone()).collect()
    };
    let deaf = having(&|report| report.boot != boot);
    if !deaf.is_empty() {
        return Some(Remark {
            verdict: Verdict::Bad,
            what: "mizzen".to_owned(),
            hosts: deaf,
            advice: "The mizzen command there and the one here do not understand each other; install the same, or give \
                     --agent-path."
                .to_owned(),
        });
    }
    let others = having(&|report| report.mizzen != mizzen);
    (!others.is_empty()).then(|| Remark {
        verdict: Verdict::Warn,
        what: "mizzen".to_owned(),
        hosts: others,
        advice: format!(
            "The mizzen command there is not {mizzen} as the one here; install the same."
        ),
    })
}

fn clocks(hosts: &[Host]) -> impl Iterator<Item = Remark> {
    hosts.iter().filter_map(|host| {
        let clock = host.clock?;
        let surely = clock.ahead_ns.unsigned_abs().saturating_sub(clock.uncertain_ns);
        (surely > SKEW_NS).then(|| Remark {
            verdict: Verdict::Warn,
            what: "clock".to_owned(),
            hosts: vec![host.name.clone()],
            advice: format!(
                "The clock of {} is {:.1} s {} this host's: times in logs do not compare, and certificates may look expired; run \
                 a time service such as chrony.",
                host.name,
                clock.ahead_ns.unsigned_abs() as f64 / 1e9,
                if clock.ahead_ns > 0 { "ahead of" } else { "behind" }
            ),
        })
    })
}

/// How others reach a host. Those with the same trouble are named together.
fn connections(to: &Host, from: &[&str], all: &[Connection]) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = Vec::new();
    if to.report.as_ref().is_none_or(|report| report.port == 0) {
        // It cannot listen, which is a finding of its own.
        return remarks;
    }
    for &from in from {
        let tries: Vec<&Connection> = all
            .iter()
            .filter(|connection| connection.attempt.to == to.name && connection.from == from)
            .collect();
        let Some((verdict, advice)) = judge(to, &tries) else {
            continue;
        };
        match remarks.iter_mut().find(|remark| remark.advice == advice) {
            Some(remark) => remark.hosts.push(from.to_owned()),
            None => remarks.push(Remark {
                verdict,
                what: format!("connecting to {}", to.name),
                hosts: vec![from.to_owned()],
                advice,
            }),
        }
    }
    remarks
}

/// Whether a host is reached where its processes will listen.
fn judge(to: &Host, tries: &[&Connection]) -> Option<(Verdict, String)> {
    let works = |connection: &&&Connection| connection.attempt.connect_ns.is_some();
    let (used, unused): (Vec<&Connection>, Vec<&Connection>) =
        tries.iter().partition(|connection| is_used(to, connection));
    let failed: Vec<String> = used
        .iter()
        .filter(|connection| connection.attempt.connect_ns.is_none())
        .map(|connection| {
            let attempt = &connection.attempt;
            format!(
                "{} ({}): {}",
                attempt.address, attempt.to_interface, attempt.why
            )
        })
        .collect();
    let name = &to.name;
    match used.iter().find(works) {
        Some(_) if failed.is_empty() => None,
        Some(working) => Some((
            Verdict::Note,
            format!(
                "Not all addresses of {name} answer: {}. Connecting may take seconds longer; name the one that works: --hosts \
                 {name}={}.",
                failed.join("; "),
                working.attempt.address
            ),
        )),
        None => {
            let advice = match unused.iter().find(works) {
                Some(other) => format!(
                    "Processes listen at IPv4 addresses unless told otherwise, and none of {name} answers; name the one that does: \
                     --hosts {name}={}.",
                    other.attempt.address
                ),
                None => format!(
                    "No address of {name} answers: {}. Let TCP pass between the hosts, at any port (firewall, security group), or \
                     name an address in a network they share: --hosts {name}=ADDRESS.",
                    if failed.is_empty() {
                        "it has none".to_owned()
                    } else {
                        failed.join("; ")
                    }
                ),
            };
            Some((Verdict::Bad, advice))
        }
    }
}

/// Whether a process of the host would listen there.
pub(crate) fn is_used(to: &Host, connection: &Connection) -> bool {
    !to.bind.is_empty() || connection.attempt.address.is_ipv4()
}

/// Clocks that differ by more are worth a word.
const SKEW_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests;
