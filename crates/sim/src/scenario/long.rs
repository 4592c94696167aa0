//! The long form: nodes, links, flows and traffic.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::error::{Place, ScenarioError};
use super::events::plan;
use super::flows::{striped, transfer, transfers};
use super::keys::{FLOW, LINK, NODE, ROUTE, TOPOLOGY, TRAFFIC};
use super::links::{self, Settings};
use super::model::{
    Cable, CompiledScenario, CrossModel, Crossing, Flow, PathModel, PlannedRank, Transfer,
    base_rtt, queue_of_bdp,
};
use super::read::{Named, Reader};
use super::read_whole;
use super::routes::Map;
use super::topology::{Flaw, Format};
use super::{cross, topology, transport};
use crate::spec::{QueueLimit, Rate};
use crate::traffic::MessageKind;

type Result<T> = std::result::Result<T, ScenarioError>;

/// Nodes and links of a file at most.
const MOST: usize = 1000;

/// Flows of a file at most, copies included.
const MOST_FLOWS: usize = 20_000;

/// Reads a network of named nodes.
pub(super) fn compile(top: &Reader<'_>, out: &mut CompiledScenario) -> Result<()> {
    let (flows, traffic) = (top.elements("flow")?, top.elements("traffic")?);
    nodes(top, out)?;
    let links = top.elements("link")?;
    let mut settings = Vec::new();
    if let Some(named) = top.get("topology") {
        settings = add_topology(&named, out)?;
    }
    for (number, link) in links.iter().enumerate() {
        if number >= MOST {
            return Err(link.error(format!("more than {MOST} links"), "remove some"));
        }
        settings.push(add_link(link, out)?);
    }
    let ends = end_nodes(
        flows.iter().map(|f| (f, &FLOW)).chain(traffic.iter().map(|t| (t, &TRAFFIC))),
        out,
    )?;
    if flows.is_empty() {
        let remedy = "add a [[flow]] with from, to and size";
        return Err(top.place.error("nothing is to be sent", remedy));
    }
    for element in &flows {
        add_flow(top, element, flows.len() == 1, &ends, out)?;
    }
    for element in &traffic {
        add_traffic(top, element, &ends, out)?;
    }
    let mut count = 0;
    for flow in &out.flows {
        count += flow.copies;
        if count > MOST_FLOWS {
            let what = format!("more than {MOST_FLOWS} flows, {} among them", flow.name);
            return Err(top.place.error(what, "remove some, or write fewer `copies`"));
        }
    }
    set_queues(&settings, out);
    for link in &links {
        let table = link.table(&LINK)?;
        let cable = find_cable(&table, link, out)?;
        for change in links::schedules(&table)? {
            plan(&[Crossing { cable, is_reversed: false }], change, link, out)?;
        }
    }
    Ok(())
}

fn nodes(top: &Reader<'_>, out: &mut CompiledScenario) -> Result<()> {
    for (number, element) in top.elements("node")?.iter().enumerate() {
        let name = element.table(&NODE)?.need("name", "\"server\"")?;
        let text = name.text()?;
        if out.nodes.contains(&text) {
            return Err(name.error(format!("there are two nodes `{text}`"), "rename one"));
        }
        if number >= MOST {
            return Err(name.error(format!("more than {MOST} nodes"), "remove some"));
        }
        out.nodes.push(text);
    }
    Ok(())
}

