//! Statistics of runs: means with confidence intervals, Welch's test, comparisons paired by seed.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The confidence level of all intervals.
pub const CONFIDENCE: f64 = 0.95;

/// Statistics of one field over a sample of runs.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Summary {
    /// How many values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample (divisor n - 1); `None` below two values.
    pub std: Option<f64>,
    /// Median: the middle value, or the mean of the two in the middle.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

impl Summary {
    /// Summarises the values; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let middle = sorted.len() / 2;
        let upper = sorted.get(middle).copied()?;
        let median = match sorted.len() % 2 {
            0 => (sorted.get(middle - 1).copied()? + upper) / 2.0,
            _ => upper,
        };
        let mean = mean(values);
        Some(Summary { n: values.len(), mean, std: std(values, mean), median, min, max })
    }

    /// Half the width of the mean's 95 % confidence interval (Student's t); `None` below two
    /// values.
    pub fn ci95(&self) -> Option<f64> {
        half_width(self.std?, self.n)
    }
}

/// Half the width of the 95 % confidence interval of a mean of `n` values with that standard
/// deviation; `None` below two values.
pub fn half_width(std: f64, n: usize) -> Option<f64> {
    (n >= 2).then(|| t_quantile(n as f64 - 1.0) * std / (n as f64).sqrt())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn std(values: &[f64], mean: f64) -> Option<f64> {
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (values.len() >= 2).then(|| (squares / (values.len() as f64 - 1.0)).sqrt())
}

/// The factor of the two-sided 95 % interval with that many degrees of freedom.
fn t_quantile(freedom: f64) -> f64 {
    let t = StudentsT::new(0.0, 1.0, freedom);
    t.map_or(f64::INFINITY, |t| t.inverse_cdf(0.5 + CONFIDENCE / 2.0))
}

/// Mean, standard deviation and number of a sample, as far as a test needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation (divisor n - 1).
    pub std: f64,
    /// How many values.
    pub n: usize,
}

/// The two-sided p value of Welch's t test that two samples have the same mean; `None` if one has
/// fewer than two values. Without any spread it is 1 for equal means and 0 otherwise.
pub fn welch_p(a: Moments, b: Moments) -> Option<f64> {
    if a.n < 2 || b.n < 2 {
        return None;
    }
    let (va, vb) = (variance_of_mean(a), variance_of_mean(b));
    if va + vb == 0.0 {
        return Some(if a.mean == b.mean { 1.0 } else { 0.0 });
    }
    let t = StudentsT::new(0.0, 1.0, welch_freedom(a, b)).ok()?;
    Some(2.0 * t.cdf(-((a.mean - b.mean) / (va + vb).sqrt()).abs()))
}

fn variance_of_mean(m: Moments) -> f64 {
    m.std.powi(2) / m.n as f64
}

/// Welch-Satterthwaite degrees of freedom.
fn welch_freedom(a: Moments, b: Moments) -> f64 {
    let (va, vb) = (variance_of_mean(a), variance_of_mean(b));
    let part = |v: f64, n: usize| v.powi(2) / (n as f64 - 1.0);
    (va + vb).powi(2) / (part(va, a.n) + part(vb, b.n))
}

/// A ratio of two means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Mean over mean.
    pub ratio: f64,
    /// Half the width of its 95 % confidence interval; `None` if there are too few values.
    pub ci95: Option<f64>,
}

/// The ratio of the means of values that belong together (same seed), first over second. Its
/// interval takes the spread of the pairs, so what both have in common does not widen it.
pub fn paired_ratio(pairs: &[(f64, f64)]) -> Option<Ratio> {
    let n = pairs.len() as f64;
    let below = pairs.iter().map(|(_, b)| b).sum::<f64>() / n;
    if pairs.is_empty() || below == 0.0 {
        return None;
    }
    let ratio = pairs.iter().map(|(a, _)| a).sum::<f64>() / n / below;
    // Delta method: the residuals a - ratio * b have mean 0.
    let rests: Vec<_> = pairs.iter().map(|(a, b)| a - ratio * b).collect();
    let spread = std(&rests, 0.0);
    let ci95 = spread.and_then(|s| half_width(s, pairs.len())).map(|half| half / below.abs());
    Some(Ratio { ratio, ci95 })
}

/// The ratio of the means of two independent samples.
pub fn ratio(a: Moments, b: Moments) -> Option<Ratio> {
    if b.mean == 0.0 {
        return None;
    }
    let ratio = a.mean / b.mean;
    let variance = (variance_of_mean(a) + ratio.powi(2) * variance_of_mean(b)) / b.mean.powi(2);
    let has_spread = a.n >= 2 && b.n >= 2 && variance > 0.0;
    let ci95 = has_spread.then(|| t_quantile(welch_freedom(a, b)) * variance.sqrt());
    Some(Ratio { ratio, ci95 })
}

/// The difference of the means of two independent samples, first less second, with half the width
/// of its 95 % confidence interval (Welch); `None` if one has fewer than two values.
pub fn difference(a: Moments, b: Moments) -> (f64, Option<f64>) {
    let variance = variance_of_mean(a) + variance_of_mean(b);
    let has_spread = a.n >= 2 && b.n >= 2 && variance > 0.0;
    let half = has_spread.then(|| t_quantile(welch_freedom(a, b)) * variance.sqrt());
    (a.mean - b.mean, half)
}

