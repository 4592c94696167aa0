//! Samples of a path as steps: what happened between two looks.

use crate::record::PathRecord;

/// The time between two looks at a path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Step {
    /// When it began, in seconds.
    pub(crate) from: f64,
    /// When it ended.
    pub(crate) to: f64,
    pub(crate) packets_sent: u64,
    pub(crate) chunks_sent: u64,
    /// Chunks sent that were in flight on another path.
    pub(crate) copies: u64,
    pub(crate) lost: u64,
    pub(crate) timeouts: u64,
    /// User bytes acknowledged.
    pub(crate) acked: u64,
    /// A round-trip time that a SACK showed, and the path on which the SACK came.
    pub(crate) rtt: Option<(f64, Option<u16>)>,
    /// A round-trip time that a heartbeat showed.
    pub(crate) heartbeat_rtt: Option<f64>,
    /// Something sent here was answered.
    pub(crate) is_progress: bool,
    /// Neither unconfirmed nor active at its end.
    pub(crate) has_failed: bool,
}

impl Step {
    /// The middle of it, or its end less a little if nothing was looked at for long.
    pub(crate) fn at(&self) -> f64 {
        self.from.max(self.to - 0.02).midpoint(self.to)
    }
}

/// The steps of a path. The first has what was before the beginning.
pub(crate) fn steps(path: &PathRecord) -> Vec<Step> {
    let mut steps = Vec::with_capacity(path.samples.len());
    let mut before = None;
    for (at, now) in &path.samples {
        let grown = |field: fn(&manypath_trace::PathSample) -> u64| {
            let earlier = before.map_or(0, field);
            field(now).checked_sub(earlier).unwrap_or_else(|| field(now))
        };
        let is_news = |changed: bool| changed || before.is_none();
        let acked = grown(|s| s.acked_bytes);
        let measured = grown(|s| s.rtt_samples) > 0;
        let heartbeat_rtt = now
            .rtt_heartbeat_s
            .filter(|rtt| is_news(before.is_some_and(|b| b.rtt_heartbeat_s != Some(*rtt))));
        steps.push(Step {
            from: now.since_s.min(*at),
            to: *at,
            packets_sent: grown(|s| s.packets_sent),
            chunks_sent: grown(|s| s.data_chunks_sent),
            copies: grown(|s| s.redundant_chunks_sent),
            lost: grown(|s| s.chunks_lost),
            timeouts: grown(|s| s.t3_expirations),
            acked,
            rtt: if acked > 0 { now.rtt_s.map(|rtt| (rtt, now.rtt_via)) } else { None },
            heartbeat_rtt,
            is_progress: acked > 0 || measured || heartbeat_rtt.is_some(),
            has_failed: !matches!(now.state.as_str(), "active" | "unconfirmed"),
        });
        before = Some(now);
    }
    steps
}

/// A count over time, which grows evenly within each step.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curve {
    /// Ends of steps and the count there; the time grows.
    points: Vec<(f64, f64)>,
}

impl Curve {
    pub(crate) fn new(steps: &[Step], count: impl Fn(&Step) -> f64) -> Curve {
        let (mut points, mut total) = (Vec::with_capacity(2 * steps.len()), 0.0);
        let mut last = f64::NEG_INFINITY;
        for step in steps {
            if step.from > last {
                points.push((step.from, total));
            }
            total += count(step);
            last = step.to.max(last);
            points.push((last, total));
        }
        Curve { points }
    }

    /// The count at a time.
    pub(crate) fn at(&self, time: f64) -> f64 {
        let after = self.points.partition_point(|(at, _)| *at <= time);
        match (after.checked_sub(1).and_then(|i| self.points.get(i)), self.points.get(after)) {
            (Some((t0, y0)), Some((t1, y1))) => {
                let share = if t1 > t0 { (time - t0) / (t1 - t0) } else { 1.0 };
                y0 + share * (y1 - y0)
            }
            (Some((_, last)), None) => *last,
            (None, _) => 0.0,
        }
    }

    /// By how much it grows from one time to another.
    pub(crate) fn grown(&self, from: f64, to: f64) -> f64 {
        self.at(to) - self.at(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_grows_evenly_within_a_step_and_rests_between() {
        let step = |from, to, acked| Step { from, to, acked, ..Step::default() };
        let steps = [step(0.0, 1.0, 10), step(2.0, 3.0, 20)];
        let curve = Curve::new(&steps, |s| s.acked as f64);
        let at = |t| curve.at(t);
        assert_eq!([at(-1.0), at(0.5), at(1.5), at(2.5), at(9.0)], [0.0, 5.0, 10.0, 20.0, 30.0]);
        assert_eq!(curve.grown(0.5, 2.5), 15.0);
    }
}
