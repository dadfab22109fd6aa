//! Who is let in, and who is not: certificates.

use std::time::Duration;

use rcgen::{BasicConstraints, ExtendedKeyUsagePurpose, IsCa, Issuer, SanType};
use time::OffsetDateTime;

use super::*;
use crate::limits::MAX_CERTIFICATE;
use crate::{CLOCK_SKEW, SiteCredentialsError, SiteKeyError, SiteNameError};

fn uri(text: &str) -> SanType {
    SanType::URI(text.try_into().unwrap())
}

#[test]
fn gateways_of_sites_that_list_each_other_know_each_other() {
    let world = World::new();
    let (a, b) = (world.of_a(), world.of_b());
    let (client, server) = handshake(a.client_config(), b.server_config()).unwrap();
    assert_eq!(a.peer(&client).unwrap(), b.as_peer());
    assert_eq!(b.peer(&server).unwrap(), a.as_peer());
    let peer = a.peer(&client).unwrap();
    assert_eq!((&*peer.site, &*peer.gateway), ("b", "gw1"));
    assert_eq!(peer.pins.site, world.b.pin());
    a.sites().welcome(&peer).unwrap();
}

#[test]
fn a_site_that_is_not_listed_is_refused() {
    let world = World::new();
    let c = gateway(&SiteKey::generate().unwrap(), &name("c"), &world.sites);
    let why = SiteError::NotListed { peer: name("c") };
    world.assert_refused(&c, &why);
    assert!(why.to_string().contains("`mizzen site add c PIN`"), "{why}");
}

#[test]
fn a_site_with_another_key_than_is_listed_is_refused() {
    let world = World::new();
    let other = SiteKey::generate().unwrap();
    let wrong = gateway(&other, &name("b"), &world.sites);
    let why = SiteError::OtherKey {
        peer: name("b"),
        shown: other.pin(),
    };
    world.assert_refused(&wrong, &why);
}

#[test]
fn a_site_cannot_certify_a_gateway_of_another() {
    let world = World::new();
    // The key of b is listed, but not for a; nor for c, which nobody listed.
    let wrong = gateway(&world.b, &name("a"), &world.sites);
    let why = SiteError::OtherKey {
        peer: name("a"),
        shown: world.b.pin(),
    };
    world.assert_refused(&wrong, &why);
    let wrong = gateway(&world.b, &name("c"), &world.sites);
    world.assert_refused(&wrong, &SiteError::NotListed { peer: name("c") });
}

#[test]
fn a_certificate_that_the_site_s_key_did_not_sign_is_refused() {
    let world = World::new();
    let (keys, other) = (Keys::generate().unwrap(), Keys::generate().unwrap());
    let site = world.b.certificate("b").unwrap();
    for signer in [&other, &keys] {
        let leaf = issue(honest(&name("b"), &keys), &keys, "b", signer).unwrap();
        let wrong = impostor(keys.clone(), vec![leaf, site.clone()], &world.sites);
        let peer = name("b");
        let why = "InvalidSignatureForPublicKey".into();
        world.assert_refused(&wrong, &SiteError::NotSigned { peer, why });
    }
    // Signed under another name, the issuer is not the one that is shown.
    let leaf = issue(honest(&name("b"), &keys), &keys, "x", world.b.keys()).unwrap();
    let wrong = impostor(keys, vec![leaf, site], &world.sites);
    for error in world.refusals(&wrong) {
        assert!(matches!(error, SiteError::NotSigned { .. }), "{error:?}");
    }
}

#[test]
fn a_gateway_cannot_certify_another() {
    let world = World::new();
    let (signer, keys) = (Keys::generate().unwrap(), Keys::generate().unwrap());
    let params = honest(&name("b"), &signer);
    let issued = issue(params.clone(), &signer, "b", world.b.keys()).unwrap();
    let issuer = Issuer::new(params, &signer);
    let forged = honest(&name("b"), &keys).signed_by(&keys, &issuer).unwrap();
    let chain = vec![forged.der().to_vec(), issued];
    let why = SiteError::OtherKey {
        peer: name("b"),
        shown: crate::Pin::of(&signer.public_info()),
    };
    world.assert_refused(&impostor(keys, chain, &world.sites), &why);
}

