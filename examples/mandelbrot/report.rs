//! What is said at the end.

use mizzen::{Deck, Report};
use mizzen_examples::picture::fingerprint;

use super::options::Options;

/// Who computed how much.
pub(crate) fn for_people(options: &Options, report: &Report) -> String {
    match options.output() {
        Some(file) => format!("{}: {report}", file.display()),
        None => report.to_string(),
    }
}

/// How long it took, and what tells two pictures apart.
pub(crate) fn for_programs(deck: &Deck, options: &Options, seconds: f64, pixels: &[u8]) -> String {
    let Options {
        width,
        height,
        iterations,
        threads,
        ..
    } = options;
    format!(
        "{{\"width\":{width},\"height\":{height},\"iterations\":{iterations},\"ranks\":{},\"threads\":{threads},\
         \"seconds\":{seconds},\"fingerprint\":\"{:016x}\"}}",
        deck.size(),
        fingerprint(pixels)
    )
}
