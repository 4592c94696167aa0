//! The probability that a number of signs of two paths come together by chance.

/// Most signs for which the needed number is computed.
const NEEDED_MAX: u32 = 200;

/// The inverse likelihood ratio of k matching signs out of n. It compares "all probabilities of a
/// match are equally likely" with chance, whose likelihood is exp(`log_likelihood`).
///
/// (n + 1) · C(n, k) · exp(`log_likelihood`). If chance it is, this value *ever* falls to zeta with
/// a probability of at most zeta (Ville's inequality), so it may be tested after each sign.
pub(super) fn inverse_ratio(n: u32, k: u32, log_likelihood: f64) -> f64 {
    let choose: f64 = (1..=k).map(|i| (f64::from(n - k + i) / f64::from(i)).ln()).sum();
    (f64::from(n + 1).ln() + choose + log_likelihood).exp()
}

/// ln(p^k · (1 - p)^(n - k)): the log-likelihood of k matching signs out of n, if each matches with
/// probability `p` > 0.
pub(super) fn log_likelihood(n: u32, k: u32, p: f64) -> f64 {
    let apart = if k < n { f64::from(n - k) * (1.0 - p).ln() } else { 0.0 };
    f64::from(k) * p.ln() + apart
}

/// Signs, all of them matching, that bring the inverse ratio down to `zeta`; `None` if 200 do not.
pub(super) fn needed(p: f64, zeta: f64) -> Option<u32> {
    (1..=NEEDED_MAX).find(|&n| inverse_ratio(n, n, log_likelihood(n, n, p)) <= zeta)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statistic_is_the_one_of_the_formula() {
        let of = |n, k, p| inverse_ratio(n, k, log_likelihood(n, k, p));
        // 5 · C(4, 3) · 0.2^3 · 0.8 = 0.128; 4 · 0.2^3 = 0.032.
        assert!((of(4, 3, 0.2) - 0.128).abs() < 1e-12);
        assert!((of(3, 3, 0.2) - 0.032).abs() < 1e-12);
        assert_eq!(
            (needed(0.2, 0.05), needed(0.2, 0.02), needed(1.0, 0.05)),
            (Some(3), Some(4), None)
        );
    }
}