#[test]
fn a_revoked_site_key_is_refused_though_it_is_listed() {
    let world = World::new();
    let b = world.of_b();
    let mut with = list(&[("a", &world.a), ("b", &world.b)]);
    with.revoke(world.b.pin());
    world.sites.replace(with);
    let why = SiteError::Revoked {
        peer: name("b"),
        pin: world.b.pin(),
    };
    world.assert_refused(&b, &why);
}

#[test]
fn a_revoked_gateway_key_is_refused_and_others_of_its_site_are_not() {
    let world = World::new();
    let (b, other) = (world.of_b(), world.of_b());
    let pin = b.as_peer().pins.gateway;
    let mut with = list(&[("a", &world.a), ("b", &world.b)]);
    with.revoke(pin);
    world.sites.replace(with);
    let peer = name("b");
    world.assert_refused(&b, &SiteError::Revoked { peer, pin });
    handshake(other.client_config(), world.of_a().server_config()).unwrap();
}

#[test]
fn a_certificate_is_refused_before_and_after_its_time() {
    let world = World::new();
    let moment = Duration::from_secs(60);
    let expired = world.changed(|params| params.not_after = OffsetDateTime::now_utc() - moment);
    let early = world.changed(|params| params.not_before = OffsetDateTime::now_utc() + moment);
    for (wrong, word) in [(expired, "expired 6"), (early, "begins in ")] {
        for error in world.refusals(&wrong) {
            let said = matches!(&error, SiteError::Time { peer, why }
                if *peer == name("b") && why.contains(word));
            assert!(said, "{error:?}");
            assert!(error.to_string().contains("clocks"), "{error}");
        }
    }
}

#[test]
fn a_gateway_that_is_not_valid_is_not_started() {
    let world = World::new();
    let key = GatewayKey::generate().unwrap();
    let at = |now: SystemTime| {
        let leaf = world
            .b
            .certify(&key.request(), &name("b"), now, GATEWAY_LIFETIME);
        let site = world.b.certificate("b").unwrap();
        SiteCredentials::new(key.keys(), leaf.unwrap(), site, world.sites.clone())
    };
    let (now, moment) = (SystemTime::now(), Duration::from_secs(30));
    at(now + CLOCK_SKEW - moment).unwrap();
    at(now + CLOCK_SKEW + moment).unwrap_err();
    let last = at(now - GATEWAY_LIFETIME + moment).unwrap();
    last.valid_at(now).unwrap();
    last.valid_at(now + 2 * moment).unwrap_err();
    let error = at(now - GATEWAY_LIFETIME - moment).unwrap_err();
    let time = matches!(
        &error,
        SiteCredentialsError::Certificate(SiteError::Time { .. })
    );
    assert!(time, "{error:?}");
    let other = GatewayKey::generate().unwrap();
    let leaf = world
        .b
        .certify(&key.request(), &name("b"), now, GATEWAY_LIFETIME)
        .unwrap();
    let site = world.b.certificate("b").unwrap();
    let error = SiteCredentials::new(other.keys(), leaf, site, world.sites.clone()).unwrap_err();
    assert_eq!(error, SiteCredentialsError::OtherKey(name("b")));
}

#[test]
fn other_than_two_certificates_are_refused() {
    let world = World::new();
    let keys = Keys::generate().unwrap();
    let leaf = issue(honest(&name("b"), &keys), &keys, "b", world.b.keys()).unwrap();
    let site = world.b.certificate("b").unwrap();
    let longest = leaf.len().max(site.len());
    for certificates in [1, 3, 4, 5] {
        let mut chain = vec![leaf.clone()];
        chain.resize(certificates, site.clone());
        let longest = if certificates == 1 {
            leaf.len()
        } else {
            longest
        };
        let wrong = impostor(keys.clone(), chain, &world.sites);
        let why = SiteError::Chain {
            certificates,
            longest,
        };
        world.assert_refused(&wrong, &why);
    }
    let right = impostor(keys, vec![leaf, site], &world.sites);
    handshake(right.client_config(), world.of_a().server_config()).unwrap();
}

