//! Messages to chunks to packets (RFC 9260 §6.1, §6.5, §6.6, §6.9, §6.10), and the peer's window.

use bytes::Bytes;
use manypath_proto::testing::*;
use manypath_proto::{Event, SendError, SendOptions, StreamId};

use super::common::{FULL, PMDCS};

fn client() -> Script {
    Setup::client().established()
}

#[test]
fn small_messages_share_a_packet() {
    let mut t = client();
    let id = t.id();
    let now = t.now();
    for _ in 0..5 {
        let assoc = t.endpoint.assoc_mut(id).expect("open");
        assoc.send(now, SendOptions::default(), Bytes::from_static(b"small")).expect("room");
    }
    t.settle();
    t.expect("DATA 1-5"); // §6.10
    t.expect_nothing();
}

#[test]
fn a_long_message_is_cut_to_fill_packets_and_its_ends_are_marked() {
    let mut t = client();
    t.send(2 * FULL + 10);
    let mut chunks = Vec::new();
    while t.next_sent().is_some() {
        assert!(t.last().packet.bytes().len() <= 1472, "§6.9");
        chunks.extend(t.last_data());
    }
    let shape: Vec<_> =
        chunks.iter().map(|c| (c.payload.len(), c.flags.begin(), c.flags.end(), c.ssn.0)).collect();
    assert_eq!(shape, [(FULL, true, false, 0), (FULL, false, false, 0), (10, false, true, 0)]);
}

#[test]
fn fragments_fit_the_smallest_path() {
    let v4 = ([10, 0, 0, 1], PORT).into();
    let v6 = "[2001:db8::1]:9899".parse().expect("an address");
    let pairs =
        [(v4, ([10, 0, 0, 2], PORT).into()), (v6, "[2001:db8::2]:9899".parse().expect("ok"))];
    let t = Setup::client().pairs(&pairs).established();
    assert_eq!(t.assoc().fragment_size(), FULL - 20, "§7.3: AMDCS, an IPv6 header is longer");
}

#[test]
fn stream_sequence_numbers_count_per_stream_and_not_for_unordered_messages() {
    let mut t = client();
    for (stream, unordered) in [(0, false), (0, true), (1, false), (0, false)] {
        let options =
            SendOptions { stream: StreamId(stream), ppid: 7, unordered, ..SendOptions::default() };
        t.with(|a, now| a.send(now, options, Bytes::from_static(b"m"))).expect("room");
    }
    let mut seen = Vec::new();
    while t.next_sent().is_some() {
        seen.extend(t.last_data().iter().map(|d| (d.stream.0, d.flags.unordered(), d.ssn.0)));
    }
    let ordered: Vec<_> = seen.iter().filter(|s| !s.1).map(|s| (s.0, s.2)).collect();
    assert_eq!(ordered, [(0, 0), (1, 0), (0, 1)], "§6.5");
}

#[test]
fn send_refuses_what_cannot_be_sent() {
    let mut t = Setup::client().set("send_buffer", "10000").established();
    assert_eq!(t.try_send(0, 0), Err(SendError::Empty), "§6.2");
    assert_eq!(t.try_send(0, 10_001), Err(SendError::TooLarge { limit: 10_000 }));
    t.send(10_000);
    assert_eq!(t.try_send(0, 1), Err(SendError::Full));
    t.all_sent();
    t.peer(sack(4));
    assert!(t.events().contains(&Event::Writable));
    t.send(1);
}

#[test]
fn the_peers_window_limits_what_is_in_flight() {
    let mut t = Setup::client().start();
    t.connect_to(init_ack().rwnd(3000));
    t.send_packets(3);
    t.expect_all(&["DATA 1", "DATA 2"]);
    t.expect_nothing(); // §6.1 A: 2888 of 3000 bytes are taken
    t.peer(sack(1).rwnd(3000));
    t.expect("DATA 3"); // §6.2.1: a_rwnd less what is outstanding
    t.send_packets(1);
    t.expect_nothing();
}

#[test]
fn a_full_packet_may_exceed_cwnd_by_less_than_itself() {
    let mut t = client();
    assert_eq!(t.path(1).cwnd, 4404, "§7.2.1");
    t.send_packets(10);
    t.expect_all(&["DATA 1", "DATA 2", "DATA 3", "DATA 4"]);
    t.expect_nothing();
    assert_eq!(t.path(1).flight_size, 4 * PMDCS, "§6.1 B: one packet beyond cwnd");
}

#[test]
fn a_chunks_header_and_padding_count_in_flight() {
    let mut t = client();
    t.send(1);
    t.expect("DATA 1");
    assert_eq!(t.path(1).flight_size, 20, "§7.2: 16 + 1, padded");
}

