//! The states: Startup finds the rate, Drain empties the queue that Startup made, ProbeBW now and
//! then probes for more (draft, section "State Machine Operation").

use std::time::Duration;

use super::super::model::{Delivery, RateSample};
use super::Bbr;
use super::min_rtt::PROBE_RTT_CWND_GAIN;
use crate::time::Instant;

/// Rounds without growth by [`GROWTH`] that show a full pipe.
const FULL_PIPE_ROUNDS: u32 = 3;
const GROWTH: f64 = 1.25;
/// Round trips after which Drain ends, whatever is in flight.
const DRAIN_ROUNDS: u64 = 3;
/// Least time between two probes; up to a second more is drawn at random.
const PROBE_WAIT: Duration = Duration::from_secs(2);
/// The constants of RFC 9438 §5.
const CUBIC_BETA: f64 = 0.7;
const CUBIC_C: f64 = 0.4;
/// Most round trips between two probes: a flow of Reno would have grown by as many packets.
const RENO_ROUNDS: usize = 63;

/// A state (BBR.state).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the draft's names")]
pub enum State {
    Startup,
    Drain,
    ProbeDown,
    ProbeCruise,
    ProbeRefill,
    ProbeUp,
    ProbeRtt,
}

impl State {
    /// BBR.pacing_gain.
    pub(super) fn pacing_gain(self) -> f64 {
        match self {
            State::Startup => 2.77,
            State::Drain => 0.5,
            State::ProbeDown => 0.9,
            State::ProbeUp => 1.25,
            State::ProbeCruise | State::ProbeRefill | State::ProbeRtt => 1.0,
        }
    }

    /// BBR.cwnd_gain.
    pub(super) fn cwnd_gain(self) -> f64 {
        match self {
            State::ProbeUp => 2.25,
            State::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => 2.0,
        }
    }

    /// IsInAProbeBWState.
    pub(super) fn is_probe_bw(self) -> bool {
        use State::{ProbeCruise, ProbeDown, ProbeRefill, ProbeUp};
        matches!(self, ProbeDown | ProbeCruise | ProbeRefill | ProbeUp)
    }

    /// IsProbingBW.
    pub(super) fn probes_bw(self) -> bool {
        matches!(self, State::Startup | State::ProbeRefill | State::ProbeUp)
    }
}

/// The SACKs that arrive, relative to the last probe (BBR.ack_phase).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    Starting,
    Feedback,
    Stopping,
}

/// Detects that sending faster delivers no more (draft, section "Exiting Acceleration Based on
/// Bandwidth Plateau").
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct FullPipe {
    /// BBR.full_bw_reached.
    pub(super) was_reached: bool,
    /// BBR.full_bw_now.
    is_full: bool,
    rate: f64,
    rounds: u32,
    /// A rate was measured in this round.
    was_measured: bool,
}

impl FullPipe {
    /// ResetFullBW, with a new baseline.
    pub(super) fn reset(&mut self, rate: f64) {
        (self.is_full, self.rate, self.rounds) = (false, rate, 0);
    }
}

/// The state of ProbeBW.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    /// True if SACKs acknowledge packets sent while probing.
    pub(super) is_probe_sample: bool,
    pub(super) rounds_since_probe: u64,
    pub(super) prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    began: Instant,
    wait: Duration,
    up_rounds: u32,
    up_acked: usize,
    /// Acknowledged bytes by which inflight_longterm grows by a packet; 0 while it does not grow.
    acked_per_packet: usize,
    drain_began: u64,
}

