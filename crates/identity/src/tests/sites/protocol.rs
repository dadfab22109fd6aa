//! What connections of gateways must agree on besides certificates: version, protocol, nothing that outlives them.

use rustls::client::Resumption;
use rustls::{ClientConnection, Error, HandshakeKind, PeerIncompatible, ServerConnection};

use super::super::protocol::{Nothing, record, tls12_hello};
use super::super::receive;
use super::*;
use crate::server_name;

#[test]
fn a_client_without_a_certificate_is_refused() {
    let world = World::new();
    let mut stripped = ClientConfig::clone(&world.of_b().client_config());
    stripped.client_auth_cert_resolver = Arc::new(Nothing);
    let refused = handshake(Arc::new(stripped), world.of_a().server_config()).unwrap_err();
    assert_eq!(refused, (Party::Server, Error::NoCertificatesPresented));
}

#[test]
fn a_client_of_another_protocol_or_none_is_refused() {
    let world = World::new();
    let (a, b) = (world.of_a(), world.of_b());
    for protocol in [&b"h2"[..], b"mizzen/1", b"mizzen-site/2"] {
        let other = speaking(&b.client_config(), &[protocol]);
        let refused = handshake(other, a.server_config()).unwrap_err();
        assert_eq!(refused, (Party::Server, Error::NoApplicationProtocol));
    }
    let silent = speaking(&b.client_config(), &[]);
    let (party, _) = handshake(silent, a.server_config()).unwrap_err();
    assert_eq!(party, Party::Server);
}

#[test]
fn a_server_of_another_protocol_or_none_is_not_a_peer() {
    let world = World::new();
    let (a, b) = (world.of_a(), world.of_b());
    let other = answering(&b.server_config(), &[b"h2"]);
    handshake(a.client_config(), other).unwrap_err();
    let silent = answering(&b.server_config(), &[]);
    let (client, server) = handshake(a.client_config(), silent).unwrap();
    assert_eq!(a.peer(&client), Err(SiteError::Protocol));
    assert_eq!(b.peer(&server), Err(SiteError::Protocol));
}

#[test]
fn tls_1_2_is_refused() {
    let world = World::new();
    let mut server = ServerConnection::new(world.of_a().server_config()).unwrap();
    let error = receive(&mut server, &tls12_hello()).unwrap_err();
    let expected = PeerIncompatible::SupportedVersionsExtensionRequired;
    assert_eq!(error, Error::PeerIncompatible(expected));
    let config = world.of_a().client_config();
    let mut client = ClientConnection::new(config, server_name()).unwrap();
    client.write_tls(&mut Vec::new()).unwrap();
    let body = [&[3, 3][..], &[7; 32], &[0, 0xc0, 0x2b, 0]].concat();
    let error = receive(&mut client, &record(2, &body)).unwrap_err();
    let refused = matches!(error, Error::PeerIncompatible(_) | Error::PeerMisbehaved(_));
    assert!(refused, "{error}");
}

#[test]
fn sessions_are_not_resumed_and_nothing_is_sent_before_the_handshake() {
    let world = World::new();
    let (a, b) = (world.of_a(), world.of_b());
    let mut eager = ClientConfig::clone(&a.client_config());
    eager.resumption = Resumption::in_memory_sessions(8);
    eager.enable_early_data = true;
    let eager = Arc::new(eager);
    for _ in 0..2 {
        let (client, server) = handshake(Arc::clone(&eager), b.server_config()).unwrap();
        assert_eq!(client.tls13_tickets_received(), 0);
        assert_eq!(server.handshake_kind(), Some(HandshakeKind::Full));
    }
    let mut client = ClientConnection::new(eager, server_name()).unwrap();
    assert!(client.early_data().is_none());
    assert_eq!(b.server_config().max_early_data_size, 0);
}

#[test]
fn nobody_is_a_peer_before_the_handshake_is_complete() {
    let world = World::new();
    let a = world.of_a();
    let client = ClientConnection::new(a.client_config(), server_name()).unwrap();
    let server = ServerConnection::new(a.server_config()).unwrap();
    assert_eq!(a.peer(&client), Err(SiteError::Protocol));
    assert_eq!(a.peer(&server), Err(SiteError::Protocol));
}
