//! The network that a transfer crossed, as far as its record shows it.

use serde::Serialize;

use crate::curve::{Curve, Step, steps};
use crate::delay::Floors;
use crate::loss::{LossPiece, Losses, losses};
use crate::outage::{Outage, outages};
use crate::rate::{Load, Rates, rates};
use crate::record::Record;
use crate::shared::groups;

/// A transfer must last as long, in seconds and in round-trip times, to show a network.
const SHORTEST_S: f64 = 0.5;
const SHORTEST_ROUND_TRIPS: f64 = 10.0;
/// A path that carried a smaller part of all is none that was used.
const UNUSED: f64 = 0.002;
/// If more of the time is unclear, nothing else is left to look at.
const MOSTLY_UNCLEAR: f64 = 0.7;
/// The least queue of a link whose queue never was full, in packets.
const QUEUE_PACKETS: f64 = 50.0;

/// A network of paths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Network {
    /// The paths that carried data, in the order of the record.
    pub paths: Vec<PathEstimate>,
    /// Bottlenecks that some of them share.
    pub shared: Vec<SharedLink>,
    /// Numbers of the paths that carried too little to say anything.
    pub unused: Vec<u16>,
}

/// A path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathEstimate {
    /// Its number in the record, from 1.
    pub path: u16,
    /// The sender's address.
    pub local: String,
    /// The receiver's.
    pub remote: String,
    /// Delay one way without queues: half of the shortest round-trip time, in seconds.
    pub one_way_delay_s: f64,
    /// The rate of its bottleneck; of a shared one the whole rate.
    pub rates: Rates,
    /// The queue before it.
    pub queue: Queue,
    /// Random losses.
    pub losses: Vec<LossPiece>,
    /// Numbers of the packets lost at random, from 1, of how many; `None` if there were none, or
    /// more than 2000.
    pub lost_packets: Option<(Vec<u64>, u64)>,
    /// DATA chunks lost at random, and by a full queue.
    pub chunks_lost: (u64, u64),
    /// Outages.
    pub outages: Vec<Outage>,
    /// The largest IP packet that it carried, in bytes.
    pub mtu_bytes: u64,
    /// User bytes that it delivered.
    pub carried_bytes: u64,
}

/// A drop-tail queue.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Queue {
    /// Its capacity.
    pub bytes: u64,
    /// It was never full: it may be longer.
    pub is_lower_bound: bool,
}

/// A link that several paths share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharedLink {
    /// Indices in [`Network::paths`].
    pub paths: Vec<usize>,
    /// Its rate.
    pub rates: Rates,
    /// Its queue.
    pub queue: Queue,
}

/// A record that shows no network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EstimateError {
    /// No path carried anything.
    #[error("nothing was acknowledged on any path")]
    Nothing,
    /// It is too short.
    #[error(
        "the transfer lasted {time_s:.2} s; it takes {needed_s:.2} s or more to tell a network"
    )]
    TooShort {
        /// Its time in seconds.
        time_s: f64,
        /// The least time.
        needed_s: f64,
    },
}

/// A path of the record on the way to an estimate.
struct Known<'r> {
    record: &'r crate::record::PathRecord,
    steps: Vec<Step>,
    load: Load,
    base: f64,
}

impl Network {
    /// The network that the record shows.
    ///
    /// # Errors
    /// Says why the record shows none.
    pub fn estimate(record: &Record) -> Result<Network, EstimateError> {
        let all: Vec<_> = record.paths.iter().map(|path| (path, steps(path))).collect();
        let total: u64 = all.iter().map(|(_, steps)| carried(steps)).sum();
        let wire = wire_ratio(record, total);
        let by_number: Vec<_> =
            all.iter().map(|(path, steps)| (path.number, steps.as_slice())).collect();
        let floors = Floors::of(&by_number);
        let numbers: Vec<u16> = all.iter().map(|(path, _)| path.number).collect();
        let unclear = unclear(all.iter().map(|(_, steps)| steps.as_slice()), record.time_s());
        let (mut known, mut unused) = (Vec::new(), Vec::new());
        for (index, (path, steps)) in all.into_iter().enumerate() {
            let share = carried(&steps) as f64 / total.max(1) as f64;
            let base = if share >= UNUSED { floors.base(index) } else { None };
            let Some(base) = base else {
                unused.push(path.number);
                continue;
            };
            let queueing = |step: &Step| {
                let (rtt, via) = step.rtt?;
                let via = via.and_then(|via| numbers.iter().rposition(|n| *n == via));
                Some((step.at(), floors.queueing(index, via, rtt)))
            };
            let bits = Curve::new(&steps, |step| step.acked as f64 * wire * 8.0);
            let delays = steps.iter().filter_map(queueing).collect();
            let late = steps.iter().filter_map(|s| Some((s.at(), s.rtt?.0 - base))).collect();
            let outages = outages_of(path, &steps, base);
            let load = Load { late, ..Load::new(bits, delays, outages, unclear.clone(), base) };
            known.push(Known { record: path, steps, load, base });
        }
        let until = record.time_s();
        let slowest = known.iter().map(|path| path.base).fold(0.0, f64::max);
        let needed_s = SHORTEST_S.max(SHORTEST_ROUND_TRIPS * slowest);
        if known.is_empty() {
            return Err(EstimateError::Nothing);
        }
        if until < needed_s {
            return Err(EstimateError::TooShort { time_s: until, needed_s });
        }
        Ok(Network::of(record, &known, until, unused))
    }

