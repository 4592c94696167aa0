//! The bounds that losses put on rate and volume (draft, section "Updating the Model Upon Packet
//! Loss").

use std::time::Duration;

use super::super::model::{Delivery, LostPacket, RateSample};
use super::Bbr;
use super::cycle::State;

/// BBR.LossThresh.
const LOSS_THRESHOLD: f64 = 0.02;
/// BBR.Beta.
const BETA: f64 = 0.7;
/// BBR.Headroom.
const HEADROOM: f64 = 0.15;
/// BBRStartupFullLossCnt: SACKs of one round trip that report losses.
const STARTUP_LOSSES: u32 = 6;

/// A round-trip time longer than the least by this factor is that of a path with a queue.
const STANDING_QUEUE: f64 = 1.5;

/// The bounds, and the signals that they follow.
#[derive(Copy, Clone, Debug)]
pub(super) struct Bounds {
    /// In bytes per second; infinite without losses.
    pub(super) bw_shortterm: f64,
    /// In bytes; the maximum without losses.
    pub(super) inflight_shortterm: usize,
    pub(super) inflight_longterm: usize,
    /// The greatest rate and volume delivered in this round trip.
    bw_latest: f64,
    pub(super) inflight_latest: usize,
    pub(super) is_loss_in_round: bool,
    /// Bytes lost in this round trip.
    pub(super) lost_in_round: usize,
    /// SACKs of this round trip that reported losses.
    loss_events: u32,
    /// [`lost_in_round`](Self::lost_in_round) at the last SACK.
    seen_lost: usize,
    /// A packet sent at this total delivered, or later, belongs to the next round of losses.
    loss_round_ends: u64,
    loss_round_starts: bool,
    /// The least round-trip time of this round.
    rtt_in_round: Option<Duration>,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            bw_shortterm: f64::INFINITY,
            inflight_shortterm: usize::MAX,
            inflight_longterm: usize::MAX,
            bw_latest: 0.0,
            inflight_latest: 0,
            is_loss_in_round: false,
            lost_in_round: 0,
            loss_events: 0,
            seen_lost: 0,
            loss_round_ends: 0,
            loss_round_starts: false,
            rtt_in_round: None,
        }
    }
}

impl Bounds {
    /// ResetShortTermModel.
    pub(super) fn reset_shortterm(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (f64::INFINITY, usize::MAX);
    }

    /// ResetCongestionSignals.
    pub(super) fn reset_signals(&mut self) {
        self.is_loss_in_round = false;
        (self.bw_latest, self.inflight_latest) = (0.0, 0);
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance_latest(&mut self, sample: &RateSample) {
        if self.loss_round_starts {
            (self.bw_latest, self.inflight_latest) = (sample.rate, sample.delivered);
            (self.lost_in_round, self.seen_lost, self.loss_events) = (0, 0, 0);
            self.rtt_in_round = None;
        }
    }
}

impl Bbr {
    /// NoteLoss.
    pub(super) fn note_loss(&mut self, total: u64) {
        if !self.bounds.is_loss_in_round {
            self.bounds.loss_round_ends = total;
        }
        self.bounds.is_loss_in_round = true;
    }

    /// UpdateLatestDeliverySignals.
    pub(super) fn update_latest_delivery(&mut self, delivery: &Delivery, sample: &RateSample) {
        let b = &mut self.bounds;
        b.rtt_in_round = b.rtt_in_round.into_iter().chain(delivery.rtt).min();
        b.bw_latest = b.bw_latest.max(sample.rate);
        b.inflight_latest = b.inflight_latest.max(sample.delivered);
        b.loss_round_starts = delivery.sample.is_some() && sample.prior_total >= b.loss_round_ends;
        if b.loss_round_starts {
            b.loss_round_ends = delivery.total;
        }
        if b.lost_in_round > b.seen_lost {
            b.seen_lost = b.lost_in_round;
            b.loss_events += 1;
        }
    }

    /// IsInflightTooHigh: true if the losses show that `in_flight` bytes were too many.
    pub(super) fn is_inflight_too_high(&self, lost: usize, in_flight: usize) -> bool {
        let packets = (lost + self.packet / 2) / self.packet;
        lost as f64 > in_flight as f64 * LOSS_THRESHOLD && packets >= self.guards.least_losses
    }

    /// True if a queue stood in the path for the whole round. Losses are then more likely its
    /// overflow than noise of a link.
    pub(super) fn has_queue(&self) -> bool {
        let longest = self.min_rtt.get().map(|min| min.mul_f64(STANDING_QUEUE));
        self.bounds.rtt_in_round.zip(longest).is_some_and(|(rtt, longest)| rtt > longest)
    }

    /// UpdateCongestionSignals after UpdateMaxBw: lowers the short-term bounds once per round trip
    /// with losses (AdaptLowerBoundsFromCongestion).
    pub(super) fn adapt_to_congestion(&mut self, sample: &RateSample) {
        if !self.bounds.loss_round_starts {
            return;
        }
        let too_high = self.is_inflight_too_high(sample.lost, sample.in_flight);
        let counts = too_high || !self.guards.bounds_need_high_loss || self.has_queue();
        let yields = self.guards.yields_with_queue && self.has_queue();
        let b = &mut self.bounds;
        if std::mem::take(&mut b.is_loss_in_round) && counts && !self.state.probes_bw() {
            if b.bw_shortterm.is_infinite() {
                b.bw_shortterm = self.max_bw.max();
            }
            if b.inflight_shortterm == usize::MAX {
                b.inflight_shortterm = self.cwnd;
            }
            b.bw_shortterm = b.bw_latest.max(BETA * b.bw_shortterm);
            let lowered = (BETA * b.inflight_shortterm as f64) as usize;
            b.inflight_shortterm = if yields { lowered } else { b.inflight_latest.max(lowered) };
        }
    }

    /// CheckStartupHighLoss: true if Startup lost too much in the round trip that ends.
    pub(super) fn startup_lost_too_much(&self, sample: &RateSample) -> bool {
        self.bounds.loss_round_starts
            && self.bounds.loss_events >= STARTUP_LOSSES
            && self.is_inflight_too_high(sample.lost, sample.in_flight)
    }

    /// HandleInflightTooHigh.
    pub(super) fn on_inflight_too_high(
        &mut self,
        in_flight: usize,
        is_app_limited: bool,
        total: u64,
    ) {
        self.cycle.prev_probe_too_high = true;
        self.cycle.is_probe_sample = false; // once for each probe
        if !is_app_limited {
            let least = (BETA * self.target_inflight() as f64) as usize;
            self.bounds.inflight_longterm = in_flight.max(least);
        }
        if self.state == State::ProbeUp {
            self.undo.ends(State::ProbeUp);
            self.start_probe_down(total);
        }
    }

    /// InflightWithHeadroom.
    pub(super) fn inflight_with_headroom(&self) -> usize {
        let all = self.bounds.inflight_longterm;
        if all == usize::MAX {
            return all;
        }
        let headroom = ((HEADROOM * all as f64) as usize).max(self.packet);
        all.saturating_sub(headroom).max(self.min_pipe())
    }
}

/// InflightAtLoss: the bytes in flight when losses crossed the threshold.
pub(super) fn inflight_at_loss(lost: &LostPacket) -> usize {
    let before = lost.in_flight.saturating_sub(lost.size) as f64;
    let lost_before = lost.lost.saturating_sub(lost.size) as f64;
    let prefix = (LOSS_THRESHOLD * before - lost_before) / (1.0 - LOSS_THRESHOLD);
    (before + prefix).max(0.0) as usize
}
