//! The job's file: what is taken keeps the rules, and what is not is told in harmless words.

use mizzen_config::{Driver, Hosts, JobFile, Security, limits};

/// Parses one file.
pub fn run(data: &[u8]) {
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
        Err(error) => {
            let said = error.to_string();
            assert!(said.starts_with("mizzen.toml"), "{said}");
            assert!(said.len() < 4096, "{said}");
            let acts = |c: char| c.is_control() && c != '\n';
            assert!(!said.chars().any(acts), "{said:?}");
        }
    }
}
