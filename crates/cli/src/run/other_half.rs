//! What two launchers of one job have in common, and how the one that leads sees the other.
//!
//! | module | subject |
//! | --- | --- |
//! | `secret` | who is the other half, and who only says so |
//! | `words` | what launchers say to each other |
//! | `tunnel` | one sealed connection for the agents of all hosts |

mod secret;
mod tunnel;
mod words;

use std::os::fd::BorrowedFd;
use std::time::Duration;

pub(super) use secret::{Part, Shared};
pub(super) use tunnel::Tunnel;
pub(super) use words::{FromDeputy, FromLeader, Hello, Lines, Welcome, hear, say};

/// The other launcher, as long as the job lives.
pub(super) struct Far {
    pub(super) lines: Lines,
    pub(super) tunnel: Tunnel,
}

impl Far {
    /// Readable when its user wants something.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.lines.is_closed()).then(|| self.lines.fd())
    }

    /// Tells the other user something.
    pub(super) fn say(&mut self, sentence: &str) {
        self.lines.say(&FromLeader::Say(sentence.to_owned()));
    }

    /// Signals that the other user sent.
    pub(super) fn signals(&mut self) -> Vec<u8> {
        let words = self.lines.hear::<FromDeputy>();
        let signals = words.into_iter().map(|FromDeputy::Signal(number)| number);
        signals.collect()
    }

    /// The job has ended.
    pub(super) fn end(mut self, code: u8) {
        self.lines.say(&FromLeader::End(code));
        self.lines.end();
        self.tunnel.finish(Duration::from_secs(3));
    }
}
