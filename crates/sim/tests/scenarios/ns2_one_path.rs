//! Policies of the retransmission policies paper against ns-2 2.35 as packaged, whose agents for
//! one path differ from the one for CMT: transfers that lose the same packets end at the same time.

use std::time::Duration;

use manypath_proto::Instant;
use manypath_sim::{LinkSpec, Pair, PairBuilder, PathSpec, QueueLimit, secs};

use crate::MIB;
use crate::ns2::acknowledged_after;

/// A primary path of 45 ms one way and an alternate of 520 ms.
fn builder(preset: &str) -> PairBuilder {
    let path = |delay| {
        let edge = LinkSpec::mbps_ms(100.0, 10.0).queue(QueueLimit::Packets(200));
        let core = LinkSpec::mbps_ms(10.0, delay).queue(QueueLimit::Packets(50));
        PathSpec::hops([edge.clone(), core, edge])
    };
    Pair::paths(preset, vec![path(25.0), path(500.0)]).profile("ns2")
}

/// A cut towards the receiver: seconds from the first DATA, and for how many milliseconds.
type Loss = (f64, u64);

/// A transfer of 2 MiB that loses packets, and how long ns-2 takes for it.
#[derive(Clone, Copy)]
struct Case {
    preset: &'static str,
    /// On the core link of the primary path.
    primary: &'static [Loss],
    /// On that of the alternate.
    alternate: &'static [Loss],
    /// Seconds to the SACK of the last DATA in ns-2.
    theirs: f64,
}

const fn case(preset: &'static str, primary: &'static [Loss], theirs: f64) -> Case {
    Case { preset, primary, alternate: &[], theirs }
}

impl Case {
    fn builder(&self) -> PairBuilder {
        builder(self.preset)
    }

    /// How far we are from ns-2, in seconds.
    fn difference(&self, builder: PairBuilder) -> f64 {
        let mut t = builder.start();
        t.a.send_file(2 * MIB);
        t.run_until_true(secs(5), |t| t.a.stats().is_some_and(|s| s.first_data_sent.is_some()));
        let begin = t.a.stats().and_then(|s| s.first_data_sent).expect("DATA was sent");
        for (path, losses) in [(0, self.primary), (1, self.alternate)] {
            for &(after, length) in losses {
                let at = begin + Duration::from_secs_f64(after);
                t.net.path(path).hop(1).forward().at(at).cut_for(Duration::from_millis(length));
            }
        }
        (acknowledged_after(&mut t) - self.theirs).abs()
    }
}

/// A lone packet after a duplicate, whose SACK need not wait 200 ms.
const AFTER_A_DUPLICATE: Case =
    case("all-rtx-alt", &[(0.52, 100), (1.09, 100), (1.51, 4)], 11.831_805);
/// The lost chunks of the primary path wait for room on the alternate; nothing else of it is in
/// flight.
const LONG_WAIT: Case = case("all-rtx-alt", &[(0.69, 100), (0.86, 20), (1.21, 20)], 19.595_750);
/// The primary path is silent while the alternate retransmits.
const SILENT_PRIMARY: Case =
    case("all-rtx-alt", &[(0.85, 2), (1.67, 4), (1.68, 100), (3.72, 2), (3.77, 100)], 17.657_163);
/// Two timeouts in a row.
const TWO_TIMEOUTS: Case = case("all-rtx-same", &[(0.8, 3500)], 12.1537);
/// Packets sent after a fast retransmit are lost while that is still on its way over the alternate.
const LOSSES_IN_RECOVERY: Case =
    case("all-rtx-alt", &[(0.47, 2), (0.64, 20), (1.61, 20)], 8.459_709);
/// SACKs report chunks missing that a timeout has marked already.
const REPORTS_AFTER_A_TIMEOUT: Case =
    case("all-rtx-alt", &[(0.48, 20), (0.61, 2), (0.65, 4)], 8.263_819);
/// A retransmission is lost on the alternate path and waits again when the primary fast
/// retransmits.
const LOST_AGAIN: Case = Case {
    alternate: &[(1.65, 500)],
    ..case("all-rtx-alt", &[(0.47, 2), (0.56, 100)], 11.085_969)
};

