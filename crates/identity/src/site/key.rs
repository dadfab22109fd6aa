//! Keys that live longer than a process: of a site, and of a gateway.

use std::fmt;
use std::time::{Duration, SystemTime};

use zeroize::Zeroizing;

use super::certificate;
use super::error::SiteKeyError;
use super::name::{GatewayName, check_site_name};
use super::pin::Pin;
use super::text::{KeyText, SEED, seed_from_text, seed_to_text};
use crate::keys::{Keys, ProvedKey};
use crate::limits::MAX_CERTIFICATE;

/// How long the certificate of a gateway is valid: a year, and a month to notice.
///
/// Thirteen times as long as that of a process: a gateway does not end with a job, and renewing takes the site's key, which is best kept
/// where no program reaches it. It need not be short to be safe: who is not believed any more is on the list of revoked keys,
/// which holds within seconds.
pub const GATEWAY_LIFETIME: Duration = Duration::from_secs(400 * 24 * 3600);

/// The key of a site: whoever has it can be any gateway of that site. Wiped when dropped, never printed.
///
/// ```
/// use mizzen_identity::SiteKey;
///
/// let key = SiteKey::generate()?;
/// let text = key.to_text();
/// assert!(text.as_str().starts_with("-----BEGIN PRIVATE KEY-----\n"));
/// assert_eq!(SiteKey::from_text(text.as_str())?.pin(), key.pin());
/// assert_eq!(format!("{text:?}"), "KeyText(..)");
/// # Ok::<(), mizzen_identity::SiteKeyError>(())
/// ```
pub struct SiteKey(Stored);

impl SiteKey {
    /// Makes a key.
    ///
    /// # Errors
    ///
    /// [`SiteKeyError::Crypto`] if this host has no random numbers.
    pub fn generate() -> Result<Self, SiteKeyError> {
        Stored::generate().map(Self)
    }

    /// Reads what [`to_text`](Self::to_text) wrote, or another tool: an Ed25519 key as PKCS#8 in PEM.
    ///
    /// # Errors
    ///
    /// [`SiteKeyError::KeyText`] if it is anything else.
    pub fn from_text(text: &str) -> Result<Self, SiteKeyError> {
        Stored::from_text(text).map(Self)
    }

    /// The key as text, for a file that nobody else can read.
    pub fn to_text(&self) -> KeyText {
        seed_to_text(&self.0.seed)
    }

    /// By what others know it.
    pub fn pin(&self) -> Pin {
        self.0.pin()
    }

    /// The certificate of the site, which its gateways show: signed by itself, and always the same for this key and name.
    ///
    /// It has no end: the key is good for as long as others list its pin.
    ///
    /// # Errors
    ///
    /// [`SiteKeyError::Name`] if the name is not valid.
    pub fn certificate(&self, site: &str) -> Result<Vec<u8>, SiteKeyError> {
        check_site_name(site)?;
        let keys = &self.0.keys;
        let certificate = certificate::issue(certificate::site(site, keys)?, keys, site, keys)?;
        debug_assert!(certificate.len() <= MAX_CERTIFICATE, "names are bounded");
        Ok(certificate)
    }

    /// Certifies that the key of `request` is that of a gateway, from [`CLOCK_SKEW`](crate::CLOCK_SKEW) before `now` until `lifetime` after.
    ///
    /// The caller must know whose key it is: a request names nobody.
    ///
    /// # Errors
    ///
    /// [`SiteKeyError::Request`] if whoever made the request does not have the key, `Time` or `Crypto` if the clock or the library fails.
    pub fn certify(
        &self,
        request: &[u8],
        name: &GatewayName,
        now: SystemTime,
        lifetime: Duration,
    ) -> Result<Vec<u8>, SiteKeyError> {
        let key = ProvedKey::of(request).map_err(|_| SiteKeyError::Request)?;
        let params = certificate::gateway(name, &key, now, lifetime)?;
        let certificate = certificate::issue(params, &key, name.site(), &self.0.keys)?;
        debug_assert!(certificate.len() <= MAX_CERTIFICATE, "names are bounded");
        Ok(certificate)
    }

    #[cfg(test)]
    pub(crate) fn keys(&self) -> &Keys {
        &self.0.keys
    }
}

/// Only by what others know it.
impl fmt::Debug for SiteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SiteKey({})", self.pin())
    }
}

/// The key of a gateway, which it has for as long as its certificate. Wiped when dropped, never printed.
///
/// ```
/// use mizzen_identity::GatewayKey;
///
/// let key = GatewayKey::generate()?;
/// assert_eq!(GatewayKey::from_text(key.to_text().as_str())?.pin(), key.pin());
/// # Ok::<(), mizzen_identity::SiteKeyError>(())
/// ```
pub struct GatewayKey(Stored);

impl GatewayKey {
    /// Makes a key.
    ///
    /// # Errors
    ///
    /// [`SiteKeyError::Crypto`] if this host has no random numbers.
    pub fn generate() -> Result<Self, SiteKeyError> {
        Stored::generate().map(Self)
    }

    /// Reads what [`to_text`](Self::to_text) wrote.
    ///
    /// # Errors
    ///
    /// [`SiteKeyError::KeyText`] if it is anything else.
    pub fn from_text(text: &str) -> Result<Self, SiteKeyError> {
        Stored::from_text(text).map(Self)
    }

    /// The key as text, for a file that nobody else can read.
    pub fn to_text(&self) -> KeyText {
        seed_to_text(&self.0.seed)
    }

    /// By what it can be revoked.
    pub fn pin(&self) -> Pin {
        self.0.pin()
    }

    /// The request for a certificate: the public key, and the proof that we have the private one.
    pub fn request(&self) -> Vec<u8> {
        self.0.keys.request()
    }

    /// The keys, for [`SiteCredentials`](crate::SiteCredentials).
    pub fn keys(&self) -> Keys {
        self.0.keys.clone()
    }
}

/// Only by what it can be revoked.
impl fmt::Debug for GatewayKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GatewayKey({})", self.pin())
    }
}

/// A key, with what makes it again. The library would give that back, too, but not wipe its copy.
struct Stored {
    /// Boxed: moving it would leave copies behind.
    seed: Box<Zeroizing<[u8; SEED]>>,
    keys: Keys,
}

impl Stored {
    fn generate() -> Result<Self, SiteKeyError> {
        let mut seed = Box::new(Zeroizing::new([0; SEED]));
        aws_lc_rs::rand::fill(seed.as_mut_slice()).map_err(|_| SiteKeyError::Crypto)?;
        Self::new(seed)
    }

    fn from_text(text: &str) -> Result<Self, SiteKeyError> {
        Self::new(seed_from_text(text)?)
    }

    fn new(seed: Box<Zeroizing<[u8; SEED]>>) -> Result<Self, SiteKeyError> {
        let keys = Keys::from_seed_alone(seed.as_slice()).map_err(|_| SiteKeyError::Crypto)?;
        Ok(Self { seed, keys })
    }

    fn pin(&self) -> Pin {
        Pin::of(&self.keys.public_info())
    }
}
