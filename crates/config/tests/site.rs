//! The site's file: what is taken, what is refused and with which words, and what `add` and `revoke` leave of it.

use mizzen_config::{EditError, Error, ErrorKind, NewSite, SiteFault, SiteFile, limits};
use proptest::prelude::*;

fn pin(digit: char) -> String {
    format!("sha256:{}", digit.to_string().repeat(64))
}

fn good() -> String {
    format!(
        r#"# Site a, by the river.
name = "a"                       # of this site
gateway = "gw1"
listen = "0.0.0.0:4433"
revoked = ["{}"]  # lost in May

# The people next door: ask Ada.
[[site]]
name = "b"
keys = ["{}", "{}"]
reach = ["gw.b.example:4433", "[2001:db8::7]:4433"] # both
exports = ["render", "tiles-*"]

[[site]]
name = "c"
keys = ["{}"]
"#,
        pin('f'),
        pin('1'),
        pin('2'),
        pin('3')
    )
}

fn parse(text: &str) -> Result<SiteFile, Error> {
    SiteFile::parse("site.toml", text)
}

fn new(name: &str, key: &str) -> NewSite {
    NewSite {
        name: name.into(),
        key: key.into(),
        ..NewSite::default()
    }
}

#[test]
fn a_file_says_who_we_are_and_whom_we_believe() {
    let file = parse(&good()).unwrap();
    assert_eq!((&*file.name, &*file.gateway), ("a", "gw1"));
    assert_eq!(file.listen, Some("0.0.0.0:4433".parse().unwrap()));
    assert_eq!(file.revoked, [pin('f')]);
    let b = file.site("b").unwrap();
    assert_eq!(b.keys, [pin('1'), pin('2')]);
    assert_eq!(b.reach, ["gw.b.example:4433", "[2001:db8::7]:4433"]);
    for (job, met) in [
        ("render", true),
        ("render2", false),
        ("tiles-", true),
        ("tiles-7", true),
        ("tiles", false),
        ("", false),
    ] {
        assert_eq!(b.exports(job), met, "{job}");
    }
    let c = file.site("c").unwrap();
    assert!(c.reach.is_empty() && !c.exports("render"));
    assert!(file.site("d").is_none());
    let least = parse("name = 'a'\ngateway = 'gw1'\n").unwrap();
    assert!(least.listen.is_none() && least.sites.is_empty() && least.revoked.is_empty());
    assert!(least.inside == "127.0.0.1:4434".parse().unwrap() && least.proxy.is_none());
    let own = "name = 'a'\ngateway = 'gw1'\ninside = '10.1.0.1:7'\nproxy = 'proxy:3128'\n";
    let more = parse(own).unwrap();
    assert_eq!(more.inside, "10.1.0.1:7".parse().unwrap());
    assert_eq!(more.proxy.as_deref(), Some("proxy:3128"));
}

