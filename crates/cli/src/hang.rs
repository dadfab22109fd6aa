//! Why nothing happens in a job: what a roll-call showed, and the words for it.

mod told;
mod words;

pub(crate) use told::Hang;
pub(crate) use words::{rows, sentences};
