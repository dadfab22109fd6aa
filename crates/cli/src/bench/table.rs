//! The result as a table.

use std::fmt::Write;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

use super::figures::Figures;
use super::measure::grid::CHOSEN_BY;
use super::plan::{Collective, Test};
use super::words;

/// A sentence part about where the sides run.
pub(crate) fn pinning(test: Test, cores: &[usize]) -> String {
    match (cores, test) {
        ([first, second], Test::Collectives) => {
            format!("two members are pinned to cores {first} and {second}, more are not")
        }
        ([first, second], _) => format!("pinned to cores {first} and {second}"),
        _ => "not pinned".to_owned(),
    }
}

pub(crate) fn table(figures: &[Figures], is_grid: bool) -> String {
    let Some(first) = figures.first() else {
        return String::new();
    };
    let columns = columns(first.test, is_grid);
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_header(columns.iter().map(|column| column.title));
    for line in figures {
        table.add_row(columns.iter().map(|column| (column.cell)(line)));
    }
    for (index, column) in table.column_iter_mut().enumerate() {
        if index > 0 && index + 1 < columns.len() {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines = table.lines().map(|line| format!("{}\n", line.trim_end()));
    let mut text: String = lines.collect();
    if is_grid {
        text.push_str(&shares(figures));
        return text;
    }
    if !first.variant.is_empty() {
        let _ = writeln!(text, "Variant: {}.", first.variant);
    }
    if first.runs == 1 {
        text.push_str("One run, which measured the floor and then Mizzen.\n");
    } else {
        let _ = writeln!(
            text,
            "Medians of {} runs, each of which measured the floor and then Mizzen; range: of the ratio.",
            first.runs
        );
    }
    text
}

/// How often the chosen way was good enough, by what it was chosen by.
fn shares(figures: &[Figures]) -> String {
    let mut text = String::new();
    for by in CHOSEN_BY {
        let of = figures.iter().filter(|line| line.variant.starts_with(by));
        let ratios: Vec<f64> = of.map(|line| line.value / line.floor).collect();
        let good = ratios.iter().filter(|ratio| **ratio <= GOOD).count();
        let _ = writeln!(
            text,
            "Chosen by what is {by}: the fastest or within {:.0} % of it in {good} of {} ({:.0} %).",
            (GOOD - 1.0) * 100.0,
            ratios.len(),
            100.0 * good as f64 / ratios.len().max(1) as f64
        );
    }
    text
}

/// A chosen way may take so many times as long as the fastest.
const GOOD: f64 = 1.15;

/// Lines above, below, and under the header.
pub(crate) const STYLE: TableStyle = TableStyle::new()
    .top_border(LINE)
    .header_separator(LINE)
    .bottom_border(LINE);
const LINE: LineStyle = LineStyle::none().fill('─').junction('─');

struct Column {
    title: &'static str,
    cell: fn(&Figures) -> String,
}

fn columns(test: Test, is_grid: bool) -> Vec<Column> {
    let column = |title, cell| Column { title, cell };
    let mut columns = vec![column("path", |line| line.path.name().to_owned())];
    if test == Test::Collectives {
        columns.push(column("operation", |line| {
            line.operation.map_or("", Collective::name).to_owned()
        }));
        columns.push(column("members", |line| {
            match (line.processes.unwrap_or(1), line.threads) {
                (processes, 1) => processes.to_string(),
                (1, threads) => threads.to_string(),
                (processes, threads) => format!("{processes} x {threads}"),
            }
        }));
    }
    columns.push(match test {
        Test::Latency | Test::Rate | Test::Bandwidth | Test::Rpc | Test::Collectives => {
            column("size", |line| {
                line.size.map(words::size).unwrap_or_default()
            })
        }
        Test::Threads | Test::Streams => column("pairs", |line| line.threads.to_string()),
        Test::Idle | Test::Startup => column("processes", |line| {
            line.processes.unwrap_or_default().to_string()
        }),
    });
    if is_grid {
        columns.push(column("chosen", |line| line.variant.clone()));
    }
    let (below, ours, what) = if is_grid {
        ("fastest", "chosen", "the fastest is")
    } else {
        ("floor", "Mizzen", "the floor is")
    };
    columns.push(column(below, |line| words::value(line.floor, &line.unit)));
    columns.push(column(ours, |line| words::value(line.value, &line.unit)));
    columns.push(column("ratio", |line| {
        let mark = if line.noisy { "*" } else { "" };
        line.ratio
            .map_or("-".to_owned(), |ratio| format!("{ratio:.2}{mark}"))
    }));
    columns.push(column("range", |line| {
        match (line.ratio_min, line.ratio_max) {
            (Some(low), Some(high)) => format!("{low:.2} to {high:.2}"),
            _ => "-".to_owned(),
        }
    }));
    match test {
        Test::Latency => {
            columns.push(column("p50", |line| duration_text(line.p50_ns)));
            columns.push(column("p99", |line| duration_text(line.p99_ns)));
        }
        Test::Threads | Test::Streams => {
            columns.push(column("slowest pair", |line| {
                line.worst
                    .map_or("-".to_owned(), |worst| format!("{worst:.2} x"))
            }));
            columns.push(column("longest gap", |line| {
                duration_text(line.longest_gap_ns)
            }));
        }
        _ => (),
    }
    columns.push(column(what, |line| line.floor_name.clone()));
    columns
}

fn duration_text(nanoseconds: Option<f64>) -> String {
    nanoseconds.map_or("-".to_owned(), |value| words::value(value, "ns"))
}
