//! TLS on one connection: its handshake, and the sealed records after it.
//!
//! During the handshake records are read one at a time and not a byte more: on a link whose records are clear, the bytes
//! behind the handshake are not TLS. Afterwards as much is read as there is.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::OwnedFd;

use mizzen_driver::PeerId;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use rustls::pki_types::{DnsName, ServerName};
use rustls::{ClientConnection, Connection, ServerConnection};

use crate::security::Security;

/// The TLS of one connection.
#[derive(Debug)]
pub(crate) struct Session {
    tls: Connection,
    /// Read from the network; what is before `taken` was taken by TLS. Without memory when there is nothing.
    incoming: Vec<u8>,
    taken: usize,
    /// Bytes of the handshake so far.
    heard: usize,
    /// Whether a record was not sealed as it should be: nothing is taken any more.
    is_broken: bool,
}

/// Why a handshake came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The other end, or the network, closed the connection.
    Closed,
    /// The other end does not speak as it should, or is not believed.
    Refused,
}

/// How far a handshake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The other end has more to say.
    Waiting,
    /// A record was taken.
    Record,
}

/// What was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Took {
    pub(crate) len: usize,
    /// Whether it was all that was there, so that an edge will follow (epoll(7)).
    pub(crate) is_all: bool,
}

impl Session {
    /// The end that dials.
    pub(crate) fn client(security: &Security) -> Result<Self, Broken> {
        // Nobody looks at the name: the certificate says which process it is of.
        let name = DnsName::try_from("mizzen").map_err(|_| Broken::Refused)?;
        let tls = ClientConnection::new(security.client.clone(), ServerName::DnsName(name));
        tls.map(|tls| Self::new(tls.into()))
            .map_err(|_| Broken::Refused)
    }

    /// The end that accepts.
    pub(crate) fn server(security: &Security) -> Result<Self, Broken> {
        let tls = ServerConnection::new(security.server.clone());
        tls.map(|tls| Self::new(tls.into()))
            .map_err(|_| Broken::Refused)
    }