impl Bbr {
    /// CheckFullBWReached. With [`best_of_round`](super::Guards::best_of_round) every sample may
    /// show growth, and a round without a sample shows nothing.
    pub(super) fn check_full_pipe(&mut self, sample: &RateSample) {
        let (pipe, by_best) = (&mut self.full_pipe, self.guards.best_of_round);
        if pipe.is_full || !(self.rounds.starts || by_best) || sample.is_app_limited {
            return;
        }
        pipe.was_measured |= sample.rate > 0.0;
        if sample.rate >= pipe.rate * GROWTH && (sample.rate > 0.0 || !by_best) {
            return pipe.reset(sample.rate);
        }
        if by_best && !(self.rounds.starts && std::mem::take(&mut pipe.was_measured)) {
            return;
        }
        pipe.rounds += 1;
        pipe.is_full = pipe.rounds >= FULL_PIPE_ROUNDS;
        pipe.was_reached |= pipe.is_full;
    }

    /// CheckStartupDone. A SACK without room for more gaps is another sign of too many losses.
    pub(super) fn check_startup_done(&mut self, sample: &RateSample, is_report_full: bool) {
        if self.state != State::Startup {
            return;
        }
        if !self.full_pipe.was_reached && (is_report_full || self.startup_lost_too_much(sample)) {
            self.undo.ends(State::Startup);
            self.full_pipe.was_reached = true;
            self.bounds.inflight_longterm = self.bdp().max(self.bounds.inflight_latest);
        }
        if self.full_pipe.was_reached {
            self.state = State::Drain;
            self.cycle.drain_began = self.rounds.count;
        }
    }

