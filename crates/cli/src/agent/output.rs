//! What a process writes, cut into lines.

use mizzen_proto::boot::MAX_OUTPUT;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

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

#[cfg(test)]
mod tests {
    use super::*;

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
