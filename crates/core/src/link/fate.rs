//! Whether the peer of a link is still there, and how it went if not: the same for links through memory and over networks.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Departure, Gone};
use crate::rank::ProcessId;

/// The peer of one link, and its end.
#[derive(Debug)]
pub(crate) struct Fate {
    pub(crate) peer: ProcessId,
    gone: OnceLock<Gone>,
    ended: AtomicBool,
}

impl Fate {
    pub(crate) fn of(peer: ProcessId) -> Self {
        Self {
            peer,
            gone: OnceLock::new(),
            ended: AtomicBool::new(false),
        }
    }

    /// The link ends. The first reason counts.
    pub(crate) fn end(&self, gone: Gone) {
        let _ = self.gone.set(gone);
        self.ended.store(true, Ordering::Release);
    }

    /// Whether the peer is gone.
    #[inline]
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// How the peer went.
    pub(crate) fn gone(&self) -> Option<Gone> {
        self.gone.get().copied()
    }

    /// How the peer went. If nobody has said so, it went as `otherwise`.
    pub(crate) fn gone_or(&self, otherwise: Departure) -> Gone {
        self.gone().unwrap_or(Gone::new(self.peer, otherwise))
    }
}
