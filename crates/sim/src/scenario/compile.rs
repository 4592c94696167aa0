//! From the tree to nodes, links, flows and changes.

use std::time::Duration;

use manypath_proto::config::units::print_duration;

use super::cross::{self, Traffic};
use super::error::Place;
use super::error::ScenarioError;
use super::keys::{CROSS, EVENT, HOP, PATH, SCENARIO, TRANSFER};
use super::links::{self, Change, Settings};
use super::long;
use super::model::{
    Cable, CompiledScenario, CrossModel, Crossing, Flow, PathModel, PlannedChange, PlannedMove,
    Transfer, direction,
};
use super::read::{Named, Reader};
use super::transport::{self, Transport};
use super::tree::Table;
use crate::paths::End;
use crate::spec::{HopSpec, LinkChange, LinkSpec, PathSpec};
use crate::traffic::Pace;

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
        nodes: Vec::new(),
        cables: Vec::new(),
        flows: Vec::new(),
        changes: Vec::new(),
        moves: Vec::new(),
        cross: Vec::new(),
        stripe: None,
    };
    if let Some(named) = top.get("time_limit").filter(|_| compiled.time_limit.is_zero()) {
        return Err(named.error("no time to run", "write a time such as \"500 s\""));
    }
    let long = ["node", "link", "flow", "traffic"].into_iter().find_map(|key| top.get(key));
    match (long, top.get("path"), top.get("transfer")) {
        (Some(long), Some(other), _) | (Some(long), None, Some(other)) => {
            let what = format!("both {} and {}", long.name, other.name);
            let remedy = "use [[path]] and [transfer], or [[node]], [[link]] and [[flow]]";
            return Err(other.item.place.error(what, remedy));
        }
        (Some(_), None, None) => long::compile(&top, &mut compiled)?,
        (None, ..) => short_form(&top, &mut compiled)?,
    }
    events(&top, &mut compiled)?;
    // Stable, so that changes of one instant come in the order of the file.
    compiled.changes.sort_by_key(|change| change.at);
    compiled.moves.sort_by_key(|planned| planned.at);
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
        let path = path(&table, name, out)?;
        for change in links::schedules(&table)? {
            plan(&path.crossings, change, element, out)?;
        }
        if let Some(cross) = table.get("cross") {
            add_cross(&cross, &path.crossings, out)?;
        }
        paths.push(path);
    }
    let transport = transport::read(&top.get("transport").into_iter().collect::<Vec<_>>())?;
    let transfers = transfers(&top.elements("transfer")?, out.time_limit)?;
    if transfers.is_empty() {
        let remedy = "add [transfer] with size = \"8 MB\"";
        return Err(top.place.error("nothing is to be sent", remedy));
    }
    if transport.is_striped {
        return striped(top, &transport, paths, &transfers, (0, 1), out);
    }
    out.flows.push(flow("a to z", &transport, paths, transfers, (0, 1)));
    Ok(())
}

fn flow(
    name: &str,
    transport: &Transport,
    paths: Vec<PathModel>,
    transfers: Vec<Transfer>,
    ends: (usize, usize),
) -> Flow {
    Flow {
        name: name.to_owned(),
        ends,
        config_a: transport.a.clone(),
        config_z: transport.z.clone(),
        preset: transport.preset.clone(),
        paths,
        transfers,
    }
}