/// What is wrong, in which line, and what is said of it.
#[test]
fn what_is_wrong_is_told_with_its_line_and_what_to_write() {
    let own = "name = 'a'\ngateway = 'gw1'\n";
    let site = |rest: &str| format!("{own}[[site]]\nname = 'b'\n{rest}\n");
    let keys = format!("keys = ['{}']", pin('1'));
    let with = |rest: &str| site(&format!("{keys}\n{rest}"));
    let cases: Vec<(String, Option<usize>, &str)> = vec![
        ("gateway = 'gw1'".into(), None, "the file has no `name`"),
        ("name = 'a'".into(), None, "the file has no `gateway`"),
        (
            "name = 'A'\ngateway = 'g'".into(),
            Some(1),
            "\"A\" cannot be the name of a site",
        ),
        (
            "name = 'a'\ngateway = '-g'".into(),
            Some(2),
            "\"-g\" cannot be the name of a gateway",
        ),
        (format!("name = '{}'", "a".repeat(64)), Some(1), "1 to 63"),
        (
            "name = 7\ngateway = 'g'".into(),
            Some(1),
            "`name` is a text, and this is a number",
        ),
        (
            format!("{own}lisen = ''"),
            Some(3),
            "did you mean `listen`?",
        ),
        (
            format!("{own}listen = 'gw:4433'"),
            Some(3),
            "not an address to listen at",
        ),
        (
            format!("{own}listen = '0.0.0.0'"),
            Some(3),
            "as in \"0.0.0.0:4433\"",
        ),
        (
            format!("{own}inside = 'gw:4434'"),
            Some(3),
            "not an address to listen at",
        ),
        (
            format!("{own}proxy = 'http://proxy:3128'"),
            Some(3),
            "without http://",
        ),
        (with("inside = '0.0.0.0:1'"), Some(6), "move `inside` above"),
        (
            format!("{own}revoked = ['sha256:12']"),
            Some(3),
            "not the pin of a key",
        ),
        (
            format!("{own}[site]\nname = 'b'"),
            Some(3),
            "[[site]], with two brackets",
        ),
        (
            format!("{own}[[site]]\n{keys}"),
            Some(3),
            "this site has no name",
        ),
        (site(""), Some(3), "this site has no `keys`"),
        (site("keys = []"), Some(5), "`keys` is empty"),
        (
            site(&format!("keys = '{}'", pin('1'))),
            Some(5),
            "`keys` is a list",
        ),
        (
            site(&format!("keys = ['{}']", pin('A'))),
            Some(5),
            "0-9 and a-f",
        ),
        (
            site(&format!("keys = ['{0}', '{0}']", pin('1'))),
            Some(5),
            "twice",
        ),
        (
            with("reach = ['gw.b.example']"),
            Some(6),
            "not an address at which",
        ),
        (with("reach = ['gw:0']"), Some(6), "a host and a port"),
        (with("reach = ['gw:+1']"), Some(6), "a host and a port"),
        (with("reach = ['gw:65536']"), Some(6), "a host and a port"),
        (with("reach = [':4433']"), Some(6), "a host and a port"),
        (
            with("reach = ['0.0.0.0:4433']"),
            Some(6),
            "a host and a port",
        ),
        (
            with("reach = ['2001:db8::7:4433']"),
            Some(6),
            "[2001:db8::7]:4433",
        ),
        (with("exports = ['til*es']"), Some(6), "matches no job"),
        (with("exports = ['']"), Some(6), "matches no job"),
        (with("export = ['x']"), Some(6), "did you mean `exports`?"),
        (
            with("revoked = []"),
            Some(6),
            "move `revoked` above the first [[site]]",
        ),
        (
            with(&format!("[[site]]\nname = 'b'\nkeys = ['{}']", pin('2'))),
            Some(7),
            "two sites are called \"b\"; the first is on line 4",
        ),
        (
            with(&format!("[[site]]\nname = 'c'\n{keys}")),
            Some(8),
            "that of \"b\" already, on line 5",
        ),
        (
            format!("{own}[[site]]\nname = 'a'\n{keys}"),
            Some(4),
            "the name of this site itself",
        ),
        ("name = ".into(), Some(1), "toml.io"),
    ];
    for (text, line, part) in cases {
        let error = parse(&text).expect_err(&text);
        let said = error.to_string();
        assert!(said.contains(part), "{part:?} is missing:\n{said}");
        assert_eq!(error.place().map(|place| place.line), line, "{said}");
    }
}

#[test]
fn too_many_are_refused() {
    let own = "name = 'a'\ngateway = 'gw1'\n";
    let pins: Vec<String> = (0..=limits::KEYS)
        .map(|n| format!("'sha256:{n:064x}'"))
        .collect();
    let error = parse(&format!(
        "{own}[[site]]\nname = 'b'\nkeys = [{}]",
        pins.join(",")
    ))
    .unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::TooMany { key: "keys", .. }),
        "{error}"
    );
}

#[test]
fn the_words_are_these() {
    let text = "name = \"a\"\ngateway = \"gw1\"\nrevoked = [\"SHA256:12\"]\n";
    assert_eq!(
        parse(text).unwrap_err().to_string(),
        r#"site.toml, line 3: "SHA256:12" is not the pin of a key
  |
3 | revoked = ["SHA256:12"]
  |            ^^^^^^^^^^^
write sha256: and 64 digits of 0-9 and a-f, as `mizzen site show` prints it"#
    );
}

