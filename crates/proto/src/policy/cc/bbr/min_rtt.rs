//! The least round-trip time, and the state that makes it visible: ProbeRTT (draft, section
//! "ProbeRTT").

use std::time::Duration;

use super::super::model::{Delivery, RateSample};
use super::Bbr;
use super::cycle::{AckPhase, State};
use crate::time::Instant;

/// BBR.MinRTTFilterLen.
const MIN_RTT_FILTER: Duration = Duration::from_secs(10);
/// BBR.ProbeRTTInterval.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// BBR.ProbeRTTDuration.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
/// BBR.ProbeRTTCwndGain.
pub(super) const PROBE_RTT_CWND_GAIN: f64 = 0.5;

/// The least RTT of the last ten seconds, and the least since the last ProbeRTT.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct MinRtt {
    least: Option<(Duration, Instant)>,
    /// BBR.probe_rtt_min_delay and its time.
    recent: Option<(Duration, Instant)>,
    /// The least RTT since the path began to carry data.
    ever: Option<Duration>,
    /// When ProbeRTT is over, while in ProbeRTT.
    done_at: Option<Instant>,
    round_done: bool,
}

impl MinRtt {
    pub(super) fn get(&self) -> Option<Duration> {
        self.least.map(|(rtt, _)| rtt)
    }

    /// UpdateMinRTT. True if the time for ProbeRTT has come.
    pub(super) fn update(&mut self, now: Instant, rtt: Option<Duration>, tolerance: f64) -> bool {
        self.confirm(now, rtt, tolerance);
        let is_over = |since: Instant, after| now.saturating_since(since) > after;
        let expired = self.recent.is_some_and(|(_, at)| is_over(at, PROBE_RTT_INTERVAL));
        if let Some(rtt) = rtt
            && (expired || self.recent.is_none_or(|(recent, _)| rtt < recent))
        {
            self.recent = Some((rtt, now));
        }
        if let Some(recent) = self.recent
            && self.least.is_none_or(|(l, at)| recent.0 < l || is_over(at, MIN_RTT_FILTER))
        {
            self.least = Some(recent);
        }
        expired
    }

    /// Renews the least RTT if a sample is hardly longer than the least ever ([`rtt_tolerance`]). A
    /// queue that other flows keep up raises the least RTT of the last ten seconds, so a sample
    /// near that proves nothing.
    ///
    /// [`rtt_tolerance`]: super::Guards::rtt_tolerance
    fn confirm(&mut self, now: Instant, rtt: Option<Duration>, tolerance: f64) {
        let Some(rtt) = rtt else { return };
        let ever = self.ever.map_or(rtt, |ever| ever.min(rtt));
        self.ever = Some(ever);
        if let (Some((least, at)), Some((recent, recent_at))) = (&mut self.least, &mut self.recent)
            && tolerance > 0.0
            && rtt <= ever.mul_f64(1.0 + tolerance)
        {
            (*recent, *recent_at, *at) = ((*recent).min(*least), now, now);
        }
    }
}

impl Bbr {
    /// ProbeRTTCwnd.
    pub(super) fn probe_rtt_cwnd(&self) -> usize {
        self.bdp_of(self.bw, PROBE_RTT_CWND_GAIN).max(self.min_pipe())
    }

    /// CheckProbeRTT.
    pub(super) fn check_probe_rtt(
        &mut self,
        is_expired: bool,
        delivery: &Delivery,
        sample: &RateSample,
    ) {
        if self.state != State::ProbeRtt && is_expired && !self.idle_restart {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.min_rtt.done_at = None;
            self.cycle.ack_phase = AckPhase::Stopping;
            self.start_round(delivery.total);
        }
        if self.state == State::ProbeRtt {
            self.go_on_with_probe_rtt(delivery);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// HandleProbeRTT.
    fn go_on_with_probe_rtt(&mut self, delivery: &Delivery) {
        if self.min_rtt.done_at.is_none() {
            if delivery.in_flight <= self.probe_rtt_cwnd() {
                self.min_rtt.done_at = Some(delivery.now + self.probe_rtt_duration());
                self.min_rtt.round_done = false;
                self.start_round(delivery.total);
            }
        } else {
            self.min_rtt.round_done |= self.rounds.starts;
            if self.min_rtt.round_done {
                self.check_probe_rtt_done();
            }
        }
    }

    fn probe_rtt_duration(&self) -> Duration {
        match (self.guards.probe_rtts, self.min_rtt.get()) {
            (Some(most), Some(least)) => PROBE_RTT_DURATION.min(least * most),
            _ => PROBE_RTT_DURATION,
        }
    }

    /// CheckProbeRTTDone and ExitProbeRTT.
    pub(super) fn check_probe_rtt_done(&mut self) {
        if self.min_rtt.done_at.is_none_or(|at| self.now <= at) {
            return;
        }
        if let Some((_, at)) = &mut self.min_rtt.recent {
            *at = self.now; // the next one is due an interval from now
        }
        self.restore_cwnd();
        self.bounds.reset_shortterm();
        if self.full_pipe.was_reached {
            let total = self.rounds.next;
            self.start_probe_down(total);
            self.state = State::ProbeCruise;
        } else {
            self.state = State::Startup;
        }
    }
}
