//! Messages that are given up (RFC 3758, RFC 7496; I-FORWARD-TSN of RFC 8260): when, what the peer
//! is told, and what a receiver does. `docs/rfc3758.md` names the test for each rule.

use std::time::Duration;

use bytes::Bytes;
use manypath_proto::testing::*;
use manypath_proto::{Event, Message, SendError, SendOptions, StreamId};
use manypath_wire::{Chunk, Mid, Parameter, SkippedMessage, chunk_type};

use super::common::announced;

fn reliable() -> SendOptions {
    SendOptions::default()
}

fn on(stream: u16) -> SendOptions {
    SendOptions { stream: StreamId(stream), ..reliable() }
}

fn lives_ms(ms: u64) -> SendOptions {
    SendOptions { lifetime: Some(Duration::from_millis(ms)), ..reliable() }
}

fn repeated_at_most(times: u16) -> SendOptions {
    SendOptions { max_retransmissions: Some(times), ..reliable() }
}

fn important(priority: u32) -> SendOptions {
    SendOptions { priority: Some(priority), ..reliable() }
}

fn prepared() -> Setup {
    Setup::client().set("max_burst", "0").set("initial_cwnd", "20 pmdcs").set("rto_min", "1 s")
}

/// A client whose peer knows FORWARD TSN.
fn client() -> Script {
    open(prepared())
}

fn open(setup: Setup) -> Script {
    let mut t = setup.start();
    t.connect_to(init_ack().param(Parameter::ForwardTsnSupported));
    t
}

/// A client, as its peer, with I-DATA.
fn interleaving_client() -> Script {
    let setup = prepared().set("message_interleaving", "true").set("stream_scheduler", "rr");
    let mut t = setup.start();
    let types = [chunk_type::I_DATA, chunk_type::FORWARD_TSN, chunk_type::I_FORWARD_TSN];
    t.connect_to(init_ack().param(Parameter::SupportedExtensions(types.to_vec().into())));
    t
}

/// A server whose peer knows FORWARD TSN.
fn server() -> Script {
    let mut t = Setup::server().start();
    t.accept(init().param(Parameter::ForwardTsnSupported));
    t
}

/// A server, as its peer, with I-DATA.
fn interleaving_server() -> Script {
    let mut t = Setup::server().set("message_interleaving", "true").start();
    let types = [chunk_type::I_DATA, chunk_type::FORWARD_TSN, chunk_type::I_FORWARD_TSN];
    t.accept(init().param(Parameter::SupportedExtensions(types.to_vec().into())));
    t
}

fn send(t: &mut Script, options: SendOptions, len: usize) {
    t.with(|a, now| a.send(now, options, Bytes::from(vec![b'x'; len]))).expect("there is room");
}

/// All that can be received: the text of each message, or part of one, and marks of its end.
fn received(t: &mut Script) -> Vec<(u16, String, &'static str)> {
    let read = |t: &mut Script| t.with(|a, now| a.recv(now));
    let all = std::iter::from_fn(|| read(t)).map(|m: Message| {
        let end = match (m.is_cut_off, m.end_of_message) {
            (true, _) => "cut off",
            (false, true) => "whole",
            (false, false) => "part",
        };
        (m.stream.0, String::from_utf8(m.payload.to_vec()).expect("text"), end)
    });
    all.collect()
}

fn abandoned(t: &mut Script) -> Vec<(u16, bool)> {
    let given_up = |event| match event {
        Event::MessageAbandoned { stream, was_sent, .. } => Some((stream.0, was_sent)),
        _ => None,
    };
    t.events().into_iter().filter_map(given_up).collect()
}

// ---- The agreement (RFC 3758 §3.3) ----

#[test]
fn both_ends_must_announce_forward_tsn() {
    let is_agreed = |ours: &str, theirs: PeerChunk| {
        let mut t = Setup::server().set("partial_reliability", ours).start();
        t.accept(theirs);
        t.assoc().is_partially_reliable()
    };
    let types = Parameter::SupportedExtensions(vec![chunk_type::FORWARD_TSN].into());
    assert!(is_agreed("true", init().param(Parameter::ForwardTsnSupported)));
    assert!(is_agreed("true", init().param(types)), "as newer stacks announce it");
    assert!(!is_agreed("true", init()));
    assert!(!is_agreed("false", init().param(Parameter::ForwardTsnSupported)));
}

