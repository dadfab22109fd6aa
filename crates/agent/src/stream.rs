//! Frames over the byte stream between launcher and agent.
//!
//! Never blocks: what cannot be written waits here, and whoever owns the stream looks at [`backlog`](FrameStream::backlog)
//! before it takes in more.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use mizzen_proto::boot::{DecodeError, FRAME_HEADER, MAX_FRAME, split_frame};
use rustix::io::Errno;
use zeroize::Zeroize;

/// One end of the stream.
#[derive(Debug)]
pub struct FrameStream {
    input: OwnedFd,
    output: OwnedFd,
    /// What arrived; the first `taken` bytes are decoded.
    received: Vec<u8>,
    taken: usize,
    /// What is to be written; the first `written` bytes are.
    queued: Vec<u8>,
    written: usize,
    /// Whether a secret may be in `queued`, or was.
    secret: bool,
}

/// Whether the other end is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Other {
    /// As far as one can tell.
    Open,
    /// It is gone, or cannot be reached.
    Closed,
}

impl FrameStream {
    /// A stream that reads from `input` and writes to `output`: two ends of pipes, or one socket twice.
    ///
    /// # Errors
    ///
    /// If one of them cannot be made non-blocking.
    pub fn new(input: OwnedFd, output: OwnedFd) -> Result<Self, Errno> {
        rustix::io::ioctl_fionbio(&input, true)?;
        rustix::io::ioctl_fionbio(&output, true)?;
        Ok(Self {
            input,
            output,
            received: Vec::new(),
            taken: 0,
            queued: Vec::new(),
            written: 0,
            secret: false,
        })
    }

    /// Where frames are encoded to. They leave with the next [`flush`](Self::flush).
    pub fn queue(&mut self) -> &mut Vec<u8> {
        &mut self.queued
    }

    /// Like [`queue`](Self::queue), for frames of which no trace may be left once they are written.
    pub fn queue_secret(&mut self) -> &mut Vec<u8> {
        self.secret = true;
        &mut self.queued
    }

    /// Writes what the other end takes.
    pub fn flush(&mut self) -> Other {
        while self.written < self.queued.len() {
            match rustix::io::write(&self.output, &self.queued[self.written..]) {
                Ok(count) => self.written += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => return Other::Closed,
            }
        }
        if self.written == self.queued.len() {
            if std::mem::take(&mut self.secret) {
                self.queued.zeroize();
            }
            self.queued.clear();
            self.written = 0;
        } else if self.written > COMPACT {
            self.queued.drain(..self.written);
            self.written = 0;
        }
        Other::Open
    }

    /// Reads some of what has arrived. Call when the input is readable, then take all frames.
    pub fn receive(&mut self) -> Other {
        self.received.drain(..self.taken);
        self.taken = 0;
        let start = self.received.len();
        // One frame, at most, is incomplete: the buffer stays below a frame and a read.
        debug_assert!(start <= MAX_FRAME + FRAME_HEADER);
        self.make_room(start + READ);
        self.received.resize(start + READ, 0);
        let result = rustix::io::read(&self.input, &mut self.received[start..]);
        self.received.truncate(start + result.unwrap_or(0));
        match result {
            Ok(0) => Other::Closed,
            Ok(_) | Err(Errno::INTR | Errno::AGAIN) => Other::Open,
            Err(_) => Other::Closed,
        }
    }

    /// The next whole frame of what was received.
    ///
    /// # Errors
    ///
    /// If it is not a frame, or `decode` refuses it.
    pub fn next<T>(
        &mut self,
        decode: impl FnOnce(&[u8]) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        let Some((content, taken)) = split_frame(&self.received[self.taken..])? else {
            return Ok(None);
        };
        let frame = decode(content)?;
        self.taken += taken;
        Ok(Some(frame))
    }

    /// Wipes the frames that were taken.
    pub fn forget_taken(&mut self) {
        self.received[..self.taken].zeroize();
    }

    /// How many bytes wait for the other end.
    pub fn backlog(&self) -> usize {
        self.queued.len() - self.written
    }

    /// What was received and not taken: for quoting what is not a frame.
    pub fn untaken(&self) -> &[u8] {
        &self.received[self.taken..]
    }

    /// What to wait for until there is something to [`receive`](Self::receive).
    pub fn input(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    /// What to wait for until there is room to [`flush`](Self::flush).
    pub fn output(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }

    /// Grows the buffer of what arrived, and wipes the smaller one: a part of a secret may be in it.
    fn make_room(&mut self, size: usize) {
        if size > self.received.capacity() {
            let mut larger = Vec::with_capacity(size.max(2 * self.received.capacity()));
            larger.extend_from_slice(&self.received);
            self.received.zeroize();
            self.received = larger;
        }
    }
}

/// As much as a pipe holds by default.
const READ: usize = 64 * 1024;

/// Moving what is left to the front costs less than keeping this much that was written.
const COMPACT: usize = 256 * 1024;
