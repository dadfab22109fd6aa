//! What the launcher prints: the lines of the processes, and its own sentences.
//!
//! Never blocks: a terminal that is stopped, or a pager that does not read, must not keep the launcher from hearing of
//! signals and deaths.
//!
//! Where standard error is a terminal, bars may stand below the last line. They are lifted before the next line is printed, and
//! drawn again when all lines are.

use std::io::{IsTerminal, Write};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};

use mizzen_proto::boot::{Progress, Stream};
use rustix::fs::FileType;
use rustix::io::Errno;

use super::bars::Bars;

/// Standard output and error.
#[derive(Debug)]
pub(crate) struct Printer {
    label: Label,
    out: Queue,
    err: Queue,
    /// Lines of the log that were not yet printed: threads of the launcher add to them.
    logged: Arc<Mutex<Vec<u8>>>,
    /// Only on a terminal.
    bars: Option<Bars>,
    /// Whether standard output is a terminal, too: bars must be lifted before anything is written there.
    shares_terminal: bool,
    /// Standard output waits until standard error is written: the bars are being lifted.
    lifting: bool,
    /// What was printed last has not ended its line: no bar may begin there.
    within_line: bool,
}

/// Whether lines carry the rank of their process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    Rank,
    None,
}

#[derive(Debug)]
struct Queue {
    stream: Stream,
    bytes: Vec<u8>,
    written: usize,
    /// The most that can be written when there is room, without waiting.
    step: usize,
    closed: bool,
}

impl Printer {
    pub(crate) fn new(label: Label) -> Self {
        Self {
            label,
            out: Queue::new(Stream::Out),
            err: Queue::new(Stream::Err),
            logged: Arc::default(),
            bars: std::io::stderr().is_terminal().then(Bars::new),
            shares_terminal: std::io::stdout().is_terminal(),
            lifting: false,
            within_line: false,
        }
    }

    /// Prints whole lines of a process, or the end of what it wrote.
    pub(crate) fn print(&mut self, rank: u32, stream: Stream, bytes: &[u8]) {
        let label = self.label;
        if self.queue(stream).closed {
            return;
        }
        if stream == Stream::Err || self.shares_terminal {
            self.lift_bars();
            let ends = label == Label::Rank || bytes.last().is_none_or(|byte| *byte == b'\n');
            self.within_line = !ends;
        }
        let queue = self.queue(stream);
        match label {
            Label::None => queue.bytes.extend_from_slice(bytes),
            Label::Rank => append_labelled(&mut queue.bytes, rank, bytes),
        }
    }

    /// Prints a sentence of our own; it is lost if too many wait to be read.
    pub(crate) fn say(&mut self, sentence: &str) {
        if self.err.closed || self.err.backlog() > MAX_SAID {
            return;
        }
        self.lift_bars();
        self.err
            .bytes
            .extend_from_slice(format!("mizzen: {sentence}\n").as_bytes());
    }

    /// Has events of the launcher itself printed, if the user asked for them.
    pub(crate) fn show_log(&mut self) {
        let logged = Arc::clone(&self.logged);
        mizzen::log::show_if_asked_on(move |line| {
            let mut logged = logged.lock().unwrap_or_else(PoisonError::into_inner);
            // Nobody reads: what cannot be shown is not kept.
            if logged.len() < MAX_SAID {
                logged.extend_from_slice(b"mizzen: ");
                logged.extend_from_slice(line);
            }
        });
    }

    /// Prints what was logged since the last time.
    pub(crate) fn print_log(&mut self) {
        let logged =
            std::mem::take(&mut *self.logged.lock().unwrap_or_else(PoisonError::into_inner));
        if !logged.is_empty() && !self.err.closed {
            self.lift_bars();
            self.err.bytes.extend(logged);
        }
    }

    /// Whether there are bars; if not, lines say the same.
    pub(crate) fn has_bars(&self) -> bool {
        self.bars.is_some()
    }

