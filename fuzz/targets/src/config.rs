//! The job's file, and the site's: what is taken keeps the rules, and what is not is told in harmless words.

use mizzen_config::{Driver, Error, Hosts, JobFile, Security, SiteFile, limits};

/// Parses one file, as each.
pub fn run(data: &[u8]) {
    job(data);
    site(data);
}

fn site(data: &[u8]) {
    match SiteFile::parse("site.toml", data) {
        Ok(file) => {
            assert!(!file.name.is_empty() && !file.gateway.is_empty());
            for site in &file.sites {
                assert_ne!(site.name, file.name);
                assert!((1..=limits::KEYS).contains(&site.keys.len()));
            }
            if let Ok(text) = std::str::from_utf8(data) {
                let pins = [format!("sha256:{}", "5a".repeat(32))];
                let revoked = SiteFile::revoke("site.toml", text, &pins);
                let again = revoked.map(|text| SiteFile::parse("site.toml", text));
                if let Ok(again) = again {
                    let again = again.expect("what was added to a good file");
                    assert!(again.revoked.contains(&pins[0]));
                    assert_eq!(again.sites, file.sites);
                }
            }
        }
        Err(error) => is_harmless(&error, "site.toml"),
    }
}

fn job(data: &[u8]) {
    match JobFile::parse("mizzen.toml", data) {
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
        Err(error) => is_harmless(&error, "mizzen.toml"),
    }
}

fn is_harmless(error: &Error, file: &str) {
    let said = error.to_string();
    assert!(said.starts_with(file), "{said}");
    assert!(said.len() < 4096, "{said}");
    let acts = |c: char| c.is_control() && c != '\n';
    assert!(!said.chars().any(acts), "{said:?}");
}
