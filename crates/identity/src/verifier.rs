//! Who is let in: the checks of a peer's certificates, the cheap ones first.
//!
//! 1. Few and short certificates ([`MAX_CHAIN`], [`MAX_CHAIN_BYTES`]).
//! 2. The first names exactly one identity, of our cluster and our job, and a process to processes, an agent to agents.
//! 3. It is signed by the job's authority itself, now valid, and made for this side of a connection.
//!
//! Host names and addresses mean nothing here: where a process runs does not say who it is.

use std::sync::Arc;

use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use rustls::{CertificateError, Error, OtherError};
use webpki::{EndEntityCert, KeyUsage};

use crate::admission::{ALGORITHMS, Admits, Side};
use crate::error::{CredentialsError, IdentityError};
use crate::identity::{Identity, Role};
use crate::limits::{MAX_CHAIN, MAX_CHAIN_BYTES};

/// Checks peers of one process, on both sides of a connection.
#[derive(Debug)]
pub(crate) struct Verifier {
    /// The job's authority.
    anchor: TrustAnchor<'static>,
    cluster: String,
    job: [u8; 16],
    believes: Believes,
}

/// Whom to believe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Believes {
    /// Processes believe processes, agents believe agents.
    Only(Role),
    /// Gateways hand on between both.
    Both,
}

impl Believes {
    fn includes(self, role: Role) -> bool {
        match self {
            Self::Only(wanted) => role == wanted,
            Self::Both => true,
        }
    }
}

impl Verifier {
    /// The same, believing others.
    pub(crate) fn with(&self, believes: Believes) -> Self {
        Self {
            anchor: self.anchor.clone(),
            cluster: self.cluster.clone(),
            job: self.job,
            believes,
        }
    }

    pub(crate) fn new(authority: &[u8], of: &Identity) -> Result<Self, CredentialsError> {
        let certificate = CertificateDer::from(authority);
        let anchor = webpki::anchor_from_trusted_cert(&certificate)
            .map_err(|_| CredentialsError::Authority)?
            .to_owned();
        Ok(Self {
            anchor,
            cluster: of.cluster().to_owned(),
            job: of.job(),
            believes: Believes::Only(of.role()),
        })
    }

    /// Who shows these certificates. Says nothing about their signatures.
    pub(crate) fn identify<'a, 'c: 'a>(
        &self,
        certificates: impl Iterator<Item = &'a CertificateDer<'c>> + Clone,
    ) -> Result<Identity, IdentityError> {
        let peer = identity_of(certificates)?;
        if peer.cluster() != self.cluster {
            let ours = self.cluster.clone();
            return Err(IdentityError::OtherCluster { peer, ours });
        }
        if peer.job() != self.job {
            return Err(IdentityError::OtherJob(peer));
        }
        if !self.believes.includes(peer.role()) {
            return Err(IdentityError::OtherRole(peer));
        }
        Ok(peer)
    }

    /// Whether the authority signed this certificate for this use, and it is valid now.
    pub(crate) fn verify(
        &self,
        leaf: &CertificateDer<'_>,
        side: Side,
        now: UnixTime,
    ) -> Result<(), webpki::Error> {
        let usage = match side {
            Side::Client => KeyUsage::client_auth(),
            Side::Server => KeyUsage::server_auth(),
        };
        let anchors = std::slice::from_ref(&self.anchor);
        // No intermediates: the authority signs processes only, and whoever it signed signs nobody.
        EndEntityCert::try_from(leaf)?
            .verify_for_usage(ALGORITHMS.all, anchors, &[], now, usage, None, None)
            .map(|_| ())
    }
}

impl Admits for Verifier {
    fn admit(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        side: Side,
        now: UnixTime,
    ) -> Result<(), Error> {
        let chain = std::iter::once(leaf).chain(others);
        self.identify(chain)
            .map_err(|error| refuse(CertificateError::Other(OtherError(Arc::new(error)))))?;
        self.verify(leaf, side, now)
            .map_err(|error| refuse(certificate_error(error)))
    }
}

/// The identity in the first of a peer's certificates.
pub(crate) fn identity_of<'a, 'c: 'a>(
    certificates: impl Iterator<Item = &'a CertificateDer<'c>> + Clone,
) -> Result<Identity, IdentityError> {
    let count = certificates.clone().count();
    let bytes = certificates.clone().map(|der| der.len()).sum();
    if count > MAX_CHAIN || bytes > MAX_CHAIN_BYTES {
        return Err(IdentityError::Chain {
            certificates: count,
            bytes,
        });
    }
    let leaf = certificates.clone().next().ok_or(IdentityError::Missing)?;
    let leaf = EndEntityCert::try_from(leaf).map_err(|_| IdentityError::Unreadable)?;
    let mut uris = leaf.valid_uri_names();
    let (Some(uri), None, None) = (uris.next(), uris.next(), leaf.valid_dns_names().next()) else {
        return Err(IdentityError::NotOneName);
    };
    Ok(uri.parse::<Identity>()?)
}

/// In the words that TLS has alerts for.
fn certificate_error(error: webpki::Error) -> CertificateError {
    match error {
        webpki::Error::CertExpired { time, not_after } => {
            CertificateError::ExpiredContext { time, not_after }
        }
        webpki::Error::CertNotValidYet { time, not_before } => {
            CertificateError::NotValidYetContext { time, not_before }
        }
        webpki::Error::UnknownIssuer => CertificateError::UnknownIssuer,
        webpki::Error::InvalidSignatureForPublicKey => CertificateError::BadSignature,
        webpki::Error::RequiredEkuNotFoundContext(_) => CertificateError::InvalidPurpose,
        other => CertificateError::Other(OtherError(Arc::new(other))),
    }
}

fn refuse(error: CertificateError) -> Error {
    Error::InvalidCertificate(error)
}
