//! How long the fabric may take to connect with a peer that comes back.
//!
//! The provider makes its connections itself, and where a packet of that is lost, because the network fails again, it waits for the
//! system to repeat it: a second, then two, then four. Another link, through another port, is there sooner. But a provider
//! that is only busy must not be left over and over: who was not waited for long enough is waited for twice as long the next time.

use std::collections::HashMap;
use std::time::Duration;

use mizzen_driver::PeerId;

/// The peers that came back.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// At most [`MAX_PEERS`].
    peers: HashMap<PeerId, Duration>,
}

impl Patience {
    /// How long a connection with this peer may take.
    pub(crate) fn with(&self, peer: PeerId) -> Duration {
        self.peers.get(&peer).copied().unwrap_or(MOST)
    }

    /// Its link was lost.
    pub(crate) fn begin(&mut self, peer: PeerId) {
        if self.peers.len() >= MAX_PEERS {
            self.peers.clear();
        }
        self.peers.insert(peer, FIRST);
    }

    /// The next one was not there in time, and was ended.
    pub(crate) fn grow(&mut self, peer: PeerId) {
        if let Some(patience) = self.peers.get_mut(&peer) {
            *patience = (*patience * 2).min(MOST);
        }
    }
}

/// Ten times as long as `ofi_rxm` needs for its endpoint and the connection.
const FIRST: Duration = Duration::from_secs(1);
/// Also for who was never met.
pub(crate) const MOST: Duration = Duration::from_secs(5);
/// Beyond, all begin anew.
const MAX_PEERS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: PeerId = PeerId(1);

    #[test]
    fn who_is_slow_again_and_again_is_waited_for_longer_and_longer() {
        let mut patience = Patience::default();
        patience.grow(PEER);
        assert_eq!(patience.with(PEER), MOST, "it was never met");
        patience.begin(PEER);
        let mut waited = Vec::new();
        for _ in 0..5 {
            waited.push(patience.with(PEER).as_secs());
            patience.grow(PEER);
        }
        assert_eq!(waited, [1, 2, 4, 5, 5]);
        patience.begin(PEER);
        assert_eq!(patience.with(PEER), FIRST);
    }

    #[test]
    fn what_is_remembered_of_peers_is_bounded() {
        let mut patience = Patience::default();
        for peer in 0..2 * MAX_PEERS as u64 {
            patience.begin(PeerId(peer));
        }
        assert!(patience.peers.len() <= MAX_PEERS);
    }
}