    /// Draws a bar for each of these, unless lines wait to be printed. `false` if so.
    pub(crate) fn draw_bars(&mut self, maps: &[Progress]) -> bool {
        let Some(bars) = self.bars.as_mut().filter(|_| !self.err.closed) else {
            return true;
        };
        if self.within_line || self.out.backlog() > 0 || self.err.backlog() > 0 {
            return false;
        }
        self.err.bytes.extend(bars.draw(maps));
        true
    }

    /// Takes the bars away, until they are drawn again.
    pub(crate) fn lift_bars(&mut self) {
        let Some(bars) = self.bars.as_mut().filter(|bars| bars.is_drawn()) else {
            return;
        };
        let bytes = bars.lift();
        if !self.err.closed {
            self.err.bytes.extend(bytes);
            self.lifting = self.shares_terminal;
        }
    }

    /// Whether bars stand below the last line.
    pub(crate) fn are_bars_drawn(&self) -> bool {
        self.bars.as_ref().is_some_and(Bars::is_drawn)
    }

    /// Writes what there is room for, as told by poll.
    pub(crate) fn write(&mut self, stream: Stream) {
        self.queue(stream).write();
        self.lifting &= self.err.backlog() > 0;
    }

    /// Forgets what is not yet written to standard output.
    pub(crate) fn discard(&mut self) {
        self.out.close();
    }

    /// Where there is something to write.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Stream> + '_ {
        [&self.out, &self.err]
            .into_iter()
            .filter(|queue| queue.backlog() > 0 && (queue.stream == Stream::Err || !self.lifting))
            .map(|queue| queue.stream)
    }

    pub(crate) fn backlog(&self) -> usize {
        self.out.backlog() + self.err.backlog()
    }

    /// Whether nobody reads standard output any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.out.closed
    }

    fn queue(&mut self, stream: Stream) -> &mut Queue {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }
}

impl Queue {
    fn new(stream: Stream) -> Self {
        let regular = rustix::fs::fstat(descriptor(stream))
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        let step = if regular { usize::MAX } else { ATOMIC };
        Self {
            stream,
            bytes: Vec::new(),
            written: 0,
            step,
            closed: false,
        }
    }

    fn write(&mut self) {
        let end = self.bytes.len().min(self.written.saturating_add(self.step));
        match rustix::io::write(descriptor(self.stream), &self.bytes[self.written..end]) {
            Ok(count) => self.written += count,
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.close(),
        }
        if self.written == self.bytes.len() {
            self.bytes.clear();
            self.written = 0;
        } else if self.written > COMPACT {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }

    fn close(&mut self) {
        self.closed = true;
        self.bytes.clear();
        self.written = 0;
    }

    /// Nothing, if nobody reads it.
    fn backlog(&self) -> usize {
        if self.closed {
            0
        } else {
            self.bytes.len() - self.written
        }
    }
}

pub(crate) fn descriptor(stream: Stream) -> BorrowedFd<'static> {
    match stream {
        Stream::Out => rustix::stdio::stdout(),
        Stream::Err => rustix::stdio::stderr(),
    }
}

/// Prints a sentence of ours, before there is a printer.
pub(crate) fn say(sentence: &str) {
    let _ = writeln!(std::io::stderr(), "mizzen: {sentence}");
}

fn append_labelled(queue: &mut Vec<u8>, rank: u32, bytes: &[u8]) {
    let label = format!("[{rank}] ");
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        queue.extend_from_slice(label.as_bytes());
        queue.extend_from_slice(line);
    }
    // The next line must not follow on this one.
    if bytes.last().is_some_and(|byte| *byte != b'\n') {
        queue.push(b'\n');
    }
}

/// `PIPE_BUF`: a pipe that has room has room for this much.
const ATOMIC: usize = 4096;

/// What waits on standard error before sentences of ours are lost: more than what processes may write there, and ten
/// thousands of sentences.
const MAX_SAID: usize = 16 << 20;

/// Moving what is left to the front costs less than keeping this much that was written.
const COMPACT: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_a_label_and_an_end() {
        let mut out = Vec::new();
        append_labelled(&mut out, 7, b"one\n\ntwo\xff\0");
        append_labelled(&mut out, 12, b"three\n");
        assert_eq!(out, b"[7] one\n[7] \n[7] two\xff\0\n[12] three\n");
    }
}
