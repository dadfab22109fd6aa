//! The hello that each end says before a link exists.
//!
//! First comes a handshake of mutual TLS, in which each end proves who it is. Then, under its seal, the end that dials
//! says whom it wants, and the end that accepts checks this and answers in the same form: 40 bytes each way,
//! little-endian. Until the other end says something, a connection costs a slot of fixed size; nothing is allocated for it.
//!
//! The *serial* grows with each hello of a process. A link remembers the peer's; a later hello with a
//! greater one means that the peer has given up that link, a hello with a smaller one was overtaken by it.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use mizzen_driver::{ConnectFailure, PeerId};
use rustix::io::Errno;
use rustix::net::SendFlags;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::security::{Records, Security};
use crate::session::{Broken, Progress, Session};
use crate::through::Answer;
use crate::wire::Wire;

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
    pub(crate) const LEN: usize = size_of::<Layout>();

    pub(crate) fn encode(self, role: Role, records: Records) -> [u8; Self::LEN] {
        let layout = Layout {
            magic: MAGIC,
            version: U16::new(VERSION),
            role: U16::new(role.code()),
            records: U32::new(records.code()),
            from: U64::new(self.from.0),
            to: U64::new(self.to.0),
            serial: U64::new(self.serial),
        };
        zerocopy::transmute!(layout)
    }

    /// Reads a hello that the other end, in `role`, says it is. A reason would only help a stranger.
    pub(crate) fn decode(bytes: &[u8; Self::LEN], role: Role, records: Records) -> Option<Self> {
        let layout: &Layout = zerocopy::transmute_ref!(bytes);
        let is_formed = layout.magic == MAGIC
            && layout.version.get() == VERSION
            && layout.role.get() == role.code()
            && layout.records.get() == records.code();
        let (from, to) = (PeerId(layout.from.get()), PeerId(layout.to.get()));
        is_formed.then_some(Self {
            from,
            to,
            serial: layout.serial.get(),
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

impl Records {
    fn code(self) -> u32 {
        match self {
            Self::Sealed => 1,
            Self::Clear => 2,
        }
    }
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    magic: [u8; 8],
    version: U16,
    role: U16,
    records: U32,
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
    /// There is one as soon as either end has said something.
    session: Option<Box<Session>>,
    /// What we say as soon as the other end has proved who it is.
    to_say: Option<(PeerId, [u8; Hello::LEN])>,
    heard: [u8; Hello::LEN],
    heard_len: usize,
    /// What a proxy has answered.
    head: Vec<u8>,
}

/// How far a greeting is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// We dialled `peer`, and the network has not answered yet.
    Connecting { peer: PeerId },
    /// We asked a proxy for `peer`, and wait for its answer.
    Asking { peer: PeerId },
    /// We dialled `peer`, and wait for its proof and its answer.
    Calling { peer: PeerId },
    /// Somebody dialled us and has yet to prove who it is and say hello.
    Accepted,
    /// Somebody said a good hello and waits until our own dial to it is decided.
    Parked { hello: Hello },
}

/// What was heard so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    NotAll,
    All(Hello),
    /// The other end is not believed, does not say a good hello, or closed.
    Nothing,
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
            session: None,
            to_say: None,
            heard: [0; Hello::LEN],
            heard_len: 0,
            head: Vec::new(),
        }
    }

    /// The proxy answered: says to it whom we want.
    pub(crate) fn ask(&self, request: &str) -> Result<(), ConnectFailure> {
        // The first bytes of a connection: they fit, or it is none.
        let flags = SendFlags::NOSIGNAL;
        match rustix::net::send(&self.socket, request.as_bytes(), flags) {
            Ok(count) if count == request.len() => Ok(()),
            Ok(_) => Err(ConnectFailure::Rejected),
            Err(errno) => Err(unreachable(errno)),
        }
    }

    /// What the proxy has answered by now; byte by byte, since what follows is not ours to read.
    pub(crate) fn hear_proxy(&mut self) -> Result<Answer, ConnectFailure> {
        let mut byte = [0];
        loop {
            match rustix::io::read(&self.socket, &mut byte) {
                Ok(0) => return Err(ConnectFailure::Rejected),
                Ok(_) => self.head.push(byte[0]),
                Err(Errno::AGAIN) => return Ok(Answer::NotAll),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(unreachable(errno)),
            }
            match Answer::read(&self.head) {
                Answer::NotAll => {}
                answer => {
                    self.head = Vec::new();
                    return Ok(answer);
                }
            }
        }
    }

    /// The network answered: begins the handshake with `peer`, to whom `hello` is then said.
    pub(crate) fn call(
        &mut self,
        security: &Security,
        peer: PeerId,
        hello: Hello,
    ) -> Result<(), ConnectFailure> {
        let hello = hello.encode(Role::Dialler, security.records);
        let session = Session::client(security).map_err(|_| ConnectFailure::Rejected)?;
        self.to_say = Some((peer, hello));
        let session = self.session.insert(Box::new(session));
        session.say(&self.socket, &[]).map_err(unreachable)
    }

    /// Answers a hello.
    pub(crate) fn answer(&mut self, security: &Security, hello: Hello) -> Result<(), Broken> {
        let hello = hello.encode(Role::Acceptor, security.records);
        let session = self.session.as_mut().ok_or(Broken::Refused)?;
        let said = session.say(&self.socket, &hello);
        said.map_err(|_| Broken::Closed)
    }

    /// Goes on with the handshake, and listens to what comes behind it.
    pub(crate) fn listen(&mut self, security: &Security) -> Heard {
        self.advance(security).unwrap_or(Heard::Nothing)
    }

    fn advance(&mut self, security: &Security) -> Result<Heard, Broken> {
        if self.session.is_none() {
            self.session = Some(Box::new(Session::server(security)?));
        }
        let session = self.session.as_mut().ok_or(Broken::Refused)?;
        loop {
            match session.take_record(&self.socket) {
                Ok(Progress::Record) => {}
                Ok(Progress::Waiting) => return Ok(Heard::NotAll),
                Err(broken) => {
                    // What went wrong is said to the other end, if it can hear it.
                    let _ = session.say(&self.socket, &[]);
                    return Err(broken);
                }
            }
            session.say(&self.socket, &[]).map_err(|_| Broken::Closed)?;
            if session.is_handshaking() {
                continue;
            }
            if let Some((peer, hello)) = self.to_say.take() {
                if session.peer(security) != Some(peer) {
                    return Err(Broken::Refused);
                }
                let said = session.say(&self.socket, &hello);
                said.map_err(|_| Broken::Closed)?;
            }
            self.heard_len += session.hear(&mut self.heard[self.heard_len..])?;
            if self.heard_len == Hello::LEN {
                break;
            }
        }
        // Nothing follows a hello before its answer.
        let role = match self.stage {
            Stage::Accepted if session.has_more() => return Err(Broken::Refused),
            Stage::Accepted => Role::Dialler,
            _ => Role::Acceptor,
        };
        let hello = Hello::decode(&self.heard, role, security.records);
        let proved = session.peer(security).ok_or(Broken::Refused)?;
        let hello = hello.filter(|hello| hello.from == proved);
        Ok(hello.map_or(Heard::Nothing, Heard::All))
    }

    /// The connection, as the link uses it.
    pub(crate) fn into_wire(self, records: Records) -> Wire {
        let session = match records {
            Records::Sealed => self.session,
            Records::Clear => None,
        };
        Wire::new(self.socket, session)
    }
}

