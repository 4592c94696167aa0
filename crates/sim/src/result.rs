//! The result of a transfer, as one value.

use std::collections::BTreeSet;

use manypath_proto::{
    Event, Instant, PathId, PathRank, PathState, PathStats, SharedEvidence, T3_IN_A_ROW,
};
use serde::Serialize;

use crate::host::Host;
use crate::ids::LinkId;
use crate::network::Network;
use crate::traffic::{Lateness, Limited};

#[cfg(test)]
mod tests;

/// The result of the transfer from one host to another. It is printed as a JSON object for each
/// run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransferResult {
    /// The name of the scenario; empty if it has none.
    pub scenario: String,
    /// The sender's preset.
    pub preset: String,
    /// The seed of the run.
    pub seed: u64,
    /// True if everything handed to the association was delivered.
    pub completed: bool,
    /// User bytes delivered.
    pub bytes: u64,
    /// Time from the first message handed to the association to the last byte delivered, in
    /// seconds.
    pub transfer_time_s: f64,
    /// Time from the application's first call to send until the sender has a cumulative
    /// acknowledgement of everything, in seconds; `None` before that. Users of ns-2 measure this
    /// time.
    pub ack_time_s: Option<f64>,
    /// Time from that call to the first DATA chunk sent, in seconds.
    pub data_start_s: Option<f64>,
    /// `bytes` over `transfer_time_s`, in bits per second; 0 if nothing was delivered.
    pub goodput_bps: f64,
    /// Time from the first message handed to the association to the first byte delivered, in
    /// seconds.
    pub first_byte_s: Option<f64>,
    /// Time during which only the peer's receive buffer held the sender back, in seconds.
    pub receive_buffer_blocked_s: f64,
    /// The longest time between two deliveries, in seconds.
    pub max_delivery_gap_s: f64,
    /// 99th-percentile message latency in seconds: from `send` to the delivery of the whole
    /// message. Only where latencies are measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_latency_p99_s: Option<f64>,
    /// The fate of messages that may be given up; only where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<LimitedMessages>,
    /// Packets with data that routers marked (ECN), as the receiver counted them; only where there
    /// are any.
    #[serde(skip_serializing_if = "is_zero")]
    pub ecn_marks_received: u64,
    /// Bytes sent on all paths, SCTP headers included, per user byte delivered; `None` if none was
    /// delivered.
    pub overhead: Option<f64>,
    /// T3-rtx expirations on all paths.
    pub timeouts: u64,
    /// SACKs that caused fast retransmits, however many chunks each made lost.
    pub fast_retransmit_events: u64,
    /// DATA chunks that reached the receiver more than once.
    pub duplicates_received: u64,
    /// When a link of one of the paths first went down, in seconds since the run began.
    pub outage_begin_s: Option<f64>,
    /// Time from then until that path was first found inactive, in seconds.
    pub failure_detected_s: Option<f64>,
    /// Goodput during that outage, in bits per second. The outage ends when all links of the path
    /// are up again; if they never are, when the path is found inactive; or when the transfer is
    /// over, if that comes first. `None` if nothing was left to deliver, or if a path that fails
    /// for good had been found inactive before.
    pub outage_goodput_bps: Option<f64>,
    /// Findings on shared bottlenecks, if the sender looks for them.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedResult>,
    /// Hash over all events of the run, in hexadecimal.
    pub trace_hash: String,
    /// The sender's paths.
    pub paths: Vec<PathResult>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub(crate) fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The fate of messages that may be given up (RFC 3758, RFC 7496).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LimitedMessages {
    /// Messages that the association took.
    pub sent: usize,
    /// Messages that were delivered.
    pub delivered: usize,
    /// Of these, messages that were delivered within their lifetime, or have none.
    pub in_time: usize,
    /// Messages given up before anything of them was sent.
    pub dropped: u64,
    /// Messages given up after something of them was sent.
    pub abandoned: u64,
}

