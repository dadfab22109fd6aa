//! Long messages through memory: copied into chunks by the sender while the receiver copies them out again.
//!
//! The message is announced first, by the ticket of its manifest; then it is written, and the manifest tells how far. While the
//! receiver keeps up, a few chunks go round and stay in the caches; if nobody reads, the sender takes more, so that posting
//! does not wait for retrieving. All the memory that a message may need is promised to it before it is announced: two that
//! are half-written never wait for each other's.
//!
//! A receiver gives back each chunk when it has read it, and the manifest when it will read no more, with which all chunks
//! of the message are free.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use zerocopy::IntoBytes;

use crate::error::{ArenaError, PostError};
use crate::link::MemoryLink;
use crate::link::{Out, StreamOut};
use crate::links::WithLinks;
use crate::lock::lock;
use crate::memory::{Arena, CHUNK, LentBytes, Manifest, Reserved};
use crate::message::Encoded;
use crate::wait::spin;

/// The first nap of a sender that waits for memory. Most receivers that read at all have given some back by then.
const FIRST_NAP: Duration = Duration::from_micros(20);
/// Bytes written before the receiver is told for the first time, and begins.
const FIRST_STEP: usize = 8 << 10;
/// Bytes between two tellings after that: each costs a cache miss at both sides.
const STEP: usize = 32 << 10;
/// Chunks that go round while the receiver keeps up, half a megabyte: fewer would still be in the receiver's first cache when
/// they are written again, from where they come slowly; more would not stay in the second caches.
const ROUND: usize = 8;
/// How long to wait for the oldest of them before more are taken: what a receiver that keeps up needs for one.
const LOOKS: u32 = 1500;

/// Why writing ended early.
enum Stop {
    /// The receiver does not want the rest.
    Unwanted,
    Failed(PostError),
}

impl MemoryLink {
    /// Sends a long message: announces it by `announce`, then writes it. Waits for memory as long as it takes.
    pub(crate) fn stream(
        &self,
        around: &dyn WithLinks,
        message: &impl Encoded,
        announce: impl FnOnce(&[u8]) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        let mut stream = lock(&self.streams).pop().unwrap_or_default();
        let (outcome, crowded) = stream.send(around, self, message, announce);
        stream.shrink(ROUND);
        // Under the lock: whoever ends the link closes what is here.
        let mut streams = lock(&self.streams);
        if self.is_ended() || crowded {
            drop(streams);
            stream.close(self.peer, &self.their_returns);
            self.reclaim_late(&around.links().arena);
        } else {
            streams.push(stream);
        }
        outcome
    }
}

impl StreamOut {
    /// Sends a message. Also whether long messages need much of the memory they may, so that none should be kept here.
    fn send(
        &mut self,
        around: &dyn WithLinks,
        link: &MemoryLink,
        message: &impl Encoded,
        announce: impl FnOnce(&[u8]) -> Result<(), PostError>,
    ) -> (Result<(), PostError>, bool) {
        let len = message.len();
        let limit = Arena::LONGEST_MESSAGE;
        if len > limit {
            let too_long = ArenaError::TooLong { bytes: len, limit };
            return (Err(too_long.into()), false);
        }
        if let Err(error) = self.reserve(around, link, len) {
            return (Err(error), true);
        }
        let outcome = self.send_reserved(around, link, message, announce);
        let left = core::mem::take(&mut self.reserved);
        (outcome, around.links().arena.unreserve(left))
    }

    fn reserve(
        &mut self,
        around: &dyn WithLinks,
        link: &MemoryLink,
        len: usize,
    ) -> Result<(), PostError> {
        let manifest = Reserved::of(Manifest::bytes(len));
        let mut nap = FIRST_NAP;
        loop {
            let chunks = len.div_ceil(CHUNK).saturating_sub(self.chunks.len());
            let wanted = Reserved {
                bytes: chunks * CHUNK + manifest.bytes,
                blocks: chunks + manifest.blocks,
            };
            if around.links().arena.reserve(wanted) {
                self.reserved = wanted;
                return Ok(());
            }
            // What came back here is free for all; the rest is with receivers.
            self.reap(&link.their_returns);
            self.shrink(0);
            if link.is_ended() {
                return Err(link.gone_or_died());
            }
            around.links().wait_for_memory(around.progress(), &mut nap);
        }
    }

