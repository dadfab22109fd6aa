//! Long messages, the sender's side: copied into chunks while the receiver copies them out again.
//!
//! The message is announced first, by the ticket of its manifest; then it is written, and the manifest tells how far. While the
//! receiver keeps up, a few chunks go round and stay in the caches; if nobody reads, the sender takes more, up to what the
//! receiver may leave unread (`allowance.rs`), so that sending does not wait for receiving before that.
//!
//! | what | who writes | who reads | ordered by |
//! | --- | --- | --- | --- |
//! | bytes of a chunk, its entry in the manifest | the sender | the receiver | `filled` of the manifest |
//! | the chunk and its entry again | the sender | | the count in the manifest's word in the receiver's table of returns |
//! | the manifest again, and all chunks of the message | the sender | | the end of the loan, in the same word |
//!
//! # Nobody waits for ever
//!
//! A message waits in two places, and in neither for another that is half-written:
//!
//! - *Before it begins*, until enough is promised to it: all its chunks, or, if it is longer than what may be unread, the few
//!   that go round. Nobody knows of it yet, and messages that have begun need nothing that it has.
//! - *While it is written*, only if it is longer than that. What it waits for then is the return of its own chunks, which its
//!   own reader gives back by reading on; the few that were promised to it are never lent to another message. Whoever reads
//!   such a message must give back what it has read (`StreamIn::holds_all` says so).
//!
//! So two that are half-written never wait for each other's memory: each goes on as soon as its own reader does.
//!
//! # Read where it lies
//!
//! A message of one piece can be offered: its receiver, if it comes while the sender is still in its call, may read it in the sender's
//! own memory instead (one copy by the kernel, for example). The sender writes chunks all the same, after a moment in which a receiver that
//! is there may begin, until the receiver says that it
//! reads, and then waits for the end of that. When all is written, the sender withdraws the offer, and only then looks whether the
//! receiver has begun after all; the receiver says that it begins, and only then looks whether the offer still stands. With a fence
//! between, of both at least one sees the other: nobody reads memory that the sender's caller has again. A receiver that could
//! not read gives back as many chunks as before, and goes on with chunks.

use std::collections::VecDeque;

use crate::arena::{Backing, NoBlock};
use crate::loan::LoanTicket;
use crate::manifest::{CHUNK, Manifest, Offer, chunks};
use crate::returns::Progress;
use crate::supply::{Next, Out, ROUND, Receiver, StreamOut, Writing};

/// Bytes written before the receiver is told for the first time, and begins.
const FIRST_STEP: usize = if cfg!(loom) { 1 } else { 4 << 10 };
/// Bytes between two tellings after that: each costs a cache miss at both sides, and what is not told yet is not read meanwhile.
const STEP: usize = if cfg!(loom) { 2 } else { 8 << 10 };

/// How many rounds of looks to wait for a receiver that reads the message where it lies before the wait may sleep: it is at work.
const PULLING: u32 = if cfg!(loom) { 0 } else { 4 };

/// A message that is being written, by whichever thread has it. Dropped before its end, it tells its receiver that the rest will
/// not come.
#[derive(Debug)]
pub struct Filling<B: Backing> {
    stream: StreamOut<B>,
    ticket: LoanTicket,
    manifest: Manifest,
    filled: usize,
    /// When to tell the receiver next.
    tell_at: usize,
    /// The receiver may read it where it lies.
    is_offered: bool,
    /// How many looks to wait for it to do so before anything is written.
    hold: u32,
}

/// What became of a message that was to begin.
#[derive(Debug)]
pub enum Begun<B: Backing> {
    /// It begins: announce it and write it.
    Now(Filling<B>),
    /// The receiver has left as much unread as it may: try again when it has read some.
    Full(StreamOut<B>),
}

/// How much of a part went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// All of it.
    All,
    /// So many bytes: there is no room for more until the receiver has read some.
    Part(usize),
    /// The receiver does not want the rest of the message.
    Unwanted,
}

