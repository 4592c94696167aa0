//! GraphML as the Internet Topology Zoo (Knight and others, 2011) has it: nodes with `label`,
//! `Latitude` and `Longitude`, edges with `LinkSpeedRaw` in bits per second, or with `LinkSpeed`
//! and `LinkSpeedUnits`.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use roxmltree::{Document, Node, ParsingOptions};

use super::{Flaw, Nodes, Topology, TopologyLink, rate_of};
use crate::spec::Rate;

/// Elements and texts of a file at most: those of its nodes and links with twenty attributes each.
const MOST_ELEMENTS: u32 = 500_000;

/// How far light gets in glass, in kilometres per millisecond: two thirds of its speed.
const KM_PER_MS: f64 = 200.0;

/// Radius of the earth, in kilometres.
const EARTH_KM: f64 = 6371.0;

/// A place on earth, in degrees.
type Degrees = (f64, f64);

struct Reader<'d> {
    document: &'d Document<'d>,
    /// The names of attributes by their identifiers.
    keys: HashMap<&'d str, &'d str>,
}

impl<'d> Reader<'d> {
    fn line(&self, node: Node<'_, '_>) -> usize {
        self.document.text_pos_at(node.range().start).row as usize
    }

    fn attribute(&self, node: Node<'d, '_>, name: &str) -> Result<&'d str, Flaw> {
        node.attribute(name).ok_or_else(|| {
            let what = format!("<{}> has no `{name}`", node.tag_name().name());
            Flaw::new(self.line(node), what, format!("GraphML has {name}=\"…\" there"))
        })
    }

    /// The data of a node or an edge: name, text and line.
    fn data(&self, node: Node<'d, 'd>, name: &str) -> Option<(&'d str, usize)> {
        let children = node.children().filter(|child| child.has_tag_name_local("data"));
        let mut those = children.filter(|child| {
            let key = child.attribute("key").and_then(|key| self.keys.get(key));
            key.is_some_and(|own| *own == name)
        });
        let data = those.next()?;
        let text = data.text().map(str::trim).filter(|text| !text.is_empty())?;
        Some((text, self.line(data)))
    }

    fn number(&self, node: Node<'d, 'd>, name: &str) -> Result<Option<f64>, Flaw> {
        let Some((text, line)) = self.data(node, name) else { return Ok(None) };
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        let wrong = || Flaw::new(line, format!("{name}: `{text}` is no number"), "correct it");
        number.ok_or_else(wrong).map(Some)
    }

    fn rate(&self, edge: Node<'d, 'd>) -> Result<Option<Rate>, Flaw> {
        let raw = self.number(edge, "LinkSpeedRaw")?;
        let bits = match raw {
            Some(bits) => Some(bits),
            None => self.number(edge, "LinkSpeed")?.map(|speed| speed * self.units(edge)),
        };
        match bits {
            // The Zoo has it where the speed is not known.
            Some(0.0) | None => Ok(None),
            Some(bits) => rate_of(bits).map(Some).ok_or_else(|| {
                let what = format!("a link of {bits} bit/s");
                Flaw::new(self.line(edge), what, "write a speed from 1 bit/s to 1000 Tbit/s")
            }),
        }
    }

    /// Bits per second of a unit of `LinkSpeed`.
    fn units(&self, edge: Node<'d, 'd>) -> f64 {
        match self.data(edge, "LinkSpeedUnits").map(|(text, _)| text) {
            Some("K" | "k") => 1e3,
            Some("M" | "m") => 1e6,
            Some("G" | "g") => 1e9,
            Some("T" | "t") => 1e12,
            _ => 1.0,
        }
    }

    fn place(&self, node: Node<'d, 'd>) -> Result<Option<Degrees>, Flaw> {
        let place = self.number(node, "Latitude")?.zip(self.number(node, "Longitude")?);
        match place.filter(|(north, east)| north.abs() > 90.0 || east.abs() > 360.0) {
            Some(_) => {
                let what = "no place on earth: Latitude is -90 to 90, Longitude -180 to 180";
                Err(Flaw::new(self.line(node), what, "correct it"))
            }
            None => Ok(place),
        }
    }
}

trait Local {
    fn has_tag_name_local(&self, name: &str) -> bool;
}

impl Local for Node<'_, '_> {
    /// Of whatever name space: some files have none.
    fn has_tag_name_local(&self, name: &str) -> bool {
        self.is_element() && self.tag_name().name() == name
    }
}

pub(super) fn parse(text: &str) -> Result<Topology, Flaw> {
    let options =
        ParsingOptions { allow_dtd: false, nodes_limit: MOST_ELEMENTS, ..Default::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let line = error.pos().row as usize;
        Flaw::new(line, format!("this is no XML: {error}"), "name a GraphML file, or its `format`")
    })?;
    let elements = || document.descendants().filter(Node::is_element);
    let keys = elements()
        .filter(|node| node.has_tag_name_local("key"))
        .filter_map(|key| Some((key.attribute("id")?, key.attribute("attr.name")?)));
    let reader = Reader { document: &document, keys: keys.collect() };
    let (mut nodes, mut places, mut labels) = (Nodes::default(), Vec::new(), Vec::new());
    for node in elements().filter(|node| node.has_tag_name_local("node")) {
        let id = reader.attribute(node, "id")?;
        nodes.add(id, reader.line(node))?;
        places.push(reader.place(node)?);
        labels.push((reader.data(node, "label").map_or(id, |(label, _)| label), id));
    }
    let mut topology = Topology { nodes: names(&labels), links: Vec::new() };
    for edge in elements().filter(|node| node.has_tag_name_local("edge")) {
        let line = reader.line(edge);
        let end = |name| nodes.find(reader.attribute(edge, name)?, line);
        let ends = (end("source")?, end("target")?);
        let far = places[ends.0].zip(places[ends.1]);
        // Whole microseconds: places are not known better.
        let micros = |(a, b)| (distance_km(a, b) / KM_PER_MS * 1e3).round() as u64;
        let delay = far.map(|ends| Duration::from_micros(micros(ends)));
        topology.add(TopologyLink { ends, rate: reader.rate(edge)?, delay, line })?;
    }
    Ok(topology)
}

/// Labels as names: with the identifier where several nodes have the same.
fn names(labels: &[(&str, &str)]) -> Vec<String> {
    let mut count: HashMap<&str, usize> = HashMap::new();
    labels.iter().for_each(|(label, _)| *count.entry(label).or_default() += 1);
    let mut taken: HashSet<String> = HashSet::new();
    let name = |&(label, id): &(&str, &str)| {
        let mut name = match count[label] {
            1 => label.to_owned(),
            _ => format!("{label} {id}"),
        };
        while !taken.insert(name.clone()) {
            name += "'";
        }
        name
    };
    labels.iter().map(name).collect()
}

/// The way along a great circle (haversine formula).
fn distance_km(a: Degrees, b: Degrees) -> f64 {
    let (north_a, north_b) = (a.0.to_radians(), b.0.to_radians());
    let half = |from: f64, to: f64| libm::pow(libm::sin((to - from) / 2.0), 2.0);
    let east = half(a.1.to_radians(), b.1.to_radians());
    let part = half(north_a, north_b) + libm::cos(north_a) * libm::cos(north_b) * east;
    2.0 * EARTH_KM * libm::asin(part.clamp(0.0, 1.0).sqrt())
}
