//! The CMT-PF paper's Figures 2 and 4, event by event, and Figure 10.

use std::time::Duration;

use manypath_sim::chunk_type::{DATA, SACK};
use manypath_sim::{Fate, LinkSpec, Pair, PairBuilder, PathSpec, QueueLimit, millis};
use manypath_wire::{Chunk, Tsn};

/// User bytes of a chunk, and with its header: the MTU of the paper's arithmetic.
const USER: usize = 1452;
const CHUNK: usize = 1468;

/// Two paths; a window of two chunks each, a receive buffer of five, a SACK for every packet.
fn builder(preset: &str) -> PairBuilder {
    let path = |core_ms| {
        let edge = LinkSpec::mbps_ms(100.0, 10.0);
        PathSpec::hops([edge.clone(), LinkSpec::mbps_ms(10.0, core_ms), edge])
    };
    // The second is longer, so that what was sent first arrives first.
    Pair::paths(preset, vec![path(25.0), path(26.0)])
        .profile("2006")
        .set("rtx_policy", "ssthresh")
        .set("scheduler", "fill_in_turn")
        .set("receive_buffer", "7500 B")
        .set("verify_all_paths_first", "true")
        .set("hb_max_burst", "2")
        .set("sack_every", "1")
        .set("initial_cwnd", "2 pmdcs")
        .set("ssthresh_floor", "2 pmdcs")
        .set("slow_start_increase_max", "1 pmdcs")
        .set("max_burst_rule", "cuts_cwnd")
        .set("idle_cwnd_decay", "false")
}

/// Cuts path 1 for good when TSN 1 is past its core link and TSN 2 is not, and notes what happens
/// at the sender: a SACK as the paper writes it, or a timeout; C and O of both paths in chunks,
/// before anything is sent in answer; what is sent then. TSNs count from 1.
fn timeline(builder: PairBuilder, until: Duration) -> Vec<String> {
    let mut t = builder.start();
    t.a.send_file(1 << 20);
    let data_start = |t: &Pair| t.a.stats().and_then(|stats| stats.first_data_sent);
    assert!(t.run_until_true(millis(500), |t| data_start(t).is_some()));
    let begin = data_start(&t).expect("DATA was sent");
    t.net.path(0).hop(1).at(begin + Duration::from_micros(10_180)).cut();
    let mut rows = vec![sends(&t, 0).0.join(", ")];
    let mut seen = t.net.packet_log().map_or(0, |log| log.packets().len());
    let mut timeouts = 0;
    while t.step(begin + until) {
        let (sent, chunks) = sends(&t, seen);
        seen = t.net.packet_log().map_or(0, |log| log.packets().len());
        let paths = t.a.paths();
        let expired: u64 = paths.iter().map(|path| path.counters.t3_expirations).sum();
        let cause = match arrived_sack(&t) {
            Some(sack) => sack,
            None if expired > timeouts => "timeout".to_owned(),
            None if sent.is_empty() => continue,
            None => {
                rows.push(format!("heartbeat: {}", sent.join(", ")));
                continue;
            }
        };
        timeouts = expired;
        let windows = paths.iter().zip(chunks).map(|(path, sent)| {
            let number = path.id.0 + 1;
            let outstanding = path.flight_size / CHUNK - sent;
            format!("C{number}={} O{number}={outstanding}", path.cwnd / CHUNK)
        });
        let windows: Vec<_> = windows.collect();
        rows.push(format!("{cause}: {} -> {}", windows.join(" "), sent.join(", ")));
    }
    rows
}

/// DATA and HEARTBEATs that the sender sent from packet number `from` on, and how many DATA chunks
/// on each path.
fn sends(t: &Pair, from: usize) -> (Vec<String>, [usize; 2]) {
    let log = t.net.packet_log().expect("kept").packets();
    let (mut sent, mut chunks) = (Vec::new(), [0; 2]);
    for packet in log[from..].iter().filter(|packet| packet.from == t.a.node()) {
        let path = packet.route.and_then(|route| t.net.route_path(route)).expect("a path");
        for chunk in packet.chunks() {
            match chunk {
                Chunk::Data(data) => {
                    chunks[path] += 1;
                    sent.push(format!("{} on {}", tsn(t, data.tsn), path + 1));
                }
                Chunk::Heartbeat(_) => sent.push(format!("HEARTBEAT on {}", path + 1)),
                _ => {}
            }
        }
    }
    (sent, chunks)
}

