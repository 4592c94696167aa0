//! Transfers without failures: who carries what, and how fast.

use std::time::Duration;

use manypath_proto::PathId;
use manypath_sim::chunk_type::{DATA, SACK};
use manypath_sim::{Pair, PathSpec, TransferResult, millis, secs};

use crate::MIB;

/// Sends a file from `a` to `z` and demands that it arrives.
fn transfer(mut t: Pair, bytes: u64) -> (Pair, TransferResult) {
    t.a.send_file(bytes);
    let result = t.run_to_end(t.net.now() + Duration::from_secs(1000)).result();
    assert!(result.completed, "{result:#?}");
    (t, result)
}

#[test]
fn two_paths_are_much_faster_than_one() {
    let (_, one) = transfer(Pair::one_path("sctp").connect(), 32 * MIB);
    let (_, two) = transfer(Pair::two_paths("cmt").connect(), 32 * MIB);
    assert!(one.goodput_bps > 8.0e6, "one path of 10 Mbit/s: {}", one.goodput_bps);
    assert!(two.goodput_bps > 1.6 * one.goodput_bps, "{} and {}", one.goodput_bps, two.goodput_bps);
}

#[test]
fn paths_of_different_rate_add_up() {
    let pair = Pair::two_paths("cmt-pf").path(1, |path| path.rate_mbps(2.0));
    let (_, result) = transfer(pair.connect(), 8 * MIB);
    assert!(result.goodput_bps > 0.75 * 12e6, "{result:#?}");
}

#[test]
fn a_satellite_path_does_no_harm() {
    let fast = || PathSpec::new().rate_mbps(10.0).delay_ms(20.0);
    let slow = PathSpec::new().rate_mbps(10.0).delay_ms(300.0);
    let (_, alone) = transfer(Pair::paths("sctp", vec![fast()]).connect(), 8 * MIB);
    let pair = Pair::paths("cmt-pf", vec![fast(), slow]).set("receive_buffer", "4 MiB");
    let (_, both) = transfer(pair.connect(), 8 * MIB);
    assert!(both.transfer_time_s < alone.transfer_time_s, "{alone:#?} {both:#?}");
}

#[test]
fn loss_on_one_path_is_repaired_and_slows_that_path_only() {
    let pair = Pair::two_paths("cmt").path(1, |path| path.loss(0.02)).seed(5);
    let (_, result) = transfer(pair.connect(), 8 * MIB);
    let [clean, lossy] = &result.paths[..] else { panic!("two paths") };
    assert_eq!(clean.stats.counters.t3_expirations, 0);
    assert!(
        clean.stats.counters.data_chunks_sent > 2 * lossy.stats.counters.data_chunks_sent,
        "{result:#?}"
    );
    assert!(lossy.packets_dropped > 10);
    assert!(result.spurious_retransmissions() <= result.retransmissions() / 10, "{result:#?}");
}

#[test]
fn a_standby_path_carries_no_data() {
    let (t, _) = transfer(Pair::two_paths("sctp").connect(), MIB);
    assert_eq!(t.sent(DATA).on(PathId(1)).count(), 0, "RFC 9260 §6.4");
}

#[test]
fn both_directions_at_once() {
    let mut t = Pair::two_paths("cmt").connect();
    t.a.send_file(4 * MIB);
    t.z.send_file(4 * MIB);
    t.run_to_end(secs(60));
    assert_eq!((t.z.received_bytes(), t.a.received_bytes()), (4 * MIB, 4 * MIB));
}

#[test]
fn duplicated_reordered_and_delayed_packets_come_out_whole_and_once() {
    let mut t = Pair::two_paths("cmt-pf").seed(9).connect();
    for path in 0..2 {
        t.net.path(path).set_duplicate(0.2);
        t.net.path(path).set_reorder(0.2, Duration::from_millis(30));
        t.net.path(path).set_jitter(Duration::from_millis(10));
    }
    for i in 0..200 {
        t.a.send(i % 4, 1 + usize::from(i) * 200);
        t.a.send_unordered(i % 4, 40_000 - usize::from(i) * 100);
    }
    t.run_to_end(secs(300));
    assert_eq!(t.z.received_messages(), 400);
}

#[test]
fn damaged_packets_are_found_by_their_checksum_and_everything_is_whole() {
    for preset in ["sctp", "cmt-pf", "msacmt-rtv2"] {
        let mut t = Pair::two_paths(preset).seed(7).connect();
        for path in 0..2 {
            t.net.path(path).set_corrupt(0.05);
        }
        t.a.send_file(4 * MIB);
        t.run_to_end(secs(300));
        assert_eq!(t.z.received_bytes(), 4 * MIB, "{preset}");
        let (there, _) = t.net.path_stats(0);
        let (damaged, packets) = (there[0].corrupted, there[0].packets);
        assert!(
            (packets / 40..packets / 10).contains(&damaged),
            "{preset}: {damaged} of {packets}"
        );
        assert_eq!(there[0].dropped(), 0, "{preset}: the link itself loses none");
    }
}

#[test]
fn an_unordered_message_does_not_wait_for_a_lost_ordered_one() {
    let mut t = Pair::one_path("sctp").connect();
    t.net.path(0).forward().set_loss(1.0);
    t.a.send(0, 1000);
    t.run_for(Duration::from_millis(10));
    t.net.path(0).forward().set_loss(0.0);
    t.a.send_unordered(0, 1000);
    t.a.send(1, 1000);
    t.run_for(Duration::from_millis(100));
    assert_eq!(t.z.received_messages(), 2, "RFC 9260 §6.6, and §6.5: another stream");
    t.run_to_end(secs(10));
    assert_eq!(t.z.received_messages(), 3);
}

