//! The authority of a job: it certifies who is who.
//!
//! The launcher makes it and the agents hold it, for as long as the job lives. Its certificate follows from its secret
//! (Ed25519 signatures are deterministic), so the secret is short and the certificate cannot contradict it.

use std::fmt;
use std::time::{Duration, SystemTime};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyIdMethod, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};
use time::OffsetDateTime;
use zeroize::Zeroizing;

use crate::credentials::Credentials;
use crate::error::AuthorityError;
use crate::identity::{Identity, MAX_CLUSTER, NameError, check_cluster};
use crate::keys::{Keys, ProvedKey};
use crate::limits::MAX_CERTIFICATE;
use crate::secret::{MAX_SECRET, Secret};

/// How long a certificate is valid by default: longer than batch systems let a job run.
pub const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);

/// How far apart the clocks of two hosts may be: certificates are valid from that long before they were made.
pub const CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);

/// The shortest secret from which an authority is made.
pub const MIN_SHARED: usize = 32;

/// The cluster of authorities that follow from a shared secret.
const SHARED_CLUSTER: &str = "shared";
/// Nothing else is derived with it.
const SHARED_CONTEXT: &[u8] = b"mizzen: authority of a shared secret, version 1";

const SEED: usize = 32;
const VERSION: u8 = 1;

/// Who certifies the processes of a job.
///
/// See the example of [the crate](crate).
pub struct Authority {
    cluster: String,
    job: [u8; 16],
    /// When it was made, in seconds since 1970.
    made: u64,
    /// Boxed: moving it would leave copies behind.
    seed: Box<Zeroizing<[u8; SEED]>>,
    keys: Keys,
    certificate: Vec<u8>,
}

impl Authority {
    /// Makes the authority of a job.
    ///
    /// # Errors
    ///
    /// [`AuthorityError::Name`] if the cluster's name is not valid; `Time` or `Crypto` if the host's clock or random numbers fail.
    pub fn new(cluster: &str, job: [u8; 16]) -> Result<Self, AuthorityError> {
        check_cluster(cluster)?;
        let made = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_err(|_| AuthorityError::Time)?
            .as_secs();
        let mut seed = Box::new(Zeroizing::new([0; SEED]));
        aws_lc_rs::rand::fill(seed.as_mut_slice()).map_err(|_| AuthorityError::Crypto)?;
        let keys = Keys::from_seed_alone(seed.as_slice())?;
        Self::assemble(cluster, job, made, seed, keys)
    }

    /// The authority that all make who share a secret, each for itself: for those who want to meet, and have nobody else in common.
    ///
    /// What follows from the secret also follows from `purpose`, so that one secret may serve several. A secret that can be guessed is
    /// none: whoever meets one end can try as many as it likes, without asking again.
    ///
    /// ```
    /// use mizzen_identity::Authority;
    ///
    /// let secret = [7; 32];
    /// let (here, there) = (Authority::shared(&secret, "render")?, Authority::shared(&secret, "render")?);
    /// assert_eq!(here.job(), there.job());
    /// assert!(Authority::shared(b"xyzzy", "render").is_err(), "too short");
    /// # Ok::<(), mizzen_identity::AuthorityError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`AuthorityError::Secret`] if it is shorter than [`MIN_SHARED`]; `Time` or `Crypto` as for [`new`](Self::new).
    pub fn shared(secret: &[u8], purpose: &str) -> Result<Self, AuthorityError> {
        if secret.len() < MIN_SHARED {
            return Err(AuthorityError::Secret);
        }
        let made = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_err(|_| AuthorityError::Time)?
            .as_secs();
        let salt = Salt::new(HKDF_SHA256, SHARED_CONTEXT);
        let key = salt.extract(secret);
        let expand = |what: &[u8], into: &mut [u8]| {
            let info = [what, purpose.as_bytes()];
            let okm = key.expand(&info, Length(into.len()));
            okm.and_then(|okm| okm.fill(into))
                .map_err(|_| AuthorityError::Crypto)
        };
        let (mut job, mut seed) = ([0; 16], Box::new(Zeroizing::new([0; SEED])));
        expand(b"job:", &mut job)?;
        expand(b"key:", seed.as_mut_slice())?;
        let keys = Keys::from_seed_alone(seed.as_slice())?;
        Self::assemble(SHARED_CLUSTER, job, made, seed, keys)
    }

