//! What gateways say to each other, each in a line: who dials says what the connection is for, the other answers, and on one
//! that is for words more of them follow.
//!
//! | line | who says it | meaning |
//! | --- | --- | --- |
//! | `words` | who dials | this connection is for words |
//! | `stream JOB THING` | who dials | pass this connection on to what is offered as THING where JOB meets my site |
//! | `come TICKET` | who dials | this is the connection that you wanted |
//! | `ok` | who answers | so be it; after `stream` and `come`, bytes follow |
//! | `no CODE SENTENCE` | who answers | no, and why; the connection ends |
//! | `ping NUMBER`, `pong NUMBER` | both, on words | are you there; yes |
//! | `want TICKET JOB THING` | who was dialled, on words | dial me, with `come`, and pass it on to THING |
//! | `not TICKET CODE SENTENCE` | who dialled, on words | I will not come, and why |

use std::fmt;

use crate::meeting::{is_name, is_thing};
use crate::refusal::Refusal;

/// What a connection is for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(hidden)]
pub enum First {
    Words,
    Stream { job: String, thing: String },
    Come { ticket: u64 },
}

/// What is said on one that is for words, and the answer to what one is for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(hidden)]
pub enum Line {
    Ok,
    No(Refusal),
    Ping(u64),
    Pong(u64),
    Want {
        ticket: u64,
        job: String,
        thing: String,
    },
    Not {
        ticket: u64,
        why: Refusal,
    },
}

impl First {
    /// Reads a line, without its end.
    pub fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        Some(match words[..] {
            ["words"] => Self::Words,
            ["stream", job, thing] => {
                let (job, thing) = named(job, thing)?;
                Self::Stream { job, thing }
            }
            ["come", ticket] => Self::Come {
                ticket: number(ticket)?,
            },
            _ => return None,
        })
    }
}

impl Line {
    /// Reads a line, without its end.
    pub fn read(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Some(match (word, rest) {
            ("ok", "") if line == word => Self::Ok,
            ("no", rest) => Self::No(refusal(rest)?),
            ("ping", rest) => Self::Ping(number(rest)?),
            ("pong", rest) => Self::Pong(number(rest)?),
            ("want", rest) => {
                let [ticket, job, thing] = rest.split(' ').collect::<Vec<_>>()[..] else {
                    return None;
                };
                let (job, thing) = named(job, thing)?;
                Self::Want {
                    ticket: number(ticket)?,
                    job,
                    thing,
                }
            }
            ("not", rest) => {
                let (ticket, why) = rest.split_once(' ')?;
                Self::Not {
                    ticket: number(ticket)?,
                    why: refusal(why)?,
                }
            }
            _ => return None,
        })
    }
}

fn named(job: &str, thing: &str) -> Option<(String, String)> {
    (is_name(job) && is_thing(thing)).then(|| (job.to_owned(), thing.to_owned()))
}

fn number(digits: &str) -> Option<u64> {
    let are_digits = digits.len() == 16
        && digits
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    are_digits
        .then(|| u64::from_str_radix(digits, 16).ok())
        .flatten()
}

fn refusal(text: &str) -> Option<Refusal> {
    let (code, sentence) = text.split_once(' ')?;
    let are_digits = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
    let code = are_digits.then(|| code.parse().ok()).flatten()?;
    Some(Refusal::told(code, sentence))
}

impl fmt::Display for First {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words => f.write_str("words"),
            Self::Stream { job, thing } => write!(f, "stream {job} {thing}"),
            Self::Come { ticket } => write!(f, "come {ticket:016x}"),
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::No(why) => write!(f, "no {} {}", why.code, why.sentence),
            Self::Ping(number) => write!(f, "ping {number:016x}"),
            Self::Pong(number) => write!(f, "pong {number:016x}"),
            Self::Want { ticket, job, thing } => write!(f, "want {ticket:016x} {job} {thing}"),
            Self::Not { ticket, why } => {
                write!(f, "not {ticket:016x} {} {}", why.code, why.sentence)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_were_written() {
        let why = || Refusal::new(404, "nobody offers it, yet");
        let (job, thing) = ("tiles-7".to_owned(), "[fd00::1]:40001".to_owned());
        for line in [
            Line::Ok,
            Line::No(why()),
            Line::Ping(0),
            Line::Pong(u64::MAX),
            Line::Want {
                ticket: 7,
                job: job.clone(),
                thing: thing.clone(),
            },
            Line::Not {
                ticket: 8,
                why: why(),
            },
        ] {
            assert_eq!(Line::read(&line.to_string()), Some(line));
        }
        for first in [
            First::Words,
            First::Stream { job, thing },
            First::Come { ticket: 9 },
        ] {
            assert_eq!(First::read(&first.to_string()), Some(first));
        }
    }

    #[test]
    fn what_is_no_line_is_not_read() {
        for wrong in [
            "",
            " ",
            "ok ",
            "words ",
            "stream",
            "stream a",
            "stream a b c",
            "stream A b",
            "stream a b/c",
            "come 7",
            "come 000000000000000G",
            "ping +000000000000007",
            "no",
            "no 404",
            "no +04 x",
            "no 4044 x",
            "want 0000000000000007 a",
            "want 0000000000000007 - b",
            "not 404 x",
            "not 0000000000000007 x y",
        ] {
            assert!(
                Line::read(wrong).is_none() && First::read(wrong).is_none(),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn what_others_say_is_shown_on_one_line_and_not_for_ever() {
        let Some(Line::No(why)) = Line::read(&format!("no 999 a\u{1b}[2J\r{}", "x".repeat(1000)))
        else {
            panic!("a refusal");
        };
        assert!(why.code == 400 && why.sentence.starts_with("a[2Jx") && why.sentence.len() == 360);
    }
}
