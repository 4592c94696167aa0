//! The delays of what was sent on a path, and how they change around a moment.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Instant;

/// A moment, and what is looked at around it, in RTTs: the delay of what is sent in the time before it, and of what
/// is sent in the time after. Between them lies what it takes for half of a window to leave the queue, and for packets
/// of a path to be as far as those of another: half an RTT each.
pub(super) const BEFORE: (f64, f64) = (1.25, 0.5);
const AFTER: (f64, f64) = (1.0, 1.75);
/// Means that are remembered, and how many there are to one RTT.
const BINS_MAX: usize = 128;
const BINS_PER_RTT: u32 = 8;
/// Cuts of the window that are remembered.
const CUTS_MAX: usize = 8;

/// The delays of the last few RTTs.
#[derive(Debug, Default)]
pub(super) struct Delays {
    bins: VecDeque<Bin>,
    cuts: VecDeque<Instant>,
}

/// What was sent within an eighth of an RTT.
#[derive(Debug)]
struct Bin {
    begun: Instant,
    sum: Duration,
    count: u32,
}

impl Delays {
    /// What was sent at a time is acknowledged after `delay`.
    pub(super) fn note(&mut self, sent_at: Instant, delay: Duration, rtt: Duration) {
        match self.bins.back_mut() {
            Some(bin) if sent_at < bin.begun + rtt / BINS_PER_RTT => {
                bin.sum += delay;
                bin.count += 1;
            }
            _ => {
                if self.bins.len() == BINS_MAX {
                    self.bins.pop_front();
                }
                self.bins.push_back(Bin { begun: sent_at, sum: delay, count: 1 });
            }
        }
    }

    /// The path was found to send less.
    pub(super) fn note_cut(&mut self, now: Instant) {
        if self.cuts.len() == CUTS_MAX {
            self.cuts.pop_front();
        }
        self.cuts.push_back(now);
    }

    /// By how many seconds the delay fell around a moment, and whether the window was cut then; `None` if not known.
    pub(super) fn change(&self, at: Instant, rtt: Duration) -> Option<(f64, bool)> {
        let begin = at.saturating_sub(rtt.mul_f64(BEFORE.0));
        let end = at + rtt.mul_f64(AFTER.1);
        let before = self.mean(begin, at.saturating_sub(rtt.mul_f64(BEFORE.1)))?;
        let after = self.mean(at + rtt.mul_f64(AFTER.0), end)?;
        // A cut takes an RTT to be seen whole.
        let from = begin.saturating_sub(rtt / 2);
        let was_cut = self.cuts.iter().any(|&cut| cut >= from && cut <= end);
        Some((before - after, was_cut))
    }

    /// The mean delay of what was sent in a time, in seconds.
    fn mean(&self, from: Instant, to: Instant) -> Option<f64> {
        let inside = self.bins.iter().filter(|bin| bin.begun >= from && bin.begun < to);
        let add = |(sum, count), bin: &Bin| (sum + bin.sum, count + bin.count);
        let (sum, count) = inside.fold((Duration::ZERO, 0), add);
        (count > 0).then(|| sum.as_secs_f64() / f64::from(count))
    }
}