impl LimitedMessages {
    fn of(from: &Host, to: &Host) -> Option<LimitedMessages> {
        let times = lateness(from, to);
        let stats = from.stats();
        let delivered = times.iter().filter(|message| message.delivered.is_some());
        (!times.is_empty()).then(|| LimitedMessages {
            sent: times.len(),
            delivered: delivered.clone().count(),
            in_time: delivered.filter(|message| message.is_in_time()).count(),
            dropped: stats.as_ref().map_or(0, |stats| stats.messages_dropped),
            abandoned: stats.as_ref().map_or(0, |stats| stats.messages_abandoned),
        })
    }
}

/// The times of messages that may be given up, in the order in which they were sent.
pub(crate) fn lateness(from: &Host, to: &Host) -> Vec<Lateness> {
    let times = |limited: &Limited| Lateness {
        sent: limited.sent,
        lifetime: limited.lifetime,
        delivered: to.receiver.limited.get(&limited.name).copied(),
    };
    from.sender.limited.iter().map(times).collect()
}

/// A sender's findings on bottlenecks that its paths share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharedResult {
    /// Number of pairs of paths that were ever found to share a bottleneck.
    pub shared_bottlenecks: usize,
    /// Time from the application's first call to send until two paths were first found to share a
    /// bottleneck, in seconds.
    pub shared_bottleneck_detected_s: Option<f64>,
    /// The highest ratio of matching events of any pair, each as last judged; `None` before the
    /// first verdict.
    pub shared_ratio: Option<f64>,
    /// Paths that were not suppressed at the end.
    pub paths_used: usize,
    /// Every pair that was compared, as last judged.
    pub shared_pairs: Vec<SharedPair>,
}

/// Findings on two paths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharedPair {
    /// The numbers of the paths, from 1.
    pub paths: (u16, u16),
    /// Number of fast retransmits compared on each path.
    pub events: (u32, u32),
    /// Number of fast retransmits that came together.
    pub matched: u32,
    /// `matched` over the smaller of the two numbers in `events`.
    pub ratio: f64,
    /// Fast retransmits that each path must have before the pair is judged; `None` if no number is
    /// enough.
    pub needed: Option<u32>,
    /// How much later the second path's fast retransmits come, in seconds.
    pub lag_s: f64,
    /// The latest verdict.
    pub is_shared: bool,
}

impl SharedResult {
    fn of(from: &Host) -> Option<SharedResult> {
        if !from.config().shared_congestion.build(from.config()).is_on() {
            return None;
        }
        let number = |id: PathId| u16::from(id.0) + 1;
        let known = from.shared_pairs();
        let pairs = known.iter().map(|pair| SharedPair {
            paths: (number(pair.paths.0), number(pair.paths.1)),
            events: pair.events,
            matched: pair.matched,
            ratio: pair.ratio(),
            needed: pair.needed,
            lag_s: pair.lag_s,
            is_shared: pair.is_shared,
        });
        let found = from.events().iter().filter_map(|(at, event)| match event {
            Event::SharedBottleneck { evidence, .. } => Some((*at, evidence.paths)),
            _ => None,
        });
        let first = found.clone().next().zip(from.sender.called);
        let found_pairs: BTreeSet<_> = found.map(|(_, pair)| pair).collect();
        Some(SharedResult {
            shared_bottlenecks: found_pairs.len(),
            shared_bottleneck_detected_s: first.map(|((at, _), call)| to_secs(at, call)),
            shared_ratio: highest_ratio(known),
            paths_used: from.paths().iter().filter(|path| path.suppressed.is_none()).count(),
            shared_pairs: pairs.collect(),
        })
    }
}

/// The highest ratio of all pairs of paths.
pub(crate) fn highest_ratio(pairs: &[SharedEvidence]) -> Option<f64> {
    pairs.iter().map(SharedEvidence::ratio).reduce(f64::max)
}

