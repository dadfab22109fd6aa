//! What the sides of `mizzen doctor` say to each other.
//!
//! The command is not a library, so its two files about this are compiled here once more.

#[path = "../../../crates/cli/src/doctor/report.rs"]
#[allow(dead_code, reason = "the command uses all of it")]
mod report;
#[path = "../../../crates/cli/src/doctor/wire.rs"]
#[allow(dead_code, reason = "the command uses all of it")]
mod wire;

use report::{Answer, Finding, MAX_ADDRESSES, MAX_FINDINGS, Report, Request};

/// Reads the bytes as an answer and as a request, in a frame and without.
pub fn run(data: &[u8]) {
    again::<Request>(wire::decode(data));
    again::<Request>(wire::read(&mut &*data).ok().flatten());
    for answer in [wire::decode(data), wire::read(&mut &*data).ok().flatten()] {
        again::<Answer>(answer.clone());
        answer.into_iter().for_each(tamed);
    }
}

/// What was read is read again from what is written for it, if that is not too long.
fn again<T>(said: Option<T>)
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let Some(said) = said else { return };
    let mut bytes = Vec::new();
    if wire::encode(&said, &mut bytes).is_some() {
        let read = wire::read::<T>(&mut &bytes[..]).expect("all of it is there");
        assert_eq!(read, Some(said));
    }
}

fn tamed(mut answer: Answer) {
    answer.tame();
    let texts = match answer {
        Answer::Clock(_) => Vec::new(),
        Answer::Looked(report) => {
            assert!(report.findings.len() <= MAX_FINDINGS);
            assert!(report.addresses.len() <= MAX_ADDRESSES);
            let findings = report.findings.into_iter();
            let mut texts: Vec<_> = findings
                .flat_map(|finding| [finding.what, finding.value, finding.advice])
                .collect();
            texts.extend([report.mizzen, report.kernel, report.token]);
            texts.extend(report.addresses.into_iter().map(|at| at.interface));
            texts
        }
        Answer::Reached(tries) => tries
            .into_iter()
            .flat_map(|one| [one.to, one.to_interface, one.from_interface, one.why])
            .collect(),
    };
    for text in texts {
        assert!(!text.chars().any(char::is_control), "{text:?}");
        assert!(text.chars().count() < 1000);
    }
}

/// One of each thing that is said.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let report = Report {
        mizzen: "0.1.0".to_owned(),
        boot: 2,
        kernel: "Linux".to_owned(),
        findings: vec![Finding::warn("load", "3.0", "End others.").varying()],
        addresses: vec![report::Address {
            interface: "eth0".to_owned(),
            ip: "fd00::1".parse().expect("an address"),
        }],
        port: 7,
        token: "x".to_owned(),
    };
    let target = report::Target {
        host: "b".to_owned(),
        addresses: report.addresses.clone(),
        port: 7,
        token: "x".to_owned(),
    };
    let attempt = report::Try {
        to: "b".to_owned(),
        address: report.addresses[0].ip,
        to_interface: "eth0".to_owned(),
        from_interface: "eth1".to_owned(),
        connect_ns: Some(5),
        why: String::new(),
    };
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    let mut add = |framed: Vec<u8>| {
        seeds.push(framed[4..].to_vec());
        seeds.push(framed);
    };
    for request in [
        Request::Look {
            bind: "10.0.0.1".to_owned(),
        },
        Request::Clock,
        Request::Reach {
            targets: vec![target],
        },
    ] {
        add(framed(&request));
    }
    for answer in [
        Answer::Looked(report),
        Answer::Clock(1),
        Answer::Reached(vec![attempt]),
    ] {
        add(framed(&answer));
    }
    seeds
}

fn framed<T: serde::Serialize>(says: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire::encode(says, &mut bytes).expect("short enough");
    bytes
}
