//! Networks from files of others: which nodes there are, which are linked, how fast and how far.

mod brite;
mod graphml;
mod relations;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::time::Duration;

use crate::spec::Rate;

/// Nodes and links of a file at most. Ways are searched among them for every flow.
pub(super) const MOST: usize = 2000;

/// A network as a file describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Topology {
    /// The names of its nodes, each once.
    pub(super) nodes: Vec<String>,
    pub(super) links: Vec<TopologyLink>,
}

/// A link, the same both ways.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TopologyLink {
    pub(super) ends: (usize, usize),
    /// Its rate, if the file has it.
    pub(super) rate: Option<Rate>,
    /// Its delay one way, if the file has it.
    pub(super) delay: Option<Duration>,
    /// Its line in the file, counted from 1.
    pub(super) line: usize,
}

/// A file that is not what it should be: line, reason, remedy.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Flaw {
    pub(super) line: usize,
    pub(super) what: String,
    pub(super) remedy: String,
}

impl Flaw {
    fn new(line: usize, what: impl Into<String>, remedy: impl Into<String>) -> Flaw {
        Flaw { line, what: what.into(), remedy: remedy.into() }
    }
}

/// The form of a file.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// GraphML, with the attributes of the Internet Topology Zoo.
    GraphMl,
    /// The output of BRITE.
    Brite,
    /// Lines of `a|b|relation`, as CAIDA's lists of relations of autonomous systems.
    AsRel,
}

impl Format {
    pub(super) const ALL: [(&'static str, Format); 3] =
        [("graphml", Format::GraphMl), ("brite", Format::Brite), ("as-rel", Format::AsRel)];

    /// The form that a text has, as far as its beginning tells.
    pub(super) fn of(text: &str) -> Option<Format> {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let first = text.lines().find(|line| !line.starts_with('#')).unwrap_or_default();
        match first {
            _ if text.starts_with('<') => Some(Format::GraphMl),
            line if line.starts_with("Topology:") => Some(Format::Brite),
            line if line.contains('|') => Some(Format::AsRel),
            _ => None,
        }
    }
}

/// Reads a network.
pub(super) fn parse(text: &str, format: Format) -> Result<Topology, Flaw> {
    let text = text.trim_start_matches('\u{feff}');
    let topology = match format {
        Format::GraphMl => graphml::parse(text),
        Format::Brite => brite::parse(text),
        Format::AsRel => relations::parse(text),
    }?;
    if topology.links.is_empty() {
        Err(Flaw::new(0, "it has no links", "name a file that describes a network"))
    } else {
        Ok(topology)
    }
}

/// Nodes by the names that links call them by.
#[derive(Debug, Default)]
struct Nodes {
    numbers: HashMap<String, usize>,
}

impl Nodes {
    /// Adds a node; an error if there is one of this name already.
    fn add(&mut self, name: &str, line: usize) -> Result<usize, Flaw> {
        let count = self.numbers.len();
        match self.numbers.entry(name.to_owned()) {
            Entry::Occupied(_) => {
                Err(Flaw::new(line, format!("a second node `{name}`"), "give one another name"))
            }
            Entry::Vacant(_) if count >= MOST => Err(too_many(line, "nodes")),
            Entry::Vacant(entry) => Ok(*entry.insert(count)),
        }
    }

    fn find(&self, name: &str, line: usize) -> Result<usize, Flaw> {
        let found = self.numbers.get(name).copied();
        let remedy = "a link joins two nodes that the file has";
        found.ok_or_else(|| Flaw::new(line, format!("there is no node `{name}`"), remedy))
    }
}

impl Topology {
    /// Adds a link, unless it leads from a node to itself: nothing ever crosses that.
    fn add(&mut self, link: TopologyLink) -> Result<(), Flaw> {
        if link.ends.0 == link.ends.1 {
            return Ok(());
        }
        if self.links.len() >= MOST {
            return Err(too_many(link.line, "links"));
        }
        self.links.push(link);
        Ok(())
    }
}

fn too_many(line: usize, what: &str) -> Flaw {
    Flaw::new(line, format!("more than {MOST} {what}"), "take a part of the network")
}

/// A rate in bits per second, if it is one that a link can have.
fn rate_of(bits: f64) -> Option<Rate> {
    (1.0..=1e15).contains(&bits).then(|| Rate::bps(bits.round() as u64))
}
