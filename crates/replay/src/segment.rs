//! Change points: where a noisy series has another level.

use std::ops::Range;

/// Splits a series into pieces of constant level: the split with the least sum of squared errors,
/// in units of the noise, plus a penalty for each piece (optimal partitioning, Jackson et al.,
/// 2005). Each piece has `shortest` values or more, unless the series has less.
pub(crate) fn pieces(values: &[f64], shortest: usize, least_noise: f64) -> Vec<Range<usize>> {
    let (n, shortest) = (values.len(), shortest.max(1));
    if n < 2 * shortest {
        return if n == 0 { Vec::new() } else { vec![Range { start: 0, end: n }] };
    }
    let noise = noise(values).max(least_noise);
    let penalty = 3.0 * (n as f64).ln() + 6.0;
    let mut sums = vec![(0.0, 0.0)];
    for value in values {
        let (sum, squares) = sums[sums.len() - 1];
        sums.push((sum + value, squares + value * value));
    }
    let cost = |from: usize, to: usize| {
        let (sum, squares) = (sums[to].0 - sums[from].0, sums[to].1 - sums[from].1);
        (squares - sum * sum / (to - from) as f64).max(0.0) / (noise * noise)
    };
    let mut best = vec![f64::INFINITY; n + 1];
    let mut begin = vec![0; n + 1];
    best[0] = 0.0;
    for to in shortest..=n {
        for from in 0..=to - shortest {
            let total = best[from] + cost(from, to) + penalty;
            if total < best[to] {
                (best[to], begin[to]) = (total, from);
            }
        }
    }
    let (mut pieces, mut to) = (Vec::new(), n);
    while to > 0 {
        pieces.push(begin[to]..to);
        to = begin[to];
    }
    pieces.reverse();
    pieces
}

/// The standard deviation of the noise, by the median change from one value to the next.
fn noise(values: &[f64]) -> f64 {
    let mut changes: Vec<f64> = values.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
    median(&mut changes) / 0.6745 / std::f64::consts::SQRT_2
}

/// The median, 0 of none.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value that this share of all do not exceed; 0 of none.
pub(crate) fn quantile(values: &mut [f64], share: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    values.sort_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * share).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noisy(level: f64, count: usize) -> impl Iterator<Item = f64> {
        (0..count).map(move |i| level + [0.03, -0.02, 0.01, -0.03, 0.02][i % 5])
    }

    fn ends(values: &[f64]) -> Vec<(usize, usize)> {
        pieces(values, 3, 0.02).into_iter().map(|range| (range.start, range.end)).collect()
    }

    #[test]
    fn a_constant_series_is_one_piece() {
        let values: Vec<f64> = noisy(1.0, 60).collect();
        assert_eq!(ends(&values), [(0, 60)]);
    }

    #[test]
    fn each_level_is_a_piece() {
        let values: Vec<f64> = noisy(1.0, 20).chain(noisy(0.2, 15)).chain(noisy(2.0, 30)).collect();
        assert_eq!(ends(&values), [(0, 20), (20, 35), (35, 65)]);
    }

    #[test]
    fn short_series_are_not_split() {
        assert!(pieces(&[], 3, 0.02).is_empty());
        assert_eq!(ends(&[1.0, 9.0]), [(0, 2)]);
    }
}
