//! BBR version 3 (draft-ietf-ccwg-bbr): sends at the rate that a path delivers, and keeps about as
//! much in flight as the path holds. A loss alone is no reason to slow down.
//!
//! | file | of the draft |
//! | --- | --- |
//! | `bbr.rs` | the steps of each ACK, pacing rate, window |
//! | `cycle.rs` | the states: Startup, Drain, the four of ProbeBW |
//! | `bounds.rs` | the bounds that losses put on rate and volume |
//! | `min_rtt.rs` | the least round-trip time, and ProbeRTT |
//! | `undo.rs` | the state before losses that turn out to be none |
//! | `filter.rs` | windowed maxima |
//!
//! Names of fields are the draft's where it has one. [`Guards`] are the deviations from it.

mod bounds;
mod cycle;
mod filter;
mod min_rtt;
mod undo;

use std::time::Duration;

use super::model::{Delivery, LostPacket, Model, Pace, RateSample, SentPacket};
use super::{AckFacts, CongestionControl, Limits, NeededFacts, Window};
use crate::rng::Rng;
use crate::time::Instant;
use crate::view::Estimate;
use bounds::Bounds;
pub use cycle::State;
use cycle::{Cycle, FullPipe};
use filter::{MaxOfCycles, MaxOfRounds};
use min_rtt::MinRtt;
use undo::Undo;

/// BBR.PacingMarginPercent: a path is sent on at 1 % less than it delivers.
const PACING_MARGIN: f64 = 0.99;
/// BBR.MinPipeCwnd, in packets.
const MIN_PIPE_PACKETS: usize = 4;
/// BBR.ExtraAckedFilterLen, in round trips.
const EXTRA_ACKED_ROUNDS: u64 = 10;
/// The most that may leave at once, in bytes.
///
/// Deviation: twice that of the draft. With longer runs of TSNs, SACKs need fewer gap ack blocks on
/// a long and fast path.
const MAX_QUANTUM: usize = 128 * 1024;
/// The RTT of an unmeasured path, for its first rate.
const NOMINAL_RTT: Duration = Duration::from_millis(1);

/// Deviations from the draft, for paths with random losses and varying delays. The draft takes any
/// loss rate above 2 % for a sign of congestion, so a single loss is one on a path that holds fewer
/// than fifty packets.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Guards {
    /// Lost packets in a round trip below which the loss rate does not count.
    pub least_losses: usize,
    /// Lowers the rate between probes, too, only for more than 2 % of losses or while a queue
    /// stands.
    pub bounds_need_high_loss: bool,
    /// Lowers the volume in flight by 30 % for a loss while a queue stands, as CUBIC does, not only
    /// to the volume delivered. After a probe that overflowed a queue, the next probe waits until a
    /// CUBIC flow would have grown back. Otherwise such a flow keeps 0.3 of a link with a short
    /// queue.
    pub yields_with_queue: bool,
    /// An RTT confirms the least RTT ever if it exceeds it by no more than this share. The path
    /// then has no queue and needs no ProbeRTT, which costs 2 % of its rate.
    pub rtt_tolerance: f64,
    /// ProbeRTT lasts for at most this many of the least RTTs, but for at least one. The draft's
    /// 200 ms suit paths through the Internet; a path of one millisecond would be idle for most of
    /// them.
    pub probe_rtts: Option<u32>,
    /// Takes the best sample of a round trip, not its first, to see if the path delivers more.
    /// Where packets overtake each other, the first may be far too low, or missing.
    pub best_of_round: bool,
}

impl Guards {
    /// The guards of the policy `bbr`.
    pub const ON: Guards = Guards {
        least_losses: 3,
        bounds_need_high_loss: true,
        yields_with_queue: true,
        rtt_tolerance: 1.0 / 16.0,
        probe_rtts: Some(10),
        best_of_round: true,
    };
    /// The draft as it is, the policy `bbr-draft`.
    pub const OFF: Guards = Guards {
        least_losses: 0,
        bounds_need_high_loss: false,
        yields_with_queue: false,
        rtt_tolerance: 0.0,
        probe_rtts: None,
        best_of_round: false,
    };
}

/// Round trips counted by packets (draft, "BBR.round_count").
#[derive(Copy, Clone, Debug, Default)]
struct Rounds {
    count: u64,
    /// True if the current SACK began a round.
    starts: bool,
    /// A packet sent at this total delivered, or later, belongs to the next round.
    next: u64,
}

