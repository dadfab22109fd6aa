//! One connection between two agents: TCP, TLS on which both prove who they are, frames.
//!
//! Never blocks. Frames that the other side does not take wait here, up to a limit, beyond which the connection is given up: what is
//! lost with it is said again.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use mizzen_identity::{Credentials, server_name};
use mizzen_proto::boot::{FRAME_HEADER, MAX_FRAME};
use mizzen_proto::membership::{AgentId, HostId, Spoken};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};
use rustls::{ClientConnection, Connection as Tls, ServerConnection};

/// A connection that is being made, or is made.
pub(crate) struct Connection {
    socket: TcpStream,
    tls: Tls,
    peer: Option<AgentId>,
    /// What arrived; the first `taken` bytes are decoded.
    received: Vec<u8>,
    taken: usize,
}

/// What a connection has become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// As it was.
    On,
    /// The other side has just proved who it is.
    Proved(AgentId),
    /// It is no use any more.
    Over,
}

impl Connection {
    /// Begins to connect.
    pub(crate) fn dial(
        address: SocketAddr,
        credentials: &Credentials,
        patience: Duration,
    ) -> io::Result<Self> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let tls = ClientConnection::new(credentials.client_config(), server_name());
        Self::new(
            socket.into(),
            tls.map_err(io::Error::other)?.into(),
            patience,
        )
    }

    /// Takes one that came.
    pub(crate) fn accept(
        socket: TcpStream,
        credentials: &Credentials,
        patience: Duration,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let tls = ServerConnection::new(credentials.server_config());
        Self::new(socket, tls.map_err(io::Error::other)?.into(), patience)
    }

    fn new(socket: TcpStream, mut tls: Tls, patience: Duration) -> io::Result<Self> {
        // Frames are few and short, and late ones are worth little.
        sockopt::set_tcp_nodelay(&socket, true)?;
        // What is not acknowledged by then goes over a new connection, which finds a repaired cable sooner.
        let millis = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(&socket, millis)?;
        tls.set_buffer_limit(Some(MAX_QUEUED));
        Ok(Self {
            socket,
            tls,
            peer: None,
            received: Vec::new(),
            taken: 0,
        })
    }

    /// What went wrong with a connection under way, if anything did.
    pub(crate) fn failure(&self) -> Option<io::ErrorKind> {
        match self.socket.take_error() {
            Ok(None) => None,
            Ok(Some(error)) | Err(error) => Some(error.kind()),
        }
    }

    /// Queues a frame. Returns whether there was room: if not, the connection is no use.
    pub(crate) fn queue(&mut self, spoken: &Spoken) -> bool {
        let mut bytes = Vec::new();
        let encoded = spoken.encode(&mut bytes);
        debug_assert!(encoded.is_ok(), "machines say what fits a frame");
        encoded.is_ok() && self.tls.writer().write_all(&bytes).is_ok()
    }

    /// Reads some of what arrived, and goes on with the handshake.
    pub(crate) fn receive(&mut self, credentials: &Credentials) -> Moved {
        for _ in 0..READS {
            match self.tls.read_tls(&mut self.socket) {
                Ok(0) => return Moved::Over,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Moved::Over,
            }
            if self.tls.process_new_packets().is_err() {
                // Says why, if it can: an alert is for whoever looks at the other side.
                let _ = self.tls.write_tls(&mut self.socket);
                return Moved::Over;
            }
            if self.take_plain().is_err() {
                return Moved::Over;
            }
        }
        if self.peer.is_none() && !self.tls.is_handshaking() {
            let Ok(identity) = credentials.peer(&self.tls) else {
                return Moved::Over;
            };
            let peer = AgentId::new(HostId(identity.rank()), identity.incarnation());
            self.peer = Some(peer);
            return Moved::Proved(peer);
        }
        Moved::On
    }

    fn take_plain(&mut self) -> io::Result<()> {
        self.received.drain(..self.taken);
        self.taken = 0;
        let mut buffer = [0; 16 * 1024];
        loop {
            match self.tls.reader().read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// The next whole frame; an error if what came is none.
    pub(crate) fn next(&mut self) -> Result<Option<Spoken>, NotAFrame> {
        let Some(peer) = self.peer else {
            return Ok(None);
        };
        // Only the root has much to say.
        let most = if peer.host == HostId(0) {
            MAX_FRAME
        } else {
            MAX_FROM_AGENT
        };
        let rest = &self.received[self.taken..];
        let Some((header, rest)) = rest.split_first_chunk::<FRAME_HEADER>() else {
            return Ok(None);
        };
        let length = usize::try_from(u32::from_le_bytes(*header)).map_err(|_| NotAFrame)?;
        if length > most {
            return Err(NotAFrame);
        }
        let Some(content) = rest.get(..length) else {
            return Ok(None);
        };
        let spoken = Spoken::decode(content).map_err(|_| NotAFrame)?;
        self.taken += FRAME_HEADER + length;
        Ok(Some(spoken))
    }

    /// Writes what the other side takes. Returns whether the connection is still of use.
    pub(crate) fn flush(&mut self) -> bool {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Not connected yet.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => return true,
                Err(_) => return false,
            }
        }
        true
    }

    /// Whether something waits for room.
    pub(crate) fn wants_room(&self) -> bool {
        self.tls.wants_write()
    }

    /// Who is there, if it is proved.
    pub(crate) fn peer(&self) -> Option<AgentId> {
        self.peer
    }

    /// Where the other side is.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.socket.peer_addr().ok()
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What came is not a frame, or longer than one may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotAFrame;

/// Records read from one connection in one turn, so that none keeps the agent to itself.
const READS: usize = 16;

/// What may wait for an agent that does not read: a welcome to the largest job, and some news.
const MAX_QUEUED: usize = MAX_FRAME + (1 << 20);

/// The longest frame of an agent that is not the root. What it says is short; what it passes on for the root may be news.
const MAX_FROM_AGENT: usize = 1 << 20;
