//! What two sides touch at once: the lane, a one-way, ordered message queue between one sender and one receiver; and the arena,
//! whose blocks one side fills and the other reads.
//!
//! A lane lives in two memory regions, so that no byte has two writers. The sender's region holds a ring
//! of 64-byte slots and a ring of bytes; the receiver's holds one line that says how far it has read.
//! Each side may map the other's region read-only. The regions may be heap memory between threads of
//! a process, or shared memory between processes: the code is the same.
//!
//! - A **short** message travels inside one slot, together with the control word that announces it:
//!   one cache line moves per message. This is protocol 1 of DECK-SCI. A little longer, it takes two slots side by side.
//! - An **eager** message is copied once into the byte ring, and a slot describes it. It is copied out and gone, or read in place
//!   until it is dropped.
//! - A **lent** message is a short message that carries the address of a buffer of the sender; the receiver
//!   gives the buffer back through a [`Returns`] table.
//!
//! Memory for lent and long messages is the [`Arena`]'s. Its owner takes a [`Block`], and hands it to a peer, its [`Borrower`]. To
//! the peer it is a [`Loan`] of its [`Lender`], given back when dropped. A message too long for a lane goes through a
//! [`StreamOut`], in chunks that the sender fills while the receiver's [`StreamIn`] empties them.
//!
//! All three share one order. [`Producer`] is for one thread and uses no atomic read-modify-write;
//! [`SharedProducer`] lets many threads of a process send over one lane. Neither sending nor receiving takes a lock.
//! On a [`Slate`] the members of a group show each other what fits a line.
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

mod alarm;
mod allowance;
mod arena;
mod block;
mod borrower;
mod buddy;
mod consumer;
#[cfg(not(loom))]
mod copying;
mod emptying;
mod extent;
mod filling;
mod handover;
mod latch;
mod layout;
mod lender;
mod loan;
mod manifest;
mod operation;
mod producer;
mod region;
mod returns;
mod revocations;
mod ring;
mod roster;
mod shared;
mod signal;
mod slabs;
mod slate;
mod steps;
mod supply;
mod sync;
mod tray;
mod whereabouts;

pub use alarm::Alarm;
pub use allowance::{ALLOWANCE, Waits};
pub use arena::{Arena, Backing, NoBlock, Purpose, SlabId};
pub use block::Block;
pub use borrower::Borrower;
pub use consumer::{Arrival, Consumer, Double, Eager, Exact, Peek, Short};
pub use emptying::{NoMore, StreamIn};
pub use filling::{Begun, Filling, Written};
pub use handover::{Handover, Mark, Marked};
pub use latch::{Held, Latch};
pub use layout::{SHORT_MAX, SLOT_MAX, Shape};
pub use lender::{Lender, Revoked};
pub use loan::{Loan, LoanTicket};
pub use manifest::Offer;
pub use operation::{Operation, Stepped, Steps};
pub use producer::Producer;
pub use region::Region;
pub use returns::{Place, Returns};
pub use revocations::Revocations;
pub use ring::{LaneError, Parts, Refused, Ring, Room};
pub use roster::{Calls, Parked, Roster};
pub use shared::{Published, SharedProducer};
pub use signal::{Bell, Call, Watch, call_after_publish, call_quietly, is_awake_and_last};
pub use slate::{SLATE_WORDS, Shown, Slate};
#[cfg(feature = "steps")]
pub use steps::set_step_hook;
pub use supply::{Receiver, StreamOut};
pub use sync::{AtomicU32, AtomicU64};
pub use tray::Tray;
pub use whereabouts::Ending;
