//! Statistics of runs: means with confidence intervals, Welch's test, comparisons paired by seed.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

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
        self.spread().map(Spread::ci95)
    }

    /// How far chance spreads the mean; `None` below two values.
    pub fn spread(&self) -> Option<Spread> {
        Spread::of_mean(self.std?, self.n)
    }
}

/// How far chance spreads an estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Standard error, in the estimate's unit.
    pub error: f64,
    /// Degrees of freedom of the error, above 0.
    pub freedom: f64,
}

impl Spread {
    /// Spread of a mean of `n` values with that standard deviation; `None` below two values.
    pub fn of_mean(std: f64, n: usize) -> Option<Spread> {
        let n = n as f64;
        (n >= 2.0).then(|| Spread { error: std / n.sqrt(), freedom: n - 1.0 })
    }

    /// Spread of a mean of many values, from half the width of its confidence interval at a level
    /// between 0 and 1.
    pub fn of_interval(half: f64, confidence: f64) -> Spread {
        let quantile = Normal::standard().inverse_cdf(0.5 + confidence / 2.0);
        Spread { error: half / quantile, freedom: f64::INFINITY }
    }

    /// Half the width of the 95 % confidence interval.
    pub fn ci95(self) -> f64 {
        self.half_width(CONFIDENCE)
    }

    /// Half the width of the confidence interval at a level between 0 and 1.
    pub fn half_width(self, confidence: f64) -> f64 {
        self.error * t_quantile(self.freedom, 0.5 + confidence / 2.0)
    }

    /// Half the width of the interval of two one-sided tests at 5 %, a 90 % confidence interval:
    /// if it lies inside a band, both tests say that the estimate does.
    pub fn two_tests(self) -> f64 {
        self.error * t_quantile(self.freedom, CONFIDENCE)
    }

    /// Spread of the sum or difference of two independent estimates. The degrees of freedom are
    /// the lower ones of the two.
    pub fn with(self, other: Spread) -> Spread {
        Spread { error: self.error.hypot(other.error), freedom: self.freedom.min(other.freedom) }
    }

    /// Spread of the estimate times a factor.
    pub fn times(self, factor: f64) -> Spread {
        Spread { error: self.error * factor.abs(), ..self }
    }
}

/// An estimate, and how far chance spreads it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Spread of the estimate; `None` if there are too few values.
    pub spread: Option<Spread>,
}

impl Estimate {
    /// Half the width of its 95 % confidence interval; `None` if there are too few values.
    pub fn ci95(&self) -> Option<f64> {
        self.spread.map(Spread::ci95)
    }
}

/// Half the width of the 95 % confidence interval of a mean of `n` values with that standard
/// deviation; `None` below two values.
pub fn half_width(std: f64, n: usize) -> Option<f64> {
    Spread::of_mean(std, n).map(Spread::ci95)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn std(values: &[f64], mean: f64) -> Option<f64> {
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (values.len() >= 2).then(|| (squares / (values.len() as f64 - 1.0)).sqrt())
}

/// The value below which that share of Student's t distribution lies, with that many degrees of
/// freedom.
fn t_quantile(freedom: f64, share: f64) -> f64 {
    let t = StudentsT::new(0.0, 1.0, freedom);
    t.map_or(f64::INFINITY, |t| t.inverse_cdf(share))
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

/// The ratio of the means of values that belong together (same seed), first over second. Its
/// interval takes the spread of the pairs, so what both have in common does not widen it.
pub fn paired_ratio(pairs: &[(f64, f64)]) -> Option<Estimate> {
    let n = pairs.len() as f64;
    let below = pairs.iter().map(|(_, b)| b).sum::<f64>() / n;
    if pairs.is_empty() || below == 0.0 {
        return None;
    }
    let ratio = pairs.iter().map(|(a, _)| a).sum::<f64>() / n / below;
    // Delta method: the residuals a - ratio * b have mean 0.
    let rests: Vec<_> = pairs.iter().map(|(a, b)| a - ratio * b).collect();
    let spread = std(&rests, 0.0).and_then(|std| Spread::of_mean(std, pairs.len()));
    Some(Estimate { value: ratio, spread: spread.map(|s| s.times(1.0 / below)) })
}

/// The ratio of the means of two independent samples.
pub fn ratio(a: Moments, b: Moments) -> Option<Estimate> {
    if b.mean == 0.0 {
        return None;
    }
    let ratio = a.mean / b.mean;
    let variance = (variance_of_mean(a) + ratio.powi(2) * variance_of_mean(b)) / b.mean.powi(2);
    Some(Estimate { value: ratio, spread: welch_spread(a, b, variance) })
}

/// The difference of the means of two independent samples (Welch), first less second.
pub fn difference(a: Moments, b: Moments) -> Estimate {
    let variance = variance_of_mean(a) + variance_of_mean(b);
    Estimate { value: a.mean - b.mean, spread: welch_spread(a, b, variance) }
}

fn welch_spread(a: Moments, b: Moments, variance: f64) -> Option<Spread> {
    let has_spread = a.n >= 2 && b.n >= 2 && variance > 0.0;
    has_spread.then(|| Spread { error: variance.sqrt(), freedom: welch_freedom(a, b) })
}

/// The two-sided p value of the paired t test that values that belong together (same seed) have the
/// same mean; `None` below two pairs. Without any spread it is 1 for equal means and 0 otherwise.
pub fn paired_p(pairs: &[(f64, f64)]) -> Option<f64> {
    let differences: Vec<_> = pairs.iter().map(|(a, b)| a - b).collect();
    let Summary { n, mean, std, .. } = Summary::of(&differences)?;
    let deviation = std? / (n as f64).sqrt();
    if deviation == 0.0 {
        return Some(if mean == 0.0 { 1.0 } else { 0.0 });
    }
    let t = StudentsT::new(0.0, 1.0, n as f64 - 1.0).ok()?;
    Some(2.0 * t.cdf(-(mean / deviation).abs()))
}

/// The mean difference of values that belong together (same seed), first minus second.
pub fn paired_difference(pairs: &[(f64, f64)]) -> Option<Estimate> {
    let differences: Vec<_> = pairs.iter().map(|(a, b)| a - b).collect();
    let summary = Summary::of(&differences)?;
    Some(Estimate { value: summary.mean, spread: summary.spread() })
}

#[cfg(test)]
mod tests;