impl<B: Backing> StreamOut<B> {
    /// Begins a message of `len` bytes, if it may.
    ///
    /// # Errors
    ///
    /// If the system has no memory.
    pub fn begin(mut self, len: usize) -> Result<Begun<B>, NoBlock<B::Error>> {
        let (needed, window) = (chunks(len), self.allowance.limit());
        let holds_all = needed <= window;
        // One that must wait for its reader anyway leaves some to others, and with its manifest it needs no more memory than
        // may be unread.
        let entries = if holds_all {
            needed
        } else {
            window - window / 8
        };
        let promised = if holds_all {
            needed
        } else {
            ROUND.min(entries)
        };
        if !self.promise(promised) {
            return Ok(Begun::Full(self));
        }
        let keeps = if holds_all { 0 } else { promised };
        // What came back is collected when it is needed, and after the message is announced if that can be.
        let Some(sheet) = self.take_sheet(Manifest::bytes(entries), promised)? else {
            self.allowance.give(promised);
            return Ok(Begun::Full(self));
        };
        let ticket = LoanTicket {
            slab: sheet.memory.slab,
            number: sheet.number.number,
            offset: sheet.memory.offset as u64,
            len: len as u64,
            loan: sheet.number.loan,
        };
        let manifest = sheet.manifest(entries, len);
        manifest.begin();
        self.was_pulled = false;
        self.out.push_back(Out {
            sheet,
            chunks: VecDeque::new(),
            emptied: 0,
        });
        self.writing = Some(Writing {
            promised,
            keeps,
            most: entries,
        });
        Ok(Begun::Now(Filling {
            stream: self,
            ticket,
            manifest,
            filled: 0,
            tell_at: FIRST_STEP,
            is_offered: false,
            hold: 0,
        }))
    }
}

impl<B: Backing> Filling<B> {
    /// The ticket that announces the message: its length, and where its manifest is.
    #[must_use]
    pub fn ticket(&self) -> LoanTicket {
        self.ticket
    }

    /// Nobody got the ticket: the memory of the message is free.
    #[must_use]
    pub fn withdraw(self) -> StreamOut<B> {
        let mut stream = self.stream;
        stream.stop_writing();
        if let Some(withdrawn) = stream.out.pop_back() {
            stream.allowance.give(withdrawn.chunks.len());
            stream.chunks.extend(withdrawn.chunks);
            stream.sheets.push(withdrawn.sheet);
        }
        stream
    }

    /// Offers the message where it lies, before it is announced. All of it is written by one [`write`](Self::write) then, from there,
    /// which first looks up to `hold` times whether the receiver begins to read it there.
    pub fn offer(&mut self, offer: Offer, hold: u32) {
        self.manifest.offer(offer);
        self.is_offered = true;
        self.hold = hold;
    }

    /// Writes as much of `part` as there is room for, without waiting. After [`Written::Part`], go on with the rest of it when
    /// the receiver may have read some.
    ///
    /// # Errors
    ///
    /// If there is no receiver any more, or the system has no memory.
    pub fn try_write<R: Receiver<B>>(
        &mut self,
        part: &[u8],
        receiver: &R,
    ) -> Result<Written, R::Error> {
        let written = self.advance(part, receiver, usize::MAX)?;
        if let Written::Part(_) = written {
            self.tell();
        }
        Ok(written)
    }

    /// Writes some more of the message, waiting for room. `Ok(false)`: the receiver does not want the rest.
    ///
    /// # Errors
    ///
    /// As [`try_write`](Self::try_write), and if the receiver's [`wait`](Receiver::wait) says so.
    pub fn write<R: Receiver<B>>(
        &mut self,
        mut part: &[u8],
        receiver: &R,
    ) -> Result<bool, R::Error> {
        if self.is_offered {
            match self.write_offered(part, receiver)? {
                Written::All => return Ok(true),
                Written::Unwanted => return Ok(false),
                Written::Part(now) => part = &part[now..],
            }
        }
        // Chunks that have rested first. If none comes back in a moment, a few more than go round, and then again.
        let (mut growths, mut in_vain) = (0, 0);
        loop {
            match self.advance(part, receiver, growths)? {
                Written::All => return Ok(true),
                Written::Unwanted => return Ok(false),
                Written::Part(0) if growths > 0 => {
                    self.tell();
                    receiver.wait(in_vain)?;
                    in_vain += 1;
                }
                Written::Part(now) => {
                    part = &part[now..];
                    growths = usize::from(!self.stream.wait_for_oldest());
                    in_vain = 0;
                }
            }
        }
    }

