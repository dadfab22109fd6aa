//! Which gateways are let in: the checks of a peer's certificates, the cheap ones first.
//!
//! 1. Two short certificates, of which the first has one name, that of a gateway.
//! 2. Neither key is revoked, and the second certificate has a key that is listed for the site of that name.
//! 3. That key signed the first certificate; it is now valid, and made for this side of a connection.
//!
//! The list is the one that holds at that moment. Host names and addresses mean nothing here.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::verify_tls13_signature;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme,
};

use super::certificate::Shown;
use super::error::SiteError;
use super::sites::{SitePeer, Sites};
use crate::verifier::{ALGORITHMS, Side};

/// Checks peers of one gateway, on both sides of a connection.
#[derive(Debug)]
pub(super) struct SiteVerifier {
    pub(super) sites: Sites,
}

impl SiteVerifier {
    /// Who shows these certificates, if the list has its keys. Says nothing about signatures.
    pub(super) fn identify(&self, shown: &Shown<'_>) -> Result<SitePeer, SiteError> {
        let peer = shown.peer();
        self.sites.list().check(shown.name(), peer.pins)?;
        Ok(peer)
    }

    fn admit(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        side: Side,
        now: UnixTime,
    ) -> Result<(), Error> {
        let checked = Shown::read(leaf, others).and_then(|shown| {
            self.identify(&shown)?;
            shown.verify(side, now)
        });
        checked.map_err(|error| {
            Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(error))))
        })
    }
}

impl ServerCertVerifier for SiteVerifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.admit(leaf, others, Side::Server, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(only_tls13())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, leaf, signature, &ALGORITHMS)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ALGORITHMS.supported_schemes()
    }
}

impl ClientCertVerifier for SiteVerifier {
    /// None: a gateway has one certificate, and need not be told which to show.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        true
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.admit(leaf, others, Side::Client, now)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(only_tls13())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, leaf, signature, &ALGORITHMS)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ALGORITHMS.supported_schemes()
    }
}

fn only_tls13() -> Error {
    Error::General("TLS 1.2 is not spoken here".into())
}
