//! CUBIC (RFC 9438): a window that grows by the time since the last loss, not by round trips. Slow
//! start is HyStart++ (RFC 9406).
//!
//! | file | of |
//! | --- | --- |
//! | `cubic.rs` | RFC 9438 §4.6 to §4.10, §5.8: losses, timeouts, slow start, limited senders |
//! | `epoch.rs` | RFC 9438 §4.2 to §4.5: a stage of congestion avoidance |
//! | `hystart.rs` | RFC 9406 §4.2: the end of the first slow start |
//!
//! Windows are in bytes. Names of fields are the RFC's.

mod epoch;
mod hystart;

use super::used_up::UsedUp;
use super::{AckFacts, CongestionControl, Limits, NeededFacts, Window};
use crate::time::Instant;
use epoch::Epoch;
use hystart::HyStart;

/// β_cubic: the part of the window that a loss leaves (§4.6).
const BETA: f64 = 0.7;

/// The variables before a loss, to restore them if it turns out to be none (§4.9).
#[derive(Debug)]
struct Undo {
    window: Window,
    hystart: Option<HyStart>,
    epoch: Option<Epoch>,
    w_max: Option<f64>,
    cwnd_prior: f64,
}

/// The controller of one path.
#[derive(Debug)]
pub struct Cubic {
    /// In the first slow start only (RFC 9406 §4.3).
    hystart: Option<HyStart>,
    /// The current stage of congestion avoidance.
    epoch: Option<Epoch>,
    /// W_max, in bytes. `None` before the first loss and after a timeout.
    w_max: Option<f64>,
    /// cwnd_prior, in bytes.
    cwnd_prior: f64,
    undo: Option<Undo>,
    /// When the latest SACK arrived that could move the window.
    last_ack: Instant,
    /// §5.8: the window grows only while it limits the sender.
    used_up: UsedUp,
}

impl Default for Cubic {
    fn default() -> Cubic {
        Cubic {
            hystart: Some(HyStart::default()),
            epoch: None,
            w_max: None,
            cwnd_prior: 0.0,
            undo: None,
            last_ack: Instant::ZERO,
            used_up: UsedUp::default(),
        }
    }
}

impl Cubic {
    /// Slow start, in its first run by HyStart++ (§4.10).
    fn slow_start(
        &mut self,
        mut w: Window,
        limits: &Limits,
        ack: &AckFacts,
        grows: bool,
    ) -> Window {
        self.epoch = None;
        let divisor = self.hystart.as_ref().map_or(1, HyStart::growth_divisor);
        if grows {
            let growth = ack.acked_bytes.min(limits.slow_start_increase_max) / divisor;
            w.cwnd = w.cwnd.saturating_add(growth).min(w.ssthresh);
        }
        if self.hystart.as_mut().is_some_and(|hystart| hystart.ends_slow_start(ack)) {
            self.cwnd_prior = w.cwnd as f64;
            w.ssthresh = w.cwnd;
        }
        w
    }

    fn avoid_congestion(
        &mut self,
        mut w: Window,
        limits: &Limits,
        ack: &AckFacts,
        grows: bool,
    ) -> Window {
        self.hystart = None;
        // If the engine has moved the window, another stage begins.
        let current = self.epoch.take().filter(|epoch| epoch.window() == w.cwnd);
        if !grows {
            // Meanwhile the time of the stage does not advance (§4.2, §5.8).
            self.epoch = current;
            return w;
        }
        let epoch = match current {
            Some(mut epoch) => {
                // In longer pauses between SACKs the path was idle, or in fast recovery.
                let passed = ack.now - self.last_ack;
                epoch.pass(ack.srtt.map_or(passed, |srtt| passed.min(srtt)));
                self.epoch.insert(epoch)
            }
            None => {
                let begun = Epoch::begin(w.cwnd, self.w_max, limits.packet);
                self.w_max = Some(begun.w_max());
                self.epoch.insert(begun)
            }
        };
        epoch.grow(ack.acked_bytes, ack.srtt.unwrap_or_default(), self.cwnd_prior);
        w.cwnd = epoch.window();
        w
    }

    /// The slow-start threshold after a loss (§4.6), with SCTP's lower bound. It is a part of the
    /// window, not of the flight size, because the window does not grow while it is not used.
    fn cut(&mut self, window: Window, limits: &Limits) -> usize {
        self.hystart = None;
        self.epoch = None;
        self.cwnd_prior = window.cwnd as f64;
        ((self.cwnd_prior * BETA).round() as usize).max(limits.ssthresh_floor)
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, window: Window, limits: &Limits, ack: &AckFacts) -> Window {
        let grows = self.used_up.is_limit(window, ack) && !ack.in_fast_recovery;
        let window = if window.cwnd < window.ssthresh {
            self.slow_start(window, limits, ack, grows)
        } else {
            self.avoid_congestion(window, limits, ack, grows)
        };
        self.last_ack = ack.now;
        window
    }

    fn on_fast_retransmit(&mut self, window: Window, limits: &Limits) -> Window {
        // §4.7, fast convergence: a window that ends below the last one leaves room for other
        // flows.
        let cwnd = window.cwnd as f64;
        let shares = self.w_max.is_some_and(|w_max| cwnd < w_max);
        self.w_max = Some(if shares { cwnd * (1.0 + BETA) / 2.0 } else { cwnd });
        let ssthresh = self.cut(window, limits);
        Window { cwnd: ssthresh, ssthresh, partial_bytes_acked: 0 }
    }

    fn on_timeout(&mut self, window: Window, limits: &Limits) -> Window {
        // §4.8: the next stage begins where its curve is flat.
        self.w_max = None;
        // Data in flight is retransmitted, even if needlessly. With the former window it would
        // overflow the queue.
        self.undo = None;
        let ssthresh = self.cut(window, limits);
        Window { cwnd: limits.packet, ssthresh, partial_bytes_acked: 0 }
    }

    fn on_losses(&mut self, window: Window) {
        self.undo = Some(Undo {
            window,
            hystart: self.hystart.clone(),
            epoch: self.epoch.clone(),
            w_max: self.w_max,
            cwnd_prior: self.cwnd_prior,
        });
    }

    /// Restores the state before the losses (§4.9.2). A window that has grown beyond that state
    /// stays.
    fn on_spurious_losses(&mut self, window: Window) -> Window {
        let before = self.undo.take().filter(|undo| window.cwnd < undo.window.cwnd);
        let Some(undo) = before else { return window };
        (self.hystart, self.epoch) = (undo.hystart, undo.epoch);
        (self.w_max, self.cwnd_prior) = (undo.w_max, undo.cwnd_prior);
        undo.window
    }

    fn needs(&self) -> NeededFacts {
        NeededFacts { rtt: true, spurious_losses: true, ..NeededFacts::default() }
    }
}

#[cfg(test)]
mod tests;
