//! How far another site is, and what that means for connections with it.

use std::time::Duration;

/// The round trip to a site, as the status of a gateway tells it.
pub(crate) fn round_trip(status: &str, site: &str) -> Option<Duration> {
    let said = line_of(status, site)?.split("round trip ").nth(1)?;
    let milliseconds: f64 = said.split(' ').next()?.parse().ok()?;
    Duration::try_from_secs_f64(milliseconds / 1e3).ok()
}

/// What the status of a gateway says of a site.
pub(crate) fn line_of<'a>(status: &'a str, site: &str) -> Option<&'a str> {
    let begin = format!("site {site}: ");
    let mut lines = status.lines();
    lines.find_map(|line| line.strip_prefix(&begin))
}

/// How many connections fill a way of so many Mbit/s: what is under way at a time, in parts of what one may have under way.
pub(crate) fn streams(rate: u64, round_trip: Duration, memory: u64) -> u8 {
    let under_way = rate as f64 * 1e6 / 8.0 * round_trip.as_secs_f64();
    let needed = (under_way / (USABLE * memory.max(1) as f64)).ceil();
    // More than fits is the most.
    (needed as u8).clamp(LEAST, MOST)
}

/// The memory that this host gives a connection for what is under way.
pub(crate) fn send_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/net/core/wmem_max");
    let read = text.ok().and_then(|text| text.trim().parse().ok());
    read.unwrap_or(USUAL_MEMORY)
}

/// Part of that memory, doubled by the system, which is payload.
pub(crate) const USABLE: f64 = 1.4;
/// One for what is short, and three that share losses.
pub(crate) const LEAST: u8 = 4;
const MOST: u8 = 16;
/// Where the system does not say.
const USUAL_MEMORY: u64 = 212_992;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_as_many_as_the_way_is_long() {
        let trip = Duration::from_millis(50);
        assert_eq!(streams(1_000, trip, 4 << 20), 4);
        assert_eq!(streams(10_000, trip, 4 << 20), 11);
        assert_eq!(streams(1_000_000, Duration::from_secs(9), 1), 16);
        assert_eq!(streams(1, Duration::ZERO, 0), 4);
    }

    #[test]
    fn the_round_trip_is_found_in_a_status() {
        let status = "site a, gateway gw1\nsite b: dialled by gw1 19 s ago, round trip 20.3 ms\n  0 streams\nsite c: not connected yet\n";
        assert_eq!(round_trip(status, "b"), Some(Duration::from_micros(20_300)));
        assert_eq!(round_trip(status, "c"), None);
        assert_eq!(line_of(status, "c"), Some("not connected yet"));
        assert_eq!(line_of(status, "d"), None);
    }
}