/// Data acknowledged beyond the expected (draft, "BBR.extra_acked").
#[derive(Copy, Clone, Debug)]
struct Aggregation {
    since: Instant,
    delivered: usize,
    filter: MaxOfRounds,
    extra: usize,
}

/// The controller of one path.
#[derive(Debug)]
pub struct Bbr {
    guards: Guards,
    rng: Rng,
    state: State,
    rounds: Rounds,
    max_bw: MaxOfCycles,
    /// Bytes per second: the greatest rate within the bounds (BBR.bw).
    bw: f64,
    /// The latest round-trip time.
    rtt: Option<Duration>,
    min_rtt: MinRtt,
    full_pipe: FullPipe,
    cycle: Cycle,
    bounds: Bounds,
    undo: Undo,
    aggregation: Aggregation,
    pacing_rate: Option<f64>,
    initial_cwnd: usize,
    /// The window before a timeout or ProbeRTT.
    prior_cwnd: usize,
    recovers_from_timeout: bool,
    idle_restart: bool,
    /// The window, the packet size and the total delivered at the last SACK, in bytes.
    cwnd: usize,
    packet: usize,
    total: u64,
    now: Instant,
}

impl Bbr {
    /// A controller before any measurement of its path.
    pub fn new(guards: Guards) -> Bbr {
        let began = Instant::ZERO;
        Bbr {
            guards,
            rng: Rng::from_number(0),
            state: State::Startup,
            rounds: Rounds::default(),
            max_bw: MaxOfCycles::default(),
            bw: 0.0,
            rtt: None,
            min_rtt: MinRtt::default(),
            full_pipe: FullPipe::default(),
            cycle: Cycle::default(),
            bounds: Bounds::default(),
            undo: Undo::default(),
            aggregation: Aggregation {
                since: began,
                delivered: 0,
                filter: MaxOfRounds::default(),
                extra: 0,
            },
            pacing_rate: None,
            initial_cwnd: 0,
            prior_cwnd: 0,
            recovers_from_timeout: false,
            idle_restart: false,
            cwnd: 0,
            packet: 1,
            total: 0,
            now: began,
        }
    }

    /// The state of the model, for tests and traces.
    pub fn state(&self) -> State {
        self.state
    }

    // ---- Rounds, rates and aggregation ----

    /// UpdateRound.
    fn update_round(&mut self, delivery: &Delivery, sample: &RateSample) {
        self.rounds.starts = sample.prior_total >= self.rounds.next;
        if self.rounds.starts {
            self.start_round(delivery.total);
            self.rounds.count += 1;
            self.cycle.rounds_since_probe += 1;
        }
    }

    /// StartRound.
    fn start_round(&mut self, total: u64) {
        self.rounds.next = total;
    }

    /// UpdateMaxBw.
    fn update_max_bw(&mut self, delivery: &Delivery, sample: &RateSample) {
        self.update_round(delivery, sample);
        if sample.rate > 0.0 && (sample.rate >= self.max_bw.max() || !sample.is_app_limited) {
            self.max_bw.add(sample.rate);
        }
    }

    /// UpdateACKAggregation.
    fn update_aggregation(&mut self, delivery: &Delivery) {
        let a = &mut self.aggregation;
        let elapsed = delivery.now.saturating_since(a.since).as_secs_f64();
        let mut expected = (self.bw * elapsed) as usize;
        if a.delivered <= expected {
            (a.delivered, a.since) = (0, delivery.now);
            expected = 0;
        }
        a.delivered += delivery.newly_acked;
        let extra = a.delivered.saturating_sub(expected).min(self.cwnd);
        let rounds = if self.full_pipe.was_reached { EXTRA_ACKED_ROUNDS } else { 1 };
        a.extra = a.filter.add(self.rounds.count, extra, rounds);
    }

    // ---- Volumes ----

    /// BBR.MinPipeCwnd.
    fn min_pipe(&self) -> usize {
        MIN_PIPE_PACKETS * self.packet
    }

    /// BDPMultiple of a rate.
    fn bdp_of(&self, bw: f64, gain: f64) -> usize {
        match self.min_rtt.get() {
            Some(min_rtt) => (gain * bw * min_rtt.as_secs_f64()) as usize,
            None => self.initial_cwnd,
        }
    }

    /// BBR.bdp.
    fn bdp(&self) -> usize {
        self.bdp_of(self.bw, 1.0)
    }

