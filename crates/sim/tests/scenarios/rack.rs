//! Losses found by time: what is only out of order is not sent again, and lost retransmissions are
//! found.

use std::time::Duration;

use manypath_sim::{Pair, secs};

/// Two paths of 20 Mbit/s and 10 ms, with jitter up to `jitter` ms on each.
fn pair(settings: &[(&str, &str)], jitter: [u64; 2], seed: u64) -> Pair {
    let builder = Pair::two_paths("cmt-pf").profile("fast").rate_mbps(20.0).delay_ms(10.0);
    let builder = builder.seed(seed).lean();
    let set =
        |builder: manypath_sim::PairBuilder, (name, value): &(&str, &str)| builder.set(name, value);
    let mut t = settings.iter().fold(builder, set).connect();
    for (path, &jitter) in jitter.iter().enumerate() {
        t.net.path(path).set_jitter(Duration::from_millis(jitter));
    }
    t
}

/// Goodput in Mbit/s of 20 MB, the mean of five seeds.
fn goodput(settings: &[(&str, &str)], jitter: [u64; 2]) -> f64 {
    let of_seed = |seed| {
        let mut t = pair(settings, jitter, seed);
        t.a.send_file(20_000_000);
        t.run_to_end(secs(120));
        t.result().goodput_bps / 1e6
    };
    (1..=5).map(of_seed).sum::<f64>() / 5.0
}

const ADAPTIVE: [(&str, &str); 2] = [("recovery", "rack"), ("congestion_control", "bbr")];

#[test]
fn jitter_costs_little() {
    let clean = goodput(&ADAPTIVE, [0, 0]);
    for (jitter, least) in [([0, 20], 0.85), ([20, 20], 0.85), ([0, 60], 0.80)] {
        let share = goodput(&ADAPTIVE, jitter) / clean;
        assert!(share >= least, "{share:.3} of {clean:.1} Mbit/s with {jitter:?} ms");
    }
}

/// Not held yet: up to 60 ms on both paths. The figure is today's, so that whoever mends it turns
/// this test round.
#[test]
fn much_jitter_on_both_paths_is_not_held_yet() {
    let share = goodput(&ADAPTIVE, [60, 60]) / goodput(&ADAPTIVE, [0, 0]);
    assert!((0.6..0.8).contains(&share), "{share:.3}; the target is 0.80");
}

#[test]
fn by_reports_the_same_jitter_costs_most() {
    let by = |recovery| goodput(&[("recovery", recovery)], [20, 20]);
    let (rack, standard) = (by("rack"), by("standard"));
    assert!(rack > 3.0 * standard, "{rack:.1} and {standard:.1} Mbit/s");
}

/// RFC 8985 §3.2: a lost retransmission is found without a timeout.
#[test]
fn lost_retransmissions_are_found_by_time() {
    let timeouts = |recovery| {
        let mut t = Pair::one_path("cmt-pf")
            .profile("fast")
            .rate_mbps(20.0)
            .delay_ms(10.0)
            .loss(0.05)
            .set("recovery", recovery)
            .set("congestion_control", "bbr")
            .set("mfr", "false")
            .lean()
            .connect();
        t.a.send_file(10_000_000);
        t.run_to_end(secs(120));
        t.a.paths()[0].counters.t3_expirations
    };
    let (rack, standard) = (timeouts("rack"), timeouts("standard"));
    assert!(rack * 4 <= standard && standard >= 4, "{rack} and {standard} timeouts");
}
