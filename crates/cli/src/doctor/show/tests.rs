//! What is shown of hosts that are not ours.

use super::super::examined::Connection;
use super::super::remarks::remarks;
use super::super::report::{Finding, Report, Try};
use super::*;

fn host(name: &str, findings: Vec<Finding>) -> Host {
    let report = Report {
        mizzen: env!("CARGO_PKG_VERSION").to_owned(),
        boot: mizzen_proto::boot::VERSION,
        kernel: String::new(),
        findings,
        addresses: Vec::new(),
        port: 1,
        token: String::new(),
    };
    let clock = Clock {
        ahead_ns: -1_200_000,
        uncertain_ns: 300_000,
    };
    Host {
        name: name.to_owned(),
        bind: String::new(),
        failure: None,
        clock: Some(clock),
        report: Some(report),
    }
}

#[test]
fn one_host_is_a_table_and_a_verdict() {
    let findings = vec![
        Finding::ok("cores", "2 cores"),
        Finding::warn("cpu limit", "1.0 cores", "Raise it."),
    ];
    let examined = Examined {
        hosts: vec![host("a", findings)],
        connections: vec![],
    };
    let shown = text(&examined, &remarks(&examined));
    let expected = "\
─────────────────────────────────
 what        value       verdict
─────────────────────────────────
 cores       2 cores     ok
 cpu limit   1.0 cores   warn
─────────────────────────────────
warn: cpu limit. Raise it.
Ready, with 1 remark.
";
    assert_eq!(shown, expected, "\n{shown}");
}

#[test]
fn several_hosts_are_compared() {
    let mut silent = host("c", vec![]);
    silent.report = None;
    silent.clock = None;
    silent.failure = Some("did not answer in time".to_owned());
    let attempt = |to: &str, connect_ns: Option<u64>| Try {
        to: to.to_owned(),
        address: "10.0.0.1".parse().unwrap(),
        to_interface: "eth0".to_owned(),
        from_interface: "eth1".to_owned(),
        connect_ns,
        why: "refused".to_owned(),
    };
    let connection = |from: &str, to: &str, connect_ns| Connection {
        from: from.to_owned(),
        attempt: attempt(to, connect_ns),
    };
    let examined = Examined {
        hosts: vec![
            host("a", vec![Finding::ok("cores", "2 cores")]),
            host("b", vec![Finding::ok("cores", "4 cores")]),
            silent,
        ],
        connections: vec![
            connection("a", "b", Some(52_000)),
            connection("b", "a", None),
        ],
    };
    let shown = text(&examined, &remarks(&examined));
    for part in [
        " cores   2 cores   4 cores   -   ≠   ok\n",
        "≠: the hosts differ in this.\n",
        "a 1.20 ms behind (± 300 µs), b 1.20 ms behind (± 300 µs).\n",
        " from a              52.0 µs, eth1 to eth0   -\n",
        " from b       no                             -\n",
        "bad: no report from c. c could not be asked: did not answer in time.\n",
        "bad: connecting to a (b). No address of a answers: 10.0.0.1 (eth0): refused.",
        "Not ready: no report from c; connecting to a (b).\n",
    ] {
        assert!(shown.contains(part), "{part:?} is missing:\n{shown}");
    }
    let parsed: serde_json::Value =
        serde_json::from_str(&json(&examined, &remarks(&examined)).unwrap()).unwrap();
    assert_eq!(parsed["ready"], false);
    assert_eq!(parsed["hosts"][2]["failure"], "did not answer in time");
    assert_eq!(parsed["connections"][0]["connect_ns"], 52_000);
}
