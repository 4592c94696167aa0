use std::time::Duration;

use manypath_proto::{Instant, PathId, PathState};

use crate::MessageKind;
use crate::pair::{Pair, path_state, secs};
use crate::spec::Loss;

fn two_paths(preset: &str) -> crate::pair::PairBuilder {
    Pair::two_paths(preset).profile("2006").set("receive_buffer", "64 KiB")
}

#[test]
fn the_goodput_of_an_outage_is_what_was_delivered_while_it_lasted() {
    let mut t = two_paths("cmt-pf").connect();
    t.a.send_file(20_000_000);
    t.net.path(1).at(secs(5)).cut_for(Duration::from_secs(10));
    t.run_until(secs(5));
    let before = t.z.received_bytes();
    t.run_until(secs(15));
    let during = t.z.received_bytes() - before;
    let result = t.run_to_end(secs(300)).result();
    assert!(result.completed && during > 0);
    assert_eq!(result.outage_begin_s, Some(5.0));
    let goodput = result.outage_goodput_bps.expect("there was an outage");
    assert!((goodput - during as f64 * 8.0 / 10.0).abs() < 1e-6, "{goodput}, {during} bytes");
    assert_eq!(result.failure_detected_s, None, "the path came back before five timeouts");
}

#[test]
fn an_outage_for_good_counts_until_the_path_is_found_inactive() {
    let mut t = two_paths("cmt").set("path_max_retrans", "3").connect();
    t.a.send_file(30_000_000);
    t.net.path(1).at(secs(5)).cut();
    t.run_until(secs(5));
    let before = t.z.received_bytes();
    let found = t.run_until_event(path_state(PathId(1), PathState::Inactive));
    let during = t.z.received_bytes() - before;
    let result = t.run_to_end(secs(300)).result();
    let after = (found - secs(5)).as_secs_f64();
    assert_eq!(result.failure_detected_s, Some(after));
    assert_eq!(result.paths[1].inactive_at_s, Some(found.as_secs_f64()));
    assert_eq!(result.paths[0].inactive_at_s, None);
    let goodput = result.outage_goodput_bps.expect("there was an outage");
    assert!((goodput - during as f64 * 8.0 / after).abs() < 1e-6, "{goodput} after {after} s");
    // RTO.Min and its doubles: the fourth timeout comes 1 + 2 + 4 + 8 s after the last data before.
    assert!((15.0..17.0).contains(&after), "{after}");
}

#[test]
fn a_transfer_that_ends_in_an_outage_ends_its_goodput() {
    let mut t = two_paths("cmt-pf").connect();
    t.a.send_file(3_000_000);
    t.net.path(1).at(secs(1)).cut();
    t.run_until(secs(1));
    let before = t.z.received_bytes();
    let result = t.run_to_end(secs(300)).result();
    let last = t.z.last_received().expect("it was delivered").as_secs_f64();
    let wanted = (3_000_000 - before) as f64 * 8.0 / (last - 1.0);
    let goodput = result.outage_goodput_bps.expect("there was an outage");
    assert!(result.completed && (goodput - wanted).abs() < 1e-6, "{goodput} for {wanted}");
}

#[test]
fn a_transfer_that_is_stuck_is_not_over() {
    let mut t = two_paths("cmt").set("path_max_retrans", "0").start();
    t.a.send_between(Instant::ZERO, secs(20), MessageKind::default());
    for path in 0..2 {
        t.net.path(path).at(secs(5)).cut();
    }
    t.run_until(secs(5));
    let before = t.z.received_bytes();
    let found = t.run_until_event(path_state(PathId(0), PathState::Inactive));
    t.run_until(secs(20));
    let last = t.z.last_received().expect("data was delivered");
    assert!(last < secs(6), "what was on its way arrives, and nothing more");
    let wanted = (t.z.received_bytes() - before) as f64 * 8.0 / (found - secs(5)).as_secs_f64();
    let goodput = t.result().outage_goodput_bps.expect("there was an outage");
    assert!((goodput - wanted).abs() < 1e-6, "{goodput} for {wanted}");
}

#[test]
fn an_outage_is_of_its_path_alone() {
    let mut t = two_paths("cmt").set("path_max_retrans", "0").start();
    t.a.send_between(Instant::ZERO, secs(30), MessageKind::default());
    // Path 0 is found inactive for losses of its own; the first outage is of path 1.
    t.net.path(0).at(secs(5)).set_loss(1.0);
    t.net.path(1).at(secs(4)).cut();
    t.run_until(secs(30));
    let at = |result: &crate::result::TransferResult, path: usize| result.paths[path].inactive_at_s;
    let result = t.result();
    let (first, second) = (at(&result, 1).expect("found"), at(&result, 0).expect("found"));
    let detected = result.failure_detected_s.expect("found after it failed");
    assert!(second > 5.0 && (detected - (first - 4.0)).abs() < 1e-9, "{detected}, {second}");

    // A path that is given up before it fails tells nothing of how failures are found.
    let mut t = two_paths("cmt").set("path_max_retrans", "0").start();
    t.a.send_between(Instant::ZERO, secs(30), MessageKind::default());
    t.net.path(1).at(secs(2)).set_loss(1.0);
    t.net.path(1).at(secs(5)).cut();
    t.run_until(secs(30));
    let result = t.result();
    assert!(at(&result, 1).is_some_and(|at| at < 5.0), "{:?}", at(&result, 1));
    assert_eq!((result.failure_detected_s, result.outage_goodput_bps), (None, None));
}

