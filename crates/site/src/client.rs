//! How a job asks the gateway of its site.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use mizzen_tcp::Through;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use socket2::{Domain, Protocol, Socket, Type};

use crate::live::keep_alive;
use crate::meeting::Meeting;
use crate::refusal::Refusal;
use crate::request::{MEETING, PORT};
use crate::streams::through;

/// The inner door of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Door {
    at: SocketAddr,
}

/// Something that is offered to another site, for as long as this lives and the gateway does.
#[derive(Debug)]
pub struct Offered {
    socket: TcpStream,
}

/// Why the gateway of the site did not help.
#[derive(Debug, thiserror::Error)]
pub enum DoorError {
    /// It is not there.
    #[error(
        "the gateway of this site does not answer as such at {at}: {cause}; is `mizzen gateway` running there, and is that its inner address?"
    )]
    Unreachable {
        /// Where it was expected.
        at: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// It refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl Door {
    /// The door at this address.
    pub fn new(at: SocketAddr) -> Self {
        Self { at }
    }

    /// Through what a driver dials what is offered in a meeting.
    pub fn through(&self, meeting: &Meeting) -> Through {
        Through::new(self.at).header(MEETING, &meeting.to_string())
    }

    /// What this site is called.
    ///
    /// # Errors
    ///
    /// [`DoorError`] if there is no gateway.
    pub fn site(&self) -> Result<String, DoorError> {
        Ok(self.get("/site")?.trim().to_owned())
    }

    /// How things are, for people.
    ///
    /// # Errors
    ///
    /// [`DoorError`] if there is no gateway.
    pub fn status(&self) -> Result<String, DoorError> {
        self.get("/status")
    }

    /// Connects with what is offered as `thing` at the other site of a meeting.
    ///
    /// # Errors
    ///
    /// [`DoorError`] if it is not allowed, not offered, or not reached: the number of the refusal says which.
    pub fn connect(&self, meeting: &Meeting, thing: &str) -> Result<TcpStream, DoorError> {
        let socket = self.dial()?;
        through(&socket, &self.through(meeting), thing, PATIENCE)?;
        self.rest(&socket)?;
        Ok(socket)
    }

    /// Offers what listens at an address of this host to the other site of a meeting. If the address is unspecified, it is that by which the
    /// gateway is reached.
    ///
    /// # Errors
    ///
    /// [`DoorError`] if it is not allowed, or somebody offers it already.
    pub fn offer(
        &self,
        meeting: &Meeting,
        thing: &str,
        at: SocketAddr,
    ) -> Result<Offered, DoorError> {
        let socket = self.dial_from(at.ip())?;
        let port = at.port();
        let through_door = self.through(meeting).header(PORT, &port.to_string());
        let request = through_door.request(thing).replacen("CONNECT", "OFFER", 1);
        crate::streams::request(&socket, &request, PATIENCE)?;
        self.rest(&socket)?;
        Ok(Offered { socket })
    }

    fn get(&self, path: &str) -> Result<String, DoorError> {
        let mut socket = self.dial()?;
        let unreachable = |cause| DoorError::Unreachable { at: self.at, cause };
        socket
            .set_read_timeout(Some(PATIENCE))
            .map_err(unreachable)?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: gateway\r\n\r\n");
        socket.write_all(request.as_bytes()).map_err(unreachable)?;
        let mut text = String::new();
        socket
            .take(MAX_TEXT)
            .read_to_string(&mut text)
            .map_err(unreachable)?;
        let body = text
            .strip_prefix("HTTP/1.1 200 ")
            .and_then(|text| text.split_once("\r\n\r\n"));
        let nonsense = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "it does not answer as a gateway does",
            )
        };
        body.map(|(_, body)| body.to_owned())
            .ok_or_else(|| unreachable(nonsense()))
    }

    fn dial(&self) -> Result<TcpStream, DoorError> {
        let socket = TcpStream::connect_timeout(&self.at, DIAL_PATIENCE);
        socket.map_err(|cause| DoorError::Unreachable { at: self.at, cause })
    }

    /// From this address, so that the gateway sees where we listen.
    fn dial_from(&self, host: IpAddr) -> Result<TcpStream, DoorError> {
        let dial = || {
            let socket = Socket::new(
                Domain::for_address(self.at),
                Type::STREAM,
                Some(Protocol::TCP),
            )?;
            if !host.is_unspecified() && host.is_ipv4() == self.at.is_ipv4() {
                socket.bind(&SocketAddr::new(host, 0).into())?;
            }
            socket.connect_timeout(&self.at.into(), DIAL_PATIENCE)?;
            Ok(TcpStream::from(socket))
        };
        dial().map_err(|cause| DoorError::Unreachable { at: self.at, cause })
    }

    /// No more hurry on what is connected; but whether the gateway's host is there is asked now and then.
    fn rest(&self, socket: &TcpStream) -> Result<(), DoorError> {
        let calm = || {
            keep_alive(socket)?;
            socket.set_read_timeout(None)?;
            socket.set_write_timeout(None)
        };
        calm().map_err(|cause| DoorError::Unreachable { at: self.at, cause })
    }
}

impl Offered {
    /// Waits until the gateway takes it back: it ended, or the job may not be met any more.
    pub fn wait_for_end(&mut self) {
        while matches!(self.socket.read(&mut [0; 64]), Ok(1..)) {}
    }

    /// Whether the gateway has taken it back.
    pub fn has_ended(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = rustix::net::recv(&self.socket, &mut [0u8; 1][..], flags);
        !matches!(peeked, Ok((1.., _)) | Err(Errno::AGAIN | Errno::INTR))
    }
}

/// How long a gateway may take: longer than it gives another site.
const PATIENCE: Duration = Duration::from_secs(15);
const DIAL_PATIENCE: Duration = Duration::from_secs(3);
/// The longest text that is read from a gateway.
const MAX_TEXT: u64 = 1 << 20;
