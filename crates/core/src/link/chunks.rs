//! The memory of long messages on their way to one peer: chunks and manifests, here and at the receiver.

use std::collections::VecDeque;

use mizzen_lane::Returns;

use crate::memory::{LentBytes, Reserved};
use crate::rank::ProcessId;

/// The chunks of one sending thread at a time.
#[derive(Debug, Default)]
pub(crate) struct StreamOut {
    /// Free chunks; the first has rested longest.
    pub(crate) chunks: VecDeque<LentBytes>,
    pub(crate) manifests: Vec<LentBytes>,
    /// Messages at the receiver, the oldest first.
    pub(crate) out: VecDeque<Out>,
    /// The last of them is being written.
    pub(crate) writing: bool,
    /// What the arena has promised to it.
    pub(crate) reserved: Reserved,
}

/// A message at the receiver.
#[derive(Debug)]
pub(crate) struct Out {
    pub(crate) manifest: LentBytes,
    /// In the order of the message.
    pub(crate) chunks: VecDeque<LentBytes>,
}

impl StreamOut {
    /// Chunks here and at the receiver.
    pub(crate) fn count(&self) -> usize {
        let out = self.out.iter().map(|out| out.chunks.len());
        self.chunks.len() + out.sum::<usize>()
    }

    pub(crate) fn is_oldest_back(&self, returns: &Returns) -> bool {
        self.out.front().is_some_and(|out| {
            out.manifest.is_back(returns)
                || out
                    .chunks
                    .front()
                    .is_some_and(|chunk| chunk.is_back(returns))
        })
    }

    /// Collects what the receiver gave back, as far as it did so in order.
    pub(crate) fn reap(&mut self, returns: &Returns) {
        while let Some(oldest) = self.out.front_mut() {
            let is_done = oldest.manifest.is_back(returns);
            while oldest
                .chunks
                .front()
                .is_some_and(|chunk| is_done || chunk.is_back(returns))
            {
                self.chunks.extend(oldest.chunks.pop_front());
            }
            if !is_done || self.writing && self.out.len() == 1 {
                return;
            }
            self.manifests
                .extend(self.out.pop_front().map(|out| out.manifest));
        }
    }

    /// Gives all free memory beyond `keep` chunks back to the arena.
    pub(crate) fn shrink(&mut self, keep: usize) {
        self.chunks.truncate(keep);
        self.manifests.truncate(keep);
    }

    /// Leaves to the arena what the receiver may still read: it comes back with the manifest.
    pub(crate) fn close(mut self, peer: ProcessId, returns: &Returns) {
        self.reap(returns);
        for out in self.out.drain(..) {
            let chunks = out.chunks.into();
            out.manifest.hand_over_with(chunks, peer, returns.clone());
        }
    }
}

impl Drop for StreamOut {
    /// What a receiver may still read is never given to others, also when a program panics in the middle.
    fn drop(&mut self) {
        for out in self.out.drain(..) {
            out.manifest.leave();
            for chunk in out.chunks {
                chunk.leave();
            }
        }
    }
}
