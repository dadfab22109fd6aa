//! `mizzen why`: why nothing happens in a job that runs.

use std::process::ExitCode;

use clap::Args;
use comfy_table::{ContentArrangement, Table};

use crate::bench::STYLE;
use crate::hang::{Hang, rows, sentences};
use crate::running::ask_why;

/// Say why nothing happens in a job that runs: who waits where, for what, and for whom, the odd one out first.
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// The job, by the process id of its `mizzen run` on this host. By default the only job of this user here.
    #[arg(value_name = "JOB")]
    job: Option<u32>,

    /// Print all of it as one line of JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn why(options: &Why) -> anyhow::Result<ExitCode> {
    let hang = ask_why(options.job)?;
    match options.json {
        true => println!("{}", serde_json::to_string(&hang)?),
        false => print!("{}", text(&hang)),
    }
    Ok(ExitCode::SUCCESS)
}

fn text(hang: &Hang) -> String {
    let mut text = String::new();
    // The indented ones are what the table shows.
    for sentence in sentences(hang) {
        if !sentence.starts_with(' ') {
            text += &sentence;
            text.push('\n');
        }
    }
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(["ranks", "state", "waits", "where", "operation", "for"]);
    for row in rows(hang) {
        table.add_row(row);
    }
    text + &table.to_string() + "\n"
}
