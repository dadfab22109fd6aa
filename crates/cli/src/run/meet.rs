//! `mizzen run --meet JOB@SITE`: two halves of a job, started at two sites by two people, become one.
//!
//! The half of the site whose name comes first *leads*: its launcher is that of the whole job, and its first host decides. The other
//! launcher is its *deputy*: it starts the agents of its own site, with its own program and environment, prints what its own
//! ranks write, and passes everything else on. Both know the job's secret, which nobody between them does.
//!
//! | module | subject |
//! | --- | --- |
//! | `rendezvous` | where and whom to meet |
//! | `lead`, `deputy` | the two parts |

mod deputy;
mod lead;
mod rendezvous;

use mizzen_agent::{Signals, hide_memory};
use mizzen_site::Meeting;

use super::options::Run;
use super::printer::{Printer, say};
use rendezvous::{Interrupted, Rendezvous};

/// Runs this half of a job to the end of the whole, and returns the exit code of that.
pub(super) fn run(
    options: &Run,
    meeting: &Meeting,
    signals: Signals,
    printer: Printer,
) -> anyhow::Result<u8> {
    hide_memory();
    let rendezvous = Rendezvous::new(options, meeting)?;
    let ended = match rendezvous.site.as_str() < meeting.site() {
        true => lead::lead(options, &rendezvous, signals, printer),
        false => deputy::follow(options, &rendezvous, signals, printer),
    };
    ended.or_else(|error| match error.downcast_ref() {
        Some(&Interrupted(number)) => {
            say(&format!("{error}."));
            Ok(128 + number)
        }
        None => Err(error),
    })
}
