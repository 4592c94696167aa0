//! Policies of the retransmission policies paper against ns-2 2.35 as packaged, whose agents for one path differ from
//! the one for CMT: transfers that lose the same packets end at the same time.

use std::time::Duration;

use manypath_sim::{LinkSpec, Pair, PairBuilder, PathSpec, QueueLimit, secs};

use crate::MIB;
use crate::ns2::{acknowledged_after, assert_near};

/// A primary path of 45 ms one way and an alternate of 520 ms, with the rules of `experiments/001-rtx/*/packaged.toml`.
fn builder(preset: &str) -> PairBuilder {
    let path = |delay| {
        let edge = LinkSpec::mbps_ms(100.0, 10.0).queue(QueueLimit::Packets(200));
        let core = LinkSpec::mbps_ms(10.0, delay).queue(QueueLimit::Packets(50));
        PathSpec::hops([edge.clone(), core, edge])
    };
    let rules = [
        ("ssthresh_floor", "4 pmdcs"),
        ("congestion_control", "rfc9260"),
        ("fast_rtx_after_timeout", "true"),
        ("rtx_past_cwnd", "any"),
        ("rtx_waits_for_sack", "true"),
        ("new_data_waits_for_rtx", "true"),
    ];
    let pair = Pair::paths(preset, vec![path(25.0), path(500.0)]).profile("ns2");
    rules.into_iter().fold(pair, |pair, (name, value)| pair.set(name, value))
}

/// Sends 2 MiB while the core link of the primary path is cut towards the receiver at times from the first DATA, each for
/// so many milliseconds.
fn time_with_losses(builder: PairBuilder, losses: &[(f64, u64)]) -> f64 {
    let mut t = builder.start();
    t.a.send_file(2 * MIB);
    t.run_until_true(secs(5), |t| t.a.stats().is_some_and(|s| s.first_data_sent.is_some()));
    let begin = t.a.stats().and_then(|s| s.first_data_sent).expect("DATA was sent");
    for &(after, length) in losses {
        let at = begin + Duration::from_secs_f64(after);
        t.net.path(0).hop(1).forward().at(at).cut_for(Duration::from_millis(length));
    }
    acknowledged_after(&mut t)
}

/// Policy, losses as (after s, for ms), what ns-2 takes.
type Case = (&'static str, &'static [(f64, u64)], f64);

const CASES: [Case; 13] = [
    ("all-rtx-alt", &[(0.52, 100), (1.09, 100), (1.51, 4)], 11.831_805),
    ("all-rtx-alt", &[(0.44, 4), (0.97, 20), (1.09, 4)], 9.182_615),
    ("all-rtx-alt", &[(0.44, 100), (0.7, 2), (0.73, 100), (1.05, 20), (1.69, 2)], 10.790_429),
    ("fr-same-rto-alt", &[(1.03, 2), (1.76, 4), (2.18, 4), (2.23, 100), (3.04, 100)], 12.568_501),
    ("all-rtx-alt", &[(0.97, 2), (2.32, 20), (2.47, 2), (2.6, 4), (3.12, 100)], 7.275_108),
    ("all-rtx-same", &[(0.83, 20), (0.89, 2), (3.17, 100), (3.3, 100), (3.77, 4)], 6.514_645),
    ("all-rtx-alt", &[(0.69, 2), (0.76, 4), (0.77, 4)], 8.449_426),
    ("all-rtx-alt", &[(0.69, 100), (0.86, 20), (1.21, 20)], 19.595_750),
    ("all-rtx-alt", &[(0.85, 2), (1.67, 4), (1.68, 100), (3.72, 2), (3.77, 100)], 17.657_163),
    ("fr-same-rto-alt", &[(0.41, 20), (0.63, 20), (0.69, 4)], 4.479_498),
    ("all-rtx-same", &[(1.66, 4), (1.69, 20), (2.39, 20), (2.51, 100)], 7.243_169),
    ("all-rtx-same", &[(0.8, 3500)], 12.1537),
    ("fr-same-rto-alt", &[(0.5, 4000), (9.0, 4)], 12.1776),
];

#[test]
fn losses_cost_the_policies_as_much_as_in_ns2() {
    for (preset, losses, theirs) in CASES {
        let ours = time_with_losses(builder(preset), losses);
        assert_near(ours, theirs, 0.0005, &format!("{preset}, {losses:?}"));
    }
}

/// How far a case is from ns-2 with one rule of its off, in seconds.
fn without(rule: &str, (preset, losses, theirs): Case) -> f64 {
    (time_with_losses(builder(preset).set(rule, "false"), losses) - theirs).abs()
}

#[test]
fn t3_rtx_runs_for_chunks_that_wait_as_in_ns2() {
    let off = without("t3_covers_waiting", CASES[7]);
    assert!(off > 1.0, "the primary path does not time out while its lost chunks wait: {off} s");
}

#[test]
fn silent_windows_decay_on_one_path_as_in_ns2() {
    let off = without("cwnd_decays_in_flight", CASES[8]);
    assert!(off > 1.0, "the primary path is silent while the alternate retransmits: {off} s");
}

#[test]
fn timeouts_in_a_row_keep_ssthresh_as_in_ns2() {
    let off = without("repeated_timeout_keeps_ssthresh", CASES[11]);
    assert!(off > 0.5, "slow start ends at the floor after the second timeout: {off} s");
}

#[test]
fn duplicates_count_towards_the_next_sack_as_in_ns2() {
    let off = without("sack_counts_duplicates", CASES[0]);
    assert!(off > 0.1, "a lone packet after a duplicate waits 200 ms for its SACK: {off} s");
}
