//! Whether several threads post to one peer, so that their messages may share a write.
//!
//! A write to a socket costs several times what a short message costs otherwise. A thread that posts alone has its message
//! written at once. When others posted a moment ago, its message waits for theirs: until there are enough, until somebody
//! looks at the network, or until the engine's thread does, which then looks often.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use mizzen_proto::id::StreamId;

/// Who posts to one peer.
#[derive(Debug)]
pub(super) struct Sharing {
    began: Instant,
    last: AtomicU32,
    /// Until when the link counts as shared, in nanoseconds after `began`.
    until: AtomicU64,
}

impl Sharing {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            last: AtomicU32::new(u32::MAX),
            until: AtomicU64::new(0),
        }
    }

    /// Notes that `stream` posts. Whether others did a moment ago.
    pub(super) fn note(&self, stream: StreamId) -> bool {
        // Racing threads at worst agree a moment later on whether they share.
        let last = self.last.load(Ordering::Relaxed);
        if last != stream.0 {
            self.last.store(stream.0, Ordering::Relaxed);
            if last != u32::MAX {
                self.until.store(self.now() + MOMENT, Ordering::Relaxed);
                return true;
            }
        }
        let until = self.until.load(Ordering::Relaxed);
        until > 0 && until > self.now()
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}

/// A moment, in nanoseconds: longer than a thread's turn on a crowded core.
const MOMENT: u64 = 10_000_000;

/// Messages that wait for one another at most.
pub(super) const TOGETHER: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_alone_shares_with_nobody() {
        let sharing = Sharing::new();
        assert!((0..100).all(|_| !sharing.note(StreamId(7))));
    }

    #[test]
    fn two_threads_share_for_a_moment() {
        let sharing = Sharing::new();
        assert!(!sharing.note(StreamId(1)));
        assert!(sharing.note(StreamId(2)));
        assert!(sharing.note(StreamId(2)));
        std::thread::sleep(std::time::Duration::from_nanos(MOMENT * 2));
        assert!(!sharing.note(StreamId(2)));
    }
}
