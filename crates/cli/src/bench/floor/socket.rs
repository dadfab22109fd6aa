//! The floor of a network: a bare TCP connection over the same interface, or what is put on one.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use anyhow::bail;

use crate::bench::buffers::Buffers;
use crate::bench::carrier::Carrier;

/// What the table calls it.
pub(crate) const NAME: &str = "bare TCP socket, polled";
pub(crate) const NAME_ASLEEP: &str = "bare TCP socket, sleeping in read";

/// How a side waits for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Asks the kernel again and again.
    Polling,
    /// Sleeps in the kernel.
    Asleep,
}

/// Messages up to here are read into a buffer, several at once if they are there.
const SMALL: usize = 4096;
const READ_AHEAD: usize = 64 << 10;

pub(crate) struct Socket<S> {
    stream: S,
    buffers: Buffers,
    ahead: Vec<u8>,
    /// The bytes read ahead and not used yet are from here to there.
    from: usize,
    to: usize,
}

/// What bytes go through.
pub(crate) trait Stream: Read + Write {
    fn set_nonblocking(&self, nonblocking: bool) -> std::io::Result<()>;
}

impl Stream for TcpStream {
    fn set_nonblocking(&self, nonblocking: bool) -> std::io::Result<()> {
        TcpStream::set_nonblocking(self, nonblocking)
    }
}

impl<S: Stream> Socket<S> {
    pub(crate) fn new(stream: S, waiting: Waiting, buffers: Buffers) -> anyhow::Result<Self> {
        stream.set_nonblocking(waiting == Waiting::Polling)?;
        Ok(Self {
            stream,
            buffers,
            ahead: vec![0; READ_AHEAD],
            from: 0,
            to: 0,
        })
    }
}

impl<S: Stream> Carrier for Socket<S> {
    fn send(&mut self) -> anyhow::Result<()> {
        let mut left = self.buffers.outgoing();
        while !left.is_empty() {
            let written = moved(self.stream.write(left))?;
            left = &left[written..];
        }
        // What a stream keeps back it gives when asked.
        while let Err(error) = self.stream.flush() {
            moved(Err(error))?;
        }
        Ok(())
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        let target = self.buffers.incoming();
        if target.len() > SMALL {
            let mut at = 0;
            while at < target.len() {
                at += moved(some(self.stream.read(&mut target[at..])))?;
            }
            return Ok(());
        }
        while self.to - self.from < target.len() {
            self.ahead.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
            self.to += moved(some(self.stream.read(&mut self.ahead[self.to..])))?;
        }
        target.copy_from_slice(&self.ahead[self.from..self.from + target.len()]);
        self.from += target.len();
        Ok(())
    }

    fn mark(&mut self, mark: u64) {
        self.buffers.mark(mark);
    }

    fn marked(&self) -> u64 {
        self.buffers.marked()
    }
}

/// How many bytes were moved; none if the kernel was not ready.
fn moved(result: std::io::Result<usize>) -> anyhow::Result<usize> {
    match result {
        Ok(bytes) => Ok(bytes),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(0)
        }
        Err(error) => bail!("the bare TCP connection was lost: {error}"),
    }
}

/// Reading nothing is the end of the connection.
fn some(result: std::io::Result<usize>) -> std::io::Result<usize> {
    match result {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        other => other,
    }
}