    /// Takes what [`to_secret`](Self::to_secret) gave.
    ///
    /// # Errors
    ///
    /// [`AuthorityError::Secret`] if the bytes are anything else.
    pub fn from_secret(secret: &[u8]) -> Result<Self, AuthorityError> {
        if secret.len() > MAX_SECRET {
            return Err(AuthorityError::Secret);
        }
        let mut rest = secret;
        let [version, length] = take(&mut rest)?;
        let length = usize::from(length);
        if version != VERSION || length > MAX_CLUSTER || rest.len() < length {
            return Err(AuthorityError::Secret);
        }
        let (cluster, mut rest) = rest.split_at(length);
        let cluster = std::str::from_utf8(cluster).map_err(|_| AuthorityError::Secret)?;
        check_cluster(cluster).map_err(|_: NameError| AuthorityError::Secret)?;
        let job = take(&mut rest)?;
        let made = u64::from_le_bytes(take(&mut rest)?);
        let (given, public) = rest.split_at_checked(SEED).ok_or(AuthorityError::Secret)?;
        let keys = Keys::from_seed(given, public)?;
        let mut seed = Box::new(Zeroizing::new([0; SEED]));
        seed.copy_from_slice(given);
        Self::assemble(cluster, job, made, seed, keys)
    }

    /// What makes the same authority elsewhere: in the agents of the job, and nowhere else.
    pub fn to_secret(&self) -> Secret {
        // All room at once: growing would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_SECRET));
        let length = u8::try_from(self.cluster.len()).unwrap_or(u8::MAX);
        bytes.extend([VERSION, length]);
        bytes.extend_from_slice(self.cluster.as_bytes());
        bytes.extend_from_slice(&self.job);
        bytes.extend_from_slice(&self.made.to_le_bytes());
        bytes.extend_from_slice(self.seed.as_slice());
        bytes.extend_from_slice(self.keys.public());
        Secret::new(bytes)
    }

    /// Certifies that the key of `request` is the key of `identity`, from [`CLOCK_SKEW`] before `now` until `lifetime` after.
    ///
    /// The caller must know whose key it is: a request names nobody.
    ///
    /// # Errors
    ///
    /// [`AuthorityError::NotOurs`] if the identity is of another job or cluster, `Request` if whoever made the request does not
    /// have the key, `Time` or `Crypto` if the host's clock or random numbers fail.
    pub fn certify(
        &self,
        request: &[u8],
        identity: &Identity,
        now: SystemTime,
        lifetime: Duration,
    ) -> Result<Vec<u8>, AuthorityError> {
        if identity.cluster() != self.cluster || identity.job() != self.job {
            return Err(AuthorityError::NotOurs(identity.clone()));
        }
        let key = ProvedKey::of(request)?;
        let validity = Validity::new(now, lifetime)?;
        let certificate = self.issue(leaf(identity, &key, &validity)?, &key)?;
        debug_assert!(certificate.len() <= MAX_CERTIFICATE, "names are bounded");
        Ok(certificate)
    }

    /// New keys, already certified: for tests, where one process is the authority and all the others.
    ///
    /// ```
    /// use mizzen_identity::{Authority, Identity};
    ///
    /// let authority = Authority::new("lab", [7; 16])?;
    /// let who = Identity::new("lab", [7; 16], 3, 0)?;
    /// assert_eq!(authority.credentials(&who)?.identity(), &who);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`certify`](Self::certify).
    pub fn credentials(&self, identity: &Identity) -> Result<Credentials, AuthorityError> {
        let keys = Keys::generate().map_err(|_| AuthorityError::Crypto)?;
        let certificate = self.certify(&keys.request(), identity, SystemTime::now(), LIFETIME)?;
        Credentials::new(keys, certificate, self.certificate.clone())
            .map_err(|_| AuthorityError::Crypto)
    }

    /// The authority's certificate. Anybody may know it.
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// The cluster of the job.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The job.
    pub fn job(&self) -> [u8; 16] {
        self.job
    }

