//! Two drivers, and a stranger on the path between them who sees and changes every byte.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use mizzen_driver::{Driver, LossReason};
use mizzen_tcp::{Records, TcpOptions};

use crate::bench::{Bench, ME, OTHER, PATIENCE, listener};
use crate::common::Job;

pub(crate) const TAMPERED: LossReason =
    LossReason::Violation("records that are not sealed as they should be");

/// How much longer a sealed record is than what it carries: the kind of its content, and the proof (RFC 8446, 5.2).
const SEAL: usize = 17;

/// `a` is `ME` and dials; `b` is `OTHER` and accepts.
pub(crate) struct Pair {
    pub(crate) a: Bench,
    pub(crate) b: Bench,
    listener: TcpListener,
    at: mizzen_driver::Locator,
    pub(crate) path: Option<Path>,
}

/// The path between the two.
pub(crate) struct Path {
    pub(crate) to_a: Side,
    pub(crate) to_b: Side,
}

/// One side of the path: its connection, and what came on it.
pub(crate) struct Side {
    pub(crate) stream: TcpStream,
    /// What was said so far.
    pub(crate) said: Vec<u8>,
    /// How much of it was passed on.
    passed: usize,
    pub(crate) is_closed: bool,
}

impl Side {
    fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        Self {
            stream,
            said: Vec::new(),
            passed: 0,
            is_closed: false,
        }
    }

    pub(crate) fn listen(&mut self) {
        let mut bytes = [0; 4096];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => break self.is_closed = true,
                Ok(len) => self.said.extend(&bytes[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => break self.is_closed = true,
            }
        }
    }

    /// Changes a bit of what was said, unless it is passed on.
    pub(crate) fn flip(&mut self, at: usize, bit: usize) -> bool {
        let is_time = self.passed <= at;
        self.said[at] ^= u8::from(is_time) << bit;
        is_time
    }

    /// Whether this place is in the version of a record, which means nothing (RFC 8446, 5.1).
    pub(crate) fn is_version(&self, at: usize) -> bool {
        let mut start = 0;
        while start + 5 <= at {
            let len = [self.said[start + 3], self.said[start + 4]];
            start += 5 + usize::from(u16::from_be_bytes(len));
        }
        (1..=2).contains(&at.wrapping_sub(start))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        // Who has closed need not hear it.
        let _ = self.stream.write_all(bytes);
    }

    /// What was said and not yet passed on.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let bytes = self.said[self.passed..].to_vec();
        self.passed = self.said.len();
        bytes
    }

    /// Whether sealed records that carry this many bytes were said, whole, and not yet passed on.
    pub(crate) fn holds(&self, mut len: usize) -> bool {
        let mut bytes = &self.said[self.passed..];
        while let [_, _, _, high, low, rest @ ..] = bytes {
            let sealed = usize::from(u16::from_be_bytes([*high, *low]));
            let Some(rest) = rest.get(sealed..) else {
                return false;
            };
            len = len.saturating_sub(sealed.saturating_sub(SEAL));
            bytes = rest;
        }
        bytes.is_empty() && len == 0
    }

    /// The same, record by record.
    pub(crate) fn take_records(&mut self) -> VecDeque<Vec<u8>> {
        let mut bytes = &self.take()[..];
        let mut records = VecDeque::new();
        while !bytes.is_empty() {
            let len = 5 + usize::from(u16::from_be_bytes([bytes[3], bytes[4]]));
            records.push_back(bytes[..len].to_vec());
            bytes = &bytes[len..];
        }
        records
    }
}

impl Pair {
    pub(crate) fn new(a: Records, b: Records) -> Self {
        Self::with(a, b, |options| options)
    }

    pub(crate) fn with(a: Records, b: Records, change: fn(TcpOptions) -> TcpOptions) -> Self {
        let job = Arc::new(Job::new([7; 16]));
        let (listener, at) = listener();
        Self {
            a: Bench::of(&job, ME, a, change),
            b: Bench::of(&job, OTHER, b, change),
            listener,
            at,
            path: None,
        }
    }

