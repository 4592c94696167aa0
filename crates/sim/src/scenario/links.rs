//! Links and what happens to them, as the file says it.

use std::time::Duration;

use super::error::ScenarioError;
use super::keys::{CHANGE, DOWN, LOSS, PAUSES, POLICER, RED, REORDER};
use super::model::{After, Way, queue_of_bdp};
use super::read::{Named, Reader};
use super::tree::Value;
use crate::link::lost::LostPackets;
use crate::link::pauses::Pauses;
use crate::link::policer::Policer;
use crate::spec::{GilbertElliott, LinkChange, LinkSpec, Loss, QueueLimit, Rate, Red};

type Result<T> = std::result::Result<T, ScenarioError>;

/// A queue before the path around it is known.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Queue {
    Limit(QueueLimit),
    /// Bandwidth-delay products.
    Bdp(f64),
}

/// The keys of a link, for each direction, forward first.
#[derive(Clone, Debug)]
pub(super) struct Settings<'t> {
    pub(super) rate: Option<(Rate, Rate)>,
    pub(super) delay: Option<(Duration, Duration)>,
    queue: Option<(Queue, Queue)>,
    red: Option<(Red, Red)>,
    policer: Option<(Policer, Policer)>,
    pauses: Option<(Pauses, Pauses)>,
    loss: Option<(Loss, Loss)>,
    lost: Option<(LostPackets, LostPackets)>,
    duplicate: Option<(f64, f64)>,
    reorder: Option<((f64, Duration), (f64, Duration))>,
    jitter: Option<(Duration, Duration)>,
    corrupt: Option<(f64, f64)>,
    mtu: Option<(Option<u32>, Option<u32>)>,
    icmp: Option<(bool, bool)>,
    reader: Reader<'t>,
}

/// The keys that a path with hops passes on to its slowest hop.
pub(super) const PASSED_ON: [&str; 12] = [
    "loss",
    "lost",
    "queue",
    "red",
    "policer",
    "pauses",
    "duplicate",
    "reorder",
    "jitter",
    "corrupt",
    "mtu",
    "icmp",
];

impl<'t> Settings<'t> {
    pub(super) fn read(reader: Reader<'t>) -> Result<Settings<'t>> {
        Ok(Settings {
            rate: both(&reader, "rate", |named| named.rate())?,
            delay: both(&reader, "delay", |named| named.duration())?,
            queue: both(&reader, "queue", queue)?,
            red: both(&reader, "red", red)?,
            policer: both(&reader, "policer", policer)?,
            pauses: both(&reader, "pauses", pauses)?,
            loss: both(&reader, "loss", loss)?,
            lost: both(&reader, "lost", lost)?,
            duplicate: both(&reader, "duplicate", |named| named.ratio())?,
            reorder: both(&reader, "reorder", reorder)?,
            jitter: both(&reader, "jitter", |named| named.duration())?,
            corrupt: both(&reader, "corrupt", |named| named.ratio())?,
            mtu: both(&reader, "mtu", mtu)?,
            icmp: both(&reader, "icmp", |named| named.word(&[("true", true), ("false", false)]))?,
            reader,
        })
    }

    /// Adds what `path` says of its slowest hop, which this is.
    pub(super) fn pass_on(&mut self, path: &Settings<'_>) -> Result<()> {
        for key in PASSED_ON {
            if let (Some(of_path), Some(own)) = (path.reader.get(key), self.reader.get(key)) {
                let remedy = format!("keep one of them; {} is of the slowest hop", of_path.name);
                return Err(of_path.error(format!("{} says it too", own.name), remedy));
            }
        }
        self.queue = self.queue.or(path.queue);
        self.red = self.red.or(path.red);
        self.policer = self.policer.or(path.policer);
        self.pauses = self.pauses.or(path.pauses);
        self.loss = self.loss.or(path.loss);
        self.lost = self.lost.take().or_else(|| path.lost.clone());
        self.duplicate = self.duplicate.or(path.duplicate);
        self.reorder = self.reorder.or(path.reorder);
        self.jitter = self.jitter.or(path.jitter);
        self.corrupt = self.corrupt.or(path.corrupt);
        self.mtu = self.mtu.or(path.mtu);
        self.icmp = self.icmp.or(path.icmp);
        Ok(())
    }

    /// The links, there and back, but for queues that need the path.
    pub(super) fn links(&self) -> Result<[LinkSpec; 2]> {
        self.reader.need("rate", "\"10 Mbit/s\"")?;
        self.reader.need("delay", "\"25 ms\"")?;
        Ok(self.made())
    }

    /// The same for a link whose rate and delay are known otherwise, both ways.
    pub(super) fn with(&self, rate: Option<Rate>, delay: Option<Duration>) -> Settings<'t> {
        let mut own = self.clone();
        own.rate = rate.map(|rate| (rate, rate)).or(own.rate);
        own.delay = delay.map(|delay| (delay, delay)).or(own.delay);
        own
    }

