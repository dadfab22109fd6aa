//! Names in certificates, requests for them, and the authority's secret.

use std::sync::OnceLock;
use std::time::SystemTime;

use mizzen_identity::{Authority, Identity, LIFETIME};

/// A byte that says what the rest is.
pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else {
        return;
    };
    match kind % 3 {
        0 => name(rest),
        1 => {
            if let Ok(authority) = Authority::from_secret(rest) {
                assert_eq!(authority.to_secret().as_bytes(), rest);
            }
        }
        _ => request(rest),
    }
}

fn name(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(identity) = text.parse::<Identity>() {
        assert_eq!(identity.to_string(), text);
    }
}

/// Whatever is asked for, a certificate says who the agent says it is.
fn request(bytes: &[u8]) {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    let authority =
        AUTHORITY.get_or_init(|| Authority::new("fuzz", [1; 16]).expect("an authority"));
    let who = Identity::new("fuzz", [1; 16], 2, 3).expect("a name");
    if let Ok(certificate) = authority.certify(bytes, &who, SystemTime::now(), LIFETIME) {
        assert!(certificate.len() <= mizzen_identity::MAX_CERTIFICATE);
    }
}
