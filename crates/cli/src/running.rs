//! Jobs that run: a launcher tells its user's other commands how its job is.
//!
//! Each launcher listens on a socket in a folder that only its user may enter. Who connects is sent one [`Running`] as JSON, and asks
//! nothing. The name of the socket is the launcher's process id: that is what the user calls the job.

mod answer;
mod ask;
mod door;
mod folder;

pub(crate) use answer::Running;
pub(crate) use ask::ask;
pub(crate) use door::Door;
