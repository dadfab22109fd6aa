//! The two certificates that a gateway shows, its own and that of its site: how they are written, and what is read in them.

use std::time::{Duration, SystemTime};

use aws_lc_rs::digest::{SHA256, digest};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyIdMethod, KeyUsagePurpose, PublicKeyData, SanType, SerialNumber,
};
use rustls::pki_types::{CertificateDer, UnixTime};
use time::OffsetDateTime;
use webpki::{EndEntityCert, KeyUsage};

use super::error::{SiteError, SiteKeyError};
use super::name::GatewayName;
use super::pin::Pin;
use super::sites::{Pins, SitePeer};
use crate::admission::{ALGORITHMS, Side};
use crate::authority::Validity;
use crate::keys::Keys;
use crate::limits::MAX_CERTIFICATE;

/// The certificate of a site, to be signed by itself.
pub(super) fn site(name: &str, keys: &Keys) -> Result<CertificateParams, SiteKeyError> {
    let date =
        |seconds| OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| SiteKeyError::Time);
    let mut params = subject(name, keys);
    params.not_before = date(YEAR_2000)?;
    params.not_after = date(NO_END)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.serial_number = Some(serial(&[keys.public(), name.as_bytes()]));
    Ok(params)
}

/// The certificate of a gateway: its name, and that it may be either side of a connection. Nothing else.
pub(crate) fn gateway(
    name: &GatewayName,
    key: &impl PublicKeyData,
    now: SystemTime,
    lifetime: Duration,
) -> Result<CertificateParams, SiteKeyError> {
    let validity = Validity::new(now, lifetime).map_err(|_| SiteKeyError::Time)?;
    let uri = name.to_string();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.not_before = validity.not_before;
    params.not_after = validity.not_after;
    // Renewed for the same key and name, it is another certificate.
    let since = validity.not_before.unix_timestamp().to_be_bytes();
    params.serial_number = Some(serial(&[key.der_bytes(), uri.as_bytes(), &since]));
    let uri = uri.try_into().map_err(|_| SiteKeyError::Crypto)?;
    params.subject_alt_names = vec![SanType::URI(uri)];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![
        ExtendedKeyUsagePurpose::ClientAuth,
        ExtendedKeyUsagePurpose::ServerAuth,
    ];
    Ok(params)
}

/// Signs a certificate of `key` with the keys of a site.
pub(crate) fn issue(
    params: CertificateParams,
    key: &impl PublicKeyData,
    site: &str,
    keys: &Keys,
) -> Result<Vec<u8>, SiteKeyError> {
    let issuer = Issuer::new(subject(site, keys), keys);
    let signed = params.signed_by(key, &issuer);
    Ok(signed.map_err(|_| SiteKeyError::Crypto)?.der().to_vec())
}

/// What a peer showed, and whom it names. Nothing is believed yet.
pub(super) struct Shown<'c> {
    leaf: EndEntityCert<'c>,
    site: &'c CertificateDer<'c>,
    name: GatewayName,
    pins: Pins,
}

impl<'c> Shown<'c> {
    /// Reads what is cheap to read, and verifies no signature.
    pub(super) fn read(
        leaf: &'c CertificateDer<'c>,
        others: &'c [CertificateDer<'c>],
    ) -> Result<Self, SiteError> {
        let lengths = others.iter().map(|one| one.len());
        let longest = lengths.fold(leaf.len(), usize::max);
        let ([site], ..=MAX_CERTIFICATE) = (others, longest) else {
            return Err(SiteError::Chain {
                certificates: 1 + others.len(),
                longest,
            });
        };
        let leaf = EndEntityCert::try_from(leaf).map_err(|_| SiteError::Unreadable)?;
        let mut uris = leaf.valid_uri_names();
        let (Some(uri), None, None) = (uris.next(), uris.next(), leaf.valid_dns_names().next())
        else {
            return Err(SiteError::NotOneName);
        };
        let name = uri.parse::<GatewayName>()?;
        drop(uris);
        let pins = Pins {
            site: key_of(site)?,
            gateway: Pin::of(leaf.subject_public_key_info().as_ref()),
        };
        Ok(Self {
            leaf,
            site,
            name,
            pins,
        })
    }

    /// Who it says it is.
    pub(super) fn peer(&self) -> SitePeer {
        SitePeer {
            site: self.name.site().to_owned(),
            gateway: self.name.gateway().to_owned(),
            pins: self.pins,
        }
    }

    pub(super) fn name(&self) -> &GatewayName {
        &self.name
    }

    /// Whether the key of the site signed the gateway's certificate for this use, and it is valid now. Says nothing about who has that key.
    ///
    /// What else the site's certificate says, and who signed that, has no meaning: only its key is known to us.
    pub(super) fn verify(&self, side: Side, now: UnixTime) -> Result<(), SiteError> {
        let usage = match side {
            Side::Client => KeyUsage::client_auth(),
            Side::Server => KeyUsage::server_auth(),
        };
        let anchor =
            webpki::anchor_from_trusted_cert(self.site).map_err(|_| SiteError::Unreadable)?;
        // No intermediates: the site's key signs gateways only, and whoever it signed signs nobody.
        self.leaf
            .verify_for_usage(ALGORITHMS.all, &[anchor], &[], now, usage, None, None)
            .map(|_| ())
            .map_err(|error| self.explain(&error))
    }

    fn explain(&self, error: &webpki::Error) -> SiteError {
        let peer = self.name.clone();
        let ago =
            |later: UnixTime, earlier: UnixTime| later.as_secs().saturating_sub(earlier.as_secs());
        match error {
            webpki::Error::CertExpired { time, not_after } => SiteError::Time {
                peer,
                why: format!("it expired {} s ago", ago(*time, *not_after)),
            },
            webpki::Error::CertNotValidYet { time, not_before } => SiteError::Time {
                peer,
                why: format!("it begins in {} s", ago(*not_before, *time)),
            },
            other => SiteError::NotSigned {
                peer,
                why: format!("{other:?}"),
            },
        }
    }
}

/// The pin of the key that a certificate is of. Says nothing about signatures.
///
/// ```
/// use mizzen_identity::{SiteKey, pin_of_certificate};
///
/// let key = SiteKey::generate()?;
/// assert_eq!(pin_of_certificate(&key.certificate("a")?)?, key.pin());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`SiteError::Unreadable`] if it is not a certificate.
pub fn pin_of_certificate(certificate: &[u8]) -> Result<Pin, SiteError> {
    key_of(&CertificateDer::from(certificate))
}

fn key_of(certificate: &CertificateDer<'_>) -> Result<Pin, SiteError> {
    let parsed = EndEntityCert::try_from(certificate).map_err(|_| SiteError::Unreadable)?;
    Ok(Pin::of(parsed.subject_public_key_info().as_ref()))
}

/// The site as its certificate, and those it signs, name it.
fn subject(site: &str, keys: &Keys) -> CertificateParams {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, format!("mizzen site {site}"));
    let mut params = CertificateParams::default();
    params.distinguished_name = name;
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.key_identifier_method = KeyIdMethod::PreSpecified(hash(&[keys.public()]));
    params
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

/// When certificates of sites begin, in seconds since 1970: before any clock that matters.
const YEAR_2000: i64 = 946_684_800;

/// The last second of the year 9999: no end (RFC 5280, 4.1.2.5).
const NO_END: i64 = 253_402_300_799;
