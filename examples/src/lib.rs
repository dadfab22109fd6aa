//! What the applications in this folder share: how they fail, check options, keep to cores and write pictures.

pub mod cores;
mod failure;
pub mod options;
pub mod picture;

pub use failure::{Result, run};
