//! How to open a driver, and why it may not open.

use std::io;
use std::net::IpAddr;

/// Which provider of libfabric to use, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfiOptions {
    pub(crate) provider: Option<String>,
    pub(crate) at: Option<IpAddr>,
    pub(crate) domain: Option<String>,
}

impl OfiOptions {
    /// The provider that libfabric prefers, wherever it likes.
    #[must_use]
    pub fn new() -> Self {
        Self {
            provider: None,
            at: None,
            domain: None,
        }
    }

    /// The same, with this provider, named as `fi_info` does: `tcp;ofi_rxm`, `cxi`, `verbs;ofi_rxm`.
    #[must_use]
    pub fn provider(self, provider: &str) -> Self {
        Self {
            provider: Some(provider.to_owned()),
            ..self
        }
    }

    /// The same, at the interface that has this address.
    #[must_use]
    pub fn at(self, at: IpAddr) -> Self {
        Self {
            at: Some(at),
            ..self
        }
    }

    /// The same, on this domain, named as `fi_info` does: an interface or a card, such as `eth0` or `cxi0`.
    #[must_use]
    pub fn domain(self, domain: &str) -> Self {
        Self {
            domain: Some(domain.to_owned()),
            ..self
        }
    }
}

impl Default for OfiOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// Why a driver could not be made.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// libfabric is not installed here, or not where the loader looks. Use another driver.
    #[error("no libfabric on this machine: {why}")]
    NoLibrary {
        /// What the loader said.
        why: String,
    },
    /// libfabric is too old. Install 1.17 or newer.
    #[error("libfabric {found} is older than 1.17")]
    TooOld {
        /// The version found.
        found: String,
    },
    /// No provider offers what the driver needs under these options. Choose one of those listed.
    #[error("no provider {wanted}; available: {}", available.join(", "))]
    NoProvider {
        /// What was asked for.
        wanted: String,
        /// The providers that would do.
        available: Vec<String>,
    },
    /// The provider refused a step.
    #[error("{provider}: {step}: {cause}")]
    Refused {
        /// Which provider.
        provider: String,
        /// What it was asked to do.
        step: &'static str,
        /// What it said.
        #[source]
        cause: io::Error,
    },
    /// The system has no descriptors left.
    #[error("no means to wait for a network: {cause}")]
    System {
        /// What the system said.
        #[source]
        cause: io::Error,
    },
}