#[test]
fn a_closed_window_is_probed_with_back_off_and_without_blame() {
    let mut t = client();
    t.send_packets(1);
    t.expect("DATA 1");
    t.send_packets(3);
    t.all_sent();
    t.run_ms(100);
    t.peer(sack(4).rwnd(0));
    t.send_packets(2);
    t.expect("DATA 5"); // §6.1 A: the probe, when nothing is outstanding
    t.expect_nothing();
    let mut waits = Vec::new();
    for _ in 0..20 {
        t.run_ms(20);
        t.peer(sack(4).rwnd(0));
        let start = t.now();
        while t.all_sent().iter().all(|words| words != "DATA 5") {
            t.run_to_timer();
            t.answer_heartbeats();
        }
        waits.push((t.now() - start).as_secs());
    }
    assert!(waits.is_sorted(), "§6.1 A: exponentially longer: {waits:?}");
    assert!(waits[2] >= 3 && waits[19] >= 59, "{waits:?}");
    assert_eq!(t.path(1).error_count, 0, "§6.1 A: answered probes are no errors");
    assert!(t.assoc().is_established());
    t.peer(sack(4).rwnd(100_000));
    t.expect("DATA 5");
    t.expect("DATA 6");
}

#[test]
fn probes_of_a_closed_window_that_nobody_answers_are_errors() {
    let mut t = client();
    t.send_packets(1);
    t.expect("DATA 1");
    t.peer(sack(1).rwnd(0));
    t.send_packets(1);
    t.run_ms(600_000);
    assert!(t.assoc().closed().is_some(), "§8.1");
}

#[test]
fn chunks_dropped_by_a_window_that_closed_meanwhile_are_no_path_errors() {
    let mut t = client();
    t.send_packets(4);
    t.all_sent();
    t.run_ms(100);
    for _ in 0..30 {
        // Each retransmission finds the buffer full again; the peer says so.
        t.run_ms(100);
        t.peer(sack(1).rwnd(0));
        while t.all_sent().iter().all(|words| !words.starts_with("DATA")) {
            t.run_to_timer();
            t.answer_heartbeats();
        }
    }
    assert!(t.assoc().is_established());
    assert!(t.path(1).error_count <= 1, "{}", t.path(1).error_count);
}

#[test]
fn a_loss_below_what_the_peer_has_is_an_error_though_its_window_is_closed() {
    let mut t = client();
    t.send_packets(4);
    t.all_sent();
    t.run_ms(100);
    // The buffer is full of what waits for TSN 2: that one had room, and was lost on the way.
    t.peer(sack(1).gap(3, 4).rwnd(0));
    while t.path(1).counters.t3_expirations == 0 {
        t.run_to_timer();
        t.all_sent();
    }
    assert_eq!(t.path(1).error_count, 1, "§6.1 A spares probes, §8.2 counts timeouts");
}

#[test]
fn an_older_sack_that_comes_late_says_nothing_of_the_window() {
    let mut t = client();
    t.send_packets(4);
    t.all_sent();
    t.peer(sack(3).rwnd(5000));
    t.peer(sack(2).rwnd(0)); // §6.2.1: below the cumulative TSN ack point
    t.send_packets(2);
    t.expect("DATA 5");
}

#[test]
fn an_overtaken_sack_with_fewer_chunks_does_not_open_the_window_again() {
    let mut t = Setup::client().set("initial_cwnd", "20 pmdcs").set("max_burst", "0").established();
    t.send_packets(6);
    t.all_sent();
    t.peer(sack(0).gap(2, 5).rwnd(3000));
    t.peer(sack(0).gap(2, 3).rwnd(6000)); // sent before, arrives after
    t.send_packets(2);
    t.expect_nothing(); // §6.1 A: TSNs 1 and 6 fill what is left
}

#[test]
fn everything_acknowledged_is_an_event() {
    let mut t = client();
    t.send(10);
    t.expect("DATA 1");
    t.events();
    t.peer(sack(1));
    assert_eq!(t.events(), [Event::SendBufferEmpty]);
    assert_eq!(t.assoc().unacked_bytes(), 0);
}

#[test]
fn no_more_tsns_are_outstanding_than_gap_ack_blocks_can_name() {
    let mut t = Setup::client().set("initial_cwnd", "20000000 B").set("max_burst", "0").start();
    t.connect_to(init_ack().rwnd(100_000_000));
    t.send_messages(70_000, 1);
    let mut highest = 0;
    while t.next_sent().is_some() {
        highest += t.last_data().len();
    }
    assert_eq!(highest, 65_535, "§3.3.4: their offsets have 16 bits");
    t.peer(sack(65_535));
    assert!(t.next_sent().is_some());
}
