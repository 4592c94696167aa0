//! Losses found by time: what is only out of order is not sent again, and lost retransmissions are
//! found.

use std::time::Duration;

use manypath_sim::{Pair, QueueLimit, secs};

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
    for (jitter, least) in [([0, 20], 0.95), ([20, 20], 0.92), ([0, 60], 0.90), ([60, 60], 0.82)] {
        let share = goodput(&ADAPTIVE, jitter) / clean;
        assert!(share >= least, "{share:.3} of {clean:.1} Mbit/s with {jitter:?} ms");
    }
}

#[test]
fn by_reports_the_same_jitter_costs_most() {
    let by = |recovery| goodput(&[("recovery", recovery)], [20, 20]);
    let (rack, standard) = (by("rack"), by("standard"));
    assert!(rack > 3.0 * standard, "{rack:.1} and {standard:.1} Mbit/s");
}

/// The windows of a path of 100 Mbit/s and 100 ms before, and one second after packets overtook
/// each other for a moment; and how often they were taken for lost.
fn after_a_moment_of_jitter(recovery: &str, control: &str) -> (usize, usize, u64) {
    let mut t = Pair::one_path("cmt-pf")
        .profile("fast")
        .rate_mbps(100.0)
        .delay_ms(50.0)
        .queue(QueueLimit::Packets(2000))
        .set("recovery", recovery)
        .set("congestion_control", control)
        .set("initial_ssthresh", "1250000")
        .set("receive_buffer", "64 MiB")
        .set("send_buffer", "64 MiB")
        .lean()
        .connect();
    t.a.send_file(1 << 30);
    t.run_until(secs(3));
    let before = t.a.paths()[0].cwnd;
    t.net.path(0).set_jitter(Duration::from_millis(60));
    t.run_for(Duration::from_millis(30));
    t.net.path(0).set_jitter(Duration::ZERO);
    t.run_for(Duration::from_secs(1));
    let path = &t.a.paths()[0];
    (before, path.cwnd, path.counters.fast_retransmits)
}

/// RFC 9438 §4.9: a window that was cut because packets overtook each other is restored.
#[test]
fn a_window_cut_for_packets_that_were_only_late_is_restored() {
    for recovery in ["standard", "rack"] {
        let (before, after, lost) = after_a_moment_of_jitter(recovery, "cubic");
        assert!(lost > 0, "taken for lost by {recovery}");
        assert!(after >= before, "{after} of {before} bytes with {recovery}");
        let (before, after, lost) = after_a_moment_of_jitter(recovery, "rfc9260");
        assert!(lost > 0 && after * 4 < before * 3, "{after} of {before}: it does not undo");
    }
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