#[test]
fn an_outage_of_nobodys_path_is_none() {
    let mut t = two_paths("cmt").connect();
    t.a.send_file(100_000);
    t.run_to_end(secs(60));
    t.net.path(0).cut();
    t.run_for(Duration::from_secs(1));
    let result = t.result();
    assert_eq!(result.outage_goodput_bps, None, "all was delivered before it began");
    assert!(result.outage_begin_s.is_some());
    let mut quiet = two_paths("cmt").connect();
    quiet.a.send_file(100_000);
    assert_eq!(quiet.run_to_end(secs(60)).result().outage_begin_s, None);
}

#[test]
fn timeouts_in_a_row_are_counted_by_their_number() {
    let mut t = two_paths("cmt").connect();
    t.a.send_file(20_000_000);
    t.net.path(1).at(secs(3)).cut();
    t.run_until_event(path_state(PathId(1), PathState::Inactive));
    let result = t.result();
    // path_max_retrans is 5: the sixth timeout makes it inactive.
    assert_eq!(result.paths[1].t3_in_a_row, [1, 1, 1, 1, 1, 1, 0, 0]);
    assert_eq!(result.timeouts, 6);

    let mut lossy = two_paths("cmt").loss(0.06).seed(3).connect();
    lossy.a.send_file(8_000_000);
    let result = lossy.run_to_end(secs(900)).result();
    for path in &result.paths {
        let row = path.t3_in_a_row;
        assert_eq!(row.iter().sum::<u64>(), path.stats.counters.t3_expirations);
        assert!(row.is_sorted_by(|a, b| a >= b) && row[0] > 0, "each follows one before: {row:?}");
    }
}

#[test]
fn events_and_duplicates_are_counted() {
    let mut t = two_paths("cmt").loss(0.02).seed(4).connect();
    t.a.send_file(8_000_000);
    let result = t.run_to_end(secs(900)).result();
    let chunks: u64 = result.paths.iter().map(|path| path.stats.counters.fast_retransmits).sum();
    assert!(result.fast_retransmit_events > 50 && result.fast_retransmit_events <= chunks);
    assert!(result.duplicates_received >= result.spurious_retransmissions());
    let dropped: u64 = result.paths.iter().map(|path| path.data_chunks_dropped).sum();
    assert_eq!(dropped + result.duplicates_received, result.retransmissions());
}

#[test]
fn the_loss_oracle_sends_retransmissions_to_the_better_path() {
    let run = |first: f64, second: f64| {
        let mut t = two_paths("cmt")
            .set("rtx_policy", "lossrate")
            .path(0, |path| path.loss(first))
            .path(1, |path| path.loss(second))
            .connect();
        t.a.send_file(4_000_000);
        let result = t.run_to_end(secs(900)).result();
        (
            result.paths[0].stats.counters.retransmissions,
            result.paths[1].stats.counters.retransmissions,
        )
    };
    let (bad, good) = run(0.021, 0.02);
    assert!(bad * 4 < good, "{bad} on the path that loses 2.1 %, {good} on that of 2 %");
    let (good, bad) = run(0.02, 0.021);
    assert!(bad * 4 < good, "{good} on the path that loses 2 %, {bad} on that of 2.1 %");
}

#[test]
fn the_oracle_knows_the_loss_of_all_hops_as_it_is_now() {
    let mut t = two_paths("cmt").path(1, |path| path.loss(0.1)).start();
    let (node, far) = (t.a.node(), "10.0.2.2:9899".parse().expect("an address"));
    let near = "10.0.2.1:9899".parse().expect("an address");
    let loss = |t: &Pair| t.net.true_loss(node, near, far).expect("routed");
    assert!((loss(&t) - 0.1).abs() < 1e-12);
    t.net.path(1).forward().set_loss(Loss::Bernoulli(0.3));
    assert!((loss(&t) - 0.3).abs() < 1e-12);
}

#[test]
fn the_overhead_is_what_was_sent_for_each_byte_delivered() {
    let of = |preset: &str| {
        let mut t = two_paths(preset).connect();
        t.a.send_file(2_000_000);
        let result = t.run_to_end(secs(300)).result();
        let sent: u64 = result.paths.iter().map(|path| path.stats.counters.bytes_sent).sum();
        assert_eq!(result.overhead, Some(sent as f64 / 2_000_000.0));
        result.overhead.expect("something was delivered")
    };
    let (plain, copied) = (of("cmt-pf"), of("msacmt-rt"));
    assert!((1.01..1.1).contains(&plain), "headers: {plain}");
    assert!(copied > 1.5, "nearly everything is sent twice: {copied}");
    let mut t = two_paths("cmt-pf").connect();
    t.a.send_file(2_000_000);
    assert_eq!(t.result().overhead, None, "nothing is delivered yet");
}
