//! The result as a picture: time or bandwidth over the size of a message, both axes logarithmic.

use std::fs;
use std::path::Path as File;

use anyhow::{Context, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;

use super::figures::Figures;
use super::plan::{Path, Test};
use super::words;

const WIDTH: u32 = 960;
const HEIGHT: u32 = 600;
const FONT: &str = "sans-serif";

/// Mizzen's line of each path. They are told apart without colours by the shape of their points, and by the legend.
const PATHS: [(Path, RGBColor); 5] = [
    (Path::Thread, RGBColor(0, 90, 160)),
    (Path::Process, RGBColor(190, 70, 0)),
    (Path::Tcp, RGBColor(20, 120, 60)),
    (Path::Tls, RGBColor(130, 50, 140)),
    (Path::Ofi, RGBColor(110, 85, 20)),
];
const GREY: RGBColor = RGBColor(120, 120, 120);

/// Makes sure that the picture can be written, before there is something to draw.
pub(crate) fn check(file: &File) -> anyhow::Result<()> {
    let opened = fs::File::options().append(true).create(true).open(file);
    opened.map(drop).with_context(|| refusal(file))
}

/// Draws the figures into an SVG file.
pub(crate) fn draw(file: &File, figures: &[Figures]) -> anyhow::Result<()> {
    let area = SVGBackend::new(file, (WIDTH, HEIGHT)).into_drawing_area();
    draw_on(&area, figures).map_err(|error| anyhow!("{}: {error}", refusal(file)))
}

fn refusal(file: &File) -> String {
    format!(
        "{} cannot be written; give --svg another file",
        file.display()
    )
}

/// A line of the picture.
struct Curve {
    name: String,
    colour: RGBColor,
    is_floor: bool,
    points: Vec<(f64, f64)>,
}

fn draw_on(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    figures: &[Figures],
) -> Result<(), Box<dyn std::error::Error>> {
    let Some(first) = figures.first() else {
        return Ok(());
    };
    let (title, vertical, legend) = match first.test {
        Test::Bandwidth => (
            "Bandwidth in one direction",
            "bandwidth, higher is better",
            SeriesLabelPosition::LowerRight,
        ),
        _ => (
            "One-way time of a message",
            "time, lower is better",
            SeriesLabelPosition::UpperLeft,
        ),
    };
    let variant = match first.variant.as_str() {
        "" => String::new(),
        variant => format!(" ({variant})"),
    };
    let curves = curves(figures);
    let values = || {
        curves
            .iter()
            .flat_map(|curve| curve.points.iter().map(|point| point.1))
    };
    let sizes = || {
        curves
            .iter()
            .flat_map(|curve| curve.points.iter().map(|point| point.0))
    };
    let lowest = values().fold(f64::INFINITY, f64::min) / 1.5;
    let highest = values().fold(0.0, f64::max) * 1.5;
    let smallest = sizes().fold(f64::INFINITY, f64::min) / 1.2;
    let largest = sizes().fold(0.0, f64::max) * 1.2;

    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{title}{variant}"), (FONT, 24))
        .margin(16)
        .x_label_area_size(56)
        .y_label_area_size(96)
        .build_cartesian_2d(
            (smallest..largest).log_scale().base(2.0),
            (lowest..highest)
                .log_scale()
                .with_key_points(ticks(lowest, highest)),
        )?;
    let unit = first.unit.clone();
    chart
        .configure_mesh()
        .x_desc("size of a message")
        .y_desc(vertical)
        .x_labels(12)
        .y_labels(8)
        .x_label_formatter(&|size| words::size(size.round() as usize))
        .y_label_formatter(&|value| words::round(*value, &unit))
        .label_style((FONT, 15))
        .axis_desc_style((FONT, 17))
        .light_line_style(RGBColor(240, 240, 240))
        .bold_line_style(RGBColor(215, 215, 215))
        .draw()?;
    for curve in &curves {
        let (colour, is_floor) = (curve.colour, curve.is_floor);
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(curve.points.iter().copied(), style))?
            .label(&curve.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], style));
        let point = |at: &(f64, f64)| match is_floor {
            true => Cross::new(*at, 4, style).into_dyn(),
            false => Circle::new(*at, 4, colour.filled()).into_dyn(),
        };
        chart.draw_series(curve.points.iter().map(point))?;
    }
    chart
        .configure_series_labels()
        .position(legend)
        .margin(12)
        .legend_area_size(32)
        .background_style(WHITE.mix(0.9))
        .border_style(GREY)
        .label_font((FONT, 16))
        .draw()?;
    area.present()?;
    Ok(())
}

