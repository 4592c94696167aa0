//! Buffers that grow: with what paths hold, and no further than they need or may.

use std::time::Duration;

use manypath_sim::{Pair, PairBuilder, PathSpec, secs};

const KIB: usize = 1024;

/// 40 Mbit/s with round-trip times of 100 and 150 ms: 1.3 MB are in flight without any queue.
fn long_paths() -> PairBuilder {
    let path = |delay| PathSpec::default().rate_mbps(20.0).delay_ms(delay);
    Pair::paths("adaptive", vec![path(50.0), path(75.0)])
        .profile("fast")
        .set("receive_buffer_initial", "64 KiB")
        .set("send_buffer_initial", "64 KiB")
}

/// The share of the sum that 30 MB get.
fn share(mut t: Pair) -> f64 {
    t.a.send_file(30_000_000);
    t.run_to_end(secs(300));
    t.result().goodput_bps / 40e6
}

#[test]
fn buffers_grow_to_what_long_paths_hold() {
    let fixed = share(long_paths().set("receive_buffer", "64 KiB").lean().connect());
    assert!(fixed < 0.25, "{fixed:.2} with 64 KiB, for which the paths are too long");
    let large = share(long_paths().set("receive_buffer_initial", "64 MiB").lean().connect());
    let grown = share(long_paths().lean().connect());
    assert!(grown > 0.8, "{grown:.2} of the sum");
    assert!(grown > large - 0.05, "{grown:.2}, and {large:.2} with room from the beginning");
}

#[test]
fn a_receive_buffer_stays_as_it_is_while_nothing_is_read() {
    let mut t = long_paths().lean().connect();
    t.z.pause_reading();
    t.a.send_file(30_000_000);
    t.run_until(secs(20));
    let buffered = t.z.stats().expect("an association").receive_buffered;
    assert!(buffered <= 64 * KIB, "{buffered} bytes were taken");
    t.z.resume_reading();
    t.run_to_end(secs(300));
    assert_eq!(t.z.received_bytes(), 30_000_000);
}

#[test]
fn a_short_path_needs_no_larger_buffer() {
    let path = PathSpec::default().rate_mbps(20.0).delay_ms(1.0);
    let builder = Pair::paths("adaptive", vec![path]).profile("fast");
    let mut t = builder.set("receive_buffer_initial", "256 KiB").lean().connect();
    t.a.send_file(10_000_000);
    let mut most = 0;
    t.run_until_true(secs(60), |t| {
        most = most.max(t.a.stats().map_or(0, |s| s.peer_window));
        t.has_delivered_all()
    });
    assert!(most <= 256 * KIB, "{most} bytes were offered");
}

#[test]
fn associations_grow_within_what_the_endpoint_has() {
    let mut t = long_paths().lean().start();
    t.z.limit_buffer_growth(100 * KIB);
    t.run_until_true(secs(5), |t| t.a.is_established());
    t.a.send_file(30_000_000);
    let mut most = 0;
    t.run_until(secs(10));
    t.run_until_true(secs(60), |t| {
        most = most.max(t.a.stats().map_or(0, |s| s.peer_window));
        t.net.now().saturating_since(manypath_proto::Instant::ZERO) > Duration::from_secs(15)
    });
    assert!(most > 120 * KIB && most <= 164 * KIB, "{most} bytes were offered");
}

/// A message may be as long as `send_buffer`, however small the buffer is in the beginning.
#[test]
fn a_message_longer_than_the_first_send_buffer_is_taken() {
    let mut t = long_paths().lean().connect();
    t.a.send(0, 1_000_000);
    t.run_to_end(secs(60));
    assert_eq!((t.z.received_messages(), t.z.received_bytes()), (1, 1_000_000));
}