const CASES: [Case; 16] = [
    AFTER_A_DUPLICATE,
    LONG_WAIT,
    SILENT_PRIMARY,
    TWO_TIMEOUTS,
    LOSSES_IN_RECOVERY,
    REPORTS_AFTER_A_TIMEOUT,
    LOST_AGAIN,
    case("all-rtx-alt", &[(0.44, 4), (0.97, 20), (1.09, 4)], 9.182_615),
    case("all-rtx-alt", &[(0.44, 100), (0.7, 2), (0.73, 100), (1.05, 20), (1.69, 2)], 10.790_429),
    case(
        "fr-same-rto-alt",
        &[(1.03, 2), (1.76, 4), (2.18, 4), (2.23, 100), (3.04, 100)],
        12.568_501,
    ),
    case("all-rtx-alt", &[(0.97, 2), (2.32, 20), (2.47, 2), (2.6, 4), (3.12, 100)], 7.275_108),
    case("all-rtx-same", &[(0.83, 20), (0.89, 2), (3.17, 100), (3.3, 100), (3.77, 4)], 6.514_645),
    case("all-rtx-alt", &[(0.69, 2), (0.76, 4), (0.77, 4)], 8.449_426),
    case("fr-same-rto-alt", &[(0.41, 20), (0.63, 20), (0.69, 4)], 4.479_498),
    case("all-rtx-same", &[(1.66, 4), (1.69, 20), (2.39, 20), (2.51, 100)], 7.243_169),
    case("fr-same-rto-alt", &[(0.5, 4000), (9.0, 4)], 12.1776),
];

#[test]
fn losses_cost_the_policies_as_much_as_in_ns2() {
    for case in CASES {
        let off = case.difference(case.builder());
        let Case { preset, primary, alternate, theirs } = case;
        assert!(off <= 0.0005, "{preset}, {primary:?}, {alternate:?}: {off} s from {theirs} s");
    }
}

#[test]
fn each_rule_of_ns2_is_needed_for_that() {
    // With the rule off, the case is further from ns-2 than this number of seconds.
    let rules = [
        ("sack_counts_duplicates", AFTER_A_DUPLICATE, 0.1),
        ("t3_covers_waiting", LONG_WAIT, 1.0),
        ("cwnd_decays_in_flight", SILENT_PRIMARY, 1.0),
        ("repeated_timeout_keeps_ssthresh", TWO_TIMEOUTS, 0.5),
        ("new_losses_cut_again", LOSSES_IN_RECOVERY, 0.5),
        ("waiting_counts_reports", REPORTS_AFTER_A_TIMEOUT, 0.1),
        ("fast_rtx_cuts_waiting", LOST_AGAIN, 0.1),
    ];
    for (rule, case, least) in rules {
        let off = case.difference(case.builder().set("recovery_without", rule));
        assert!(off > least, "without {rule} we are {off} s from ns-2");
    }
}

/// Loses packets of the primary path, and another that was sent after its fast retransmit, while
/// that is on its way for half a second over the alternate path. Returns how often the primary's
/// window shrank until then.
fn cuts_in_a_long_recovery(builder: PairBuilder) -> usize {
    let mut t = builder.set("receive_buffer", "1 MiB").start();
    t.a.send_file(8 * MIB);
    let (mut cuts, mut last) = (0, 0);
    for millis in [2000, 2250] {
        t.run_until(Instant::from_millis(millis));
        let sent = t.a.paths()[0].counters.packets_sent;
        t.run_until_true(secs(10), |t| t.a.paths()[0].counters.packets_sent > sent);
        // The next packet reaches the core link, and is lost there.
        let at = t.net.now() + Duration::from_millis(10);
        t.net.path(0).hop(1).forward().at(at).cut_for(Duration::from_millis(1));
        t.run_until_true(Instant::from_millis(millis + 250), |t| {
            let cwnd = t.a.paths()[0].cwnd;
            cuts += usize::from(cwnd < last);
            last = cwnd;
            false
        });
    }
    assert_eq!(t.a.paths()[0].counters.fast_retransmits, 3, "two chunks, then one");
    assert_eq!(t.a.paths()[0].counters.t3_expirations, 0);
    cuts
}

#[test]
fn a_loss_of_what_was_sent_in_recovery_cuts_again_as_in_ns2() {
    // Both where all that waits is cut for, and where only what is newly lost is.
    let without = |rules: &str| {
        cuts_in_a_long_recovery(builder("all-rtx-alt").set("recovery_without", rules))
    };
    assert_eq!([without("none"), without("fast_rtx_cuts_waiting")], [2, 2]);
    let again = "new_losses_cut_again";
    let neither = without("new_losses_cut_again, fast_rtx_cuts_waiting");
    assert_eq!([without(again), neither], [1, 1], "RFC 9260 §7.2.4");
}
