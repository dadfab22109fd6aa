//! Interfaces of hosts that are not ours.

use super::super::super::report::Verdict;
use super::*;

fn entry(interface: &str, address: &str) -> Entry {
    Entry {
        interface: interface.to_owned(),
        up: true,
        address: address.parse().ok(),
    }
}

fn address(interface: &str, ip: &str) -> Address {
    Address {
        interface: interface.to_owned(),
        ip: ip.parse().unwrap(),
    }
}

#[test]
fn addresses_are_gathered_by_interface() {
    let found = gather(vec![
        entry("lo", ""),
        entry("eth0", ""),
        entry("lo", "127.0.0.1"),
        entry("eth0", "10.0.0.1"),
        entry("eth0", "fd00::1"),
    ]);
    let shown: Vec<(&str, usize)> = found
        .iter()
        .map(|interface| (interface.name.as_str(), interface.addresses.len()))
        .collect();
    assert_eq!(shown, [("lo", 1), ("eth0", 2)]);
}

#[test]
fn what_is_offered_is_what_the_driver_offers() {
    let all = vec![
        address("lo", "127.0.0.1"),
        address("eth0", "fd00::1"),
        address("eth0", "fe80::1"),
        address("eth0", "10.0.0.1"),
        address("eth1", "169.254.0.1"),
    ];
    let offered = choose(all.clone(), None);
    assert_eq!(
        offered,
        [address("eth0", "10.0.0.1"), address("eth0", "fd00::1")]
    );
    let bound = choose(all.clone(), Some("fd00::1".parse().unwrap()));
    assert_eq!(bound, [address("eth0", "fd00::1")]);
    assert_eq!(
        choose(all[..1].to_vec(), None),
        [address("lo", "127.0.0.1")]
    );
    let unlisted = choose(all, Some("127.0.0.2".parse().unwrap()));
    assert_eq!(unlisted, [address("unlisted", "127.0.0.2")]);
}

/// A copy of `/sys/class/net`, removed at the end.
struct Net(PathBuf);

impl Net {
    fn new() -> Self {
        let root = std::env::temp_dir().join(format!("mizzen-net-{}", std::process::id()));
        let folders = [
            "eth0/device",
            "docker0/bridge",
            "docker0/brif/veth1",
            "br0/bridge",
            "br0/brif/eth0",
            "veth1",
        ];
        for folder in folders {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for (file, text) in [
            ("eth0/speed", "25000\n"),
            ("eth0/mtu", "9000\n"),
            ("docker0/speed", "-1\n"),
        ] {
            std::fs::write(root.join(file), text).unwrap();
        }
        Self(root)
    }

    fn interface(&self, name: &str, ip: &str) -> Interface {
        let gathered = gather(vec![entry(name, ip)]);
        gathered[0].clone().with_details(&self.0)
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_bridge_that_leads_nowhere_is_noted() {
    let net = Net::new();
    let eth0 = net.interface("eth0", "10.0.0.1");
    assert_eq!(eth0.describe(), "10.0.0.1; up, 25 Gb/s, mtu 9000");
    assert!(eth0.reaches_others());

    let docker0 = net.interface("docker0", "172.17.0.1");
    assert_eq!(docker0.kind, Kind::InnerBridge);
    assert_eq!(docker0.finding(1).verdict, Verdict::Note);
    assert_eq!(docker0.finding(0).verdict, Verdict::Ok);
    assert_eq!(docker0.describe(), "172.17.0.1; up, bridge");

    let br0 = net.interface("br0", "10.0.0.2");
    assert_eq!(br0.kind, Kind::Virtual);
    assert!(br0.reaches_others());

    let mut lo = net.interface("lo", "127.0.0.1");
    assert_eq!(lo.finding(1).verdict, Verdict::Ok);
    lo.up = false;
    assert_eq!(lo.finding(1).verdict, Verdict::Warn);
}
