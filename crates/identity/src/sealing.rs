//! What two processes say to each other through gateways that are to read and change nothing of it.
//!
//! The keys come from a handshake of TLS 1.3 in the form that QUIC uses (RFC 9001): the same certificates, checks and settings as those of
//! connections, but keys for packets instead of a stream, since what goes through gateways may come in another order. A [`Shaking`] exchanges three
//! flights; what comes of it is a [`Seal`].

mod flight;
mod seal;

use std::fmt;
use std::sync::Arc;

use rustls::ProtocolVersion;
use rustls::quic::{
    ClientConnection, Connection, KeyChange, Keys as Level, ServerConnection, Version,
};

use self::flight::{HANDSHAKE, INITIAL, MAX_FLIGHT};
pub use self::seal::{SEAL, Seal};
use crate::credentials::Credentials;
use crate::error::SealError;
use crate::identity::Identity;
use crate::settings::{SEALED_ALPN, server_name};

/// Between whom, and for what, a handshake is: both ends must say the same, or there is no seal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bond {
    /// Who is at the other end.
    pub peer: Identity,
    /// What we say that this is for.
    pub ours: Vec<u8>,
    /// What the other end must say.
    pub theirs: Vec<u8>,
}

/// A handshake under way.
///
/// ```
/// use mizzen_identity::{Authority, Bond, Identity, Shaking};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let authority = Authority::new("local", [7; 16])?;
/// let (one, other) = (Identity::new("local", [7; 16], 0, 0)?, Identity::new("local", [7; 16], 1, 0)?);
/// let bond = |peer: &Identity, ours: &str, theirs: &str| Bond {
///     peer: peer.clone(), ours: ours.into(), theirs: theirs.into(),
/// };
/// let mut dialler = Shaking::dial(&authority.credentials(&one)?, bond(&other, "0 to 1", "1 to 0"))?;
/// let mut acceptor = Shaking::accept(&authority.credentials(&other)?, bond(&one, "1 to 0", "0 to 1"))?;
///
/// let hello = dialler.begin()?;
/// let answer = acceptor.take(&hello)?.expect("an answer");
/// let proof = dialler.take(&answer)?.expect("a proof");
/// assert_eq!(acceptor.take(&proof)?, None);
///
/// let (mut ours, mut theirs) = (dialler.finish().expect("a seal"), acceptor.finish().expect("a seal"));
/// let mut packet = b"to be read by nobody else".to_vec();
/// let phase = ours.seal(5, 0, b"header", &mut packet)?;
/// assert_eq!(theirs.open(5, phase, b"header", &mut packet)?, b"to be read by nobody else");
/// # Ok(())
/// # }
/// ```
pub struct Shaking {
    connection: Connection,
    credentials: Credentials,
    bond: Bond,
    dialled: bool,
    /// Flights that came.
    came: u32,
    /// The keys of certificates and signatures, and how many parts were opened and sealed with them.
    level: Option<Level>,
    opened: u64,
    sealed: u64,
    seal: Option<Seal>,
    is_proved: bool,
}

impl Shaking {
    /// Of who dials.
    ///
    /// # Errors
    ///
    /// [`SealError::Proof`] if the settings do not allow it.
    pub fn dial(credentials: &Credentials, bond: Bond) -> Result<Self, SealError> {
        let config = Arc::clone(&credentials.sealing().map_err(proof)?.0);
        let params = bond.ours.clone();
        let connection = ClientConnection::new(config, Version::V1, server_name(), params);
        Ok(Self::new(
            connection.map_err(proof)?.into(),
            credentials,
            bond,
            true,
        ))
    }

    /// Of who is dialled.
    ///
    /// # Errors
    ///
    /// [`SealError::Proof`] if the settings do not allow it.
    pub fn accept(credentials: &Credentials, bond: Bond) -> Result<Self, SealError> {
        let config = Arc::clone(&credentials.sealing().map_err(proof)?.1);
        let connection = ServerConnection::new(config, Version::V1, bond.ours.clone());
        Ok(Self::new(
            connection.map_err(proof)?.into(),
            credentials,
            bond,
            false,
        ))
    }

    fn new(connection: Connection, credentials: &Credentials, bond: Bond, dialled: bool) -> Self {
        Self {
            connection,
            credentials: credentials.clone(),
            bond,
            dialled,
            came: 0,
            level: None,
            opened: 0,
            sealed: 0,
            seal: None,
            is_proved: false,
        }
    }

    /// The first flight, of who dials.
    ///
    /// # Errors
    ///
    /// [`SealError::Flight`] if it is the other end's turn.
    pub fn begin(&mut self) -> Result<Vec<u8>, SealError> {
        let mut said = Vec::new();
        self.write(&mut said)?;
        match said.is_empty() || !self.dialled {
            true => Err(SealError::Flight),
            false => Ok(said),
        }
    }

