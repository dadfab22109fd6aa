//! The launcher: `mizzen run`.
//!
//! | module | subject |
//! | --- | --- |
//! | `options` | what the user may ask for |
//! | `cast` | the hosts of a job, its ranks and its networks |
//! | `launcher`, `job` | the loop of a job that is started here; what happens to it, without IO |
//! | `links`, `starts`, `networks`, `channels`, `convert`, `whereabouts` | agents, and what they are told |
//! | `printer`, `maps`, `bars` | what is printed |
//! | `roll_call` | who waits for whom: when all are asked, and how often the user is told |
//! | `appearance` | what those are told who ask how the job is |
//! | `other_half`, `meet` | a job of which another half is started at another site |

mod appearance;
mod bars;
mod cast;
mod channels;
mod convert;
mod job;
mod launcher;
mod links;
mod maps;
mod meet;
mod networks;
mod options;
mod other_half;
mod printer;
mod roll_call;
mod starts;
mod whereabouts;

use std::process::ExitCode;

use anyhow::Context;
use mizzen_agent::Signals;

use cast::Cast;
pub(crate) use convert::cost_of;
use launcher::Launcher;
pub(crate) use links::{Link, quote};
pub(crate) use options::{AFTER_RUN, Run, processes};
pub(crate) use printer::say;
use printer::{Label, Printer};
pub(crate) use whereabouts::without_file;

/// Runs a job to its end, and returns its exit code.
pub(crate) fn run(options: Run) -> anyhow::Result<ExitCode> {
    options.check()?;
    let signals = Signals::take().context("signals cannot be taken")?;
    let label = if options.no_label {
        Label::None
    } else {
        Label::Rank
    };
    let mut printer = Printer::new(label);
    printer.show_log();
    let code = match &options.meet {
        Some(meeting) => meet::run(&options, meeting, signals, printer)?,
        None => {
            let cast = Cast::alone(&options)?;
            let links = cast.links(&options, vec![])?;
            Launcher::start(&options, cast, links, None, signals, printer)?.serve()?
        }
    };
    Ok(ExitCode::from(code))
}
