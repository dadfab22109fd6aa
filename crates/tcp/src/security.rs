//! How a driver proves who it is, whom it believes, and whether what it sends is sealed.

use std::fmt;
use std::sync::Arc;

use mizzen_driver::PeerId;
use rustls::{ClientConfig, CommonState, ServerConfig};

/// Who a process is, and how it knows others. Every link begins with a handshake of mutual TLS 1.3.
#[derive(Clone)]
pub struct Security {
    pub(crate) client: Arc<ClientConfig>,
    pub(crate) server: Arc<ServerConfig>,
    pub(crate) identify: Identify,
    pub(crate) records: Records,
}

/// Who is at the other end of a connection whose handshake is complete; `None` if it is not a process of this job.
pub type Identify = Arc<dyn Fn(&CommonState) -> Option<PeerId> + Send + Sync>;

/// What becomes of the bytes of a link after its handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// They are encrypted and authenticated.
    Sealed,
    /// They are sent in clear: for a network that only this job's hosts can reach. Whoever is on it can read and
    /// change them.
    Clear,
}

impl Security {
    /// Sealed, with what these say about keys, certificates and whom to believe.
    pub fn new(client: Arc<ClientConfig>, server: Arc<ServerConfig>, identify: Identify) -> Self {
        Self {
            client,
            server,
            identify,
            records: Records::Sealed,
        }
    }

    /// The same with other records. Both ends of a link must agree.
    #[must_use]
    pub fn records(self, records: Records) -> Self {
        Self { records, ..self }
    }
}

/// Without keys: what is printed may end in a log.
impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Security")
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}
