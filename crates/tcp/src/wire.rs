//! The bytes of a connection: what is written to it and read from it, sealed or in clear.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, readv};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};

use crate::session::{Scratch, Session, Took};

/// A connection, as its two halves use it.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: OwnedFd,
    /// What seals its bytes, unless they are as they are.
    session: Option<Box<Session>>,
}

impl Wire {
    pub(crate) fn new(socket: OwnedFd, session: Option<Box<Session>>) -> Self {
        Self { socket, session }
    }

    /// Whether the network has not taken all that was written.
    pub(crate) fn has_unsent(&self) -> bool {
        self.session
            .as_ref()
            .is_some_and(|session| session.has_unsent())
    }

    /// Sends what the network has not taken. `AGAIN` if there still is no room for all of it.
    pub(crate) fn flush(&mut self) -> Result<(), Errno> {
        match &mut self.session {
            Some(session) => session.flush(&self.socket),
            None => Ok(()),
        }
    }

    /// Writes what the network takes of `slices`, which are `len` bytes together.
    pub(crate) fn write(&mut self, slices: &[IoSlice<'_>], len: usize) -> Result<usize, Errno> {
        if let Some(session) = &mut self.session {
            return session.write(&self.socket, slices, len);
        }
        // Not writev, which would raise SIGPIPE in a program that is not ours.
        let flags = SendFlags::NOSIGNAL;
        match slices {
            [one] => send(&self.socket, one, flags),
            // One slice costs the kernel less than several, and copying a few bytes costs less than that.
            _ if len <= JOINED => {
                let joined: [u8; JOINED] = join(slices.iter().map(|slice| &slice[..]));
                send(&self.socket, &joined[..len], flags)
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
    pub(crate) fn read(
        &mut self,
        slices: &mut [IoSliceMut<'_>],
        scratch: &mut Scratch,
    ) -> Result<Took, Errno> {
        if let Some(session) = &mut self.session {
            return session.read(&self.socket, slices, scratch);
        }
        let (offered, len) = match slices {
            [one] => (
                one.len(),
                recv(&self.socket, &mut **one, RecvFlags::empty())?.1,
            ),
            _ => (
                slices.iter().map(|slice| slice.len()).sum(),
                readv(&self.socket, slices)?,
            ),
        };
        let is_all = len < offered;
        Ok(Took { len, is_all })
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Slices that are shorter together are joined before they are written.
pub(crate) const JOINED: usize = 512;

/// The shortest are joined in less memory: to clear the rest of it takes longer than they do.
pub(crate) const JOINED_SHORT: usize = 128;

/// Slices of at most `N` bytes together, one behind the other.
#[inline]
pub(crate) fn join<'a, const N: usize>(slices: impl Iterator<Item = &'a [u8]>) -> [u8; N] {
    let mut joined = [0; N];
    let mut end = 0;
    for slice in slices {
        joined[end..end + slice.len()].copy_from_slice(slice);
        end += slice.len();
    }
    joined
}
