//! Why something is not done.

use std::fmt;

/// Why a gateway does not do what it is asked for: a number as HTTP has them, and a sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// As HTTP has them.
    pub code: u16,
    /// What happened, to whom, and what to do.
    pub sentence: String,
}

impl Refusal {
    /// What was asked cannot be understood.
    pub const BAD: u16 = 400;
    /// It is not allowed.
    pub const FORBIDDEN: u16 = 403;
    /// Nobody offers it, or not yet.
    pub const NOT_OFFERED: u16 = 404;
    /// The other site, or who offers it, cannot be reached.
    pub const UNREACHABLE: u16 = 502;
    /// There is too much already.
    pub const TOO_MUCH: u16 = 503;

    pub(crate) fn new(code: u16, sentence: impl Into<String>) -> Self {
        let mut sentence = sentence.into();
        if sentence.len() > MAX_SENTENCE {
            while sentence.len() > MAX_SENTENCE - '…'.len_utf8() {
                sentence.pop();
            }
            sentence.push('…');
        }
        Self { code, sentence }
    }

    /// A refusal that somebody else told us, as far as it is fit to be shown.
    pub(crate) fn told(code: u16, sentence: &str) -> Self {
        let code = if (400..600).contains(&code) {
            code
        } else {
            Self::BAD
        };
        let shown = sentence.chars().filter(|char| !char.is_control());
        Self::new(code, shown.take(MAX_SENTENCE).collect::<String>())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Refusal {}

/// The longest sentence that is passed on, in bytes: it fits a line of words.
pub(crate) const MAX_SENTENCE: usize = 360;
