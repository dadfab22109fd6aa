//! What connections must agree on besides certificates: version, protocol, nothing that outlives them.

use rustls::client::Resumption;
use rustls::{AlertDescription, HandshakeKind, PeerIncompatible, PeerMisbehaved, ProtocolVersion};

use super::*;
use crate::ALPN;

fn pair() -> (Credentials, Credentials) {
    let authority = authority();
    (
        credentials(&authority, &process(0)),
        credentials(&authority, &process(1)),
    )
}

#[test]
fn connections_are_tls_1_3_with_the_fastest_cipher() {
    let (a, b) = pair();
    let (client, server) = handshake(a.client_config(), b.server_config()).unwrap();
    assert_eq!(client.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    assert_eq!(server.alpn_protocol(), Some(ALPN));
    let suite = client.negotiated_cipher_suite().unwrap().suite();
    assert_eq!(suite, rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    let group = server.negotiated_key_exchange_group().unwrap().name();
    assert_eq!(group, rustls::NamedGroup::X25519);
}

#[test]
fn a_client_without_a_certificate_is_refused() {
    let (a, b) = pair();
    let mut stripped = (*a.client_config()).clone();
    stripped.client_auth_cert_resolver = Arc::new(Nothing);
    let refused = handshake(Arc::new(stripped), b.server_config()).unwrap_err();
    assert_eq!(refused, (Party::Server, Error::NoCertificatesPresented));
}

#[test]
fn a_client_of_tls_1_2_is_refused() {
    let (_, b) = pair();
    let mut server = ServerConnection::new(b.server_config()).unwrap();
    let error = receive(&mut server, &tls12_hello()).unwrap_err();
    let expected = PeerIncompatible::SupportedVersionsExtensionRequired;
    assert_eq!(error, Error::PeerIncompatible(expected));
}

#[test]
fn a_server_of_tls_1_2_is_refused() {
    let (a, _) = pair();
    let mut client = ClientConnection::new(a.client_config(), server_name()).unwrap();
    client.write_tls(&mut Vec::new()).unwrap();
    // TLS 1.2, a random, no session, ECDHE-ECDSA with AES-128-GCM, no compression, no extensions.
    let body = [&[3, 3][..], &[7; 32], &[0, 0xc0, 0x2b, 0]].concat();
    let error = receive(&mut client, &record(2, &body)).unwrap_err();
    assert!(
        matches!(error, Error::PeerIncompatible(_) | Error::PeerMisbehaved(_)),
        "{error}"
    );
}

#[test]
fn a_client_of_another_protocol_is_refused() {
    let (a, b) = pair();
    let mut other = (*a.client_config()).clone();
    other.alpn_protocols = vec![b"h2".to_vec()];
    let (party, error) = handshake(Arc::new(other), b.server_config()).unwrap_err();
    assert_eq!(
        (party, error),
        (Party::Server, Error::NoApplicationProtocol)
    );
}

#[test]
fn a_client_without_a_protocol_is_refused() {
    let (a, b) = pair();
    let mut silent = (*a.client_config()).clone();
    silent.alpn_protocols.clear();
    let (party, error) = handshake(Arc::new(silent), b.server_config()).unwrap_err();
    assert_eq!(party, Party::Server);
    assert!(matches!(error, Error::General(_)), "{error}");
}

#[test]
fn a_server_of_another_protocol_is_refused() {
    let (a, b) = pair();
    let mut other = (*b.server_config()).clone();
    other.alpn_protocols = vec![b"h2".to_vec()];
    handshake(a.client_config(), Arc::new(other)).unwrap_err();
}

#[test]
fn a_server_without_a_protocol_is_not_a_peer() {
    let (a, b) = pair();
    let mut silent = (*b.server_config()).clone();
    silent.alpn_protocols.clear();
    let (client, server) = handshake(a.client_config(), Arc::new(silent)).unwrap();
    assert_eq!(a.peer(&client), Err(IdentityError::Protocol));
    assert_eq!(b.peer(&server), Err(IdentityError::Protocol));
}

#[test]
fn nobody_is_a_peer_before_the_handshake_is_complete() {
    let (a, b) = pair();
    let client = ClientConnection::new(a.client_config(), server_name()).unwrap();
    let server = ServerConnection::new(b.server_config()).unwrap();
    assert_eq!(a.peer(&client), Err(IdentityError::Protocol));
    assert_eq!(b.peer(&server), Err(IdentityError::Protocol));
    assert_eq!(a.identify(&[]), Err(IdentityError::Missing));
}

#[test]
fn sessions_are_not_resumed() {
    let (a, b) = pair();
    let mut eager = (*a.client_config()).clone();
    eager.resumption = Resumption::in_memory_sessions(8);
    let eager = Arc::new(eager);
    for _ in 0..2 {
        let (client, server) = handshake(Arc::clone(&eager), b.server_config()).unwrap();
        assert_eq!(client.tls13_tickets_received(), 0);
        assert_eq!(server.handshake_kind(), Some(HandshakeKind::Full));
    }
    let mut generous = (*b.server_config()).clone();
    generous.send_tls13_tickets = 2;
    generous.session_storage = rustls::server::ServerSessionMemoryCache::new(8);
    let generous = Arc::new(generous);
    for _ in 0..2 {
        let (_, server) = handshake(a.client_config(), Arc::clone(&generous)).unwrap();
        assert_eq!(server.handshake_kind(), Some(HandshakeKind::Full));
    }
}

#[test]
fn nothing_is_sent_before_the_handshake() {
    let (a, b) = pair();
    let mut eager = (*a.client_config()).clone();
    eager.resumption = Resumption::in_memory_sessions(8);
    eager.enable_early_data = true;
    let eager = Arc::new(eager);
    handshake(Arc::clone(&eager), b.server_config()).unwrap();
    let mut client = ClientConnection::new(eager, server_name()).unwrap();
    assert!(client.early_data().is_none());
    assert_eq!(b.server_config().max_early_data_size, 0);
    let mut server = ServerConnection::new(b.server_config()).unwrap();
    assert!(server.early_data().is_none());
}

#[test]
fn bytes_that_are_not_tls_are_refused() {
    let (a, b) = pair();
    for noise in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"mizzen\0\0",
        &[0; 64],
        &[0xff; 64],
    ] {
        let mut server = ServerConnection::new(b.server_config()).unwrap();
        assert!(receive(&mut server, noise).is_err());
        let mut client = ClientConnection::new(a.client_config(), server_name()).unwrap();
        assert!(receive(&mut client, noise).is_err());
    }
}

#[test]
fn a_replayed_first_flight_leads_nowhere() {
    let (a, b) = pair();
    let mut client = ClientConnection::new(a.client_config(), server_name()).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    let mut server = ServerConnection::new(b.server_config()).unwrap();
    receive(&mut server, &hello).unwrap();
    let mut answer = Vec::new();
    server.write_tls(&mut answer).unwrap();
    receive(&mut client, &answer).unwrap();
    let mut finish = Vec::new();
    client.write_tls(&mut finish).unwrap();
    // Whoever recorded both flights plays them to the server again.
    let mut again = ServerConnection::new(b.server_config()).unwrap();
    receive(&mut again, &hello).unwrap();
    let error = receive(&mut again, &finish).unwrap_err();
    assert!(
        matches!(error, Error::DecryptError | Error::PeerMisbehaved(_)),
        "{error}"
    );
    assert!(again.is_handshaking());
}

#[test]
fn the_refused_client_is_told() {
    let authority = authority();
    let honest = credentials(&authority, &process(0));
    let expired = changed(&authority, |params| {
        params.not_after = time::OffsetDateTime::now_utc() - Duration::from_secs(1);
    });
    let mut client = ClientConnection::new(expired.client_config(), server_name()).unwrap();
    let mut server = ServerConnection::new(honest.server_config()).unwrap();
    let mut flight = Vec::new();
    client.write_tls(&mut flight).unwrap();
    receive(&mut server, &flight).unwrap();
    flight.clear();
    server.write_tls(&mut flight).unwrap();
    receive(&mut client, &flight).unwrap();
    flight.clear();
    client.write_tls(&mut flight).unwrap();
    receive(&mut server, &flight).unwrap_err();
    flight.clear();
    server.write_tls(&mut flight).unwrap();
    let error = receive(&mut client, &flight).unwrap_err();
    assert_eq!(
        error,
        Error::AlertReceived(AlertDescription::CertificateExpired)
    );
}

#[test]
fn a_renegotiation_is_refused() {
    let (a, b) = pair();
    let (_, mut server) = handshake(a.client_config(), b.server_config()).unwrap();
    let error = receive(&mut server, &tls12_hello()).unwrap_err();
    let clear_text = |error: &Error| {
        matches!(
            error,
            Error::InappropriateMessage { .. }
                | Error::DecryptError
                | Error::PeerMisbehaved(PeerMisbehaved::IllegalMiddleboxChangeCipherSpec)
        )
    };
    assert!(clear_text(&error), "{error:?}");
}

/// Shows no certificate.
#[derive(Debug)]
pub(super) struct Nothing;
impl rustls::client::ResolvesClientCert for Nothing {
    fn resolve(
        &self,
        _: &[&[u8]],
        _: &[rustls::SignatureScheme],
    ) -> Option<Arc<rustls::sign::CertifiedKey>> {
        None
    }
    fn has_certs(&self) -> bool {
        false
    }
}

/// The first record of a client that knows TLS 1.2 only: its version, a random, no session, two ciphers, no compression,
/// one group, two signature schemes.
pub(super) fn tls12_hello() -> Vec<u8> {
    let extensions = [
        &[0, 10, 0, 4, 0, 2, 0, 29][..],
        &[0, 13, 0, 6, 0, 4, 4, 3, 8, 7],
    ]
    .concat();
    let length = u8::try_from(extensions.len()).unwrap();
    let body = [
        &[3, 3][..],
        &[7; 32],
        &[0, 0, 4, 0xc0, 0x2b, 0xc0, 0x2f, 1, 0, 0, length],
        &extensions,
    ]
    .concat();
    record(1, &body)
}

/// One handshake message in one record of TLS 1.2.
pub(super) fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u8::try_from(body.len()).unwrap();
    let header = [22, 3, 3, 0, length + 4, kind, 0, 0, length];
    [&header[..], body].concat()
}
