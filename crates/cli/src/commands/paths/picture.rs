//! The candidates as a picture: routers from left to right, a line for each path.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::report::{PathLine, Report};

const COLUMN: f64 = 150.0;
const ROW: f64 = 70.0;
const LEFT: f64 = 60.0;
const TOP: f64 = 70.0;
/// Colours that those who do not tell red from green can tell apart (Okabe and Ito).
const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// A place where paths meet: the source, a router by number, or a silent hop of one path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Here,
    Router(u32),
    Silent(usize, usize),
}

/// The nodes of a path in order.
fn nodes(path: &PathLine) -> Vec<Node> {
    let hop = |(index, router): (usize, Option<u32>)| {
        router.map_or(Node::Silent(path.path, index), Node::Router)
    };
    let hops = path.hops.iter().map(|h| h.router).enumerate().map(hop);
    std::iter::once(Node::Here).chain(hops).collect()
}

/// The SVG file.
pub(super) fn svg(report: &Report) -> String {
    let paths: Vec<Vec<Node>> = report.paths.iter().map(nodes).collect();
    let rows = paths.len().max(1);
    // Where paths meet at different distances, the greater one.
    let mut places: BTreeMap<&Node, (usize, f64)> = BTreeMap::new();
    let mut labels: BTreeMap<&Node, &str> = BTreeMap::new();
    for (row, path) in paths.iter().enumerate() {
        for (column, node) in path.iter().enumerate() {
            let place = places.entry(node).or_insert((column, row as f64));
            place.0 = place.0.max(column);
            if let Some(address) = column.checked_sub(1).and_then(|i| report.paths[row].hops.get(i))
            {
                labels.entry(node).or_insert(address.address.as_deref().unwrap_or("?"));
            }
        }
    }
    let columns = places.values().map(|&(column, _)| column).max().unwrap_or(0);
    // What all paths share is in the middle, and the destination to the right of everything.
    let middle = (rows - 1) as f64 / 2.0;
    labels.insert(&Node::Here, "here");
    for (node, place) in &mut places {
        if paths.iter().all(|p| p.contains(node)) {
            place.1 = middle;
        }
        if paths.iter().any(|p| p.last() == Some(*node)) {
            *place = (columns, middle);
        }
    }
    let at = |node: &Node| {
        let &(column, row) = places.get(node).unwrap_or(&(0, 0.0));
        (LEFT + column as f64 * COLUMN, TOP + row * ROW)
    };
    let width = LEFT * 2.0 + columns as f64 * COLUMN + 60.0;
    let height = TOP + rows as f64 * (ROW + 22.0) + 20.0;
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<title>Paths to {}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        escape(&report.destination.join(", "))
    );
    for (index, path) in paths.iter().enumerate() {
        // Lines of one link lie beside each other.
        let shift = (index as f64 - middle) * 3.0;
        let points: Vec<String> =
            path.iter().map(&at).map(|(x, y)| format!("{x:.1},{:.1}", y + shift)).collect();
        let (points, style) = (points.join(" "), style(index, &report.paths[index]));
        let _ = writeln!(out, "<polyline points=\"{points}\" fill=\"none\" {style}/>");
    }
    for (node, label) in &labels {
        let (x, y) = at(node);
        let _ = writeln!(
            out,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"6\" fill=\"white\" stroke=\"#333\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            y - 14.0,
            escape(label)
        );
    }
    for (index, path) in report.paths.iter().enumerate() {
        let y = TOP + rows as f64 * ROW + index as f64 * 22.0;
        let style = style(index, path);
        let _ = writeln!(
            out,
            "<line x1=\"20\" y1=\"{y:.1}\" x2=\"50\" y2=\"{y:.1}\" {style}/>\
             <text x=\"58\" y=\"{:.1}\">{}</text>",
            y + 4.0,
            escape(&legend(path))
        );
    }
    out + "</svg>\n"
}

fn style(index: usize, path: &PathLine) -> String {
    let colour = COLOURS[index % COLOURS.len()];
    if path.selected {
        format!("stroke=\"{colour}\" stroke-width=\"2.5\"")
    } else {
        format!("stroke=\"{colour}\" stroke-width=\"1.5\" stroke-dasharray=\"5 4\"")
    }
}

fn legend(path: &PathLine) -> String {
    let way = path.relay.as_ref().map_or("direct".to_owned(), |relay| format!("via {relay}"));
    let rtt = path.rtt_s.map_or("no answer".to_owned(), |s| format!("{:.1} ms", s * 1e3));
    let chosen = if path.selected { "used" } else { "not used" };
    format!(
        "path {}, {way}: {rtt}, loss {:.1} %, score {:.0}; {chosen}: {}",
        path.path,
        path.loss * 100.0,
        path.score,
        path.why
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::paths::report::HopLine;

    fn path(number: usize, relay: Option<&str>, hops: &[(&str, Option<u32>)]) -> PathLine {
        let hop = |&(address, router): &(&str, Option<u32>)| HopLine {
            address: router.map(|_| address.to_owned()),
            rtt_s: None,
            router,
        };
        PathLine {
            path: number,
            local: String::new(),
            remote: String::new(),
            relay: relay.map(str::to_owned),
            rtt_s: Some(0.01),
            rtt_min_s: None,
            probes: 1,
            loss: 0.0,
            score: 1.0,
            hops: hops.iter().map(hop).collect(),
            shares: Vec::new(),
            selected: number == 1,
            why: "a < b & c".to_owned(),
        }
    }

    #[test]
    fn every_router_is_drawn_once_and_every_path_is_a_line() {
        let report = Report {
            destination: vec!["192.0.2.9:1".to_owned()],
            beta: 0.5,
            max_paths: 5,
            paths: vec![
                path(1, None, &[("10.0.0.1", Some(0)), ("", None), ("192.0.2.9", Some(1))]),
                path(2, Some("r"), &[("10.0.0.1", Some(0)), ("x", Some(2)), ("y", Some(1))]),
            ],
            notes: Vec::new(),
        };
        let svg = svg(&report);
        // Here, two routers, a silent one, the destination.
        assert_eq!(svg.matches("<circle").count(), 5, "{svg}");
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert_eq!(svg.matches("stroke-dasharray").count(), 2, "the line and its legend");
        assert!(svg.contains("a &lt; b &amp; c") && !svg.contains("a < b"));
    }
}
