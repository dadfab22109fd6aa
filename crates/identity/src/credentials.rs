//! Credentials of a process: its certified keys, and the settings of its connections.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, CommonState, ProtocolVersion, ServerConfig};
use webpki::EndEntityCert;

use crate::admission::Side;
use crate::error::{CredentialsError, IdentityError};
use crate::identity::{Identity, Role};
use crate::keys::Keys;
use crate::settings::{self, ALPN, Presented, SEALED_ALPN};
use crate::verifier::{Believes, Verifier, identity_of};

/// What a process proves itself with, and by which it knows others of its job.
///
/// See the example of [the crate](crate). Cloning shares everything.
#[derive(Clone)]
pub struct Credentials {
    identity: Identity,
    presented: Arc<Presented>,
    verifier: Arc<Verifier>,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    /// The same for seals, once they are needed.
    sealing: Arc<OnceLock<(Arc<ClientConfig>, Arc<ServerConfig>)>>,
}

impl Credentials {
    /// Joins keys with the certificate that the agent made for them, under the job's authority.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`] if the three do not belong together, or the certificate is not valid now.
    pub fn new(
        keys: Keys,
        certificate: Vec<u8>,
        authority: Vec<u8>,
    ) -> Result<Self, CredentialsError> {
        let leaf = CertificateDer::from(certificate);
        let identity = identity_of(std::iter::once(&leaf))?;
        let verifier = Verifier::new(&authority, &identity)?;
        let invalid = |error: webpki::Error| CredentialsError::Invalid(error.to_string());
        let parsed = EndEntityCert::try_from(&leaf).map_err(invalid)?;
        if parsed.subject_public_key_info().as_ref() != keys.public_info() {
            return Err(CredentialsError::OtherKey);
        }
        for side in [Side::Client, Side::Server] {
            verifier
                .verify(&leaf, side, UnixTime::now())
                .map_err(invalid)?;
        }
        Self::assemble(identity, keys, vec![leaf], verifier)
    }

    pub(crate) fn assemble(
        identity: Identity,
        keys: Keys,
        chain: Vec<CertificateDer<'static>>,
        verifier: Verifier,
    ) -> Result<Self, CredentialsError> {
        let certified = CertifiedKey::new(chain, Arc::new(keys));
        let presented = Arc::new(Presented(Arc::new(certified)));
        Self::with_verifier(identity, presented, verifier)
    }

    fn with_verifier(
        identity: Identity,
        presented: Arc<Presented>,
        verifier: Verifier,
    ) -> Result<Self, CredentialsError> {
        let verifier = Arc::new(verifier);
        let refused = |_| CredentialsError::Crypto;
        let client = settings::client(Arc::clone(&presented), Arc::clone(&verifier), ALPN);
        let server = settings::server(Arc::clone(&presented), Arc::clone(&verifier), ALPN);
        Ok(Self {
            identity,
            presented,
            verifier,
            client: Arc::new(client.map_err(refused)?),
            server: Arc::new(server.map_err(refused)?),
            sealing: Arc::default(),
        })
    }

    /// The same, for links with gateways, which are in agents: a process believes agents there, and an agent believes both.
    ///
    /// # Errors
    ///
    /// [`CredentialsError::Crypto`] if the settings cannot be made.
    pub fn for_gateways(&self) -> Result<Self, CredentialsError> {
        let believes = match self.identity.role() {
            Role::Process => Believes::Only(Role::Agent),
            Role::Agent => Believes::Both,
        };
        let verifier = self.verifier.with(believes);
        Self::with_verifier(self.identity.clone(), Arc::clone(&self.presented), verifier)
    }

    /// Who we are.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The settings of connections that we open, with [`server_name`](crate::server_name) as the name.
    pub fn client_config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.client)
    }

    /// The settings of connections that we accept.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }

    /// The settings of handshakes that seals come of: of who dials, and of who is dialled.
    pub(crate) fn sealing(&self) -> Result<&(Arc<ClientConfig>, Arc<ServerConfig>), rustls::Error> {
        if let Some(made) = self.sealing.get() {
            return Ok(made);
        }
        let both = || (Arc::clone(&self.presented), Arc::clone(&self.verifier));
        let ((shown, checks), (shown_too, checks_too)) = (both(), both());
        let client = settings::client(shown, checks, SEALED_ALPN)?;
        let server = settings::server(shown_too, checks_too, SEALED_ALPN)?;
        let made = (Arc::new(client), Arc::new(server));
        Ok(self.sealing.get_or_init(|| made))
    }

    /// Who is at the other end of a connection whose handshake is complete, on either side.
    ///
    /// Ask before anything else is sent or believed: it also checks that the other side speaks our protocol, which TLS
    /// leaves to a server's discretion.
    ///
    /// # Errors
    ///
    /// [`IdentityError`] if it is not a process of our job: close the connection.
    pub fn peer(&self, connection: &CommonState) -> Result<Identity, IdentityError> {
        let version = connection.protocol_version();
        let ours = connection.alpn_protocol() == Some(ALPN);
        if connection.is_handshaking() || version != Some(ProtocolVersion::TLSv1_3) || !ours {
            return Err(IdentityError::Protocol);
        }
        self.identify(connection.peer_certificates().unwrap_or_default())
    }

    /// Who shows these certificates: of our cluster and our job.
    ///
    /// Only for what a completed handshake returned, which has verified their signatures; [`peer`](Self::peer) does both.
    ///
    /// # Errors
    ///
    /// [`IdentityError`] if it is not a process of our job.
    pub fn identify(&self, certificates: &[CertificateDer<'_>]) -> Result<Identity, IdentityError> {
        self.verifier.identify(certificates.iter())
    }
}

/// Without keys.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}
