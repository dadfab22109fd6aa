//! Tests of the crate: real handshakes, in memory, between processes that are who they say, and others.

mod admission;
mod damage;
mod names;
mod protocol;
mod requests;
mod sealing;
mod sites;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::CertificateParams;
use rustls::pki_types::CertificateDer;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Error, ServerConfig, ServerConnection,
};

use crate::authority::{Validity, leaf};
use crate::verifier::Verifier;
use crate::{Authority, Credentials, Identity, IdentityError, Keys, LIFETIME, server_name};

const JOB: [u8; 16] = *b"\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff";

/// Who ended a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Party {
    Client,
    Server,
}

fn authority() -> Authority {
    Authority::new("local", JOB).unwrap()
}

fn process(rank: u32) -> Identity {
    Identity::new("local", JOB, rank, 0).unwrap()
}

/// Credentials as a process gets them.
fn credentials(authority: &Authority, identity: &Identity) -> Credentials {
    let keys = Keys::generate().unwrap();
    let now = SystemTime::now();
    let certificate = authority.certify(&keys.request(), identity, now, LIFETIME);
    Credentials::new(keys, certificate.unwrap(), authority.certificate().to_vec()).unwrap()
}

/// The certificate of an honest process, to be made a wrong one.
fn honest(identity: &Identity, keys: &Keys) -> CertificateParams {
    let validity = Validity::new(SystemTime::now(), LIFETIME).unwrap();
    leaf(identity, keys, &validity).unwrap()
}

/// Who shows `chain`, and believes in `authority` as an honest process of rank 1 does.
fn impostor(authority: &Authority, keys: Keys, chain: Vec<Vec<u8>>) -> Credentials {
    let identity = process(1);
    let verifier = Verifier::new(authority.certificate(), &identity).unwrap();
    let chain = chain.into_iter().map(CertificateDer::from).collect();
    Credentials::assemble(identity, keys, chain, verifier).unwrap()
}

/// Like [`impostor`], with one certificate which the authority signed, of what `change` made of an honest one.
fn changed(authority: &Authority, change: impl FnOnce(&mut CertificateParams)) -> Credentials {
    let keys = Keys::generate().unwrap();
    let mut params = honest(&process(1), &keys);
    change(&mut params);
    let certificate = authority.issue(params, &keys).unwrap();
    impostor(authority, keys, vec![certificate])
}

/// Runs a handshake to its end: the connections, or who ended it and why.
fn handshake(
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
) -> Result<(ClientConnection, ServerConnection), (Party, Error)> {
    let mut client = ClientConnection::new(client, server_name()).unwrap();
    let mut server = ServerConnection::new(server).unwrap();
    for _ in 0..8 {
        let mut flight = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut flight).unwrap();
        }
        receive(&mut server, &flight).map_err(|error| (Party::Server, error))?;
        flight.clear();
        while server.wants_write() {
            server.write_tls(&mut flight).unwrap();
        }
        receive(&mut client, &flight).map_err(|error| (Party::Client, error))?;
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok((client, server))
}

fn receive<S>(
    connection: &mut impl std::ops::DerefMut<Target = rustls::ConnectionCommon<S>>,
    mut flight: &[u8],
) -> Result<(), Error>
where
    S: rustls::SideData,
{
    while !flight.is_empty() {
        connection.read_tls(&mut flight).unwrap();
        connection.process_new_packets()?;
    }
    Ok(())
}

/// Has `wrong` connect to an honest process and be connected to by one: both refuse it, and say why.
fn refusals(wrong: &Credentials, authority: &Authority) -> [Error; 2] {
    let honest = credentials(authority, &process(0));
    let (party, as_client) = handshake(wrong.client_config(), honest.server_config()).unwrap_err();
    assert_eq!(party, Party::Server, "{as_client}");
    let (party, as_server) = handshake(honest.client_config(), wrong.server_config()).unwrap_err();
    assert_eq!(party, Party::Client, "{as_server}");
    [as_client, as_server]
}

fn assert_refused(wrong: &Credentials, authority: &Authority, why: &CertificateError) {
    for error in refusals(wrong, authority) {
        let same = match &error {
            Error::InvalidCertificate(error) => {
                std::mem::discriminant(error) == std::mem::discriminant(why)
            }
            _ => false,
        };
        assert!(same, "refused because of {error:?}, not {why:?}");
    }
}

fn assert_not_identified(wrong: &Credentials, authority: &Authority, why: &IdentityError) {
    for error in refusals(wrong, authority) {
        let Error::InvalidCertificate(CertificateError::Other(other)) = &error else {
            panic!("refused because of {error:?}, not {why:?}");
        };
        assert_eq!(other.0.downcast_ref(), Some(why));
    }
}

const EXPIRED: CertificateError = CertificateError::ExpiredContext {
    time: rustls::pki_types::UnixTime::since_unix_epoch(Duration::ZERO),
    not_after: rustls::pki_types::UnixTime::since_unix_epoch(Duration::ZERO),
};

const NOT_YET_VALID: CertificateError = CertificateError::NotValidYetContext {
    time: rustls::pki_types::UnixTime::since_unix_epoch(Duration::ZERO),
    not_before: rustls::pki_types::UnixTime::since_unix_epoch(Duration::ZERO),
};
