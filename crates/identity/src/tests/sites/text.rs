//! Keys, certificates, pins and names as text.

use proptest::prelude::*;

use super::*;
use crate::limits::MAX_CERTIFICATE;
use crate::{
    MAX_CLUSTER, MAX_GATEWAY_URI, MAX_TEXT, Pin, SiteKeyError, SiteNameError,
    certificate_from_text, certificate_to_text,
};

/// The example of RFC 8410, 10.3.
const EXAMPLE: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
-----END PRIVATE KEY-----
";

/// SHA-256 of the public key of that example (10.1), decoded.
const EXAMPLE_PIN: &str = "sha256:a1e9156054e04fac899ae9f275132cdc07a5dbc4ea2c2ad3a1ffc6e0d253681f";

#[test]
fn a_key_of_another_tool_is_read_and_written_as_it_was() {
    let key = SiteKey::from_text(EXAMPLE).unwrap();
    assert_eq!(key.to_text().as_str(), EXAMPLE);
    assert_eq!(key.pin().to_string(), EXAMPLE_PIN);
    assert_eq!(format!("{key:?}"), format!("SiteKey({EXAMPLE_PIN})"));
    let crlf = EXAMPLE.replace('\n', "\r\n");
    assert_eq!(SiteKey::from_text(&crlf).unwrap().pin(), key.pin());
}

#[test]
fn nothing_of_a_key_is_printed() {
    let world = World::new();
    let (site, gateway) = (&world.a, GatewayKey::generate().unwrap());
    let secret = |text: &str| text.lines().nth(1).unwrap()[22..].to_owned();
    let secrets = [site.to_text(), gateway.to_text()].map(|text| secret(text.as_str()));
    let printed = format!(
        "{site:?} {gateway:?} {:?} {:?} {:?}",
        site.to_text(),
        world.of_a(),
        gateway.keys()
    );
    for one in secrets {
        assert!(!printed.contains(&one), "{printed}");
    }
}

#[test]
fn a_damaged_text_is_no_key() {
    let text = SiteKey::generate().unwrap().to_text();
    let text = text.as_str();
    for length in 0..text.trim_end().len() {
        let error = SiteKey::from_text(&text[..length]).unwrap_err();
        assert_eq!(error, SiteKeyError::KeyText, "{length} bytes");
    }
    let body = text.lines().nth(1).unwrap();
    for wrong in [
        text.replace("PRIVATE", "PUBLIC"),
        text.replace("PRIVATE KEY", "CERTIFICATE"),
        text.replace(body, &format!("{body}{body}")),
        text.replace(body, &format!("{body}\n{body}")),
        text.replace(body, &format!("{}====", &body[..60])),
        text.replace(body, &body.replace("MC4C", "MC5C")),
        text.replace(body, &body.replace("MC4C", "MC4-")),
        text.replace(body, ""),
        format!("{text}{text}"),
        format!("{}{text}", "\n".repeat(MAX_TEXT)),
    ] {
        let error = GatewayKey::from_text(&wrong).unwrap_err();
        assert_eq!(error, SiteKeyError::KeyText, "{wrong}");
    }
}

#[test]
fn the_certificate_of_a_site_follows_from_its_key_and_name() {
    let key = SiteKey::generate().unwrap();
    let again = SiteKey::from_text(key.to_text().as_str()).unwrap();
    assert_eq!(key.certificate("a"), again.certificate("a"));
    assert_ne!(key.certificate("a"), key.certificate("b"));
    let error = key.certificate("A").unwrap_err();
    assert_eq!(error, SiteKeyError::Name(SiteNameError::Site));
}

#[test]
fn the_longest_names_fit_the_limits() {
    let long = "s".repeat(MAX_CLUSTER);
    let name = GatewayName::new(&long, &long).unwrap();
    assert_eq!(name.to_string().len(), MAX_GATEWAY_URI);
    let (site, key) = (
        SiteKey::generate().unwrap(),
        GatewayKey::generate().unwrap(),
    );
    let leaf = site
        .certify(&key.request(), &name, SystemTime::now(), GATEWAY_LIFETIME)
        .unwrap();
    let of_site = site.certificate(&long).unwrap();
    for certificate in [&leaf, &of_site] {
        assert!(certificate.len() <= MAX_CERTIFICATE);
        let text = certificate_to_text(certificate);
        assert!(text.len() <= MAX_TEXT);
        assert_eq!(&certificate_from_text(&text).unwrap(), certificate);
    }
    SiteCredentials::new(key.keys(), leaf, of_site, Sites::default()).unwrap();
    assert_eq!(
        format!("{name}x").parse::<GatewayName>(),
        Err(SiteNameError::TooLong)
    );
}

proptest! {
    #[test]
    fn a_certificate_is_what_its_text_says(bytes in proptest::collection::vec(any::<u8>(), 1..300)) {
        let text = certificate_to_text(&bytes);
        prop_assert!(text.lines().all(|line| line.len() <= 64));
        prop_assert_eq!(certificate_from_text(&text).unwrap(), bytes);
    }

    #[test]
    fn a_certificate_has_one_text(body in "[A-D+/=]{1,12}") {
        let text = format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
        if let Ok(bytes) = certificate_from_text(&text) {
            prop_assert_eq!(certificate_to_text(&bytes), text);
        }
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "\\PC{0,200}", lines in "(-----BEGIN CERTIFICATE-----\n)?[A-D=\n-]{0,80}") {
        for text in [text, lines] {
            let _ = (certificate_from_text(&text), SiteKey::from_text(&text));
            let _ = (text.parse::<Pin>(), text.parse::<GatewayName>());
        }
    }

    #[test]
    fn a_pin_has_one_text(text in "(sha256:)?[0-9a-fA-F]{63,65}") {
        if let Ok(pin) = text.parse::<Pin>() {
            prop_assert_eq!(pin.to_string(), text);
        }
    }

    #[test]
    fn a_gateway_s_name_is_what_its_text_says(
        site in "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", gateway in "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
    ) {
        let name = GatewayName::new(&site, &gateway).unwrap();
        prop_assert_eq!(name.to_string().parse::<GatewayName>().unwrap(), name);
    }
}
