//! A path that duplicates another (MSACMT-RT and RTv2), and copies of what is late.

use std::time::Duration;

use manypath_proto::config::Config;
use manypath_proto::policy::redundant::{ChunkCopy, CopyTurn, Flights, NextLook, RedundancyPolicy};
use manypath_proto::policy::{Factory, Needs};
use manypath_proto::{Instant, PathId, PathStats};
use manypath_sim::{Pair, PathSpec, QueueLimit, secs};

use crate::MIB;

/// Three paths of 5 Mbit/s with 25, 35 and 45 ms each way.
fn three_paths(preset: &str) -> manypath_sim::PairBuilder {
    let path = |ms: f64| PathSpec::new().rate_mbps(5.0).delay_ms(ms);
    Pair::paths(preset, [25.0, 35.0, 45.0].into_iter().map(path).collect())
        .profile("2006")
        .set("receive_buffer", "64 KiB")
        .check_invariants(true)
}

fn redundant(paths: &[PathStats]) -> Vec<u64> {
    paths.iter().map(|p| p.counters.redundant_chunks_sent).collect()
}

#[test]
fn rt_sends_on_the_slowest_path_only_what_the_fastest_sends() {
    let mut t = three_paths("msacmt-rt").connect();
    t.a.send_file(4 * MIB);
    t.run_to_end(secs(100));
    assert_eq!(t.z.received_bytes(), 4 * MIB);
    let paths = t.a.paths();
    let [fast, _, slow] = &paths[..] else { panic!("three paths") };
    let before = redundant(&paths)[..2].iter().sum::<u64>();
    assert!(before < 10, "{before} copies before it was known which path is the slowest");
    assert!(slow.counters.redundant_chunks_sent > 500, "{paths:#?}");
    assert!(slow.counters.redundant_chunks_sent <= fast.counters.data_chunks_sent);
    // The path was not known to be the slowest before it was measured.
    assert!(
        slow.counters.data_chunks_sent < slow.counters.redundant_chunks_sent + 20,
        "{paths:#?}"
    );
    assert_eq!(
        paths.iter().map(|p| p.counters.retransmissions).sum::<u64>(),
        0,
        "nothing was lost"
    );
    let duplicates = t.z.stats().expect("an association").duplicates_received;
    assert!(
        duplicates.abs_diff(slow.counters.redundant_chunks_sent) < 20,
        "{duplicates}: {paths:#?}"
    );
    let srtt = slow.srtt.expect("measured").as_millis();
    assert!((90..140).contains(&srtt), "{srtt} ms: the RTT of the copies' path is known");
}

#[test]
fn rtv2_comes_back_to_redundancy_after_a_failure_only() {
    let mut t = three_paths("msacmt-rtv2").connect();
    t.a.send_file(24 * MIB);
    let copies = |t: &Pair| redundant(&t.a.paths()).iter().sum::<u64>();
    t.run_for(Duration::from_secs(4));
    let first = copies(&t);
    assert!(first > 20, "{first} copies until the paths proved themselves");
    t.run_for(Duration::from_secs(4));
    assert_eq!(copies(&t), first, "reviews without a failure bring no redundancy");
    t.net.path(0).cut_for(Duration::from_millis(1500));
    t.run_to_end(secs(100));
    assert_eq!(t.z.received_bytes(), 24 * MIB);
    assert!(copies(&t) > first + 20, "{} copies, {first} before the failure", copies(&t));
    let slow = &t.a.paths()[2];
    let new = slow.counters.data_chunks_sent - slow.counters.redundant_chunks_sent;
    assert!(new > 4 * slow.counters.redundant_chunks_sent, "all carry new data: {slow:#?}");
}

#[test]
fn rtv2_that_restarts_alternates_between_redundancy_and_new_data_on_all_paths() {
    let mut t = three_paths("msacmt-rtv2")
        .set("redundancy_review", "3")
        .set("redundancy_cycle", "restart")
        .connect();
    t.a.send_file(16 * MIB);
    t.run_to_end(secs(100));
    assert_eq!(t.z.received_bytes(), 16 * MIB);
    let paths = t.a.paths();
    let slow = &paths[2];
    let new = slow.counters.data_chunks_sent - slow.counters.redundant_chunks_sent;
    assert!(new > 500 && slow.counters.redundant_chunks_sent > 500, "{paths:#?}");
    assert_eq!(
        paths.iter().map(|p| p.counters.retransmissions).sum::<u64>(),
        0,
        "nothing was lost"
    );
}

