//! The one line at the end.

use mizzen::Deck;

use super::options::Options;
use super::solve::Outcome;

/// What was computed and how fast, for people or for programs.
pub(crate) fn line(deck: &Deck, options: &Options, outcome: &Outcome) -> String {
    let (size, threads, ranks) = (options.size, options.threads, deck.size());
    let (iterations, change) = outcome.last();
    let (seconds, fingerprint) = (outcome.seconds, outcome.fingerprint);
    let millions = (size * size * iterations) as f64 / seconds / 1e6;
    if options.json {
        return format!(
            "{{\"size\":{size},\"ranks\":{ranks},\"threads\":{threads},\"omega\":{},\"iterations\":{iterations},\
             \"residual\":{change},\"seconds\":{seconds},\"million_updates_per_s\":{millions},\
             \"fingerprint\":\"{fingerprint:016x}\"}}",
            options.omega()
        );
    }
    format!(
        "{size} × {size} cells, {ranks} process{} × {threads} thread{}: {iterations} iterations, largest change {change:.2e}, \
         {seconds:.3} s, {millions:.0} million cell updates/s, fingerprint {fingerprint:016x}",
        if ranks == 1 { "" } else { "es" },
        if threads == 1 { "" } else { "s" },
    )
}
