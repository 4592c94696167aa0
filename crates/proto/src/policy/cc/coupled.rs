//! The common part of controllers that couple the windows of an association's paths.
//!
//! Only the growth in congestion avoidance, and for some the cut, depends on other paths.

use super::used_up::UsedUp;
use super::{AckFacts, Limits, NeededFacts, PathWindow, Window};

/// The growth of one path.
#[derive(Debug, Default)]
pub(super) struct Coupled {
    used_up: UsedUp,
    /// Growth that is less than a byte; negative if the window shrinks.
    rest: f64,
}

impl Coupled {
    /// Asks for the windows of the other paths.
    pub(super) fn needs() -> NeededFacts {
        NeededFacts { paths: true, ..NeededFacts::default() }
    }

    /// The window after a SACK. `per_byte` is the growth in congestion avoidance, in packets for
    /// each byte that is acknowledged.
    pub(super) fn on_ack(
        &mut self,
        mut w: Window,
        limits: &Limits,
        ack: &AckFacts,
        per_byte: impl FnOnce() -> f64,
    ) -> Window {
        if !self.used_up.is_limit(w, ack) || ack.in_fast_recovery {
            return w;
        }
        if w.cwnd < w.ssthresh {
            let growth = ack.acked_bytes.min(limits.slow_start_increase_max);
            w.cwnd = w.cwnd.saturating_add(growth).min(w.ssthresh);
            return w;
        }
        let packet = limits.packet as f64;
        // If SACKs were lost, one SACK may acknowledge more than a window.
        let growth = (per_byte() * ack.acked_bytes as f64 * packet).clamp(-packet, packet);
        let growth = growth + self.rest;
        self.rest = growth.fract();
        w.cwnd = if growth < 0.0 {
            w.cwnd.saturating_sub(-growth as usize).max(limits.packet.min(w.cwnd))
        } else {
            w.cwnd.saturating_add(growth as usize)
        };
        w
    }
}

/// The rates of paths in bytes per second, and their RTTs in seconds. Unmeasured paths are left
/// out.
pub(super) fn rates(paths: &[PathWindow]) -> impl Iterator<Item = (f64, f64)> + '_ {
    paths.iter().filter_map(|path| {
        let rtt = path.rtt()?;
        Some((path.cwnd as f64 / rtt, rtt))
    })
}

#[cfg(test)]
pub(super) mod tests {
    //! Paths written by hand.

    use std::time::Duration;

    use super::super::CongestionControl;
    use super::*;
    use crate::view::PathId;

    pub(in super::super) const PACKET: usize = 1000;
    pub(in super::super) const LIMITS: Limits =
        Limits { packet: PACKET, ssthresh_floor: 4 * PACKET, slow_start_increase_max: PACKET };

    /// Paths with these windows in packets and round-trip times in ms.
    pub(in super::super) fn paths(of: &[(usize, u64)]) -> Vec<PathWindow> {
        let path = |(id, &(packets, ms)): (usize, &(usize, u64))| PathWindow {
            path: PathId(id as u8),
            cwnd: packets * PACKET,
            srtt: Some(Duration::from_millis(ms)),
            between_losses: 0,
        };
        of.iter().enumerate().map(path).collect()
    }

    /// The growth of the first path, in packets, while a window of it is acknowledged. The others
    /// stay as they are.
    pub(in super::super) fn growth_of(
        mut control: Box<dyn CongestionControl>,
        of: &[(usize, u64)],
    ) -> f64 {
        let mut paths = paths(of);
        let before = paths[0].cwnd;
        let mut window = Window { cwnd: before, ssthresh: before, partial_bytes_acked: 0 };
        for _ in 0..before / PACKET {
            let ack = AckFacts { paths: &paths, ..AckFacts::of(PACKET, 2 * window.cwnd) };
            window = control.on_ack(window, &LIMITS, &ack);
            paths[0].cwnd = window.cwnd;
        }
        (window.cwnd - before) as f64 / PACKET as f64
    }
}
