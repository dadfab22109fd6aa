//! Files that are not good, and what is said of them.

use mizzen_config::{Error, ErrorKind, JobFile, limits};

fn parse(text: &str) -> Result<JobFile, Error> {
    JobFile::parse("mizzen.toml", text)
}

/// Checks what is said of a network, given what follows its name, and in which line of that.
#[track_caller]
fn assert_refused(rest: &str, line: usize, parts: &[&str]) {
    let error = parse(&format!("[[network]]\nname = 'site'\n{rest}\n")).unwrap_err();
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} is missing:\n{text}");
    }
    assert_eq!(
        error.place().map(|place| place.line),
        Some(line + 2),
        "{text}"
    );
}

#[test]
fn a_file_without_networks_is_refused() {
    for text in ["", "# Nothing.\n", "network = []"] {
        let error = parse(text).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::NoNetwork), "{error}");
    }
}

#[test]
fn one_bracket_is_not_enough() {
    let error = parse("[network]\nname = 'site'\n").unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::SingleTable { key: "network" }),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains("write [[network]], with two brackets")
    );
}

#[test]
fn what_is_planned_is_not_taken_for_granted() {
    let error = parse("[[network]]\nname = 'a'\n[[site]]\nname = 'b'\n").unwrap_err();
    assert_eq!(error.place().unwrap().line, 3);
    for part in [
        "the file has no `site`",
        "`network`, `channel`, `vchannel` or `cluster`",
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_slip_in_a_key_is_told_with_what_was_meant() {
    for (slip, meant) in [
        ("drivr = 'tcp'", "driver"),
        ("host = ['a']", "hosts"),
        ("interface = ['eth0']", "interfaces"),
        ("Security = 'tls'", "security"),
        ("prot = 1", "port"),
        ("providers = 'tcp'", "provider"),
    ] {
        assert_refused(slip, 1, &[&format!("did you mean `{meant}`?")]);
    }
    let error = parse("[[networks]]\nname = 'a'\n").unwrap_err();
    assert!(
        error.to_string().contains("did you mean `network`?"),
        "{error}"
    );
}

#[test]
fn an_unknown_key_is_told_with_the_known_ones() {
    assert_refused(
        "speed = 10",
        1,
        &["a network has no `speed`", "`name`, `driver`, `hosts`"],
    );
    assert_refused(
        "driver = 'tcp'\nhosts.a = 1",
        2,
        &["`hosts` is a list, and this is a table"],
    );
}

#[test]
fn the_first_unknown_key_is_told() {
    assert_refused("zeal = 1\nargue = 2", 1, &["`zeal`"]);
}

#[test]
fn a_network_has_a_name() {
    let error = parse("[[network]]\nname = 'a'\n\n[[network]]\nport = 1\n").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NoName { .. }), "{error}");
    assert_eq!(error.place().unwrap().line, 4);
}

#[test]
fn names_are_short_and_plain() {
    let longest = "x".repeat(limits::NAME);
    assert!(parse(&format!("[[network]]\nname = '{longest}'")).is_ok());
    for name in [
        "",
        "Site",
        "my net",
        "a_b",
        "ä",
        &format!("{longest}x"),
        "a\u{1b}[2J",
    ] {
        let name = name.replace('\u{1b}', "\\u001b");
        let error = parse(&format!("[[network]]\nname = \"{name}\"")).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BadName { .. }), "{error}");
        assert!(!error.to_string().contains('\u{1b}'));
    }
}

#[test]
fn names_are_different() {
    let error =
        parse("[[network]]\nname = 'a'\n[[network]]\nname = 'b'\n[[network]]\nname = 'a'\n");
    let error = error.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::SameName { first: 2, .. }),
        "{error}"
    );
    assert_eq!(error.place().unwrap().line, 6);
}

#[test]
fn an_unknown_driver_or_security_is_refused() {
    assert_refused(
        "driver = 'tpc'",
        1,
        &["\"tpc\" is no `driver`", "did you mean \"tcp\"?"],
    );
    assert_refused("driver = 'verbs'", 1, &["write \"tcp\" or \"ofi\""]);
    assert_refused("security = 'trust'", 1, &["did you mean \"trusted\"?"]);
    assert_refused("security = 'none'", 1, &["write \"tls\" or \"trusted\""]);
    assert_refused("security = ''", 1, &["write \"tls\" or \"trusted\""]);
}

#[test]
fn an_ofi_network_is_declared_trusted() {
    for rest in ["driver = 'ofi'", "driver = 'ofi'\nprovider = 'tcp'"] {
        assert_refused(
            rest,
            1,
            &["without encryption", "add security = \"trusted\""],
        );
    }
    assert_refused(
        "driver = 'ofi'\nsecurity = 'tls'",
        2,
        &["without encryption"],
    );
}

#[test]
fn keys_of_the_other_driver_are_refused() {
    assert_refused(
        "provider = 'tcp'",
        1,
        &["driver \"ofi\"", "remove `provider`"],
    );
    let rest = "driver = 'ofi'\nsecurity = 'trusted'\nport = 1";
    assert_refused(
        rest,
        3,
        &[
            "`port` is for networks with driver \"tcp\"",
            "remove `port`",
        ],
    );
}