#[test]
fn forward_tsn_is_announced_by_parameter_and_by_chunk_type() {
    let announces = |parameter: &str, interleaving: &str| {
        let setup = Setup::client().set("partial_reliability", parameter);
        let mut t = setup.set("message_interleaving", interleaving).start();
        t.connect();
        let init = t.expect_init();
        let has = init.params.iter().any(|p| p == Ok(Parameter::ForwardTsnSupported));
        (has, announced(&init))
    };
    assert_eq!(announces("true", "false"), (true, vec![chunk_type::FORWARD_TSN]));
    let both = vec![chunk_type::I_DATA, chunk_type::FORWARD_TSN, chunk_type::I_FORWARD_TSN];
    assert_eq!(announces("true", "true"), (true, both));
    assert_eq!(announces("false", "false"), (false, vec![]));
}

#[test]
fn forward_tsn_that_was_not_agreed_on_is_an_unknown_chunk_that_is_reported() {
    let mut t = Setup::server().established();
    t.peer([forward_tsn(3, &[]), data(1)]);
    t.expect("ERROR 6");
    t.expect("SACK 1");
}

#[test]
fn messages_with_limits_are_reliable_if_the_peer_cannot_skip() {
    let mut t = prepared().established();
    send(&mut t, lives_ms(50), 10);
    send(&mut t, repeated_at_most(0), 10);
    t.expect("DATA 1");
    t.expect("DATA 2");
    t.run_ms(3500);
    assert_eq!(abandoned(&mut t), []);
    t.expect("DATA 1-2");
}

// ---- When a message is given up ----

#[test]
fn a_message_whose_lifetime_is_over_is_sent_no_more_and_skipped() {
    let mut t = client();
    send(&mut t, lives_ms(100), 10);
    t.expect("DATA 1");
    t.run_ms(99);
    t.expect_nothing();
    t.run_ms(1);
    t.expect("FORWARD TSN 1 0:0");
    assert_eq!(abandoned(&mut t), [(0, true)]);
    t.peer(sack(1));
    t.run_ms(5000);
    t.expect_nothing();
    assert_eq!(t.assoc().unacked_bytes(), 0);
}

#[test]
fn a_message_that_expires_unsent_leaves_no_trace() {
    let mut t = open(prepared().set("initial_cwnd", "1 pmdcs"));
    t.send_messages(2, 1000);
    t.expect("DATA 1");
    send(&mut t, lives_ms(40), 500);
    t.run_ms(50);
    assert_eq!(abandoned(&mut t), [(0, false)]);
    assert_eq!(t.assoc().stats().messages_dropped, 1);
    t.peer(sack(1));
    t.expect("DATA 2");
    t.peer(sack(2));
    t.expect_nothing();
}

#[test]
fn a_message_that_expires_unsent_is_dropped_for_any_peer() {
    let mut t = prepared().set("initial_cwnd", "1 pmdcs").established();
    t.send_messages(2, 1000);
    send(&mut t, lives_ms(40), 500);
    t.run_ms(50);
    assert_eq!(abandoned(&mut t), [(0, false)], "RFC 9260 §11.1.5, life time");
}

#[test]
fn an_acknowledged_message_is_not_given_up() {
    let mut t = client();
    send(&mut t, reliable(), 10);
    send(&mut t, lives_ms(100), 10);
    t.take_sent();
    t.peer(sack(0).gap(2, 2));
    t.run_ms(500);
    assert_eq!(abandoned(&mut t), []);
}

