//! The hello that each end says before a link exists.
//!
//! The end that dials says who it is, whom it wants and what it knows; the end that accepts checks this
//! and answers in the same form. 72 bytes each way, little-endian, no more is read before they are found
//! good. Until then the connection costs a slot of fixed size; nothing is allocated for it.
//!
//! The *serial* grows with each hello of a process. A link remembers the peer's; a later hello with a
//! greater one means that the peer has given up that link, a hello with a smaller one was overtaken by it.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use mizzen_driver::{ConnectFailure, PeerId};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::options::Token;

/// Which end says a hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Dialler,
    Acceptor,
}

/// A hello that was found good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) from: PeerId,
    pub(crate) to: PeerId,
    pub(crate) serial: u64,
}

impl Hello {
    pub(crate) const LEN: usize = size_of::<Wire>();

    pub(crate) fn encode(self, role: Role, token: &Token) -> [u8; Self::LEN] {
        let wire = Wire {
            magic: MAGIC,
            version: U16::new(VERSION),
            role: U16::new(role.code()),
            zero: U32::new(0),
            token: token.0,
            from: U64::new(self.from.0),
            to: U64::new(self.to.0),
            serial: U64::new(self.serial),
        };
        zerocopy::transmute!(wire)
    }

    /// Reads a hello that the other end, in `role`, says it is. A reason would only help a stranger.
    pub(crate) fn decode(bytes: &[u8; Self::LEN], role: Role, token: &Token) -> Option<Self> {
        let wire: &Wire = zerocopy::transmute_ref!(bytes);
        let is_known = token.matches(&wire.token);
        let is_formed = wire.magic == MAGIC
            && wire.version.get() == VERSION
            && wire.role.get() == role.code()
            && wire.zero.get() == 0;
        let (from, to) = (PeerId(wire.from.get()), PeerId(wire.to.get()));
        (is_known && is_formed).then_some(Self {
            from,
            to,
            serial: wire.serial.get(),
        })
    }
}

impl Role {
    fn code(self) -> u16 {
        match self {
            Self::Dialler => 1,
            Self::Acceptor => 2,
        }
    }
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Wire {
    magic: [u8; 8],
    version: U16,
    role: U16,
    zero: U32,
    token: [u8; Token::LEN],
    from: U64,
    to: U64,
    serial: U64,
}

/// A connection on which the hellos are not yet exchanged.
#[derive(Debug)]
pub(crate) struct Greeting {
    pub(crate) socket: OwnedFd,
    pub(crate) stage: Stage,
    pub(crate) deadline: Instant,
    heard: [u8; Hello::LEN],
    heard_len: usize,
}

/// How far a greeting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// We dialled `peer`, and the network has not answered yet.
    Connecting { peer: PeerId },
    /// We dialled `peer`, said hello, and wait for the answer.
    Calling { peer: PeerId },
    /// Somebody dialled us and has yet to say hello.
    Accepted,
    /// Somebody said a good hello and waits until our own dial to it is decided.
    Parked { hello: Hello },
}

/// What was heard so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    NotAll,
    All([u8; Hello::LEN]),
    /// The other end closed, or the network did.
    Closed,
}

impl Greeting {
    pub(crate) fn dialled(socket: OwnedFd, peer: PeerId, patience: Duration) -> Self {
        Self::new(socket, Stage::Connecting { peer }, patience)
    }

    pub(crate) fn accepted(socket: OwnedFd, patience: Duration) -> Self {
        Self::new(socket, Stage::Accepted, patience)
    }

    fn new(socket: OwnedFd, stage: Stage, patience: Duration) -> Self {
        let deadline = Instant::now() + patience;
        Self {
            socket,
            stage,
            deadline,
            heard: [0; Hello::LEN],
            heard_len: 0,
        }
    }

    /// Says hello. It fits in the buffer of a new connection, or the connection is not worth having.
    pub(crate) fn say(&self, hello: &[u8; Hello::LEN]) -> Result<(), ConnectFailure> {
        match send(&self.socket, hello, SendFlags::NOSIGNAL) {
            Ok(Hello::LEN) => Ok(()),
            Ok(_) => Err(ConnectFailure::Rejected),
            Err(errno) => Err(ConnectFailure::Unreachable(io::Error::from(errno).kind())),
        }
    }

    /// Reads what is there of the other end's hello, and nothing of what follows it.
    pub(crate) fn listen(&mut self) -> Heard {
        while self.heard_len < Hello::LEN {
            match recv(
                &self.socket,
                &mut self.heard[self.heard_len..],
                RecvFlags::empty(),
            ) {
                Ok((0, _)) => return Heard::Closed,
                Ok((len, _)) => self.heard_len += len,
                Err(Errno::AGAIN) => return Heard::NotAll,
                Err(Errno::INTR) => {}
                Err(_) => return Heard::Closed,
            }
        }
        Heard::All(self.heard)
    }
}

/// Strangers at a time: a quarter of the descriptors that a process usually may have. When more come the
/// oldest goes, since a peer says hello at once.
pub(crate) const MAX_STRANGERS: usize = 256;

const MAGIC: [u8; 8] = *b"mizzen\r\n";
const VERSION: u16 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: Token = Token([9; Token::LEN]);
    const HELLO: Hello = Hello {
        from: PeerId(1),
        to: PeerId(2),
        serial: 3,
    };

    #[test]
    fn a_hello_is_read_as_it_was_written() {
        let bytes = HELLO.encode(Role::Dialler, &TOKEN);
        assert_eq!(Hello::decode(&bytes, Role::Dialler, &TOKEN), Some(HELLO));
        assert_eq!(bytes.len(), 72);
    }

    #[test]
    fn a_hello_sent_back_is_refused() {
        let bytes = HELLO.encode(Role::Dialler, &TOKEN);
        assert_eq!(Hello::decode(&bytes, Role::Acceptor, &TOKEN), None);
    }

    #[test]
    fn every_byte_before_the_names_matters() {
        for index in 0..48 {
            let mut bytes = HELLO.encode(Role::Dialler, &TOKEN);
            bytes[index] ^= 1;
            assert_eq!(
                Hello::decode(&bytes, Role::Dialler, &TOKEN),
                None,
                "byte {index}"
            );
        }
    }
}
