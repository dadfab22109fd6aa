//! The names of signals, and what they ask for: by the numbers that Linux gives them everywhere that we run (signal(7)).

/// Whether a signal asks programs to end.
pub(crate) fn asks_to_end(number: u8) -> bool {
    [HANGUP, INTERRUPT, QUIT, TERMINATE].contains(&number)
}

/// `9 (SIGKILL)`.
pub(crate) fn describe(number: u8) -> String {
    match known_name(number) {
        Some(name) => format!("{number} ({name})"),
        None => number.to_string(),
    }
}

/// `SIGKILL`.
pub(crate) fn name(number: u8) -> String {
    known_name(number).map_or_else(|| format!("signal {number}"), str::to_owned)
}

fn known_name(number: u8) -> Option<&'static str> {
    let found = NAMES.iter().find(|(n, _)| *n == number);
    found.map(|(_, name)| *name)
}

const HANGUP: u8 = 1;
const INTERRUPT: u8 = 2;
const QUIT: u8 = 3;
const TERMINATE: u8 = 15;

const NAMES: [(u8, &str); 31] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (10, "SIGUSR1"),
    (11, "SIGSEGV"),
    (12, "SIGUSR2"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
    (16, "SIGSTKFLT"),
    (17, "SIGCHLD"),
    (18, "SIGCONT"),
    (19, "SIGSTOP"),
    (20, "SIGTSTP"),
    (21, "SIGTTIN"),
    (22, "SIGTTOU"),
    (23, "SIGURG"),
    (24, "SIGXCPU"),
    (25, "SIGXFSZ"),
    (26, "SIGVTALRM"),
    (27, "SIGPROF"),
    (28, "SIGWINCH"),
    (29, "SIGIO"),
    (30, "SIGPWR"),
    (31, "SIGSYS"),
];
