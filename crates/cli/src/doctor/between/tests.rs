//! Hosts that are not ours, compared.

use super::super::examined::{Clock, summary};
use super::super::remarks::remarks as all_remarks;
use super::super::report::{Finding, Try};
use super::*;

fn host(name: &str, findings: Vec<Finding>) -> Host {
    let report = Report {
        mizzen: "0.1.0".to_owned(),
        boot: 1,
        kernel: "Linux 6.1".to_owned(),
        findings,
        addresses: Vec::new(),
        port: 1,
        token: String::new(),
    };
    Host {
        name: name.to_owned(),
        bind: String::new(),
        failure: None,
        clock: None,
        report: Some(report),
    }
}

fn connection(from: &str, to: &str, address: &str, why: &str) -> Connection {
    Connection {
        from: from.to_owned(),
        attempt: Try {
            to: to.to_owned(),
            address: address.parse().unwrap(),
            to_interface: "eth0".to_owned(),
            from_interface: "eth1".to_owned(),
            connect_ns: why.is_empty().then_some(50_000),
            why: why.to_owned(),
        },
    }
}

#[test]
fn versions_that_do_not_understand_each_other_are_bad() {
    let hosts = [host("a", vec![]), host("b", vec![])];
    assert_eq!(versions(&hosts, 1, "0.1.0"), None);
    let other = versions(&hosts, 1, "0.2.0").unwrap();
    assert_eq!(other.verdict, Verdict::Warn);
    assert_eq!(other.hosts, ["a", "b"]);
    assert_eq!(versions(&hosts, 2, "0.1.0").unwrap().verdict, Verdict::Bad);
}

#[test]
fn clocks_are_compared_as_far_as_they_can_be() {
    let with = |ahead_ns, uncertain_ns| {
        let clock = Clock {
            ahead_ns,
            uncertain_ns,
        };
        let mut late = host("b", vec![]);
        late.clock = Some(clock);
        clocks(&[late]).next()
    };
    assert_eq!(with(900_000_000, 0), None);
    assert_eq!(with(-3_000_000_000, 2_500_000_000), None);
    assert!(
        with(3_200_000_000, 1000)
            .unwrap()
            .advice
            .contains("is 3.2 s ahead of this host's")
    );
    assert!(with(i64::MIN, 0).unwrap().advice.contains("behind"));
}

#[test]
fn a_host_that_nobody_reaches_is_bad() {
    let b = host("b", vec![]);
    let all = [
        connection("a", "b", "10.0.0.2", "no answer"),
        connection("c", "b", "10.0.0.2", "no answer"),
        connection("d", "b", "10.0.0.2", ""),
        connection("a", "d", "10.0.0.4", "refused"),
    ];
    let remarks = connections(&b, &["a", "c", "d"], &all);
    assert_eq!(remarks.len(), 1);
    assert_eq!(remarks[0].hosts, ["a", "c"]);
    assert_eq!(remarks[0].verdict, Verdict::Bad);
    assert!(remarks[0].advice.contains("10.0.0.2 (eth0): no answer"));
    assert_eq!(
        summary(&remarks, true),
        "Not ready: connecting to b (a, c)."
    );
}

#[test]
fn an_address_that_works_is_named_if_another_does_not() {
    let b = host("b", vec![]);
    let all = [
        connection("a", "b", "172.17.0.1", "refused"),
        connection("a", "b", "10.0.0.2", ""),
    ];
    let remarks = connections(&b, &["a"], &all);
    assert_eq!(remarks[0].verdict, Verdict::Note);
    assert!(remarks[0].advice.contains("--hosts b=10.0.0.2"));
}

#[test]
fn only_the_family_that_processes_listen_with_counts() {
    let mut b = host("b", vec![]);
    let all = [
        connection("a", "b", "10.0.0.2", "refused"),
        connection("a", "b", "fd00::2", ""),
    ];
    assert!(
        connections(&b, &["a"], &all)[0]
            .advice
            .contains("--hosts b=fd00::2")
    );
    let all = [
        connection("a", "b", "10.0.0.2", ""),
        connection("a", "b", "fd00::2", "refused"),
    ];
    assert_eq!(connections(&b, &["a"], &all), []);
    b.bind = "fd00::2".to_owned();
    let all = [connection("a", "b", "fd00::2", "")];
    assert_eq!(connections(&b, &["a"], &all), []);
}

#[test]
fn the_same_trouble_on_several_hosts_is_one_remark() {
    let slow = |value: &str| Finding::warn("cpu limit", value, "Raise it.");
    let examined = Examined {
        hosts: vec![
            host("a", vec![slow("1.0 cores"), Finding::ok("kernel", "one")]),
            host(
                "b",
                vec![
                    Finding::ok("kernel", "two"),
                    slow("2.0 cores"),
                    Finding::ok("load", "3").varying(),
                ],
            ),
        ],
        connections: vec![],
    };
    let rows = examined.rows();
    let what: Vec<&str> = rows.iter().map(|row| row.what).collect();
    assert_eq!(what, ["cpu limit", "load", "kernel"]);
    assert!(rows[0].differs() && !rows[1].differs() && rows[2].differs());
    let remarks: Vec<Remark> = all_remarks(&examined)
        .into_iter()
        .filter(|remark| remark.what == "cpu limit")
        .collect();
    assert_eq!(remarks.len(), 1);
    assert_eq!(remarks[0].hosts, ["a", "b"]);
    assert_eq!(summary(&remarks, true), "Ready, with 1 remark.");
    assert_eq!(summary(&[], true), "Ready.");
}

#[test]
fn a_host_without_an_address_is_bad() {
    let mut b = host("b", vec![]);
    let remarks = connections(&b, &["a"], &[]);
    assert!(remarks[0].advice.contains("it has none"), "{remarks:?}");
    b.report.as_mut().unwrap().port = 0;
    assert_eq!(connections(&b, &["a"], &[]), []);
}
