//! A message being unpacked.
//!
//! | file | subject |
//! | --- | --- |
//! | `unpack` | the pieces, one after the other |
//! | `coming` | what is not here yet when it is wanted |
//! | `arrived` | waiting as a task until it is |

mod arrived;
#[cfg(test)]
mod changing;
mod coming;
mod unpack;

pub use unpack::Incoming;
