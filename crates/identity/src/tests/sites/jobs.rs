//! Processes of jobs at the ports of sites, and the other way round.

use super::super::{authority, changed, credentials, process};
use super::*;
use crate::{ALPN, Identity, IdentityError, NameError, SITE_ALPN, SiteNameError};

#[test]
fn a_process_of_a_job_is_no_gateway() {
    let world = World::new();
    let (authority, keys) = (authority(), Keys::generate().unwrap());
    let now = SystemTime::now();
    let leaf = authority
        .certify(&keys.request(), &process(1), now, GATEWAY_LIFETIME)
        .unwrap();
    let chain = vec![leaf.clone(), authority.certificate().to_vec()];
    let wrong = impostor(keys.clone(), chain, &world.sites);
    world.assert_refused(&wrong, &SiteError::Name(SiteNameError::Scheme));
    // With the site's certificate behind it, and as processes do it: one certificate, and another protocol.
    let chain = vec![leaf, world.b.certificate("b").unwrap()];
    let wrong = impostor(keys, chain, &world.sites);
    world.assert_refused(&wrong, &SiteError::Name(SiteNameError::Scheme));
    let real = credentials(&authority, &process(1));
    let site = world.of_a();
    let (party, error) = handshake(real.client_config(), site.server_config()).unwrap_err();
    assert_eq!(
        (party, error),
        (Party::Server, rustls::Error::NoApplicationProtocol)
    );
    let trying = speaking(&real.client_config(), &[SITE_ALPN]);
    handshake(trying, site.server_config()).unwrap_err();
    handshake(site.client_config(), real.server_config()).unwrap_err();
}

#[test]
fn a_gateway_is_no_process_of_a_job() {
    let world = World::new();
    let authority = authority();
    let process = credentials(&authority, &process(0));
    let b = world.of_b();
    handshake(b.client_config(), process.server_config()).unwrap_err();
    // It says the right protocol, and believes everybody.
    let trusting = changed(&authority, |_| ());
    let mut trying = ClientConfig::clone(&trusting.client_config());
    trying.client_auth_cert_resolver = Arc::clone(&b.client_config().client_auth_cert_resolver);
    assert_eq!(trying.alpn_protocols, [ALPN]);
    let (party, error) = handshake(Arc::new(trying), process.server_config()).unwrap_err();
    assert_eq!(party, Party::Server);
    let rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other)) = &error else {
        panic!("refused because of {error:?}");
    };
    let why = IdentityError::Name(NameError::Scheme);
    assert_eq!(other.0.downcast_ref(), Some(&why));
    assert!("mizzen-site://b/gw1".parse::<Identity>().is_err());
}
