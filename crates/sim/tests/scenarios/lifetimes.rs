//! Messages with a lifetime over two paths that lose packets and delay them unevenly (RFC 3758).

use std::time::Duration;

use manypath_sim::{Limits, LinkSpec, Pair, PathSpec};

/// User bytes of a message.
const LENGTH: usize = 1200;
const LIFETIME: Duration = Duration::from_millis(150);

/// Two paths of 20 Mbit/s, 10 and 40 ms, with 1 % of loss and jitter.
fn paths(seed: u64, preset: &str) -> Pair {
    let path = |delay| {
        let jitter = Duration::from_millis(5);
        let link = LinkSpec { jitter, ..LinkSpec::mbps_ms(20.0, delay) };
        PathSpec::hops([link.loss(0.01)])
    };
    let pair = Pair::paths(preset, vec![path(10.0), path(40.0)]).profile("fast");
    let mut t = pair.seed(seed).packet_log(false).connect();
    t.z.expect_gaps();
    t
}

/// The fate of the messages of ten seconds.
struct Shares {
    delivered: f64,
    /// Of those delivered.
    in_time: f64,
}

/// Sends messages at a rate in Mbit/s of user data.
fn frames(t: &mut Pair, mbps: f64) -> Shares {
    let every = Duration::from_secs_f64(LENGTH as f64 * 8.0 / (mbps * 1e6));
    let limits = Limits { lifetime: Some(LIFETIME), max_retransmissions: None };
    let count = (10.0 / every.as_secs_f64()) as u32;
    for _ in 0..count {
        t.a.send_limited(1, true, LENGTH, limits);
        t.run_for(every);
    }
    t.run_for(Duration::from_secs(2));
    // The first second is that of slow start.
    let times: Vec<_> = t.lateness().into_iter().skip(count as usize / 10).collect();
    let took: Vec<Duration> = times.iter().filter_map(|m| Some(m.delivered? - m.sent)).collect();
    let in_time = took.iter().filter(|took| **took <= LIFETIME).count();
    Shares {
        delivered: took.len() as f64 / times.len() as f64,
        in_time: in_time as f64 / took.len() as f64,
    }
}

/// With headers, 34 Mbit/s of messages are nine tenths of what the paths carry.
#[test]
fn nine_tenths_of_two_lossy_paths_carry_messages_in_time() {
    for seed in 1..=3 {
        let Shares { delivered, in_time } = frames(&mut paths(seed, "adaptive"), 34.0);
        println!("seed {seed}: delivered {delivered:.4}, of these in time {in_time:.4}");
        assert!(in_time > 0.99 && delivered > 0.97, "seed {seed}: {delivered}, {in_time}");
    }
}

/// Congestion control that halves its window at each loss leaves a third of the rate: what does not
/// fit is dropped before it is sent, so that the rest is not late.
#[test]
fn what_is_too_much_is_dropped_and_the_rest_is_in_time() {
    let Shares { delivered, in_time } = frames(&mut paths(1, "cmt-pf"), 30.0);
    println!("delivered {delivered:.4}, of these in time {in_time:.4}");
    assert!(in_time > 0.98 && delivered > 0.15, "{delivered}, {in_time}");
}