    /// CheckDrainDone.
    pub(super) fn check_drain_done(&mut self, delivery: &Delivery) {
        let is_over = self.rounds.count > self.cycle.drain_began + DRAIN_ROUNDS;
        if self.state == State::Drain
            && (is_over || delivery.in_flight <= self.inflight_of(self.bw, 1.0))
        {
            self.start_probe_down(delivery.total);
        }
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_probe_bw(&mut self, delivery: &Delivery, sample: &RateSample) {
        if !self.full_pipe.was_reached || self.adapt_long_term(delivery, sample) {
            return;
        }
        match self.state {
            State::ProbeDown => {
                let probes = self.probe_if_due(delivery);
                if !probes && self.may_cruise(delivery) {
                    self.state = State::ProbeCruise;
                }
            }
            State::ProbeCruise => {
                self.probe_if_due(delivery);
            }
            State::ProbeRefill if self.rounds.starts => {
                self.cycle.is_probe_sample = true;
                self.start_probe_up(delivery, sample);
            }
            State::ProbeUp => {
                let is_over = self.should_go_down(delivery, sample);
                if is_over {
                    self.cycle.prev_probe_too_high = false;
                    self.start_probe_down(delivery.total);
                }
            }
            _ => {}
        }
    }

    /// StartProbeBW_DOWN.
    pub(super) fn start_probe_down(&mut self, total: u64) {
        self.bounds.reset_signals();
        self.cycle.acked_per_packet = 0;
        // PickProbeWait
        self.cycle.rounds_since_probe = self.rng.below(2);
        self.cycle.wait = PROBE_WAIT + Duration::from_secs_f64(self.rng.unit());
        if self.guards.yields_with_queue && self.cycle.prev_probe_too_high && self.has_queue() {
            self.cycle.wait = self.cycle.wait.max(self.cubic_returns());
        }
        self.cycle.began = self.now;
        self.cycle.ack_phase = AckPhase::Stopping;
        self.start_round(total);
        self.state = State::ProbeDown;
    }

    /// StartProbeBW_REFILL.
    pub(super) fn start_probe_refill(&mut self, total: u64) {
        self.bounds.reset_shortterm();
        (self.cycle.up_rounds, self.cycle.up_acked) = (0, 0);
        self.cycle.prev_probe_precautionary = false;
        self.cycle.ack_phase = AckPhase::Refilling;
        self.start_round(total);
        self.state = State::ProbeRefill;
    }

    /// StartProbeBW_UP.
    fn start_probe_up(&mut self, delivery: &Delivery, sample: &RateSample) {
        self.cycle.ack_phase = AckPhase::Starting;
        self.start_round(delivery.total);
        self.full_pipe.reset(sample.rate);
        self.state = State::ProbeUp;
        self.raise_slope();
    }

    /// The time that a CUBIC flow takes to grow back after a loss with this volume in flight: K of
    /// RFC 9438 §4.2.
    fn cubic_returns(&self) -> Duration {
        let inflight = self.bounds.inflight_longterm.min(self.cwnd);
        let packets = (inflight / self.packet.max(1)) as f64;
        Duration::from_secs_f64((packets * (1.0 - CUBIC_BETA) / CUBIC_C).cbrt())
    }

    /// IsTimeToProbeBW, and begins the probe.
    fn probe_if_due(&mut self, delivery: &Delivery) -> bool {
        let has_waited = delivery.now > self.cycle.began + self.cycle.wait;
        // IsRenoCoexistenceProbeTime
        let rounds = (self.target_inflight() / self.packet).min(RENO_ROUNDS);
        let is_due = has_waited || self.cycle.rounds_since_probe >= rounds as u64;
        if is_due {
            self.start_probe_refill(delivery.total);
        }
        is_due
    }

    /// IsTimeToCruise.
    fn may_cruise(&self, delivery: &Delivery) -> bool {
        delivery.in_flight <= self.inflight_with_headroom()
            && delivery.in_flight <= self.inflight_of(self.max_bw.max(), 1.0)
    }

    /// IsTimeToGoDown.
    fn should_go_down(&mut self, delivery: &Delivery, sample: &RateSample) -> bool {
        let bound = self.bounds.inflight_longterm;
        if self.cycle.prev_probe_too_high && delivery.in_flight >= bound {
            self.cycle.prev_probe_precautionary = true;
            return true;
        }
        if delivery.is_window_limited && self.cwnd >= bound {
            self.full_pipe.reset(sample.rate);
            return false;
        }
        self.full_pipe.is_full
    }

    /// RaiseInflightLongtermSlope.
    fn raise_slope(&mut self) {
        let growth = 1usize << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
        self.cycle.acked_per_packet = (self.cwnd / growth).max(self.packet);
    }

    /// ProbeInflightLongtermUpward.
    fn probe_upward(&mut self, delivery: &Delivery) {
        if !delivery.is_window_limited || self.cwnd < self.bounds.inflight_longterm {
            return;
        }
        let c = &mut self.cycle;
        c.up_acked += delivery.newly_acked;
        if let Some(packets) = c.up_acked.checked_div(c.acked_per_packet) {
            c.up_acked -= packets * c.acked_per_packet;
            let bound = &mut self.bounds.inflight_longterm;
            *bound = bound.saturating_add(packets * self.packet);
        }
        if self.rounds.starts {
            self.raise_slope();
        }
    }

    /// AdaptLongTermModel. True if it changed the state.
    fn adapt_long_term(&mut self, delivery: &Delivery, sample: &RateSample) -> bool {
        if self.cycle.ack_phase == AckPhase::Starting && self.rounds.starts {
            self.cycle.ack_phase = AckPhase::Feedback;
        }
        if self.cycle.ack_phase == AckPhase::Stopping && self.rounds.starts {
            self.cycle.is_probe_sample = false;
            self.cycle.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() && !sample.is_app_limited {
                self.max_bw.advance();
            }
            let was_careful =
                self.cycle.prev_probe_precautionary && !self.cycle.prev_probe_too_high;
            if self.state.is_probe_bw() && was_careful {
                self.start_probe_refill(delivery.total);
                return true;
            }
        }
        if self.is_inflight_too_high(sample.lost, sample.in_flight) {
            return false;
        }
        let bound = &mut self.bounds.inflight_longterm;
        if *bound == usize::MAX {
            return false;
        }
        *bound = sample.in_flight.max(*bound);
        if self.state == State::ProbeUp {
            self.probe_upward(delivery);
        }
        false
    }
}
