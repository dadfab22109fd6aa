//! Credentials of a gateway: its certified keys, and the settings of its connections with other sites.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, CommonState, ProtocolVersion, ServerConfig};

use super::certificate::Shown;
use super::error::{SiteCredentialsError, SiteError};
use super::name::GatewayName;
use super::pin::Pin;
use super::sites::{SitePeer, Sites};
use super::verifier::SiteVerifier;
use crate::admission::Side;
use crate::keys::Keys;
use crate::settings::{self, Presented};

/// The protocol that both gateways must name in the handshake (ALPN, RFC 7301).
pub const SITE_ALPN: &[u8] = b"mizzen-site/1";

/// What a gateway proves itself with to other sites, and by which it knows them.
///
/// Cloning shares everything.
///
/// ```
/// use std::time::SystemTime;
/// use mizzen_identity::{GATEWAY_LIFETIME, GatewayKey, GatewayName, SiteCredentials, SiteKey, SiteList, Sites};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Once, at site a: its key, and a gateway that the key certifies.
/// let site = SiteKey::generate()?;
/// let gateway = GatewayKey::generate()?;
/// let name: GatewayName = "mizzen-site://a/gw1".parse()?;
/// let certificate = site.certify(&gateway.request(), &name, SystemTime::now(), GATEWAY_LIFETIME)?;
///
/// // At site b, whose administrator was told the pin of a.
/// let mut list = SiteList::new();
/// list.believe("a", site.pin())?;
/// let sites = Sites::new(list);
///
/// // The gateway of a: its connections, and whom it believes.
/// let credentials = SiteCredentials::new(gateway.keys(), certificate, site.certificate("a")?, sites.clone())?;
/// assert_eq!(credentials.name().to_string(), "mizzen-site://a/gw1");
/// let _ = (credentials.client_config(), credentials.server_config());
///
/// // Later: a is not believed any more, also on connections that are up.
/// let me = credentials.as_peer();
/// assert!(sites.welcome(&me).is_ok());
/// sites.replace(SiteList::new());
/// assert!(sites.welcome(&me).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SiteCredentials {
    name: GatewayName,
    me: SitePeer,
    presented: Arc<Presented>,
    verifier: Arc<SiteVerifier>,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl SiteCredentials {
    /// Joins keys with the certificate that the site's key made for them, and that of the site. `sites` are believed, as they are at each moment.
    ///
    /// # Errors
    ///
    /// [`SiteCredentialsError`] if the three do not belong together, or the certificate is not valid now.
    pub fn new(
        keys: Keys,
        certificate: Vec<u8>,
        site_certificate: Vec<u8>,
        sites: Sites,
    ) -> Result<Self, SiteCredentialsError> {
        let chain = [certificate, site_certificate].map(CertificateDer::from);
        let shown = Shown::read(&chain[0], &chain[1..])?;
        let (name, me) = (shown.name().clone(), shown.peer());
        if me.pins.gateway != Pin::of(&keys.public_info()) {
            return Err(SiteCredentialsError::OtherKey(name));
        }
        for side in [Side::Client, Side::Server] {
            shown.verify(side, UnixTime::now())?;
        }
        Self::assemble(name, me, keys, chain.to_vec(), sites)
    }

    pub(crate) fn assemble(
        name: GatewayName,
        me: SitePeer,
        keys: Keys,
        chain: Vec<CertificateDer<'static>>,
        sites: Sites,
    ) -> Result<Self, SiteCredentialsError> {
        let presented = Arc::new(Presented(Arc::new(CertifiedKey::new(
            chain,
            Arc::new(keys),
        ))));
        let verifier = Arc::new(SiteVerifier { sites });
        let refused = |_| SiteCredentialsError::Crypto;
        let both = || (Arc::clone(&presented), Arc::clone(&verifier), SITE_ALPN);
        let (shown, checks, alpn) = both();
        let client = settings::client(shown, checks, alpn).map_err(refused)?;
        let (shown, checks, alpn) = both();
        let server = settings::server(shown, checks, alpn).map_err(refused)?;
        Ok(Self {
            name,
            me,
            presented,
            verifier,
            client: Arc::new(client),
            server: Arc::new(server),
        })
    }

    /// Who we are.
    pub fn name(&self) -> &GatewayName {
        &self.name
    }

    /// Who we are to others: what their [`peer`](Self::peer) says of us.
    pub fn as_peer(&self) -> SitePeer {
        self.me.clone()
    }

    /// Who is believed.
    pub fn sites(&self) -> &Sites {
        &self.verifier.sites
    }

    /// The settings of connections that we open, with [`server_name`](crate::server_name) as the name.
    pub fn client_config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.client)
    }

    /// The settings of connections that we accept.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }

    /// Whether our own certificate will be valid at some time: ask for next month, and warn.
    ///
    /// # Errors
    ///
    /// [`SiteError::Time`] if not: certify this gateway again.
    pub fn valid_at(&self, time: SystemTime) -> Result<(), SiteError> {
        let since = time
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        let [leaf, others @ ..] = &self.presented.0.cert[..] else {
            return Err(SiteError::Unreadable);
        };
        Shown::read(leaf, others)?.verify(Side::Client, UnixTime::since_unix_epoch(since))
    }

    /// Who is at the other end of a connection whose handshake is complete, on either side, and is welcome now.
    ///
    /// Ask before anything else is sent or believed: it also checks that the other side speaks our protocol, which TLS
    /// leaves to a server's discretion. Later, ask [`Sites::welcome`].
    ///
    /// # Errors
    ///
    /// [`SiteError`] if it is nobody whom we believe: close the connection.
    pub fn peer(&self, connection: &CommonState) -> Result<SitePeer, SiteError> {
        let version = connection.protocol_version();
        let ours = connection.alpn_protocol() == Some(SITE_ALPN);
        if connection.is_handshaking() || version != Some(ProtocolVersion::TLSv1_3) || !ours {
            return Err(SiteError::Protocol);
        }
        let Some([leaf, others @ ..]) = connection.peer_certificates() else {
            return Err(SiteError::Protocol);
        };
        self.verifier.identify(&Shown::read(leaf, others)?)
    }
}

/// Without keys.
impl fmt::Debug for SiteCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiteCredentials")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
