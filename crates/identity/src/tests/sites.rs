//! Gateways of sites: real handshakes, in memory, between those that are who they say, and others.

mod admission;
mod jobs;
mod protocol;
mod text;
mod welcome;

use std::sync::Arc;
use std::time::SystemTime;

use rcgen::CertificateParams;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ServerConfig};

use super::{Party, handshake};
use crate::site::{issue, unsigned};
use crate::{
    GATEWAY_LIFETIME, GatewayKey, GatewayName, Keys, Pins, SiteCredentials, SiteError, SiteKey,
    SiteList, SitePeer, Sites,
};

/// Two sites that believe each other.
struct World {
    a: SiteKey,
    b: SiteKey,
    sites: Sites,
}

impl World {
    fn new() -> Self {
        let (a, b) = (SiteKey::generate().unwrap(), SiteKey::generate().unwrap());
        let sites = Sites::new(list(&[("a", &a), ("b", &b)]));
        Self { a, b, sites }
    }

    /// A gateway of site a, as honest as any.
    fn of_a(&self) -> SiteCredentials {
        gateway(&self.a, &name("a"), &self.sites)
    }

    fn of_b(&self) -> SiteCredentials {
        gateway(&self.b, &name("b"), &self.sites)
    }

    /// A gateway of site b whose certificate is what `change` made of an honest one, signed by the key of the site.
    fn changed(&self, change: impl FnOnce(&mut CertificateParams)) -> SiteCredentials {
        let keys = Keys::generate().unwrap();
        let mut params = honest(&name("b"), &keys);
        change(&mut params);
        let leaf = issue(params, &keys, "b", self.b.keys()).unwrap();
        let site = self.b.certificate("b").unwrap();
        impostor(keys, vec![leaf, site], &self.sites)
    }

    /// Has `wrong` connect to a gateway of a and be connected to by it: both refuse it, and say why.
    fn refusals(&self, wrong: &SiteCredentials) -> [SiteError; 2] {
        let honest = self.of_a();
        let as_client = handshake(wrong.client_config(), honest.server_config());
        let as_server = handshake(honest.client_config(), wrong.server_config());
        [(as_client, Party::Server), (as_server, Party::Client)].map(|(refused, by)| {
            let (party, error) = refused.unwrap_err();
            assert_eq!(party, by, "{error}");
            match SiteError::of(&error) {
                Some(why) => why.clone(),
                None => panic!("refused because of {error:?}"),
            }
        })
    }

    fn assert_refused(&self, wrong: &SiteCredentials, why: &SiteError) {
        assert_eq!(&self.refusals(wrong), &[why.clone(), why.clone()]);
    }
}

fn name(site: &str) -> GatewayName {
    GatewayName::new(site, "gw1").unwrap()
}

fn list(sites: &[(&str, &SiteKey)]) -> SiteList {
    let mut list = SiteList::new();
    for (site, key) in sites {
        list.believe(site, key.pin()).unwrap();
    }
    list
}

/// Credentials as a gateway gets them.
fn gateway(site: &SiteKey, name: &GatewayName, sites: &Sites) -> SiteCredentials {
    let key = GatewayKey::generate().unwrap();
    let now = SystemTime::now();
    let certificate = site
        .certify(&key.request(), name, now, GATEWAY_LIFETIME)
        .unwrap();
    let of_site = site.certificate(name.site()).unwrap();
    SiteCredentials::new(key.keys(), certificate, of_site, sites.clone()).unwrap()
}

/// The certificate of an honest gateway, to be made a wrong one.
fn honest(name: &GatewayName, keys: &Keys) -> CertificateParams {
    unsigned(name, keys, SystemTime::now(), GATEWAY_LIFETIME).unwrap()
}

/// Who shows `chain`, and believes whom the others do.
fn impostor(keys: Keys, chain: Vec<Vec<u8>>, sites: &Sites) -> SiteCredentials {
    let pin = SiteKey::generate().unwrap().pin();
    let me = SitePeer {
        site: "b".into(),
        gateway: "gw1".into(),
        pins: Pins {
            site: pin,
            gateway: pin,
        },
    };
    let chain = chain.into_iter().map(CertificateDer::from).collect();
    SiteCredentials::assemble(name("b"), me, keys, chain, sites.clone()).unwrap()
}

/// The settings with another protocol, or none.
fn speaking(config: &Arc<ClientConfig>, protocols: &[&[u8]]) -> Arc<ClientConfig> {
    let mut config = ClientConfig::clone(config);
    config.alpn_protocols = protocols.iter().map(|one| one.to_vec()).collect();
    Arc::new(config)
}

fn answering(config: &Arc<ServerConfig>, protocols: &[&[u8]]) -> Arc<ServerConfig> {
    let mut config = ServerConfig::clone(config);
    config.alpn_protocols = protocols.iter().map(|one| one.to_vec()).collect();
    Arc::new(config)
}
