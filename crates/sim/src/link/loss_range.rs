//! The range of loss rates that give the same run.

use crate::spec::Loss;

/// The probabilities of loss with which a link would have lost just the packets that it did lose.
///
/// A packet is lost if a number drawn for it is less than the probability. So a run stays the same,
/// bit for bit, as long as the probability stays above the largest draw of those that were lost,
/// and at most at the smallest of the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossRange {
    /// They are greater than this,
    above: f64,
    /// and at most this.
    most: f64,
}

impl LossRange {
    /// Every loss, of whatever model: no packet came.
    pub const ANY: LossRange = LossRange { above: f64::NEG_INFINITY, most: f64::INFINITY };
    /// No loss but the link's own: nothing is known of others.
    pub const OWN: LossRange = LossRange { above: f64::INFINITY, most: f64::NEG_INFINITY };
    /// Before the first draw: any probability but 0, for which nothing is drawn.
    pub(super) const DRAWN: LossRange = LossRange { above: 0.0, most: f64::INFINITY };

    /// Notes that a packet was lost, or not, with this number drawn.
    #[inline]
    pub(super) fn note(&mut self, draw: f64, lost: bool) {
        if lost {
            self.above = self.above.max(draw);
        } else {
            self.most = self.most.min(draw);
        }
    }

    /// True if the run would have been the same with `other` instead of the link's `own` loss.
    pub fn allows(&self, own: Loss, other: Loss) -> bool {
        match other {
            _ if own == other || *self == LossRange::ANY => true,
            Loss::Bernoulli(loss) => self.above < loss && loss <= self.most,
            Loss::GilbertElliott(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(range: LossRange, own: f64, losses: &[f64]) -> Vec<f64> {
        let allows = |other: &&f64| range.allows(Loss::Bernoulli(own), Loss::Bernoulli(**other));
        losses.iter().filter(allows).copied().collect()
    }

    #[test]
    fn a_loss_between_the_draws_makes_no_difference() {
        let mut range = LossRange::DRAWN;
        assert_eq!(allowed(range, 0.1, &[0.0, 0.01, 1.0]), [0.01, 1.0]);
        for draw in [0.5, 0.02, 0.9, 0.03, 0.2] {
            range.note(draw, draw < 0.1);
        }
        assert_eq!(allowed(range, 0.1, &[0.0, 0.03, 0.031, 0.1, 0.2, 0.21]), [0.031, 0.1, 0.2]);
    }

    #[test]
    fn without_packets_all_are_alike_and_without_draws_none() {
        assert_eq!(allowed(LossRange::ANY, 0.1, &[0.0, 0.1, 1.0]), [0.0, 0.1, 1.0]);
        assert_eq!(allowed(LossRange::OWN, 0.0, &[0.0, 0.1]), [0.0]);
    }
}
