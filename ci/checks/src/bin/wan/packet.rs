//! What is inside a packet, as far as this network changes it.

use std::net::Ipv4Addr;

use fastrand::Rng;

/// Where an IPv4 packet goes to.
pub(crate) fn destination(packet: &[u8]) -> Option<Ipv4Addr> {
    let bytes: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
    Some(bytes.into())
}

/// The packet with two words of what it carries swapped: the sum that TCP and UDP check stays the same, so nobody but its reader can
/// notice. None, if there are no two words that differ.
pub(crate) fn corrupt(packet: &[u8], rng: &mut Rng) -> Option<Vec<u8>> {
    let body = body(packet)?;
    let words = (packet.len().checked_sub(body)?) / 2;
    if words < 2 {
        return None;
    }
    let mut packet = packet.to_vec();
    for _ in 0..TRIES {
        let (one, two) = (body + 2 * rng.usize(..words), body + 2 * rng.usize(..words));
        if packet[one..one + 2] != packet[two..two + 2] {
            packet.swap(one, two);
            packet.swap(one + 1, two + 1);
            return Some(packet);
        }
    }
    None
}

/// Where the bytes of a TCP or UDP packet begin.
fn body(packet: &[u8]) -> Option<usize> {
    let first = *packet.first()?;
    if first >> 4 != 4 {
        return None;
    }
    let header = usize::from(first & 15) * 4;
    match *packet.get(9)? {
        TCP => Some(header + usize::from(*packet.get(header + 12)? >> 4) * 4),
        UDP => Some(header + 8),
        _ => None,
    }
}

const TCP: u8 = 6;
const UDP: u8 = 17;
/// How often to look for two words that differ.
const TRIES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum that TCP and UDP check.
    fn sum(bytes: &[u8]) -> u64 {
        let words = bytes
            .chunks(2)
            .map(|two| u64::from(two[0]) << 8 | u64::from(two[1]));
        words.sum()
    }

    #[test]
    fn changes_what_is_carried_but_not_its_sum() {
        let mut packet = vec![0; 28];
        packet[0] = 0x45;
        packet[9] = UDP;
        packet.extend((0..100).map(|i| i as u8));
        let changed = corrupt(&packet, &mut Rng::with_seed(1)).expect("words differ");
        assert_ne!(changed, packet);
        assert_eq!(changed[..28], packet[..28]);
        assert_eq!(sum(&changed), sum(&packet));
    }

    #[test]
    fn leaves_alone_what_it_does_not_know() {
        let mut rng = Rng::with_seed(1);
        assert_eq!(corrupt(&[], &mut rng), None);
        assert_eq!(corrupt(&[0x45; 20], &mut rng), None);
        assert_eq!(corrupt(&[0x6f; 60], &mut rng), None);
        assert_eq!(destination(&[0x45; 19]), None);
    }
}
