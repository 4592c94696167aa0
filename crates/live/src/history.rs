//! The last ten minutes of a path, in bounded memory.

use std::collections::VecDeque;

use crate::figures::{Counters, Sample};

/// Samples of the last minute, one each 0.1 s.
const FINE_MAX: usize = 600;
/// Samples of the nine minutes before that, one a second.
const COARSE_MAX: usize = 540;
/// Samples of 0.1 s that make one of a second.
const FINE_IN_COARSE: usize = 10;
/// Readings sooner after the one before are left out.
const SHORTEST_MS: u64 = 50;
/// Time over which a loss rate is computed, in milliseconds.
const LOSS_WINDOW_MS: u64 = 10_000;
/// Time over which the present rates are computed, in milliseconds.
const RATE_WINDOW_MS: u64 = 1_000;

/// The values of a path at an instant.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) at_ms: u64,
    pub(crate) counters: Counters,
    pub(crate) srtt_s: Option<f64>,
    pub(crate) cwnd_bytes: u64,
}

/// The past of a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    last: Option<Reading>,
    fine: VecDeque<Sample>,
    coarse: VecDeque<Sample>,
    /// Samples that have left `fine`, and are not enough for one of `coarse`.
    leaving: Vec<Sample>,
}

impl History {
    /// Adds a reading. If a counter went back, this is another path with the number of an old one.
    pub(crate) fn add(&mut self, now: Reading) {
        let is_other = |last: &Reading| {
            let (old, new) = (&last.counters, &now.counters);
            new.packets_sent < old.packets_sent || new.bytes_received < old.bytes_received
        };
        if self.last.as_ref().is_some_and(is_other) {
            *self = History::default();
        }
        // Rates over much less than a sample's time would say little, and count as much.
        if self.last.as_ref().is_some_and(|last| now.at_ms < last.at_ms + SHORTEST_MS) {
            return;
        }
        let Some(last) = self.last.replace(now) else { return };
        let ms = now.at_ms.saturating_sub(last.at_ms).max(1);
        let rate = |new: u64, old: u64| new.saturating_sub(old) as f64 * 8000.0 / ms as f64;
        let (new, old) = (&now.counters, &last.counters);
        self.fine.push_back(Sample {
            at_ms: now.at_ms,
            up_bps: rate(new.bytes_acked, old.bytes_acked),
            down_bps: rate(new.bytes_received, old.bytes_received),
            srtt_s: now.srtt_s,
            sent: new.data_chunks_sent.saturating_sub(old.data_chunks_sent),
            lost: new.chunks_lost.saturating_sub(old.chunks_lost),
            cwnd_bytes: now.cwnd_bytes,
        });
        if self.fine.len() > FINE_MAX {
            self.leaving.extend(self.fine.pop_front());
        }
        if self.leaving.len() >= FINE_IN_COARSE {
            self.coarse.push_back(merged(&self.leaving));
            self.leaving.clear();
        }
        if self.coarse.len() > COARSE_MAX {
            self.coarse.pop_front();
        }
    }

    /// The samples that end at an instant or later, oldest first.
    pub(crate) fn since(&self, at_ms: Option<u64>) -> Vec<Sample> {
        let all = self.coarse.iter().chain(&self.leaving).chain(&self.fine);
        all.filter(|sample| at_ms.is_none_or(|at| sample.at_ms >= at)).copied().collect()
    }

    /// The rates of the last second, up and down, in bit/s.
    pub(crate) fn rates(&self) -> (f64, f64) {
        let latest = self.latest(RATE_WINDOW_MS);
        let (count, up, down) = latest
            .fold((0, 0.0, 0.0), |(n, up, down), s| (n + 1, up + s.up_bps, down + s.down_bps));
        let count = f64::from(count.max(1));
        (up / count, down / count)
    }

    /// Chunks found lost per chunk sent lately.
    pub(crate) fn loss(&self) -> Option<f64> {
        let latest = self.latest(LOSS_WINDOW_MS);
        let (sent, lost) = latest.fold((0, 0), |(sent, lost), s| (sent + s.sent, lost + s.lost));
        // Chunks found lost now may have been sent before the window.
        (sent > 0).then(|| (lost as f64 / sent as f64).min(1.0))
    }

    fn latest(&self, window_ms: u64) -> impl Iterator<Item = &Sample> {
        let now = self.last.map_or(0, |last| last.at_ms);
        self.fine.iter().rev().take_while(move |s| s.at_ms + window_ms > now)
    }
}

/// One sample in place of several of equal length.
fn merged(samples: &[Sample]) -> Sample {
    let mean = |value: fn(&Sample) -> f64| {
        samples.iter().map(value).sum::<f64>() / samples.len().max(1) as f64
    };
    let last = samples.last().copied().unwrap_or_default();
    Sample {
        up_bps: mean(|s| s.up_bps),
        down_bps: mean(|s| s.down_bps),
        sent: samples.iter().map(|s| s.sent).sum(),
        lost: samples.iter().map(|s| s.lost).sum(),
        ..last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at_ms: u64, bytes: u64) -> Reading {
        let counters = Counters {
            packets_sent: bytes / 1000,
            bytes_acked: bytes,
            data_chunks_sent: bytes / 1000,
            chunks_lost: bytes / 10_000,
            ..Counters::default()
        };
        Reading { at_ms, counters, srtt_s: Some(0.02), cwnd_bytes: 5000 }
    }

    #[test]
    fn ten_minutes_are_kept_and_no_more() {
        let mut history = History::default();
        // A quarter of an hour at 8 Mbit/s.
        for step in 0..9000 {
            history.add(reading(step * 100, step * 100_000));
        }
        let all = history.since(None);
        assert!((1140..1150).contains(&all.len()), "{}", all.len());
        assert!(all.windows(2).all(|pair| pair[0].at_ms < pair[1].at_ms));
        assert!(all.iter().all(|s| (s.up_bps - 8e6).abs() < 1.0));
        let span = all[all.len() - 1].at_ms - all[0].at_ms;
        assert!((598_000..=601_000).contains(&span), "{span}");
        assert_eq!(history.since(Some(899_700)).len(), 3);
        assert!((history.rates().0 - 8e6).abs() < 1.0);
        assert!((history.loss().unwrap() - 0.1).abs() < 1e-9);
    }

    #[test]
    fn another_path_with_the_same_number_begins_anew() {
        let mut history = History::default();
        history.add(reading(0, 50_000));
        history.add(reading(100, 90_000));
        history.add(reading(200, 1_000));
        assert_eq!(history.since(None), []);
        assert_eq!(history.loss(), None);
    }
}
