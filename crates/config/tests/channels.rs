//! Channels, virtual channels and clusters: what they come to, and what is said of those that are wrong.

use mizzen_config::{ErrorKind, Hosts, JobFile};

/// The example of the MPICH/MadIII paper: two clusters of three hosts, three networks, five channels, and one that joins two of them.
const PAPER: &str = r#"
[[network]]
name = "tcp"
hosts = ["foo0", "foo1", "foo2", "goo0", "goo1", "goo2"]

[[network]]
name = "sci"
driver = "ofi"
security = "trusted"
hosts = ["foo0", "foo1", "foo2"]

[[network]]
name = "bip"
hosts = ["foo2", "goo0", "goo1", "goo2"]

[[channel]]
name = "tcp-channel"
network = "tcp"

[[channel]]
name = "sci-channel"
network = "sci"

[[channel]]
name = "sci-channel2"
network = "sci"

[[channel]]
name = "bip-channel"
network = "bip"

[[channel]]
name = "bip-channel2"
network = "bip"
hosts = ["goo0", "goo1", "goo2"]

[[vchannel]]
name = "default"
channels = ["sci-channel", "bip-channel"]

[[cluster]]
name = "foo"
hosts = ["foo0", "foo1", "foo2"]

[[cluster]]
name = "goo"
hosts = ["goo0", "goo1", "goo2"]
"#;

const HOSTS: [&str; 6] = ["foo0", "foo1", "foo2", "goo0", "goo1", "goo2"];

#[test]
fn the_example_of_the_paper_is_read() {
    let file = JobFile::parse("mizzen.toml", PAPER).unwrap();
    let names: Vec<&str> = file
        .channels()
        .iter()
        .map(|each| each.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "tcp-channel",
            "sci-channel",
            "sci-channel2",
            "bip-channel",
            "bip-channel2"
        ]
    );
    assert_eq!(file.virtual_channels().len(), 1);
    assert_eq!(file.gateways("default", &HOSTS), ["foo2"]);
    assert!(file.gateways("tcp-channel", &HOSTS).is_empty());
    let of_goo = |name| file.parts(name).all(|part| part.hosts.contains("goo1"));
    assert!(of_goo("bip-channel2") && of_goo("tcp-channel") && !of_goo("sci-channel"));
    assert_eq!(file.cluster_of("foo2"), Some("foo"));
    assert_eq!(file.cluster_of("goo2"), Some("goo"));
}