/// A path from the sender's side: the engine's figures, and facts that only the network knows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathResult {
    /// The sender's counters, and its variables at the end.
    #[serde(flatten)]
    pub stats: PathStats,
    /// Spurious retransmissions on the path; `None` if not counted.
    pub spurious_retransmissions: Option<u64>,
    /// The sender's packets that the network dropped on this path, with copies that the network
    /// made.
    pub packets_dropped: u64,
    /// DATA chunks in these packets.
    pub data_chunks_dropped: u64,
    /// Packets that the receiver sent on this path, mainly SACKs.
    pub return_packets_sent: u64,
    /// The receiver's packets that the network dropped on this path, with copies that the network
    /// made.
    pub return_packets_dropped: u64,
    /// T3-rtx expirations by their place in a row. The first entry counts expirations after proof
    /// that the path works, the second those that followed one such, and so on. The last entry also
    /// counts all later places.
    pub t3_in_a_row: [u64; T3_IN_A_ROW],
    /// Measurements of the round-trip time, by heartbeats and by data.
    pub rtt_samples: u64,
    /// When the path was first active, in seconds since the run began.
    pub active_at_s: Option<f64>,
    /// When the path was first potentially failed, in seconds since the run began.
    pub potentially_failed_at_s: Option<f64>,
    /// When the path was first inactive, in seconds since the run began.
    pub inactive_at_s: Option<f64>,
    /// When the path was first suppressed, in seconds since the run began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppressed_at_s: Option<f64>,
    /// The reason for that, such as `shared_bottleneck` or `slow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suppressed_because: Option<&'static str>,
    /// The rank of the path at the end, unless it is normal.
    #[serde(skip_serializing_if = "PathRank::is_normal")]
    pub rank: PathRank,
    /// All changes of the path's state.
    pub state_changes: Vec<StateChange>,
}

impl PathResult {
    /// The engine's figures of a path, without facts of the network.
    pub fn of_sender(stats: PathStats, state_changes: Vec<StateChange>) -> PathResult {
        let first = |state: PathState| {
            state_changes.iter().find(|change| change.to == state.name()).map(|change| change.at_s)
        };
        PathResult {
            spurious_retransmissions: None,
            packets_dropped: 0,
            data_chunks_dropped: 0,
            return_packets_sent: 0,
            return_packets_dropped: 0,
            t3_in_a_row: stats.counters.t3_in_a_row,
            rtt_samples: stats.rtt_samples,
            active_at_s: first(PathState::Active),
            potentially_failed_at_s: first(PathState::PotentiallyFailed),
            inactive_at_s: first(PathState::Inactive),
            suppressed_at_s: None,
            suppressed_because: None,
            rank: stats.rank,
            stats,
            state_changes,
        }
    }

    /// Bytes sent on all of these paths for each of `bytes` user bytes delivered.
    pub fn overhead(paths: &[PathResult], bytes: u64) -> Option<f64> {
        let sent: u64 = paths.iter().map(|path| path.stats.counters.bytes_sent).sum();
        (bytes > 0).then(|| sent as f64 / bytes as f64)
    }
}

/// A change of a path's state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StateChange {
    /// When the state changed, in seconds since the run began.
    pub at_s: f64,
    /// The state that the path left.
    pub from: &'static str,
    /// The state that the path entered.
    pub to: &'static str,
}

