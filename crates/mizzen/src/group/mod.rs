//! Groups: members that do something together.
//!
//! A [`Group`] is one member's seat in a group: of all processes of the job ([`Deck::group`](crate::Deck::group)), of some of them ([`Group::split`]), or of threads of several
//! ([`Group::seats`]). All members call the same operations in the same order; each call returns when this member's part is done.
//!
//! ```
//! use mizzen::group::Sum;
//!
//! mizzen::local(4, |deck| {
//!     let mut group = deck.group()?;
//!     let mean = group.all_reduce_value(f64::from(deck.rank().0), Sum)? / f64::from(group.size());
//!     assert_eq!(mean, 1.5);
//!     let mut parameters = [0.0; 3];
//!     if group.member() == 0 {
//!         parameters = [0.5, 1.0, 2.0];
//!     }
//!     group.broadcast(0, &mut parameters)?;
//!     assert_eq!(parameters[2], 2.0);
//!     group.barrier()
//! }).unwrap();
//! ```
//!
//! | file | subject |
//! | --- | --- |
//! | `everybody.rs` | the group and the barrier of all processes |
//! | `moving.rs`, `combining.rs` | what members do together |
//! | `under_way.rs` | what operations are made of |
//! | `background.rs` | operations beside something else |
//! | `lent.rs` | the same on lent buffers, read in place |
//! | `making.rs` | groups of some members, and of threads |
//! | `member.rs` | what the program holds of a group |
//! | `means.rs` | through memory or by messages |
//! | `run.rs` | carrying a schedule out, by messages |
//! | `slates.rs`, `trays.rs`, `turns.rs` | short and long data on one host, through memory, turn by turn |
//! | `plans.rs` | what was planned before |
//! | `choice.rs`, `probing.rs`, `tuning.rs` | by what is chosen; how it is measured; how the program says so |
//! | `survivors.rs`, `agreements.rs` | going on when members are gone; what they agree on |
//! | `seat.rs`, `roster.rs` | messages between members; who they are |
//! | `op.rs`, `parts.rs` | how data are combined; data of which each member has a part |
//! | `call.rs`, `error.rs` | what a member does, in words; what can go wrong |

mod agreements;
mod background;
mod call;
mod choice;
mod combining;
mod error;
mod everybody;
mod lent;
mod making;
mod means;
mod member;
mod moving;
mod op;
mod parts;
mod plans;
mod probing;
mod roster;
mod run;
mod seat;
mod slates;
mod survivors;
mod trays;
mod tuning;
mod turns;
mod under_way;

pub use self::error::{Doing, GroupError};
pub use self::member::Group;
pub use self::op::{And, Max, Min, Number, Op, Or, Product, Sum, Xor, commutative, ordered};
pub use self::parts::Parts;
pub use self::survivors::Settled;
pub use mizzen_proto::group::cost::{Costs, Link};
pub use mizzen_proto::group::schedule::Member;
