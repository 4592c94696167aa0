//! Which paths share a bottleneck.

use crate::rate::{Load, width, windows};
use crate::segment::median;

/// Windows in which both queues are filled, for a verdict.
const NEEDED: usize = 8;
/// The least correlation of queueing delays.
const DELAYS_TOGETHER: f64 = 0.7;
/// Queueing delays of one queue differ by less, as a part of their mean.
const DELAYS_EQUAL: f64 = 0.35;
/// The variance of the sum of rates over the sum of their variances: one link has a constant rate,
/// so that what one path gains, the other loses.
const RATES_OPPOSED: f64 = 0.5;
/// A verdict leaves out one window in this number at each end of the order of summed rates: a
/// machine that stands still, or a sender that waits for its last packets, leaves both paths idle
/// for a moment, and squares give that moment more weight than all the others.
const WINDOWS_PER_OUTLIER: usize = 20;
/// Rates that vary less than this part of their mean say nothing.
const RATES_VARY: f64 = 0.05;

/// Groups of paths that share a bottleneck, of two paths or more. `found` are pairs that the sender
/// itself found.
pub(crate) fn groups(loads: &[&Load], found: &[(usize, usize)], until: f64) -> Vec<Vec<usize>> {
    let mut group: Vec<usize> = (0..loads.len()).collect();
    for i in 0..loads.len() {
        for j in i + 1..loads.len() {
            let is_found = found.iter().any(|pair| *pair == (i, j) || *pair == (j, i));
            if is_found || is_shared(loads[i], loads[j], until) {
                let (from, to) = (group[j], group[i]);
                group.iter_mut().filter(|g| **g == from).for_each(|g| *g = to);
            }
        }
    }
    let members = |g: usize| (0..loads.len()).filter(|path| group[*path] == g).collect::<Vec<_>>();
    (0..loads.len()).map(members).filter(|members| members.len() > 1).collect()
}

/// True if delays and rates of both paths are those of one queue.
fn is_shared(a: &Load, b: &Load, until: f64) -> bool {
    let width = width(a.base.max(b.base), until);
    let (of_a, of_b) = (windows(&[a], width, until, 0.0), windows(&[b], width, until, 0.0));
    let both: Vec<_> = of_a.iter().zip(&of_b).filter(|(x, y)| x.is_filled && y.is_filled).collect();
    if both.len() < NEEDED {
        return false;
    }
    let delay = |load: &Load, from, to| median(&mut load.delays(from, to).collect::<Vec<_>>());
    let delays: Vec<(f64, f64)> =
        both.iter().map(|(w, _)| (delay(a, w.from, w.to), delay(b, w.from, w.to))).collect();
    let rates = without_outliers(both.iter().map(|(x, y)| (x.bps, y.bps)).collect());
    let mut differences: Vec<f64> =
        delays.iter().map(|(x, y)| (x - y).abs() / x.midpoint(*y).max(1e-9)).collect();
    let (va, vb, covariance) = moments(&delays);
    let together = covariance / (va * vb).sqrt().max(f64::MIN_POSITIVE);
    let (va, vb, covariance) = moments(&rates);
    let mean = rates.iter().map(|(x, y)| x + y).sum::<f64>() / rates.len() as f64 / 2.0;
    let varies = ((va + vb) / 2.0).sqrt() > RATES_VARY * mean;
    let opposed = (va + vb + 2.0 * covariance) < RATES_OPPOSED * (va + vb);
    together > DELAYS_TOGETHER && median(&mut differences) < DELAYS_EQUAL && varies && opposed
}

/// Pairs of rates without those of the lowest and the highest sums.
fn without_outliers(mut rates: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let each_end = rates.len() / WINDOWS_PER_OUTLIER;
    rates.sort_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1)));
    rates.truncate(rates.len() - each_end);
    rates.split_off(each_end)
}

/// Variances and covariance.
fn moments(pairs: &[(f64, f64)]) -> (f64, f64, f64) {
    let n = pairs.len() as f64;
    let (a, b) = pairs.iter().fold((0.0, 0.0), |(a, b), (x, y)| (a + x / n, b + y / n));
    pairs.iter().fold((0.0, 0.0, 0.0), |(aa, bb, ab), (x, y)| {
        let (x, y) = (x - a, y - b);
        (aa + x * x / n, bb + y * y / n, ab + x * y / n)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::{Curve, Step};

    /// A path of 10 s with this rate and queueing delay over time.
    fn load(bps: impl Fn(f64) -> f64, delay: impl Fn(f64) -> f64) -> Load {
        let at = |n: usize| n as f64 * 0.01;
        let step = |n: usize| Step {
            from: at(n),
            to: at(n + 1),
            acked: (bps(at(n)) * 0.01) as u64,
            ..Step::default()
        };
        let steps: Vec<Step> = (0..1000).map(step).collect();
        let queueing = (0..1000).map(|n| (at(n) + 0.005, delay(at(n)))).collect();
        let bits = Curve::new(&steps, |s| s.acked as f64);
        Load::new(bits, queueing, Vec::new(), Vec::new(), 0.04)
    }

    fn wave(at: f64) -> f64 {
        0.5 + 0.4 * (at * 2.0).sin()
    }

    #[test]
    fn what_one_path_gains_the_other_loses_and_both_wait_alike() {
        let delay = |at: f64| 0.02 + 0.02 * wave(at * 1.7);
        let a = load(|at| 10e6 * wave(at), delay);
        let b = load(|at| 10e6 * (1.0 - wave(at)), delay);
        assert_eq!(groups(&[&a, &b], &[], 10.0), [[0, 1]]);
    }

    #[test]
    fn a_moment_in_which_both_stand_still_decides_nothing() {
        let share = |at: f64| 0.4 + 0.2 * wave(at);
        let runs = |at: f64| if (9.0..9.2).contains(&at) { 0.0 } else { 10e6 };
        let delay = |at: f64| 0.02 + 0.02 * wave(at * 1.7);
        let a = load(|at| runs(at) * share(at), delay);
        let b = load(|at| runs(at) * (1.0 - share(at)), delay);
        assert_eq!(groups(&[&a, &b], &[], 10.0), [[0, 1]]);
    }

    #[test]
    fn links_of_their_own_with_equal_queues_are_two() {
        let delay = |at: f64| 0.02 + 0.02 * wave(at * 1.7);
        let (a, b) = (load(|_| 5e6, delay), load(|_| 5e6, delay));
        assert!(groups(&[&a, &b], &[], 10.0).is_empty());
    }

    #[test]
    fn queues_of_their_own_are_two() {
        let a = load(|at| 10e6 * wave(at), |at| 0.02 + 0.02 * wave(at));
        let b = load(|at| 10e6 * (1.0 - wave(at)), |at| 0.02 + 0.02 * wave(at * 3.1));
        assert!(groups(&[&a, &b], &[], 10.0).is_empty());
        assert_eq!(groups(&[&a, &b], &[(0, 1)], 10.0), [[0, 1]], "but the sender knew");
    }
}