/// Adds the nodes and links of a file; their queues are set later.
fn add_topology<'t>(named: &Named<'t>, out: &mut CompiledScenario) -> Result<Vec<Settings<'t>>> {
    let table = named.table(&TOPOLOGY)?;
    let file = table.need("file", "\"backbone.graphml\"")?;
    let (text, shown) = read_beside(&file)?;
    let format = match table.get("format") {
        Some(format) => format.word(&Format::ALL)?,
        None => Format::of(&text).ok_or_else(|| {
            let remedy = "name its format: graphml, brite or as-rel";
            file.error(format!("{shown} begins like no network"), remedy)
        })?,
    };
    let flaw = |flaw: Flaw| Place::line(&shown, flaw.line).error(flaw.what, flaw.remedy);
    let found = topology::parse(&text, format).map_err(flaw)?;
    let first = out.nodes.len();
    for node in &found.nodes {
        if out.nodes[..first].contains(node) {
            let what = format!("{shown} has a node `{node}`, too");
            return Err(file.error(what, "give the [[node]] another name"));
        }
    }
    out.nodes.extend(found.nodes);
    let common = Settings::read(table)?;
    let mut names: HashMap<String, usize> = HashMap::new();
    let mut settings = Vec::with_capacity(found.links.len());
    for link in &found.links {
        let ends = (first + link.ends.0, first + link.ends.1);
        let between = format!("{}-{}", out.nodes[ends.0], out.nodes[ends.1]);
        let own = common.with(link.rate, link.delay);
        for (what, is_missing) in [("rate", own.rate.is_none()), ("delay", own.delay.is_none())] {
            if is_missing {
                let remedy = format!("write {what} = … in [topology], for links without one");
                let what = format!("the link {between} has no {what}");
                return Err(Place::line(&shown, link.line).error(what, remedy));
            }
        }
        let count = names.entry(between.clone()).and_modify(|count| *count += 1).or_insert(1);
        let name = if *count == 1 { between } else { format!("{between} {count}") };
        let [forward, reverse] = own.made();
        out.cables.push(Cable { name, ends, forward, reverse });
        settings.push(own);
    }
    Ok(settings)
}

/// Reads a file of the scenario's folder: its text, and its path for messages.
fn read_beside(file: &Named<'_>) -> Result<(String, Arc<str>)> {
    let name = file.text()?;
    if name.is_empty() || name.contains(['/', '\\']) || name == ".." {
        let what = format!("`{name}` is not the name of a file of this folder");
        return Err(file.error(what, "write a name such as \"backbone.graphml\""));
    }
    let (path, shown) = file.item.place.beside(&name);
    let cannot = |error: std::io::Error| {
        file.error(format!("{shown} cannot be read: {error}"), "correct its name, or its rights")
    };
    let Some(bytes) = read_whole(&path).map_err(cannot)? else {
        return Err(file.error(format!("{shown} is larger than 10 MB"), "take a part of it"));
    };
    // Names of places may be in any encoding; nothing else hangs on it.
    Ok((String::from_utf8_lossy(&bytes).into_owned(), shown))
}

/// Adds a link; its queues are set later.
fn add_link<'t>(element: &Named<'t>, out: &mut CompiledScenario) -> Result<Settings<'t>> {
    let Settled { settings, ends, name, links: [forward, reverse] } = read_link(element, out)?;
    if let Some(other) = out.cables.iter().find(|cable| cable.name == name) {
        let what = format!("there are two links `{}`", other.name);
        return Err(element.error(what, "give one another name"));
    }
    out.cables.push(Cable { name, ends, forward, reverse });
    Ok(settings)
}

struct Settled<'t> {
    settings: Settings<'t>,
    ends: (usize, usize),
    name: String,
    links: [crate::LinkSpec; 2],
}

fn read_link<'t>(element: &Named<'t>, out: &CompiledScenario) -> Result<Settled<'t>> {
    let table = element.table(&LINK)?;
    let map = Map { nodes: &out.nodes, cables: &[], ends: &[] };
    let (from, to) = (table.need("from", "\"client\"")?, table.need("to", "\"server\"")?);
    let ends = (map.node(&from)?, map.node(&to)?);
    if ends.0 == ends.1 {
        return Err(to.error("a link from a node to itself", "name another node"));
    }
    let name = match table.get("name") {
        Some(named) => named.text()?,
        None => format!("{}-{}", out.nodes[ends.0], out.nodes[ends.1]),
    };
    let settings = Settings::read(table)?;
    let links = settings.links()?;
    Ok(Settled { settings, ends, name, links })
}

fn find_cable(table: &Reader<'_>, link: &Named<'_>, out: &CompiledScenario) -> Result<usize> {
    let name = match table.get("name") {
        Some(named) => named.text()?,
        None => format!("{}-{}", table.need("from", "…")?.text()?, table.need("to", "…")?.text()?),
    };
    let found = out.cables.iter().position(|cable| cable.name == name);
    found.ok_or_else(|| link.error("its name is not known", "rename it"))
}

/// Which nodes are ends of something, and so do not forward.
fn end_nodes<'t>(
    elements: impl Iterator<Item = (&'t Named<'t>, &'static super::keys::Section)>,
    out: &CompiledScenario,
) -> Result<Vec<bool>> {
    let mut ends = vec![false; out.nodes.len()];
    for (element, section) in elements {
        let table = element.table(section)?;
        let map = Map { nodes: &out.nodes, cables: &out.cables, ends: &[] };
        let (from, to) = (table.need("from", "\"client\"")?, table.need("to", "\"server\"")?);
        let (near, far) = (map.node(&from)?, map.node(&to)?);
        if near == far {
            return Err(to.error("it leads from a node to itself", "name another node"));
        }
        (ends[near], ends[far]) = (true, true);
    }
    Ok(ends)
}

