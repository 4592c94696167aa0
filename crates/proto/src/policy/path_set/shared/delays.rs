//! The delays of data sent on a path and their change around a moment, for [`trial`](super::trial).

use std::collections::VecDeque;
use std::time::Duration;

use super::delay_events::Change;
use crate::time::Instant;

/// Times before and after a moment, in RTTs. The delays of packets sent in these two times are
/// compared. The time between them lets half of a window leave the queue (half an RTT), and makes
/// packets of different paths comparable (half an RTT).
const BEFORE: (f64, f64) = (1.25, 0.5);
const AFTER: (f64, f64) = (1.0, 1.75);
/// Length of a moment in RTTs: before it, and after it until its packets are acknowledged.
pub(super) const BEGIN_RTTS: f64 = BEFORE.0;
pub(super) const END_RTTS: f64 = AFTER.1 + 1.25;
/// Most mean delays remembered, and their number per RTT.
const BINS_MAX: usize = 128;
const BINS_PER_RTT: u32 = 8;
/// Most cuts of the window remembered.
const CUTS_MAX: usize = 8;

/// The delays of the last few RTTs.
#[derive(Debug, Default)]
pub(super) struct Delays {
    bins: VecDeque<Bin>,
    cuts: VecDeque<Instant>,
}

/// Delays of packets sent within an eighth of an RTT.
#[derive(Debug)]
struct Bin {
    begun: Instant,
    sum: Duration,
    count: u32,
}

impl Delays {
    /// Takes note that data sent at `sent_at` was acknowledged after `delay`.
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

    /// Notes that the path sends less from now on.
    pub(super) fn note_cut(&mut self, now: Instant) {
        if self.cuts.len() == CUTS_MAX {
            self.cuts.pop_front();
        }
        self.cuts.push_back(now);
    }

    /// Change of the delay around a moment; `None` if not known.
    pub(super) fn change(&self, at: Instant, rtt: Duration) -> Option<Change> {
        let begin = at.saturating_sub(rtt.mul_f64(BEFORE.0));
        let end = at + rtt.mul_f64(AFTER.1);
        let before = self.mean(begin, at.saturating_sub(rtt.mul_f64(BEFORE.1)))?;
        let after = self.mean(at + rtt.mul_f64(AFTER.0), end)?;
        // The full effect of a cut takes an RTT to show.
        let from = begin.saturating_sub(rtt / 2);
        let acted = self.cuts.iter().any(|&cut| cut >= from && cut <= end);
        Some(Change { fell_s: before - after, acted })
    }

    /// The mean delay of data sent in a period, in seconds.
    fn mean(&self, from: Instant, to: Instant) -> Option<f64> {
        let inside = self.bins.iter().filter(|bin| bin.begun >= from && bin.begun < to);
        let add = |(sum, count), bin: &Bin| (sum + bin.sum, count + bin.count);
        let (sum, count) = inside.fold((Duration::ZERO, 0), add);
        (count > 0).then(|| sum.as_secs_f64() / f64::from(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// 80 ms for what is sent before `at`, and 60 ms from then on; a packet in 5 ms, for two
    /// seconds.
    fn falls_at(at: u64) -> Delays {
        let mut delays = Delays::default();
        for sent in (1000..3000).step_by(5) {
            let delay = Duration::from_millis(if sent < at { 80 } else { 60 });
            delays.note(ms(sent), delay, RTT);
        }
        delays
    }

    #[test]
    fn a_change_is_that_of_what_is_sent_before_and_after() {
        let mut delays = falls_at(2000);
        let change = delays.change(ms(2000), RTT).expect("known");
        assert!((change.fell_s - 0.02).abs() < 1e-9 && !change.acted, "{change:?}");
        assert!(delays.change(ms(2400), RTT).expect("known").fell_s.abs() < 1e-9);
        delays.note_cut(ms(2050));
        assert!(delays.change(ms(2000), RTT).expect("known").acted);
        assert!(!delays.change(ms(2400), RTT).expect("known").acted, "long before");
        assert!(!delays.change(ms(1800), RTT).expect("known").acted, "after it");
    }

    #[test]
    fn what_was_not_measured_is_not_known() {
        let delays = falls_at(2000);
        assert_eq!(delays.change(ms(900), RTT), None);
        assert_eq!(delays.change(ms(2950), RTT), None);
        assert_eq!(Delays::default().change(ms(0), RTT), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut delays = Delays::default();
        for n in 0..10_000 {
            delays.note(ms(n * 50), RTT, RTT);
            delays.note_cut(ms(n * 50));
        }
        assert_eq!((delays.bins.len(), delays.cuts.len()), (BINS_MAX, CUTS_MAX));
        delays.note(ms(1), RTT, RTT);
        assert_eq!(delays.bins.len(), BINS_MAX, "older than the latest: with that");
    }
}
