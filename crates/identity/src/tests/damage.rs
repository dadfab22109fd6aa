//! Certificates and secrets of which something is wrong or missing.

use super::*;
use crate::{AuthorityError, MAX_CERTIFICATE, MAX_SECRET};

#[test]
fn a_certificate_with_any_flipped_bit_is_refused() {
    let authority = authority();
    let keys = Keys::generate().unwrap();
    let certificate = authority.issue(honest(&process(1), &keys), &keys).unwrap();
    let honest = credentials(&authority, &process(0));
    for place in 0..certificate.len() {
        let mut damaged = certificate.clone();
        damaged[place] ^= 1 << (place % 8);
        let wrong = impostor(&authority, keys.clone(), vec![damaged.clone()]);
        let refused = handshake(wrong.client_config(), honest.server_config());
        assert!(refused.is_err(), "byte {place} changed and it was let in");
        let own = Credentials::new(keys.clone(), damaged, authority.certificate().to_vec());
        assert!(own.is_err(), "byte {place} changed and it was taken");
    }
}

#[test]
fn a_truncated_or_prolonged_certificate_is_refused() {
    let authority = authority();
    let keys = Keys::generate().unwrap();
    let certificate = authority.issue(honest(&process(1), &keys), &keys).unwrap();
    let taken = |certificate: &[u8], authority: &[u8]| {
        Credentials::new(keys.clone(), certificate.to_vec(), authority.to_vec()).is_ok()
    };
    let of_authority = authority.certificate();
    assert!(taken(&certificate, of_authority));
    for length in 0..certificate.len() {
        assert!(
            !taken(&certificate[..length], of_authority),
            "{length} bytes"
        );
    }
    for length in 0..of_authority.len() {
        assert!(
            !taken(&certificate, &of_authority[..length]),
            "{length} bytes"
        );
    }
    assert!(!taken(&[&certificate[..], &[0]].concat(), of_authority));
    assert!(!taken(&certificate, &[of_authority, &[0]].concat()));
}

#[test]
fn a_truncated_or_prolonged_secret_is_refused() {
    let secret = authority().to_secret();
    let bytes = secret.as_bytes();
    for length in 0..bytes.len() {
        let error = Authority::from_secret(&bytes[..length]).unwrap_err();
        assert_eq!(error, AuthorityError::Secret, "{length} bytes");
    }
    for more in [1, 100, 1 << 20] {
        let longer = [bytes, &vec![0; more]].concat();
        assert!(Authority::from_secret(&longer).is_err());
    }
}

#[test]
fn a_secret_with_a_damaged_key_is_refused() {
    let secret = authority().to_secret();
    let keys = secret.as_bytes().len() - 64..secret.as_bytes().len();
    for place in keys {
        let mut damaged = secret.as_bytes().to_vec();
        damaged[place] ^= 0x10;
        let error = Authority::from_secret(&damaged).unwrap_err();
        assert_eq!(error, AuthorityError::Secret, "byte {place}");
    }
}

#[test]
fn the_longest_names_fit_the_limits() {
    let cluster = "c".repeat(crate::MAX_CLUSTER);
    let authority = Authority::new(&cluster, [0xff; 16]).unwrap();
    let identity = Identity::agent(&cluster, [0xff; 16], u32::MAX, u32::MAX).unwrap();
    assert_eq!(identity.to_string().len(), crate::MAX_URI);
    assert_eq!(authority.to_secret().as_bytes().len(), MAX_SECRET);
    let keys = Keys::generate().unwrap();
    let now = SystemTime::now();
    let certificate = authority.certify(&keys.request(), &identity, now, LIFETIME);
    assert!(certificate.unwrap().len() <= MAX_CERTIFICATE);
    assert!(authority.certificate().len() <= MAX_CERTIFICATE);
}