#[test]
fn long_certificates_are_refused() {
    let world = World::new();
    let keys = Keys::generate().unwrap();
    let leaf = issue(honest(&name("b"), &keys), &keys, "b", world.b.keys()).unwrap();
    let site = world.b.certificate("b").unwrap();
    let padding = vec![0; MAX_CERTIFICATE + 1];
    for chain in [vec![leaf, padding.clone()], vec![padding, site]] {
        let wrong = impostor(keys.clone(), chain, &world.sites);
        let why = SiteError::Chain {
            certificates: 2,
            longest: MAX_CERTIFICATE + 1,
        };
        world.assert_refused(&wrong, &why);
    }
}

#[test]
fn certificates_with_other_names_than_one_gateway_s_are_refused() {
    let world = World::new();
    let host = || SanType::DnsName("mizzen.invalid".try_into().unwrap());
    let second = || uri("mizzen-site://a/gw1");
    let cases: [(&str, Vec<SanType>); 5] = [
        ("two names", vec![uri("mizzen-site://b/gw1"), second()]),
        ("the same twice", vec![second(), second()]),
        (
            "a host's name, too",
            vec![uri("mizzen-site://b/gw1"), host()],
        ),
        ("a host's name", vec![host()]),
        ("none", vec![]),
    ];
    for (what, names) in cases {
        let wrong = world.changed(|params| params.subject_alt_names = names);
        let [one, two] = world.refusals(&wrong);
        assert_eq!(
            (&one, &two),
            (&SiteError::NotOneName, &SiteError::NotOneName),
            "{what}"
        );
    }
    for (text, why) in [
        ("mizzen://b/gw1", SiteNameError::Scheme),
        ("https://b/gw1", SiteNameError::Scheme),
        ("mizzen-site://b", SiteNameError::Fields),
        ("mizzen-site://b/gw1/", SiteNameError::Fields),
        ("mizzen-site://B/gw1", SiteNameError::Site),
        ("mizzen-site://*/gw1", SiteNameError::Site),
        ("mizzen-site://b/-gw1", SiteNameError::Gateway),
    ] {
        let wrong = world.changed(|params| params.subject_alt_names = vec![uri(text)]);
        world.assert_refused(&wrong, &SiteError::Name(why));
    }
}

#[test]
fn a_certificate_for_another_use_is_refused() {
    let world = World::new();
    let signing = world.changed(|params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
    });
    let authority = world.changed(|params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    });
    for wrong in [signing, authority] {
        for error in world.refusals(&wrong) {
            assert!(matches!(error, SiteError::NotSigned { .. }), "{error:?}");
        }
    }
}

#[test]
fn the_certificate_of_the_site_is_no_gateway_s() {
    let world = World::new();
    let site = world.b.certificate("b").unwrap();
    let chain = vec![site.clone(), site];
    let wrong = impostor(world.b.keys().clone(), chain, &world.sites);
    world.assert_refused(&wrong, &SiteError::NotOneName);
}

#[test]
fn the_certificates_of_another_s_keys_are_refused() {
    let world = World::new();
    let victim = Keys::generate().unwrap();
    let leaf = issue(honest(&name("b"), &victim), &victim, "b", world.b.keys()).unwrap();
    let chain = vec![leaf, world.b.certificate("b").unwrap()];
    let thief = impostor(Keys::generate().unwrap(), chain, &world.sites);
    handshake(thief.client_config(), world.of_a().server_config()).unwrap_err();
    handshake(world.of_a().client_config(), thief.server_config()).unwrap_err();
}

#[test]
fn a_request_that_proves_nothing_is_not_certified() {
    let world = World::new();
    let mut request = GatewayKey::generate().unwrap().request();
    request[40] ^= 1;
    let refused = world
        .b
        .certify(&request, &name("b"), SystemTime::now(), GATEWAY_LIFETIME);
    assert_eq!(refused, Err(SiteKeyError::Request));
}
