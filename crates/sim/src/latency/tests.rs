use super::*;
use proptest::prelude::*;

#[test]
fn classes_follow_one_another_and_hold_their_middle() {
    let mut last = 0;
    for micros in (0..100_000).chain((17..36).map(|bits| (1 << bits) - 1)) {
        let class = class_of(micros);
        assert!(class >= last && class < CLASSES);
        assert!(micros > 100_000 || class <= last + 1, "no class is left out");
        let error = (middle(class) - micros as f64).abs();
        assert!(error <= micros as f64 / 256.0, "{micros}: {error}");
        last = class;
    }
    assert_eq!(class_of(LARGEST) + 1, CLASSES);
    assert!(CLASSES * size_of::<u64>() < 32 << 10);
}

proptest! {
    #[test]
    fn quantiles_are_those_of_the_sorted_list(
        lengths in proptest::collection::vec(0_u64..10_000_000, 1..500),
        part in 0.0_f64..=1.0,
    ) {
        let mut histogram = DurationHistogram::default();
        for &micros in &lengths {
            histogram.add(Duration::from_micros(micros), 1);
        }
        let mut sorted = lengths.clone();
        sorted.sort_unstable();
        let rank = ((part * lengths.len() as f64).ceil() as usize).max(1);
        let exact = sorted[rank - 1] as f64 / 1e6;
        let got = histogram.quantile_s(part).unwrap();
        prop_assert!((got - exact).abs() <= exact / 256.0 + 1e-9, "{got} for {exact}");
    }
}

#[test]
fn nothing_measured_has_no_quantile_and_nothing_overflows() {
    let mut histogram = DurationHistogram::default();
    assert_eq!(histogram.quantile_s(0.99), None);
    histogram.add(Duration::MAX, u64::MAX >> 1);
    assert!(histogram.quantile_s(0.5).is_some_and(|s| (68_000.0..69_000.0).contains(&s)));
}

#[test]
fn a_message_takes_from_its_handing_over_to_its_delivery() {
    let mut meter = LatencyMeter::default();
    let at = Instant::from_millis;
    meter.note(3, 0, at(0));
    meter.note(4, 1, at(100));
    assert!(meter.p99_s().is_some_and(|s| (s - 0.1).abs() < 0.001));
    meter.note(4, 4, at(400));
    // 100, 400, 400 and 300 ms
    assert!(meter.histogram.quantile_s(0.5).is_some_and(|s| (s - 0.3).abs() < 0.003));
    assert!(meter.p99_s().is_some_and(|s| (s - 0.4).abs() < 0.004));
    assert!(meter.waiting.is_empty());
    meter.note(2, 0, at(1000));
    meter.note(2, 1, at(9000));
    assert_eq!(meter.waiting.front().map(|w| w.0), Some(1), "another association");
}
