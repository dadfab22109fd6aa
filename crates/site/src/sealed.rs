//! A connection of two gateways while they speak: lines under TLS. After the last of them it is a plain one, for bytes.
//!
//! TLS comes in records, and is read one record at a time: when the last line was heard, nothing of what follows has been taken.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Instant;

use mizzen_identity::{SiteCredentials, SitePeer, server_name};
use mizzen_tcp::Far;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::{CertificateError, ClientConnection, Connection, OtherError, ServerConnection};
use socket2::SockRef;

/// A connection whose other end has proved who it is.
pub(crate) struct Sealed {
    records: Records,
    tls: Connection,
    /// What was said and is not yet a line.
    heard: Vec<u8>,
}

impl Sealed {
    /// The end that dialled.
    pub(crate) fn dialled(
        socket: TcpStream,
        credentials: &SiteCredentials,
        deadline: Instant,
    ) -> io::Result<(Self, SitePeer)> {
        let tls = ClientConnection::new(credentials.client_config(), server_name());
        Self::shake(socket, tls.map_err(wrong)?.into(), credentials, deadline)
    }

    /// The end that was dialled.
    pub(crate) fn accepted(
        socket: TcpStream,
        credentials: &SiteCredentials,
        deadline: Instant,
    ) -> io::Result<(Self, SitePeer)> {
        let tls = ServerConnection::new(credentials.server_config());
        Self::shake(socket, tls.map_err(wrong)?.into(), credentials, deadline)
    }

    fn shake(
        socket: TcpStream,
        tls: Connection,
        credentials: &SiteCredentials,
        deadline: Instant,
    ) -> io::Result<(Self, SitePeer)> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        Far::default().set_up(&SockRef::from(&socket))?;
        let records = Records::new(socket);
        let heard = Vec::new();
        let mut sealed = Self {
            records,
            tls,
            heard,
        };
        while sealed.tls.is_handshaking() {
            sealed.flush(deadline)?;
            if sealed.tls.is_handshaking() && !sealed.read()? {
                wait(sealed.socket(), PollFlags::IN, deadline)?;
            }
            if Instant::now() >= deadline {
                return Err(ErrorKind::TimedOut.into());
            }
        }
        sealed.flush(deadline)?;
        let peer = credentials.peer(&sealed.tls).map_err(wrong)?;
        Ok((sealed, peer))
    }

    /// Says a line.
    pub(crate) fn say(
        &mut self,
        line: &impl std::fmt::Display,
        deadline: Instant,
    ) -> io::Result<()> {
        let line = format!("{line}\n");
        debug_assert!(line.len() <= MAX_LINE, "{line}");
        self.tls.writer().write_all(line.as_bytes())?;
        self.flush(deadline)
    }

    /// Hears a line, without its end.
    pub(crate) fn hear(&mut self, deadline: Instant) -> io::Result<String> {
        loop {
            if let Some(line) = self.hear_now()? {
                return Ok(line);
            }
            // However much comes: what is no line is nothing.
            if Instant::now() >= deadline {
                return Err(ErrorKind::TimedOut.into());
            }
            wait(self.socket(), PollFlags::IN, deadline)?;
        }
    }

    /// Hears a line, if there is one.
    pub(crate) fn hear_now(&mut self) -> io::Result<Option<String>> {
        for _ in 0..RECORDS {
            if let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                let rest = self.heard.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.heard, rest);
                line.pop();
                return String::from_utf8(line).map(Some).map_err(wrong);
            }
            if self.heard.len() >= MAX_LINE {
                return Err(wrong("it says more than a line may have"));
            }
            if !self.read()? {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// The connection, for bytes that follow the last line.
    pub(crate) fn into_raw(self) -> io::Result<TcpStream> {
        if !self.heard.is_empty() || self.records.is_inside() {
            return Err(wrong("it said more than was asked"));
        }
        self.records.socket.set_nonblocking(false)?;
        Ok(self.records.socket)
    }

    pub(crate) fn socket(&self) -> &TcpStream {
        &self.records.socket
    }

    /// Takes what is there of a record. Says whether there was anything.
    fn read(&mut self) -> io::Result<bool> {
        match self.tls.read_tls(&mut self.records) {
            Ok(0) if self.tls.is_handshaking() => return Err(wrong(CLOSED)),
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(error),
        }
        if let Err(error) = self.tls.process_new_packets() {
            // What went wrong is said to the other end, if it can hear it.
            let _ = self.tls.write_tls(&mut self.records.socket);
            return Err(refused(error));
        }
        let mut piece = [0; MAX_LINE];
        loop {
            match self.tls.reader().read(&mut piece) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(len) => self.heard.extend_from_slice(&piece[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    fn flush(&mut self, deadline: Instant) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.records.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    wait(self.socket(), PollFlags::OUT, deadline)?;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Reads a socket without ever taking more than the rest of one record.
struct Records {
    socket: TcpStream,
    head: [u8; HEAD],
    head_len: usize,
    body_left: usize,
}

impl Records {
    fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            head: [0; HEAD],
            head_len: 0,
            body_left: 0,
        }
    }

    fn is_inside(&self) -> bool {
        self.head_len > 0 || self.body_left > 0
    }
}

impl Read for Records {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = match self.body_left {
            0 => HEAD - self.head_len,
            left => left,
        };
        let len = left.min(buffer.len());
        let len = self.socket.read(&mut buffer[..len])?;
        if self.body_left > 0 {
            self.body_left -= len;
            return Ok(len);
        }
        self.head[self.head_len..][..len].copy_from_slice(&buffer[..len]);
        self.head_len += len;
        if self.head_len == HEAD {
            self.head_len = 0;
            // Type, version, and how many bytes follow (RFC 8446, section 5.1). Lengths that are too great are TLS's to refuse.
            self.body_left = usize::from(u16::from_be_bytes([self.head[3], self.head[4]]));
        }
        Ok(len)
    }
}

/// Waits until a socket is ready, and not beyond the deadline.
pub(crate) fn wait(socket: &TcpStream, flags: PollFlags, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    let mut fds = [PollFd::from_borrowed_fd(socket.as_fd(), flags)];
    let timeout = Timespec::try_from(left).map_err(wrong)?;
    match poll(&mut fds, Some(&timeout)) {
        Ok(0) => Err(ErrorKind::TimedOut.into()),
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Why somebody may close a connection before it is one.
const CLOSED: &str = "the other gateway closed the connection: it may not believe this one, and has told who runs it why";

/// Why a handshake failed: in our words, if it was we who did not believe the other end.
fn refused(error: rustls::Error) -> io::Error {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(ours))) => {
            wrong(ours.to_string())
        }
        rustls::Error::AlertReceived(alert) => wrong(format!(
            "the other gateway does not believe this one, or has ended ({alert:?}); what it told who runs it says why"
        )),
        error => wrong(error),
    }
}

pub(crate) fn wrong(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

/// The longest line, with its end.
pub(crate) const MAX_LINE: usize = 512;
/// Pieces of records looked at before something else is: a record may have nothing in it.
const RECORDS: usize = 64;
/// Bytes before each record.
const HEAD: usize = 5;
