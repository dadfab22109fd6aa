//! Knocking at hosts that fell silent.
//!
//! Who dialled a link dials it again when it is lost; what it sends waits until its system has found the other
//! host on the wire. While nobody answers, a system looks for a neighbour once a second, however much is sent, so a
//! cable that is back is noticed up to a second later. But who is *asked* by its neighbour knows that neighbour at once. So
//! the end that was dialled, and does not know where to dial, sends an empty datagram to the silent host now and
//! then. Nobody reads it: it is there to make the system ask.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The hosts at which we knock.
#[derive(Debug, Default)]
pub(crate) struct Knocks {
    /// Where, and until when. At most [`MAX_HOSTS`].
    hosts: BTreeMap<IpAddr, (u16, Instant)>,
    next: Option<Instant>,
}

impl Knocks {
    /// A host fell silent, which dialled us from here.
    pub(crate) fn begin(&mut self, from: SocketAddr, now: Instant) {
        if self.hosts.len() < MAX_HOSTS || self.hosts.contains_key(&from.ip()) {
            let until = now + PATIENCE;
            self.hosts.insert(from.ip(), (from.port(), until));
            self.next.get_or_insert(now + INTERVAL);
        }
    }

    /// The host is there again.
    pub(crate) fn end(&mut self, host: IpAddr) {
        self.hosts.remove(&host);
    }

    /// Knocks everywhere, if it is time.
    pub(crate) fn knock(&mut self, now: Instant) {
        if self.next.is_none_or(|at| at > now) {
            return;
        }
        self.hosts.retain(|_, (_, until)| *until > now);
        for (&host, &(port, _)) in &self.hosts {
            // A network that is down refuses it: then there is nothing to be found there yet.
            let _ = send(SocketAddr::new(host, port));
        }
        self.next = (!self.hosts.is_empty()).then(|| now + INTERVAL);
    }

    /// When to knock, unless nobody is silent.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next
    }
}

/// Sends an empty datagram. The port is one that the host used with us: nobody listens there, or cares.
fn send(to: SocketAddr) -> std::io::Result<()> {
    let anywhere: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((anywhere, 0))?;
    socket.set_nonblocking(true)?;
    socket.send_to(&[], to).map(drop)
}

/// Between two knocks: a fraction of the second in which traffic must go on.
pub(crate) const INTERVAL: Duration = Duration::from_millis(150);
/// After so long a host is left alone; then its own system has to find us.
const PATIENCE: Duration = Duration::from_secs(300);
/// Silent hosts at once.
const MAX_HOSTS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_host_is_knocked_at_until_it_is_there_again() {
        let door = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        door.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let at = door.local_addr().unwrap();
        let start = Instant::now();
        let mut knocks = Knocks::default();
        knocks.begin(at, start);
        for round in 1..=2 {
            let now = knocks.next().expect("somebody is silent");
            assert_eq!(now, start + INTERVAL * round);
            knocks.knock(now);
            let heard = door.recv_from(&mut [0; 8]).expect("a datagram");
            assert_eq!(heard.0, 0, "it is empty");
        }
        knocks.end(at.ip());
        knocks.knock(start + INTERVAL * 3);
        assert_eq!(knocks.next(), None);
    }

    #[test]
    fn nobody_is_knocked_at_for_ever() {
        let mut knocks = Knocks::default();
        let start = Instant::now();
        for host in 0..2 * MAX_HOSTS as u32 {
            knocks.begin((Ipv4Addr::from_bits(0x7f00_0001 + host), 9).into(), start);
        }
        assert_eq!(knocks.hosts.len(), MAX_HOSTS);
        knocks.knock(start + PATIENCE);
        assert!(knocks.hosts.is_empty());
        assert_eq!(knocks.next(), None);
    }
}