    /// The links, there and back, with whatever rate and delay are known.
    pub(super) fn made(&self) -> [LinkSpec; 2] {
        let make = |i: usize| {
            let rate = self.rate.map_or(Rate::INFINITE, |pair| side(pair, i));
            let delay = self.delay.map_or(Duration::ZERO, |pair| side(pair, i));
            let mut link = LinkSpec::new(rate, delay);
            link.red = self.red.map(|pair| side(pair, i));
            link.policer = self.policer.map(|pair| side(pair, i));
            link.pauses = self.pauses.map(|pair| side(pair, i));
            link.loss = self.loss.map_or(Loss::NONE, |pair| side(pair, i));
            link.lost = self.lost.clone().map(|pair| side(pair, i)).unwrap_or_default();
            link.duplicate = self.duplicate.map_or(0.0, |pair| side(pair, i));
            (link.reorder, link.reorder_by) =
                self.reorder.map_or((0.0, Duration::ZERO), |pair| side(pair, i));
            link.jitter = self.jitter.map_or(Duration::ZERO, |pair| side(pair, i));
            link.corrupt = self.corrupt.map_or(0.0, |pair| side(pair, i));
            link.mtu = self.mtu.and_then(|pair| side(pair, i));
            link.icmp = self.icmp.is_none_or(|pair| side(pair, i));
            link
        };
        [make(0), make(1)]
    }

    /// The queues, there and back, given what a bdp is made of; `None` where the file says none.
    pub(super) fn queues(&self, rate: Rate, rtt: Duration) -> [Option<QueueLimit>; 2] {
        let limit = |queue| match queue {
            Queue::Limit(limit) => limit,
            Queue::Bdp(products) => queue_of_bdp(products, rate, rtt),
        };
        [0, 1].map(|i| self.queue.map(|pair| limit(side(pair, i))))
    }
}

fn side<T>(pair: (T, T), i: usize) -> T {
    if i == 0 { pair.0 } else { pair.1 }
}