/// The two ends that a flow or traffic names.
fn ends_of(table: &Reader<'_>, map: &Map<'_>) -> Result<(usize, usize)> {
    let (from, to) = (table.need("from", "\"client\"")?, table.need("to", "\"server\"")?);
    Ok((map.node(&from)?, map.node(&to)?))
}

fn add_flow(
    top: &Reader<'_>,
    element: &Named<'_>,
    is_only: bool,
    ends: &[bool],
    out: &mut CompiledScenario,
) -> Result<()> {
    let table = element.table(&FLOW)?;
    let map = Map { nodes: &out.nodes, cables: &out.cables, ends };
    let (from, to) = ends_of(&table, &map)?;
    let name = match table.get("name") {
        Some(named) => named.text()?,
        None => format!("{} to {}", out.nodes[from], out.nodes[to]),
    };
    if out.flows.iter().any(|flow| flow.name == name) {
        return Err(element.error(format!("there are two flows `{name}`"), "give one another name"));
    }
    let ways = ways(&table, element, &map, from, to)?;
    let path = |(i, crossings): (usize, Vec<Crossing>)| {
        let number = i + 1;
        let name = if is_only { number.to_string() } else { format!("{name}.{number}") };
        PathModel { name, crossings, is_relayed: false }
    };
    let paths: Vec<PathModel> = ways.into_iter().enumerate().map(path).collect();
    let of_file = top.get("transport");
    let tables: Vec<Named<'_>> = of_file.into_iter().chain(table.get("transport")).collect();
    let transport = transport::read(&tables)?;
    let mut sends: Vec<Transfer> = match table.get("size") {
        Some(_) => vec![transfer(&table, out.time_limit)?],
        None => Vec::new(),
    };
    sends.extend(transfers(&table.elements("transfer")?, out.time_limit)?);
    sends.sort_by_key(|transfer| transfer.start);
    if sends.is_empty() {
        return Err(element.error("nothing is to be sent", "add size = \"8 MB\""));
    }
    let copies = table.get("copies").map_or(Ok(1), |named| named.whole(1..=MOST_FLOWS as u64))?;
    let copies = copies as usize;
    let spread = table.get("spread").map_or(Ok(Duration::ZERO), |named| named.duration())?;
    if let Some(named) = table.get("spread")
        && ends_before(&sends, spread, out)
    {
        let remedy = "write a shorter one, a later `until`, or a longer time_limit";
        return Err(named.error("a flow may start after its end", remedy));
    }
    if transport.is_striped {
        if !is_only || copies > 1 {
            let remedy = "keep one flow, or choose another preset";
            return Err(element.error("the preset appstripe needs the file to itself", remedy));
        }
        if let Some(planned) = ranks(&table, 0)?.first() {
            let what = format!("path {} has a rank", planned.path.1 + 1);
            let remedy = "remove it: a split file has one path an association";
            return Err(element.error(what, remedy));
        }
        return striped(&table, &transport, paths, &sends, (from, to), out);
    }
    out.ranks.extend(ranks(&table, out.flows.len())?);
    out.flows.push(Flow {
        name,
        ends: (from, to),
        config_a: transport.a,
        config_z: transport.z,
        preset: transport.preset,
        paths,
        transfers: sends,
        copies,
        spread,
        is_traffic: false,
    });
    Ok(())
}

/// True if a transfer that is delayed by `by` may end before it starts.
fn ends_before(transfers: &[Transfer], by: Duration, out: &CompiledScenario) -> bool {
    transfers.iter().any(|t| t.start + by >= t.until.unwrap_or(out.time_limit))
}

/// The paths of a flow: as named, or one for each link of the node it starts at.
fn ways(
    table: &Reader<'_>,
    flow: &Named<'_>,
    map: &Map<'_>,
    from: usize,
    to: usize,
) -> Result<Vec<Vec<Crossing>>> {
    let mut ways = Vec::new();
    for element in table.elements("path")? {
        let route = element.table(&ROUTE)?;
        let via = route.need("via", "[\"router\"]")?;
        let way = map.via(&via, from, to)?;
        if ways.contains(&way) {
            return Err(via.error("this path is there already", "remove it or take another way"));
        }
        ways.push(way);
    }
    if ways.is_empty() {
        ways = map.links_at(from).filter_map(|link| map.shortest(from, to, Some(link))).collect();
    }
    match ways.len() {
        0 => Err(no_way(flow, map, from, to)),
        1..=32 => Ok(ways),
        _ => Err(flow.error("more than 32 paths", "name fewer with path = [{ via = […] }]")),
    }
}