#[test]
fn a_message_is_given_up_when_it_would_be_repeated_too_often() {
    let mut t = client();
    send(&mut t, repeated_at_most(1), 10);
    t.expect("DATA 1");
    t.run_ms(1500);
    t.expect("DATA 1");
    t.expect_nothing();
    t.run_ms(2000);
    t.expect("FORWARD TSN 1 0:0");
    assert_eq!(abandoned(&mut t), [(0, true)]);
}

#[test]
fn a_lost_message_that_may_not_be_repeated_is_skipped_when_reports_show_the_loss() {
    let mut t = client();
    send(&mut t, repeated_at_most(0), 10);
    t.send_messages(3, 10);
    t.take_sent();
    for last in 2..=3 {
        t.peer(sack(0).gap(2, last));
        t.expect_nothing();
    }
    t.peer(sack(0).gap(2, 4));
    t.expect("FORWARD TSN 1 0:0");
    t.peer(sack(4));
    t.run_ms(5000);
    t.expect_nothing();
}

#[test]
fn all_fragments_of_a_message_are_given_up_together() {
    let mut t = client();
    send(&mut t, lives_ms(100), 4000);
    t.take_sent();
    t.peer(sack(0).gap(2, 2));
    t.take_sent();
    t.run_ms(100);
    t.expect("FORWARD TSN 3 0:0");
    t.peer(sack(3));
    assert_eq!(t.assoc().unacked_bytes(), 0);
}

#[test]
fn the_rest_of_a_message_that_has_begun_to_leave_is_skipped_too() {
    let mut t = open(prepared().set("initial_cwnd", "1 pmdcs"));
    send(&mut t, lives_ms(100), 8000);
    t.expect("DATA 1");
    t.peer(sack(1));
    t.expect("DATA 2");
    t.expect("DATA 3");
    t.run_ms(100);
    t.expect("FORWARD TSN 4 0:0");
    send(&mut t, reliable(), 10);
    t.peer(sack(4));
    t.expect("DATA 5");
}

#[test]
fn a_lost_fragment_that_may_not_be_repeated_takes_the_unsent_rest_along() {
    let mut t = open(prepared().set("initial_cwnd", "4 pmdcs"));
    send(&mut t, repeated_at_most(0), 9000);
    t.take_sent();
    for last in 2..=4 {
        t.peer(sack(0).gap(2, last));
    }
    let sent = t.all_sent();
    let skipped = sent.last().and_then(|words| words.strip_prefix("FORWARD TSN "));
    let (tsn, _) = skipped.and_then(|rest| rest.split_once(' ')).expect("a FORWARD TSN");
    let highest = 4 + sent.iter().filter(|words| words.starts_with("DATA")).count();
    assert_eq!(tsn, (highest + 1).to_string(), "one TSN stands for the rest: {sent:?}");
    assert_eq!(t.assoc().unsent_bytes(), 0);
}

#[test]
fn less_important_messages_make_room_for_more_important_ones() {
    let setup = prepared().set("initial_cwnd", "1 pmdcs").set("send_buffer", "6000");
    let mut t = open(setup);
    send(&mut t, reliable(), 1400);
    for priority in [3, 5, 4] {
        send(&mut t, important(priority), 1400);
    }
    let try_send = |t: &mut Script, priority| {
        t.with(|a, now| a.send(now, important(priority), Bytes::from(vec![0; 1400])))
    };
    assert_eq!(try_send(&mut t, 5), Err(SendError::Full), "RFC 7496 §3.2: none is less important");
    assert_eq!(try_send(&mut t, 4), Ok(()));
    assert_eq!(abandoned(&mut t), [(0, false)]);
    assert_eq!(try_send(&mut t, 1), Ok(()));
    assert_eq!(abandoned(&mut t), [(0, false)]);
    assert_eq!(t.assoc().stats().messages_dropped, 2);
}

// ---- What the peer is told (RFC 3758 §3.5) ----

