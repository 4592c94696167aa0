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
        is_near(t_quantile(freedom, 0.975), value, 1e-4);
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
    let (a, b) = (Moments { mean: 0.0, std: 2.0, n: 10 }, Moments { mean: 0.0, std: 1.0, n: 20 });
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
    assert_eq!(paired.value, 2.0);
    is_near(paired.ci95().unwrap(), 0.0, 1e-12);
    let moments = |values: Vec<f64>| {
        let s = Summary::of(&values).unwrap();
        Moments { mean: s.mean, std: s.std.unwrap(), n: s.n }
    };
    let (a, b): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let apart = ratio(moments(a), moments(b)).unwrap();
    assert_eq!(apart.value, 2.0);
    assert!(apart.ci95().unwrap() > 0.5, "{apart:?}");
}

#[test]
fn the_difference_of_pairs() {
    let paired = paired_difference(&[(5.0, 1.0), (7.0, 2.0), (9.0, 3.0)]).unwrap();
    assert_eq!(paired.value, 5.0);
    is_near(paired.ci95().unwrap(), 4.302_65 / 3.0_f64.sqrt(), 1e-4);
    let (a, b) = (Moments { mean: 7.0, std: 2.0, n: 3 }, Moments { mean: 2.0, std: 1.0, n: 3 });
    let apart = difference(a, b);
    assert_eq!(apart.value, 5.0);
    // Welch: 2.9412 degrees of freedom.
    is_near(apart.ci95().unwrap(), 3.219_4 * (5.0_f64 / 3.0).sqrt(), 5e-3);
    assert_eq!(difference(a, Moments { n: 1, ..b }), Estimate { value: 5.0, spread: None });
    assert_eq!(paired_ratio(&[]), None);
    assert_eq!(paired_ratio(&[(1.0, 0.0)]), None);
}

#[test]
fn two_one_sided_tests_have_the_interval_of_90_percent() {
    let spread = Spread::of_mean(2.0, 4).unwrap();
    // t of 3 degrees of freedom: 3.182 at 97.5 %, 2.353 at 95 %.
    is_near(spread.ci95(), 3.182_45, 1e-4);
    is_near(spread.two_tests(), 2.353_36, 1e-4);
    assert_eq!(Spread::of_mean(2.0, 1), None);
    let sum = spread.with(Spread { error: 0.75, freedom: 9.0 });
    assert_eq!((sum.error, sum.freedom), (1.25, 3.0));
}