/// The mean difference of values that belong together (same seed), first minus second, with half
/// the width of its 95 % confidence interval.
pub fn paired_difference(pairs: &[(f64, f64)]) -> Option<(f64, Option<f64>)> {
    let differences: Vec<_> = pairs.iter().map(|(a, b)| a - b).collect();
    let summary = Summary::of(&differences)?;
    Some((summary.mean, summary.ci95()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(a: f64, b: f64, within: f64) {
        assert!((a - b).abs() <= within, "{a} is not {b}");
    }

    #[test]
    fn a_summary_of_known_values() {
        let s = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!((s.n, s.mean, s.median, s.min, s.max), (8, 5.0, 4.5, 2.0, 9.0));
        is_near(s.std.unwrap(), (32.0_f64 / 7.0).sqrt(), 1e-12);
        // Table of Student's t: 2.365 for 7 degrees of freedom.
        is_near(s.ci95().unwrap(), 2.364_624 * s.std.unwrap() / 8.0_f64.sqrt(), 1e-5);
    }

    #[test]
    fn one_value_has_no_interval_and_none_has_no_summary() {
        let s = Summary::of(&[3.0]).unwrap();
        assert_eq!((s.mean, s.median, s.std, s.ci95()), (3.0, 3.0, None, None));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn quantiles_of_students_t_are_the_tables() {
        for (freedom, value) in [(1.0, 12.7062), (4.0, 2.7764), (29.0, 2.0452), (59.0, 2.0010)] {
            is_near(t_quantile(freedom), value, 1e-4);
        }
    }

    #[test]
    fn welch_test_gives_the_values_of_the_tables() {
        // Alike in size and deviation it is Student's test with 18 degrees of freedom: 2.1009 is 5
        // %.
        let a = Moments { mean: 0.0, std: 1.0, n: 10 };
        let b = Moments { mean: 2.1009 * 0.2_f64.sqrt(), ..a };
        is_near(welch_p(a, b).unwrap(), 0.05, 1e-5);
        // If one has no deviation the other's degrees of freedom are left: 2.7764 is 5 % with 4.
        let exact = Moments { mean: 10.0, std: 0.0, n: 7 };
        let other = Moments { mean: 10.0 - 2.7764 * 3.0 / 5.0_f64.sqrt(), std: 3.0, n: 5 };
        is_near(welch_p(exact, other).unwrap(), 0.05, 1e-5);
        // Unequal deviations: (4/10 + 1/20)^2 / ((4/10)^2/9 + (1/20)^2/19).
        let (a, b) =
            (Moments { mean: 0.0, std: 2.0, n: 10 }, Moments { mean: 0.0, std: 1.0, n: 20 });
        is_near(welch_freedom(a, b), 11.3069, 1e-4);
        assert_eq!(welch_p(a, b), Some(1.0));
    }

    #[test]
    fn welch_test_without_spread() {
        let at = |mean| Moments { mean, std: 0.0, n: 5 };
        assert_eq!(welch_p(at(1.0), at(1.0)), Some(1.0));
        assert_eq!(welch_p(at(1.0), at(2.0)), Some(0.0));
        assert_eq!(welch_p(at(1.0), Moments { n: 1, ..at(1.0) }), None);
    }

    #[test]
    fn what_pairs_have_in_common_does_not_widen_their_ratio() {
        let pairs: Vec<_> = (1..=20).map(|i| (2.0 * f64::from(i), f64::from(i))).collect();
        let paired = paired_ratio(&pairs).unwrap();
        assert_eq!(paired.ratio, 2.0);
        is_near(paired.ci95.unwrap(), 0.0, 1e-12);
        let moments = |values: Vec<f64>| {
            let s = Summary::of(&values).unwrap();
            Moments { mean: s.mean, std: s.std.unwrap(), n: s.n }
        };
        let (a, b): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let apart = ratio(moments(a), moments(b)).unwrap();
        assert_eq!(apart.ratio, 2.0);
        assert!(apart.ci95.unwrap() > 0.5, "{apart:?}");
    }

    #[test]
    fn the_difference_of_pairs() {
        let (mean, half) = paired_difference(&[(5.0, 1.0), (7.0, 2.0), (9.0, 3.0)]).unwrap();
        assert_eq!(mean, 5.0);
        is_near(half.unwrap(), 4.302_65 / 3.0_f64.sqrt(), 1e-4);
        let (a, b) = (Moments { mean: 7.0, std: 2.0, n: 3 }, Moments { mean: 2.0, std: 1.0, n: 3 });
        let (apart, half) = difference(a, b);
        assert_eq!(apart, 5.0);
        // Welch: 2.9412 degrees of freedom.
        is_near(half.unwrap(), 3.219_4 * (5.0_f64 / 3.0).sqrt(), 5e-3);
        assert_eq!(difference(a, Moments { n: 1, ..b }), (5.0, None));
        assert_eq!(paired_ratio(&[]), None);
        assert_eq!(paired_ratio(&[(1.0, 0.0)]), None);
    }
}
