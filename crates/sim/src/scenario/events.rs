//! Events: changes of links, addresses and ranks at a time.

use std::time::Duration;

use super::error::{self, ScenarioError};
use super::keys::EVENT;
use super::links::{self, Change};
use super::model::{
    CompiledScenario, Crossing, PlannedChange, PlannedMove, PlannedRank, PlannedReboot, direction,
};
use super::read::{Named, Reader};
use crate::ids::End;
use crate::spec::LinkChange;

type Result<T> = std::result::Result<T, ScenarioError>;

/// Keys of an event that only a link can have.
const OF_LINKS: [&str; 7] = ["rate", "delay", "loss", "duplicate", "jitter", "direction", "hop"];

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
pub(super) fn events(top: &Reader<'_>, out: &mut CompiledScenario) -> Result<()> {
    for element in top.elements("event")? {
        let table = element.table(&EVENT)?;
        if event_kind(&table)? == Some(Kind::Reboot) {
            let planned = reboot(&table, &element, out)?;
            out.reboots.push(planned);
            continue;
        }
        if let Some(nat) = table.get("nat") {
            return Err(nat.error("only `reboot` is of a NAT", "write change = \"reboot\""));
        }
        if renumbers(&table)? {
            let planned = renumbering(&table, &element, out)?;
            out.moves.push(planned);
            continue;
        }
        if let Some(end) = table.get("end") {
            return Err(end.error("only `renumber` is of an end", "write change = \"renumber\""));
        }
        if let Some(rank) = table.get("rank") {
            let planned = ranking(&table, &rank, out)?;
            out.ranks.push(planned);
            continue;
        }
        let crossings = place_of_event(&table, &element, out)?;
        let changes = changes_of_event(&table, &element)?;
        for change in changes {
            plan(&crossings, change, &element, out)?;
        }
    }
    Ok(())
}

/// Value of the key `change` of an event.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Kind {
    Cut,
    Restore,
    Renumber,
    Reboot,
}

fn event_kind(table: &Reader<'_>) -> Result<Option<Kind>> {
    let kinds = [
        ("cut", Kind::Cut),
        ("restore", Kind::Restore),
        ("renumber", Kind::Renumber),
        ("reboot", Kind::Reboot),
    ];
    table.get("change").map(|named| named.word(&kinds)).transpose()
}

/// True if an address changes. Nothing else can change with it.
fn renumbers(table: &Reader<'_>) -> Result<bool> {
    if event_kind(table)? != Some(Kind::Renumber) {
        return Ok(false);
    }
    for key in OF_LINKS.into_iter().chain(["link", "rank"]) {
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
    let path = place_of_path(&named, out)?;
    let (at, after) = links::when(table, true, LinkChange::Restore).map(|w| (w.at, w.after))?;
    let away = table.get("for").map_or(Ok(Duration::ZERO), |named| named.duration())?;
    let ends = [("near", End::Near), ("far", End::Far)];
    let end = table.get("end").map_or(Ok(End::Near), |named| named.word(&ends))?;
    Ok(PlannedMove { at, after, path, end, away })
}

/// A NAT reboots. Nothing else can change with it.
fn reboot(table: &Reader<'_>, event: &Named<'_>, out: &CompiledScenario) -> Result<PlannedReboot> {
    let others = ["path", "link", "rank", "corrupt", "mtu", "for", "end"];
    for key in OF_LINKS.into_iter().chain(others) {
        if let Some(named) = table.get(key) {
            return Err(named.error("a reboot has no such thing", "make it an event of its own"));
        }
    }
    let named = table.get("nat");
    let named = named.ok_or_else(|| event.error("it needs `nat`", "say whose: nat = \"near\""))?;
    if out.nats.is_empty() {
        return Err(named.error("there are no NATs", "describe one, such as [nat.near]"));
    }
    let nat = find(&named, &out.nats.names())?;
    let (at, after) = links::when(table, true, LinkChange::Restore).map(|w| (w.at, w.after))?;
    Ok(PlannedReboot { at, after, nat })
}

/// A path gets another rank. Nothing else can change with it.
fn ranking(table: &Reader<'_>, rank: &Named<'_>, out: &CompiledScenario) -> Result<PlannedRank> {
    for key in OF_LINKS.into_iter().chain(["link", "change", "corrupt", "mtu"]) {
        if let Some(named) = table.get(key) {
            return Err(named.error("a rank has no such thing", "make it an event of its own"));
        }
    }
    let named = table.get("path");
    let named = named.ok_or_else(|| rank.error("it needs `path`", "say whose: path = 2"))?;
    let path = place_of_path(&named, out)?;
    let (at, after) = links::when(table, true, LinkChange::Restore).map(|w| (w.at, w.after))?;
    Ok(PlannedRank { at, after, path, rank: rank.rank()? })
}

/// The flow of the path that is named, and its number there.
fn place_of_path(named: &Named<'_>, out: &CompiledScenario) -> Result<(usize, usize)> {
    let places: Vec<(usize, usize)> = (out.flows.iter().enumerate())
        .flat_map(|(flow, model)| (0..model.paths.len()).map(move |path| (flow, path)))
        .collect();
    Ok(places[named_path(named, out)?])
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
        let remedy = format!("write {}", error::list(names.iter().copied()));
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
        Some(Kind::Renumber | Kind::Reboot) | None => {}
    }
    if changes.is_empty() {
        let remedy = "add change = \"cut\" or \"renumber\", or a new rate, delay, loss, duplicate, \
                      jitter, corrupt, mtu or rank";
        return Err(event.error("nothing changes", remedy));
    }
    Ok(changes)
}

/// The hop with the lowest rate in the direction of the path; the first of several.
pub(super) fn slowest_crossing(crossings: &[Crossing], out: &CompiledScenario) -> usize {
    let rate = |i: &usize| {
        let link = direction(&out.cables, crossings[*i]);
        link.rate.bits_per_second().unwrap_or(u64::MAX)
    };
    (0..crossings.len()).min_by_key(rate).unwrap_or(0)
}
