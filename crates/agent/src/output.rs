//! What processes write: cut into lines, and held back while the launcher has no room for it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use mizzen_proto::boot::{FromAgent, MAX_OUTPUT, OUTPUT_ROOM, Stream};
use rustix::io::Errno;

/// The reading end of a process's standard output or error.
#[derive(Debug)]
pub(crate) struct Pipe {
    fd: OwnedFd,
    /// The beginning of a line whose end has not come.
    partial: Vec<u8>,
}

/// What a read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Read {
    Some,
    Nothing,
    End,
}

impl Pipe {
    pub(crate) fn new(fd: OwnedFd) -> Result<Self, Errno> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self {
            fd,
            partial: Vec::new(),
        })
    }

    /// Reads once, and hands over whole lines; or a part of a line that is too long to wait for its end.
    pub(crate) fn read(&mut self, sink: &mut dyn FnMut(Vec<u8>)) -> Read {
        let start = self.partial.len();
        self.partial.resize(start + READ, 0);
        let result =
            rustix::io::retry_on_intr(|| rustix::io::read(&self.fd, &mut self.partial[start..]));
        self.partial.truncate(start + result.unwrap_or(0));
        match result {
            Ok(0) => Read::End,
            Ok(_) => {
                cut(&mut self.partial, start, sink);
                Read::Some
            }
            Err(Errno::AGAIN) => Read::Nothing,
            Err(_) => Read::End,
        }
    }

    /// Hands over what is left: a last line without an end.
    pub(crate) fn finish(&mut self, sink: &mut dyn FnMut(Vec<u8>)) {
        if !self.partial.is_empty() {
            sink(std::mem::take(&mut self.partial));
        }
    }
}

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Output on its way to the launcher, which grants room for it. What else an agent has to say does not wait for room.
///
/// Pipes are read only while [`takes_more`](Outlet::takes_more), so that their writers wait. What an ended process left in
/// its pipes must be taken at once, before its rank may live again: hence the queue.
#[derive(Debug)]
pub(crate) struct Outlet {
    /// What the launcher has room for. Negative after a frame that was longer than that.
    room: i64,
    held: VecDeque<FromAgent>,
    held_bytes: usize,
}

impl Outlet {
    pub(crate) fn new() -> Self {
        Self {
            room: i64::from(OUTPUT_ROOM),
            held: VecDeque::new(),
            held_bytes: 0,
        }
    }

    /// Takes what a process wrote. Drops it, and says so in its place, if too much is held already.
    pub(crate) fn push(&mut self, rank: u32, stream: Stream, bytes: Vec<u8>) {
        let bytes = if self.held_bytes < MAX_HELD {
            bytes
        } else {
            format!(
                "mizzen: {} bytes that rank {rank} wrote before its end are lost: nobody reads what the job prints\n",
                bytes.len()
            )
            .into_bytes()
        };
        self.held_bytes += bytes.len();
        self.held.push_back(FromAgent::Output {
            rank,
            stream,
            bytes,
        });
    }

    pub(crate) fn add_room(&mut self, bytes: u32) {
        self.room = self.room.saturating_add(i64::from(bytes));
    }

    /// The next frame that there is room for.
    pub(crate) fn poll(&mut self) -> Option<FromAgent> {
        if self.room <= 0 {
            return None;
        }
        let frame = self.held.pop_front()?;
        if let FromAgent::Output { bytes, .. } = &frame {
            self.held_bytes -= bytes.len();
            self.room -= i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        }
        Some(frame)
    }

    pub(crate) fn takes_more(&self) -> bool {
        self.room > 0 && self.held.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

/// Cuts whole lines off `partial`, of which the first `seen` bytes hold no line end.
fn cut(partial: &mut Vec<u8>, seen: usize, sink: &mut dyn FnMut(Vec<u8>)) {
    if let Some(last) = partial[seen..].iter().rposition(|byte| *byte == b'\n') {
        let rest = partial.split_off(seen + last + 1);
        sink(std::mem::replace(partial, rest));
    }
    if partial.len() > LONGEST_LINE {
        sink(std::mem::take(partial));
    }
}

/// As much as a pipe holds by default.
const READ: usize = 64 * 1024;

/// A longer line is handed over in parts. A part, and one read more, fit a frame.
const LONGEST_LINE: usize = MAX_OUTPUT - 2 * READ;

/// What is held of ended processes while there is no room: a thousand pipes that were full. A job whose processes die and
/// are started again while nobody reads would hold more and more.
const MAX_HELD: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(outlet: &mut Outlet) -> Vec<usize> {
        let frames = std::iter::from_fn(|| outlet.poll());
        frames
            .map(|frame| match frame {
                FromAgent::Output { bytes, .. } => bytes.len(),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn output_waits_for_room() {
        let mut outlet = Outlet::new();
        let half = OUTPUT_ROOM as usize / 2;
        for _ in 0..4 {
            outlet.push(0, Stream::Out, vec![b'x'; half + 1]);
        }
        assert_eq!(lengths(&mut outlet), [half + 1; 2]);
        assert!(!outlet.takes_more() && !outlet.is_empty());
        outlet.add_room(3);
        assert_eq!(lengths(&mut outlet), [half + 1]);
        outlet.add_room(u32::MAX);
        assert_eq!(lengths(&mut outlet), [half + 1]);
        assert!(outlet.takes_more() && outlet.is_empty());
    }

    #[test]
    fn what_is_held_has_a_limit_and_its_loss_is_told() {
        let mut outlet = Outlet::new();
        for _ in 0..2 * MAX_HELD / MAX_OUTPUT {
            outlet.push(3, Stream::Err, vec![b'x'; MAX_OUTPUT]);
        }
        assert!(outlet.held_bytes < MAX_HELD + MAX_OUTPUT);
        let Some(FromAgent::Output { bytes, .. }) = outlet.held.back() else {
            panic!("the loss is told");
        };
        let said = String::from_utf8_lossy(bytes);
        assert!(said.contains("1048576 bytes that rank 3 wrote"), "{said}");
    }

    fn pieces(writes: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut partial, mut out) = (Vec::new(), Vec::new());
        for write in writes {
            let seen = partial.len();
            partial.extend_from_slice(write);
            cut(&mut partial, seen, &mut |piece| out.push(piece));
        }
        if !partial.is_empty() {
            out.push(partial);
        }
        out
    }

    #[test]
    fn lines_are_handed_over_whole() {
        assert_eq!(
            pieces(&[b"a\nb", b"c\n", b"d"]),
            [&b"a\n"[..], b"bc\n", b"d"]
        );
        assert_eq!(pieces(&[b"\n\n", b"\0\xff\n"]), [&b"\n\n"[..], b"\0\xff\n"]);
    }

    #[test]
    fn nothing_is_lost_of_a_line_without_an_end() {
        let write = vec![b'x'; READ];
        let writes = vec![&write[..]; 40];
        let pieces = pieces(&writes);
        assert!(pieces.len() > 1);
        assert!(pieces.iter().all(|piece| piece.len() <= MAX_OUTPUT));
        assert_eq!(pieces.concat().len(), 40 * READ);
    }
}