fn both<T: Clone>(
    reader: &Reader<'_>,
    key: &'static str,
    read: impl Fn(&Named<'_>) -> Result<T>,
) -> Result<Option<(T, T)>> {
    reader.get(key).map(|named| named.both(&read)).transpose()
}

fn queue(named: &Named<'_>) -> Result<Queue> {
    let text = named.text()?;
    if text == "unlimited" {
        return Ok(Queue::Limit(QueueLimit::Unlimited));
    }
    let wrong = |what: &str| {
        named.error(
            format!("`{text}` {what}"),
            "write packets, a size, bdp or unlimited: \"50 packets\", \"64 KiB\", \"2 bdp\"",
        )
    };
    let number = |unit: &str| text.strip_suffix(unit).map(str::trim);
    if let Some(packets) = number("packets").or(number("packet")) {
        let packets = packets.parse().map_err(|_| wrong("is not a queue"))?;
        let is_possible = (1..=1_000_000_000).contains(&packets);
        return if is_possible {
            Ok(Queue::Limit(QueueLimit::Packets(packets)))
        } else {
            Err(wrong("is not possible"))
        };
    }
    if let Some(products) = number("bdp") {
        let products: f64 = products.parse().map_err(|_| wrong("is not a queue"))?;
        let is_possible = products > 0.0 && products <= 1e6;
        return if is_possible { Ok(Queue::Bdp(products)) } else { Err(wrong("is not possible")) };
    }
    let is_bare = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_bare {
        return Err(wrong("has no unit"));
    }
    match manypath_proto::config::units::parse_size(&text) {
        Ok(bytes) if bytes >= 1500 => Ok(Queue::Limit(QueueLimit::Bytes(bytes as usize))),
        Ok(_) => Err(wrong("does not hold a packet of 1500 bytes")),
        Err(_) => Err(wrong("is not a queue")),
    }
}

/// The longest packet, in bytes.
pub(super) fn mtu(named: &Named<'_>) -> Result<Option<u32>> {
    if named.text()? == "unlimited" {
        return Ok(None);
    }
    let bytes = named.whole(68..=65_535)?;
    Ok(u32::try_from(bytes).ok())
}

/// A probability, or a model of losses.
pub(super) fn loss(named: &Named<'_>) -> Result<Loss> {
    if !matches!(named.item.value, Value::Table(_)) {
        return Ok(Loss::Bernoulli(named.ratio()?));
    }
    let table = named.table(&LOSS)?;
    let need = |key, example| table.need(key, example)?.ratio();
    let or = |key, default| table.get(key).map_or(Ok(default), |named| named.ratio());
    let is_bernoulli = table
        .need("model", "\"gilbert-elliott\"")?
        .word(&[("bernoulli", true), ("gilbert-elliott", false)])?;
    let foreign: &[&'static str] = if is_bernoulli {
        &["to_bad", "to_good", "loss_in_good", "loss_in_bad"]
    } else {
        &["probability"]
    };
    if let Some(named) = foreign.iter().find_map(|key| table.get(key)) {
        return Err(
            named.error("this model has no such key", "remove it, or choose the other model")
        );
    }
    if is_bernoulli {
        return Ok(Loss::Bernoulli(need("probability", "\"1 %\"")?));
    }
    Ok(Loss::GilbertElliott(GilbertElliott {
        to_bad: need("to_bad", "\"0.5 %\"")?,
        to_good: need("to_good", "\"25 %\"")?,
        loss_in_good: or("loss_in_good", 0.0)?,
        loss_in_bad: or("loss_in_bad", 1.0)?,
    }))
}

/// Numbers of packets.
fn lost(named: &Named<'_>) -> Result<LostPackets> {
    named.text()?.parse().map_err(|wrong: String| {
        let what = format!("`{wrong}` is not the number of a packet of a round");
        named.error(what, "write \"17, 203 of 1000\" or \"none\"")
    })
}

fn red(named: &Named<'_>) -> Result<Red> {
    let table = named.table(&RED)?;
    let mut red = Red::default();
    let packets = |key, default| match table.get(key) {
        Some(named) => match queue(&named)? {
            Queue::Limit(QueueLimit::Packets(packets)) => Ok(packets as f64),
            _ => Err(named.error("not in packets", "write packets, such as \"15 packets\"")),
        },
        None => Ok(default),
    };
    (red.min, red.max) = (packets("min", red.min)?, packets("max", red.max)?);
    if red.min >= red.max {
        return Err(named.error("min is not below max", "raise max, or lower min"));
    }
    let ratio = |key, default| table.get(key).map_or(Ok(default), |named| named.ratio());
    red.max_probability = ratio("max_probability", red.max_probability)?;
    red.weight = ratio("weight", red.weight)?;
    let switch = [("true", true), ("false", false)];
    red.marks = table.get("marks").map_or(Ok(red.marks), |named| named.word(&switch))?;
    red.gentle = table.get("gentle").map_or(Ok(red.gentle), |named| named.word(&switch))?;
    if let Some(named) = table.get("mean_packet") {
        let size = named.size()?;
        let fits = u32::try_from(size).ok().filter(|size| *size > 0);
        red.mean_packet =
            fits.ok_or_else(|| named.error("not the size of a packet", "write \"500 B\""))?;
    }
    Ok(red)
}

fn policer(named: &Named<'_>) -> Result<Policer> {
    let table = named.table(&POLICER)?;
    let burst = table.need("burst", "\"64 KiB\"")?;
    let bytes = u32::try_from(burst.size()?).ok().filter(|bytes| *bytes >= 1500);
    let wrong = || burst.error("not a bucket", "write 1500 B or more, and less than 4 GiB");
    Ok(Policer {
        rate: table.need("rate", "\"5 Mbit/s\"")?.rate()?,
        burst: bytes.ok_or_else(wrong)?,
    })
}

fn pauses(named: &Named<'_>) -> Result<Pauses> {
    let table = named.table(&PAUSES)?;
    let length = table.need("length", "\"200 ms\"")?.duration()?;
    let every = table.need("every", "\"2 s\"")?;
    if length.is_zero() || every.duration()? <= length {
        return Err(every.error("no pauses", "write a length, and a longer time for every"));
    }
    let every = every.duration()?;
    let first = table.get("first").map_or(Ok(every), |named| named.duration())?;
    Ok(Pauses { first, length, every })
}

fn reorder(named: &Named<'_>) -> Result<(f64, Duration)> {
    let table = named.table(&REORDER)?;
    let probability = table.need("probability", "\"1 %\"")?.ratio()?;
    Ok((probability, table.need("by", "\"5 ms\"")?.duration()?))
}

/// A change as the file says it, before the links it concerns are known.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) at: Duration,
    pub(super) after: After,
    pub(super) way: Way,
    /// Counted from 1.
    pub(super) hop: Option<usize>,
    /// True if all hops change where none is named.
    pub(super) is_of_all_hops: bool,
    pub(super) change: LinkChange,
}