    /// QuantizationBudget: at least the volume that keeps both hosts busy, whatever the path holds.
    fn quantized(&self, volume: usize) -> usize {
        let extra = if self.state == State::ProbeUp { 2 * self.packet } else { 0 };
        volume.max(self.quantum()).max(self.min_pipe()) + extra
    }

    /// Inflight(gain), for a rate.
    fn inflight_of(&self, bw: f64, gain: f64) -> usize {
        self.quantized(self.bdp_of(bw, gain))
    }

    /// TargetInflight.
    fn target_inflight(&self) -> usize {
        self.bdp().min(self.cwnd)
    }

    /// SetSendQuantum.
    fn quantum(&self) -> usize {
        let millisecond = self.pacing_rate.unwrap_or(0.0) * 0.001;
        (millisecond as usize).min(MAX_QUANTUM).max(2 * self.packet)
    }

    // ---- Control ----

    /// Stores the initial window at the first packet sent, or at the first delivery: a path may
    /// inherit data in flight from a removed path before it sends anything.
    fn begin(&mut self, now: Instant, cwnd: usize) {
        if self.initial_cwnd == 0 {
            (self.initial_cwnd, self.cwnd) = (cwnd, cwnd);
            self.aggregation.since = now;
        }
    }

    /// SetPacingRateWithGain.
    ///
    /// Deviation: one packet per RTT may always leave, as with any other controller. After an
    /// outage all samples may be too low for the path ever to show more.
    fn set_pacing_rate(&mut self, gain: f64) {
        let least = self.rtt.map_or(0.0, |rtt| self.packet as f64 / rtt.as_secs_f64().max(1e-6));
        let rate = (gain * self.bw * PACING_MARGIN).max(least);
        let grows = self.pacing_rate.is_none_or(|now| rate > now);
        if rate > 0.0 && (self.full_pipe.was_reached || grows) {
            self.pacing_rate = Some(rate);
        }
    }

    /// SetCwnd.
    fn set_cwnd(&mut self, delivery: &Delivery) {
        let max = self.bdp_of(self.bw, self.state.cwnd_gain()) + self.aggregation.extra;
        let max_inflight = self.quantized(max);
        let grown = self.cwnd + delivery.newly_acked;
        if self.full_pipe.was_reached {
            self.cwnd = grown.min(max_inflight);
        } else if self.cwnd < max_inflight || delivery.total < self.initial_cwnd as u64 {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(self.min_pipe());
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.cwnd = self.cwnd.min(self.bound_of_model());
    }

    /// BoundCwndForModel.
    fn bound_of_model(&self) -> usize {
        let cap = match self.state {
            State::Startup | State::Drain => usize::MAX,
            State::ProbeDown | State::ProbeRefill | State::ProbeUp => self.bounds.inflight_longterm,
            State::ProbeCruise | State::ProbeRtt => self.inflight_with_headroom(),
        };
        cap.min(self.bounds.inflight_shortterm).max(self.min_pipe())
    }

    /// SaveCwnd.
    fn save_cwnd(&mut self) {
        let is_modulated = self.recovers_from_timeout || self.state == State::ProbeRtt;
        let before = if is_modulated { self.prior_cwnd } else { 0 };
        self.prior_cwnd = self.cwnd.max(before);
    }

    /// RestoreCwnd.
    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}

impl Model for Bbr {
    /// Gives randomness, so that flows which share a path do not probe at once.
    fn seed(&mut self, rng: Rng) {
        self.rng = rng;
    }

    /// HandleRestartFromIdle.
    fn on_sent(&mut self, sent: &SentPacket) {
        self.begin(sent.now, sent.cwnd);
        if sent.in_flight_before == 0 && sent.is_app_limited {
            self.now = sent.now;
            self.idle_restart = true;
            self.aggregation.since = sent.now;
            if self.state.is_probe_bw() {
                self.set_pacing_rate(1.0);
            } else if self.state == State::ProbeRtt {
                self.check_probe_rtt_done();
            }
        }
    }

    /// HandleLostPacket.
    fn on_lost(&mut self, lost: &LostPacket) {
        self.cwnd = lost.cwnd;
        self.note_loss(lost.total);
        self.bounds.lost_in_round += lost.size;
        if !self.cycle.is_probe_sample {
            return;
        }
        if self.is_inflight_too_high(lost.lost, lost.in_flight) {
            let in_flight = bounds::inflight_at_loss(lost);
            self.on_inflight_too_high(in_flight, lost.is_app_limited, lost.total);
        }
    }

