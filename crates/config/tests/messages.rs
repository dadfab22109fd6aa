//! What a user reads, to the letter.

use mizzen_config::JobFile;

#[track_caller]
fn assert_said(text: &str, expected: &str) {
    let said = JobFile::parse("mizzen.toml", text).unwrap_err().to_string();
    assert_eq!(said, expected.trim_matches('\n'), "\n{said}");
}

#[test]
fn a_misspelt_key() {
    assert_said(
        "[[network]]\nname = \"site\"\ndrver = \"tcp\"\n",
        r#"
mizzen.toml, line 3: a network has no `drver`
  |
3 | drver = "tcp"
  | ^^^^^
did you mean `driver`?
"#,
    );
}

#[test]
fn an_ofi_network_with_tls() {
    assert_said(
        "[[network]]\nname = \"fast\"\ndriver = \"ofi\"\nsecurity = \"tls\"\n",
        r#"
mizzen.toml, line 4: a network with driver "ofi" carries its data without encryption
  |
4 | security = "tls"
  |            ^^^^^
if nobody else can read or write on this network, add security = "trusted"; otherwise use driver = "tcp"
"#,
    );
}

#[test]
fn a_subnet_with_bits_after_its_prefix() {
    assert_said(
        "[[network]]\nname = \"site\"\ninterfaces = [\"eth0\", \"10.1.2.3/16\"]\n",
        r#"
mizzen.toml, line 3: "10.1.2.3/16" is neither the name of an interface nor a subnet
  |
3 | interfaces = ["eth0", "10.1.2.3/16"]
  |                       ^^^^^^^^^^^^^
10.1.2.3 is not the first address of that subnet; write "10.1.0.0/16"
"#,
    );
}

#[test]
fn a_nameless_network() {
    assert_said(
        "# Networks of the site.\n\n[[network]]\ndriver = \"tcp\"\n",
        r#"
mizzen.toml, line 3: this network has no name
  |
3 | [[network]]
  | ^^^^^^^^^^^
add name = "site", or what you like to call it
"#,
    );
}

#[test]
fn two_networks_of_one_name() {
    assert_said(
        "[[network]]\nname = \"site\"\n\n[[network]]\nname = \"site\"\n",
        r#"
mizzen.toml, line 5: two networks are called "site"; the first is on line 2
  |
5 | name = "site"
  |        ^^^^^^
give this one another name
"#,
    );
}

#[test]
fn a_file_with_nothing_in_it() {
    assert_said(
        "",
        r#"
mizzen.toml: there is no network
add one; two lines are enough: [[network]], and under it name = "site"
"#,
    );
}

#[test]
fn text_without_quotes() {
    assert_said(
        "[[network]]\nname = site\n",
        r#"
mizzen.toml, line 2: string values must be quoted, expected literal string
  |
2 | name = site
  |        ^^^^
see https://toml.io for how TOML is written
"#,
    );
}