/// When and where a change happens; `change` says what it is.
pub(super) fn when(table: &Reader<'_>, is_of_all_hops: bool, change: LinkChange) -> Result<Change> {
    let after = [("start", After::Start), ("first data", After::FirstData)];
    let ways = [("both", Way::Both), ("forward", Way::Forward), ("reverse", Way::Reverse)];
    let word = |key| table.get(key);
    Ok(Change {
        at: table.need("at", "\"5 s\"")?.duration()?,
        after: word("after").map_or(Ok(After::Start), |named| named.word(&after))?,
        way: word("direction").map_or(Ok(Way::Both), |named| named.word(&ways))?,
        hop: word("hop").map(|n| n.whole(1..=1000)).transpose()?.map(|hop| hop as usize),
        is_of_all_hops,
        change,
    })
}

/// A cut, and its end if it has one.
pub(super) fn cut(table: &Reader<'_>) -> Result<Vec<Change>> {
    let cut = when(table, true, LinkChange::Cut)?;
    let Some(length) = table.get("for") else { return Ok(vec![cut]) };
    let duration = length.duration()?;
    if duration.is_zero() {
        return Err(length.error("a cut of no length", "remove it, or write how long it lasts"));
    }
    let restore = Change { at: cut.at + duration, change: LinkChange::Restore, ..cut.clone() };
    Ok(vec![cut, restore])
}

/// The keys of [`SCHEDULES`](super::keys::SCHEDULES).
pub(super) fn schedules(reader: &Reader<'_>) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    for element in reader.elements("down")? {
        changes.extend(cut(&element.table(&DOWN)?)?);
    }
    for element in reader.elements("rate_changes")? {
        let table = element.table(&CHANGE)?;
        let to = LinkChange::Rate(table.need("to", "\"1 Mbit/s\"")?.rate()?);
        changes.push(when(&table, false, to)?);
    }
    for element in reader.elements("delay_changes")? {
        let table = element.table(&CHANGE)?;
        let to = LinkChange::Delay(table.need("to", "\"50 ms\"")?.duration()?);
        changes.push(when(&table, false, to)?);
    }
    for element in reader.elements("loss_changes")? {
        let table = element.table(&CHANGE)?;
        let to = LinkChange::Loss(loss(&table.need("to", "\"5 %\"")?)?);
        changes.push(when(&table, false, to)?);
    }
    Ok(changes)
}
