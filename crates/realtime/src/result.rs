//! Result of a transfer in real time, in the form of a simulated one's.

use std::time::Duration;

use manypath::PathStats;
use manypath_proto::Instant;
use manypath_sim::scenario::PlainTransfer;
use manypath_sim::{LinkSpec, PathResult, StateChange, TransferResult};
use serde_json::{Value, json};

use crate::transfer::{Log, Record, number_of};

impl Record {
    /// The result of the transfer: the fields of a simulated one, null where only a simulator could
    /// know, and `real_time`.
    pub fn result(&self, name: &str, transfer: &PlainTransfer, seed: u64) -> Value {
        let stats = self.sender.stats();
        let log = &self.log;
        let first = log.first_sent.unwrap_or_default();
        let since_first = |at: &Duration| at.saturating_sub(first).as_secs_f64();
        let bytes = log.delivered_bytes();
        let time = log.delivered.last().map_or(0.0, |(at, _)| since_first(at));
        let gaps = log.delivered.windows(2).map(|pair| pair[1].0 - pair[0].0);
        let paths = self.path_results();
        let outage = Outage::first(transfer, log);
        let result = TransferResult {
            scenario: name.to_owned(),
            preset: transfer.preset.clone(),
            seed,
            completed: bytes == transfer.bytes && log.acked.is_some(),
            bytes,
            transfer_time_s: time,
            ack_time_s: log.acked.map(|at| at.as_secs_f64()),
            // The sender's own clock began when the application was called.
            data_start_s: stats.first_data_sent.map(|at| at.as_secs_f64()),
            goodput_bps: if time > 0.0 { bytes as f64 * 8.0 / time } else { 0.0 },
            first_byte_s: log.delivered.first().map(|(at, _)| since_first(at)),
            receive_buffer_blocked_s: stats.receive_buffer_blocked.as_secs_f64(),
            max_delivery_gap_s: gaps.max().unwrap_or_default().as_secs_f64(),
            message_latency_p99_s: None,
            messages: None,
            ecn_marks_received: self.receiver.stats().ecn_marks_received,
            overhead: PathResult::overhead(&paths, bytes),
            timeouts: paths.iter().map(|path| path.stats.counters.t3_expirations).sum(),
            fast_retransmit_events: stats.fast_retransmit_events,
            duplicates_received: self.receiver.stats().duplicates_received,
            outage_begin_s: outage.as_ref().map(|outage| outage.begin),
            failure_detected_s: outage.as_ref().and_then(Outage::detected_after_s),
            outage_goodput_bps: outage.as_ref().and_then(|outage| outage.goodput_bps(log)),
            shared: None,
            trace_hash: String::new(),
            paths,
        };
        let mut value = json!(result);
        value["trace_hash"] = Value::Null;
        for path in value["paths"].as_array_mut().into_iter().flatten() {
            path["data_chunks_dropped"] = Value::Null;
        }
        value["real_time"] = Value::Bool(true);
        value
    }

    fn path_results(&self) -> Vec<PathResult> {
        let mut paths = Vec::new();
        for path in self.sender.paths() {
            if let Some(number) = number_of(&path, &self.paths) {
                paths.push((number, self.path(&path, number)));
            }
        }
        paths.sort_by_key(|(number, _)| *number);
        paths.into_iter().map(|(_, path)| path).collect()
    }

    fn path(&self, path: &PathStats, number: usize) -> PathResult {
        let own = self.log.changes.iter().filter(|(of, _)| *of == number);
        let state_changes: Vec<StateChange> = own.map(|(_, change)| change.clone()).collect();
        let emulated = &self.paths[number];
        let (dropped, dropped_back) = emulated.dropped();
        PathResult {
            packets_dropped: dropped,
            return_packets_sent: emulated.to_client().offered(),
            return_packets_dropped: dropped_back,
            ..PathResult::of_sender(path.clone(), state_changes)
        }
    }
}

/// The first outage on a path; times in seconds since the application was called.
struct Outage {
    begin: f64,
    /// When that path was up again.
    end: Option<f64>,
    /// When the sender first found a path inactive since it began.
    detected: Option<f64>,
}

impl Outage {
    /// The first one that began before the last delivery.
    fn first(transfer: &PlainTransfer, log: &Log) -> Option<Outage> {
        let hops = transfer.paths.iter().flat_map(|path| &path.hops);
        let links = hops.flat_map(|hop| [&hop.forward, &hop.reverse]);
        let (begin, end) = links.filter_map(LinkSpec::first_outage).min_by_key(|(at, _)| *at)?;
        log.delivered.last().filter(|(at, _)| *at >= begin - Instant::ZERO)?;
        let begin = begin.as_secs_f64();
        let is_detected =
            |change: &&(usize, StateChange)| change.1.to == "inactive" && change.1.at_s >= begin;
        Some(Outage {
            begin,
            end: end.map(Instant::as_secs_f64),
            detected: log.changes.iter().find(is_detected).map(|(_, change)| change.at_s),
        })
    }

    fn detected_after_s(&self) -> Option<f64> {
        self.detected.map(|at| at - self.begin)
    }

    /// As the simulator has it: until the path is up again, or else found inactive, or the last
    /// delivery.
    fn goodput_bps(&self, log: &Log) -> Option<f64> {
        let last = log.delivered.last()?.0.as_secs_f64();
        let end = self.end.or(self.detected).map_or(last, |end| end.min(last));
        let until = |time: f64| {
            let before = log.delivered.iter().rfind(|(at, _)| at.as_secs_f64() <= time);
            before.map_or(0, |(_, bytes)| *bytes)
        };
        let bytes = until(end) - until(self.begin);
        (end > self.begin).then(|| bytes as f64 * 8.0 / (end - self.begin))
    }
}
