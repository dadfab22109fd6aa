//! Who a site is, proved to gateways of other sites.
//!
//! A site is a long-lived key, its [`SiteKey`]. Others know it by its [`Pin`], which administrators tell each other; nobody
//! else is asked. The key certifies the site's gateways, and does nothing else: a gateway has a [`GatewayKey`] of its own and a
//! certificate for one [`GatewayName`], so the site's key need not be on the host that is reached from outside. With both, and
//! with the [`Sites`] that are believed, it has [`SiteCredentials`]: the settings of TLS 1.3 connections on which both sides prove
//! who they are. Why: docs/design/sites.md.
//!
//! | module | subject |
//! | --- | --- |
//! | `name`, `pin` | what is written: names of gateways, fingerprints of keys |
//! | `text` | keys and certificates as text, for files |
//! | `key` | keys that are kept in files, and what the site's key certifies |
//! | `certificate` | what a peer shows: two certificates, and whom they name |
//! | `sites` | who is believed, and who is still welcome |
//! | `verifier`, `credentials` | the checks of a handshake, and its settings |
//! | `error` | what can go wrong, by operation |

mod certificate;
mod credentials;
mod error;
mod key;
mod name;
mod pin;
mod sites;
mod text;
mod verifier;

pub use certificate::pin_of_certificate;
pub use credentials::{SITE_ALPN, SiteCredentials};
pub use error::{SiteCredentialsError, SiteError, SiteKeyError, SiteListError};
pub use key::{GATEWAY_LIFETIME, GatewayKey, SiteKey};
pub use name::{GatewayName, MAX_GATEWAY_URI, SiteNameError, check_site_name};
pub use pin::{Pin, PinError};
pub use sites::{Pins, SiteList, SitePeer, Sites};
pub use text::{KeyText, MAX_TEXT, certificate_from_text, certificate_to_text};

#[cfg(test)]
pub(crate) use certificate::{gateway as unsigned, issue};