impl TransferResult {
    pub(crate) fn of(from: &Host, to: &Host, net: &Network, seed: u64) -> TransferResult {
        let begin = from.sender.first;
        let since = |at| begin.map(|begin| to_secs(at, begin));
        let time = to.receiver.last.and_then(since).unwrap_or(0.0);
        let bytes = to.received_bytes();
        let blocked = from.stats().map(|stats| stats.receive_buffer_blocked.as_secs_f64());
        let since_call = |at| from.sender.called.map(|call| to_secs(at, call));
        let acked = if from.has_been_acked_all() { from.sender.acked } else { None };
        let paths: Vec<_> = from.paths().iter().map(|p| PathResult::of(p, from, to, net)).collect();
        let outage = FirstOutage::of(from, net);
        TransferResult {
            scenario: String::new(),
            preset: from.preset().to_owned(),
            seed,
            completed: from.has_sent_all()
                && from.sent_reliable_bytes() == to.received_reliable_bytes(),
            bytes,
            transfer_time_s: time,
            ack_time_s: acked.and_then(since_call),
            data_start_s: from.stats().and_then(|s| s.first_data_sent).and_then(since_call),
            goodput_bps: if time > 0.0 { bytes as f64 * 8.0 / time } else { 0.0 },
            first_byte_s: to.receiver.first.and_then(since),
            receive_buffer_blocked_s: blocked.unwrap_or(0.0),
            max_delivery_gap_s: to.receiver.longest_gap.as_secs_f64(),
            message_latency_p99_s: None,
            messages: LimitedMessages::of(from, to),
            ecn_marks_received: to.stats().map_or(0, |stats| stats.ecn_marks_received),
            overhead: PathResult::overhead(&paths, bytes),
            timeouts: paths.iter().map(|path| path.stats.counters.t3_expirations).sum(),
            fast_retransmit_events: from.stats().map_or(0, |stats| stats.fast_retransmit_events),
            duplicates_received: to.stats().map_or(0, |stats| stats.duplicates_received),
            outage_begin_s: outage.as_ref().map(|outage| outage.begin.as_secs_f64()),
            failure_detected_s: outage.as_ref().and_then(FirstOutage::detected_after_s),
            outage_goodput_bps: outage
                .as_ref()
                .and_then(|outage| outage.goodput_bps(from, to, net)),
            shared: SharedResult::of(from),
            trace_hash: format!("{:016x}", net.trace_hash()),
            paths,
        }
    }

    /// Retransmitted DATA chunks, on all paths.
    pub fn retransmissions(&self) -> u64 {
        self.paths.iter().map(|path| path.stats.counters.retransmissions).sum()
    }

    /// Spurious retransmissions, on all paths.
    pub fn spurious_retransmissions(&self) -> u64 {
        self.paths.iter().filter_map(|path| path.spurious_retransmissions).sum()
    }

    /// T3-rtx expiries on all paths.
    pub fn t3_expirations(&self) -> u64 {
        self.timeouts
    }
}

/// The receiver's path at the other end of a sender's: the one between the same addresses, or
/// through NATs the one of the same links.
fn path_back<'p>(
    path: &PathStats,
    theirs: &'p [PathStats],
    from: &Host,
    to: &Host,
    net: &Network,
) -> Option<&'p PathStats> {
    let same = theirs.iter().find(|p| (p.local, p.remote) == (path.remote, path.local));
    same.or_else(|| {
        let nats = net.nats_of(from.node(), path.local);
        let is_behind_nat =
            |p: &&PathStats| !nats.is_empty() || !net.nats_of(to.node(), p.local).is_empty();
        let number = net.find_path(from.node(), path.local, path.remote)?;
        let is_other_end =
            |p: &&PathStats| net.find_path(to.node(), p.local, p.remote) == Some(number);
        // Of several that a NAT has given it one after the other, the last is the one in use.
        theirs.iter().filter(is_behind_nat).rfind(is_other_end)
    })
}

/// The first outage on a path of a transfer.
struct FirstOutage {
    begin: Instant,
    /// When all links of the path were up again, if ever.
    end: Option<Instant>,
    /// When the sender first found the path inactive during or after the outage.
    detected: Option<Instant>,
    /// True if the path was inactive when the outage began.
    was_inactive: bool,
}

