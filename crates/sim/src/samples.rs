//! The variables of a transfer over time: what figures of windows, queues and progress are drawn
//! from.

use std::time::Duration;

use manypath_proto::{Instant, PathStats};
use serde::Serialize;

use crate::host::Host;
use crate::result::highest_ratio;

/// When samples are taken.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SampleTimes {
    /// At equal distances, beginning at once. A sample shows what things were after everything that
    /// happened at its time. A distance of zero is one of a nanosecond.
    Every(Duration),
    /// Whenever one of the variables has changed.
    OnChange,
}

/// Which samples of a transfer are wanted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// When they are taken.
    pub times: SampleTimes,
    /// How many are kept; at least 3.
    pub most: usize,
}

/// The variables of a transfer at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Seconds since the run began.
    pub at_s: f64,
    /// User bytes delivered to the receiving application so far.
    pub delivered_bytes: u64,
    /// User bytes acknowledged cumulatively so far.
    pub acked_bytes: u64,
    /// Free receive buffer that the receiver's last SACK announced, in bytes.
    pub peer_window_bytes: usize,
    /// User bytes in the receive buffer.
    pub receive_buffered_bytes: usize,
    /// How long only the receive buffer held the sender back so far, in seconds.
    pub receive_buffer_blocked_s: f64,
    /// The highest ratio of matching congestion of all pairs of paths, once two were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_ratio: Option<f64>,
    /// The sender's paths.
    pub paths: Vec<PathSample>,
}

/// The variables of a path at one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathSample {
    /// Number of the path within its association, from 0.
    pub path: u8,
    /// Its state.
    pub state: &'static str,
    /// Congestion window in bytes.
    pub cwnd_bytes: usize,
    /// Slow-start threshold in bytes.
    pub ssthresh_bytes: usize,
    /// Bytes of DATA chunks in flight.
    pub flight_bytes: usize,
    /// Retransmission timeout in seconds, with its back-off.
    pub rto_s: f64,
    /// Smoothed round-trip time in seconds, once measured.
    pub srtt_s: Option<f64>,
    /// Timeouts in a row.
    pub error_count: u32,
    /// T3-rtx expirations so far.
    pub timeouts: u64,
}

impl PathSample {
    /// The engine's figures of a path now, under the engine's number of it.
    pub fn of(path: &PathStats) -> PathSample {
        PathSample {
            path: path.id.0,
            state: path.state.name(),
            cwnd_bytes: path.cwnd,
            ssthresh_bytes: path.ssthresh,
            flight_bytes: path.flight_size,
            rto_s: path.rto.as_secs_f64(),
            srtt_s: path.srtt.map(|srtt| srtt.as_secs_f64()),
            error_count: path.error_count,
            timeouts: path.counters.t3_expirations,
        }
    }
}

impl Sample {
    fn of(from: &Host, to: &Host, now: Instant) -> Option<Sample> {
        let stats = from.stats()?;
        Some(Sample {
            at_s: now.as_secs_f64(),
            delivered_bytes: to.received_bytes(),
            acked_bytes: stats.bytes_acked,
            peer_window_bytes: stats.peer_window,
            receive_buffered_bytes: to.stats().map_or(0, |stats| stats.receive_buffered),
            receive_buffer_blocked_s: stats.receive_buffer_blocked.as_secs_f64(),
            shared_ratio: highest_ratio(from.shared_pairs()),
            paths: from.paths().iter().map(PathSample::of).collect(),
        })
    }

    /// True if something beside the time differs.
    fn differs(&self, other: &Sample) -> bool {
        let same_time = Sample { at_s: self.at_s, ..other.clone() };
        *self != same_time
    }
}

/// The samples of one transfer. However long it takes, at most as many as were asked for are kept:
/// when there would be more, every second one goes, and from then on half as many are taken.
#[derive(Clone, Debug)]
pub struct Samples {
    times: SampleTimes,
    most: usize,
    /// One of this many changes is kept.
    stride: u64,
    seen: u64,
    next: Option<Instant>,
    last: Option<Sample>,
    kept: Vec<Sample>,
}

impl Samples {
    /// No samples yet.
    pub(crate) fn new(wanted: Sampling, now: Instant) -> Samples {
        let times = match wanted.times {
            SampleTimes::Every(distance) => {
                SampleTimes::Every(distance.max(Duration::from_nanos(1)))
            }
            SampleTimes::OnChange => SampleTimes::OnChange,
        };
        let next = matches!(times, SampleTimes::Every(_)).then_some(now);
        // An odd number: then the latest stays when every second one goes.
        let most = (wanted.most.max(3) - 1) | 1;
        Samples { times, most, stride: 1, seen: 0, next, last: None, kept: Vec::new() }
    }

    /// The samples kept, by time.
    pub fn all(&self) -> &[Sample] {
        &self.kept
    }

    /// Takes the samples out.
    pub fn into_vec(self) -> Vec<Sample> {
        self.kept
    }

    /// When the next sample is due, if they are taken at set times.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Takes the sample of a set time, if that is now.
    pub(crate) fn on_time(&mut self, from: &Host, to: &Host, now: Instant) {
        let (Some(due), SampleTimes::Every(distance)) = (self.next, self.times) else { return };
        if due > now {
            return;
        }
        // Before there is an association there is nothing to see.
        self.kept.extend(Sample::of(from, to, now));
        let distance = if self.thin_out_if_full() { distance * 2 } else { distance };
        self.times = SampleTimes::Every(distance);
        self.next = Some(due + distance);
    }

    /// Takes a sample if something has changed since the last.
    pub(crate) fn on_change(&mut self, from: &Host, to: &Host, now: Instant) {
        if self.times != SampleTimes::OnChange {
            return;
        }
        let Some(sample) = Sample::of(from, to, now) else { return };
        if self.last.as_ref().is_some_and(|last| !sample.differs(last)) {
            return;
        }
        if self.seen.is_multiple_of(self.stride) {
            self.kept.push(sample.clone());
            if self.thin_out_if_full() {
                self.stride *= 2;
                self.seen = 0;
            }
        }
        self.seen += 1;
        self.last = Some(sample);
    }

    fn thin_out_if_full(&mut self) -> bool {
        let is_full = self.kept.len() >= self.most;
        if is_full {
            let mut index = 0;
            self.kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
        is_full
    }
}

#[cfg(test)]
mod tests;