    fn assemble(
        cluster: &str,
        job: [u8; 16],
        made: u64,
        seed: Box<Zeroizing<[u8; SEED]>>,
        keys: Keys,
    ) -> Result<Self, AuthorityError> {
        let mut authority = Self {
            cluster: cluster.to_owned(),
            job,
            made,
            seed,
            keys,
            certificate: Vec::new(),
        };
        let since_epoch = Duration::from_secs(made);
        let made = SystemTime::UNIX_EPOCH.checked_add(since_epoch);
        let validity = Validity::new(made.ok_or(AuthorityError::Time)?, LIFETIME)?;
        let mut params = authority.subject();
        params.not_before = validity.not_before;
        params.not_after = validity.not_after;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.serial_number = Some(serial(&[authority.keys.public()]));
        authority.certificate = authority.issue(params, &authority.keys)?;
        Ok(authority)
    }

    /// Signs a certificate of `key`.
    pub(crate) fn issue(
        &self,
        params: CertificateParams,
        key: &impl PublicKeyData,
    ) -> Result<Vec<u8>, AuthorityError> {
        let issuer = Issuer::new(self.subject(), &self.keys);
        let signed = params.signed_by(key, &issuer);
        Ok(signed.map_err(|_| AuthorityError::Crypto)?.der().to_vec())
    }

    /// The authority as its certificate, and those it signs, name it.
    fn subject(&self) -> CertificateParams {
        let mut name = DistinguishedName::new();
        let job = u128::from_be_bytes(self.job);
        name.push(DnType::OrganizationName, self.cluster.as_str());
        name.push(DnType::CommonName, format!("mizzen job {job:032x}"));
        let mut params = CertificateParams::default();
        params.distinguished_name = name;
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.key_identifier_method = KeyIdMethod::PreSpecified(hash(&[self.keys.public()]));
        params
    }
}

/// Without its secret.
impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("cluster", &self.cluster)
            .field(
                "job",
                &format_args!("{:032x}", u128::from_be_bytes(self.job)),
            )
            .finish_non_exhaustive()
    }
}

/// So many bytes.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// When a certificate is valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Validity {
    pub(crate) not_before: OffsetDateTime,
    pub(crate) not_after: OffsetDateTime,
}

impl Validity {
    pub(crate) fn new(now: SystemTime, lifetime: Duration) -> Result<Self, AuthorityError> {
        let date = |time: Option<SystemTime>| {
            let since = time?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            let seconds = i64::try_from(since.as_secs()).ok()?;
            OffsetDateTime::from_unix_timestamp(seconds).ok()
        };
        let not_before = date(now.checked_sub(CLOCK_SKEW)).ok_or(AuthorityError::Time)?;
        let not_after = date(now.checked_add(lifetime)).ok_or(AuthorityError::Time)?;
        Ok(Self {
            not_before,
            not_after,
        })
    }
}

/// The certificate of a process: its identity, and that it may be either side of a connection. Nothing else.
pub(crate) fn leaf(
    identity: &Identity,
    key: &impl PublicKeyData,
    validity: &Validity,
) -> Result<CertificateParams, AuthorityError> {
    let uri = identity.to_string();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.not_before = validity.not_before;
    params.not_after = validity.not_after;
    params.serial_number = Some(serial(&[key.der_bytes(), uri.as_bytes()]));
    let uri = uri.try_into().map_err(|_| AuthorityError::Crypto)?;
    params.subject_alt_names = vec![SanType::URI(uri)];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ClientAuth,
        ExtendedKeyUsagePurpose::ServerAuth,
    ];
    Ok(params)
}

/// A positive number of at most 16 bytes (RFC 5280, 4.1.2.2), different for different parts.
fn serial(parts: &[&[u8]]) -> SerialNumber {
    let mut number = hash(parts);
    number[0] = number[0] & 0x7f | 0x40;
    SerialNumber::from_slice(&number)
}

fn hash(parts: &[&[u8]]) -> Vec<u8> {
    digest(&SHA256, &parts.concat()).as_ref()[..16].to_vec()
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], AuthorityError> {
    let (first, after) = rest
        .split_first_chunk::<N>()
        .ok_or(AuthorityError::Secret)?;
    *rest = after;
    Ok(*first)
}