    /// Writes as much as there is room for, unless the receiver reads it where it lies. It does not when this returns.
    fn write_offered<R: Receiver<B>>(
        &mut self,
        part: &[u8],
        receiver: &R,
    ) -> Result<Written, R::Error> {
        let mut rest = part;
        self.stream.wait_for_word(self.hold);
        while !rest.is_empty() {
            match self.stream.said() {
                Progress::Pulling => break,
                Progress::Back => {
                    // Read there between two looks, or dropped.
                    self.stream.was_pulled = true;
                    return Ok(Written::Unwanted);
                }
                Progress::Unread | Progress::Emptied(_) => (),
            }
            let (step, later) = rest.split_at(rest.len().min(self.tell_at - self.filled));
            match self.advance(step, receiver, 0)? {
                Written::All => rest = later,
                Written::Unwanted => return Ok(Written::Unwanted),
                Written::Part(now) => {
                    rest = &rest[now..];
                    break;
                }
            }
        }
        // All that is written, so that nothing is waited for but the reading.
        self.tell();
        self.is_offered = false;
        let is_pulled = self.stream.said() == Progress::Pulling;
        if !is_pulled {
            self.manifest.withdraw_offer();
        }
        let mut rounds = 0;
        while !self.stream.wait_for_pulling() {
            match u32::checked_sub(rounds, PULLING) {
                Some(in_vain) => receiver.wait(in_vain)?,
                None => receiver.check()?,
            }
            rounds += 1;
        }
        if self.stream.said() == Progress::Back {
            self.stream.was_pulled = is_pulled || rounds > 0;
            return Ok(Written::Unwanted);
        }
        if is_pulled {
            self.manifest.withdraw_offer();
        }
        Ok(match rest.len() {
            0 => Written::All,
            left => Written::Part(part.len() - left),
        })
    }

    /// Writes until there is no room, or it would have to take more memory more than `growths` times.
    fn advance<R: Receiver<B>>(
        &mut self,
        part: &[u8],
        receiver: &R,
        mut growths: usize,
    ) -> Result<Written, R::Error> {
        // Longer than was said: memory was promised for no more.
        let part = &part[..part.len().min(self.manifest.len() - self.filled)];
        let mut rest = part;
        while !rest.is_empty() {
            if self.filled % CHUNK == 0 {
                let before = self.stream.count;
                let left = chunks(self.manifest.len() - self.filled);
                match self.stream.next_chunk(receiver, left, growths > 0)? {
                    Next::Chunk(chunk) => {
                        growths -= usize::from(self.stream.count > before && growths > 0);
                        let number = self.filled / CHUNK;
                        self.manifest.enter(number, chunk.slab, chunk.offset);
                        if let Some(out) = self.stream.out.back_mut() {
                            out.chunks.push_back(chunk);
                        }
                    }
                    Next::None => return Ok(Written::Part(part.len() - rest.len())),
                    Next::Unwanted => return Ok(Written::Unwanted),
                }
            }
            let within = self.filled % CHUNK;
            let room = (CHUNK - within).min(self.tell_at - self.filled);
            let (now, later) = rest.split_at(rest.len().min(room));
            if within + now.len() == CHUNK && self.stream.chunks.is_empty() {
                // What goes next is asked for while this is written.
                self.stream.reap();
            }
            let chunk = self.stream.out.back().and_then(|out| out.chunks.back());
            let Some(chunk) = chunk else {
                return Ok(Written::Unwanted);
            };
            chunk.write(within, now, self.stream.chunks.front());
            self.filled += now.len();
            rest = later;
            if self.filled == self.tell_at {
                self.tell();
                self.tell_at += STEP;
            }
        }
        Ok(Written::All)
    }

    fn tell(&self) {
        self.manifest.tell(self.filled);
    }

    /// All is written that will be.
    #[must_use]
    pub fn finish(self) -> StreamOut<B> {
        self.tell();
        let mut stream = self.stream;
        stream.stop_writing();
        stream
    }

    /// The rest will not come, and the receiver is told.
    #[must_use]
    pub fn abandon(self) -> StreamOut<B> {
        self.manifest.abandon();
        let mut stream = self.stream;
        stream.stop_writing();
        stream
    }
}