    fn on_delivery(&mut self, window: Window, limits: &Limits, delivery: &Delivery) -> Window {
        self.begin(delivery.now, window.cwnd);
        (self.cwnd, self.packet, self.now) = (window.cwnd, limits.packet, delivery.now);
        self.total = delivery.total;
        self.rtt = delivery.rtt.or(self.rtt);
        let sample = delivery.sample.unwrap_or_default();
        self.rounds.starts = false;
        self.update_latest_delivery(delivery, &sample);
        if delivery.sample.is_some() {
            self.update_max_bw(delivery, &sample);
        }
        self.adapt_to_congestion(&sample);
        self.update_aggregation(delivery);
        self.check_full_pipe(&sample);
        self.check_startup_done(&sample, delivery.is_report_full);
        self.check_drain_done(delivery);
        if delivery.is_report_full && self.cycle.is_probe_sample {
            self.on_inflight_too_high(sample.in_flight, sample.is_app_limited, delivery.total);
        }
        self.update_probe_bw(delivery, &sample);
        let is_expired = self.min_rtt.update(delivery.now, delivery.rtt, self.guards.rtt_tolerance);
        self.check_probe_rtt(is_expired, delivery, &sample);
        self.bounds.advance_latest(&sample);
        self.bw = self.max_bw.max().min(self.bounds.bw_shortterm);
        if self.recovers_from_timeout && self.rounds.starts {
            self.recovers_from_timeout = false;
            self.restore_cwnd();
        }
        if self.pacing_rate.is_none() {
            // InitPacingRate, even if little was delivered so far.
            let rtt = delivery.rtt.unwrap_or(NOMINAL_RTT).as_secs_f64().max(1e-6);
            let gain = self.state.pacing_gain();
            self.pacing_rate = Some(gain * self.initial_cwnd as f64 / rtt);
        }
        self.set_pacing_rate(self.state.pacing_gain());
        self.set_cwnd(delivery);
        Window { cwnd: self.cwnd, ..window }
    }

    fn on_heartbeat(&mut self, now: Instant, rtt: Duration) {
        self.rtt = Some(rtt);
        // ProbeRTT waits for the next SACK.
        let _is_expired = self.min_rtt.update(now, Some(rtt), self.guards.rtt_tolerance);
    }

    fn pace(&self) -> Option<Pace> {
        self.pacing_rate.map(|rate| Pace { rate, quantum: self.quantum() })
    }

    fn estimate(&self) -> Option<Estimate> {
        let min_rtt = self.min_rtt.get()?;
        Some(Estimate { rate: self.bw, min_rtt, is_settled: self.full_pipe.was_reached })
            .filter(|estimate| estimate.rate > 0.0)
    }

    fn holds_back(&self) -> bool {
        self.state == State::ProbeRtt
    }
}

impl CongestionControl for Bbr {
    /// The window follows the [model](Model::on_delivery).
    fn on_ack(&mut self, window: Window, _: &Limits, _: &AckFacts) -> Window {
        window
    }

    /// A loss is judged by the [model](Model::on_lost).
    fn on_fast_retransmit(&mut self, window: Window, _: &Limits) -> Window {
        window
    }

    /// The draft has no rules for marks. Here a mark counts as one loss of the round: echoes do not
    /// say how many packets were marked.
    fn on_congestion_mark(&mut self, window: Window, limits: &Limits) -> Window {
        self.note_loss(self.total);
        self.bounds.lost_in_round += limits.packet;
        window
    }

    /// OnEnterRTO: one packet, until the path answers.
    fn on_timeout(&mut self, window: Window, limits: &Limits) -> Window {
        self.cwnd = window.cwnd;
        self.save_cwnd();
        self.recovers_from_timeout = true;
        self.cwnd = limits.packet;
        Window { cwnd: self.cwnd, ..window }
    }

    fn on_losses(&mut self, window: Window) {
        self.save_state(window);
    }

    fn on_spurious_losses(&mut self, window: Window) -> Window {
        self.restore_state(window)
    }

    fn needs(&self) -> NeededFacts {
        NeededFacts { spurious_losses: true, ..NeededFacts::default() }
    }

    fn model(&mut self) -> Option<&mut dyn Model> {
        Some(self)
    }
}

#[cfg(test)]
mod tests;