    fn new(mut tls: Connection) -> Self {
        // Bounded by how much is given to be sealed at a time.
        tls.set_buffer_limit(None);
        Self {
            tls,
            incoming: Vec::new(),
            taken: 0,
            heard: 0,
            is_broken: false,
        }
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Who is at the other end, once the handshake is complete.
    pub(crate) fn peer(&self, security: &Security) -> Option<PeerId> {
        (security.identify)(&self.tls)
    }

    /// Reads the rest of one record, and nothing behind it, and takes it.
    pub(crate) fn take_record(&mut self, socket: &OwnedFd) -> Result<Progress, Broken> {
        loop {
            let needed = match self.incoming.get(3..HEADER) {
                Some(&[high, low]) => HEADER + usize::from(u16::from_be_bytes([high, low])),
                _ => HEADER,
            };
            if needed > HEADER + MAX_RECORD
                || self.heard > MAX_HANDSHAKE
                || !may_begin_record(&self.incoming)
            {
                return Err(Broken::Refused);
            }
            let missing = needed - self.incoming.len();
            if missing == 0 {
                break;
            }
            match self.receive(socket, missing) {
                Ok(0) => return Err(Broken::Closed),
                Ok(len) => self.heard += len,
                Err(Errno::AGAIN) => return Ok(Progress::Waiting),
                Err(Errno::INTR) => {}
                Err(_) => return Err(Broken::Closed),
            }
        }
        while self.taken < self.incoming.len() {
            self.feed().map_err(|_| Broken::Refused)?;
        }
        self.forget_taken();
        Ok(Progress::Record)
    }

    /// Fills `bytes`, if that much was said.
    pub(crate) fn hear(&mut self, bytes: &mut [u8]) -> Result<usize, Broken> {
        match self.tls.reader().read(bytes) {
            Ok(0) => Err(Broken::Closed),
            Ok(len) => Ok(len),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(_) => Err(Broken::Refused),
        }
    }

    /// Whether something was said that nobody has heard yet.
    pub(crate) fn has_more(&mut self) -> bool {
        let more = self.tls.process_new_packets();
        more.is_ok_and(|state| state.plaintext_bytes_to_read() > 0) || !self.incoming.is_empty()
    }

    /// Says something, or what the handshake has to say. It fits in the buffer of a new connection, or the connection is
    /// not worth having.
    pub(crate) fn say(&mut self, socket: &OwnedFd, bytes: &[u8]) -> Result<(), Errno> {
        // It cannot fail: there is no limit.
        let _ = self.tls.writer().write_all(bytes);
        while self.tls.wants_write() {
            self.transmit(socket)?;
        }
        Ok(())
    }

    /// Seals what the network takes of `slices`, a little at a time, so that it is still in the cache when it is sent.
    pub(crate) fn write(
        &mut self,
        socket: &OwnedFd,
        slices: &[IoSlice<'_>],
        len: usize,
    ) -> Result<usize, Errno> {
        self.flush(socket)?;
        if len <= SEALED {
            let written = self.seal(slices);
            self.flush_or_wait(socket)?;
            return Ok(written);
        }
        let mut written = 0;
        let mut group = Group::default();
        for slice in slices {
            let mut rest = &slice[..];
            while !rest.is_empty() {
                rest = group.add(rest);
                if group.is_full() {
                    written += self.seal(group.take());
                    match self.flush(socket) {
                        Ok(()) => {}
                        // The rest of what is sealed goes when there is room.
                        Err(Errno::AGAIN) => return Ok(written),
                        Err(errno) => return Err(errno),
                    }
                }
            }
        }
        written += self.seal(group.take());
        self.flush_or_wait(socket)?;
        Ok(written)
    }

    /// Sends what is sealed. `AGAIN` if the network does not take all of it.
    pub(crate) fn flush(&mut self, socket: &OwnedFd) -> Result<(), Errno> {
        while self.tls.wants_write() {
            match self.transmit(socket) {
                Ok(()) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Reads what there is, as far as there is room. What is sealed is read into `scratch` first.
    pub(crate) fn read(
        &mut self,
        socket: &OwnedFd,
        slices: &mut [IoSliceMut<'_>],
        scratch: &mut Scratch,
    ) -> Result<Took, Errno> {
        let mut sealed: &[u8] = &[];
        let mut took = Took {
            len: 0,
            is_all: false,
        };
        for slice in slices {
            let mut at = 0;
            while at < slice.len() {
                match self.tls.reader().read(&mut slice[at..]) {
                    Ok(more) if more > 0 => {
                        at += more;
                        took.len += more;
                        continue;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    // An end, with or without a word.
                    Ok(_) | Err(_) => return Ok(took),
                }
                if self.is_broken {
                    // What came before is handed out first.
                    took.is_all = false;
                    return if took.len > 0 {
                        Ok(took)
                    } else {
                        Err(Errno::BADMSG)
                    };
                }
                if self.taken < self.incoming.len() {
                    self.is_broken = self.feed().is_err();
                    self.forget_taken();
                } else if !sealed.is_empty() {
                    self.is_broken = feed(&mut self.tls, &mut sealed).is_err();
                } else if took.is_all && took.len > 0 {
                    return Ok(took);
                } else {
                    match recv(socket, scratch.bytes(), RecvFlags::empty()) {
                        Ok((_, len)) if len > 0 => {
                            sealed = &scratch.0[..len];
                            took.is_all = len < SCRATCH;
                        }
                        // What came before the end is handed out first.
                        Ok(_) => return Ok(took),
                        Err(Errno::AGAIN) if took.len > 0 => {
                            took.is_all = true;
                            return Ok(took);
                        }
                        Err(errno) => return Err(errno),
                    }
                }
            }
        }
        self.incoming.extend_from_slice(sealed);
        took.is_all = false;
        Ok(took)
    }

    /// Reads up to `len` bytes of a handshake.
    fn receive(&mut self, socket: &OwnedFd, len: usize) -> Result<usize, Errno> {
        let mut bytes = [0; 2048];
        let len = len.min(bytes.len());
        let (_, len) = recv(socket, &mut bytes[..len], RecvFlags::empty())?;
        self.incoming.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    /// Has TLS take some of `incoming`.
    fn feed(&mut self) -> Result<(), ()> {
        let mut rest = &self.incoming[self.taken..];
        let before = rest.len();
        feed(&mut self.tls, &mut rest)?;
        self.taken += before - rest.len();
        Ok(())
    }

    fn forget_taken(&mut self) {
        if self.taken == self.incoming.len() {
            (self.incoming, self.taken) = (Vec::new(), 0);
        }
    }

    fn seal(&mut self, slices: &[IoSlice<'_>]) -> usize {
        // It cannot fail: there is no limit.
        self.tls.writer().write_vectored(slices).unwrap_or(0)
    }

    fn flush_or_wait(&mut self, socket: &OwnedFd) -> Result<(), Errno> {
        match self.flush(socket) {
            Err(Errno::AGAIN) => Ok(()),
            other => other,
        }
    }

    fn transmit(&mut self, socket: &OwnedFd) -> Result<(), Errno> {
        match self.tls.write_tls(&mut Outlet(socket)) {
            Ok(_) => Ok(()),
            Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
        }
    }

    /// Whether something is sealed that the network has not taken.
    pub(crate) fn has_unsent(&self) -> bool {
        self.tls.wants_write()
    }
}

/// Has TLS take some of `sealed`. It takes nothing only when it is full, and its user empties it before.
fn feed(tls: &mut Connection, sealed: &mut &[u8]) -> Result<(), ()> {
    let taken = tls.read_tls(sealed).map_err(|_| ())?;
    tls.process_new_packets().map_err(|_| ())?;
    if taken == 0 { Err(()) } else { Ok(()) }
}

/// Whether a record may begin with these bytes: one of the four kinds of TLS 1.3, then a version whose first byte is 3.
/// What does not is not waited for: its length means nothing.
fn may_begin_record(bytes: &[u8]) -> bool {
    let is_kind = bytes.first().is_none_or(|kind| (20..=23).contains(kind));
    is_kind && bytes.get(1).is_none_or(|&version| version == 3)
}

/// Slices that are sealed together.
struct Group<'a> {
    slices: [IoSlice<'a>; MAX_GROUP],
    used: usize,
    len: usize,
}

impl Default for Group<'_> {
    fn default() -> Self {
        Self {
            slices: [IoSlice::new(&[]); MAX_GROUP],
            used: 0,
            len: 0,
        }
    }
}

impl<'a> Group<'a> {
    /// Adds what fits of `bytes`, and returns the rest.
    fn add(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (now, later) = bytes.split_at(bytes.len().min(SEALED - self.len));
        self.slices[self.used] = IoSlice::new(now);
        self.used += 1;
        self.len += now.len();
        later
    }

    fn is_full(&self) -> bool {
        self.len == SEALED || self.used == MAX_GROUP
    }

    fn take(&mut self) -> &[IoSlice<'a>] {
        let used = std::mem::take(&mut self.used);
        self.len = 0;
        &self.slices[..used]
    }
}

/// Memory that all sessions of a driver read into, in turn.
#[derive(Debug, Default)]
pub(crate) struct Scratch(Vec<u8>);

impl Scratch {
    fn bytes(&mut self) -> &mut [u8] {
        self.0.resize(SCRATCH, 0);
        &mut self.0
    }
}

/// A socket that TLS writes to.
struct Outlet<'a>(&'a OwnedFd);

impl Write for Outlet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match slices {
            [one] => self.write(one),
            _ => {
                let mut nothing = SendAncillaryBuffer::default();
                Ok(sendmsg(self.0, slices, &mut nothing, SendFlags::NOSIGNAL)?)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The bytes in front of a record: its kind, a version, its length.
const HEADER: usize = 5;
/// The longest record: 2¹⁴ bytes, and 256 for its seal (RFC 8446 section 5.2).
const MAX_RECORD: usize = (1 << 14) + 256;
/// The longest handshake of one side: a chain of certificates is at most 16 KiB, and the rest is small.
const MAX_HANDSHAKE: usize = 64 * 1024;
/// Sealed at a time.
const SEALED: usize = 64 * 1024;
/// Slices sealed at a time.
const MAX_GROUP: usize = 16;
/// Read at a time.
const SCRATCH: usize = 64 * 1024;
