//! HyStart++ (RFC 9406): leaves slow start when the round-trip time grows, before the queue of the
//! path overflows.

use std::time::Duration;

use super::AckFacts;

/// MIN_RTT_THRESH and MAX_RTT_THRESH: bounds of the growth that counts.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
/// MIN_RTT_DIVISOR: within these bounds, the growth that counts is this part of the RTT.
const MIN_RTT_DIVISOR: u32 = 8;
/// N_RTT_SAMPLE: samples of a round before it is judged.
const N_RTT_SAMPLE: u32 = 8;
/// CSS_GROWTH_DIVISOR: conservative slow start is slower by this factor.
const CSS_GROWTH_DIVISOR: usize = 4;
/// CSS_ROUNDS: rounds that it lasts.
const CSS_ROUNDS: u32 = 5;

/// Conservative slow start (CSS).
#[derive(Clone, Debug)]
struct Conservative {
    /// cssBaselineMinRtt: an RTT below it shows that slow start ended too early.
    baseline: Duration,
    /// Rounds that have ended.
    rounds: u32,
}

/// The first slow start of a path (§4.2).
#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    /// windowEnd: the round ends when something sent later is acknowledged.
    window_end: Option<u64>,
    last_round_min_rtt: Option<Duration>,
    current_round_min_rtt: Option<Duration>,
    rtt_sample_count: u32,
    conservative: Option<Conservative>,
}

impl HyStart {
    /// The factor by which the window grows less than in standard slow start.
    pub(super) fn growth_divisor(&self) -> usize {
        if self.conservative.is_some() { CSS_GROWTH_DIVISOR } else { 1 }
    }

    /// Takes note of a SACK. True if congestion avoidance shall begin.
    pub(super) fn ends_slow_start(&mut self, ack: &AckFacts) -> bool {
        let window_end = *self.window_end.get_or_insert(ack.latest_sent);
        if ack.latest_acked.is_some_and(|acked| acked > window_end) {
            self.window_end = Some(ack.latest_sent);
            self.last_round_min_rtt = self.current_round_min_rtt.take();
            self.rtt_sample_count = 0;
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
                if conservative.rounds >= CSS_ROUNDS {
                    return true;
                }
            }
        }
        if let Some(rtt) = ack.rtt {
            let least = self.current_round_min_rtt.map_or(rtt, |least| least.min(rtt));
            self.current_round_min_rtt = Some(least);
            self.rtt_sample_count += 1;
        }
        if self.rtt_sample_count >= N_RTT_SAMPLE {
            self.judge_round();
        }
        false
    }

    /// Enters CSS if the RTT has grown, and leaves it if the growth did not last.
    fn judge_round(&mut self) {
        let Some(current) = self.current_round_min_rtt else { return };
        match (&self.conservative, self.last_round_min_rtt) {
            (Some(conservative), _) if current < conservative.baseline => self.conservative = None,
            (None, Some(last)) if current >= last + threshold(last) => {
                self.conservative = Some(Conservative { baseline: current, rounds: 0 });
            }
            _ => {}
        }
    }
}

/// RttThresh: the growth of the RTT from one round to the next that ends slow start.
fn threshold(last: Duration) -> Duration {
    (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
}