/// An eighth of the buffer is theirs; without a lifetime there is no room.
#[test]
fn messages_with_a_lifetime_have_room_where_the_send_buffer_is_full() {
    let mut t = open(prepared().set("send_buffer", "16000").set("initial_cwnd", "1 pmdcs"));
    let message = || Bytes::from(vec![0; 1000]);
    let mut give = |options| t.with(|a, now| a.send(now, options, message()));
    for _ in 0..16 {
        give(reliable()).expect("there is room");
    }
    for options in [reliable(), repeated_at_most(0), important(3)] {
        assert_eq!(give(options), Err(SendError::Full));
    }
    assert_eq!(give(lives_ms(100)), Ok(()));
    assert_eq!(give(lives_ms(100)), Ok(()));
    assert_eq!(give(lives_ms(100)), Err(SendError::Full));
}

#[test]
fn forward_tsn_stops_before_what_is_not_given_up() {
    let mut t = client();
    send(&mut t, lives_ms(100), 10);
    send(&mut t, reliable(), 10);
    send(&mut t, lives_ms(100), 10);
    t.take_sent();
    t.run_ms(100);
    t.expect("FORWARD TSN 1 0:0");
    t.expect_nothing();
    t.peer(sack(2));
    t.expect("FORWARD TSN 3 0:2");
}

#[test]
fn forward_tsn_lists_the_last_message_of_each_stream_and_no_unordered_one() {
    let mut t = client();
    for stream in [1, 2, 1] {
        send(&mut t, SendOptions { lifetime: lives_ms(100).lifetime, ..on(stream) }, 10);
    }
    send(&mut t, SendOptions { unordered: true, ..lives_ms(100) }, 10);
    t.take_sent();
    t.run_ms(100);
    t.expect("FORWARD TSN 4 1:1 2:0");
}

#[test]
fn forward_tsn_is_repeated_until_it_is_acknowledged() {
    let mut t = client();
    send(&mut t, lives_ms(100), 10);
    t.take_sent();
    t.run_ms(100);
    t.expect("FORWARD TSN 1 0:0");
    t.run_ms(3000);
    t.expect("FORWARD TSN 1 0:0");
    t.peer(sack(1));
    t.take_sent();
    t.run_ms(20_000);
    t.expect_nothing();
}

#[test]
fn forward_tsn_that_is_never_acknowledged_ends_the_association_in_the_end() {
    let mut t = client();
    send(&mut t, lives_ms(100), 10);
    t.run_ms(600_000);
    assert!(t.assoc().closed().is_some(), "the peer is unreachable");
}

#[test]
fn messages_that_do_not_fit_into_forward_tsn_wait_for_the_next_one() {
    let setup = prepared().set("outbound_streams", "1000").set("initial_cwnd", "200 pmdcs");
    let mut t = setup.start();
    t.connect_to(init_ack().streams(10, 1000).param(Parameter::ForwardTsnSupported));
    for stream in 0..1000 {
        send(&mut t, SendOptions { lifetime: lives_ms(100).lifetime, ..on(stream) }, 10);
    }
    t.take_sent();
    t.run_ms(100);
    let told = |t: &mut Script| {
        t.next_sent().expect("FORWARD TSN");
        match t.last_chunks().as_slice() {
            [Chunk::ForwardTsn(chunk)] => chunk.skipped().count() as u32,
            other => panic!("{other:?}"),
        }
    };
    let first = told(&mut t);
    assert!((300..1000).contains(&first), "{first}");
    t.peer(sack(first));
    assert_eq!(told(&mut t), first);
    t.peer(sack(2 * first));
    assert_eq!(told(&mut t), 1000 - 2 * first);
}

#[test]
fn skipped_data_neither_opens_the_window_nor_is_a_loss() {
    let mut t = client();
    let before = t.path(1).cwnd;
    for _ in 0..20 {
        send(&mut t, lives_ms(100), 1400);
    }
    t.take_sent();
    assert!(t.path(1).flight_size > 20_000);
    t.run_ms(100);
    t.expect("FORWARD TSN 20 0:19");
    assert!(t.path(1).flight_size > 20_000, "it still fills the path");
    t.peer(sack(20));
    let after = t.path(1);
    assert_eq!((after.cwnd, after.flight_size), (before, 0));
    assert_eq!(after.counters.chunks_lost, 0);
}