/// AppStripe: one association per path, each with the whole file.
pub(super) fn striped(
    top: &Reader<'_>,
    transport: &Transport,
    paths: Vec<PathModel>,
    transfers: &[Transfer],
    ends: (usize, usize),
    out: &mut CompiledScenario,
) -> Result<()> {
    let [Transfer { bytes: Some(bytes), is_reverse: false, .. }] = transfers else {
        let remedy = "give it one [transfer] of a size, forward";
        return Err(top.place.error("the preset appstripe splits one file", remedy));
    };
    out.stripe = Some(*bytes);
    for path in paths {
        let name = format!("stripe {}", path.name);
        out.flows.push(flow(&name, transport, vec![path], transfers.to_vec(), ends));
    }
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

fn slowest_crossing(crossings: &[Crossing], out: &CompiledScenario) -> usize {
    let rate = |i: &usize| {
        let link = direction(&out.cables, crossings[*i]);
        link.rate.bits_per_second().unwrap_or(u64::MAX)
    };
    (0..crossings.len()).min_by_key(rate).unwrap_or(0)
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
    Ok(PathModel { name, crossings })
}

/// Reads transfers, in the order in which they start.
pub(super) fn transfers(elements: &[Named<'_>], limit: Duration) -> Result<Vec<Transfer>> {
    let mut transfers = Vec::new();
    for element in elements {
        let table = element.table(&TRANSFER)?;
        transfers.push(transfer(&table, limit)?);
    }
    transfers.sort_by_key(|transfer: &Transfer| transfer.start);
    Ok(transfers)
}

/// The longest file: what a run could count without overflow, by far.
const LARGEST: u64 = 1 << 60;

const SWITCH: [(&str, bool); 2] = [("true", true), ("false", false)];

/// Reads a transfer of a run that ends at `limit`.
pub(super) fn transfer(table: &Reader<'_>, limit: Duration) -> Result<Transfer> {
    let size = table.need("size", "\"8 MB\"")?;
    let count = table.get("count").map_or(Ok(1), |named| named.whole(1..=1_000_000))?;
    let bytes = match size.text()?.as_str() {
        "endless" => None,
        _ => match size.size()?.checked_mul(count).filter(|total| *total <= LARGEST) {
            Some(0) => return Err(size.error("nothing to send", "write a size above zero")),
            Some(total) => Some(total),
            None => return Err(size.error("too much to send", "write a smaller size or count")),
        },
    };
    let start = table.get("start").map_or(Ok(Duration::ZERO), |named| named.duration())?;
    if let Some(named) = table.get("start").filter(|_| start >= limit) {
        let what = format!("the run has ended by then, at {}", print_duration(limit));
        return Err(named.error(what, "write an earlier time, or a longer time_limit"));
    }
    let until = table.get("until").map(|named| named.duration()).transpose()?;
    if let (Some(named), Some(until)) = (table.get("until"), until) {
        if bytes.is_some() {
            return Err(
                named.error("a transfer of a size ends by itself", "write size = \"endless\"")
            );
        }
        if until <= start {
            return Err(named.error("it ends before it starts", "write a later time"));
        }
    }
    let directions = [("forward", false), ("reverse", true)];
    Ok(Transfer {
        bytes,
        start,
        until,
        is_reverse: table.get("direction").map_or(Ok(false), |named| named.word(&directions))?,
        pace: pace(table, bytes)?,
        latency: table.get("latency").map_or(Ok(false), |named| named.word(&SWITCH))?,
    })
}

/// Bytes of a message that an application hands over at a pace.
const PACED_MESSAGE: usize = 1000;

/// Reads the pace of the application that sends `bytes`, if it has one.
fn pace(table: &Reader<'_>, bytes: Option<u64>) -> Result<Option<Pace>> {
    let Some(named) = table.get("rate") else { return Ok(None) };
    if bytes.is_none() {
        return Err(named.error("a transfer without end has no pace", "write a size"));
    }
    let bits = named.rate()?.bits_per_second().filter(|bits| *bits <= 1_000_000_000_000);
    let remedy = "write up to 1 Tbit/s, or leave it out to send everything at once";
    let bits = bits.ok_or_else(|| named.error("too fast for an application", remedy))?;
    let nanos = PACED_MESSAGE as u64 * 8 * 1_000_000_000 / bits;
    Ok(Some(Pace { message: PACED_MESSAGE, every: Duration::from_nanos(nanos) }))
}

/// Plans a change of a path.
pub(super) fn plan(
    crossings: &[Crossing],
    change: Change,
    said: &Named<'_>,
    out: &mut CompiledScenario,
) -> Result<()> {
    let hops: Vec<usize> = match change.hop {
        Some(hop) if hop > crossings.len() => {
            let remedy = format!("write a hop from 1 to {}", crossings.len());
            return Err(said.error(format!("there is no hop {hop}"), remedy));
        }
        Some(hop) => vec![hop - 1],
        None if change.is_of_all_hops => (0..crossings.len()).collect(),
        None => vec![slowest_crossing(crossings, out)],
    };
    for hop in hops {
        let Crossing { cable, is_reversed } = crossings[hop];
        out.changes.push(PlannedChange {
            at: change.at,
            after: change.after,
            cable,
            way: change.way.reversed_if(is_reversed),
            change: change.change.clone(),
        });
    }
    Ok(())
}

/// Reads `[[event]]`.
fn events(top: &Reader<'_>, out: &mut CompiledScenario) -> Result<()> {
    for element in top.elements("event")? {
        let table = element.table(&EVENT)?;
        if renumbers(&table)? {
            let planned = renumbering(&table, &element, out)?;
            out.moves.push(planned);
            continue;
        }
        if let Some(end) = table.get("end") {
            return Err(end.error("only `renumber` is of an end", "write change = \"renumber\""));
        }
        let crossings = place_of_event(&table, &element, out)?;
        let changes = changes_of_event(&table, &element)?;
        for change in changes {
            plan(&crossings, change, &element, out)?;
        }
    }
    Ok(())
}

/// What the key `change` of an event says.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Kind {
    Cut,
    Restore,
    Renumber,
}

fn event_kind(table: &Reader<'_>) -> Result<Option<Kind>> {
    let kinds = [("cut", Kind::Cut), ("restore", Kind::Restore), ("renumber", Kind::Renumber)];
    table.get("change").map(|named| named.word(&kinds)).transpose()
}

/// True if an address changes. Nothing else can change with it.
fn renumbers(table: &Reader<'_>) -> Result<bool> {
    if event_kind(table)? != Some(Kind::Renumber) {
        return Ok(false);
    }
    for key in ["link", "rate", "delay", "loss", "duplicate", "jitter", "direction", "hop"] {
        if let Some(named) = table.get(key) {
            return Err(named.error("an address has no such thing", "make it an event of its own"));
        }
    }
    Ok(true)
}

fn renumbering(
    table: &Reader<'_>,
    event: &Named<'_>,
    out: &CompiledScenario,
) -> Result<PlannedMove> {
    let named = table.get("path");
    let named = named.ok_or_else(|| event.error("it needs `path`", "say whose: path = 2"))?;
    let places: Vec<(usize, usize)> = (out.flows.iter().enumerate())
        .flat_map(|(flow, model)| (0..model.paths.len()).map(move |path| (flow, path)))
        .collect();
    let path = places[named_path(&named, out)?];
    let (at, after) = links::when(table, true, LinkChange::Restore).map(|w| (w.at, w.after))?;
    let away = table.get("for").map_or(Ok(Duration::ZERO), |named| named.duration())?;
    let ends = [("near", End::Near), ("far", End::Far)];
    let end = table.get("end").map_or(Ok(End::Near), |named| named.word(&ends))?;
    Ok(PlannedMove { at, after, path, end, away })
}

/// Which of the paths of all flows is named.
fn named_path(named: &Named<'_>, out: &CompiledScenario) -> Result<usize> {
    let paths = out.flows.iter().flat_map(|flow| &flow.paths);
    find(named, &paths.map(|path| path.name.as_str()).collect::<Vec<_>>())
}

/// Which of `names` is named, or numbered from 1.
fn find(named: &Named<'_>, names: &[&str]) -> Result<usize> {
    let text = named.text()?;
    let found = names.iter().position(|name| *name == text);
    let by_number = || text.parse::<usize>().ok()?.checked_sub(1).filter(|i| *i < names.len());
    found.or_else(by_number).ok_or_else(|| {
        let remedy = format!("write {}", super::error::list(names.iter().copied()));
        named.error(format!("there is no `{text}`"), remedy)
    })
}

/// The links that an event changes.
fn place_of_event(
    table: &Reader<'_>,
    event: &Named<'_>,
    out: &CompiledScenario,
) -> Result<Vec<Crossing>> {
    match (table.get("path"), table.get("link")) {
        (Some(named), None) => {
            let index = named_path(&named, out)?;
            let mut paths = out.flows.iter().flat_map(|flow| &flow.paths);
            Ok(paths.nth(index).map(|path| path.crossings.clone()).unwrap_or_default())
        }
        (None, Some(named)) => {
            let names: Vec<&str> = out.cables.iter().map(|cable| cable.name.as_str()).collect();
            Ok(vec![Crossing { cable: find(&named, &names)?, is_reversed: false }])
        }
        _ => Err(event.error("it needs one of `path` and `link`", "say what changes: path = 2")),
    }
}

fn changes_of_event(table: &Reader<'_>, event: &Named<'_>) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    let mut add = |change| -> Result<()> {
        changes.push(links::when(table, false, change)?);
        Ok(())
    };
    if let Some(rate) = table.get("rate") {
        add(LinkChange::Rate(rate.rate()?))?;
    }
    if let Some(delay) = table.get("delay") {
        add(LinkChange::Delay(delay.duration()?))?;
    }
    if let Some(loss) = table.get("loss") {
        add(LinkChange::Loss(links::loss(&loss)?))?;
    }
    if let Some(duplicate) = table.get("duplicate") {
        add(LinkChange::Duplicate(duplicate.ratio()?))?;
    }
    if let Some(jitter) = table.get("jitter") {
        add(LinkChange::Jitter(jitter.duration()?))?;
    }
    if let Some(corrupt) = table.get("corrupt") {
        add(LinkChange::Corrupt(corrupt.ratio()?))?;
    }
    if let Some(mtu) = table.get("mtu") {
        add(LinkChange::Mtu(links::mtu(&mtu)?))?;
    }
    match event_kind(table)? {
        Some(Kind::Cut) => changes.extend(links::cut(table)?),
        Some(Kind::Restore) => changes.push(links::when(table, true, LinkChange::Restore)?),
        Some(Kind::Renumber) | None => {}
    }
    if changes.is_empty() {
        let remedy = "add change = \"cut\" or \"renumber\", or a new rate, delay, loss, duplicate, \
                      jitter, corrupt or mtu";
        return Err(event.error("nothing changes", remedy));
    }
    Ok(changes)
}