impl FirstOutage {
    fn of(from: &Host, net: &Network) -> Option<FirstOutage> {
        let way_of = |path: &PathStats| {
            let number = net.find_path(from.node(), path.local, path.remote)?;
            Some((path.id, net.path_links(number)))
        };
        let ways: Vec<(PathId, Vec<LinkId>)> = from.paths().iter().filter_map(way_of).collect();
        let outages = net.outages();
        let is_begin =
            |&(_, link, is_down): &_| is_down && ways.iter().any(|w| w.1.contains(&link));
        let first = outages.iter().position(is_begin)?;
        let (begin, link, _) = outages[first];
        let (path, way) = ways.iter().find(|(_, way)| way.contains(&link))?;
        let mut down = 0;
        let end =
            outages[first..].iter().filter(|(_, link, _)| way.contains(link)).find(|change| {
                if change.2 {
                    down += 1
                } else {
                    down -= 1
                }
                down == 0
            });
        let states = from.events().iter().filter_map(|(at, event)| match event {
            Event::PathState { path: id, to, .. } if id == path => Some((*at, *to)),
            _ => None,
        });
        let is_inactive = |(_, state): &(Instant, PathState)| *state == PathState::Inactive;
        let before = states.clone().take_while(|(at, _)| *at < begin).last();
        let detected = states.filter(is_inactive).find(|(at, _)| *at >= begin);
        Some(FirstOutage {
            begin,
            end: end.map(|(at, ..)| *at),
            detected: detected.map(|(at, _)| at),
            was_inactive: before.is_some_and(|state| is_inactive(&state)),
        })
    }

    fn detected_after_s(&self) -> Option<f64> {
        self.detected.map(|at| to_secs(at, self.begin))
    }

    fn goodput_bps(&self, from: &Host, to: &Host, net: &Network) -> Option<f64> {
        let is_over = from.has_sent_all() && from.sent_bytes() == to.received_bytes();
        let over = if is_over { to.receiver.last? } else { net.now() };
        if over <= self.begin || (self.end.is_none() && self.was_inactive) {
            return None;
        }
        let end = self.end.or(self.detected).map_or(over, |end| end.min(over));
        let after = if end == over { to.received_bytes() } else { to.received_by(end) };
        let bytes = after.saturating_sub(to.received_by(self.begin));
        Some(bytes as f64 * 8.0 / to_secs(end, self.begin))
    }
}

fn to_secs(at: Instant, begin: Instant) -> f64 {
    at.saturating_since(begin).as_secs_f64()
}

impl PathResult {
    fn of(path: &PathStats, from: &Host, to: &Host, net: &Network) -> PathResult {
        let way = net.path_drops(from.node(), path.local, path.remote);
        let (number, drops) = (way.map(|(number, _)| number), way.map(|(_, drops)| drops));
        let drops = drops.unwrap_or_default();
        let theirs = to.paths();
        let back = path_back(path, &theirs, from, to, net);
        // A path whose other end the receiver does not have is the network's all the same.
        let (local, remote) = back.map_or((path.remote, path.local), |p| (p.local, p.remote));
        let back_drops = net.path_drops(to.node(), local, remote).map(|(_, drops)| drops);
        let ledger = from.ledger.as_ref();
        let changes = from.events().iter().filter_map(|(at, event)| match event {
            Event::PathState { path: id, from, to } if *id == path.id => {
                Some(StateChange { at_s: at.as_secs_f64(), from: from.name(), to: to.name() })
            }
            _ => None,
        });
        let state_changes: Vec<StateChange> = changes.collect();
        let suppressed = from.events().iter().find_map(|(at, event)| match event {
            Event::PathSuppressed { path: id, reason } if *id == path.id => Some((*at, *reason)),
            _ => None,
        });
        PathResult {
            spurious_retransmissions: ledger.and_then(|l| number.map(|n| l.spurious_on(n))),
            packets_dropped: drops.packets,
            data_chunks_dropped: drops.data_chunks,
            return_packets_sent: back.map_or(0, |back| back.counters.packets_sent),
            return_packets_dropped: back_drops.unwrap_or_default().packets,
            suppressed_at_s: suppressed.map(|(at, _)| at.as_secs_f64()),
            suppressed_because: suppressed.map(|(_, reason)| reason.name()),
            ..PathResult::of_sender(path.clone(), state_changes)
        }
    }
}
