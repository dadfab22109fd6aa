//! How fast it converged: the largest change of a cell over the iterations, as a plot.

use std::path::Path;

use mizzen_examples::Result;
use plotters::prelude::*;

use super::options::Options;

const WIDTH: u32 = 900;
const HEIGHT: u32 = 420;
const FONT: &str = "sans-serif";
const LINE: RGBColor = RGBColor(193, 18, 31);
const GREY: RGBColor = RGBColor(110, 110, 110);

/// Draws the changes, and the tolerance below which it is over, into an SVG file.
pub(crate) fn write(file: &Path, options: &Options, changes: &[(usize, f64)]) -> Result<()> {
    draw(file, options, changes)
        .map_err(|cause| format!("cannot write {}: {cause}", file.display()).into())
}

fn draw(
    file: &Path,
    options: &Options,
    changes: &[(usize, f64)],
) -> core::result::Result<(), Box<dyn std::error::Error>> {
    // A plate that has come to rest has no logarithm.
    let points = || changes.iter().filter(|(_, change)| *change > 0.0);
    let last = points().map(|(iteration, _)| *iteration).max().unwrap_or(1);
    let least = points()
        .map(|(_, change)| *change)
        .fold(f64::INFINITY, f64::min);
    let most = points().map(|(_, change)| *change).fold(0.0, f64::max);
    if most == 0.0 {
        return Err("no cell ever changed".into());
    }
    let bottom = if options.tolerance > 0.0 {
        least.min(options.tolerance)
    } else {
        least
    };

    let area = SVGBackend::new(file, (WIDTH, HEIGHT)).into_drawing_area();
    area.fill(&WHITE)?;
    let (size, omega) = (options.size, options.omega());
    let mut chart = ChartBuilder::on(&area)
        .caption(format!("{size} × {size} cells, ω = {omega}"), (FONT, 20))
        .margin(14)
        .x_label_area_size(48)
        .y_label_area_size(84)
        .build_cartesian_2d(0..last + 1, (bottom / 2.0..most * 2.0).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("iterations")
        .y_desc("largest change of a cell, degrees")
        .y_label_formatter(&|change| format!("{change:.0e}"))
        .label_style((FONT, 14))
        .axis_desc_style((FONT, 16))
        .max_light_lines(1)
        .bold_line_style(RGBColor(225, 225, 225))
        .draw()?;
    if options.tolerance > 0.0 {
        let tolerance = [(0, options.tolerance), (last + 1, options.tolerance)];
        chart.draw_series(LineSeries::new(tolerance, GREY.stroke_width(1)))?;
    }
    chart.draw_series(LineSeries::new(points().copied(), LINE.stroke_width(2)))?;
    area.present()?;
    Ok(())
}