#[test]
fn what_expires_before_the_association_is_open_is_skipped_once_it_is() {
    let mut t = Setup::client().profile("fast").start();
    t.connect();
    send(&mut t, lives_ms(100), 10);
    t.expect_init();
    t.peer(init_ack().param(Parameter::ForwardTsnSupported));
    t.expect("COOKIE ECHO, DATA 1");
    t.run_ms(150);
    t.take_sent();
    t.peer(cookie_ack());
    let sent = t.all_sent();
    assert!(sent.iter().any(|words| words.contains("FORWARD TSN 1 0:0")), "{sent:?}");
}

#[test]
fn room_that_a_timeout_makes_is_told() {
    let mut t = open(prepared().set("send_buffer", "3000").set("initial_cwnd", "1 pmdcs"));
    send(&mut t, lives_ms(100), 1400);
    t.expect("DATA 1");
    send(&mut t, reliable(), 1400);
    assert_eq!(t.try_send(0, 1400), Err(SendError::Full));
    t.run_ms(2000);
    assert!(t.events().contains(&Event::Writable));
}

#[test]
fn a_tail_loss_probe_leaves_skipped_data_in_the_flight() {
    let setup = prepared().set("tail_loss_probe", "true").set("rto_initial", "3 s");
    let mut t = open(setup);
    send(&mut t, lives_ms(10), 1000);
    t.run_ms(900);
    assert_eq!(t.assoc().stats().forward_tsns_sent, 1);
    assert!(t.path(1).flight_size > 0, "no SACK has said what became of it");
}

#[test]
fn a_shutdown_waits_for_forward_tsn_and_not_for_the_message() {
    let mut t = client();
    send(&mut t, lives_ms(100), 10);
    t.take_sent();
    t.with(|a, now| a.shutdown(now));
    t.run_ms(100);
    t.expect("FORWARD TSN 1 0:0");
    t.peer(sack(1));
    t.expect("SHUTDOWN 0");
}

#[test]
fn i_forward_tsn_lists_messages_of_both_kinds() {
    let mut t = interleaving_client();
    for unordered in [false, true, false] {
        send(&mut t, SendOptions { unordered, ..lives_ms(100) }, 10);
    }
    t.take_sent();
    t.run_ms(100);
    t.expect("I-FORWARD-TSN 3 0:1 0:U0");
}

#[test]
fn an_interleaved_message_is_given_up_alone() {
    let mut t = interleaving_client();
    t.with(|a, now| {
        let options = SendOptions { lifetime: lives_ms(100).lifetime, ..on(1) };
        a.send(now, options, Bytes::from(vec![b'x'; 2800])).expect("room");
        a.send(now, on(2), Bytes::from(vec![b'x'; 2800])).expect("room");
    });
    t.take_sent();
    t.run_ms(100);
    t.expect("I-FORWARD-TSN 1 1:0");
    t.peer(sack(2));
    t.expect("I-FORWARD-TSN 3 1:0");
    t.peer(sack(4));
    t.expect_nothing();
}

// ---- The receiver (RFC 3758 §3.6) ----

#[test]
fn what_was_skipped_counts_as_received_and_the_next_message_is_delivered() {
    let mut t = server();
    t.peer([data(2).payload("two")]);
    t.expect("SACK 0 gaps 2");
    assert_eq!(received(&mut t), []);
    t.peer([forward_tsn(1, &[(0, 0)])]);
    t.expect("SACK 2");
    assert_eq!(received(&mut t), [(0, "two".to_owned(), "whole")]);
}

#[test]
fn an_old_forward_tsn_draws_a_sack_and_changes_nothing() {
    let mut t = server();
    t.peer([data(1)]);
    t.expect("SACK 1");
    t.peer([forward_tsn(1, &[(0, 7)])]);
    t.expect("SACK 1");
    t.peer([data(2)]);
    t.run_ms(200);
    assert_eq!(received(&mut t).len(), 2, "SSN 1 is still next");
}

