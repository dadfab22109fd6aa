//! What the applications in this folder share: how they fail, check options, keep to cores, write pictures and say what it took.

pub mod cores;
mod failure;
pub mod options;
pub mod picture;
pub mod report;

pub use failure::{Result, run};
