//! Sockets that carry packets and descriptors between two processes of a host.
//!
//! `SOCK_SEQPACKET`: reliable, in order, with boundaries between packets, and the end of the other side is seen. What arrives
//! is foreign: sizes and numbers of descriptors are limited, and what exceeds them is closed at once, so that a peer
//! cannot fill our descriptor table (CVE-2022-0669, CVE-2020-10726).

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::io::{Errno, FdFlags};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};

/// The largest packet, in bytes. A socket of default size holds three of them.
pub const MAX_PACKET: usize = 64 * 1024;

/// The most descriptors in one packet: a socket and a process, or two segments, with room for one more such pair.
pub const MAX_FDS: usize = 4;

/// One end of a connection to another process of this host. Any thread may send and receive.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
}

/// A packet that arrived.
#[derive(Debug)]
pub struct Received {
    /// How many bytes of the buffer it fills: never zero.
    pub len: usize,
    /// The descriptors that came with it, closed on exec.
    pub fds: Vec<OwnedFd>,
}

impl Socket {
    /// Makes two ends, connected to each other, closed on exec.
    ///
    /// # Errors
    ///
    /// [`SocketError::Os`] when out of descriptors or memory.
    pub fn pair() -> Result<(Self, Self), SocketError> {
        let (a, b) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(SocketError::Os)?;
        Ok((Self { fd: a }, Self { fd: b }))
    }

    /// Takes a descriptor that was inherited or received, if it is a Unix packet socket, and has it closed on exec.
    ///
    /// # Errors
    ///
    /// [`SocketError::NotSocket`] if it is anything else; it is closed then.
    pub fn from_fd(fd: OwnedFd) -> Result<Self, SocketError> {
        let domain =
            rustix::net::sockopt::socket_domain(&fd).map_err(|_| SocketError::NotSocket)?;
        let kind = rustix::net::sockopt::socket_type(&fd).map_err(|_| SocketError::NotSocket)?;
        if domain != AddressFamily::UNIX || kind != SocketType::SEQPACKET {
            return Err(SocketError::NotSocket);
        }
        rustix::io::fcntl_setfd(&fd, FdFlags::CLOEXEC).map_err(SocketError::Os)?;
        Ok(Self { fd })
    }

    /// Sends a packet with descriptors, which stay open here; waits while the other end has no room.
    ///
    /// # Errors
    ///
    /// [`SocketError::Closed`] if the other end is gone. Never raises `SIGPIPE`.
    ///
    /// # Panics
    ///
    /// If the packet is empty or exceeds [`MAX_PACKET`] or [`MAX_FDS`]: our own mistake.
    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), SocketError> {
        loop {
            match self.send_once(bytes, fds, SendFlags::empty()) {
                // Whoever passed us the socket may have made it non-blocking.
                Err(SocketError::Busy) if fds.is_empty() => self.wait(PollFlags::OUT)?,
                // It may be writable, and too many descriptors under way: nothing tells when there are fewer.
                Err(SocketError::Busy) => {
                    std::thread::sleep(NAP);
                    self.wait(PollFlags::OUT)?;
                }
                result => return result,
            }
        }
    }

    /// Sends a packet with descriptors, unless the other end has no room for it now.
    ///
    /// # Errors
    ///
    /// [`SocketError::Busy`] if it has no room; otherwise as [`send`](Self::send).
    ///
    /// # Panics
    ///
    /// As [`send`](Self::send).
    pub fn try_send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), SocketError> {
        self.send_once(bytes, fds, SendFlags::DONTWAIT)
    }

    /// Waits for the next packet and puts it into `buf`.
    ///
    /// # Errors
    ///
    /// [`SocketError::Closed`] after the last packet of an end that is gone, [`SocketError::TooLarge`] and
    /// [`SocketError::TooManyFds`] for a packet that exceeds `buf` or [`MAX_FDS`]: it is lost, and its descriptors
    /// are closed.
    pub fn recv(&self, buf: &mut [u8]) -> Result<Received, SocketError> {
        loop {
            match self.recv_once(buf, RecvFlags::empty())? {
                Some(received) => return Ok(received),
                None => self.wait(PollFlags::IN)?,
            }
        }
    }

    /// Puts the next packet into `buf`, if there is one.
    ///
    /// # Errors
    ///
    /// As [`recv`](Self::recv).
    pub fn try_recv(&self, buf: &mut [u8]) -> Result<Option<Received>, SocketError> {
        self.recv_once(buf, RecvFlags::DONTWAIT)
    }

    fn send_once(
        &self,
        bytes: &[u8],
        fds: &[BorrowedFd<'_>],
        flags: SendFlags,
    ) -> Result<(), SocketError> {
        // To the receiver an empty packet is the end of the connection.
        assert!(
            !bytes.is_empty() && bytes.len() <= MAX_PACKET,
            "a packet of {} bytes",
            bytes.len()
        );
        assert!(
            fds.len() <= MAX_FDS,
            "a packet with {} descriptors",
            fds.len()
        );
        let iov = [IoSlice::new(bytes)];
        let flags = flags | SendFlags::NOSIGNAL;
        let sent = rustix::io::retry_on_intr(|| {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !fds.is_empty() {
                let fits = control.push(SendAncillaryMessage::ScmRights(fds));
                assert!(fits, "the space is for MAX_FDS, and there are no more");
            }
            rustix::net::sendmsg(&self.fd, &iov, &mut control, flags)
        });
        match sent {
            Ok(_) => Ok(()),
            // The second: this user has more descriptors under way in sockets than a process may have open.
            Err(Errno::AGAIN | Errno::TOOMANYREFS) => Err(SocketError::Busy),
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => Err(SocketError::Closed),
            Err(other) => Err(SocketError::Os(other)),
        }
    }

    fn recv_once(&self, buf: &mut [u8], flags: RecvFlags) -> Result<Option<Received>, SocketError> {
        let flags = flags | RecvFlags::CMSG_CLOEXEC;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut is_reset = false;
        let message = loop {
            let mut iov = [IoSliceMut::new(buf)];
            match rustix::net::recvmsg(&self.fd, &mut iov, &mut control, flags) {
                Err(Errno::INTR) => {}
                // A peer that closes without having read all we sent is reported so, once, and before what it said last.
                Err(Errno::CONNRESET) if !is_reset => is_reset = true,
                other => break other,
            }
        };
        let message = match message {
            Ok(message) => message,
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::CONNRESET | Errno::NOTCONN) => return Err(SocketError::Closed),
            Err(other) => return Err(SocketError::Os(other)),
        };
        // From here on every descriptor is owned, so each return closes those that are not handed over.
        let mut fds = Vec::new();
        for ancillary in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = ancillary {
                fds.extend(rights);
            }
        }
        if message.flags.contains(ReturnFlags::CTRUNC) || fds.len() > MAX_FDS {
            return Err(SocketError::TooManyFds);
        }
        if message.flags.contains(ReturnFlags::TRUNC) {
            return Err(SocketError::TooLarge);
        }
        if message.bytes == 0 {
            return Err(SocketError::Closed);
        }
        Ok(Some(Received {
            len: message.bytes,
            fds,
        }))
    }

    fn wait(&self, events: PollFlags) -> Result<(), SocketError> {
        let mut fds = [PollFd::new(&self.fd, events)];
        match rustix::event::poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(other) => Err(SocketError::Os(other)),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> Self {
        socket.fd
    }
}

