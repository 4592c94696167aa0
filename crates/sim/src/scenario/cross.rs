//! Cross-traffic, as the file says it.

use std::time::Duration;

use manypath_proto::Instant;

use super::error::ScenarioError;
use super::read::{Named, Reader};
use super::tree::Value;
use crate::cross::{CrossTraffic, Pattern};
use crate::spec::Rate;

type Result<T> = std::result::Result<T, ScenarioError>;

/// Cross-traffic of one kind or the other.
#[derive(Clone, Debug)]
pub(super) enum Traffic {
    /// Packets of which only the size counts; true for those of the reverse direction.
    Blank(Vec<(bool, CrossTraffic)>),
    /// Associations of one path that send without end.
    Responsive { count: usize, start: Duration, until: Option<Duration> },
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Model {
    Pareto,
    Cbr,
    Responsive,
}

/// Most of it, as a share of the slowest link's rate: more only drops more at its entry.
const MOST_LOAD: f64 = 10.0;

/// Reads the keys of [`CROSS_SETTINGS`](super::keys::CROSS_SETTINGS). `slowest` is the lowest rate
/// of the way.
pub(super) fn read(table: &Reader<'_>, slowest: Rate) -> Result<Traffic> {
    let models =
        [("pareto", Model::Pareto), ("cbr", Model::Cbr), ("responsive", Model::Responsive)];
    let model = table.get("model").map_or(Ok(Model::Pareto), |named| named.word(&models))?;
    if model == Model::Responsive {
        return responsive(table);
    }
    let mut traffic = CrossTraffic::papers(0.0);
    let whole = |key, most| table.get(key).map(|named| named.whole(1..=most)).transpose();
    if let Some(nodes) = whole("nodes", 1000)? {
        traffic.nodes = nodes as usize;
    }
    if let Some(sizes) = table.get("sizes") {
        traffic.packet_sizes = packet_sizes(&sizes)?;
    }
    if let Some(count) = whole("generators", 1000)? {
        let sizes = traffic.packet_sizes.iter().copied().cycle();
        traffic.packet_sizes = sizes.take(count as usize).collect();
    }
    traffic.pattern = pattern(table, model)?;
    if let Some(rate) = table.get("access_rate") {
        traffic.access_rate = rate.rate()?;
    }
    if let Some(delay) = table.get("access_delay") {
        traffic.access_delay = range(&delay)?;
    }
    if let Some(start) = table.get("start") {
        let (first, last) = range(&start)?;
        traffic.start = (Instant::ZERO + first, Instant::ZERO + last);
    }
    let (forward, reverse) = loads(table, slowest)?;
    let with = |is_reverse, load| (is_reverse, CrossTraffic { load, ..traffic.clone() });
    let both = [with(false, forward), with(true, reverse)];
    Ok(Traffic::Blank(both.into_iter().filter(|(_, traffic)| traffic.load > 0.0).collect()))
}

/// The share of the slowest link's rate, each way.
fn loads(table: &Reader<'_>, slowest: Rate) -> Result<(f64, f64)> {
    let Some(bits) = slowest.bits_per_second() else {
        let remedy = "give one of its links a rate";
        return Err(table
            .place
            .error(format!("{} is over no link of finite rate", table.name), remedy));
    };
    let pair = match (table.get("load"), table.get("rate")) {
        (Some(load), None) => load.both(load_of)?,
        (None, Some(rate)) => {
            let share = |named: &Named<'_>| match named.rate()?.bits_per_second() {
                Some(rate) => Ok(rate as f64 / bits as f64),
                None => Err(named.error("it has no end", "write a rate such as \"5 Mbit/s\"")),
            };
            rate.both(share)?
        }
        _ => {
            let what = format!("{} needs one of `load` and `rate`", table.name);
            return Err(table.place.error(what, "say how much: load = \"50 %\""));
        }
    };
    if pair.0.max(pair.1) > MOST_LOAD {
        let what = format!("{}: more than ten times the rate of the slowest link", table.name);
        return Err(table.place.error(what, "write a smaller load or rate"));
    }
    Ok(pair)
}

/// A share that may be above 100 %.
fn load_of(named: &Named<'_>) -> Result<f64> {
    let text = named.text()?;
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (text.trim(), 1.0),
    };
    let load = number.parse::<f64>().ok().map(|number| number / scale);
    load.filter(|load| (0.0..=MOST_LOAD).contains(load)).ok_or_else(|| {
        let remedy = "write a share of the slowest link's rate, such as \"50 %\"";
        named.error(format!("`{text}` is not possible"), remedy)
    })
}

fn responsive(table: &Reader<'_>) -> Result<Traffic> {
    let alone =
        ["load", "rate", "nodes", "sizes", "shape", "burst", "idle", "access_rate", "access_delay"];
    if let Some(named) = alone.iter().find_map(|key| table.get(key)) {
        let remedy = "remove it; `generators` says how many associations send";
        return Err(named.error("responsive traffic takes what rate it gets", remedy));
    }
    let count = table.get("generators").map_or(Ok(1), |named| named.whole(1..=100))?;
    Ok(Traffic::Responsive {
        count: count as usize,
        start: table.get("start").map_or(Ok(Duration::ZERO), |named| named.duration())?,
        until: table.get("until").map(|named| named.duration()).transpose()?,
    })
}

fn pattern(table: &Reader<'_>, model: Model) -> Result<Pattern> {
    let burst_keys = ["shape", "burst", "idle"];
    if model == Model::Cbr {
        return match burst_keys.iter().find_map(|key| table.get(key)) {
            Some(named) => Err(named.error("a constant rate has no bursts", "remove it")),
            None => Ok(Pattern::Cbr),
        };
    }
    let half = Duration::from_millis(500);
    let length = |key| -> Result<Duration> {
        let Some(named) = table.get(key) else { return Ok(half) };
        match named.duration()? {
            Duration::ZERO => Err(named.error("zero", "write a time such as \"500 ms\"")),
            length => Ok(length),
        }
    };
    let shape = match table.get("shape") {
        None => 1.5,
        Some(named) => {
            let text = named.text()?;
            let shape = text.parse::<f64>().ok().filter(|shape| *shape > 1.0 && *shape <= 100.0);
            let remedy = "write a number above 1, such as 1.5: below, bursts have no mean";
            shape.ok_or_else(|| named.error(format!("`{text}` is not possible"), remedy))?
        }
    };
    Ok(Pattern::ParetoOnOff { shape, mean_on: length("burst")?, mean_off: length("idle")? })
}

fn packet_sizes(named: &Named<'_>) -> Result<Vec<u32>> {
    let sizes = named.elements()?;
    if sizes.is_empty() || sizes.len() > 1000 {
        return Err(
            named.error("no sizes, or too many", "write up to 1000, such as [44, 576, 1500]")
        );
    }
    sizes.iter().map(|size| size.whole(1..=65_535).map(|size| size as u32)).collect()
}

/// One time, or two between which each is drawn.
fn range(named: &Named<'_>) -> Result<(Duration, Duration)> {
    if !matches!(named.item.value, Value::List(_)) {
        let one = named.duration()?;
        return Ok((one, one));
    }
    let remedy = "write one time, or the least and the most: [\"5 ms\", \"20 ms\"]";
    match &named.elements()?[..] {
        [least, most] => {
            let (first, last) = (least.duration()?, most.duration()?);
            if first > last {
                Err(named.error("the least is above the most", remedy))
            } else {
                Ok((first, last))
            }
        }
        _ => Err(named.error("not two times", remedy)),
    }
}
