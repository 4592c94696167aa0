//! Delay that varies from packet to packet, as on Wi-Fi and in cellular networks, and reorders
//! them.
//!
//! The preset `adaptive` finds losses by time, so reordering costs it little. With the presets that
//! count missing reports it costs most of the throughput.

use std::time::Duration;

use manypath_sim::{Pair, secs};

/// Goodput in Mbit/s over ten seconds with a preset, with jitter up to `jitter_ms` on each path.
fn goodput(preset: &str, jitter_ms: &[u64]) -> f64 {
    let builder =
        if jitter_ms.len() == 1 { Pair::one_path(preset) } else { Pair::two_paths(preset) };
    let mut t = builder.profile("fast").rate_mbps(20.0).delay_ms(20.0).lean().connect();
    for (path, &jitter) in jitter_ms.iter().enumerate() {
        t.net.path(path).set_jitter(Duration::from_millis(jitter));
    }
    let begin = t.net.now();
    t.a.send_file(1 << 30);
    t.run_until(begin + Duration::from_secs(10));
    assert!(t.net.now() < secs(11));
    t.z.received_bytes() as f64 * 8.0 / 10.0 / 1e6
}

/// With jitter, `adaptive` keeps this share of its goodput without.
#[track_caller]
fn keeps(least: f64, jitter_ms: &[u64]) {
    let clean = goodput("adaptive", &vec![0; jitter_ms.len()]);
    let jittery = goodput("adaptive", jitter_ms);
    assert!(jittery >= least * clean, "{jittery:.1} of {clean:.1} Mbit/s, {jitter_ms:?}");
}

#[test]
fn one_path_with_jitter_up_to_20_ms() {
    keeps(0.85, &[20]);
}

#[test]
fn one_path_with_jitter_up_to_60_ms() {
    keeps(0.80, &[60]);
}

#[test]
fn two_paths_with_jitter_up_to_20_ms() {
    keeps(0.85, &[20, 20]);
}

#[test]
fn two_paths_with_jitter_up_to_60_ms() {
    keeps(0.80, &[60, 60]);
}

#[test]
fn one_of_two_paths_with_jitter_up_to_20_ms() {
    keeps(0.85, &[0, 20]);
}

#[test]
fn one_of_two_paths_with_jitter_up_to_60_ms() {
    keeps(0.85, &[0, 60]);
}

#[test]
fn missing_reports_take_jitter_for_loss() {
    let [clean, jittery] = [0, 20].map(|jitter| goodput("cmt-pf", &[jitter, jitter]));
    assert!(jittery < 0.3 * clean, "{jittery:.1} of {clean:.1} Mbit/s");
}