#[test]
fn small_messages_share_packets() {
    let mut t = Pair::one_path("sctp").connect();
    for _ in 0..1000 {
        t.a.send(0, 20);
    }
    t.run_to_end(secs(10));
    let packets = t.sent(DATA).count();
    assert!(packets <= 40, "{packets} packets for 1000 messages of 20 bytes: RFC 9260 §6.10");
}

#[test]
fn a_message_larger_than_the_receive_buffer_arrives_in_parts() {
    let mut t = Pair::two_paths("cmt").set("receive_buffer", "32 KiB").loss(0.02).connect();
    t.a.send(0, 300_000);
    t.run_to_end(secs(120));
    assert_eq!((t.z.received_messages(), t.z.received_bytes()), (1, 300_000), "RFC 9260 §6.9");
}

#[test]
fn at_least_every_second_packet_is_acknowledged_and_the_last_within_200_ms() {
    let mut t = Pair::one_path("sctp").connect();
    t.a.send_file(201 * 1440);
    t.run_to_end(secs(20));
    let (data, acks) = (t.sent(DATA).count(), t.sent(SACK).count());
    assert!((data / 2..=data / 2 + 10).contains(&acks), "{acks} SACKs for {data} packets");
    t.run_for(Duration::from_secs(1));
    let begin = t.net.now();
    t.a.send(0, 100);
    t.run_for(Duration::from_secs(1));
    let (sent, acked) = (t.sent(DATA).since(begin).first(), t.sent(SACK).since(begin).first());
    let wait = acked.expect("a SACK") - sent.expect("a packet");
    assert!(
        wait <= Duration::from_millis(250),
        "{wait:?}: RFC 9260 §6.2, 200 ms and 46 on the way"
    );
}

#[test]
fn a_reader_that_stops_stops_the_sender_and_nothing_is_lost() {
    let mut t = Pair::two_paths("cmt").set("receive_buffer", "64 KiB").connect();
    t.z.pause_reading();
    t.a.send_file(MIB);
    t.run_until(secs(300));
    let buffered = t.z.stats().expect("associated").receive_buffered;
    assert!(buffered > 50_000 && buffered <= 70_000, "{buffered} bytes in a buffer of 64 KiB");
    assert!(t.a.is_established(), "RFC 9260 §6.1, A: a zero window is no failure");
    let probes = t.sent(DATA).since(secs(100)).count();
    assert!((2..=20).contains(&probes), "{probes} probes of the window in 200 s");

    t.z.resume_reading();
    t.run_to_end(secs(400));
    assert_eq!(t.z.received_bytes(), MIB);
    assert!(t.result().receive_buffer_blocked_s > 290.0, "{:#?}", t.result());
}

#[test]
fn a_slow_reader_draws_no_tiny_packets() {
    let mut t = Pair::one_path("sctp").set("receive_buffer", "16 KiB").connect();
    t.a.send_file(200_000);
    for step in 0..400 {
        if step % 2 == 0 {
            t.z.pause_reading()
        } else {
            t.z.resume_reading()
        }
        t.run_for(Duration::from_millis(50));
    }
    assert_eq!(t.z.received_bytes(), 200_000);
    let small = t.sent(DATA).packets().filter(|packet| packet.bytes.len() < 1000).count();
    assert!(small <= 10, "{small} small packets: silly window");
}

#[test]
fn a_batch_of_packets_is_as_good_as_one_by_one() {
    let (_, single) = transfer(Pair::two_paths("cmt").connect(), 2 * MIB);
    let (_, batch) = transfer(Pair::two_paths("cmt").max_segments(16).connect(), 2 * MIB);
    let ratio = batch.transfer_time_s / single.transfer_time_s;
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
}

#[test]
fn a_link_of_1_kbit_per_s_delivers_in_the_end() {
    let mut t = Pair::one_path("sctp").rate_mbps(0.01).connect();
    t.a.send(0, 5000);
    t.run_to_end(secs(1000));
    assert_eq!(t.z.received_bytes(), 5000);
}

#[test]
fn time_zero_is_when_the_first_message_is_handed_over() {
    let mut t = Pair::one_path("sctp").connect();
    t.run_until(secs(5));
    t.a.send(0, 100);
    let result = t.run_to_end(secs(10)).result();
    let expected = 0.045 + (100.0 + 16.0 + 12.0 + 28.0) * 8.0 / 10e6;
    assert!((result.transfer_time_s - expected).abs() < 1e-6, "{}", result.transfer_time_s);
    assert!(t.net.now() > millis(5045));
}

/// The receiver promises what it keeps; short of room it discards what it did not promise, and
/// nothing is lost. It is short of room because it counts the headers of small messages, which the
/// sender does not know.
#[test]
fn with_nr_sack_a_receiver_that_discards_what_had_arrived_loses_nothing() {
    let mut reneged = 0;
    for seed in 1..=10 {
        let mut t = Pair::two_paths("cmt")
            .rate_mbps(10.0)
            .delay_ms(30.0)
            .loss(0.05)
            .seed(seed)
            .set("nr_sack", "true")
            .set_z("receive_buffer", "8 KiB")
            .set_z("recovery", "ns2")
            .check_invariants(true)
            .connect();
        for _ in 0..3000 {
            t.a.send(0, 40);
        }
        t.run_to_end(secs(600));
        assert_eq!(t.z.received_bytes(), 3000 * 40, "seed {seed}");
        reneged += t.z.stats().map_or(0, |stats| stats.chunks_reneged);
    }
    assert!(reneged > 0, "no chunk was discarded: too tame");
}