    fn send_reserved(
        &mut self,
        around: &dyn WithLinks,
        link: &MemoryLink,
        message: &impl Encoded,
        announce: impl FnOnce(&[u8]) -> Result<(), PostError>,
    ) -> Result<(), PostError> {
        let len = message.len();
        // What came back is collected when it is needed, and after the message is announced if that can be.
        let block = self.take_manifest(around, link, Manifest::bytes(len))?;
        link.show_slab(&around.links().arena, block.slab())?;
        let manifest = block.manifest(len);
        manifest.tell(0);
        let mut ticket = block.ticket();
        ticket.len = len as u64;
        self.out.push_back(Out {
            manifest: block,
            chunks: VecDeque::new(),
        });
        if let Err(error) = announce(ticket.as_bytes()) {
            // Nobody got it: its memory is free.
            self.manifests
                .extend(self.out.pop_back().map(|out| out.manifest));
            return Err(error);
        }
        let mut writer = Writer {
            stream: self,
            around,
            link,
            manifest: &manifest,
            filled: 0,
            tell_at: FIRST_STEP,
            stop: None,
        };
        writer.stream.writing = true;
        message.each(|part| writer.write(part));
        writer.stream.writing = false;
        manifest.tell(writer.filled);
        match writer.stop {
            None | Some(Stop::Unwanted) => Ok(()),
            Some(Stop::Failed(error)) => {
                manifest.abandon();
                Err(error)
            }
        }
    }

    fn take_manifest(
        &mut self,
        around: &dyn WithLinks,
        link: &MemoryLink,
        bytes: usize,
    ) -> Result<LentBytes, PostError> {
        if self.manifests.is_empty() && self.out.len() >= ROUND {
            self.reap(&link.their_returns);
        }
        let fits = |block: &LentBytes| block.len() >= bytes;
        if let Some(index) = self.manifests.iter().rposition(fits) {
            let mut block = self.manifests.swap_remove(index);
            block.lend_again();
            return Ok(block);
        }
        self.take_reserved(around, bytes)
    }

    /// A new block, out of what was promised.
    fn take_reserved(
        &mut self,
        around: &dyn WithLinks,
        len: usize,
    ) -> Result<LentBytes, PostError> {
        let held = around
            .links()
            .arena
            .take_reserved(&mut self.reserved, len)?;
        Ok(LentBytes::new(Arc::clone(&around.links().arena), held, len))
    }

    /// A chunk for the message that is being written, the last in `out`.
    fn take_chunk(&mut self, around: &dyn WithLinks, link: &MemoryLink) -> Result<LentBytes, Stop> {
        let returns = &link.their_returns;
        let enough = self.count() >= ROUND;
        if enough && self.chunks.is_empty() {
            self.reap(returns);
            if self.chunks.is_empty() {
                spin(LOOKS, || self.is_oldest_back(returns));
                self.reap(returns);
            }
        }
        if self
            .out
            .back()
            .is_some_and(|out| out.manifest.is_back(returns))
        {
            return Err(Stop::Unwanted);
        }
        if link.is_ended() {
            return Err(Stop::Failed(link.gone_or_died()));
        }
        let promised = self.reserved.bytes >= CHUNK;
        if enough || !promised {
            if let Some(mut chunk) = self.chunks.pop_front() {
                chunk.lend_again();
                return Ok(chunk);
            }
        }
        let chunk = self.take_reserved(around, CHUNK).map_err(Stop::Failed)?;
        link.show_slab(&around.links().arena, chunk.slab())
            .map_err(Stop::Failed)?;
        Ok(chunk)
    }
}

/// Writes one message.
struct Writer<'a> {
    stream: &'a mut StreamOut,
    around: &'a dyn WithLinks,
    link: &'a MemoryLink,
    manifest: &'a Manifest,
    filled: usize,
    /// When to tell the receiver next.
    tell_at: usize,
    stop: Option<Stop>,
}

impl Writer<'_> {
    fn write(&mut self, mut part: &[u8]) {
        while !part.is_empty() && self.stop.is_none() {
            if self.filled % CHUNK == 0 {
                if let Err(stop) = self.begin_chunk() {
                    self.stop = Some(stop);
                    return;
                }
            }
            let within = self.filled % CHUNK;
            let room = (CHUNK - within).min(self.tell_at - self.filled);
            let (now, later) = part.split_at(part.len().min(room));
            let chunk = self.stream.out.back().and_then(|out| out.chunks.back());
            let Some(chunk) = chunk else { return };
            chunk.write(within, now);
            self.filled += now.len();
            part = later;
            if self.filled == self.tell_at {
                self.manifest.tell(self.filled);
                self.tell_at += STEP;
            }
        }
    }

    fn begin_chunk(&mut self) -> Result<(), Stop> {
        let chunk = self.stream.take_chunk(self.around, self.link)?;
        self.manifest.enter(self.filled / CHUNK, chunk.ticket());
        if let Some(out) = self.stream.out.back_mut() {
            out.chunks.push_back(chunk);
        }
        Ok(())
    }
}