/// Round values between two others, to be written at a logarithmic axis: as few for each power of ten as give enough.
fn ticks(lowest: f64, highest: f64) -> Vec<f64> {
    const ENOUGH: usize = 3;
    const DENSITIES: [&[f64]; 4] = [
        &[1.0],
        &[1.0, 2.0, 5.0],
        &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
        &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
    ];
    let exponents = lowest.log10().floor() as i32..=highest.log10().ceil() as i32;
    let mut found = Vec::new();
    for multiples in DENSITIES {
        let powers = exponents.clone().map(|exponent| 10f64.powi(exponent));
        found = powers
            .flat_map(|power| multiples.iter().map(move |multiple| multiple * power))
            .filter(|value| (lowest..=highest).contains(value))
            .collect();
        if found.len() >= ENOUGH {
            break;
        }
    }
    found
}

/// Mizzen's line and the floor's, for each path.
fn curves(figures: &[Figures]) -> Vec<Curve> {
    let mut curves = Vec::new();
    for (path, colour) in PATHS {
        let of_path = || figures.iter().filter(|line| line.path == path);
        let points = |value: fn(&Figures) -> f64| -> Vec<(f64, f64)> {
            let mut points: Vec<_> = of_path()
                .map(|line| (line.size.unwrap_or(1) as f64, value(line)))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            points
        };
        if of_path().next().is_none() {
            continue;
        }
        curves.push(Curve {
            name: format!("Mizzen, {} path", path.name()),
            colour,
            is_floor: false,
            points: points(|line| line.value),
        });
        curves.push(Curve {
            name: format!("the bare machine, {} path", path.name()),
            colour: pale(colour),
            is_floor: true,
            points: points(|line| line.floor),
        });
    }
    curves
}

fn pale(colour: RGBColor) -> RGBColor {
    let mix = |part: u8| part / 2 + 105;
    RGBColor(mix(colour.0), mix(colour.1), mix(colour.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(path: &str, size: usize, value: f64) -> Figures {
        let line = serde_json::json!({
            "test": "latency", "path": path, "variant": "", "size": size, "threads": 1, "processes": null, "runs": 1,
            "p50_ns": null, "p99_ns": null, "rate_per_s": null, "bytes_per_s": null,
            "value": value, "value_min": value, "value_max": value, "unit": "ns",
            "floor": value / 2.0, "floor_min": value, "floor_max": value, "floor_name": "",
            "ratio": null, "ratio_min": null, "ratio_max": null, "worst": null, "longest_gap_ns": null,
            "pinned": false, "noisy": false
        });
        serde_json::from_value(line).unwrap()
    }

    /// The texts of a picture, each of which is in a line of its own.
    fn texts(figures: &[Figures]) -> Vec<String> {
        let mut picture = String::new();
        let area = SVGBackend::with_string(&mut picture, (WIDTH, HEIGHT)).into_drawing_area();
        draw_on(&area, figures).unwrap();
        drop(area);
        let lines = picture.lines().map(str::trim);
        lines
            .filter(|line| !line.is_empty() && !line.starts_with('<'))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn every_path_has_a_line_and_a_colour_of_its_own() {
        let paths = ["thread", "process", "tcp", "tls", "ofi"];
        let figures: Vec<_> = paths.iter().map(|path| figures(path, 8, 100.0)).collect();
        let curves = curves(&figures);
        for path in paths {
            for name in ["Mizzen", "the bare machine"] {
                let name = format!("{name}, {path} path");
                let found = curves.iter().filter(|curve| curve.name == name);
                assert_eq!(found.count(), 1, "{name}");
            }
        }
        let mut colours: Vec<_> = curves
            .iter()
            .map(|curve| (curve.colour.0, curve.colour.1, curve.colour.2))
            .collect();
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), 2 * paths.len());
        let drawn = texts(&figures);
        for path in paths {
            assert!(drawn.contains(&format!("Mizzen, {path} path")), "{drawn:?}");
        }
    }

    #[test]
    fn an_axis_has_labels_however_short_it_is() {
        for highest in [150.0, 300.0, 1_900.0, 40_000.0, 3e7] {
            let figures = [figures("tcp", 8, 140.0), figures("tcp", 1024, highest)];
            let drawn = texts(&figures);
            let labels = drawn
                .iter()
                .filter(|text| text.ends_with(" ns") || text.ends_with("s"))
                .filter(|text| text.starts_with(|c: char| c.is_ascii_digit()))
                .count();
            assert!((3..=12).contains(&labels), "up to {highest}: {drawn:?}");
        }
    }
}
