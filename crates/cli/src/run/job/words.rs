//! The sentences for the user, and their parts.

use std::time::Duration;

use mizzen_proto::boot::Death;

use crate::signals;

/// What became of a process, as a predicate.
pub(super) fn death(how: Death) -> String {
    match how {
        Death::Exit(code) => format!("exited with code {code}"),
        Death::Signal(number) => format!("was killed by signal {}", signals::describe(number)),
        Death::HostLost => "was lost with its host".to_owned(),
    }
}

/// Nothing was heard of a host: a clause.
pub(super) fn silent_for(time: Duration) -> String {
    format!("nothing was heard of it for {} s", time.as_secs_f64())
}

/// A signal ended `ended` of all the processes.
pub(super) fn ended_by_signal(number: u8, ended: usize, all: usize) -> String {
    let tail = if ended == all { "" } else { " that still ran" };
    let what = match ended {
        1 => "process".to_owned(),
        n => format!("{n} processes"),
    };
    let name = signals::name(number);
    format!("got {name}; ended the {what}{tail}.")
}

pub(super) fn others_go_on(count: usize) -> String {
    match count {
        0 => ".".to_owned(),
        1 => "; the other process goes on.".to_owned(),
        n => format!("; the other {n} processes go on."),
    }
}

pub(super) fn ended_others(count: usize) -> String {
    match count {
        0 => ".".to_owned(),
        1 => "; ended the other process.".to_owned(),
        n => format!("; ended the other {n} processes."),
    }
}

pub(super) fn have_ended(count: usize, others: usize) -> String {
    match (count, others) {
        (0, _) => String::new(),
        (1, 1) => "; the other process has ended".to_owned(),
        (n, m) if n == m => format!("; the other {m} processes have ended"),
        (1, m) => format!("; 1 of the other {m} processes has ended"),
        (n, m) => format!("; {n} of the other {m} processes have ended"),
    }
}

/// What a process said, to be part of a line of ours.
pub(super) fn printable(text: &str) -> String {
    let text = text.replace(char::is_control, " ");
    let text = text.trim_end_matches(|c: char| c == '.' || c.is_whitespace());
    text.trim_start().to_owned()
}
