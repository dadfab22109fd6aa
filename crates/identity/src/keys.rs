//! Keys of a process, and the request that has them certified.
//!
//! Ed25519 throughout: with this library it verifies in 0.6 and signs in 0.6 of the time of P-256, and a handshake
//! verifies four signatures. Its signatures need no random numbers, so none can leak the key.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::sign::{Signer, SigningKey};
use rustls::{SignatureAlgorithm, SignatureScheme};

use crate::error::{AuthorityError, CredentialsError};

/// The length of a request: version, public key, signature.
pub const REQUEST_LENGTH: usize = 1 + PUBLIC_KEY + SIGNATURE;

const PUBLIC_KEY: usize = 32;
const SIGNATURE: usize = 64;
const VERSION: u8 = 1;

/// What a request signs, before its public key. TLS signs nothing that begins so (RFC 8446, 4.4.3).
const CONTEXT: &[u8] = b"mizzen: request for a certificate, version 1\0";

/// The keys of a process. The private one is never written anywhere.
///
/// ```
/// let keys = mizzen_identity::Keys::generate()?;
/// assert_eq!(keys.request().len(), mizzen_identity::REQUEST_LENGTH);
/// # Ok::<(), mizzen_identity::CredentialsError>(())
/// ```
#[derive(Clone)]
pub struct Keys {
    pair: Arc<Ed25519KeyPair>,
}

impl Keys {
    /// Makes keys, in about 20 µs.
    ///
    /// # Errors
    ///
    /// [`CredentialsError::Crypto`] if the library refuses.
    pub fn generate() -> Result<Self, CredentialsError> {
        let pair = Ed25519KeyPair::generate().map_err(|_| CredentialsError::Crypto)?;
        Ok(Self {
            pair: Arc::new(pair),
        })
    }

    pub(crate) fn from_seed_alone(seed: &[u8]) -> Result<Self, AuthorityError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed);
        Ok(Self {
            pair: Arc::new(pair.map_err(|_| AuthorityError::Crypto)?),
        })
    }

    pub(crate) fn from_seed(seed: &[u8], public: &[u8]) -> Result<Self, AuthorityError> {
        let pair = Ed25519KeyPair::from_seed_and_public_key(seed, public);
        Ok(Self {
            pair: Arc::new(pair.map_err(|_| AuthorityError::Secret)?),
        })
    }

    /// The request for a certificate: the public key, and the proof that we have the private one.
    ///
    /// It names nobody: the agent knows who asks.
    pub fn request(&self) -> Vec<u8> {
        let mut request = Vec::with_capacity(REQUEST_LENGTH);
        request.push(VERSION);
        request.extend_from_slice(self.public());
        request.extend_from_slice(self.pair.sign(&signed(self.public())).as_ref());
        request
    }

    pub(crate) fn public(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    /// The public key as certificates hold it.
    pub(crate) fn public_info(&self) -> Vec<u8> {
        rcgen::PublicKeyData::subject_public_key_info(self)
    }
}

/// Without any part of the keys.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(..)")
    }
}

impl rcgen::PublicKeyData for Keys {
    fn der_bytes(&self) -> &[u8] {
        self.public()
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_ED25519
    }
}

impl rcgen::SigningKey for Keys {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        Ok(self.pair.sign(message).as_ref().to_vec())
    }
}

impl SigningKey for Keys {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        offered
            .contains(&SignatureScheme::ED25519)
            .then(|| Box::new(self.clone()) as Box<dyn Signer>)
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        Some(self.public_info().into())
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ED25519
    }
}

impl Signer for Keys {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        Ok(self.pair.sign(message).as_ref().to_vec())
    }

    fn scheme(&self) -> SignatureScheme {
        SignatureScheme::ED25519
    }
}

/// The public key of a request, found to be the sender's.
pub(crate) struct ProvedKey([u8; PUBLIC_KEY]);

impl ProvedKey {
    pub(crate) fn of(request: &[u8]) -> Result<Self, AuthorityError> {
        let wrong = AuthorityError::Request;
        let request: &[u8; REQUEST_LENGTH] = request.try_into().map_err(|_| wrong.clone())?;
        let (version, rest) = request.split_at(1);
        let (public, signature) = rest.split_at(PUBLIC_KEY);
        if version != [VERSION] {
            return Err(wrong);
        }
        UnparsedPublicKey::new(&ED25519, public)
            .verify(&signed(public), signature)
            .map_err(|_| wrong.clone())?;
        Ok(Self(public.try_into().map_err(|_| wrong)?))
    }
}

impl rcgen::PublicKeyData for ProvedKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_ED25519
    }
}

fn signed(public: &[u8]) -> Vec<u8> {
    [CONTEXT, public].concat()
}
