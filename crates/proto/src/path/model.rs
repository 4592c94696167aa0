//! Keeps the model of congestion control informed, if it has one.

use std::time::Duration;

use super::Path;
use super::rate::InFlight;
use crate::config::Config;
use crate::policy::cc::{Delivery, SentPacket};
use crate::time::Instant;
use crate::tx::{PathDigest, SackArrival};

/// The report of a SACK on a path, or losses on it that were found without a SACK.
#[derive(Copy, Clone, Debug)]
pub(crate) struct SackReport<'a> {
    pub(crate) facts: &'a PathDigest,
    /// True if the SACK has hardly room for more gap ack blocks.
    pub(crate) is_full: bool,
    /// The path on which it came.
    pub(crate) via: Option<SackArrival>,
}

impl Path {
    /// Notes a packet with DATA chunks. `order` is that of its last chunk.
    pub(crate) fn note_sent(&mut self, now: Instant, order: u64, in_flight: InFlight) {
        let (Some(rate), Some(model)) = (&mut self.flow.rate, self.flow.cc.model()) else { return };
        let InFlight { before, after } = in_flight;
        model.on_sent(&SentPacket {
            now,
            in_flight_before: before,
            is_app_limited: rate.is_app_limited(),
            cwnd: self.flow.window.cwnd,
        });
        rate.on_sent(now, order, in_flight);
        if after >= self.flow.window.cwnd {
            rate.limit_by_window(after);
        }
        self.flow.pacer.spend(after.saturating_sub(before));
    }

    /// Takes an RTT measured by a heartbeat, if DATA has measured none for a while.
    pub(crate) fn note_heartbeat_rtt(&mut self, now: Instant, rtt: Duration) {
        let (Some(rate), Some(model)) = (&mut self.flow.rate, self.flow.cc.model()) else { return };
        if self.flow.last_data_sent.is_some() && rate.is_untimed(now) {
            rate.note_rtt(Some(rtt));
            model.on_heartbeat(now, rtt);
        }
    }

    /// Takes the report of a SACK on the path. `in_flight` is the number of bytes still in flight,
    /// and `earliest` the first of their transmissions.
    pub(crate) fn follow_delivery(
        &mut self,
        config: &Config,
        now: Instant,
        report: SackReport<'_>,
        in_flight: usize,
        earliest: Option<u64>,
    ) {
        let SackReport { facts, is_full, via } = report;
        let limits = self.limits(config);
        let (Some(rate), Some(model)) = (&mut self.flow.rate, self.flow.cc.model()) else { return };
        let rtt = facts.latest_rtt(now);
        rate.on_acked(now, facts.newly_acked_bytes, rtt, via);
        for lost in &facts.lost_chunks {
            if let Some(lost) = rate.on_lost(lost.order, lost.size, self.flow.window.cwnd) {
                model.on_lost(&lost);
            }
        }
        if facts.newly_acked_bytes > 0 {
            let delivery = Delivery {
                now,
                newly_acked: facts.newly_acked_bytes,
                total: rate.total(),
                in_flight,
                rtt,
                is_window_limited: rate.is_window_limited(),
                is_report_full: is_full,
                sample: facts.latest_sent.and_then(|latest| rate.sample(latest)),
            };
            self.flow.window = model.on_delivery(self.flow.window, &limits, &delivery);
            self.flow.estimate = model.estimate();
            // Chunks without a report seem to be in flight, so samples are too low.
            if model.holds_back() || is_full || self.flow.is_throttled {
                rate.limit_by_application(in_flight);
            }
        }
        rate.forget_before(earliest);
    }

    /// Notes that nothing more can be sent now. If the path still has room, its delivery does not
    /// show its speed. While data waits, room that only pacing holds back does not count.
    pub(crate) fn note_unused_room(&mut self, in_flight: usize, data_waits: bool) {
        let has_room = if data_waits {
            self.flow.cwnd_space(in_flight) > 0
        } else {
            self.flow.usable_cwnd() > in_flight
        };
        if has_room && let Some(rate) = self.flow.rate.as_mut() {
            rate.limit_by_application(in_flight);
        }
    }

    /// Sets the pacing rate of the model; half of it during a trial.
    pub(crate) fn pace_by_model(&mut self, now: Instant) {
        if let Some(mut pace) = self.flow.cc.model().and_then(|model| model.pace()) {
            if self.flow.is_throttled {
                pace.rate /= 2.0;
            }
            self.flow.pacer.follow(now, pace);
        }
    }
}
