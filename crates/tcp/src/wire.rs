//! The bytes of a connection: what is written to it and read from it.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, readv};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};

/// A connection, as its two halves use it.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: OwnedFd,
}

impl Wire {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// Writes what the network takes of `slices`, which are `len` bytes together.
    pub(crate) fn write(&mut self, slices: &[IoSlice<'_>], len: usize) -> Result<usize, Errno> {
        // Not writev, which would raise SIGPIPE in a program that is not ours.
        let flags = SendFlags::NOSIGNAL;
        match slices {
            [one] => send(&self.socket, one, flags),
            // One slice costs the kernel less than several, and copying a few bytes costs less than that.
            _ if len <= JOINED => {
                let mut joined = [0; JOINED];
                let mut end = 0;
                for slice in slices {
                    joined[end..end + slice.len()].copy_from_slice(slice);
                    end += slice.len();
                }
                send(&self.socket, &joined[..end], flags)
            }
            _ => sendmsg(
                &self.socket,
                slices,
                &mut SendAncillaryBuffer::default(),
                flags,
            ),
        }
    }

    /// Reads what the network has, as far as there is room.
    pub(crate) fn read(&mut self, slices: &mut [IoSliceMut<'_>]) -> Result<usize, Errno> {
        match slices {
            [one] => recv(&self.socket, &mut **one, RecvFlags::empty()).map(|(len, _)| len),
            _ => readv(&self.socket, slices),
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Slices that are shorter together are joined before they are written.
const JOINED: usize = 512;
