//! What a driver is told when it is made.

use std::fmt;
use std::hint::black_box;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use mizzen_driver::PeerId;

/// How to attach to a TCP network.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TcpOptions {
    /// This process.
    pub me: PeerId,
    /// What peers of the same job know.
    pub token: Token,
    /// Where to listen. An unspecified address stands for every interface, and port 0 for any free one.
    /// The loopback interface is offered to others only if it is named here, or if there is no other.
    pub listen: SocketAddr,
    /// How long a stranger may take to say who it is.
    pub hello_patience: Duration,
    /// How long one address of a locator may take to answer before the next is tried.
    pub dial_patience: Duration,
}

impl TcpOptions {
    /// Every interface, and any free port.
    #[must_use]
    pub fn new(me: PeerId, token: Token) -> Self {
        Self {
            me,
            token,
            listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            hello_patience: HELLO_PATIENCE,
            dial_patience: DIAL_PATIENCE,
        }
    }

    /// The same, listening at `listen`.
    #[must_use]
    pub fn listen(self, listen: SocketAddr) -> Self {
        Self { listen, ..self }
    }

    /// The same, with this patience towards a stranger.
    #[must_use]
    pub fn hello_patience(self, hello_patience: Duration) -> Self {
        Self {
            hello_patience,
            ..self
        }
    }

    /// The same, with this patience for one address.
    #[must_use]
    pub fn dial_patience(self, dial_patience: Duration) -> Self {
        Self {
            dial_patience,
            ..self
        }
    }
}

/// The secret of a job. Never printed, and compared in constant time.
#[derive(Clone, Copy)]
pub struct Token(pub [u8; Token::LEN]);

impl Token {
    /// Its length, in bytes.
    pub const LEN: usize = 32;

    /// Whether both are the same, in a time that does not depend on where they differ.
    pub(crate) fn matches(&self, other: &[u8; Token::LEN]) -> bool {
        let difference = self
            .0
            .iter()
            .zip(other)
            .fold(0, |sum, (a, b)| black_box(sum | (a ^ b)));
        black_box(difference) == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Why a driver could not be made.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address is in use, or is none of this host's. Choose another.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_matches_itself_only() {
        let token = Token([7; Token::LEN]);
        assert!(token.matches(&[7; Token::LEN]));
        for index in 0..Token::LEN {
            let mut other = [7; Token::LEN];
            other[index] ^= 0x80;
            assert!(!token.matches(&other));
        }
    }

    #[test]
    fn a_token_is_not_printed() {
        let options = TcpOptions::new(PeerId(1), Token([0x5a; Token::LEN]));
        assert!(!format!("{options:?}").contains("90"));
    }
}
