//! What a driver is told when it is made.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use mizzen_driver::PeerId;

use crate::far::Far;
use crate::security::Security;
use crate::through::Through;

/// How to attach to a TCP network.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TcpOptions {
    /// This process.
    pub me: PeerId,
    /// How it proves who it is, and whom it believes.
    pub security: Security,
    /// Where to listen. An unspecified address stands for every interface, and port 0 for any free one.
    /// The loopback interface is offered to others only if it is named here, or if there is no other.
    pub listen: SocketAddr,
    /// The addresses that others are told, in order of preference; if there are none, those that they can most likely reach.
    pub offered: Vec<IpAddr>,
    /// What is known of the way to others, if they are far away.
    pub far: Option<Far>,
    /// The proxy through which others are dialled, if they are not dialled directly.
    pub through: Option<Through>,
    /// How long a stranger may take to say who it is.
    pub hello_patience: Duration,
    /// How long one address of a locator may take to answer before the next is tried.
    pub dial_patience: Duration,
}

impl TcpOptions {
    /// Every interface, and any free port.
    #[must_use]
    pub fn new(me: PeerId, security: Security) -> Self {
        Self {
            me,
            security,
            listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            offered: Vec::new(),
            far: None,
            through: None,
            hello_patience: HELLO_PATIENCE,
            dial_patience: DIAL_PATIENCE,
        }
    }

    /// The same, listening at `listen`.
    #[must_use]
    pub fn listen(self, listen: SocketAddr) -> Self {
        Self { listen, ..self }
    }

    /// The same, with others told only these addresses.
    #[must_use]
    pub fn offered(self, offered: Vec<IpAddr>) -> Self {
        Self { offered, ..self }
    }

    /// The same, for others who are far away, or not.
    #[must_use]
    pub fn far(self, far: Option<Far>) -> Self {
        Self { far, ..self }
    }

    /// The same, with others dialled through a proxy, or directly.
    #[must_use]
    pub fn through(self, through: Option<Through>) -> Self {
        Self { through, ..self }
    }

    /// The same, giving a stranger this much time.
    #[must_use]
    pub fn hello_patience(self, hello_patience: Duration) -> Self {
        Self {
            hello_patience,
            ..self
        }
    }

    /// The same, giving each address this much time.
    #[must_use]
    pub fn dial_patience(self, dial_patience: Duration) -> Self {
        Self {
            dial_patience,
            ..self
        }
    }
}

/// Why a driver could not be made.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address is in use, or does not belong to this host. Choose another.
    #[error("cannot listen at {address}: {cause}")]
    Listen {
        /// Where it was to listen.
        address: SocketAddr,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The system has no descriptors left, or does not let us see its interfaces.
    #[error("no means to wait for a network: {cause}")]
    System {
        /// What the system said.
        #[source]
        cause: io::Error,
    },
}

/// A peer says hello at once; a network may lose it and take a second or two to send it again.
const HELLO_PATIENCE: Duration = Duration::from_secs(5);
/// Long enough for a lost packet, short enough that a host with several dead addresses is soon reached.
const DIAL_PATIENCE: Duration = Duration::from_secs(2);
