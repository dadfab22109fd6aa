//! Jobs that run: a launcher tells its user's other commands how its job is.
//!
//! Each launcher listens on two sockets in a folder that only its user may enter. Who connects to the first is sent one [`Running`] as
//! JSON, who connects to the second why nothing happens, when that was found out; both ask nothing. The name of the first is the
//! launcher's process id: that is what the user calls the job. The second has `.why` behind it.

mod answer;
mod ask;
mod door;
mod folder;

pub(crate) use answer::Running;
pub(crate) use ask::{ask, ask_why};
pub(crate) use door::{Door, Visitor};
