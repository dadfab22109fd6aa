//! What is measured: messages of Mizzen, sent and received as a program would.

pub(crate) mod bytes;
pub(crate) mod calls;
pub(crate) mod lent;
pub(crate) mod outlet;
pub(crate) mod packed;
pub(crate) mod value;
