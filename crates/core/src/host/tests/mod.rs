//! Keepers, sockets and segments as they are in a job, with the test in the place of the agent.

mod bed;
mod ending;
mod lives;
mod meeting;
mod misbehaviour;
mod slabs;