/// The number of a TSN, from 1.
fn tsn(t: &Pair, tsn: Tsn) -> u32 {
    let first = t.sent(DATA).chunks().find_map(|(_, chunk)| match chunk {
        Chunk::Data(data) => Some(data.tsn),
        _ => None,
    });
    tsn.0.wrapping_sub(first.expect("DATA was sent").0).wrapping_add(1)
}

/// The SACK that has just reached the sender, as `<Sa, b-c; Rd>` of the paper.
fn arrived_sack(t: &Pair) -> Option<String> {
    let now = Fate::Delivered(t.net.now());
    let packet = t.sent(SACK).by(t.z.node()).packets().find(|packet| packet.fate == now)?;
    let sack = packet.chunks().into_iter().find_map(|chunk| match chunk {
        Chunk::Sack(sack) => Some(sack),
        _ => None,
    })?;
    let cum = tsn(t, sack.cum_tsn_ack);
    let gaps = sack
        .gap_ack_blocks()
        .map(|block| format!(", {}-{}", cum + u32::from(block.start), cum + u32::from(block.end)));
    let gaps: String = gaps.collect();
    Some(format!("<S{cum}{gaps}; R{}>", sack.a_rwnd as usize / USER))
}

/// Events that both figures show up to the first timeout: 5 and 6 wait for no window but fill the
/// receive buffer, and until the timeout the sender is blocked although both windows have room.
const UNTIL_TIMEOUT: [&str; 5] = [
    "HEARTBEAT on 1, HEARTBEAT on 2, 1 on 1, 2 on 1, 3 on 2, 4 on 2",
    "<S1, 3-3; R4>: C1=3 O1=1 C2=3 O2=1 -> 5 on 2, 6 on 2",
    "<S1, 3-4; R3>: C1=3 O1=1 C2=4 O2=2 -> ",
    "<S1, 3-5; R2>: C1=3 O1=1 C2=4 O2=1 -> ",
    "<S1, 3-6; R1>: C1=3 O1=1 C2=4 O2=0 -> ",
];

#[test]
fn figure_2_cmt_sends_new_data_on_the_failed_path_and_is_blocked_again() {
    // C1 is the one number that differs: the SACK of TSN 3 acknowledges TSN 1, too, and CUC adds an
    // MTU for it, so that two could go on path 1 where the text says one.
    let mut expected = UNTIL_TIMEOUT.to_vec();
    expected.extend([
        "timeout: C1=1 O1=0 C2=4 O2=0 -> 2 on 2",
        "<S6; R5>: C1=1 O1=0 C2=4 O2=0 -> 7 on 1, 8 on 2, 9 on 2, 10 on 2, 11 on 2",
        "<S6, 8-8; R4>: C1=1 O1=1 C2=5 O2=3 -> ",
        "<S6, 8-9; R3>: C1=1 O1=1 C2=5 O2=2 -> ",
        "<S6, 8-10; R2>: C1=1 O1=1 C2=5 O2=1 -> ",
        // MaxBurst: O2 + 4.
        "<S6, 8-11; R1>: C1=1 O1=1 C2=4 O2=0 -> ",
        "timeout: C1=1 O1=0 C2=4 O2=0 -> 7 on 2",
    ]);
    let rows = timeline(builder("cmt"), Duration::from_secs(5));
    assert_eq!(rows[..expected.len()], expected, "all: {rows:#?}");
}

#[test]
fn figure_4_cmt_pf_sends_a_heartbeat_and_is_not_blocked_again() {
    let mut expected = UNTIL_TIMEOUT.to_vec();
    expected.extend([
        "timeout: C1=1 O1=0 C2=4 O2=0 -> HEARTBEAT on 1, 2 on 2",
        "<S6; R5>: C1=1 O1=0 C2=4 O2=0 -> 7 on 2, 8 on 2, 9 on 2, 10 on 2",
        "<S7; R5>: C1=1 O1=0 C2=5 O2=3 -> 11 on 2, 12 on 2",
        "<S8; R5>: C1=1 O1=0 C2=6 O2=4 -> 13 on 2",
    ]);
    let rows = timeline(builder("cmt-pf"), Duration::from_secs(5));
    assert_eq!(rows[..expected.len()], expected, "all: {rows:#?}");
    let after = &rows[expected.len()..];
    assert!(after.len() > 100, "{rows:#?}");
    let on_path_1 = after.iter().filter(|row| row.ends_with("on 1")).collect::<Vec<_>>();
    assert_eq!(on_path_1, ["heartbeat: HEARTBEAT on 1"], "the second of PMR + 1 timeouts");
    let is_stopped = |row: &&String| row.ends_with("-> ");
    assert_eq!(after.iter().find(is_stopped), None, "every SACK lets something be sent");
}

