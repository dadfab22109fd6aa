//! The settings of TLS: version 1.3 only, both sides certified, nothing that outlives a connection.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::ServerName;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{ClientConfig, Error, ServerConfig, SignatureScheme};

use crate::admission::{ALGORITHMS, Admission, Admits};

/// The protocol that both sides must name in the handshake (ALPN, RFC 7301).
pub const ALPN: &[u8] = b"mizzen/1";

/// The protocol that the ends of a seal must name, so that a handshake of a connection never passes for theirs.
pub(crate) const SEALED_ALPN: &[u8] = b"mizzen-sealed/1";

/// The name to give to a TLS client, which requires one. It is neither sent nor checked: only the identity counts.
///
/// ```
/// assert_eq!(mizzen_identity::server_name().to_str(), "0.0.0.0");
/// ```
pub fn server_name() -> ServerName<'static> {
    ServerName::from(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
}

pub(crate) fn client(
    presented: Arc<Presented>,
    verifier: Arc<impl Admits>,
    alpn: &[u8],
) -> Result<ClientConfig, Error> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Admission(verifier)))
        .with_client_cert_resolver(presented);
    config.alpn_protocols = vec![alpn.to_vec()];
    config.enable_sni = false;
    config.resumption = Resumption::disabled();
    config.enable_early_data = false;
    Ok(config)
}

pub(crate) fn server(
    presented: Arc<Presented>,
    verifier: Arc<impl Admits>,
    alpn: &[u8],
) -> Result<ServerConfig, Error> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(Admission(verifier)))
        .with_cert_resolver(presented);
    config.alpn_protocols = vec![alpn.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    Ok(config)
}

/// The certificate that we show, to whom speaks our protocol.
#[derive(Debug)]
pub(crate) struct Presented(pub(crate) Arc<CertifiedKey>);

impl ResolvesClientCert for Presented {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// TLS refuses a client that names other protocols, but not one that names none: that one finds no certificate here.
impl ResolvesServerCert for Presented {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        hello.alpn().map(|_| Arc::clone(&self.0))
    }
}

/// AES-128-GCM first: with AES instructions it is the fastest. X25519 first: the hybrid with ML-KEM costs a kilobyte more
/// in each direction, and is there for peers that insist.
fn provider() -> Arc<CryptoProvider> {
    use aws_lc_rs::{cipher_suite, kx_group};
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: vec![kx_group::X25519, kx_group::X25519MLKEM768],
        signature_verification_algorithms: ALGORITHMS,
        ..aws_lc_rs::default_provider()
    })
}
