//! Collective operations of groups: who sends what to whom, computed before anything is sent.
//!
//! A *schedule* is a member's part of an operation: [`Round`](schedule::Round)s, one after another. It is a pure function of what all members know alike (how many there are, who
//! is where, which operation, how long), so each computes its own part, and the parts fit together. Nothing here sends; `tests/suite/group.rs` carries
//! schedules out without a network and checks what they come to.
//!
//! | module | subject |
//! | --- | --- |
//! | [`schedule`] | rounds, transfers, and how data is cut into parts |
//! | [`shapes`] | schedules for members that are all alike: circulant graphs, rings, trees, pairs |
//! | [`layout`] | members by cluster and host |
//! | [`plan`] | operations as stages: by host, then by cluster, flat between clusters |
//! | [`cost`] | what a plan takes, and the choice between several |
//! | [`probe`] | what members measure before they choose |
//! | [`agreement`] | one answer at all survivors, although members die |

pub mod agreement;
pub mod cost;
pub mod layout;
pub mod plan;
pub mod probe;
pub mod schedule;
pub mod shapes;