/// How long nothing is delivered while path 1, which RT covers, is down for five seconds.
fn longest_gap(preset: &str) -> f64 {
    let mut t = three_paths(preset).connect();
    t.a.send_file(8 * MIB);
    t.run_for(Duration::from_secs(3));
    t.net.path(0).cut_for(Duration::from_secs(5));
    t.run_to_end(secs(100));
    assert_eq!(t.z.received_bytes(), 8 * MIB, "{preset}");
    t.result().max_delivery_gap_s
}

#[test]
fn what_a_failing_path_carried_arrives_by_the_redundant_one() {
    let (pf, rt) = (longest_gap("cmt-pf"), longest_gap("msacmt-rt"));
    assert!(rt < pf / 2.0, "{rt} s with copies, {pf} s without");
}

#[test]
fn a_covered_path_that_is_silent_is_found_out_though_its_data_arrives() {
    let mut t = three_paths("msacmt-rt").connect();
    t.a.send_file(8 * MIB);
    t.run_for(Duration::from_secs(3));
    t.net.path(0).cut();
    let cut = t.net.now();
    let potentially_failed = manypath_proto::PathState::PotentiallyFailed;
    let failed = t.run_until_event(manypath_sim::path_state(PathId(0), potentially_failed));
    assert!(failed - cut < Duration::from_millis(1500), "{:?}: one T3-rtx", failed - cut);
    t.run_to_end(secs(100));
    assert_eq!(t.z.received_bytes(), 8 * MIB);
}

#[test]
fn with_losses_everything_arrives_once() {
    for preset in ["msacmt-rt", "msacmt-rtv2"] {
        for seed in 1..=5 {
            let mut t = three_paths(preset).loss(0.03).seed(seed).connect();
            t.a.send_file(2 * MIB);
            t.run_to_end(secs(300));
            assert_eq!(t.z.received_bytes(), 2 * MIB, "{preset}, seed {seed}");
        }
    }
}

/// An application that sends less than two alike paths carry leaves time for copies. None gains
/// anything. They also drew SACKs as duplicates, which were taken for the answers to copies sent
/// just before: a round trip of a millisecond made the window as small as that.
#[test]
fn paths_that_are_alike_copy_little_and_measure_no_round_trip_that_cannot_be() {
    let message = 60_000;
    let every = Duration::from_secs_f64(8.0 * message as f64 / 30e6);
    for (preset, seed) in
        ["adaptive", "cmt-pf"].into_iter().flat_map(|p| (1..=10).map(move |s| (p, s)))
    {
        let queue = QueueLimit::Packets(160);
        let path = PathSpec::new().rate_mbps(50.0).delay_ms(20.0).queue(queue);
        let pair = Pair::paths(preset, vec![path; 2]).profile("fast").seed(seed);
        let mut t = pair.set("redundancy", "late").set("recovery", "rack").connect();
        let end = t.net.now() + Duration::from_secs(2);
        while t.net.now() < end {
            t.a.send(0, message);
            t.run_for(every);
        }
        let paths = t.a.paths();
        let copies = redundant(&paths).iter().sum::<u64>();
        assert!(copies < 100, "{copies} copies: {preset}, seed {seed}");
        for rtt in paths.iter().filter_map(|p| p.rtt_min) {
            assert!(rtt >= Duration::from_millis(40), "{rtt:?}: {preset}, seed {seed}");
        }
    }
}

/// Bursts of tiny messages with pauses between them, as of an application that waits for its disk.
/// Returns the counters of the sender's paths.
fn bursts(pair: manypath_sim::PairBuilder, messages: usize, pause: Duration) -> Vec<PathStats> {
    let mut t = pair.connect();
    for burst in 0..20 {
        for _ in 0..messages + burst {
            t.a.send(0, 8);
        }
        t.run_for(pause);
    }
    t.a.paths()
}