#[test]
fn complete_messages_before_a_skipped_one_are_delivered_in_order() {
    let mut t = server();
    t.peer([data(2).payload("one").stream(0, 1), data(4).payload("three").stream(0, 3)]);
    t.peer([forward_tsn(3, &[(0, 2)])]);
    let texts: Vec<String> = received(&mut t).into_iter().map(|(_, text, _)| text).collect();
    assert_eq!(texts, ["one", "three"]);
}

#[test]
fn a_skipped_message_that_had_arrived_is_delivered_with_those_behind_it() {
    let mut t = server();
    for tsn in [2, 3, 4] {
        t.peer([data(tsn)]);
    }
    t.peer([forward_tsn(2, &[(0, 1)])]);
    assert_eq!(received(&mut t).len(), 3);
    t.peer([data(5)]);
    assert_eq!(received(&mut t).len(), 1);
}

#[test]
fn fragments_of_a_skipped_message_are_discarded_and_take_no_room() {
    let mut t = server();
    let rwnd = |t: &mut Script| {
        t.next_sent().expect("a SACK");
        t.last_rwnd()
    };
    t.peer([data(1).stream(0, 0)]);
    let free = rwnd(&mut t);
    assert_eq!(received(&mut t).len(), 1);
    t.peer([data(2).flags("B").stream(0, 1).len(900), data(4).flags("").stream(0, 1).len(900)]);
    assert!(rwnd(&mut t) < free);
    t.peer([forward_tsn(4, &[(0, 1)])]);
    assert!(rwnd(&mut t) >= free);
    t.peer([data(5).flags("E").stream(0, 1), data(6).stream(0, 2).payload("next")]);
    assert_eq!(received(&mut t), [(0, "next".to_owned(), "whole")]);
    assert!(t.assoc().is_established());
}

#[test]
fn late_fragments_of_a_skipped_message_are_no_violation_in_any_order() {
    for order in [[5, 6, 7], [7, 6, 5], [6, 7, 5], [5, 7, 6], [6, 5, 7], [7, 5, 6]] {
        let mut t = server();
        t.peer([data(3).flags("").stream(0, 0)]);
        t.peer([forward_tsn(4, &[(0, 0)])]);
        for tsn in order {
            let flags = if tsn == 7 { "E" } else { "" };
            t.peer([data(tsn).flags(flags).stream(0, 0)]);
        }
        t.peer([data(8).stream(0, 1).payload("next")]);
        assert!(t.assoc().is_established(), "{order:?}");
        assert_eq!(received(&mut t), [(0, "next".to_owned(), "whole")], "{order:?}");
        assert_eq!(t.assoc().stats().receive_buffered, 0, "{order:?}");
    }
}

#[test]
fn a_message_that_goes_on_behind_the_skipped_ones_is_kept() {
    let mut t = server();
    t.peer([data(2).flags("B").stream(0, 1).payload("a")]);
    t.peer([forward_tsn(1, &[(0, 0)])]);
    t.peer([data(3).flags("E").stream(0, 1).payload("b")]);
    assert_eq!(received(&mut t), [(0, "ab".to_owned(), "whole")]);
}

#[test]
fn unordered_fragments_are_discarded_by_their_tsns() {
    let mut t = server();
    t.peer([data(1).flags("UB"), data(3).flags("UBE").payload("whole")]);
    t.peer([forward_tsn(2, &[])]);
    assert_eq!(received(&mut t), [(0, "whole".to_owned(), "whole")]);
    assert_eq!(t.assoc().stats().receive_buffered, 0);
}

#[test]
fn a_message_in_delivery_that_is_skipped_is_cut_off() {
    let mut t = Setup::server().set("receive_buffer", "6000").start();
    t.accept(init().param(Parameter::ForwardTsnSupported));
    for tsn in 1..=3 {
        let flags = if tsn == 1 { "B" } else { "" };
        t.peer([data(tsn).stream(0, 0).flags(flags).len(1200)]);
    }
    let parts = received(&mut t);
    assert!(!parts.is_empty() && parts.iter().all(|(_, _, end)| *end == "part"), "{parts:?}");
    t.peer([data(5).stream(0, 1).payload("next")]);
    t.peer([forward_tsn(4, &[(0, 0)])]);
    let rest = received(&mut t);
    let expected = [(0, String::new(), "cut off"), (0, "next".to_owned(), "whole")];
    assert_eq!(rest, expected);
}

