//! A flight of a handshake as bytes: parts, each with its level and its length, so that what belongs together goes and comes together.

/// A part that anybody can read.
pub(super) const INITIAL: u8 = 0;
/// A part in the keys of the handshake.
pub(super) const HANDSHAKE: u8 = 1;

/// The longest flight: certificates may have 16 KiB in all.
pub(super) const MAX_FLIGHT: usize = 32 * 1024;

/// Adds a part. None, if it is too long.
pub(super) fn add(flight: &mut Vec<u8>, level: u8, bytes: &[u8]) -> Option<()> {
    let length = u16::try_from(bytes.len()).ok()?;
    flight.push(level);
    flight.extend_from_slice(&length.to_le_bytes());
    flight.extend_from_slice(bytes);
    (flight.len() <= MAX_FLIGHT).then_some(())
}

/// The parts of a flight, with their levels; none, where it is no flight.
pub(super) fn parts(mut flight: &[u8]) -> impl Iterator<Item = Option<(u8, &[u8])>> {
    std::iter::from_fn(move || {
        if flight.is_empty() {
            return None;
        }
        let part = split(flight);
        flight = part.map_or(&[], |(_, rest)| rest);
        Some(part.map(|(part, _)| part))
    })
}

type Part<'a> = (u8, &'a [u8]);

fn split(flight: &[u8]) -> Option<(Part<'_>, &[u8])> {
    let (header, rest) = flight.split_first_chunk::<3>()?;
    let length = usize::from(u16::from_le_bytes([header[1], header[2]]));
    let (bytes, rest) = rest.split_at_checked(length)?;
    Some(((header[0], bytes), rest))
}
