//! `mizzen bench`: how fast messages are on this machine, beside what the bare machine can do.
//!
//! The front end starts this command again for each side of a measurement; the sides run in step and report what they find.
//! Where to look:
//!
//! | file | subject |
//! | --- | --- |
//! | `options.rs`, `plan.rs` | what the user may ask for, and what the sides are told |
//! | `front.rs`, `startup.rs`, `command.rs` | the front end; the one test that it makes itself; what it starts |
//! | `machine.rs`, `noise.rs` | the machine, and whether others disturb it |
//! | `serve.rs`, `side.rs`, `meeting.rs` | the sides; one of them; how they keep in step |
//! | `memory.rs`, `layout.rs` | the memory that they share, and who uses which part of it |
//! | `carrier.rs`, `floor/`, `ours/` | what carries messages: the loops that are timed, the bare machine, Mizzen |
//! | `measure/` | the tests |
//! | `figures.rs`, `words.rs`, `table.rs`, `plot.rs` | the result, as numbers, text and picture |

mod buffers;
mod carrier;
mod command;
mod figures;
mod floor;
mod front;
mod layout;
mod machine;
mod measure;
mod meeting;
mod memory;
mod noise;
mod options;
mod ours;
mod plan;
mod plot;
mod serve;
mod side;
mod startup;
mod table;
mod words;

pub(crate) use front::bench;
pub(crate) use options::Bench;
pub(crate) use serve::serve;
pub(crate) use table::STYLE;
pub(crate) use words::value;
