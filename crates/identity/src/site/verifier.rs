//! Which gateways are let in: the checks of a peer's certificates, the cheap ones first.
//!
//! 1. Two short certificates, of which the first has one name, that of a gateway.
//! 2. Neither key is revoked, and the second certificate has a key that is listed for the site of that name.
//! 3. That key signed the first certificate; it is now valid, and made for this side of a connection.
//!
//! The list is the one that holds at that moment. Host names and addresses mean nothing here.

use std::sync::Arc;

use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{CertificateError, Error, OtherError};

use super::certificate::Shown;
use super::error::SiteError;
use super::sites::{SitePeer, Sites};
use crate::admission::{Admits, Side};

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
}

impl Admits for SiteVerifier {
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