    fn of(record: &Record, known: &[Known<'_>], until: f64, unused: Vec<u16>) -> Network {
        let loads: Vec<&Load> = known.iter().map(|path| &path.load).collect();
        let index = |number: u16| known.iter().rposition(|path| path.record.number == number);
        let found: Vec<(usize, usize)> =
            record.found_shared.iter().filter_map(|(a, b)| index(*a).zip(index(*b))).collect();
        let groups = groups(&loads, &found, until);
        let mut own: Vec<Option<(Rates, Losses)>> = vec![None; known.len()];
        for (number, path) in known.iter().enumerate() {
            let group = groups.iter().find(|group| group.contains(&number));
            let members: Vec<&Load> = match group {
                Some(group) => group.iter().map(|member| loads[*member]).collect(),
                None => vec![&path.load],
            };
            let rates = rates(&members, until, path.packet_bits());
            let losses = losses(&path.steps, &path.load, &rates, until);
            own[number] = Some((rates, losses));
        }
        let own: Vec<(Rates, Losses)> = own.into_iter().flatten().collect();
        let shared = groups.into_iter().map(|paths| {
            let (rates, _) = &own[paths[0]];
            let members = || paths.iter().map(|member| &own[*member].1);
            let longest = members().map(|l| l.longest_queue).fold(0.0, f64::max);
            let is_full = members().any(|losses| losses.is_full);
            let base = paths.iter().map(|member| known[*member].base).fold(0.0, f64::max);
            let packet = known[paths[0]].packet_bits() / 8.0;
            let queue = queue(longest, is_full, rates, base, packet);
            SharedLink { rates: rates.clone(), queue, paths }
        });
        let shared = shared.collect();
        let paths = known.iter().zip(own).map(|(path, (rates, losses))| {
            let packet = path.packet_bits() / 8.0;
            let (longest, is_full) = (losses.longest_queue, losses.is_full);
            // The packet of the shortest round trip took its time to be sent, too.
            let sending = packet.min(200.0) * 8.0 / rates.range().1.max(1.0);
            PathEstimate {
                path: path.record.number,
                local: path.record.local.clone(),
                remote: path.record.remote.clone(),
                one_way_delay_s: ((path.base - sending) / 2.0).max(0.0),
                queue: queue(longest, is_full, &rates, path.base, packet),
                losses: losses.random,
                lost_packets: losses.numbers,
                chunks_lost: losses.counts,
                outages: path.load.outages.clone(),
                mtu_bytes: path.mtu(),
                carried_bytes: carried(&path.steps),
                rates,
            }
        });
        Network { paths: paths.collect(), shared, unused }
    }
}

impl Known<'_> {
    fn mtu(&self) -> u64 {
        self.record.samples.iter().map(|(_, sample)| sample.mtu_bytes).max().unwrap_or(0)
    }

    fn packet_bits(&self) -> f64 {
        self.mtu().clamp(100, 65_535) as f64 * 8.0
    }
}

/// User bytes that a path delivered.
fn carried(steps: &[Step]) -> u64 {
    steps.iter().map(|step| step.acked).sum()
}

/// Bytes of IP packets for each user byte.
fn wire_ratio(record: &Record, acked: u64) -> f64 {
    let last = || record.paths.iter().filter_map(|path| path.samples.last()).map(|(_, last)| last);
    let packets: u64 = last().map(|s| s.packets_sent).sum();
    let bytes: u64 = last().map(|s| s.bytes_sent).sum();
    let chunks: u64 = last().map(|s| s.data_chunks_sent).sum();
    let again: u64 = last().map(|s| s.retransmissions + s.redundant_chunks_sent).sum();
    let once = chunks.saturating_sub(again).max(1);
    let in_flight: u64 = last().map(|s| s.flight_size_bytes).sum();
    let user_per_chunk = (acked + in_flight) as f64 / once as f64;
    let sent = user_per_chunk * chunks as f64;
    let wire = bytes + packets * record.recording.header_bytes;
    if sent > 0.0 { (wire as f64 / sent).clamp(1.0, 10.0) } else { 1.0 }
}

/// The times, in order, in which paths carried copies of what others carried: which of two arrived
/// is unclear, and so is what was lost. None if that was most of the time.
fn unclear<'s>(paths: impl Iterator<Item = &'s [Step]>, until: f64) -> Vec<(f64, f64)> {
    let mut times: Vec<(f64, f64)> = Vec::new();
    for steps in paths {
        let mut rtt = 0.0;
        for step in steps {
            rtt = step.rtt.map_or(rtt, |(rtt, _)| rtt);
            if step.copies > 0 {
                times.push((step.from, step.to + 2.0 * rtt));
            }
        }
    }
    times.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut merged: Vec<(f64, f64)> = Vec::new();
    for (from, to) in times {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    let total: f64 = merged.iter().map(|(from, to)| to.min(until) - from.min(until)).sum();
    if total > MOSTLY_UNCLEAR * until { Vec::new() } else { merged }
}

/// The outages of a path, and the times before it came and after it went.
fn outages_of(path: &crate::record::PathRecord, steps: &[Step], base: f64) -> Vec<Outage> {
    let mut all = outages(steps, base);
    if path.added_s > 1.0 {
        all.insert(0, Outage { from_s: 0.0, to_s: Some(path.added_s) });
    }
    if let Some(removed) = path.removed_s {
        all.retain(|outage| outage.from_s < removed);
        all.push(Outage { from_s: removed, to_s: None });
    }
    all
}

/// The queue of a link: the longest that was seen, if it was full then.
fn queue(longest: f64, is_full: bool, rates: &Rates, base: f64, packet: f64) -> Queue {
    if is_full {
        return Queue { bytes: (longest + packet) as u64, is_lower_bound: false };
    }
    let product = rates.range().1 * base / 8.0;
    let bytes = (2.0 * longest).max(product).max(QUEUE_PACKETS * packet);
    Queue { bytes: bytes as u64, is_lower_bound: true }
}
