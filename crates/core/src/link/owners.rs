//! Owners of buffers that others handed on to us: who gives such a buffer back asks its own process for the owner's link.

use core::fmt::Debug;

use crate::memory::HandedTicket;

/// The links of a process, as one of them sees them.
pub(crate) trait Owners: Debug + Send + Sync {
    /// Gives back a buffer that was handed on and that nobody will read.
    fn give_back(&self, handed: HandedTicket);
}
