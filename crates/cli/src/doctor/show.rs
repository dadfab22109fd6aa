//! The result, as text and as JSON.

use std::fmt::Write;

use comfy_table::{ContentArrangement, Table};
use serde::Serialize;

use super::between::is_used;
use super::examined::{Clock, Connection, Examined, Host, Remark, summary};
use super::report::Verdict;
use crate::bench::{STYLE, value};

/// A table with a row for each finding, the sentences that belong to it, and a verdict.
pub(crate) fn text(examined: &Examined, remarks: &[Remark]) -> String {
    let several = examined.hosts.len() > 1;
    let mut text = format!("{}\n", findings(examined));
    if several {
        let _ = writeln!(text, "{}\n", clocks(&examined.hosts));
        let _ = writeln!(text, "{}\n", connections(examined));
    }
    for remark in remarks {
        let hosts = match several && !remark.hosts.is_empty() {
            true => format!(" ({})", remark.hosts.join(", ")),
            false => String::new(),
        };
        let word = remark.verdict.word();
        let _ = writeln!(text, "{word}: {}{hosts}. {}", remark.what, remark.advice);
    }
    let _ = writeln!(text, "{}", summary(remarks, several));
    text
}

/// One line.
pub(crate) fn json(examined: &Examined, remarks: &[Remark]) -> anyhow::Result<String> {
    #[derive(Serialize)]
    struct Whole<'a> {
        ready: bool,
        summary: String,
        remarks: &'a [Remark],
        hosts: &'a [Host],
        connections: &'a [Connection],
    }
    let whole = Whole {
        ready: remarks.iter().all(|remark| remark.verdict != Verdict::Bad),
        summary: summary(remarks, examined.hosts.len() > 1),
        remarks,
        hosts: &examined.hosts,
        connections: &examined.connections,
    };
    Ok(serde_json::to_string(&whole)? + "\n")
}

fn findings(examined: &Examined) -> String {
    let hosts = &examined.hosts;
    let several = hosts.len() > 1;
    let mut table = table();
    let mut header = vec!["what".to_owned()];
    if several {
        header.extend(hosts.iter().map(|host| host.name.clone()));
        header.push(String::new());
    } else {
        header.push("value".to_owned());
    }
    header.push("verdict".to_owned());
    table.set_header(header);
    let mut differ = false;
    for row in examined.rows() {
        let mut cells = vec![row.what.to_owned()];
        let value = |finding: &super::report::Finding| finding.value.clone();
        cells.extend(
            row.cells
                .iter()
                .map(|cell| cell.map_or("-".to_owned(), value)),
        );
        if several {
            differ |= row.differs();
            cells.push(if row.differs() { "≠" } else { "" }.to_owned());
        }
        cells.push(row.verdict().word().to_owned());
        table.add_row(cells);
    }
    let mut text = lines(&table);
    if differ {
        text.push_str("\n≠: the hosts differ in this.");
    }
    text
}

/// How the clocks of the hosts differ from ours.
fn clocks(hosts: &[Host]) -> String {
    let shown: Vec<String> = hosts
        .iter()
        .filter_map(|host| Some(format!("{} {}", host.name, ahead(host.clock?))))
        .collect();
    match shown.is_empty() {
        true => "Clocks beside this host's: unknown.".to_owned(),
        false => format!("Clocks beside this host's: {}.", shown.join(", ")),
    }
}

/// `the same (± 264 µs)`, or `1.20 ms behind (± 300 µs)`.
fn ahead(clock: Clock) -> String {
    let amount = clock.ahead_ns.unsigned_abs();
    let uncertain = value(clock.uncertain_ns as f64, "ns");
    if amount <= clock.uncertain_ns {
        return format!("the same (± {uncertain})");
    }
    let side = if clock.ahead_ns < 0 {
        "behind"
    } else {
        "ahead"
    };
    format!("{} {side} (± {uncertain})", value(amount as f64, "ns"))
}

/// Who reaches whom: how long connecting takes, and from which interface to which.
fn connections(examined: &Examined) -> String {
    let hosts = &examined.hosts;
    let mut table = table();
    let to = hosts.iter().map(|host| format!("to {}", host.name));
    table.set_header(std::iter::once("connecting".to_owned()).chain(to));
    for from in hosts {
        let cell = |to: &Host| {
            if from.name == to.name {
                return String::new();
            }
            let tried = |connection: &&Connection| {
                connection.from == from.name && connection.attempt.to == to.name
            };
            let tries: Vec<&Connection> = examined.connections.iter().filter(tried).collect();
            if tries.is_empty() {
                return "-".to_owned();
            }
            let used = tries
                .into_iter()
                .filter(|connection| is_used(to, connection));
            let works =
                used.filter_map(|connection| Some((connection.attempt.connect_ns?, connection)));
            match works.min_by_key(|(took, _)| *took) {
                Some((took, Connection { attempt, .. })) => format!(
                    "{}, {} to {}",
                    value(took as f64, "ns"),
                    attempt.from_interface,
                    attempt.to_interface
                ),
                None => "no".to_owned(),
            }
        };
        let cells = hosts.iter().map(cell);
        table.add_row(std::iter::once(format!("from {}", from.name)).chain(cells));
    }
    lines(&table)
}

fn table() -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(WIDTH);
    table
}

fn lines(table: &Table) -> String {
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.join("\n")
}

/// Columns of a table, unless there are too many hosts for it.
const WIDTH: u16 = 118;

#[cfg(test)]
mod tests;
