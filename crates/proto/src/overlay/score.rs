//! Scores of paths.

use std::time::Duration;

/// The score of a path, √1.5 / (rtt · √p): the throughput in packets per second that TCP would
/// have at this RTT and loss rate (mTCP §5.1.3, after RON). 0 if the loss rate is not between 0 and
/// 1, or without an RTT.
pub fn score(rtt: Duration, loss: f64) -> f64 {
    let rtt = rtt.as_secs_f64();
    if rtt <= 0.0 || !(loss > 0.0 && loss < 1.0) {
        return 0.0;
    }
    1.5f64.sqrt() / (rtt * loss.sqrt())
}

/// Results of the probes of one path.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Probes {
    /// Probes that were answered or given up.
    pub sent: u32,
    /// Probes that were answered.
    pub answered: u32,
    /// Sum of the RTTs of answered probes.
    pub rtt_sum: Duration,
    /// The shortest of these RTTs.
    pub rtt_min: Option<Duration>,
}

impl Probes {
    /// Adds a probe; `None` is one without an answer.
    pub fn add(&mut self, rtt: Option<Duration>) {
        self.sent = self.sent.saturating_add(1);
        if let Some(rtt) = rtt {
            self.answered = self.answered.saturating_add(1);
            self.rtt_sum = self.rtt_sum.saturating_add(rtt);
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
        }
    }

    /// The mean RTT.
    pub fn rtt(&self) -> Option<Duration> {
        (self.answered > 0).then(|| self.rtt_sum / self.answered)
    }

    /// The measured share of probes without an answer.
    pub fn lost(&self) -> f64 {
        if self.sent == 0 {
            return 0.0;
        }
        f64::from(self.sent - self.answered) / f64::from(self.sent)
    }

    /// The estimated loss rate: (lost + ½) / (sent + 1). The score needs one above 0, and no loss
    /// among twenty probes does not prove that a thousand would have none. RON's estimate is a
    /// moving average, for which the paper gives no lower bound; this one is ours.
    pub fn loss(&self) -> f64 {
        (f64::from(self.sent - self.answered) + 0.5) / (f64::from(self.sent) + 1.0)
    }

    /// The path's [`score`]; 0 if nothing was answered.
    pub fn score(&self) -> f64 {
        self.rtt().map_or(0.0, |rtt| score(rtt, self.loss()))
    }
}
