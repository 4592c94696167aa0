//! Messages with a lifetime over two paths that lose packets and delay them unevenly (RFC 3758).

use std::time::Duration;

use manypath_sim::{Limits, LinkSpec, MessageKind, Pair, PairBuilder, PathSpec};

/// User bytes of a message.
const LENGTH: usize = 1200;
const LIFETIME: Duration = Duration::from_millis(150);

/// Two paths of 20 Mbit/s, 10 and 40 ms, with 1 % of loss and jitter.
fn paths(seed: u64, preset: &str) -> PairBuilder {
    let path = |delay| {
        let jitter = Duration::from_millis(5);
        let link = LinkSpec { jitter, ..LinkSpec::mbps_ms(20.0, delay) };
        PathSpec::hops([link.loss(0.01)])
    };
    let pair = Pair::paths(preset, vec![path(10.0), path(40.0)]).profile("fast");
    pair.seed(seed).packet_log(false)
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
    t.z.expect_gaps();
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

/// With headers, 34 Mbit/s of messages are nine tenths of what the paths carry. All could arrive,
/// as a lost one can be repeated within its lifetime.
#[test]
fn nine_tenths_of_two_lossy_paths_carry_messages_in_time() {
    for seed in 1..=3 {
        let Shares { delivered, in_time } = frames(&mut paths(seed, "adaptive").connect(), 34.0);
        println!("seed {seed}: delivered {delivered:.4}, of these in time {in_time:.4}");
        assert!(in_time > 0.99 && delivered > 0.98, "seed {seed}: {delivered}, {in_time}");
    }
}

/// A file on stream 0 beside 10 Mbit/s of messages on stream 1, for 20 seconds.
struct Beside {
    /// Bytes of the file that arrived.
    file: u64,
    /// Of all messages with a lifetime.
    in_time: f64,
}

/// The streams take turns.
fn file_beside_messages(seed: u64, limits: Limits) -> Beside {
    const MESSAGES: u64 = 25_000_000;
    let pair = paths(seed, "adaptive").set("stream_scheduler", "rr");
    let mut t = pair.connect();
    t.z.expect_gaps();
    let kind = MessageKind { stream: 1, unordered: true, length: Some(LENGTH), limits };
    let every = Duration::from_secs_f64(LENGTH as f64 * 8.0 / 10e6);
    t.a.send_messages_at(t.net.now(), MESSAGES, kind, Some(every));
    t.a.send_file(1_000_000_000);
    t.run_for(Duration::from_secs(20));
    let times = t.lateness();
    let in_time = times.iter().filter(|message| message.is_in_time()).count();
    let of_messages = if limits == Limits::default() { MESSAGES } else { 0 };
    Beside {
        file: t.z.received_reliable_bytes() - of_messages,
        in_time: in_time as f64 / times.len() as f64,
    }
}

#[test]
fn a_file_beside_messages_with_a_lifetime_keeps_its_rate() {
    let limited = Limits { lifetime: Some(LIFETIME), max_retransmissions: None };
    let mut shares = Vec::new();
    for seed in 1..=4 {
        let beside = file_beside_messages(seed, limited);
        let alike = file_beside_messages(seed, Limits::default()).file;
        let (share, in_time) = (beside.file as f64 / alike as f64, beside.in_time);
        println!("seed {seed}: {share:.4} of its rate; messages in time {in_time:.4}");
        assert!(in_time > 0.99, "seed {seed}: {in_time}");
        shares.push(share);
    }
    // The windows vary: one seed says little.
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!(mean > 0.95, "{shares:?}");
}

/// Congestion control that halves its window at each loss leaves a third of the rate: what does not
/// fit is dropped before it is sent, so that the rest is not late.
#[test]
fn what_is_too_much_is_dropped_and_the_rest_is_in_time() {
    let Shares { delivered, in_time } = frames(&mut paths(1, "cmt-pf").connect(), 30.0);
    println!("delivered {delivered:.4}, of these in time {in_time:.4}");
    assert!(in_time > 0.98 && delivered > 0.15, "{delivered}, {in_time}");
}