    /// Takes in a flight: what to send then, if anything.
    ///
    /// # Errors
    ///
    /// [`SealError`]: there will be no seal, and nothing more is to be sent.
    pub fn take(&mut self, flight: &[u8]) -> Result<Option<Vec<u8>>, SealError> {
        let flights = if self.dialled { 1 } else { 2 };
        if self.is_proved || self.came >= flights || flight.len() > MAX_FLIGHT {
            return Err(SealError::Flight);
        }
        self.came += 1;
        let mut said = Vec::new();
        for part in flight::parts(flight) {
            let (level, bytes) = part.ok_or(SealError::Flight)?;
            let mut bytes = bytes.to_vec();
            let plain = match (level, &self.level) {
                (INITIAL, None) => &bytes[..],
                (HANDSHAKE, Some(level)) => {
                    let number = self.opened;
                    self.opened += 1;
                    let packet = &level.remote.packet;
                    let plain = packet.decrypt_in_place(number, &[HANDSHAKE], &mut bytes);
                    plain.map_err(|_| SealError::Broken)?
                }
                _ => return Err(SealError::Flight),
            };
            self.connection.read_hs(plain).map_err(proof)?;
            self.write(&mut said)?;
        }
        if !self.connection.is_handshaking() {
            self.check()?;
            self.is_proved = true;
        }
        Ok((!said.is_empty()).then_some(said))
    }

    /// Opens what was sealed, once there are keys, though who sealed it may not be proved yet: nothing of it may be used before
    /// [`finish`](Self::finish) gives a seal.
    ///
    /// # Errors
    ///
    /// As of [`Seal::open`].
    pub fn open<'a>(
        &mut self,
        number: u64,
        phase: bool,
        header: &[u8],
        contents: &'a mut [u8],
    ) -> Result<&'a [u8], SealError> {
        let seal = self.seal.as_mut().ok_or(SealError::Broken)?;
        seal.open(number, phase, header, contents)
    }

    /// Whether the other end has proved who it is.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        self.is_proved
    }

    /// The seal, once, if the other end has proved who it is.
    #[must_use]
    pub fn finish(&mut self) -> Option<Seal> {
        match self.is_proved {
            true => self.seal.take(),
            false => None,
        }
    }

    /// Adds what is to be said, in the keys of its level.
    fn write(&mut self, said: &mut Vec<u8>) -> Result<(), SealError> {
        loop {
            let mut bytes = Vec::new();
            let change = self.connection.write_hs(&mut bytes);
            let is_over = change.is_none();
            if !bytes.is_empty() && self.seal.is_some() {
                // Nothing belongs to a handshake that is over.
                return Err(SealError::Flight);
            }
            if !bytes.is_empty() {
                let level = match &self.level {
                    None => INITIAL,
                    Some(level) => {
                        let number = self.sealed;
                        self.sealed += 1;
                        let packet = &level.local.packet;
                        let tag = packet.encrypt_in_place(number, &[HANDSHAKE], &mut bytes);
                        bytes.extend_from_slice(tag.map_err(proof)?.as_ref());
                        HANDSHAKE
                    }
                };
                flight::add(said, level, &bytes).ok_or(SealError::Flight)?;
            }
            match change {
                Some(KeyChange::Handshake { keys }) => self.level = Some(keys),
                Some(KeyChange::OneRtt { keys, next }) => self.seal = Some(Seal::new(keys, next)),
                None => {}
            }
            if is_over {
                return Ok(());
            }
        }
    }

    /// Whether the other end is who, and means what, was expected.
    fn check(&self) -> Result<(), SealError> {
        let common = &*self.connection;
        let is_ours = common.alpn_protocol() == Some(SEALED_ALPN)
            && common.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        if !is_ours {
            return Err(SealError::Purpose);
        }
        let certificates = common.peer_certificates().unwrap_or_default();
        let found = self.credentials.identify(certificates).map_err(proof)?;
        if found != self.bond.peer {
            let wanted = self.bond.peer.clone();
            return Err(SealError::Other { found, wanted });
        }
        match self.connection.quic_transport_parameters() {
            Some(said) if said == self.bond.theirs => Ok(()),
            _ => Err(SealError::Purpose),
        }
    }
}

/// Without keys.
impl fmt::Debug for Shaking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shaking")
            .field("bond", &self.bond)
            .field("is_proved", &self.is_proved)
            .finish_non_exhaustive()
    }
}

fn proof(error: impl fmt::Display) -> SealError {
    SealError::Proof(error.to_string())
}
