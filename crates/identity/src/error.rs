//! What can go wrong, by operation.

use crate::identity::{Identity, NameError};
use crate::limits::{MAX_CHAIN, MAX_CHAIN_BYTES};

/// Why an authority could not be made, read or used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// The cluster's name is not valid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The bytes are not the secret of an authority. Launcher and agent differ, or something changed the bytes between them.
    #[error("the authority's secret is damaged; launcher and agents must be of the same version")]
    Secret,
    /// The request is not a public key signed by its private key. Certify nothing, and distrust the sender.
    #[error("the request for a certificate does not prove possession of its key")]
    Request,
    /// The identity is of another cluster or job than this authority's.
    #[error("{0} is not a process of this authority's job")]
    NotOurs(Identity),
    /// The clock, or the lifetime asked for, is outside what a certificate can say.
    #[error("the certificate's time cannot be expressed; check this host's clock")]
    Time,
    /// The cryptographic library failed, which it should not: memory or random numbers may be missing.
    #[error("the cryptographic library could not make or use a key; check this host's memory")]
    Crypto,
}

/// Why credentials could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// The cryptographic library failed, which it should not: memory or random numbers may be missing.
    #[error("the cryptographic library could not make or use a key; check this host's memory")]
    Crypto,
    /// The authority's certificate cannot be read.
    #[error("the certificate of the job's authority cannot be read; ask the agent again")]
    Authority,
    /// The certificate is of another key.
    #[error("the certificate is of another key than this process's; ask the agent again")]
    OtherKey,
    /// The certificate is not one of the authority, or not at this time.
    #[error(
        "the certificate is not valid under the job's authority ({0}); compare the hosts' clocks"
    )]
    Invalid(String),
    /// The certificate names nobody.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// Why a peer is not one of ours, although its certificate's signature and time are right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// It showed no certificate.
    #[error("the peer showed no certificate")]
    Missing,
    /// It showed more certificates than anybody needs.
    #[error(
        "the peer showed {certificates} certificates of {bytes} bytes; {MAX_CHAIN} of {MAX_CHAIN_BYTES} are allowed"
    )]
    Chain {
        /// How many.
        certificates: usize,
        /// How long together.
        bytes: usize,
    },
    /// What it showed is not a certificate.
    #[error("the peer's certificate cannot be read")]
    Unreadable,
    /// The certificate has none, several, or other names than one identity.
    #[error("the peer's certificate has not exactly one identity")]
    NotOneName,
    /// The one name is not an identity.
    #[error("the peer's certificate has a malformed identity: {0}")]
    Name(#[from] NameError),
    /// It is of another cluster.
    #[error("{peer} is of another cluster than this process's, {ours:?}")]
    OtherCluster {
        /// Who it is.
        peer: Identity,
        /// Our cluster.
        ours: String,
    },
    /// It is of another job.
    #[error("{0} is of another job than this process's")]
    OtherJob(Identity),
    /// It is an agent, and we are a process, or the other way round.
    #[error("{0} is not what this connection is for")]
    OtherRole(Identity),
    /// It does not speak our protocol, or the handshake is not complete.
    #[error("the peer did not agree to speak mizzen/1 over TLS 1.3")]
    Protocol,
}

/// Why there is no seal, or why it does not open something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// It is no flight of a handshake, or not its turn.
    #[error("what came is no part of the handshake: close the link")]
    Flight,
    /// The handshake failed.
    #[error("the other end did not prove who it is ({0}): close the link")]
    Proof(String),
    /// Somebody else is at the other end.
    #[error("{found} is at the other end, where {wanted} was expected: close the link")]
    Other {
        /// Who it is.
        found: Identity,
        /// Who was expected.
        wanted: Identity,
    },
    /// The handshake was for something else.
    #[error("the handshake was made for another link: close this one")]
    Purpose,
    /// It was changed on its way, or does not belong there.
    #[error("what came was not sealed by the other end, or not for this place: leave it")]
    Broken,
    /// So much was forged that the keys may not be used any more.
    #[error("too much came that the other end did not seal: close the link")]
    Worn,
}