#[test]
fn forward_tsn_of_the_other_kind_ends_the_association() {
    let mut interleaves = interleaving_server();
    interleaves.peer([forward_tsn(1, &[])]);
    let mut plain = server();
    plain.peer([i_forward_tsn(1, &[])]);
    for mut t in [interleaves, plain] {
        t.expect("ABORT 13");
    }
}

fn skipped(stream: u16, unordered: bool, mid: u32) -> SkippedMessage {
    SkippedMessage { stream: StreamId(stream), unordered, mid: Mid(mid) }
}

#[test]
fn interleaved_messages_that_were_skipped_are_discarded_and_the_others_delivered() {
    let mut t = interleaving_server();
    t.peer([i_data(2).message(1, 0, 0).flags("B"), i_data(3).message(2, 1, 0).payload("two")]);
    t.peer([i_data(5).message(1, 2, 0).payload("one")]);
    assert_eq!(received(&mut t), []);
    t.peer([i_forward_tsn(4, &[skipped(1, false, 1), skipped(2, false, 0)])]);
    let mut all = received(&mut t);
    all.sort();
    let expected = [(1, "one".to_owned(), "whole"), (2, "two".to_owned(), "whole")];
    assert_eq!(all, expected);
    assert_eq!(t.assoc().stats().receive_buffered, 0);
}

#[test]
fn complete_interleaved_messages_before_a_skipped_one_are_delivered_in_order() {
    let mut t = interleaving_server();
    t.peer([i_data(2).message(1, 1, 0).payload("b"), i_data(4).message(1, 3, 0).payload("d")]);
    t.peer([i_data(6).message(1, 5, 0).payload("f")]);
    t.peer([i_forward_tsn(5, &[skipped(1, false, 4)])]);
    let texts: Vec<String> = received(&mut t).into_iter().map(|(_, text, _)| text).collect();
    assert_eq!(texts, ["b", "d", "f"]);
}

#[test]
fn a_late_fragment_of_a_skipped_interleaved_message_is_dropped() {
    let mut t = interleaving_server();
    t.peer([i_forward_tsn(1, &[skipped(1, false, 0), skipped(1, true, 0)])]);
    t.peer([i_data(2).message(1, 0, 1).flags("E")]);
    t.peer([i_data(3).message(1, 0, 1).flags("UE")]);
    t.peer([i_data(4).message(1, 1, 0).payload("next")]);
    assert!(t.assoc().is_established());
    assert_eq!(received(&mut t), [(1, "next".to_owned(), "whole")]);
    assert_eq!(t.assoc().stats().receive_buffered, 0);
}

#[test]
fn an_interleaved_message_in_delivery_that_is_skipped_is_cut_off() {
    let mut t = Setup::server();
    t = t.set("message_interleaving", "true").set("receive_buffer", "6000");
    let mut t = t.start();
    let types = [chunk_type::I_DATA, chunk_type::FORWARD_TSN, chunk_type::I_FORWARD_TSN];
    t.accept(init().param(Parameter::SupportedExtensions(types.to_vec().into())));
    for tsn in 1..=3 {
        let flags = if tsn == 1 { "B" } else { "" };
        t.peer([i_data(tsn).message(0, 0, tsn - 1).flags(flags).len(1200)]);
    }
    let parts = received(&mut t);
    assert!(!parts.is_empty() && parts.iter().all(|(_, _, end)| *end == "part"), "{parts:?}");
    t.peer([i_data(5).message(0, 1, 0).payload("next")]);
    t.peer([i_forward_tsn(4, &[skipped(0, false, 0)])]);
    let expected = [(0, String::new(), "cut off"), (0, "next".to_owned(), "whole")];
    assert_eq!(received(&mut t), expected);
}