#[test]
fn what_is_no_port_is_refused() {
    for port in ["-1", "65536", "99999999999999999999999999"] {
        assert_refused(
            &format!("port = {port}"),
            1,
            &["is not a port", "from 1 to 65535"],
        );
    }
    assert_refused(
        "port = '80'",
        1,
        &["`port` is a number, and this is a text"],
    );
    assert_refused("port = 1.5", 1, &["a number with a point"]);
}

#[test]
fn what_is_no_number_of_connections_is_refused() {
    for streams in ["-1", "0", "17", "256"] {
        assert_refused(
            &format!("streams = {streams}"),
            1,
            &["connections with each other", "from 1 to 16"],
        );
    }
    assert_refused("streams = '4'", 1, &["`streams` is a number"]);
    for rate in ["-1", "0", "1000001", "99999999999999999999999999"] {
        let said = ["Mbit/s", "from 1 to 1000000"];
        assert_refused(&format!("rate = {rate}"), 1, &said);
    }
    assert_refused("rate = '1Gbit'", 1, &["`rate` is a number"]);
    let rest = "driver = 'ofi'\nsecurity = 'trusted'\nstreams = 4";
    assert_refused(rest, 3, &["`streams` is for networks", "remove `streams`"]);
}

#[test]
fn a_provider_is_a_word() {
    let long = "x".repeat(limits::PROVIDER + 1);
    for provider in ["", "tcp rxm", "a,b", "$(x)", &long] {
        let rest = format!("driver = 'ofi'\nsecurity = 'trusted'\nprovider = '{provider}'");
        assert_refused(
            &rest,
            3,
            &["cannot be the name of a provider", "fi_info -l"],
        );
    }
}

#[test]
fn values_have_their_types() {
    assert_refused(
        "driver = 1",
        1,
        &["`driver` is a text, and this is a number"],
    );
    assert_refused(
        "hosts = 'a'",
        1,
        &["`hosts` is a list, and this is a text", "in brackets"],
    );
    assert_refused(
        "hosts = ['a', 2]",
        1,
        &["`hosts` is a text, and this is a number"],
    );
    assert_refused("interfaces = true", 1, &["true or false"]);
    assert_refused("interfaces = [1979-05-27]", 1, &["a date or time"]);
    assert_refused("security = ['tls']", 1, &["this is a list"]);
    for text in ["network = 3", "network = [3]"] {
        let error = parse(text).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::WrongType { .. }),
            "{error}"
        );
    }
}

#[test]
fn empty_lists_are_refused() {
    assert_refused(
        "hosts = []",
        1,
        &["`hosts` is empty", "then all hosts are on the network"],
    );
    assert_refused(
        "interfaces = []",
        1,
        &["`interfaces` is empty", "what can be reached"],
    );
}

#[test]
fn the_same_twice_is_refused() {
    assert_refused(
        "hosts = [\n'a',\n'b',\n'a']",
        4,
        &["\"a\" is in `hosts` twice"],
    );
    assert_refused("interfaces = ['10.0.0.0/8', '10.0.0.0/8']", 1, &["twice"]);
}

#[test]
fn hosts_are_named_as_on_the_command_line() {
    let long = "x".repeat(limits::HOST + 1);
    for host in ["", "-oProxyCommand=x", "a b", "a,b", "a=b", "\t", &long] {
        assert_refused(
            &format!("hosts = ['{host}']"),
            1,
            &["cannot be the name of a host"],
        );
    }
}

#[test]
fn an_interface_that_is_none_is_told_with_what_to_write() {
    assert_refused(
        "interfaces = ['10.1.2.3/16']",
        1,
        &["write \"10.1.0.0/16\""],
    );
    assert_refused("interfaces = ['10.1.2.3']", 1, &["\"10.1.2.3/32\""]);
    assert_refused(
        "interfaces = ['eth0', '']",
        1,
        &["neither the name of an interface"],
    );
}

#[test]
fn what_is_not_toml_is_told_with_its_line() {
    for (text, line) in [
        ("[[network]]\nname = site\n", 2),
        ("[[network]]\nname = 'site\n", 2),
        ("[[network]\nname = 'site'\n", 1),
        ("[[network]]\nname = 'a'\nname = 'b'\n", 3),
        ("[[network]]\nhosts = ['a'\n", 2),
        ("= 3", 1),
        ("\u{0}", 1),
    ] {
        let error = parse(text).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Syntax { .. }), "{error}");
        assert_eq!(error.place().unwrap().line, line, "{error}");
    }
}

#[test]
fn nesting_is_bounded() {
    for text in [
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}", "{a=".repeat(100_000)),
        format!("{}a = 1", "a.".repeat(100_000)),
        format!("[{}a]", "a.".repeat(100_000)),
    ] {
        let error = parse(&text).unwrap_err();
        assert!(error.to_string().len() < 1000);
    }
}

#[test]
fn what_is_not_text_is_told_with_its_place() {
    let error = JobFile::parse("mizzen.toml", b"[[network]]\nname = '\xff'\n").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::NotText), "{error}");
    let place = error.place().unwrap();
    assert_eq!((place.line, place.column), (2, 9));
}
