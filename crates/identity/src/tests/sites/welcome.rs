//! Lists that change while connections are made and while they are up.

use super::*;
use crate::{SiteListError, SiteNameError};

#[test]
fn a_site_replaces_its_key_without_a_pause() {
    let world = World::new();
    let (old, new) = (&world.b, SiteKey::generate().unwrap());
    let a = world.of_a();
    let with_old = gateway(old, &name("b"), &world.sites);
    let with_new = gateway(&new, &name("b"), &world.sites);
    let gets_in = |b: &SiteCredentials| {
        let dialled = handshake(a.client_config(), b.server_config()).is_ok();
        let dials = handshake(b.client_config(), a.server_config()).is_ok();
        assert_eq!(dialled, dials);
        dials
    };
    assert!(gets_in(&with_old) && !gets_in(&with_new));
    world
        .sites
        .replace(list(&[("a", &world.a), ("b", old), ("b", &new)]));
    assert!(gets_in(&with_old) && gets_in(&with_new));
    world.sites.replace(list(&[("a", &world.a), ("b", &new)]));
    assert!(!gets_in(&with_old) && gets_in(&with_new));
    // Who is connected since before is told apart, too.
    assert!(world.sites.welcome(&with_new.as_peer()).is_ok());
    let why = SiteError::OtherKey {
        peer: name("b"),
        shown: old.pin(),
    };
    assert_eq!(world.sites.welcome(&with_old.as_peer()), Err(why));
}

#[test]
fn a_peer_that_is_revoked_is_not_welcome_any_more_though_it_is_connected() {
    let world = World::new();
    let (a, b) = (world.of_a(), world.of_b());
    let (client, server) = handshake(a.client_config(), b.server_config()).unwrap();
    let peer = a.peer(&client).unwrap();
    for pin in [peer.pins.site, peer.pins.gateway] {
        let mut list = list(&[("a", &world.a), ("b", &world.b)]);
        a.sites().replace(list.clone());
        assert_eq!(a.sites().welcome(&peer), Ok(()));
        list.revoke(pin);
        a.sites().replace(list);
        let why = SiteError::Revoked {
            peer: name("b"),
            pin,
        };
        assert_eq!(a.sites().welcome(&peer), Err(why.clone()));
        assert_eq!(a.peer(&client), Err(why));
        assert!(b.peer(&server).is_ok(), "a is not revoked");
    }
}

#[test]
fn a_site_that_is_taken_off_the_list_is_not_welcome_any_more() {
    let world = World::new();
    let b = world.of_b();
    world.sites.replace(list(&[("a", &world.a)]));
    let why = SiteError::NotListed { peer: name("b") };
    assert_eq!(world.sites.welcome(&b.as_peer()), Err(why));
}

#[test]
fn a_handshake_under_way_is_decided_by_the_list_that_holds_at_its_end() {
    use super::super::receive;
    use rustls::{ClientConnection, ServerConnection};
    let world = World::new();
    let (a, b) = (world.of_a(), world.of_b());
    let name = crate::server_name();
    let mut client = ClientConnection::new(b.client_config(), name).unwrap();
    let mut server = ServerConnection::new(a.server_config()).unwrap();
    let mut flight = Vec::new();
    client.write_tls(&mut flight).unwrap();
    receive(&mut server, &flight).unwrap();
    flight.clear();
    server.write_tls(&mut flight).unwrap();
    receive(&mut client, &flight).unwrap();
    flight.clear();
    client.write_tls(&mut flight).unwrap();
    world.sites.replace(list(&[("a", &world.a)]));
    let error = receive(&mut server, &flight).unwrap_err();
    assert!(
        matches!(SiteError::of(&error), Some(SiteError::NotListed { .. })),
        "{error:?}"
    );
}

#[test]
fn lists_are_replaced_while_others_read_them() {
    let world = World::new();
    let peer = world.of_b().as_peer();
    let (full, empty) = (list(&[("b", &world.b)]), SiteList::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..1000 {
                world.sites.replace(empty.clone());
                world.sites.replace(full.clone());
            }
        });
        for _ in 0..1000 {
            let said = world.sites.welcome(&peer);
            assert!(matches!(said, Ok(()) | Err(SiteError::NotListed { .. })));
        }
    });
    assert_eq!(world.sites.welcome(&peer), Ok(()));
}

#[test]
fn a_key_is_that_of_one_site() {
    let world = World::new();
    let mut list = list(&[("a", &world.a)]);
    list.believe("a", world.a.pin()).unwrap();
    let taken = SiteListError::Taken {
        pin: world.a.pin(),
        first: "a".into(),
        second: "b".into(),
    };
    assert_eq!(list.believe("b", world.a.pin()), Err(taken));
    let bad = Err(SiteListError::Name(SiteNameError::Site));
    assert_eq!(list.believe("B", world.b.pin()), bad);
}
