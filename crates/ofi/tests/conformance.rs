//! The libfabric driver keeps the contract, with each provider that can be tested without a card.
//!
//! `net` is what the providers for TCP of 1.17 became from 1.18 on, under the name `tcp`; a libfabric has one of
//! the two.

mod common;

mod tcp_rxm {
    use super::common::Loopback;

    mizzen_driver::conformance!(match Loopback::new("tcp;ofi_rxm") {
        Some(loopback) => loopback,
        None => return,
    });
}

mod net {
    use super::common::Loopback;

    mizzen_driver::conformance!(match Loopback::new("net") {
        Some(loopback) => loopback,
        None => return,
    });
}

mod tcp {
    use super::common::Loopback;

    mizzen_driver::conformance!(match Loopback::new("tcp") {
        Some(loopback) => loopback,
        None => return,
    });
}

#[test]
fn two_providers_are_tested_wherever_there_is_a_libfabric() {
    let providers = match mizzen_ofi::providers() {
        Ok(providers) => providers,
        Err(why) => return common::skip(&why),
    };
    let is_there = |name: &str| {
        providers
            .iter()
            .any(|offer| offer.usable && offer.name == name)
    };
    assert!(is_there("tcp;ofi_rxm"), "{providers:?}");
    assert!(is_there("net") || is_there("tcp"), "{providers:?}");
    let version = mizzen_ofi::version().expect("a library that lists its providers");
    assert!(version >= mizzen_ofi::Version::OLDEST);
}
