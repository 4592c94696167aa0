//! Random early detection: Floyd and Jacobson, "Random Early Detection Gateways for Congestion
//! Avoidance", IEEE/ACM Transactions on Networking, August 1993, figure 2, with drops for marks;
//! and Floyd's "gentle" variation of 2000.

use manypath_proto::Rng;

use crate::spec::Red;

/// The average of a queue, and how long nothing was dropped.
#[derive(Debug)]
pub(super) struct RedState {
    spec: Red,
    average: f64,
    /// Packets since the last drop; `None` while the average is below the lower threshold.
    since_drop: Option<u64>,
}

impl RedState {
    pub(super) fn new(spec: Red) -> RedState {
        RedState { spec, average: 0.0, since_drop: None }
    }

    pub(super) fn mean_packet(&self) -> u32 {
        self.spec.mean_packet
    }

    /// The link was idle for as long as it takes to send `missed` packets.
    pub(super) fn idle(&mut self, missed: u64) {
        let mut factor = 1.0 - self.spec.weight;
        let mut left = missed;
        // (1 - weight)^missed by squaring: the same bits on every platform, as `powf` is not.
        while left > 0 && self.average > 0.0 {
            if left & 1 == 1 {
                self.average *= factor;
            }
            factor *= factor;
            left >>= 1;
        }
    }

    /// True if a packet that finds `held` others is dropped.
    pub(super) fn drops(&mut self, held: usize, rng: &mut Rng) -> bool {
        self.average += self.spec.weight * (held as f64 - self.average);
        let probability = self.probability();
        if probability <= 0.0 {
            self.since_drop = None;
            return false;
        }
        let count = self.since_drop.map_or(0, |count| count + 1);
        self.since_drop = Some(count);
        let spaced = 1.0 - count as f64 * probability;
        let is_dropped =
            probability >= 1.0 || spaced <= probability || { rng.chance(probability / spaced) };
        if is_dropped {
            self.on_drop();
        }
        is_dropped
    }

    /// True if a packet that would be dropped can be marked instead (RFC 3168 §7): the average is
    /// not so high that all are dropped.
    pub(super) fn may_mark(&self) -> bool {
        self.spec.marks && self.probability() < 1.0
    }

    /// A packet was dropped, here or because the queue was full.
    pub(super) fn on_drop(&mut self) {
        if self.since_drop.is_some() {
            self.since_drop = Some(0);
        }
    }

    /// The probability at the present average, before drops are spaced evenly.
    fn probability(&self) -> f64 {
        let Red { min, max, max_probability, gentle, .. } = self.spec;
        match self.average {
            average if average < min => 0.0,
            average if average < max => max_probability * (average - min) / (max - min),
            average if gentle && average < 2.0 * max => {
                max_probability + (1.0 - max_probability) * (average - max) / max
            }
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_has_its_corners() {
        let at = |average, gentle| {
            let spec = Red { gentle, ..Red::default() };
            RedState { spec, average, since_drop: None }.probability()
        };
        let curve = |gentle| [4.9, 5.0, 10.0, 14.999_999, 15.0, 22.5, 30.0].map(|a| at(a, gentle));
        let near = |seen: [f64; 7], wanted: [f64; 7]| {
            let far = seen.iter().zip(wanted).any(|(s, w)| (s - w).abs() > 1e-6);
            assert!(!far, "{seen:?} for {wanted:?}");
        };
        near(curve(true), [0.0, 0.0, 0.05, 0.1, 0.1, 0.55, 1.0]);
        near(curve(false), [0.0, 0.0, 0.05, 0.1, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn the_average_follows_its_weight_and_falls_while_idle() {
        let mut red = RedState::new(Red { weight: 0.25, ..Red::default() });
        let mut rng = Rng::from_number(1);
        red.drops(4, &mut rng);
        red.drops(4, &mut rng);
        assert!((red.average - 1.75).abs() < 1e-12);
        red.idle(3);
        assert!((red.average - 1.75 * 0.75 * 0.75 * 0.75).abs() < 1e-12);
        red.idle(u64::MAX);
        assert!(red.average < 1e-300);
    }
}