fn unreachable(errno: Errno) -> ConnectFailure {
    ConnectFailure::Unreachable(std::io::Error::from(errno).kind())
}

/// Strangers at a time: a quarter of the descriptors that a process usually may have. When more come the
/// oldest goes, since a peer says hello at once.
pub(crate) const MAX_STRANGERS: usize = 256;

const MAGIC: [u8; 8] = *b"mizzen\r\n";
const VERSION: u16 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: Hello = Hello {
        from: PeerId(1),
        to: PeerId(2),
        serial: 3,
    };

    #[test]
    fn a_hello_is_read_as_it_was_written() {
        for records in [Records::Sealed, Records::Clear] {
            let bytes = HELLO.encode(Role::Dialler, records);
            assert_eq!(Hello::decode(&bytes, Role::Dialler, records), Some(HELLO));
            assert_eq!(bytes.len(), 40);
        }
    }

    #[test]
    fn a_hello_sent_back_is_refused() {
        let bytes = HELLO.encode(Role::Dialler, Records::Sealed);
        let heard = Hello::decode(&bytes, Role::Acceptor, Records::Sealed);
        assert_eq!(heard, None);
    }

    #[test]
    fn ends_that_do_not_agree_on_their_records_do_not_talk() {
        let bytes = HELLO.encode(Role::Dialler, Records::Clear);
        let heard = Hello::decode(&bytes, Role::Dialler, Records::Sealed);
        assert_eq!(heard, None);
    }

    #[test]
    fn every_bit_before_the_names_matters() {
        for bit in 0..16 * 8 {
            let mut bytes = HELLO.encode(Role::Dialler, Records::Sealed);
            bytes[bit / 8] ^= 1 << (bit % 8);
            let heard = Hello::decode(&bytes, Role::Dialler, Records::Sealed);
            assert_eq!(heard, None, "bit {bit}");
        }
    }
}
