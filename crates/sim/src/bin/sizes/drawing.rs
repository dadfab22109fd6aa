//! The figures as a drawing: messages over the number of processes, both logarithmic, one panel for each phase.

use std::fmt::Write;

use crate::tally::{Figures, Phase};

const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 620.0;
const PANEL: (f64, f64) = (360.0, 210.0);
/// Powers of ten.
const X: (f64, f64) = (2.0, 4.0);
const Y: (f64, f64) = (0.0, 5.0);

type Value = fn(&Figures) -> u64;

const LINES: [(&str, &str, Value); 4] = [
    ("root", "#c0392b", |one| one.root.messages),
    ("busiest agent", "#2471a3", |one| one.agent.messages),
    ("busiest process", "#1e8449", |one| one.process.messages),
    ("memory of an agent, kB", "#7d6608", |one| {
        one.agent_memory.div_ceil(1000)
    }),
];

/// An SVG.
pub(crate) fn draw(figures: &[Figures]) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{}\" y=\"24\" font-size=\"15\" text-anchor=\"middle\">Names and membership: messages over processes (10, 50, 200 hosts)</text>\n",
        WIDTH / 2.0
    );
    for (index, phase) in Phase::ALL.into_iter().enumerate() {
        let left = 60.0 + (index % 2) as f64 * (PANEL.0 + 95.0);
        let top = 60.0 + (index / 2) as f64 * (PANEL.1 + 55.0);
        let _ = write!(svg, "<g transform=\"translate({left},{top})\">");
        panel(&mut svg, phase, figures);
        svg.push_str("</g>\n");
    }
    for (index, (name, colour, _)) in LINES.iter().enumerate() {
        let x = 60.0 + index as f64 * 195.0;
        let y = HEIGHT - 16.0;
        let _ = writeln!(
            svg,
            "<line x1=\"{x}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{colour}\" stroke-width=\"2\"/><text x=\"{}\" y=\"{y}\">{name}</text>",
            y - 4.0,
            x + 22.0,
            y - 4.0,
            x + 28.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn panel(svg: &mut String, phase: Phase, figures: &[Figures]) {
    let (width, height) = PANEL;
    let _ = write!(
        svg,
        "<text x=\"{}\" y=\"-8\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>",
        width / 2.0,
        phase.name()
    );
    for power in Y.0 as u32..=Y.1 as u32 {
        let y = at(10_f64.powi(power as i32), Y, height);
        let _ = write!(
            svg,
            "<line x1=\"0\" x2=\"{width}\" y1=\"{y}\" y2=\"{y}\" stroke=\"#ddd\"/><text x=\"-6\" y=\"{}\" text-anchor=\"end\">{}</text>",
            y + 4.0,
            thousands(10_u64.pow(power))
        );
    }
    for power in X.0 as u32..=X.1 as u32 {
        let x = width - at(10_f64.powi(power as i32), X, width);
        let _ = write!(
            svg,
            "<line x1=\"{x}\" x2=\"{x}\" y1=\"0\" y2=\"{height}\" stroke=\"#ddd\"/><text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            height + 16.0,
            thousands(10_u64.pow(power))
        );
    }
    let figures = || figures.iter().filter(|one| one.phase == phase);
    for (name, colour, value) in LINES {
        // Not messages.
        let dashes = if name.contains("memory") {
            " stroke-dasharray=\"6 4\""
        } else {
            ""
        };
        let point = |one: &Figures| {
            let x = width - at(f64::from(one.processes), X, width);
            let y = at(value(one).max(1) as f64, Y, height);
            (x, y)
        };
        let points: Vec<String> = figures()
            .map(|one| format!("{:.1},{:.1}", point(one).0, point(one).1))
            .collect();
        let _ = write!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dashes}/>",
            points.join(" ")
        );
        for one in figures() {
            let (x, y) = point(one);
            let _ = write!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
            );
        }
    }
}

/// How far from the far end of an axis a value is.
fn at(value: f64, range: (f64, f64), length: f64) -> f64 {
    length * (1.0 - (value.log10() - range.0) / (range.1 - range.0))
}

fn thousands(number: u64) -> String {
    match number {
        1_000_000.. => format!("{} M", number / 1_000_000),
        1_000.. => format!("{},000", number / 1_000),
        _ => number.to_string(),
    }
}
