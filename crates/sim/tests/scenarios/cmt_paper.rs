//! The CMT paper's Figures 1 and 5: what its three algorithms are for.

use std::time::Duration;

use manypath_sim::{LinkSpec, Pair, PairBuilder, PathSpec, QueueLimit, TransferResult, secs};

/// Two paths of the paper: edges of 100 Mbit/s and 10 ms, the core in the middle.
fn paths(core_mbps: [f64; 2]) -> PairBuilder {
    let path = |mbps| {
        let edge = LinkSpec::mbps_ms(100.0, 10.0);
        PathSpec::hops([edge.clone(), LinkSpec::mbps_ms(mbps, 25.0), edge])
    };
    Pair::paths("cmt", core_mbps.map(path).to_vec()).profile("2006")
}

fn without_algorithms(builder: PairBuilder) -> PairBuilder {
    builder.set("sfr", "false").set("cuc", "off").set("dac", "false")
}

fn transfer(builder: PairBuilder, bytes: u64) -> TransferResult {
    let mut t = builder.connect();
    t.a.send_file(bytes);
    let result = t.run_to_end(t.net.now() + Duration::from_secs(1000)).result();
    assert!(result.completed, "{result:#?}");
    result
}

/// User bytes that a rate carries in a second in chunks of 1452: IP, common and chunk header take
/// 48.
fn user_bytes_per_s(mbps: f64) -> f64 {
    mbps * 1e6 / 8.0 * 1452.0 / 1500.0
}

#[test]
fn cmt_fills_both_paths_of_10_mbit_per_s_once_slow_start_is_over() {
    let mut t = Pair::two_paths("cmt")
        .profile("2006")
        .queue(QueueLimit::Packets(1000))
        .set("receive_buffer", "512 KiB")
        .connect();
    t.a.send_file(8_000_000);
    let product = 10_000_000 / 8 * 90 / 1000;
    let is_full = |t: &Pair| t.a.paths().iter().all(|path| path.cwnd >= product);
    assert!(t.run_until_true(secs(10), is_full), "both windows reach rate times RTT");
    let (left, begin) = (8_000_000 - t.z.received_bytes(), t.net.now());
    let result = t.run_to_end(secs(60)).result();
    assert!(result.completed);
    let took = (t.net.now() - begin).as_secs_f64();
    let ideal = left as f64 / user_bytes_per_s(20.0);
    assert!(took <= 1.05 * ideal, "{took} s for {left} bytes, ideal {ideal}: {result:#?}");
    assert_eq!(result.retransmissions(), 0, "{result:#?}");
}

#[test]
fn without_the_algorithms_the_same_transfer_is_clearly_slower() {
    let both = |builder: PairBuilder| {
        let builder = builder.profile("2006").queue(QueueLimit::Packets(1000));
        transfer(builder.set("receive_buffer", "512 KiB"), 8_000_000)
    };
    let with = both(Pair::two_paths("cmt"));
    let without = both(without_algorithms(Pair::two_paths("cmt")));
    assert!(without.transfer_time_s > 1.3 * with.transfer_time_s, "{with:#?} {without:#?}");
    assert!(without.spurious_retransmissions() > 20, "{without:#?}");
}

/// Figures 1 and 5: 60 s over cores of 0.2 and 1 Mbit/s without loss, and room for everything.
fn figure(change: impl Fn(PairBuilder) -> PairBuilder) -> TransferResult {
    let builder = paths([0.2, 1.0])
        .queue(QueueLimit::Packets(5000))
        .set("receive_buffer", "16 MiB")
        .set("initial_ssthresh", "65536")
        .set("rtx_policy", "same");
    let mut t = change(builder).packet_log(false).connect();
    let begin = t.net.now();
    t.a.send_file(64 << 20);
    t.run_until(begin + Duration::from_secs(60));
    t.result()
}

#[test]
fn figure_1_without_the_algorithms_reordering_pins_both_windows() {
    let off = figure(without_algorithms);
    let [slow, fast] = &off.paths[..] else { panic!("two paths") };
    // The papers' simulator: 492 spurious fast retransmits, windows at 4404 and 13188 bytes.
    let spurious = off.spurious_retransmissions();
    assert!((400..=600).contains(&spurious), "{off:#?}");
    assert_eq!(slow.packets_dropped + fast.packets_dropped, 0);
    assert!(slow.stats.cwnd <= 6000 && fast.stats.cwnd <= 15_000, "{off:#?}");
}

#[test]
fn figure_5_with_the_algorithms_each_window_grows_as_if_alone() {
    let on = figure(|builder| builder);
    assert_eq!(on.spurious_retransmissions(), 0, "SFR");
    // The papers' simulator after 59 s: 90992 and 158520 bytes, as two single associations have.
    for (path, expected) in on.paths.iter().zip([90_992.0, 158_520.0]) {
        let ratio = path.stats.cwnd as f64 / expected;
        assert!((0.95..1.05).contains(&ratio), "CUCv2: {on:#?}");
    }
    let share = on.bytes as f64 / 60.0 / user_bytes_per_s(1.2);
    assert!(share > 0.9, "{share} of both paths together: {on:#?}");
}

#[test]
fn sfr_alone_stops_the_retransmissions_but_cuc_makes_windows_grow() {
    let sfr_only = figure(|builder| builder.set("cuc", "off").set("dac", "false"));
    let on = figure(|builder| builder);
    assert_eq!(sfr_only.spurious_retransmissions(), 0);
    assert!(sfr_only.paths[1].stats.cwnd < on.paths[1].stats.cwnd * 2 / 3, "{sfr_only:#?}");
}
