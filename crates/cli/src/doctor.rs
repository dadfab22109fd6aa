//! `mizzen doctor`: what to know about the hosts before blaming the program.
//!
//! The front end starts a side on each host, in the way in which `mizzen run` starts agents, and asks: what is it like
//! there, what time is it, whom can you connect to? What the sides answer is compared, judged and shown. Where to look:
//!
//! | file | subject |
//! | --- | --- |
//! | `options.rs` | what the user may ask for |
//! | `front.rs`, `talk.rs` | the front end: what it asks in which order; asking several sides at once |
//! | `side.rs`, `reach.rs` | a side: answering; listening, and connecting to others |
//! | `probe.rs`, `probe/` | what is looked at on a host, one file per subject |
//! | `report.rs`, `wire.rs` | what is said between them, and as which bytes |
//! | `examined.rs` | everything that was found |
//! | `remarks.rs`, `between.rs` | what is not as it should be; what shows only when hosts are compared |
//! | `show.rs` | the result as text and as JSON |
//! | `site.rs` | the way to another site, which the gateway of this one knows |

mod between;
mod examined;
mod front;
mod options;
mod probe;
mod reach;
mod remarks;
mod report;
mod show;
mod side;
mod site;
mod talk;
mod wire;

pub(crate) use front::doctor;
pub(crate) use options::Doctor;
pub(crate) use probe::serve_readable;
pub(crate) use side::serve;
