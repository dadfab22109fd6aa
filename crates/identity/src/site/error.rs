//! What can go wrong with sites, by operation.

use rustls::{CertificateError, Error};

use super::name::{GatewayName, SiteNameError};
use super::pin::Pin;
use crate::limits::MAX_CERTIFICATE;

/// Why a key of a site could not be made, read or used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SiteKeyError {
    /// The name is not valid.
    #[error(transparent)]
    Name(#[from] SiteNameError),
    /// The text is not a key.
    #[error(
        "this is not an Ed25519 key as `mizzen site init` writes it (PKCS#8, PEM); restore the file from a copy, or make a new key"
    )]
    KeyText,
    /// The text is not a certificate.
    #[error("this is not one certificate in PEM; restore the file from a copy")]
    CertificateText,
    /// The request is not a public key signed by its private key. Certify nothing, and distrust the sender.
    #[error(
        "the request for a certificate does not prove possession of its key; ask the gateway's administrator for another"
    )]
    Request,
    /// The clock, or the lifetime asked for, is outside what a certificate can say.
    #[error("the certificate's time cannot be expressed; check this host's clock")]
    Time,
    /// The cryptographic library failed, which it should not: memory or random numbers may be missing.
    #[error("the cryptographic library could not make or use a key; check this host's memory")]
    Crypto,
}

/// Why a site cannot be put on the list of those that are believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SiteListError {
    /// The name is not valid.
    #[error(transparent)]
    Name(#[from] SiteNameError),
    /// Another site has this key. Whoever holds it could be both.
    #[error(
        "{pin} is the key of site \"{first}\" already, so it cannot be that of \"{second}\"; ask both for what `mizzen site show` prints there"
    )]
    Taken {
        /// The key.
        pin: Pin,
        /// Who has it.
        first: String,
        /// Who was to have it.
        second: String,
    },
}

/// Why credentials of a gateway could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SiteCredentialsError {
    /// The cryptographic library failed, which it should not.
    #[error("the cryptographic library could not make or use a key; check this host's memory")]
    Crypto,
    /// The certificate is of another key.
    #[error(
        "the certificate of {0} is of another key than this gateway's; certify this gateway's key with the key of the site"
    )]
    OtherKey(GatewayName),
    /// The certificates do not name a gateway, the site's key did not sign, or it is not the time for it.
    #[error("this gateway's own certificate is not good: {0}")]
    Certificate(SiteError),
}

/// Why a peer is not let in, or not welcome any more.
///
/// In a handshake it comes inside an error of TLS, where [`SiteError::of`] finds it. The peer is only told that its certificate was refused:
/// why is for whoever reads our log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SiteError {
    /// It showed other than two certificates, or long ones.
    #[error(
        "the peer showed {certificates} certificates, the longest of {longest} bytes; a gateway shows its own and that of its site, of at most \
         {MAX_CERTIFICATE} bytes each. If it is a gateway, compare the versions of both sides"
    )]
    Chain {
        /// How many.
        certificates: usize,
        /// The longest, in bytes.
        longest: usize,
    },
    /// What it showed is not a certificate.
    #[error(
        "the peer's certificates cannot be read; if it is a gateway, compare the versions of both sides"
    )]
    Unreadable,
    /// The certificate has none, several, or other names than one gateway's.
    #[error(
        "the peer's certificate has not exactly one name, so it is no gateway's; find out what connects there"
    )]
    NotOneName,
    /// The one name is not that of a gateway.
    #[error("the peer's certificate is no gateway's: {0}; find out what connects there")]
    Name(SiteNameError),
    /// Nobody told us of that site.
    #[error(
        "{peer} is of a site that is not listed here; if it should be believed, ask its administrator for its pin, and add it with \
         `mizzen site add {} PIN`",
        peer.site()
    )]
    NotListed {
        /// Who it says it is.
        peer: GatewayName,
    },
    /// The site has another key than we were told. Somebody may pretend to be it.
    #[error(
        "{peer} showed the site key {shown}, which is not listed for site \"{}\"; unless its administrator confirms that this is its new key, \
         somebody pretends to be that site. If it is confirmed, `mizzen site add {} {shown}`",
        peer.site(), peer.site()
    )]
    OtherKey {
        /// Who it says it is.
        peer: GatewayName,
        /// The key that it showed.
        shown: Pin,
    },
    /// The key of its site, or its own, is revoked here.
    #[error(
        "{peer} has the key {pin}, which is revoked here; its administrator must make a new one and tell you its pin"
    )]
    Revoked {
        /// Who it says it is.
        peer: GatewayName,
        /// The key that is revoked: of the site, or of the gateway.
        pin: Pin,
    },
    /// The key of the site did not sign the gateway's certificate.
    #[error(
        "the certificate of {peer} is not signed by its site's key ({why}); if this is not an attack, its gateway must be certified again there"
    )]
    NotSigned {
        /// Who it says it is.
        peer: GatewayName,
        /// What is wrong with it.
        why: String,
    },
    /// It is not the time for this certificate.
    #[error(
        "the certificate of {peer} is not valid at this time ({why}); compare the clocks of both sides, or have its gateway certified again there"
    )]
    Time {
        /// Who it is.
        peer: GatewayName,
        /// Expired, or not valid yet, since when.
        why: String,
    },
    /// It does not speak our protocol, or the handshake is not complete.
    #[error(
        "the peer did not agree to speak mizzen-site/1 over TLS 1.3; check that its address is that of a gateway"
    )]
    Protocol,
}

impl SiteError {
    /// The reason inside an error of TLS, if it is one of ours.
    pub fn of(error: &Error) -> Option<&Self> {
        match error {
            Error::InvalidCertificate(CertificateError::Other(other)) => other.0.downcast_ref(),
            _ => None,
        }
    }
}

// Without a source: both say already what it says.
impl From<SiteError> for SiteCredentialsError {
    fn from(error: SiteError) -> Self {
        Self::Certificate(error)
    }
}

impl From<SiteNameError> for SiteError {
    fn from(error: SiteNameError) -> Self {
        Self::Name(error)
    }
}
