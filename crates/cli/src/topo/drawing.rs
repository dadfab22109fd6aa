//! The map as a drawing: clusters as boxes with their hosts side by side, networks as bars below, to which hosts are wired.

use std::fmt::Write;

use super::map::{Host, Map, Route};
use super::text::way;

/// An SVG.
pub(super) fn draw(map: &Map, route: &Route) -> String {
    let layout = Layout::new(map, route);
    let width = layout.width.max(MIN_WIDTH);
    let bars = map.networks.len() as f64 * BAR_GAP;
    let height = BARS + bars + 60.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (cluster, (left, right)) in map.clusters.iter().zip(&layout.clusters) {
        let (x, wide) = (left - PAD, right - left + HOST + 2.0 * PAD);
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{}\" width=\"{wide}\" height=\"{}\" rx=\"10\" fill=\"#f4f6f8\" stroke=\"#b9c2cc\"/>\
             <text x=\"{}\" y=\"{}\" font-weight=\"bold\" fill=\"#333\">{}</text>",
            TOP,
            BOX,
            x + 10.0,
            TOP + 20.0,
            escape(&cluster.name)
        );
    }
    for (index, network) in map.networks.iter().enumerate() {
        let (colour, y) = (
            COLOURS[index % COLOURS.len()],
            BARS + index as f64 * BAR_GAP,
        );
        let wires: Vec<f64> = network
            .hosts
            .iter()
            .filter_map(|host| layout.wire(*host, index))
            .collect();
        let (Some(left), Some(right)) = (
            wires.iter().copied().reduce(f64::min),
            wires.iter().copied().reduce(f64::max),
        ) else {
            continue;
        };
        for x in &wires {
            let _ = writeln!(
                svg,
                "<line x1=\"{x}\" y1=\"{}\" x2=\"{x}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"2\"/><circle cx=\"{x}\" cy=\"{y}\" r=\"4\" fill=\"{colour}\"/>",
                HOSTS + HOST_HEIGHT
            );
        }
        let _ = writeln!(
            svg,
            "<line x1=\"{}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"4\" stroke-linecap=\"round\"/>\
             <text x=\"{}\" y=\"{}\" fill=\"{colour}\">{} ({}, {})</text>",
            left - 8.0,
            right + 8.0,
            left,
            y + 18.0,
            escape(&network.name),
            network.driver,
            network.security
        );
    }
    draw_route(&mut svg, route, &layout);
    for (host, x) in layout.hosts.iter().enumerate() {
        let Some(x) = *x else { continue };
        let described = &map.hosts[host];
        let (fill, stroke) = match (described.is_gone, described.is_gateway) {
            (true, _) => ("#eaeded", "#c0392b"),
            (false, true) => ("#fdebd0", "#ca6f1e"),
            (false, false) => ("white", "#5d6d7e"),
        };
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{HOSTS}\" width=\"{HOST}\" height=\"{HOST_HEIGHT}\" rx=\"5\" fill=\"{fill}\" stroke=\"{stroke}\" stroke-width=\"1.5\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"11\" fill=\"#566573\">{}</text>",
            x + HOST / 2.0,
            HOSTS + 18.0,
            escape(&short(&described.name)),
            x + HOST / 2.0,
            HOSTS + 34.0,
            state(map, described)
        );
    }
    for (x, more) in &layout.more {
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"{}\" fill=\"#566573\">and {more} more</text>",
            HOSTS + 26.0
        );
    }
    for (line, sentence) in way(map, route).lines().enumerate() {
        let _ = writeln!(
            svg,
            "<text x=\"{LEFT}\" y=\"{}\" fill=\"#222\">{}</text>",
            height - 30.0 + line as f64 * 18.0,
            escape(sentence)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// A broad line along the wires and bars that the way takes.
fn draw_route(svg: &mut String, route: &Route, layout: &Layout) {
    let mut here = route.from_host;
    for (network, next) in &route.steps {
        let wires = (layout.wire(here, *network), layout.wire(*next, *network));
        if let (Some(from), Some(to)) = wires {
            let (top, y) = (HOSTS + HOST_HEIGHT, BARS + *network as f64 * BAR_GAP);
            let _ = writeln!(
                svg,
                "<polyline points=\"{from},{top} {from},{y} {to},{y} {to},{top}\" fill=\"none\" stroke=\"#f1c40f\" stroke-width=\"9\" stroke-opacity=\"0.5\" stroke-linejoin=\"round\"/>"
            );
        }
        here = *next;
    }
}

/// Where everything is, from left to right.
struct Layout {
    /// The first and the last host of each cluster.
    clusters: Vec<(f64, f64)>,
    /// Each host; none for those that there is no room for.
    hosts: Vec<Option<f64>>,
    /// How many hosts of a cluster are left out, and where to say so.
    more: Vec<(f64, usize)>,
    networks: usize,
    width: f64,
}

impl Layout {
    fn new(map: &Map, route: &Route) -> Self {
        let (mut hosts, mut clusters, mut more) =
            (vec![None; map.hosts.len()], Vec::new(), Vec::new());
        let mut x = LEFT + PAD;
        let on_route = |host: usize| {
            host == route.from_host || route.steps.iter().any(|(_, step)| *step == host)
        };
        for cluster in &map.clusters {
            let needed = |host: &usize| map.hosts[*host].is_gateway || on_route(*host);
            let others = cluster
                .hosts
                .iter()
                .filter(|host| !needed(host))
                .take(SHOWN);
            let mut shown: Vec<usize> = cluster
                .hosts
                .iter()
                .filter(|host| needed(host))
                .chain(others)
                .copied()
                .collect();
            shown.sort_unstable();
            let left = x;
            for host in &shown {
                hosts[*host] = Some(x);
                x += HOST + GAP;
            }
            let mut right = x - HOST - GAP;
            if cluster.hosts.len() > shown.len() {
                more.push((x, cluster.hosts.len() - shown.len()));
                right += HOST + GAP;
                x += HOST + GAP;
            }
            clusters.push((left, right));
            x += BETWEEN;
        }
        Self {
            clusters,
            hosts,
            more,
            networks: map.networks.len(),
            width: x,
        }
    }

    /// Where the wire from a host to a network is: side by side for its networks.
    fn wire(&self, host: usize, network: usize) -> Option<f64> {
        let step = HOST / (self.networks + 1) as f64;
        Some(self.hosts[host]? + step * (network + 1) as f64)
    }
}

/// What is written below the name of a host.
fn state(map: &Map, host: &Host) -> String {
    let ranks = match &host.ranks[..] {
        [] => "no rank".to_owned(),
        [one] => format!("rank {one}"),
        [first, .., last] => format!("ranks {first}-{last}"),
    };
    let ended = host.ranks.iter().filter(|rank| map.has_ended(**rank));
    match (ended.count(), host.ranks.len()) {
        _ if host.is_gone => format!("gone, {ranks}"),
        (ended, all) if all > 0 && ended == all => format!("{ranks}, ended"),
        (1.., _) => format!("{ranks}, some ended"),
        _ if host.is_gateway => format!("gateway, {ranks}"),
        _ => ranks,
    }
}

fn short(name: &str) -> String {
    match name.chars().count() {
        ..=14 => name.to_owned(),
        _ => name.chars().take(13).chain(['…']).collect(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

const LEFT: f64 = 20.0;
const TOP: f64 = 20.0;
const PAD: f64 = 14.0;
const BOX: f64 = 95.0;
const HOSTS: f64 = TOP + 34.0;
const HOST: f64 = 112.0;
const HOST_HEIGHT: f64 = 44.0;
const GAP: f64 = 14.0;
const BETWEEN: f64 = 34.0;
const BARS: f64 = TOP + BOX + 40.0;
const BAR_GAP: f64 = 46.0;
const MIN_WIDTH: f64 = 720.0;
/// Hosts of a cluster that are drawn beside its gateways.
const SHOWN: usize = 6;
const COLOURS: [&str; 6] = [
    "#2471a3", "#1e8449", "#8e44ad", "#c0392b", "#117a65", "#7d6608",
];
