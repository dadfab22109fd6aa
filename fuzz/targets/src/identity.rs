//! Names in certificates, requests for them, the authority's secret, and flights of handshakes.

use std::sync::OnceLock;
use std::time::SystemTime;

use mizzen_identity::{Authority, Bond, Credentials, Identity, LIFETIME, Shaking};

/// A byte that says what the rest is.
pub fn run(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else {
        return;
    };
    match kind % 5 {
        0 => name(rest),
        1 => {
            if let Ok(authority) = Authority::from_secret(rest) {
                assert_eq!(authority.to_secret().as_bytes(), rest);
            }
        }
        2 => request(rest),
        3 => flight(rest, true),
        _ => flight(rest, false),
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
    let authority = authority();
    let who = Identity::new("fuzz", [1; 16], 2, 3).expect("a name");
    if let Ok(certificate) = authority.certify(bytes, &who, SystemTime::now(), LIFETIME) {
        assert!(certificate.len() <= mizzen_identity::MAX_CERTIFICATE);
    }
}

/// Nobody proves anything by bytes that were there before the handshake.
fn flight(bytes: &[u8], dialled: bool) {
    static CREDENTIALS: OnceLock<Credentials> = OnceLock::new();
    let who = |rank| Identity::new("fuzz", [1; 16], rank, 0).expect("a name");
    let credentials = CREDENTIALS.get_or_init(|| {
        let credentials = authority().credentials(&who(0));
        credentials.expect("a certificate")
    });
    let bond = Bond {
        peer: who(1),
        ours: b"0 to 1".to_vec(),
        theirs: b"1 to 0".to_vec(),
    };
    let mut shaking = if dialled {
        let mut shaking = Shaking::dial(credentials, bond).expect("settings");
        shaking.begin().expect("a greeting");
        shaking
    } else {
        Shaking::accept(credentials, bond).expect("settings")
    };
    let _ = shaking.take(bytes);
    assert!(!shaking.is_proved());
    assert!(shaking.finish().is_none());
}

fn authority() -> &'static Authority {
    static AUTHORITY: OnceLock<Authority> = OnceLock::new();
    AUTHORITY.get_or_init(|| Authority::new("fuzz", [1; 16]).expect("an authority"))
}
