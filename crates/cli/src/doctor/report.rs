//! What is found on a host, and what the front end and the sides say to each other about it.
//!
//! A report comes from another host, perhaps from another version: it is bounded and made harmless before it is used.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// How good a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Ok,
    /// Worth knowing; jobs run.
    Note,
    /// Jobs run, but less well than they could.
    Warn,
    /// Jobs do not run.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// What was looked at: the same word on all hosts.
    pub(crate) what: String,
    pub(crate) value: String,
    pub(crate) verdict: Verdict,
    /// What to do, a sentence. Empty if there is nothing to do.
    #[serde(default)]
    pub(crate) advice: String,
    /// Whether it is no surprise that hosts differ in it.
    #[serde(default)]
    pub(crate) varies: bool,
}

/// What a side says about its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The version of the command.
    pub(crate) mizzen: String,
    /// The version of what launcher and agents say to each other.
    pub(crate) boot: u32,
    pub(crate) kernel: String,
    pub(crate) findings: Vec<Finding>,
    /// Where it can be reached, in the order in which processes offer their addresses.
    pub(crate) addresses: Vec<Address>,
    /// Where it listens, at each of them. 0: it does not.
    pub(crate) port: u16,
    /// What it says to whoever connects, to be told from others.
    pub(crate) token: String,
}

/// An address of a host, and the interface that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Address {
    pub(crate) interface: String,
    pub(crate) ip: IpAddr,
}

/// What the front end asks of a side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Look at your host, and listen. `bind` is where, as in `--hosts name=address`; empty: everywhere.
    Look { bind: String },
    /// What time is it?
    Clock,
    /// Connect to these.
    Reach { targets: Vec<Target> },
}

/// A host to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) addresses: Vec<Address>,
    pub(crate) port: u16,
    pub(crate) token: String,
}

/// What a side answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    Looked(Report),
    /// Nanoseconds since 1970.
    Clock(u64),
    Reached(Vec<Try>),
}

/// An attempt to connect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Try {
    pub(crate) to: String,
    pub(crate) address: IpAddr,
    pub(crate) to_interface: String,
    /// The interface it went out of; empty if it did not.
    pub(crate) from_interface: String,
    /// How long connecting took; none if it failed.
    pub(crate) connect_ns: Option<u64>,
    /// Why it failed.
    pub(crate) why: String,
}

impl Finding {
    pub(crate) fn ok(what: &str, value: impl Into<String>) -> Self {
        Self::new(Verdict::Ok, what, value.into(), String::new())
    }

    pub(crate) fn note(what: &str, value: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Verdict::Note, what, value.into(), advice.into())
    }

    pub(crate) fn warn(what: &str, value: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Verdict::Warn, what, value.into(), advice.into())
    }

    pub(crate) fn bad(what: &str, value: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(Verdict::Bad, what, value.into(), advice.into())
    }

    /// Hosts may differ in it.
    pub(crate) fn varying(mut self) -> Self {
        self.varies = true;
        self
    }

    fn new(verdict: Verdict, what: &str, value: String, advice: String) -> Self {
        Self {
            what: what.to_owned(),
            value,
            verdict,
            advice,
            varies: false,
        }
    }
}

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

impl Answer {
    /// Cuts what is too long, and takes out what a terminal would act on.
    pub(crate) fn tame(&mut self) {
        match self {
            Self::Looked(report) => report.tame(),
            Self::Clock(_) => {}
            Self::Reached(tries) => {
                tries.truncate(MAX_TRIES);
                for attempt in tries {
                    tame(&mut attempt.to, MAX_WORD);
                    tame(&mut attempt.to_interface, MAX_WORD);
                    tame(&mut attempt.from_interface, MAX_WORD);
                    tame(&mut attempt.why, MAX_SENTENCE);
                }
            }
        }
    }
}

impl Report {
    fn tame(&mut self) {
        tame(&mut self.mizzen, MAX_WORD);
        tame(&mut self.kernel, MAX_WORD);
        tame(&mut self.token, MAX_WORD);
        self.addresses.truncate(MAX_ADDRESSES);
        for address in &mut self.addresses {
            tame(&mut address.interface, MAX_WORD);
        }
        self.findings.truncate(MAX_FINDINGS);
        for finding in &mut self.findings {
            tame(&mut finding.what, MAX_WORD);
            tame(&mut finding.value, MAX_VALUE);
            tame(&mut finding.advice, MAX_SENTENCE);
        }
    }
}

fn tame(text: &mut String, most: usize) {
    if text.chars().any(char::is_control) {
        *text = text.replace(char::is_control, "\u{fffd}");
    }
    if let Some((cut, _)) = text.char_indices().nth(most) {
        text.truncate(cut);
        text.push('…');
    }
}

/// Findings of a host. We make some thirty, and one for each interface.
pub(crate) const MAX_FINDINGS: usize = 256;

/// Addresses of a host that are tried, as in the TCP driver: each may take seconds.
pub(crate) const MAX_ADDRESSES: usize = 8;

/// Hosts at a time: each tries all others.
pub(crate) const MAX_HOSTS: usize = 64;

/// Attempts of a host.
const MAX_TRIES: usize = MAX_HOSTS * MAX_ADDRESSES;

/// Characters of a name, of a cell in the table, and of a sentence.
const MAX_WORD: usize = 64;
const MAX_VALUE: usize = 120;
const MAX_SENTENCE: usize = 600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_stranger_says_is_cut_and_made_harmless() {
        let loud = Finding::bad("\u{1b}[2J", "x".repeat(100_000), "a\nb");
        let report = Report {
            mizzen: "9".repeat(1000),
            boot: 1,
            kernel: String::new(),
            findings: vec![loud; 1000],
            addresses: vec![],
            port: 1,
            token: String::new(),
        };
        let mut answer = Answer::Looked(report);
        answer.tame();
        let Answer::Looked(report) = answer else {
            panic!()
        };
        assert_eq!(report.findings.len(), MAX_FINDINGS);
        let finding = &report.findings[0];
        assert_eq!(finding.what, "\u{fffd}[2J");
        assert_eq!(finding.value.chars().count(), MAX_VALUE + 1);
        assert_eq!(finding.advice, "a\u{fffd}b");
        assert_eq!(report.mizzen.chars().count(), MAX_WORD + 1);
    }
}