#[test]
fn without_channels_each_network_is_one_and_the_default_joins_them() {
    let file = JobFile::parse(
        "mizzen.toml",
        "[[network]]\nname = 'fast'\nhosts = ['a', 'b']\n[[network]]\nname = 'site'\n",
    )
    .unwrap();
    let parts = |name| {
        file.parts(name)
            .map(|part| part.name.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(parts("default"), ["fast", "site"]);
    assert_eq!(parts("fast"), ["fast"]);
    assert!(parts("slow").is_empty());
    assert_eq!(file.channels()[1].hosts, Hosts::All);
    assert_eq!(file.cluster_of("a"), Some("fast"));
    assert_eq!(file.cluster_of("c"), Some("site"));
    // All are on `site`: nobody needs a gateway.
    assert!(file.gateways("default", &["a", "b", "c"]).is_empty());
}

#[test]
fn a_channel_called_default_is_the_default() {
    let text = "[[network]]\nname = 'site'\n[[channel]]\nname = 'default'\nnetwork = 'site'\n";
    let file = JobFile::parse("mizzen.toml", text).unwrap();
    assert!(file.virtual_channels().is_empty());
    assert_eq!(file.parts("default").count(), 1);
    assert_eq!(file.channels().len(), 1);
}

/// Checks what is said of a file, given what follows two networks of hosts a, b and b, c, and in which line of that.
#[track_caller]
fn assert_refused(rest: &str, line: usize, parts: &[&str]) {
    let text = format!(
        "[[network]]\nname = 'one'\nhosts = ['a', 'b']\n[[network]]\nname = 'two'\nhosts = ['b', 'c']\n{rest}\n"
    );
    let error = JobFile::parse("mizzen.toml", &text).unwrap_err();
    let said = error.to_string();
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing:\n{said}");
    }
    assert_eq!(
        error.place().map(|place| place.line),
        Some(line + 6),
        "{said}"
    );
}

#[test]
fn a_channel_that_cannot_be_is_told_with_what_to_write() {
    let channel = "[[channel]]\nname = 'x'\n";
    assert_refused(
        "[[channel]]\nnetwork = 'one'",
        1,
        &["this channel has no name"],
    );
    assert_refused(
        channel,
        1,
        &[
            "this channel has no `network`",
            "the network that carries it",
        ],
    );
    assert_refused(
        &format!("{channel}network = 'on'"),
        3,
        &["there is no network called \"on\"", "did you mean \"one\"?"],
    );
    assert_refused(
        &format!("{channel}network = 'infiniband'"),
        3,
        &["add [[network]] with name = \"infiniband\""],
    );
    assert_refused(
        &format!("{channel}network = 'one'\nhosts = ['a', 'c']"),
        4,
        &["\"c\" is not on the network \"one\"", "or remove it here"],
    );
    assert_refused(
        &format!("{channel}network = 'one'\nhosts = []"),
        4,
        &["then it has all hosts of its network"],
    );
    assert_refused(
        "[[channel]]\nname = 'two'\nnetwork = 'one'",
        2,
        &["like the network on line 5", "another name"],
    );
    assert_refused(
        &format!("{channel}network = 'one'\n{channel}network = 'two'"),
        5,
        &["two channels are called \"x\"; the first is on line 8"],
    );
    assert_refused(
        &format!("{channel}network = 'one'\nnetworks = ['two']"),
        4,
        &["a channel has no `networks`", "did you mean `network`?"],
    );
    assert_refused(
        "[channel]\nname = 'x'",
        1,
        &["write [[channel]], with two brackets"],
    );
}

#[test]
fn a_virtual_channel_that_cannot_be_is_told_with_what_to_write() {
    let joined = "[[vchannel]]\nname = 'all'\n";
    assert_refused(
        joined,
        1,
        &["this virtual channel has no `channels`", "that it joins"],
    );
    assert_refused(
        &format!("{joined}channels = ['one', 'twoo']"),
        3,
        &[
            "there is no channel called \"twoo\"",
            "did you mean \"two\"?",
        ],
    );
    assert_refused(&format!("{joined}channels = ['one', 'one']"), 3, &["twice"]);
    assert_refused(
        &format!("{joined}channels = []"),
        3,
        &["write what you mean"],
    );
    assert_refused(
        "[[vchannel]]\nname = 'one'\nchannels = ['one', 'two']",
        2,
        &["two channels are called \"one\"; the first is on line 2"],
    );
    // One that no host leads to.
    let text = "[[network]]\nname = 'three'\nhosts = ['d']\n";
    assert_refused(
        &format!("{text}{joined}channels = ['one', 'two', 'three']"),
        6,
        &[
            "nothing gets from \"one\" to \"three\"",
            "it is the gateway",
        ],
    );
    // Through the second, the first reaches a fourth.
    let text = "[[network]]\nname = 'four'\nhosts = ['c', 'd']\n";
    let good = format!(
        "[[network]]\nname = 'one'\nhosts = ['a', 'b']\n[[network]]\nname = 'two'\nhosts = ['b', 'c']\n{text}{joined}channels = ['four', 'one', 'two']"
    );
    let file = JobFile::parse("mizzen.toml", good).unwrap();
    assert_eq!(file.gateways("all", &["a", "b", "c", "d"]), ["b", "c"]);
}

#[test]
fn a_cluster_that_cannot_be_is_told_with_what_to_write() {
    assert_refused(
        "[[cluster]]\nname = 'x'",
        1,
        &["this cluster has no `hosts`", "the hosts that are in it"],
    );
    assert_refused(
        "[[cluster]]\nname = 'x'\nhosts = ['a']\n[[cluster]]\nname = 'y'\nhosts = ['b', 'a']",
        6,
        &["\"a\" is in the cluster \"x\" already"],
    );
    assert_refused(
        "[[cluster]]\nname = 'x'\nhosts = ['a']\n[[cluster]]\nname = 'x'\nhosts = ['b']",
        5,
        &["two clusters are called \"x\""],
    );
    assert_refused(
        "[[cluster]]\nname = 'X'\nhosts = ['a']",
        2,
        &["cannot be the name of a cluster"],
    );
}

#[test]
fn the_first_thing_wrong_with_networks_comes_before_what_is_built_on_them() {
    let text = "[[channel]]\nname = 'x'\nnetwork = 'y'\n";
    let error = JobFile::parse("mizzen.toml", text).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoNetwork), "{error}");
}