    /// Two that are linked.
    pub(crate) fn linked(records: Records) -> Self {
        let mut pair = Self::new(records, records);
        pair.link();
        pair
    }

    pub(crate) fn link(&mut self) {
        self.dial();
        self.go_on("a link", |pair| {
            !pair.a.seen.is_empty() && !pair.b.seen.is_empty()
        });
        self.a.expect_connected(OTHER);
        self.b.expect_connected(ME);
    }

    /// Has `a` dial `b`, by way of the path.
    pub(crate) fn dial(&mut self) {
        self.a.driver.connect(OTHER, &self.at).unwrap();
        let to_a = Side::new(self.listener.accept().unwrap().0);
        let to_b = Side::new(self.b.stranger(b""));
        self.path = Some(Path { to_a, to_b });
    }

    pub(crate) fn path(&mut self) -> &mut Path {
        self.path.as_mut().unwrap()
    }

    /// Passes everything on until something is so.
    pub(crate) fn go_on(&mut self, what: &str, mut is_so: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            self.step(|path| path.pass());
            assert!(Instant::now() < deadline, "waited in vain for {what}");
        }
    }

    /// Lets both ends go on, and the path do this.
    pub(crate) fn step(&mut self, mut act: impl FnMut(&mut Path)) {
        self.a.poll();
        self.b.poll();
        if let Some(path) = &mut self.path {
            path.to_a.listen();
            path.to_b.listen();
            act(path);
        }
    }

    /// Has `a` send this frame, and waits until the path has heard it: what was written need not be readable at once.
    pub(crate) fn send_frame(&mut self, frame: &[u8]) {
        let slices = [IoSlice::new(frame)];
        self.a.driver.send_frame(OTHER, &slices).unwrap();
        let before = self.path().to_a.said.len();
        let is_sealed = self.a.records == Records::Sealed;
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.step(|_| {});
            let side = &self.path().to_a;
            let is_heard = side.said.len() - before > frame.len();
            if is_heard && (!is_sealed || side.holds(frame.len())) {
                break;
            }
            assert!(Instant::now() < deadline, "a frame was not sent");
        }
    }

    /// What `a` has on its way to `b` after sending these frames, record by record.
    pub(crate) fn send(&mut self, frames: &[&[u8]]) -> VecDeque<Vec<u8>> {
        for frame in frames {
            self.send_frame(frame);
        }
        let records = self.path().to_a.take_records();
        assert_eq!(records.len(), frames.len());
        records
    }

    /// The same, of one frame, whatever its bytes look like.
    pub(crate) fn send_bytes(&mut self, frame: &[u8]) -> Vec<u8> {
        self.send_frame(frame);
        self.path().to_a.take()
    }

    /// Writes this to `b`.
    pub(crate) fn deliver<'a>(&mut self, records: impl IntoIterator<Item = &'a Vec<u8>>) {
        let bytes: Vec<u8> = records.into_iter().flatten().copied().collect();
        self.path().to_b.write(&bytes);
    }

    /// What `b` reports next.
    pub(crate) fn next_at_b(&mut self) -> &str {
        self.go_on("something at b", |pair| !pair.b.seen.is_empty());
        &self.b.seen[0]
    }

    pub(crate) fn expect_frame_at_b(&mut self, bytes: &[u8]) {
        self.b
            .expect(mizzen_driver::Event::Frame { peer: ME, bytes });
    }

    pub(crate) fn expect_lost_at_b(&mut self, reason: LossReason) {
        self.b
            .expect(mizzen_driver::Event::Lost { peer: ME, reason });
        self.b.expect_nothing();
    }
}

impl Path {
    pub(crate) fn pass(&mut self) {
        let (from_a, from_b) = (self.to_a.take(), self.to_b.take());
        self.to_b.write(&from_a);
        self.to_a.write(&from_b);
        for (from, to) in [(&self.to_a, &self.to_b), (&self.to_b, &self.to_a)] {
            if from.is_closed {
                // It may be closed on both sides.
                let _ = to.stream.shutdown(std::net::Shutdown::Write);
            }
        }
    }
}
