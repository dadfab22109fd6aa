//! `mizzen site`: what is made, shown, added and revoked, and what is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use mizzen_identity::{SiteKey, certificate_from_text, pin_of_certificate};

/// A folder for sites. Removed at the end.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("mizzen-site-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// The folder of a site in it, as an argument.
    fn at(&self, site: &str) -> String {
        self.0.join(site).to_string_lossy().into_owned()
    }

    fn read(&self, site: &str, name: &str) -> String {
        fs::read_to_string(self.0.join(site).join(name)).unwrap()
    }

    /// A site, and its pin.
    fn site(&self, name: &str, more: &[&str]) -> String {
        good(&[&["init", name, "--dir", &self.at(name)], more].concat());
        let der = certificate_from_text(&self.read(name, "site.crt")).unwrap();
        pin_of_certificate(&der).unwrap().to_string()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(args: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mizzen"));
    let run = command.arg("site").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (run.status.success(), text(run.stdout), text(run.stderr))
}

/// What is printed by a command that works.
#[track_caller]
fn good(args: &[&str]) -> String {
    let (worked, stdout, stderr) = run(args);
    assert!(worked, "{stdout}{stderr}");
    assert_eq!(stderr, "");
    stdout
}

/// What is said by a command that does not.
#[track_caller]
fn refused(args: &[&str]) -> String {
    let (worked, stdout, stderr) = run(args);
    assert!(!worked, "{stdout}{stderr}");
    stderr
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_new_site_has_keys_that_only_its_owner_reads() {
    let place = Place::new();
    let pin = place.site("a", &["--listen", "0.0.0.0:4433"]);
    let folder = place.0.join("a");
    assert_eq!(mode(&folder), 0o700);
    for (name, expected) in [
        ("site.key", 0o600),
        ("gateway.key", 0o600),
        ("site.crt", 0o644),
        ("gateway.crt", 0o644),
        ("site.toml", 0o644),
    ] {
        assert_eq!(
            mode(&folder.join(name)) & expected,
            mode(&folder.join(name)),
            "{name}"
        );
    }
    let key = SiteKey::from_text(&place.read("a", "site.key")).unwrap();
    assert_eq!(key.pin().to_string(), pin);
    let shown = good(&["show", "--dir", &place.at("a")]);
    let (secret, text) = (place.read("a", "site.key"), place.read("a", "site.toml"));
    assert!(!shown.contains(secret.lines().nth(1).unwrap()), "{shown}");
    assert!(
        shown.starts_with(&format!(
            "site     a\nkey      {pin}\ngateway  gw1\nkey      sha256:"
        )),
        "{shown}"
    );
    assert!(shown.contains("listens  0.0.0.0:4433\n"), "{shown}");
    assert!(
        shown.contains(&format!("  mizzen site add a {pin} --reach HOST:4433\n")),
        "{shown}"
    );
    assert!(text.contains("listen = \"0.0.0.0:4433\"\n"), "{text}");
}

#[test]
fn nothing_is_overwritten() {
    let place = Place::new();
    let pin = place.site("a", &[]);
    let said = refused(&["init", "a", "--dir", &place.at("a")]);
    assert!(said.contains("nothing is overwritten"), "{said}");
    fs::remove_file(place.0.join("a/site.toml")).unwrap();
    let said = refused(&["init", "a", "--dir", &place.at("a")]);
    assert!(said.contains("has a site.key already"), "{said}");
    let key = SiteKey::from_text(&place.read("a", "site.key")).unwrap();
    assert_eq!(key.pin().to_string(), pin);
}

#[test]
fn two_sites_add_each_other_with_what_the_other_shows() {
    let place = Place::new();
    place.site("a", &["--listen", "192.0.2.7:4433"]);
    let of_b = place.site("b", &["--gateway", "door"]);
    for (here, there) in [("a", "b"), ("b", "a")] {
        let shown = good(&["show", "--dir", &place.at(there)]);
        let line = shown.lines().last().unwrap().trim();
        let words: Vec<&str> = line
            .strip_prefix("mizzen site ")
            .unwrap()
            .split(' ')
            .collect();
        let said = good(
            &[
                &words[..],
                &["--dir", &place.at(here), "--export", "tiles-*"],
            ]
            .concat(),
        );
        assert!(
            said.contains(&format!("Site \"{there}\" is believed")),
            "{said}"
        );
    }
    let shown = good(&["show", "--dir", &place.at("a")]);
    let believes =
        format!("believes b\n  key    {of_b}\n  reach  they connect to us\n  jobs   tiles-*\n");
    assert!(shown.contains(&believes), "{shown}");
    let shown = good(&["show", "--dir", &place.at("b")]);
    assert!(shown.contains("  reach  192.0.2.7:4433\n"), "{shown}");
    assert!(shown.contains("dials outwards only"), "{shown}");
}

#[test]
fn a_key_is_replaced_by_adding_the_new_and_revoking_the_old() {
    let place = Place::new();
    place.site("a", &[]);
    let (old, new) = (place.site("b", &[]), place.site("b2", &[]));
    let at = place.at("a");
    let said = good(&["add", "b", &old, "--dir", &at]);
    assert!(said.contains("No job may be met with it yet"), "{said}");
    let said = good(&["add", "b", &old, "--dir", &at]);
    assert!(said.contains("nothing is changed"), "{said}");
    let said = good(&["add", "b", &new, "--dir", &at]);
    assert!(
        said.contains("too. When it does not use the old one"),
        "{said}"
    );
    good(&["revoke", &old, "--dir", &at]);
    let shown = good(&["show", "--dir", &at]);
    let keys = format!("  key    {old}  revoked\n  key    {new}\n");
    assert!(shown.contains(&keys), "{shown}");
    let said = refused(&["add", "b", &old, "--dir", &at]);
    assert!(said.contains("is revoked here"), "{said}");
    let text = place.read("a", "site.toml");
    assert!(
        text.starts_with("# Who this site is") && text.contains("# Other sites"),
        "{text}"
    );
}

#[test]
fn a_site_is_revoked_by_its_name_and_a_gateway_by_its_key() {
    let place = Place::new();
    place.site("a", &[]);
    let (one, two, gateway) = (
        place.site("b", &[]),
        place.site("c", &[]),
        place.site("d", &[]),
    );
    let at = place.at("a");
    good(&["add", "b", &one, "--dir", &at]);
    good(&["add", "b", &two, "--dir", &at]);
    let said = good(&["revoke", "b", "--dir", &at]);
    assert!(
        said.contains(&one) && said.contains(&two) && said.contains("tell them"),
        "{said}"
    );
    good(&["revoke", &gateway, "--dir", &at]);
    let shown = good(&["show", "--dir", &at]);
    assert_eq!(shown.matches("  revoked\n").count(), 2, "{shown}");
    assert!(shown.contains(&format!("revoked  {gateway}\n")), "{shown}");
    let said = good(&["revoke", "b", "--dir", &at]);
    assert!(said.contains("nothing is changed"), "{said}");
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let place = Place::new();
    place.site("a", &[]);
    let at = place.at("a");
    for name in ["site.key", "gateway.key"] {
        let path = place.0.join("a").join(name);
        for open in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
            let said = refused(&["show", "--dir", &at]);
            assert!(
                said.contains("open to others") && said.contains("chmod 600"),
                "{said}"
            );
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    good(&["show", "--dir", &at]);
    // The key of the site may be kept elsewhere.
    fs::remove_file(place.0.join("a/site.key")).unwrap();
    good(&["show", "--dir", &at]);
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_changed() {
    let place = Place::new();
    let own = place.site("a", &[]);
    let of_b = place.site("b", &[]);
    let (at, before) = (place.at("a"), place.read("a", "site.toml"));
    let none = place.at("none");
    let cases: &[(&[&str], &str)] = &[
        (
            &["add", "b", &own, "--dir", &at],
            "the key of this site itself",
        ),
        (
            &["add", "a", &of_b, "--dir", &at],
            "the name of this site itself",
        ),
        (
            &["add", "B", &of_b, "--dir", &at],
            "cannot be the name of a site",
        ),
        (
            &["add", "b", "sha256:12", "--dir", &at],
            "64 hexadecimal digits",
        ),
        (
            &["add", "b", &of_b, "--reach", "gw", "--dir", &at],
            "a host and a port",
        ),
        (
            &["add", "b", &of_b, "--export", "x y", "--dir", &at],
            "matches no job",
        ),
        (
            &["revoke", "b", "--dir", &at],
            "no site called \"b\" is listed",
        ),
        (&["revoke", "sha256:12", "--dir", &at], "is not a pin"),
        (
            &["show", "--dir", &none],
            "make one with `mizzen site init NAME`",
        ),
        (&["init", "A", "--dir", &none], "a site's name has 1 to 63"),
        (
            &["init", "a", "--gateway", "x_y", "--dir", &none],
            "a gateway's name has 1 to 63",
        ),
        (
            &["init", "a", "--listen", "gw:1", "--dir", &none],
            "--listen",
        ),
    ];
    for (args, part) in cases {
        let said = refused(args);
        assert!(said.contains(part), "{part:?} is missing in {said}");
    }
    assert_eq!(place.read("a", "site.toml"), before);
    assert!(!place.0.join("none").exists());
    fs::write(
        place.0.join("a/site.toml"),
        before.replace("gateway", "gatway"),
    )
    .unwrap();
    let said = refused(&["show", "--dir", &at]);
    assert!(said.contains("did you mean `gateway`?"), "{said}");
    fs::write(place.0.join("a/site.toml"), before.replace("gw1", "gw2")).unwrap();
    let said = refused(&["show", "--dir", &at]);
    assert!(said.contains("mizzen-site://a/gw1"), "{said}");
}
