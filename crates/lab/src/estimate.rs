//! How long the runs of plans will take, estimated from some of them.

use std::num::NonZeroUsize;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::experiment::Kind;
use crate::lab::{Plans, Run, runs_of};
use crate::runner::run_in_order;

/// Most runs that are tried.
const TRIED_MAX: usize = 200;

/// How long the simulated runs will take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Of all runs, on the threads that were asked for.
    pub time: Duration,
    /// Runs that it was estimated from.
    pub tried: usize,
}

/// Tries simulated runs from all over the plans until `within` has passed by the clock `now`; the
/// last ones are finished. Runs in real time are no part of it. `None` if there is nothing to try.
pub fn estimate(
    plans: &Plans<'_>,
    jobs: NonZeroUsize,
    within: Duration,
    now: &(dyn Fn() -> Instant + Sync),
    cancel: &AtomicBool,
) -> Option<Estimate> {
    let runs = runs_of(plans);
    let runs: Vec<&Run<'_>> =
        runs.iter().filter(|run| run.experiment.kind != Kind::Realtime).collect();
    let begin = now();
    let work = |number: usize| {
        let own = now();
        if own.duration_since(begin) >= within {
            return Err("the time is over".to_owned());
        }
        let run = runs.get(spread(number, runs.len())).ok_or("no such run")?;
        run.point.run.run(run.seed, None).map(|_| now().duration_since(own))
    };
    let mut times = Vec::new();
    run_in_order(TRIED_MAX.min(runs.len()), jobs, cancel, work, |_, time| times.extend(time));
    let tried = times.len();
    let mean = times.iter().sum::<Duration>().checked_div(u32::try_from(tried).ok()?)?;
    let time = mean.mul_f64(runs.len() as f64 / jobs.get().min(runs.len()) as f64);
    Some(Estimate { time, tried })
}

/// The place of try `number` among `count` runs. However many are tried, they are spread evenly:
/// the digits of the number, in base 2, are reversed behind the point.
fn spread(number: usize, count: usize) -> usize {
    let fraction = (number as u32).reverse_bits() as f64 / (f64::from(u32::MAX) + 1.0);
    (fraction * count as f64) as usize
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use manypath_sim::Sampling;

    use super::*;
    use crate::experiment::Experiments;
    use crate::plan::{Plan, PlannedPoint, RunData, Runnable};

    struct Sleeper(Duration);

    impl Runnable for Sleeper {
        fn run(&self, _seed: u64, _samples: Option<Sampling>) -> Result<RunData, String> {
            std::thread::sleep(self.0);
            Ok(RunData::default())
        }
    }

    fn plan(milliseconds: u64, seeds: u64) -> Plan {
        let point = PlannedPoint {
            variant: Arc::from("scenario"),
            params: Arc::default(),
            run: Box::new(Sleeper(Duration::from_millis(milliseconds))),
            seeds: (1..=seeds).collect(),
            command: String::new(),
        };
        Plan { points: vec![point] }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the runs of this test take time")]
    fn few_of_the_runs_tell_how_long_all_take() {
        let all = Experiments::find(None).unwrap();
        let mut simulated = all.all().iter().filter(|own| own.kind == Kind::Simulated);
        let (short, long) = (simulated.next().unwrap(), simulated.next().unwrap());
        // 1,000 runs of 5 ms and as many of 15 ms: 20 s, on two threads 10 s.
        let plans = vec![(short, plan(5, 1000)), (long, plan(15, 1000))];
        let (two, within) = (NonZeroUsize::new(2).unwrap(), Duration::from_millis(300));
        let found = estimate(&plans, two, within, &Instant::now, &AtomicBool::new(false)).unwrap();
        assert!((10..2000).contains(&found.tried), "{found:?}");
        assert!((9.0..20.0).contains(&found.time.as_secs_f64()), "{found:?}");
        let none = estimate(&Vec::new(), two, within, &Instant::now, &AtomicBool::new(false));
        assert_eq!(none, None);
    }

    #[test]
    fn tries_are_spread_however_many_they_are() {
        let places: Vec<usize> = (0..8).map(|number| spread(number, 80)).collect();
        assert_eq!(places, [0, 40, 20, 60, 10, 50, 30, 70]);
    }
}
