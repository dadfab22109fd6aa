//! The agent of a host, as a library: it starts the processes of a job there, introduces them to each other, certifies
//! who they are, and reports what they write and how they end.
//!
//! The agent of a job's first host is also the root of the job, which decides what a death means; agents speak
//! `mizzen_proto::membership` with each other. Launcher and agent speak `mizzen_proto::boot` over a [`FrameStream`]. An agent is a thread of the
//! launcher ([`serve`]) if the job runs on one host alone, or a program of its own that a remote shell starts
//! ([`serve_remote`]).
//!
//! A program that runs an agent must call [`serve_guard`] when it is started with the single argument `guard`: the agent
//! starts its own program in this way, so that the processes end even if the agent is killed.
//!
//! ```
//! use std::os::unix::net::UnixStream;
//!
//! use mizzen_agent::{FrameStream, Other, Stdin};
//! use mizzen_proto::boot::{FromAgent, ToAgent, VERSION};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let stream = |socket: UnixStream| FrameStream::new(socket.try_clone().unwrap().into(), socket.into());
//! let (ours, theirs) = UnixStream::pair()?;
//! let (mut ours, theirs) = (stream(ours)?, stream(theirs)?);
//! let agent = std::thread::spawn(|| mizzen_agent::serve(theirs, Stdin::Null));
//!
//! // A launcher would say `Start`. This one has changed its mind.
//! ToAgent::Stop { code: 0 }.encode(ours.queue())?;
//! ours.flush();
//! agent.join().expect("it does not panic")?;
//!
//! assert_eq!(ours.receive(), Other::Open);
//! assert_eq!(ours.next(FromAgent::decode)?, Some(FromAgent::Hello { version: VERSION }));
//! # Ok(())
//! # }
//! ```
//!
//! Where to look:
//!
//! | file | subject |
//! | --- | --- |
//! | `agent.rs`, `link.rs` | the agent: its loop, and its link to the launcher |
//! | `children.rs`, `spawn.rs`, `output.rs` | the processes: starting them, what they write, their ends |
//! | `certifier.rs` | their certificates; who introduces them is `mizzen_proto::broker` |
//! | `control.rs`, `net.rs`, `connection.rs`, `places.rs` | the membership: its machines, and the connections with other agents |
//! | `gateways.rs`, `offers.rs` | the gateway of this host, where others are, and how another site finds it |
//! | `roll_call.rs`, `condition.rs` | who of the processes waits, and how the operating system sees them |
//! | `guard.rs` | what ends the processes when even the agent is killed |
//! | `stream.rs` | frames over the byte stream between launcher and agent |
//! | `signals.rs`, `memory.rs`, `events.rs`, `clock.rs` | signals as input, hiding memory, waiting, time |

mod agent;
mod certifier;
mod children;
mod clock;
mod condition;
mod connection;
mod control;
mod events;
mod gateways;
mod guard;
mod link;
mod memory;
mod net;
mod offers;
mod output;
mod places;
mod roll_call;
mod signals;
mod spawn;
mod stream;

pub use agent::{serve, serve_remote};
pub use guard::serve as serve_guard;
pub use memory::hide_memory;
pub use signals::{Signals, unblock_in};
pub use spawn::Stdin;
pub use stream::{FrameStream, Other};
