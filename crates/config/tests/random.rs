//! Whatever the bytes: an answer, never a panic; and what is taken keeps the rules.

use mizzen_config::{Driver, Hosts, JobFile, Security, limits};
use proptest::prelude::*;

const GOOD: &str = r#"
# Both networks of the site.
[[network]]
name = "site"
driver = "tcp"
hosts = ["a", "b", "c"]
interfaces = ["eth0", "10.1.0.0/16", "fd00::/8"]
security = "tls"
port = 4711

[[network]]
name = "fast"
driver = "ofi"
provider = "tcp;ofi_rxm"
security = "trusted"

[[channel]]
name = "bulk"
network = "fast"
hosts = ["a", "b"]

[[vchannel]]
name = "default"
channels = ["site", "bulk"]

[[cluster]]
name = "near"
hosts = ["a", "b"]
"#;

/// Parses, and checks whatever comes out.
fn look_at(bytes: &[u8]) {
    match JobFile::parse("mizzen.toml", bytes) {
        Ok(file) => {
            assert!((1..=limits::NETWORKS).contains(&file.networks().len()));
            for network in file.networks() {
                assert!((1..=limits::NAME).contains(&network.name.len()));
                assert!(network.interfaces.len() <= limits::INTERFACES);
                assert_ne!(network.hosts, Hosts::Only([].into()));
                if matches!(network.driver, Driver::Ofi { .. }) {
                    assert_eq!(network.security, Security::Trusted);
                }
                assert!(
                    file.channels()
                        .iter()
                        .any(|each| each.network == network.name)
                );
            }
            assert!(file.parts(mizzen_config::DEFAULT_CHANNEL).count() > 0);
            for joined in file.virtual_channels() {
                assert_eq!(file.parts(&joined.name).count(), joined.channels.len());
            }
        }
        Err(error) => {
            let said = error.to_string();
            assert!(said.starts_with("mizzen.toml"), "{said}");
            assert!(said.len() < 4096, "{said}");
            assert!(
                !said.chars().any(|c| c.is_control() && c != '\n'),
                "{said:?}"
            );
        }
    }
}

#[derive(Debug, Clone)]
enum Change {
    Replace(u8),
    Insert(Vec<u8>),
    Remove(usize),
    /// Repeat what follows.
    Double(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let words = prop_oneof![
        Just("[["),
        Just("]]"),
        Just("\""),
        Just("'''"),
        Just("="),
        Just("\n"),
        Just("{"),
        Just("}"),
        Just("."),
        Just("name"),
        Just("port = 99999"),
        Just("hosts = []"),
        Just("\u{1b}"),
        Just("ä"),
        Just("\r"),
        Just("[[network]]\n"),
        Just("[[channel]]\n"),
        Just("[[vchannel]]\n"),
        Just("[[cluster]]\n"),
        Just("1e9"),
        Just("1979-05-27"),
        Just("/0"),
        Just("/129"),
        Just("\\u{d800}"),
    ];
    prop_oneof![
        any::<u8>().prop_map(Change::Replace),
        words.prop_map(|word| Change::Insert(word.as_bytes().to_vec())),
        (1_usize..40).prop_map(Change::Remove),
        (1_usize..80).prop_map(Change::Double),
    ]
}

fn apply(bytes: &mut Vec<u8>, at: prop::sample::Index, change: Change) {
    let at = at.index(bytes.len() + 1);
    match change {
        Change::Replace(byte) => {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        Change::Insert(word) => drop(bytes.splice(at..at, word)),
        Change::Remove(count) => drop(bytes.drain(at..(at + count).min(bytes.len()))),
        Change::Double(count) => {
            let copy = bytes[at..(at + count).min(bytes.len())].to_vec();
            drop(bytes.splice(at..at, copy));
        }
    }
}

#[test]
fn the_good_file_is_good() {
    look_at(GOOD.as_bytes());
    assert_eq!(
        JobFile::parse("mizzen.toml", GOOD)
            .unwrap()
            .networks()
            .len(),
        2
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        look_at(&bytes);
    }

    #[test]
    fn any_text_gets_an_answer(text in "\\PC{0,120}") {
        look_at(text.as_bytes());
    }

    #[test]
    fn a_changed_file_gets_an_answer(
        changes in prop::collection::vec((any::<prop::sample::Index>(), change()), 1..6),
    ) {
        let mut bytes = GOOD.as_bytes().to_vec();
        for (at, change) in changes {
            apply(&mut bytes, at, change);
        }
        look_at(&bytes);
    }

    #[test]
    fn any_value_gets_an_answer(key in "name|driver|hosts|interfaces|security|port|provider|streams|rate", value in "[\\[\\]{}\"'a-z0-9./:=,-]{0,24}") {
        look_at(format!("[[network]]\nname = 'a'\n{key} = {value}\n").as_bytes());
        look_at(format!("[[network]]\n{key} = \"{value}\"\nname = 'a'\n").as_bytes());
    }
}
