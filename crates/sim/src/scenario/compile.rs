//! From the tree to nodes, links, flows and changes.

use std::time::Duration;

use super::cross::{self, Traffic};
use super::error::Place;
use super::error::ScenarioError;
use super::events::{events, plan, slowest_crossing};
use super::flows::{check_messages, flow, striped, transfers};
use super::keys::{CROSS, HOP, PATH, SCENARIO};
use super::links::{self, Settings};
use super::long;
use super::model::{Cable, CompiledScenario, CrossModel, Crossing, PathModel, PlannedRank};
use super::nats::{self, NatModels};
use super::read::{Named, Reader};
use super::transport;
use super::tree::Table;
use crate::spec::{HopSpec, LinkSpec, PathSpec};

type Result<T> = std::result::Result<T, ScenarioError>;

/// Simulated time of a run where the file names no limit.
const TIME_LIMIT: Duration = Duration::from_secs(3600);

/// Reads the whole file but for its sweep.
pub(super) fn compile(root: &Table, place: &Place, file: &str) -> Result<CompiledScenario> {
    let top = Reader::new(root, &SCENARIO, place, "")?;
    let text = |key| top.get(key).map(|named| named.text()).transpose();
    let mut compiled = CompiledScenario {
        name: text("name")?.unwrap_or_else(|| file.to_owned()),
        description: text("description")?.unwrap_or_default(),
        parameters: Vec::new(),
        time_limit: top.get("time_limit").map_or(Ok(TIME_LIMIT), |named| named.duration())?,
        is_protected: top.get("protected").map_or(Ok(false), |named| named.boolean())?,
        nodes: Vec::new(),
        cables: Vec::new(),
        flows: Vec::new(),
        changes: Vec::new(),
        moves: Vec::new(),
        ranks: Vec::new(),
        nats: NatModels::read(&top)?,
        reboots: Vec::new(),
        cross: Vec::new(),
        stripe: None,
    };
    if let Some(named) = top.get("time_limit")
        && compiled.time_limit.is_zero()
    {
        return Err(named.error("no time to run", "write a time such as \"500 s\""));
    }
    let long =
        ["node", "link", "topology", "flow", "traffic"].into_iter().find_map(|key| top.get(key));
    match (long, top.get("path"), top.get("transfer")) {
        (Some(long), Some(other), _) | (Some(long), None, Some(other)) => {
            let what = format!("both {} and {}", long.name, other.name);
            let remedy = "use [[path]] and [transfer], or [[node]], [[link]] and [[flow]]";
            return Err(other.item.place.error(what, remedy));
        }
        (Some(long), None, None) => {
            if let Some(nat) = top.get("nat") {
                let remedy = "use [[path]] and [transfer], or remove the NATs";
                return Err(nat.error(format!("NATs beside {}", long.name), remedy));
            }
            long::compile(&top, &mut compiled)?;
        }
        (None, ..) => short_form(&top, &mut compiled)?,
    }
    check_messages(&top, &compiled.flows)?;
    events(&top, &mut compiled)?;
    nats::check_is_reachable(&top, &top.elements("path")?, &compiled)?;
    // Stable, so that changes of one instant come in the order of the file.
    compiled.changes.sort_by_key(|change| change.at);
    compiled.moves.sort_by_key(|planned| planned.at);
    compiled.ranks.sort_by_key(|planned| planned.at);
    compiled.reboots.sort_by_key(|planned| planned.at);
    Ok(compiled)
}

/// Independent paths between two hosts.
fn short_form(top: &Reader<'_>, out: &mut CompiledScenario) -> Result<()> {
    let elements = top.elements("path")?;
    if elements.is_empty() {
        let remedy =
            "describe paths with [[path]], or a network with [[node]], [[link]] and [[flow]]";
        return Err(top.place.error("there is no network", remedy));
    }
    if elements.len() > 32 {
        return Err(elements[32].error("more than 32 paths", "remove some"));
    }
    out.nodes = vec!["a".to_owned(), "z".to_owned()];
    let mut paths: Vec<PathModel> = Vec::new();
    for (i, element) in elements.iter().enumerate() {
        let table = element.table(&PATH)?;
        let name = match table.get("name") {
            Some(named) => named.text()?,
            None => (i + 1).to_string(),
        };
        if paths.iter().any(|path| path.name == name) {
            return Err(element.error(format!("there are two paths `{name}`"), "rename one"));
        }
        let mut path = path(&table, name, out)?;
        path.is_relayed = table.get("relay").map_or(Ok(false), |named| named.boolean())?;
        for change in links::schedules(&table)? {
            plan(&path.crossings, change, element, out)?;
        }
        if let Some(cross) = table.get("cross") {
            add_cross(&cross, &path.crossings, out)?;
        }
        if let Some(rank) = table.get("rank") {
            out.ranks.push(PlannedRank::from_start((0, i), rank.rank()?));
        }
        paths.push(path);
    }
    let transport = transport::read(&top.get("transport").into_iter().collect::<Vec<_>>())?;
    let transfers = transfers(&top.elements("transfer")?, out.time_limit)?;
    if transfers.is_empty() {
        let remedy = "add [transfer] with size = \"8 MB\"";
        return Err(top.place.error("nothing is to be sent", remedy));
    }
    let relay = paths.iter().position(|path| path.is_relayed).map(|path| elements[path].clone());
    if transport.is_striped {
        if let Some(planned) = out.ranks.first() {
            let remedy = "remove the rank, or use another preset";
            let what = "a split file has one path an association: ranks mean nothing";
            return Err(elements[planned.path.1].error(what, remedy));
        }
        if let Some(what) = top.get("nat").or(relay) {
            let remedy = "remove it, or use another preset";
            return Err(what.error("a split file has hosts of its own for each path", remedy));
        }
        return striped(top, &transport, paths, &transfers, (0, 1), out);
    }
    out.flows.push(flow("a to z", &transport, paths, transfers, (0, 1)));
    Ok(())
}

