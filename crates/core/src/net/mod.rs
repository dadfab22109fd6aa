//! Processes of other hosts: the engine that pumps a network driver, and a link to each peer behind it.
//!
//! The protocol crate decides ([`mizzen_proto::link::Link`]), the driver moves frames and bodies, and this module stands
//! between the two and the mailboxes. A message on the wire is its flags (`u16`, little-endian), then its table and its
//! pieces as in memory, except that a lent piece holds the buffer's bytes. A long one leaves its last pieces to the
//! body, which goes straight from the sender's memory into the receiver's.
//!
//! | file | subject |
//! | --- | --- |
//! | `attach` | attaching to networks and gateways |
//! | `engine` | the driver's lock, who pumps it, connecting and leaving |
//! | `events` | what the driver reports, and what becomes of it |
//! | `networks` | all networks of the process, and which reaches a peer |
//! | `catching` | a message that is taken on its way to a queue |
//! | `planes` | which of them carry the channels that programs name |
//! | `link` | one peer: its protocol, its frames that wait, who waits for it |
//! | `condition` | what threads sleep for, told without a system call if none does |
//! | `session` | what is kept for a peer until it has it, and the connection at present |
//! | `spares` | memory of frames, for the next |
//! | `carrying` | giving the driver what link and session have for it |
//! | `flushing` | how far a peer is with what was sent to it, and what it never took |
//! | `timers` | when a session is looked at although nothing comes |
//! | `cut` | a message as head and body |
//! | `post` | posting to a peer |
//! | `direct` | the same for what is short, when nothing is in its way |
//! | `waiting` | messages that found no credits |
//! | `behind` | moving them on |
//! | `bodies` | memory lent to the driver |
//! | `parts` | lists of parts of that memory |
//! | `giving` | giving that memory to the driver |
//! | `lending` | threads that lend it, and wait |
//! | `offered` | a message whose body has yet to come, for who unpacks it |
//! | `streaming` | reading a long body through little memory |
//! | `ahead` | how much of that there is |
//! | `steps` | posting in steps, without waiting |
//! | `outcome` | how a body ended |
//! | `sharing` | whether messages of several threads share a write |
//! | `pushed` | bodies that are here before their reader |
//!
//! # Locks
//!
//! | lock | protects | held while |
//! | --- | --- | --- |
//! | `Engine::port` | the driver | at most one system call of the driver |
//! | `NetLink::session` | what is kept for the peer, and its connection | as the port, by whose holder alone it is taken |
//! | `NetLink::state` | the protocol of one link and its queues | a decision or a copy; never a system call |
//!
//! The port comes before a session, and that before a state. A thread that posts decides under the state and leaves its frame in the link's
//! outbox; if the port is free it sends it, and if not, the thread that holds the port does, which looks for such work once
//! more after it has released the port. A short message does not even come to the outbox, if the port is free and nothing waits.

mod ahead;
mod attach;
mod behind;
mod bodies;
mod carrying;
mod catching;
mod condition;
mod cut;
mod direct;
mod engine;
mod events;
mod flushing;
mod giving;
mod id;
mod lending;
mod link;
mod networks;
mod offered;
mod outcome;
mod parts;
mod planes;
mod post;
mod pushed;
mod session;
mod sharing;
mod spares;
mod steps;
mod streaming;
#[cfg(test)]
mod tests;
mod timers;
mod waiting;

pub(crate) use attach::{Place, attach};
pub(crate) use catching::Catch;
pub(crate) use link::{Control, NetLink};
pub(crate) use networks::Networks;
pub(crate) use steps::NetPost;