#[test]
fn another_site_is_added_and_every_line_stays() {
    let mut site = new("d", &pin('4'));
    site.reach = vec!["gw.d.example:4433".into()];
    site.exports = vec!["render".into(), "*".into()];
    let text = SiteFile::add("site.toml", &good(), &site).unwrap();
    assert!(text.starts_with(&good()), "{text}");
    let added = parse(&text).unwrap();
    let d = added.site("d").unwrap();
    assert_eq!(
        (&d.keys, &d.reach, &d.exports),
        (&vec![pin('4')], &site.reach, &site.exports)
    );
    assert_eq!(added.sites.len(), 3);
}

#[test]
fn comments_at_the_end_stay_before_what_is_added() {
    for before in [
        "name = 'a'\ngateway = 'gw1'\n\n# Sites.\n".to_owned(),
        good() + "# The end.\n",
    ] {
        let text = SiteFile::add("site.toml", &before, &new("d", &pin('4'))).unwrap();
        assert!(text.starts_with(&before), "{text}");
    }
}

#[test]
fn a_second_key_of_a_site_is_added_where_the_first_is() {
    let text = SiteFile::add("site.toml", &good(), &new("c", &pin('4'))).unwrap();
    let (one, two) = (
        format!("[\"{}\"]\n", pin('3')),
        format!("[\"{}\", \"{}\"]\n", pin('3'), pin('4')),
    );
    assert_eq!(text, good().replace(&one, &two));
    let again = SiteFile::add("site.toml", &text, &new("c", &pin('4'))).unwrap();
    assert_eq!(again, text, "said twice, it is there once");
}

#[test]
fn keys_are_revoked_at_the_top_and_every_line_stays() {
    let text = SiteFile::revoke("site.toml", &good(), &[pin('1'), pin('f')]).unwrap();
    assert_eq!(parse(&text).unwrap().revoked, [pin('f'), pin('1')]);
    assert!(
        text.contains("# lost in May") && text.contains("ask Ada"),
        "{text}"
    );
    assert_eq!(text.lines().count(), good().lines().count());
    // Also if the file had no list, and sites in it.
    let without: String = good()
        .lines()
        .filter(|line| !line.starts_with("revoked"))
        .map(|line| format!("{line}\n"))
        .collect();
    let text = SiteFile::revoke("site.toml", &without, &[pin('1')]).unwrap();
    assert_eq!(parse(&text).unwrap().revoked, [pin('1')]);
}

#[test]
fn what_would_be_wrong_is_not_added() {
    for (site, part) in [
        (new("d", &pin('1')), "that of \"b\" already"),
        (new("d", "sha256:1"), "not the pin of a key"),
        (new("D", &pin('4')), "cannot be the name of a site"),
        (new("a", &pin('4')), "the name of this site itself"),
    ] {
        let error = SiteFile::add("site.toml", &good(), &site).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains(part) && said.contains("nothing was changed"),
            "{said}"
        );
    }
    let error = SiteFile::add("site.toml", "nam = 'a'", &new("d", &pin('4'))).unwrap_err();
    assert!(matches!(error, EditError::Before(_)), "{error}");
    let inline = format!(
        "name = 'a'\ngateway = 'g'\nsite = [{{ name = 'b', keys = ['{}'] }}]\n",
        pin('1')
    );
    let error = SiteFile::add("site.toml", &inline, &new("d", &pin('4'))).unwrap_err();
    assert!(matches!(error, EditError::Form("site")), "{error}");
    let fault = SiteFault::NoKeys;
    assert!(fault.advice().contains("mizzen site show"));
}

proptest! {
    #[test]
    fn whatever_the_bytes_there_is_an_answer(at in 0usize..600, byte: u8, cut in 0usize..600) {
        let mut bytes = good().into_bytes();
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        bytes.truncate(cut.max(at));
        match SiteFile::parse("site.toml", &bytes) {
            Ok(file) => {
                let text = String::from_utf8(bytes).unwrap();
                let revoked = SiteFile::revoke("site.toml", &text, &[pin('9')]);
                if let Ok(text) = revoked {
                    prop_assert!(parse(&text).unwrap().revoked.contains(&pin('9')));
                }
                prop_assert!(!file.name.is_empty());
            }
            Err(error) => {
                let said = error.to_string();
                let acts = |c: char| c.is_control() && c != '\n';
                prop_assert!(said.len() < 4096 && !said.chars().any(acts), "{said:?}");
            }
        }
    }
}
