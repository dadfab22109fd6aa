//! The floor of an encrypted network: a bare TLS stream of the library on a TCP connection.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::Context;
use mizzen_identity::{Authority, Identity, server_name};
use rustls::{ClientConnection, ServerConnection, StreamOwned};

use super::socket::Stream;

/// What the table calls it.
pub(crate) const NAME: &str = "bare TLS stream, polled";

const CLUSTER: &str = "bench";
const JOB: [u8; 16] = [0; 16];

/// Either end of it.
pub(crate) enum Tls {
    Server(StreamOwned<ServerConnection, TcpStream>),
    Client(StreamOwned<ClientConnection, TcpStream>),
}

/// An authority for both ends, in hexadecimal.
pub(crate) fn new_authority() -> anyhow::Result<String> {
    let authority = Authority::new(CLUSTER, JOB)?;
    let secret = authority.to_secret();
    Ok(secret
        .as_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Puts TLS on a connection.
pub(crate) fn stream(stream: TcpStream, side: usize, authority: &str) -> anyhow::Result<Tls> {
    let digits = authority.as_bytes().chunks(2);
    let secret: Vec<u8> = digits
        .map(|two| Ok(u8::from_str_radix(std::str::from_utf8(two)?, 16)?))
        .collect::<anyhow::Result<_>>()?;
    let authority = Authority::from_secret(&secret)?;
    let who = Identity::new(CLUSTER, JOB, u32::try_from(side)?, 0)?;
    let credentials = authority.credentials(&who)?;
    let mut tls = if side == 0 {
        let tls = ServerConnection::new(credentials.server_config())?;
        Tls::Server(StreamOwned::new(tls, stream))
    } else {
        let tls = ClientConnection::new(credentials.client_config(), server_name())?;
        Tls::Client(StreamOwned::new(tls, stream))
    };
    let shaken = match &mut tls {
        Tls::Server(stream) => stream.conn.complete_io(&mut stream.sock),
        Tls::Client(stream) => stream.conn.complete_io(&mut stream.sock),
    };
    shaken.context("the bare TLS connection came to nothing")?;
    Ok(tls)
}

impl Stream for Tls {
    fn set_nonblocking(&self, nonblocking: bool) -> std::io::Result<()> {
        let socket = match self {
            Self::Server(stream) => &stream.sock,
            Self::Client(stream) => &stream.sock,
        };
        socket.set_nonblocking(nonblocking)
    }
}

impl Read for Tls {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Server(stream) => stream.read(bytes),
            Self::Client(stream) => stream.read(bytes),
        }
    }
}

impl Write for Tls {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Server(stream) => stream.write(bytes),
            Self::Client(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Server(stream) => stream.flush(),
            Self::Client(stream) => stream.flush(),
        }
    }
}