/// A SACK whose a_rwnd is 0 since what follows upon a lost chunk fills the buffer is none of a
/// closed window.
#[test]
fn a_full_buffer_does_not_hide_that_a_path_failed() {
    // Five chunks exactly: the one that is missing leaves less than an MTU.
    let exact = |preset| builder(preset).set("receive_buffer", &(5 * USER).to_string());
    let rows = timeline(exact("cmt-pf"), Duration::from_secs(5));
    assert!(rows.contains(&"<S1, 3-6; R0>: C1=3 O1=1 C2=4 O2=0 -> ".to_owned()), "{rows:#?}");
    assert!(
        rows.iter().any(|row| row.starts_with("timeout") && row.contains("HEARTBEAT on 1")),
        "{rows:#?}"
    );
}

/// Seconds from a timeout of path 2, after which nothing is lost, until its window has each of
/// these sizes in MTU.
fn window_after_timeout(preset: &str, recovery_cwnd: u32, sizes: &[usize]) -> Vec<f64> {
    let path = |core_us| {
        let edge = LinkSpec::mbps_ms(1000.0, 10.0);
        let core = LinkSpec::mbps_ms(100.0, core_us / 1000.0).queue(QueueLimit::Packets(1000));
        PathSpec::hops([edge.clone(), core, edge])
    };
    let mut t = Pair::paths(preset, vec![path(30_037.0), path(25_000.0)])
        .profile("2006")
        .set("receive_buffer", "16 MiB")
        .set("initial_ssthresh", "256 KiB")
        .set("sack_every", "1")
        .set("initial_cwnd", "2 pmdcs")
        .set("ssthresh_floor", "2 pmdcs")
        .set("slow_start_increase_max", "1 pmdcs")
        .set("pf_recovery_cwnd", &recovery_cwnd.to_string())
        .start();
    t.a.send_file(64 << 20);
    t.net.path(1).hop(1).at(millis(2000)).cut_for(Duration::from_millis(500));
    let expired =
        |t: &Pair| t.a.paths().get(1).is_some_and(|path| path.counters.t3_expirations > 0);
    assert!(t.run_until_true(millis(4000), expired), "the outage leads to a timeout");
    let timeout = t.net.now();
    let reached = |&size: &usize| {
        let is_there = |t: &Pair| t.a.paths()[1].cwnd >= size * CHUNK;
        assert!(t.run_until_true(millis(6000), is_there), "{preset}: {size} MTU");
        (t.net.now() - timeout).as_secs_f64()
    };
    sizes.iter().map(reached).collect()
}

#[test]
fn figure_10_pf1_lags_one_round_trip_behind_cmt_and_pf2_does_not() {
    const RTT: f64 = 0.0902;
    let sizes = [2, 4, 8, 16];
    let cmt = window_after_timeout("cmt", 2, &sizes);
    let pf1 = window_after_timeout("cmt-pf", 1, &sizes);
    let pf2 = window_after_timeout("cmt-pf", 2, &sizes);
    for (n, ((cmt, pf1), pf2)) in cmt.iter().zip(&pf1).zip(&pf2).enumerate() {
        let rtts = (n + 1) as f64;
        assert!((cmt / RTT - rtts).abs() < 0.02, "CMT: 2^{rtts} MTU after {cmt} s");
        assert!((pf1 / RTT - rtts - 1.0).abs() < 0.02, "CMT-PF1: 2^{rtts} MTU after {pf1} s");
        assert!((pf2 / RTT - rtts).abs() < 0.02, "CMT-PF2: 2^{rtts} MTU after {pf2} s");
    }
}