/// How soon a packet with descriptors is sent again.
const NAP: std::time::Duration = std::time::Duration::from_millis(1);

/// Why a packet was not sent or received.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The other end has no room now, or too many descriptors are under way between processes of this user. Wait until the socket
    /// is writable, and a moment if there are descriptors to send, then send again.
    #[error("the other end has no room now")]
    Busy,
    /// The other end is closed: its process ended, or detached.
    #[error("the other end is closed")]
    Closed,
    /// A packet was larger than the buffer. It is lost, and the connection is useless from then on.
    #[error("a packet exceeds the buffer")]
    TooLarge,
    /// A packet had more than [`MAX_FDS`] descriptors, or our table has no room for them. All were closed.
    #[error("a packet has more than {MAX_FDS} descriptors, or there is no room for them")]
    TooManyFds,
    /// The descriptor is not a Unix packet socket.
    #[error("the descriptor is not a unix packet socket")]
    NotSocket,
    /// The kernel refused.
    #[error("socket refused by the kernel: {0}")]
    Os(#[source] Errno),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn null() -> OwnedFd {
        std::fs::File::open("/dev/null").unwrap().into()
    }

    /// Sends what a peer of ours never would.
    fn send_raw(socket: &Socket, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
        rustix::net::sendmsg(
            socket,
            &[IoSlice::new(bytes)],
            &mut control,
            SendFlags::NOSIGNAL,
        )
        .unwrap();
    }

    #[test]
    fn the_last_word_of_a_peer_that_did_not_hear_ours_is_heard() {
        let (a, b) = Socket::pair().unwrap();
        a.send(b"bye", &[]).unwrap();
        b.send(b"not read", &[]).unwrap();
        drop(a);
        let mut buf = [0; MAX_PACKET];
        let last = b.try_recv(&mut buf).unwrap().unwrap();
        assert_eq!(&buf[..last.len], b"bye");
        assert!(matches!(b.try_recv(&mut buf), Err(SocketError::Closed)));
    }

    #[test]
    fn packets_keep_their_borders_and_descriptors() {
        let (a, b) = Socket::pair().unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        a.send(b"first", &[]).unwrap();
        a.send(b"second", &[reader.as_fd(), writer.as_fd()])
            .unwrap();
        let mut buf = [0; MAX_PACKET];
        let first = b.recv(&mut buf).unwrap();
        assert_eq!((&buf[..first.len], first.fds.len()), (&b"first"[..], 0));
        let second = b.recv(&mut buf).unwrap();
        assert_eq!((&buf[..second.len], second.fds.len()), (&b"second"[..], 2));
        rustix::io::write(&second.fds[1], b"!").unwrap();
        assert_eq!(rustix::io::read(&reader, &mut buf[..]), Ok(1));
        for fd in &second.fds {
            assert!(
                rustix::io::fcntl_getfd(fd)
                    .unwrap()
                    .contains(FdFlags::CLOEXEC)
            );
        }
    }

    #[test]
    fn a_closed_end_is_seen_after_its_last_packet() {
        let (a, b) = Socket::pair().unwrap();
        a.send(b"last", &[]).unwrap();
        drop(a);
        let mut buf = [0; 16];
        assert_eq!(b.recv(&mut buf).unwrap().len, 4);
        assert!(matches!(b.recv(&mut buf), Err(SocketError::Closed)));
        assert!(matches!(b.try_recv(&mut buf), Err(SocketError::Closed)));
        assert!(matches!(b.send(b"x", &[]), Err(SocketError::Closed)));
    }

    #[test]
    fn the_largest_packet_passes_and_a_larger_is_refused() {
        let (a, b) = Socket::pair().unwrap();
        let mut buf = vec![0; MAX_PACKET];
        a.send(&[7; MAX_PACKET], &[]).unwrap();
        assert_eq!(b.recv(&mut buf).unwrap().len, MAX_PACKET);
        let fd = null();
        send_raw(&a, &[7; MAX_PACKET + 1], &[fd.as_fd()]);
        assert!(matches!(b.recv(&mut buf), Err(SocketError::TooLarge)));
    }

    #[test]
    fn as_many_descriptors_as_allowed_pass_and_more_are_refused() {
        let (a, b) = Socket::pair().unwrap();
        let fds: Vec<_> = (0..40).map(|_| null()).collect();
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        let mut buf = [0; 16];
        a.send(b"x", &fds[..MAX_FDS]).unwrap();
        assert_eq!(b.recv(&mut buf).unwrap().fds.len(), MAX_FDS);
        for count in [MAX_FDS + 1, MAX_FDS + 2, MAX_FDS + 3, 40] {
            send_raw(&a, b"x", &fds[..count]);
            assert!(
                matches!(b.recv(&mut buf), Err(SocketError::TooManyFds)),
                "{count}"
            );
        }
        a.send(b"x", &[]).unwrap();
        assert_eq!(
            b.recv(&mut buf).unwrap().fds.len(),
            0,
            "nothing is left over for the next packet"
        );
    }

    #[test]
    fn a_full_socket_is_busy_until_it_is_read() {
        let (a, b) = Socket::pair().unwrap();
        let mut buf = vec![0; MAX_PACKET];
        let mut sent = 0;
        while a.try_send(&[1; 1024], &[]).is_ok() {
            sent += 1;
        }
        assert!(matches!(
            a.try_send(&[1; 1024], &[]),
            Err(SocketError::Busy)
        ));
        std::thread::scope(|s| {
            let blocked = s.spawn(|| a.send(&[2; 1024], &[]).unwrap());
            for _ in 0..sent {
                assert_eq!(b.recv(&mut buf).unwrap().len, 1024);
            }
            blocked.join().unwrap();
        });
        assert_eq!(b.recv(&mut buf).unwrap().len, 1024);
        assert!(b.try_recv(&mut buf).unwrap().is_none());
    }

    #[test]
    fn a_non_blocking_socket_still_blocks_when_asked_to() {
        let (a, b) = Socket::pair().unwrap();
        rustix::io::ioctl_fionbio(&b, true).unwrap();
        std::thread::scope(|s| {
            let blocked = s.spawn(|| b.recv(&mut [0; 16]).unwrap().len);
            a.send(b"abc", &[]).unwrap();
            assert_eq!(blocked.join().unwrap(), 3);
        });
    }

    #[test]
    fn an_inherited_socket_is_taken_and_closed_on_exec() {
        let (a, b) = Socket::pair().unwrap();
        let inherited = OwnedFd::from(b);
        rustix::io::fcntl_setfd(&inherited, FdFlags::empty()).unwrap();
        let b = Socket::from_fd(inherited).unwrap();
        assert!(
            rustix::io::fcntl_getfd(&b)
                .unwrap()
                .contains(FdFlags::CLOEXEC)
        );
        a.send(b"x", &[]).unwrap();
        assert_eq!(b.recv(&mut [0; 16]).unwrap().len, 1);
    }

    #[test]
    fn other_descriptors_are_refused() {
        let stream = std::os::unix::net::UnixStream::pair().unwrap().0;
        let datagram = std::os::unix::net::UnixDatagram::unbound().unwrap();
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for fd in [null(), stream.into(), datagram.into(), udp.into()] {
            assert!(matches!(Socket::from_fd(fd), Err(SocketError::NotSocket)));
        }
    }
}
