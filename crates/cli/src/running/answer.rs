//! How a job is.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

/// A job that runs, as its launcher knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Running {
    /// The version of the launcher's command. Another one may know of other things.
    pub(crate) version: String,
    /// The process id of the launcher.
    pub(crate) pid: u32,
    pub(crate) program: String,
    /// How long it has been running, in seconds.
    pub(crate) seconds: u64,
    /// The text of the job's file. None: all hosts are on one network.
    pub(crate) file: Option<String>,
    pub(crate) hosts: Vec<String>,
    /// The host of each rank.
    pub(crate) places: Vec<usize>,
    /// Hosts that are gone, and their agents with them.
    pub(crate) gone: Vec<usize>,
    /// Ranks that have ended, and how, as predicates.
    pub(crate) ended: BTreeMap<u32, String>,
}

impl Running {
    /// Takes what somebody sent who says that it is a launcher.
    pub(super) fn decode(bytes: &[u8]) -> anyhow::Result<Self> {
        let mut running: Self =
            serde_json::from_slice(bytes).context("it is not of this version of mizzen")?;
        let hosts = running.hosts.len();
        let mut named = running.places.iter().chain(&running.gone);
        ensure!(
            hosts > 0 && !running.places.is_empty() && named.all(|host| *host < hosts),
            "it speaks of hosts that it does not have"
        );
        let texts = [&mut running.program, &mut running.version];
        let texts = texts.into_iter().chain(running.ended.values_mut());
        for text in texts.chain(&mut running.hosts) {
            // They are printed.
            text.retain(|letter| !letter.is_control());
        }
        Ok(running)
    }

    /// As a part of a sentence: `4711 (laplace, 8 processes)`.
    pub(super) fn summary(&self) -> String {
        let processes = match self.places.len() {
            1 => "1 process".to_owned(),
            more => format!("{more} processes"),
        };
        format!("{} ({}, {processes})", self.pid, self.program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> Running {
        Running {
            version: "1".to_owned(),
            pid: 7,
            program: "laplace".to_owned(),
            seconds: 3,
            file: None,
            hosts: vec!["a".to_owned(), "b".to_owned()],
            places: vec![0, 0, 1],
            gone: vec![1],
            ended: BTreeMap::from([(2, "exited with code 1".to_owned())]),
        }
    }

    fn said(running: &Running) -> anyhow::Result<Running> {
        Running::decode(&serde_json::to_vec(running).unwrap())
    }

    #[test]
    fn what_is_told_is_heard() {
        assert_eq!(said(&running()).unwrap(), running());
        assert_eq!(running().summary(), "7 (laplace, 3 processes)");
    }

    #[test]
    fn hosts_that_are_not_there_are_refused() {
        let places = vec![0, 2];
        assert!(
            said(&Running {
                places,
                ..running()
            })
            .is_err()
        );
        let gone = vec![usize::MAX];
        assert!(said(&Running { gone, ..running() }).is_err());
        let hosts = vec![];
        assert!(said(&Running { hosts, ..running() }).is_err());
        assert!(Running::decode(b"{}").is_err());
        assert!(Running::decode(b"\xff\0").is_err());
    }

    #[test]
    fn nothing_commands_the_terminal() {
        let program = "x\x1b[2J\n".to_owned();
        let heard = said(&Running {
            program,
            ..running()
        })
        .unwrap();
        assert_eq!(heard.program, "x[2J");
    }
}
