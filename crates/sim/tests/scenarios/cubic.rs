//! CUBIC with HyStart++, beside the controller of RFC 9260.

use std::time::Duration;

use manypath_sim::{MessageKind, Pair, PairBuilder, PathSpec, QueueLimit, millis, secs};

/// Paths of these rates (Mbit/s) and delays each way (ms), with queues of this size.
fn over(control: &str, paths: &[(f64, f64)], queue: QueueLimit) -> PairBuilder {
    let spec = |&(rate, delay): &(f64, f64)| {
        PathSpec::default().rate_mbps(rate).delay_ms(delay).queue(queue)
    };
    Pair::paths("cmt-pf", paths.iter().map(spec).collect())
        .profile("fast")
        .set("congestion_control", control)
        .set("receive_buffer", "64 MiB")
        .set("send_buffer", "64 MiB")
        .lean()
}

/// The share of the links' sum that a transfer gets which would take ten seconds: the mean of three
/// seeds.
fn mean_share(control: &str, paths: &[(f64, f64)], queue: QueueLimit) -> f64 {
    let sum: f64 = paths.iter().map(|(rate, _)| rate * 1e6).sum();
    let share = |seed| {
        let mut t = over(control, paths, queue).seed(seed).connect();
        t.a.send_file((sum * 10.0 / 8.0) as u64);
        t.run_to_end(secs(120));
        t.result().goodput_bps / sum
    };
    (1..=3).map(share).sum::<f64>() / 3.0
}

/// One bandwidth-delay product of a path of 100 Mbit/s and 100 ms, in packets of 1500 bytes.
const LONG_PIPE: usize = 834;

/// A path of 100 Mbit/s and 100 ms there and back.
fn long_path(control: &str, queue: usize) -> PairBuilder {
    over(control, &[(100.0, 50.0)], QueueLimit::Packets(queue))
}

#[test]
fn short_queues_cost_less_than_with_halved_windows() {
    for (paths, least) in [
        ([(20.0, 10.0), (20.0, 10.0)], 0.945),
        ([(20.0, 10.0), (20.0, 40.0)], 0.94),
        ([(50.0, 10.0), (5.0, 100.0)], 0.90),
    ] {
        let share = |control| mean_share(control, &paths, QueueLimit::Bytes(64 << 10));
        let (cubic, halved) = (share("cubic"), share("rfc9260"));
        assert!(cubic >= least, "{cubic:.3} of {paths:?}");
        assert!(cubic > halved + 0.01, "{cubic:.3} and {halved:.3} of {paths:?}");
    }
}

/// The time from one loss on a long path, with a window of its product, until the window is what it
/// was before.
fn time_to_regain(control: &str) -> Duration {
    let mut t = long_path(control, 2 * LONG_PIPE).set("initial_ssthresh", "1250000").connect();
    t.a.send_file(4_000_000_000);
    t.run_until(secs(3));
    let before = t.a.paths()[0].cwnd;
    assert!((1_250_000..1_500_000).contains(&before), "slow start ended without loss: {before}");
    t.net.path(0).forward().cut_for(Duration::from_millis(3));
    assert!(t.run_until_true(secs(5), |t| t.a.paths()[0].cwnd < before), "no loss");
    let lost_at = t.net.now();
    assert!(t.run_until_true(secs(200), |t| t.a.paths()[0].cwnd >= before), "never");
    t.net.now() - lost_at
}

#[test]
fn after_a_loss_on_a_long_path_the_window_is_back_sooner() {
    let (cubic, reno) = (time_to_regain("cubic"), time_to_regain("rfc9260"));
    // RFC 9438 §4.2: K is 9 s with 890 packets. Half of those packets, one in each round trip of
    // 0.1 s, take RFC 9260 five times as long.
    assert!(cubic < Duration::from_secs(12), "{cubic:?}");
    assert!(reno > 3 * cubic, "{reno:?} and {cubic:?}");
}

/// The least delay of a round is that of its first packets, so that slow start ends a round trip
/// after the queue began to grow, and conservative slow start adds to it (RFC 9406).
#[test]
fn slow_start_drops_a_third_of_what_it_does_without_hystart() {
    for queue in [2, 3, 4].map(|products| products * LONG_PIPE) {
        let drops = |control| {
            let mut t = long_path(control, queue).connect();
            t.a.send_file(400_000_000);
            let left = t.run_until_true(secs(10), |t| t.a.paths()[0].ssthresh <= 1 << 30);
            assert!(left, "{control} never left slow start");
            let window = t.a.paths()[0].cwnd;
            t.run_for(Duration::from_secs(1));
            (window, t.net.dropped_on_path(0).0.packets)
        };
        let ((window, lost), (_, lost_without)) = (drops("cubic"), drops("rfc9260"));
        assert!(3 * lost < lost_without, "{lost} and {lost_without} with {queue} packets");
        assert!(window >= LONG_PIPE * 1500, "and not too early: {window}");
    }
}

#[test]
fn a_window_that_the_application_does_not_use_does_not_grow() {
    let mut t = long_path("cubic", 2 * LONG_PIPE).connect();
    // 625 kB in flight, a message each millisecond.
    let kind = MessageKind { length: Some(6250), ..MessageKind::default() };
    t.a.send_messages_at(millis(500), 6250 * 30_000, kind, Some(Duration::from_millis(1)));
    t.run_until(secs(5));
    let window = |t: &Pair| t.a.paths()[0].cwnd;
    let begun = window(&t);
    assert!((625_000..8 * 625_000).contains(&begun), "what slow start came to: {begun}");
    t.run_until(secs(30));
    assert_eq!(window(&t), begun, "RFC 9438 §5.8");
}
