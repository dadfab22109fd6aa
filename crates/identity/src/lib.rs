//! Who a process is, proved to processes of other hosts.
//!
//! The launcher makes an [`Authority`] for the job and gives its [`Secret`] to the agents, and to nobody else. A process
//! makes its own [`Keys`], whose private half never leaves it, and asks the agent of its host for a certificate. The agent
//! decides whose [`Identity`] goes into it: cluster, job, rank and incarnation, as one URI. With it, the process has
//! [`Credentials`]: the settings of TLS 1.3 connections on which both sides prove who they are.
//!
//! Between sites, gateways prove whose they are: a site has a [`SiteKey`], which certifies the [`GatewayKey`] of each, others know
//! it by its [`Pin`], and connections have [`SiteCredentials`].
//!
//! All cryptography of the runtime is here, and no other crate of ours is used: nothing here opens a socket, reads a file
//! or keeps a secret in a form that is printed.
//!
//! ```
//! use std::time::SystemTime;
//! use mizzen_identity::{Authority, Credentials, Identity, Keys, LIFETIME};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The launcher, and an agent that got the secret.
//! let job = [7; 16];
//! let secret = Authority::new("local", job)?.to_secret();
//! let agent = Authority::from_secret(secret.as_bytes())?;
//!
//! // The process asks, the agent certifies.
//! let keys = Keys::generate()?;
//! let identity = Identity::new("local", job, 3, 0)?;
//! let certificate = agent.certify(&keys.request(), &identity, SystemTime::now(), LIFETIME)?;
//! let credentials = Credentials::new(keys, certificate, agent.certificate().to_vec())?;
//!
//! assert_eq!(credentials.identity().to_string(), format!("mizzen://local/{}/3/0", "07".repeat(16)));
//! let _ = (credentials.client_config(), credentials.server_config());
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod admission;
mod authority;
mod credentials;
mod error;
mod identity;
mod keys;
mod limits;
mod sealing;
mod secret;
mod settings;
mod site;
mod verifier;

pub use authority::{Authority, CLOCK_SKEW, LIFETIME, MIN_SHARED};
pub use credentials::Credentials;
pub use error::{AuthorityError, CredentialsError, IdentityError, SealError};
pub use identity::{Identity, MAX_CLUSTER, MAX_URI, NameError, Role};
pub use keys::{Keys, REQUEST_LENGTH};
pub use limits::{MAX_CERTIFICATE, MAX_CHAIN, MAX_CHAIN_BYTES};
pub use sealing::{Bond, SEAL, Seal, Shaking};
pub use secret::{MAX_SECRET, Secret};
pub use settings::{ALPN, server_name};
pub use site::{
    GATEWAY_LIFETIME, GatewayKey, GatewayName, KeyText, MAX_GATEWAY_URI, MAX_TEXT, Pin, PinError,
    Pins, SITE_ALPN, SiteCredentials, SiteCredentialsError, SiteError, SiteKey, SiteKeyError,
    SiteList, SiteListError, SiteNameError, SitePeer, Sites, certificate_from_text,
    certificate_to_text, check_site_name, pin_of_certificate,
};

#[cfg(test)]
mod tests;