/// A packet may bring many duplicates. All of them are reported: what was not waited for T3-rtx in
/// the pause, which put a path in doubt that had delivered everything.
#[test]
fn copies_of_many_tiny_messages_put_no_path_in_doubt() {
    let queue = QueueLimit::Packets(1000);
    let path = |ms| PathSpec::new().rate_mbps(1000.0).delay_ms(ms).queue(queue);
    let alike = [0.1, 0.2].map(path);
    for seed in 1..=3 {
        let adaptive = Pair::paths("adaptive", alike.to_vec()).profile("fast").seed(seed);
        let all = [
            bursts(adaptive, 3000, Duration::from_millis(450)),
            bursts(three_paths("msacmt-rt").seed(seed), 60, Duration::from_millis(2500)),
        ];
        for paths in all {
            let copies = redundant(&paths).iter().sum::<u64>();
            assert!(copies > 500, "{copies} copies, seed {seed}");
            let expired: u64 = paths.iter().map(|p| p.counters.t3_expirations).sum();
            assert_eq!(expired, 0, "nothing was lost: {copies} copies, seed {seed}: {paths:#?}");
        }
    }
}

/// At the end, what is under way on a slow path comes on the fast one sooner. The slow path's rate
/// says when it would come. Copies ask for SACKs at once: otherwise the last SACK mostly comes back
/// on the slow path.
#[test]
fn the_end_of_a_transfer_waits_for_no_slow_path() {
    const BYTES: u64 = 40_000_000;
    let path = |rate, ms| PathSpec::new().rate_mbps(rate).delay_ms(ms);
    let paths = [path(100.0, 5.0), path(2.0, 150.0)];
    let times = |paths: &[PathSpec], seed| {
        let pair = Pair::paths("adaptive", paths.to_vec()).profile("fast").seed(seed);
        let mut t = pair.lean().start();
        t.a.send_file(BYTES);
        assert!(t.run_until_true(secs(10), |t| t.z.received_bytes() == BYTES));
        let received = t.net.now();
        let is_known = |t: &Pair| t.a.stats().is_some_and(|s| s.bytes_acked == BYTES);
        assert!(t.run_until_true(secs(10), is_known));
        (received, t.net.now() - received)
    };
    let mut until_known = Vec::new();
    for seed in 1..=5 {
        let (alone, _) = times(&paths[..1], seed);
        let (both, known_after) = times(&paths, seed);
        assert!(both < alone, "{both:?}, and {alone:?} with the fast path alone");
        until_known.push(known_after);
    }
    until_known.sort_unstable();
    assert!(until_known[2] < Duration::from_millis(10), "{until_known:?}");
}

/// A policy that chooses copies which cannot be, and wants to look again at times that are over.
#[derive(Debug)]
struct Nonsense {
    asked: u32,
}

impl RedundancyPolicy for Nonsense {
    fn needs(&self) -> Needs {
        Needs { copies: true, ..Needs::default() }
    }

    fn copy(&mut self, _now: Instant, _turn: CopyTurn, flights: &dyn Flights) -> Option<ChunkCopy> {
        self.asked += 1;
        let acked = flights.cum_tsn_ack_point();
        let awaited = flights.awaited()?;
        let never_sent = acked.add(1 << 20);
        let (tsn, on) = match self.asked % 5 {
            0 => (acked, PathId(1)),
            1 => (never_sent, PathId(1)),
            2 => (awaited.tsn, awaited.path),
            3 => (awaited.tsn, PathId(77)),
            _ => {
                let full = flights.paths().find(|path| !flights.has_room(path.id))?;
                (awaited.tsn, full.id)
            }
        };
        Some(ChunkCopy { tsn, on, asks_for_sack: true })
    }

    fn next_look(&mut self, now: Instant, _flights: &dyn Flights) -> Option<NextLook> {
        Some(NextLook::At(now))
    }
}

#[test]
fn copies_that_cannot_be_are_ignored() {
    let mut config = Config::build("rfc9260", "cmt-pf", &[]).expect("a preset");
    config.redundancy =
        Factory::<dyn RedundancyPolicy>::new("nonsense", |_| Box::new(Nonsense { asked: 0 }))
            .expect("a name");
    let mut t = Pair::two_paths("cmt-pf").config_a(config).loss(0.01).connect();
    t.a.send_file(MIB);
    t.run_to_end(secs(100));
    assert_eq!(t.z.received_bytes(), MIB);
    assert_eq!(redundant(&t.a.paths()), [0, 0]);
}
