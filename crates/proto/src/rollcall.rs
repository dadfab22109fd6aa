//! The roll-call: why nothing happens in a job.
//!
//! Each process answers which of its threads wait, where in the program, for what and for whom, and which of its sessions are down
//! ([`Present`]). Its agent adds how the operating system sees it ([`Condition`](crate::boot::Condition)), and answers alone for one that
//! cannot. From all of that ([`Attendance`]) the launcher makes a [`Report`]: a graph of who waits for whom, from which the ends are
//! read. An end is a rank for which others wait and which itself waits for nobody that is known, a session that is down, or a cycle.
//! The one that holds up most ranks is the odd one out, and comes first.
//!
//! No IO and no clock: answers say for how long they have waited. What a process says is foreign to the launcher, and checked as in
//! [`boot`](crate::boot).

mod ends;
mod present;
mod report;

pub use present::{Down, Kind, MAX_WAITS, MAX_WHOM, Operation, Place, Present, Wait};
pub use report::{Attendance, Cause, Class, End, Report, Standing, Step};

#[cfg(test)]
mod tests;
