//! Identities as text.

use proptest::prelude::*;

use crate::{Identity, MAX_CLUSTER, MAX_URI, NameError};

proptest! {
    #[test]
    fn an_identity_is_what_its_text_says(
        cluster in "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", job: [u8; 16], rank: u32, incarnation: u32,
    ) {
        let identity = Identity::new(&cluster, job, rank, incarnation).unwrap();
        let text = identity.to_string();
        prop_assert!(text.len() <= MAX_URI);
        prop_assert_eq!(text.parse::<Identity>().unwrap(), identity);
    }

    #[test]
    fn an_identity_has_one_text(text in "mizzen://[a-c-]{1,3}/[0-9a-fA-F]{31,33}/[0-9+-]{1,3}/[0-9]{1,11}") {
        if let Ok(identity) = text.parse::<Identity>() {
            prop_assert_eq!(identity.to_string(), text);
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC{0,200}") {
        let _ = text.parse::<Identity>();
    }
}

#[test]
fn malformed_identities_are_refused() {
    let job = "00112233445566778899aabbccddeeff";
    let long = "a".repeat(MAX_CLUSTER + 1);
    let cases = [
        (String::new(), NameError::Scheme),
        (format!("MIZZEN://local/{job}/0/0"), NameError::Scheme),
        (format!("https://local/{job}/0/0"), NameError::Scheme),
        ("mizzen://local".into(), NameError::Fields),
        (format!("mizzen://local/{job}/0"), NameError::Fields),
        (format!("mizzen://local/{job}/0/0/"), NameError::Fields),
        (format!("mizzen://local/{job}/0/0/0"), NameError::Fields),
        (format!("mizzen:///{job}/0/0"), NameError::Cluster),
        (format!("mizzen://Local/{job}/0/0"), NameError::Cluster),
        (format!("mizzen://a.b/{job}/0/0"), NameError::Cluster),
        (format!("mizzen://-a/{job}/0/0"), NameError::Cluster),
        (format!("mizzen://a-/{job}/0/0"), NameError::Cluster),
        (format!("mizzen://ä/{job}/0/0"), NameError::Cluster),
        (format!("mizzen://{long}/{job}/0/0"), NameError::Cluster),
        ("mizzen://local//0/0".into(), NameError::Job),
        (format!("mizzen://local/{}/0/0", &job[1..]), NameError::Job),
        (format!("mizzen://local/+{}/0/0", &job[1..]), NameError::Job),
        (
            format!("mizzen://local/{}/0/0", job.to_uppercase()),
            NameError::Job,
        ),
        (format!("mizzen://local/{job}0/0/0"), NameError::Job),
        (format!("mizzen://local/{job}//0"), NameError::Rank),
        (format!("mizzen://local/{job}/-1/0"), NameError::Rank),
        (format!("mizzen://local/{job}/+1/0"), NameError::Rank),
        (format!("mizzen://local/{job}/01/0"), NameError::Rank),
        (
            format!("mizzen://local/{job}/4294967296/0"),
            NameError::Rank,
        ),
        (format!("mizzen://local/{job}/0/"), NameError::Incarnation),
        (format!("mizzen://local/{job}/0/00"), NameError::Incarnation),
        (format!("mizzen://local/{job}/0/1 "), NameError::Incarnation),
        (
            format!("mizzen://local/{job}/0/{}", "1".repeat(100)),
            NameError::TooLong,
        ),
    ];
    for (text, why) in cases {
        assert_eq!(text.parse::<Identity>(), Err(why), "{text}");
    }
}
