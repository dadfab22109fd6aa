//! What two launchers of one job have in common, and how the one that leads sees the other.
//!
//! | module | subject |
//! | --- | --- |
//! | `secret` | who is the other half, and who only says so |
//! | `timed` | a connection with a deadline |
//! | `words` | what launchers say to each other |
//! | `tunnel` | one sealed connection for the agents of all hosts |

mod secret;
mod timed;
mod tunnel;
mod words;

use std::os::fd::BorrowedFd;
use std::time::Duration;

pub(super) use secret::{Part, Shared};
pub(super) use timed::Timed;
pub(super) use tunnel::Tunnel;
pub(super) use words::{FromDeputy, FromLeader, Hello, Lines, Welcome, hear, printable, say};

/// The other launcher, as long as the job lives.
pub(super) struct Far {
    lines: Lines,
    tunnel: Tunnel,
    /// Whether it was told how the job ended.
    is_told: bool,
}

impl Far {
    pub(super) fn new(lines: Lines, tunnel: Tunnel) -> Self {
        let is_told = false;
        Self {
            lines,
            tunnel,
            is_told,
        }
    }

    /// Readable when its user wants something.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.lines.is_closed()).then(|| self.lines.fd())
    }

    /// Tells the other user something.
    pub(super) fn say(&mut self, sentence: &str) {
        self.lines.say(&FromLeader::Say(sentence.to_owned()));
    }

    /// What the other user wants.
    pub(super) fn hear(&mut self) -> Vec<FromDeputy> {
        let words = self.lines.hear::<FromDeputy>().into_iter();
        // Those that programs can do nothing about are not for others to send.
        let is_signal = |number: u8| (1..32).contains(&number) && ![KILL, STOP].contains(&number);
        let is_good = |word: &FromDeputy| match word {
            FromDeputy::Signal(number) => is_signal(*number),
            FromDeputy::Unread => true,
        };
        words.filter(is_good).collect()
    }

    /// The job has ended: says so, once.
    pub(super) fn end(&mut self, code: u8) {
        if !std::mem::replace(&mut self.is_told, true) {
            self.lines.say(&FromLeader::End(code));
            self.lines.end();
        }
    }

    /// Waits until the other launcher has heard everything.
    pub(super) fn finish(self) {
        self.tunnel.finish(Duration::from_secs(3));
    }
}

const KILL: u8 = 9;
const STOP: u8 = 19;
