//! A message being unpacked.
//!
//! | file | subject |
//! | --- | --- |
//! | `unpack` | the pieces, one after the other |
//! | `coming` | what is not here yet when it is wanted |
//! | `finishing` | filling the cheaper pieces in steps |
//! | `arrived` | waiting as a task until it is |

mod arrived;
#[cfg(test)]
mod changing;
mod coming;
mod finishing;
mod unpack;

pub(crate) use finishing::Finishing;
pub use unpack::Incoming;
