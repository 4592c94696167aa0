//! Relations of autonomous systems as CAIDA lists them: `provider|customer|-1`, `peer|peer|0`, and
//! whatever follows; `#` begins a comment. The file knows neither rates nor delays.

use super::{Flaw, Nodes, Topology, TopologyLink};

pub(super) fn parse(text: &str) -> Result<Topology, Flaw> {
    let (mut nodes, mut topology) = (Nodes::default(), Topology::default());
    for (number, text) in text.lines().enumerate() {
        let (line, text) = (number + 1, text.trim());
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = text.split('|').collect();
        let [from, to, relation, ..] = fields[..] else {
            let what = "this is no relation of two systems";
            return Err(Flaw::new(line, what, "write 174|3356|0: two numbers, and -1 or 0"));
        };
        if !["-1", "0", "1"].contains(&relation) {
            let what = format!("there is no relation `{relation}`");
            return Err(Flaw::new(line, what, "-1 is provider and customer, 0 is peers"));
        }
        let mut node = |text: &str| {
            let Ok(number) = text.parse::<u32>() else {
                let what = format!("`{text}` is no number of a system");
                return Err(Flaw::new(line, what, "write a number such as 3356"));
            };
            let name = format!("AS{number}");
            if let Ok(known) = nodes.find(&name, line) {
                return Ok(known);
            }
            topology.nodes.push(name.clone());
            nodes.add(&name, line)
        };
        let ends = (node(from)?, node(to)?);
        topology.add(TopologyLink { ends, rate: None, delay: None, line })?;
    }
    Ok(topology)
}
