//! Who must not get in, and what must not get through: attacks on a driver, over real sockets.
//!
//! | file | the attacker |
//! |---|---|
//! | `credentials` | has other credentials than it should, or none |
//! | `hellos` | has good credentials, and says something else |
//! | `handshakes` | begins a handshake and does not end it well |
//! | `replays` | has recorded what others said |
//! | `middle` | is on the path between two good peers |
//! | `frames` | is a peer, and sends what it should not |
//! | `floods` | comes a thousand times |

#[path = "../bench/mod.rs"]
mod bench;
#[path = "../common/mod.rs"]
mod common;

mod credentials;
mod floods;
mod frames;
mod handshakes;
mod hellos;
mod middle;
mod pair;
mod replays;
