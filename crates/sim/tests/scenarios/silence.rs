//! One of two paths goes silent: it comes back, ten times, or a transfer ends meanwhile.

use std::time::Duration;

use manypath_proto::Instant;
use manypath_sim::{Pair, PathSpec, millis, secs};

const RATE: f64 = 20e6;
/// The part of a link's rate that user data can have: 1444 of 1500 bytes.
const USER_DATA: f64 = 1444.0 / 1500.0;
/// How long the path works between two outages, in milliseconds.
const WORKS: u64 = 2000;

/// The course of one outage and of the time until the next.
struct Outage {
    /// The longest time without a delivery, in seconds.
    gap_s: f64,
    /// The user data that is missing against what both links offered until the next outage, in
    /// seconds of one link's rate.
    lost_s: f64,
    /// The share of the time in which the link was sending, from 1 s to 1.5 s after its return.
    busy: f64,
}

/// Ten outages, of that many milliseconds each, of one of two paths of 20 Mbit/s and 10 ms.
fn outages(silent: usize, length: u64, seed: u64) -> Vec<Outage> {
    let path = || PathSpec::default().rate_mbps(RATE / 1e6).delay_ms(10.0);
    let pair = Pair::paths("adaptive", vec![path(), path()]).profile("fast").seed(seed);
    let mut t = pair.lean().check_invariants(false).connect();
    t.a.send_file(1 << 40);
    let all = (0..10).map(|n| {
        let begin = 3000 + n * (length + WORKS);
        t.run_until(millis(begin));
        let had = t.z.received_bytes();
        t.net.path(silent).cut_for(Duration::from_millis(length));
        let (mut last, mut bytes, mut gap) = (t.net.now(), had, Duration::ZERO);
        let mut sending_until = |t: &mut Pair, end: u64| {
            t.run_until_true(millis(end), |t| {
                if t.z.received_bytes() > bytes {
                    gap = gap.max(t.net.now() - last);
                    (last, bytes) = (t.net.now(), t.z.received_bytes());
                }
                false
            });
            t.net.path_stats(silent).0[0].busy_ns as f64 / 1e9
        };
        let returned = begin + length;
        let busy = -sending_until(&mut t, returned + 1000) + sending_until(&mut t, returned + 1500);
        sending_until(&mut t, returned + WORKS);
        let offered = USER_DATA * RATE * (length + 2 * WORKS) as f64 / 1e3;
        let delivered = (t.z.received_bytes() - had) as f64 * 8.0;
        Outage {
            gap_s: gap.as_secs_f64(),
            lost_s: (offered - delivered) / (USER_DATA * RATE),
            busy: busy / 0.5,
        }
    });
    all.collect()
}

/// The row "one path goes silent, comes back, ten times" of the table of networks, for each outage.
#[test]
fn a_path_that_goes_silent_costs_a_fifth_of_a_second_of_it() {
    for silent in 0..2 {
        for length in [500, 1000, 2000, 5000] {
            for seed in 1..=3 {
                for (n, Outage { gap_s, lost_s, busy }) in
                    outages(silent, length, seed).into_iter().enumerate()
                {
                    let of = format!("path {silent}, {length} ms, seed {seed}, outage {n}");
                    assert!(gap_s <= 0.2, "{of}: nothing delivered for {gap_s:.3} s");
                    assert!(lost_s <= 0.2, "{of}: {lost_s:.3} s of the path lost");
                    assert!(busy >= 0.93, "{of}: {busy:.3} of the path used after 1 s");
                }
            }
        }
    }
}

/// How long a file takes over two paths of 20 Mbit/s and 10 ms, if one goes silent at that time.
fn takes(silent_at: Option<Instant>, seed: u64) -> Duration {
    let path = || PathSpec::default().rate_mbps(RATE / 1e6).delay_ms(10.0);
    let pair = Pair::paths("adaptive", vec![path(), path()]).profile("fast").seed(seed);
    let mut t = pair.lean().connect();
    t.a.send_file(10_000_000);
    if let Some(at) = silent_at {
        t.run_until(at);
        t.net.path(1).cut_for(Duration::from_secs(2));
    }
    assert!(t.run_until_true(secs(5), |t| t.has_delivered_all()));
    t.net.now() - Instant::ZERO
}

/// When there is no new data nothing else happens before T3-rtx expires after 0.2 s. What is
/// overdue is copied without that, as the pacer of the other path allows.
#[test]
fn the_end_of_a_transfer_waits_for_no_timeout_of_a_silent_path() {
    for seed in 1..=2 {
        let alone = takes(None, seed);
        for before in (0..120).step_by(6).map(Duration::from_millis) {
            let end = Instant::ZERO + alone;
            let longer = takes(Some(end.saturating_sub(before)), seed).saturating_sub(alone);
            let of = format!("seed {seed}, {before:?} before the end");
            assert!(longer < Duration::from_millis(120), "{of}: {longer:?} longer");
        }
    }
}