/// Reads a path of the short form and adds its links.
fn path(table: &Reader<'_>, name: String, out: &mut CompiledScenario) -> Result<PathModel> {
    let own = Settings::read(table.clone())?;
    let mut hops = Vec::new();
    let elements = match table.get("hops") {
        Some(named) => named.elements()?,
        None => Vec::new(),
    };
    if let (Some(named), true) = (table.get("hops"), elements.is_empty()) {
        return Err(named.error("no hops", "write at least one, or `rate` and `delay` of the path"));
    }
    for key in ["rate", "delay"] {
        if let (Some(named), false) = (table.get(key), elements.is_empty()) {
            let remedy = format!("set it for one hop, such as {}.hops.1.{key}", table.name);
            return Err(named.error("a path with hops has none of its own", remedy));
        }
    }
    for element in &elements {
        hops.push(element.table(&HOP)?);
    }
    let mut settings = Vec::new();
    for hop in &hops {
        settings.push(Settings::read(hop.clone())?);
    }
    let is_one_hop = settings.is_empty();
    if is_one_hop {
        settings.push(own.clone());
    }
    let slowest = slowest(&settings);
    if !is_one_hop {
        settings[slowest].pass_on(&own)?;
    }
    let mut path = PathSpec { hops: Vec::new() };
    for settings in &settings {
        let [forward, reverse] = settings.links()?;
        path.hops.push(HopSpec { forward, reverse });
    }
    add_links(&settings, path, name, out)
}

/// The hop with the lowest forward rate; the first of several.
fn slowest(settings: &[Settings<'_>]) -> usize {
    let rate = |i: &usize| {
        let rate = settings[*i].rate.and_then(|(forward, _)| forward.bits_per_second());
        rate.unwrap_or(u64::MAX)
    };
    (0..settings.len()).min_by_key(rate).unwrap_or(0)
}

/// Adds the cross-traffic of a path.
fn add_cross(named: &Named<'_>, crossings: &[Crossing], out: &mut CompiledScenario) -> Result<()> {
    let table = named.table(&CROSS)?;
    let hop = match table.get("hop") {
        Some(hop) => hop.whole(1..=crossings.len() as u64)? as usize - 1,
        None => slowest_crossing(crossings, out),
    };
    let way = vec![crossings[hop]];
    match cross::read(&table, out.bottleneck(&way))? {
        Traffic::Blank(directions) => {
            for (is_reverse, traffic) in directions {
                out.cross.push(CrossModel { crossings: way.clone(), is_reverse, traffic });
            }
            Ok(())
        }
        Traffic::Responsive { .. } => {
            let remedy = "describe the network with [[node]], [[link]], [[flow]] and [[traffic]]";
            Err(named.error("only [[traffic]] can be responsive", remedy))
        }
    }
}

/// Gives the links their queues and adds them.
fn add_links(
    settings: &[Settings<'_>],
    spec: PathSpec,
    name: String,
    out: &mut CompiledScenario,
) -> Result<PathModel> {
    let back: Duration = spec.hops.iter().map(|hop| hop.reverse.delay).sum();
    let (rate, rtt) = (spec.bottleneck(), spec.one_way_delay() + back);
    let default = spec.default_queue();
    let count = spec.hops.len();
    let mut crossings = Vec::new();
    for (i, (hop, settings)) in spec.hops.into_iter().zip(settings).enumerate() {
        let queues = settings.queues(rate, rtt).map(|queue| Some(queue.unwrap_or(default)));
        let [forward, reverse] = queues;
        // Nodes on the way are no hosts and need no names of their own.
        let hop_name = if count == 1 { name.clone() } else { format!("{name}.{}", i + 1) };
        crossings.push(Crossing { cable: out.cables.len(), is_reversed: false });
        out.cables.push(Cable {
            name: hop_name,
            ends: (0, 1),
            forward: LinkSpec { queue: forward, ..hop.forward },
            reverse: LinkSpec { queue: reverse, ..hop.reverse },
        });
    }
    Ok(PathModel { name, crossings, is_relayed: false })
}