/// The ranks of a flow's paths.
fn ranks(table: &Reader<'_>, flow: usize) -> Result<Vec<PlannedRank>> {
    let mut ranks = Vec::new();
    for (path, element) in table.elements("path")?.iter().enumerate() {
        if let Some(rank) = element.table(&ROUTE)?.get("rank") {
            ranks.push(PlannedRank::from_start((flow, path), rank.rank()?));
        }
    }
    Ok(ranks)
}

fn no_way(named: &Named<'_>, map: &Map<'_>, from: usize, to: usize) -> ScenarioError {
    let what = format!("no way leads from {} to {}", map.nodes[from], map.nodes[to]);
    named.error(what, "add a [[link]]; where flows or traffic end, nothing is forwarded")
}

fn add_traffic(
    top: &Reader<'_>,
    element: &Named<'_>,
    ends: &[bool],
    out: &mut CompiledScenario,
) -> Result<()> {
    let table = element.table(&TRAFFIC)?;
    let map = Map { nodes: &out.nodes, cables: &out.cables, ends };
    let (from, to) = ends_of(&table, &map)?;
    let way = match table.get("via") {
        Some(via) => map.via(&via, from, to)?,
        None => map.shortest(from, to, None).ok_or_else(|| no_way(element, &map, from, to))?,
    };
    let rate = out.bottleneck(&way);
    match cross::read(&table, rate)? {
        cross::Traffic::Blank(directions) => {
            for (is_reverse, traffic) in directions {
                let crossings = way.clone();
                out.cross.push(CrossModel { crossings, is_reverse, traffic });
            }
        }
        cross::Traffic::Responsive { count, start, until } => {
            let of_file = top.get("transport");
            let tables: Vec<Named<'_>> =
                of_file.into_iter().chain(table.get("transport")).collect();
            let transport = transport::read_for_traffic(&tables)?;
            for number in 1..=count {
                let path = PathModel {
                    name: format!("{}.{number}", element.name),
                    crossings: way.clone(),
                    is_relayed: false,
                };
                out.flows.push(Flow {
                    name: format!("{} {number}", element.name),
                    ends: (from, to),
                    config_a: transport.a.clone(),
                    config_z: transport.z.clone(),
                    preset: transport.preset.clone(),
                    paths: vec![path],
                    transfers: vec![Transfer {
                        bytes: None,
                        start,
                        until,
                        is_reverse: false,
                        kind: MessageKind::default(),
                        every: None,
                        latency: false,
                    }],
                    copies: 1,
                    spread: Duration::ZERO,
                    is_traffic: true,
                });
            }
        }
    }
    Ok(())
}

/// Gives every link its queues: a bandwidth-delay product is of the longest path over it.
fn set_queues(settings: &[Settings<'_>], out: &mut CompiledScenario) {
    for (number, settings) in settings.iter().enumerate() {
        let paths = out.flows.iter().flat_map(|flow| &flow.paths);
        let over = paths.filter(|path| path.crossings.iter().any(|c| c.cable == number));
        let longest = over.map(|path| base_rtt(&out.cables, &path.crossings)).max();
        let cable = &mut out.cables[number];
        let own = cable.forward.delay + cable.reverse.delay;
        let rtt = longest.unwrap_or(own);
        let rates = [cable.forward.rate, cable.reverse.rate];
        let default = |rate| default_queue(rate, rtt);
        let [there, _] = settings.queues(rates[0], rtt);
        let [_, back] = settings.queues(rates[1], rtt);
        cable.forward.queue = Some(there.unwrap_or_else(|| default(rates[0])));
        cable.reverse.queue = Some(back.unwrap_or_else(|| default(rates[1])));
    }
}

fn default_queue(rate: Rate, rtt: Duration) -> QueueLimit {
    match queue_of_bdp(1.0, rate, rtt) {
        QueueLimit::Packets(packets) => QueueLimit::Packets(packets.max(50)),
        other => other,
    }
}
