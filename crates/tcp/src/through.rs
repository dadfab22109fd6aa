//! Dialling through a proxy: CONNECT of HTTP (RFC 9110, section 9.3.6), as the one who asks.
//!
//! The proxy is asked for an address, answers with a head of text, and after it the connection is as if it led there. Between the
//! answer and what comes behind it there is no mark but an empty line: who reads takes one byte at a time, and nothing too much.

use std::fmt::Write;
use std::net::SocketAddr;

/// The proxy through which others are dialled, and what it is told beside their addresses.
///
/// ```
/// use mizzen_tcp::{Answer, Through};
///
/// let through = Through::new("127.0.0.1:4434".parse()?).header("Mizzen-Meeting", "render@b");
/// let request = through.request("10.2.0.5:40001");
/// assert!(request.starts_with("CONNECT 10.2.0.5:40001 HTTP/1.1\r\n"));
/// assert!(request.ends_with("\r\nMizzen-Meeting: render@b\r\n\r\n"));
///
/// assert_eq!(Answer::read(b"HTTP/1.1 200 Con"), Answer::NotAll);
/// assert_eq!(Answer::read(b"HTTP/1.1 200 Connected\r\n\r\n"), Answer::Connected);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Through {
    /// Where the proxy is.
    pub at: SocketAddr,
    headers: Vec<(String, String)>,
}

impl Through {
    /// The header by which the gateway of a site is told which job is met with which site.
    pub const MEETING: &str = "Mizzen-Meeting";

    /// A proxy that is told nothing but addresses.
    pub fn new(at: SocketAddr) -> Self {
        let headers = Vec::new();
        Self { at, headers }
    }

    /// The same, told this, too. What cannot stand in a head of HTTP is left out: nothing that is told may end its line.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((one_line(name), one_line(value)));
        self
    }

    /// What to say to the proxy.
    pub fn request(&self, to: &str) -> String {
        let to = one_line(to);
        let mut request = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n");
        for (name, value) in &self.headers {
            // A text takes everything.
            let _ = write!(request, "{name}: {value}\r\n");
        }
        request + "\r\n"
    }
}

/// What a proxy has answered so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// More must come.
    NotAll,
    /// What comes next is from whom we asked for.
    Connected,
    /// It does not want to, or cannot.
    Refused {
        /// The number by which it says why.
        code: u16,
        /// What it says, at most [`MAX_REASON`] characters of it, none of which moves a cursor.
        reason: String,
    },
    /// It does not speak HTTP, or says too much.
    Nonsense,
}

impl Answer {
    /// Reads what came so far, from its beginning. Give it no byte behind the first empty line.
    pub fn read(bytes: &[u8]) -> Self {
        if !bytes.ends_with(b"\r\n\r\n") {
            return match bytes.len() < MAX_HEAD {
                true => Self::NotAll,
                false => Self::Nonsense,
            };
        }
        let line = bytes.split(|byte| *byte == b'\r').next();
        let line = line.and_then(|line| std::str::from_utf8(line).ok());
        let Some(status) = line.and_then(|line| line.strip_prefix("HTTP/1.")) else {
            return Self::Nonsense;
        };
        let mut words = status.splitn(3, ' ');
        let (minor, code) = (words.next(), words.next());
        let reason = words.next().unwrap_or_default();
        match (minor, code.and_then(three_digits)) {
            (Some("0" | "1"), Some(200..=299)) => Self::Connected,
            (Some("0" | "1"), Some(code)) => Self::Refused {
                code,
                reason: one_line(reason).chars().take(MAX_REASON).collect(),
            },
            _ => Self::Nonsense,
        }
    }
}

fn three_digits(code: &str) -> Option<u16> {
    let are_digits = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
    are_digits.then(|| code.parse().ok()).flatten()
}

fn one_line(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).collect()
}

/// The longest head of an answer that is read.
const MAX_HEAD: usize = 2048;
/// How much of a proxy's reason is kept.
pub const MAX_REASON: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_they_come() {
        let all = b"HTTP/1.1 403 Forbidden: site b does not let you\r\nServer: x\r\n\r\n";
        for len in 0..all.len() {
            assert_eq!(Answer::read(&all[..len]), Answer::NotAll, "{len}");
        }
        let reason = "Forbidden: site b does not let you".to_owned();
        assert_eq!(Answer::read(all), Answer::Refused { code: 403, reason });
        assert_eq!(Answer::read(b"HTTP/1.0 200\r\n\r\n"), Answer::Connected);
    }

    #[test]
    fn what_is_no_answer_is_nonsense() {
        for wrong in [
            &b"\r\n\r\n"[..],
            b"SSH-2.0-x\r\n\r\n",
            b"HTTP/1.1\r\n\r\n",
            b"HTTP/1.1 +20 x\r\n\r\n",
            b"HTTP/1.1 2000 x\r\n\r\n",
            b"HTTP/1.7 200 x\r\n\r\n",
            b"HTTP/1.1 \xff00 x\r\n\r\n",
            &[b'a'; MAX_HEAD],
        ] {
            assert_eq!(Answer::read(wrong), Answer::Nonsense, "{wrong:?}");
        }
    }

    #[test]
    fn nothing_that_is_told_begins_a_line_of_its_own() {
        let through = Through::new(([127, 0, 0, 1], 1).into()).header("A", "b\r\nC: d");
        let request = through.request("x\r\ny");
        assert_eq!(
            request,
            "CONNECT xy HTTP/1.1\r\nHost: xy\r\nA: bC: d\r\n\r\n"
        );
    }
}
