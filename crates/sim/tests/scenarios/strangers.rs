//! A server that gives strangers little window.

use manypath_sim::{Pair, PairBuilder, PathSpec, TransferResult, secs};

use crate::MIB;

/// The window of a stranger.
const LITTLE: usize = 64 << 10;

/// Two paths with a round trip of 50 ms, on which 64 KiB are 5 % of what is in flight.
fn far() -> PairBuilder {
    let path = || PathSpec::new().rate_mbps(100.0).delay_ms(25.0);
    // The sizes are known: runs are compared to the millisecond, and the first message is one
    // chunk.
    Pair::paths("cmt-pf", vec![path(), path()]).profile("fast").set("pmtu_discovery", "false")
}

/// 20 MiB to a server that `prepare` prepares before the handshake.
fn transfer(prepare: impl FnOnce(&mut Pair)) -> TransferResult {
    let mut t = far().start();
    prepare(&mut t);
    t.a.send_file(20 * MIB);
    t.run_to_end(secs(60)).result()
}

#[test]
fn who_is_admitted_by_the_first_message_sends_as_soon_and_as_fast_as_anybody() {
    let anybody = transfer(|_| ());
    let admitted = transfer(|t| t.z.limit_strangers(LITTLE, true));
    assert!(anybody.completed && admitted.completed);
    let (with, without) = (admitted.transfer_time_s, anybody.transfer_time_s);
    assert!(with <= without + 0.001, "{with:?} s, and {without:?} s without admission");
    let blocked = admitted.receive_buffer_blocked_s;
    assert!(blocked < 0.001, "the window is open when it is needed: {blocked:?}");
}

#[test]
fn who_is_not_admitted_gets_a_little_each_round_trip() {
    let stranger = transfer(|t| t.z.limit_strangers(LITTLE, false));
    let admitted = transfer(|t| t.z.limit_strangers(LITTLE, true));
    assert!(stranger.goodput_bps < LITTLE as f64 * 8.0 / 0.05, "{}", stranger.goodput_bps);
    assert!(admitted.goodput_bps > 5.0 * stranger.goodput_bps);
}
