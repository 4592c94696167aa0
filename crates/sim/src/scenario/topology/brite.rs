//! The output of BRITE (Medina, Lakhina, Matta, Byers, 2001): a section of nodes, a section of
//! edges, one in each line. Delays are in milliseconds, bandwidths in Mbit/s; -1 where none was
//! assigned.

use std::time::Duration;

use super::{Flaw, Nodes, Topology, TopologyLink, rate_of};

#[derive(Copy, Clone, PartialEq)]
enum Section {
    Head,
    Nodes,
    Edges,
}

pub(super) fn parse(text: &str) -> Result<Topology, Flaw> {
    let (mut nodes, mut topology) = (Nodes::default(), Topology::default());
    let mut section = Section::Head;
    for (number, text) in text.lines().enumerate() {
        let (line, text) = (number + 1, text.trim());
        let fields: Vec<&str> = text.split_whitespace().collect();
        match (section, fields.as_slice()) {
            (_, []) => {}
            (_, ["Nodes:", ..]) => section = Section::Nodes,
            (_, ["Edges:", ..]) => section = Section::Edges,
            (Section::Head, _) => {}
            (Section::Nodes, [id, ..]) => {
                nodes.add(id, line)?;
                topology.nodes.push((*id).to_owned());
            }
            (Section::Edges, [_, from, to, _, delay, bandwidth, ..]) => {
                let ends = (nodes.find(from, line)?, nodes.find(to, line)?);
                let delay = number_of(delay, line, "delay")?;
                let megabits = number_of(bandwidth, line, "bandwidth")?;
                let delay = delay.map(|ms| Duration::from_secs_f64(ms / 1e3));
                let rate = megabits.and_then(|megabits| rate_of(megabits * 1e6));
                topology.add(TopologyLink { ends, rate, delay, line })?;
            }
            (Section::Edges, _) => {
                let remedy = "BRITE writes: number, from, to, length, delay, bandwidth, …";
                return Err(Flaw::new(line, "this edge has less than six fields", remedy));
            }
        }
    }
    match section {
        Section::Edges => Ok(topology),
        _ => Err(Flaw::new(0, "there is no `Edges:`", "name a file that BRITE has written")),
    }
}

/// A number that is not negative, if it is known; at most a day in milliseconds.
fn number_of(text: &str, line: usize, name: &str) -> Result<Option<f64>, Flaw> {
    match text.parse::<f64>() {
        Ok(number) if number < 0.0 => Ok(None),
        Ok(number) if number <= 86_400_000.0 => Ok(Some(number)),
        _ => {
            let what = format!("{name}: `{text}` is no number from 0 to 86400000");
            Err(Flaw::new(line, what, "correct it, or write -1 if it is not known"))
        }
    }
}
