//! A stage of congestion avoidance (RFC 9438 §4.2 to §4.5).

use std::time::Duration;

use super::BETA;

/// C: the steepness of the curve, in packets per second cubed (§5).
const C: f64 = 0.4;
/// α_cubic: the growth in packets per window of a Reno that cuts its window by β_cubic (§4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The most that the window may grow in a round trip, as a factor (§4.2).
const GROWTH_MAX: f64 = 1.5;

/// The time from its beginning to the next loss. Windows are in bytes with fractions, because a
/// SACK may be worth less than a byte.
#[derive(Clone, Debug)]
pub(super) struct Epoch {
    /// W_max: where the curve is flat.
    w_max: f64,
    /// K: the time at which the curve is flat, in seconds.
    k: f64,
    /// t: the time that the stage has lasted, without times in which something else limited the
    /// sender.
    elapsed: Duration,
    /// W_est: the window of Reno.
    w_est: f64,
    cwnd: f64,
    /// The packet size that `C` refers to, in bytes.
    packet: f64,
}

impl Epoch {
    /// A stage that begins with this window, in bytes. `w_max` is the window of the last loss.
    pub(super) fn begin(cwnd: usize, w_max: Option<f64>, packet: usize) -> Epoch {
        let (cwnd, packet) = (cwnd as f64, packet as f64);
        // W_max is undefined after a slow start without a loss, and after a timeout. It then is the
        // window, and K is 0 (§4.8, §4.10). The same holds if slow start after idle time went
        // beyond W_max.
        let w_max = w_max.map_or(cwnd, |w_max| w_max.max(cwnd));
        let k = ((w_max - cwnd) / (C * packet)).cbrt();
        Epoch { w_max, k, elapsed: Duration::ZERO, w_est: cwnd, cwnd, packet }
    }

    /// The window at which the curve is flat, in bytes.
    pub(super) fn w_max(&self) -> f64 {
        self.w_max
    }

    /// The congestion window, in bytes.
    pub(super) fn window(&self) -> usize {
        self.cwnd as usize
    }

    /// Adds time in which the window limited the sender.
    pub(super) fn pass(&mut self, time: Duration) {
        self.elapsed += time;
    }

    /// W_cubic, in bytes, `ahead` of the present time (§4.2).
    fn w_cubic(&self, ahead: Duration) -> f64 {
        let from_k = (self.elapsed + ahead).as_secs_f64() - self.k;
        C * self.packet * from_k * from_k * from_k + self.w_max
    }

    /// Grows the window by acknowledged bytes that count.
    pub(super) fn grow(&mut self, acked: usize, rtt: Duration, cwnd_prior: f64) {
        // If SACKs were lost, one SACK may acknowledge more than a window.
        let windows = (acked as f64 / self.cwnd).min(1.0);
        // §4.3: grow like Reno once the window is back where the last loss was.
        let alpha = if self.w_est >= cwnd_prior { 1.0 } else { ALPHA };
        self.w_est += alpha * self.packet * windows;
        if self.w_cubic(Duration::ZERO) < self.w_est {
            // The target looks an RTT ahead, so cwnd may have reached it already.
            self.cwnd = self.cwnd.max(self.w_est);
        } else {
            // §4.4, §4.5
            let target = self.w_cubic(rtt).clamp(self.cwnd, GROWTH_MAX * self.cwnd);
            self.cwnd += (target - self.cwnd) * windows;
        }
    }
}
