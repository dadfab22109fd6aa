//! Sockets: the one that listens, and how connections are set up.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use crate::addresses::interfaces;
use crate::far::Far;
use crate::liveness::SILENCE;

/// What became of an accept.
#[derive(Debug)]
pub(crate) enum Accepted {
    Connection(OwnedFd),
    /// Nobody is waiting.
    Nobody,
    /// Somebody is waiting, and we have no descriptor for it.
    NoDescriptor,
}

/// A socket that listens at `address`, and where it does.
pub(crate) fn listen(address: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM.nonblocking().cloexec(),
        Some(Protocol::TCP),
    )?;
    // A process that starts again with a fixed port need not wait for the old connections to expire.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    let bound = socket
        .local_addr()?
        .as_socket()
        .ok_or(io::ErrorKind::Unsupported)?;
    Ok((socket.into(), bound))
}

/// Takes one connection that waits.
pub(crate) fn accept(listener: &OwnedFd, far: Option<Far>) -> io::Result<Accepted> {
    loop {
        match accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(socket) => {
                if set_up(&socket, far).is_err() {
                    // It broke before it was ours.
                    continue;
                }
                return Ok(Accepted::Connection(socket));
            }
            Err(Errno::AGAIN) => return Ok(Accepted::Nobody),
            Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                return Ok(Accepted::NoDescriptor);
            }
            Err(Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP) => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            // accept(2): what went wrong with the connection that waited is no fault of the listener.
            Err(_) => {}
        }
    }
}

/// A connection to `address`, under way.
pub(crate) fn dial(address: SocketAddr, far: Option<Far>) -> io::Result<OwnedFd> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM.nonblocking().cloexec(),
        Some(Protocol::TCP),
    )?;
    match socket.connect(&address.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => {}
        Err(error) => return Err(error),
    }
    let socket = OwnedFd::from(socket);
    set_up(&socket, far)?;
    Ok(socket)
}

/// What went wrong with a connection under way, if anything did.
pub(crate) fn failure(socket: &OwnedFd) -> Option<io::ErrorKind> {
    match SockRef::from(socket).take_error() {
        Ok(None) => None,
        Ok(Some(error)) | Err(error) => Some(error.kind()),
    }
}

/// Where the other end of a connection is.
pub(crate) fn other_end(socket: &impl AsFd) -> Option<SocketAddr> {
    SockRef::from(socket).peer_addr().ok()?.as_socket()
}

/// From where to where a connection goes, and through which interface.
pub(crate) fn describe(socket: &impl AsFd) -> Option<String> {
    let socket = SockRef::from(socket);
    let here = socket.local_addr().ok()?.as_socket()?;
    let there = socket.peer_addr().ok()?.as_socket()?;
    let all = interfaces().unwrap_or_default();
    let through = all.iter().find(|one| one.address == here.ip());
    let through = match through {
        Some(one) if one.reaches(there.ip()) => format!(" through {}, same subnet", one.name),
        Some(one) => format!(" through {}, routed", one.name),
        None => String::new(),
    };
    Some(format!("{} to {there}{through}", here.ip()))
}

fn set_up(socket: &OwnedFd, far: Option<Far>) -> io::Result<()> {
    let socket = SockRef::from(socket);
    // Frames are latency; what can be sent together is sent in one call anyway.
    socket.set_tcp_nodelay(true)?;
    if let Some(far) = far {
        far.set_up(&socket)?;
    }
    // The first probe comes after one interval, and the last is given one to be answered.
    let probe = SILENCE / (PROBES + 1);
    let keepalive = TcpKeepalive::new()
        .with_time(probe)
        .with_interval(probe)
        .with_retries(PROBES);
    socket.set_tcp_keepalive(&keepalive)
}

/// Probes of an idle connection in the time after which a silent peer is lost.
const PROBES: u32 = 2;
/// Connections that wait to be accepted: a job may start with all processes dialling one.
const BACKLOG: i32 = 4096;
