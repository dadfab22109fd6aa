//! Files that are good, and limits that hold.

use std::fmt::Write;

use mizzen_config::{
    Driver, Error, ErrorKind, Hosts, Interface, JobFile, Network, Security, limits,
};

fn parse(text: &str) -> Result<JobFile, Error> {
    JobFile::parse("mizzen.toml", text)
}

/// The one network of a file, given what follows its name.
fn network(rest: &str) -> Network {
    let file = parse(&format!("[[network]]\nname = 'site'\n{rest}\n")).unwrap();
    assert_eq!(file.networks().len(), 1);
    file.networks()[0].clone()
}

#[test]
fn two_lines_are_a_file() {
    let network = network("");
    assert_eq!(network.name, "site");
    assert_eq!(network.driver, Driver::Tcp { port: 0 });
    assert_eq!(network.hosts, Hosts::All);
    assert!(network.interfaces.is_empty());
    assert_eq!(network.security, Security::Tls);
    assert!(!network.is_far());
}

#[test]
fn every_key_of_a_tcp_network_is_read() {
    let network = network(
        "driver = 'tcp'\nhosts = ['b', 'a']\ninterfaces = ['eth0', '10.1.0.0/16', 'fd00::/8']\n\
         security = 'trusted'\nport = 4711\nstreams = 8\nrate = 1000",
    );
    assert_eq!(network.driver, Driver::Tcp { port: 4711 });
    assert_eq!((network.streams, network.rate), (Some(8), Some(1000)));
    assert!(network.is_far());
    assert_eq!(network.hosts, Hosts::Only(["a".into(), "b".into()].into()));
    let interfaces: Vec<String> = network
        .interfaces
        .iter()
        .map(Interface::to_string)
        .collect();
    assert_eq!(interfaces, ["eth0", "10.1.0.0/16", "fd00::/8"]);
    assert_eq!(network.security, Security::Trusted);
}

#[test]
fn an_ofi_network_may_name_its_provider() {
    let named = network("driver = 'ofi'\nprovider = 'tcp;ofi_rxm'\nsecurity = 'trusted'");
    let provider = Some("tcp;ofi_rxm".to_owned());
    assert_eq!(named.driver, Driver::Ofi { provider });
    let chosen = network("driver = 'ofi'\nsecurity = 'trusted'");
    assert_eq!(chosen.driver, Driver::Ofi { provider: None });
}

#[test]
fn networks_keep_the_order_of_the_file() {
    let file = parse("[[network]]\nname = 'z'\n[[network]]\nname = 'a'\nhosts = ['h']\n").unwrap();
    let names: Vec<&str> = file
        .networks()
        .iter()
        .map(|network| network.name.as_str())
        .collect();
    assert_eq!(names, ["z", "a"]);
    assert_eq!(file.networks_of("h").count(), 2);
    assert_eq!(file.networks_of("i").count(), 1);
}

#[test]
fn other_ways_to_write_the_same_are_read() {
    for text in [
        "network = [{ name = 'site' }]",
        "# A comment.\r\n[[network]]\r\nname = \"site\"\r\n",
        "\u{feff}[[network]]\n\"name\" = \"s\\u0069te\"",
        "[[network]]\nname = '''site'''\nport = 0x10\n",
    ] {
        assert_eq!(parse(text).unwrap().networks()[0].name, "site", "{text}");
    }
}

#[test]
fn a_port_may_be_any() {
    for (text, port) in [
        ("0", 0),
        ("1", 1),
        ("65535", 65_535),
        ("0x1000", 4096),
        ("1_000", 1000),
    ] {
        assert_eq!(
            network(&format!("port = {text}")).driver,
            Driver::Tcp { port }
        );
    }
}

#[test]
fn limits_hold() {
    let mut text = String::new();
    for i in 0..limits::NETWORKS {
        writeln!(text, "[[network]]\nname = 'n{i}'").unwrap();
    }
    assert_eq!(parse(&text).unwrap().networks().len(), limits::NETWORKS);
    text.push_str("[[network]]\nname = 'more'\n");
    let error = parse(&text).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::TooMany { key: "network", .. }),
        "{error}"
    );

    let list = |count: usize| {
        let hosts: Vec<String> = (0..count).map(|i| format!("'h{i}'")).collect();
        format!("hosts = [{}]", hosts.join(","))
    };
    assert!(
        matches!(network(&list(limits::HOSTS)).hosts, Hosts::Only(hosts) if hosts.len() == limits::HOSTS)
    );
    assert_too_many(&list(limits::HOSTS + 1), limits::HOSTS);

    let list = |count: usize| {
        let names: Vec<String> = (0..count).map(|i| format!("'e{i}'")).collect();
        format!("interfaces = [{}]", names.join(","))
    };
    assert_eq!(
        network(&list(limits::INTERFACES)).interfaces.len(),
        limits::INTERFACES
    );
    assert_too_many(&list(limits::INTERFACES + 1), limits::INTERFACES);

    let padding = "#".repeat(limits::FILE);
    let error = parse(&format!("{padding}#")).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::FileTooLong), "{error}");
    assert!(matches!(
        parse(&padding).unwrap_err().kind(),
        ErrorKind::NoNetwork
    ));
}

#[test]
fn files_are_read() {
    let path = std::env::temp_dir().join(format!("mizzen-config-{}.toml", std::process::id()));
    std::fs::write(&path, "[[network]]\nname = 'site'\n").unwrap();
    let file = JobFile::read(&path);
    std::fs::write(&path, "x".repeat(limits::FILE + 1)).unwrap();
    let long = JobFile::read(&path);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(file.unwrap().networks()[0].name, "site");
    assert!(matches!(long.unwrap_err().kind(), ErrorKind::FileTooLong));
    let missing = JobFile::read(&path).unwrap_err();
    assert!(matches!(missing.kind(), ErrorKind::Unreadable(_)));
    assert_eq!(missing.file(), path.to_str().unwrap());
    // What never ends is not read to its end.
    let endless = JobFile::read("/dev/zero").unwrap_err();
    assert!(matches!(endless.kind(), ErrorKind::FileTooLong));
}

#[track_caller]
fn assert_too_many(rest: &str, limit: usize) {
    let error = parse(&format!("[[network]]\nname = 'site'\n{rest}\n")).unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::TooMany { count, most, .. } if *count == limit + 1 && *most == limit),
        "{error}"
    );
    assert!(error.to_string().len() < 1000);
}
