//! Requests for certificates, and what is printed of secrets.

use super::*;
use crate::{AuthorityError, CredentialsError, REQUEST_LENGTH};

fn certify(request: &[u8]) -> Result<Vec<u8>, AuthorityError> {
    authority().certify(request, &process(1), SystemTime::now(), LIFETIME)
}

#[test]
fn a_request_gets_the_identity_that_the_agent_says() {
    let authority = authority();
    let keys = Keys::generate().unwrap();
    // A request has no room for a name, and what is put behind it is refused.
    let asking = [&keys.request()[..], process(0).to_string().as_bytes()].concat();
    assert_eq!(certify(&asking), Err(AuthorityError::Request));
    let now = SystemTime::now();
    let certificate = authority.certify(&keys.request(), &process(5), now, LIFETIME);
    let got = Credentials::new(keys, certificate.unwrap(), authority.certificate().to_vec());
    assert_eq!(*got.unwrap().identity(), process(5));
}

#[test]
fn a_request_must_prove_possession_of_its_key() {
    let (mine, yours) = (
        Keys::generate().unwrap().request(),
        Keys::generate().unwrap().request(),
    );
    let public = 1..33;
    let mut stolen = mine.clone();
    stolen[public.clone()].copy_from_slice(&yours[public]);
    assert_eq!(certify(&stolen), Err(AuthorityError::Request));
}

#[test]
fn a_damaged_request_is_refused() {
    let request = Keys::generate().unwrap().request();
    assert_eq!(request.len(), REQUEST_LENGTH);
    certify(&request).unwrap();
    for length in 0..request.len() {
        assert_eq!(certify(&request[..length]), Err(AuthorityError::Request));
    }
    for place in 0..request.len() {
        let mut damaged = request.clone();
        damaged[place] ^= 4;
        assert_eq!(
            certify(&damaged),
            Err(AuthorityError::Request),
            "byte {place}"
        );
    }
}

#[test]
fn an_authority_certifies_its_own_job_only() {
    let keys = Keys::generate().unwrap();
    for other in [
        Identity::new("local", [9; 16], 1, 0).unwrap(),
        Identity::new("remote", JOB, 1, 0).unwrap(),
    ] {
        let refused = authority().certify(&keys.request(), &other, SystemTime::now(), LIFETIME);
        assert_eq!(refused, Err(AuthorityError::NotOurs(other)));
    }
}

#[test]
fn a_time_that_no_certificate_can_say_is_refused() {
    let request = Keys::generate().unwrap().request();
    let (now, epoch) = (SystemTime::now(), SystemTime::UNIX_EPOCH);
    for (now, lifetime) in [
        (now, Duration::MAX),
        (now, LIFETIME * 1_000_000),
        (epoch, LIFETIME),
    ] {
        let refused = authority().certify(&request, &process(1), now, lifetime);
        assert_eq!(refused, Err(AuthorityError::Time));
    }
}

#[test]
fn credentials_need_the_certificate_of_their_own_keys() {
    let authority = authority();
    let certificate = |keys: &Keys| {
        let now = SystemTime::now();
        authority
            .certify(&keys.request(), &process(1), now, LIFETIME)
            .unwrap()
    };
    let (mine, yours) = (Keys::generate().unwrap(), Keys::generate().unwrap());
    let error = Credentials::new(mine, certificate(&yours), authority.certificate().to_vec());
    assert_eq!(error.unwrap_err(), CredentialsError::OtherKey);
}

#[test]
fn credentials_need_the_authority_that_signed() {
    let (ours, other) = (authority(), authority());
    let keys = Keys::generate().unwrap();
    let now = SystemTime::now();
    let certificate = ours
        .certify(&keys.request(), &process(1), now, LIFETIME)
        .unwrap();
    let error = Credentials::new(keys, certificate, other.certificate().to_vec());
    assert!(matches!(error, Err(CredentialsError::Invalid(_))));
}

#[test]
fn secrets_are_not_printed() {
    let authority = authority();
    let secret = authority.to_secret();
    let keys = Keys::generate().unwrap();
    let own = credentials(&authority, &process(1));
    let printed = format!(
        "{secret:?} {authority:?} {keys:?} {own:?} {:?} {:?}",
        own.client_config(),
        own.server_config()
    );
    let seed = &secret.as_bytes()[secret.as_bytes().len() - 64..][..32];
    let hex: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
    let decimal = format!("{:?}", &seed[..8]);
    assert!(!printed.contains(&hex[..16]));
    assert!(!printed.contains(decimal.trim_matches(['[', ']'])));
    assert!(printed.contains("Secret(..)") && printed.contains("Keys(..)"));
}
