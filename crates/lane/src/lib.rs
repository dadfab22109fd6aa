//! The lane: a one-way, ordered, lock-free message queue between one sender and one receiver.
//!
//! A lane lives in two memory regions, so that no byte has two writers. The sender's region holds a ring
//! of 64-byte slots and a ring of bytes; the receiver's holds one line that says how far it has read.
//! Each side may map the other's region read-only. The regions may be heap memory between threads of
//! a process, or shared memory between processes: the code is the same.
//!
//! - A **short** message travels inside one slot, together with the control word that announces it:
//!   one cache line moves per message. This is protocol 1 of DECK-SCI.
//! - An **eager** message is copied once into the byte ring, and a slot describes it.
//! - A **lent** message is a short message that carries the address of a buffer of the sender; the receiver
//!   gives the buffer back through a [`Returns`] table.
//!
//! All three share one order. [`Producer`] is for one thread and uses no atomic read-modify-write;
//! [`SharedProducer`] lets many threads of a process send over one lane without a lock.
//! [`Watch`] and [`Bell`] put a receiver to sleep and wake it again without losing a wake-up.
//!
//! What a peer wrote is loaded once, validated, then used: a wrong index or length is
//! [`LaneError::Corrupt`], never a panic or a wild read.
//!
//! ```
//! use mizzen_lane::{Arrival, Ring, Shape};
//!
//! let (mut producer, mut consumer) = Ring::heap(Shape::new(64, 4096)).ends();
//! producer.try_short(7, b"hello").unwrap();
//! match consumer.poll().unwrap() {
//!     Some(Arrival::Short(message)) => assert_eq!((message.tag, message.bytes()), (7, &b"hello"[..])),
//!     other => panic!("{other:?}"),
//! }
//! ```
//!
//! A lane has one sending end. A [`Ring`] cannot be copied, and what makes an end of it takes it:
//!
//! ```compile_fail,E0599
//! # use mizzen_lane::{Ring, Shape};
//! let ring = Ring::heap(Shape::new(64, 4096));
//! let (one, another) = (ring.clone().producer(), ring.producer());
//! ```
//!
//! Rings over the same memory, and copies outside a lane, need a promise that the compiler cannot check:
//!
//! ```compile_fail,E0133
//! # use mizzen_lane::{Region, Ring, Shape};
//! let shape = Shape::new(64, 4096);
//! let (sender, receiver) = (Region::heap(shape.sender_bytes()), Region::heap(Shape::RECEIVER_BYTES));
//! let ring = Ring::new(sender.clone(), receiver.clone(), shape);
//! ```
//!
//! ```compile_fail,E0133
//! # use mizzen_lane::Region;
//! Region::heap(64).copy_in(0, b"any thread may be doing the same");
//! ```

mod consumer;
mod layout;
mod producer;
mod region;
mod returns;
mod ring;
mod shared;
mod signal;
mod steps;
mod sync;

pub use consumer::{Arrival, Consumer, Eager, Exact, Peek, Short};
pub use layout::{SHORT_MAX, SHORT_WORDS, Shape};
pub use producer::Producer;
pub use region::Region;
pub use returns::Returns;
pub use ring::{LaneError, Parts, Refused, Ring, Room};
pub use shared::{Published, SharedProducer};
pub use signal::{Bell, Call, Watch, call_after_publish, call_quietly};
#[cfg(feature = "steps")]
pub use steps::set_step_hook;
pub use sync::{AtomicU32, AtomicU64};
