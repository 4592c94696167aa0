//! The end of an association (RFC 9260 §9).

use std::time::Duration;

use bytes::Bytes;
use manypath_proto::testing::*;
use manypath_proto::{AssocClosed, Event, PathState, SendError};
use manypath_wire::Chunk;

use super::common::{FULL, with_unverified_path};

fn client() -> Script {
    Setup::client().established()
}

fn shut(t: &mut Script) {
    t.with(|a, now| a.shutdown(now));
}

fn ended(t: &mut Script) -> Option<AssocClosed> {
    match t.events().pop() {
        Some(Event::Closed(reason)) => Some(reason),
        _ => None,
    }
}

#[test]
fn a_graceful_end_takes_three_packets() {
    let mut t = client();
    shut(&mut t);
    t.expect("SHUTDOWN 0");
    t.peer(shutdown_ack());
    t.expect("SHUTDOWN COMPLETE");
    assert_eq!(t.last().packet.header.verification_tag, PEER_TAG, "§8.5.1 C");
    assert_eq!(ended(&mut t), Some(AssocClosed::Shutdown));
    assert_eq!(t.endpoint.poll_timeout(), None);
    t.peer(shutdown_ack());
    t.expect("SHUTDOWN COMPLETE T"); // §8.4, rule 5: the first was lost
}

#[test]
fn shutdown_waits_until_everything_is_acknowledged() {
    let mut t = client();
    t.send_packets(6);
    t.all_sent();
    shut(&mut t);
    t.expect_nothing(); // §9.2: SHUTDOWN-PENDING
    assert_eq!(t.try_send(0, 1), Err(SendError::Closed));
    t.peer(sack(4));
    t.expect_all(&["DATA 5", "DATA 6"]);
    t.peer(sack(4).gap(6, 6));
    t.expect_nothing();
    t.peer(sack(6));
    t.expect("SHUTDOWN 0");
}

#[test]
fn a_shutdown_is_answered_once_everything_is_acknowledged() {
    let mut t = client();
    t.send_packets(4);
    t.all_sent();
    t.events();
    t.peer(shutdown(1));
    t.expect_nothing();
    assert_eq!(t.events(), [Event::PeerShutdown]);
    assert_eq!(t.try_send(0, 1), Err(SendError::Closed), "§9.2");
    t.peer(shutdown(3));
    t.expect_nothing();
    t.peer(sack(4));
    t.expect("SHUTDOWN ACK");
    t.peer(shutdown_complete());
    t.expect_nothing();
    assert_eq!(ended(&mut t), Some(AssocClosed::Shutdown));
    assert_eq!(t.endpoint.poll_timeout(), None);
}

#[test]
fn shutdown_acknowledges_data_cumulatively() {
    let mut t = client();
    t.send_packets(4);
    t.all_sent();
    t.peer(shutdown(4));
    t.expect("SHUTDOWN ACK");
}

#[test]
fn both_sides_shut_down_at_once() {
    let mut t = client();
    shut(&mut t);
    t.expect("SHUTDOWN 0");
    t.peer(shutdown(0));
    t.expect("SHUTDOWN ACK"); // §9.2
    t.peer(shutdown_ack());
    t.expect("SHUTDOWN COMPLETE");
    assert_eq!(ended(&mut t), Some(AssocClosed::Shutdown));
}

#[test]
fn a_lost_shutdown_is_sent_again_with_the_current_cumulative_tsn() {
    let mut t = client();
    shut(&mut t);
    t.expect("SHUTDOWN 0");
    assert_eq!(t.run_to_timer(), Duration::from_secs(1));
    t.expect("SHUTDOWN 0");
    assert_eq!(t.run_to_timer(), Duration::from_secs(2), "§9.2: RTO rules");
    t.expect("SHUTDOWN 0");
}

#[test]
fn a_lost_shutdown_ack_is_sent_again_and_when_asked_again() {
    let mut t = client();
    t.peer(shutdown(0));
    t.expect("SHUTDOWN ACK");
    t.peer(shutdown(0));
    t.expect("SHUTDOWN ACK");
    assert_eq!(t.run_to_timer(), Duration::from_secs(1));
    t.expect("SHUTDOWN ACK");
}

#[test]
fn a_shutdown_is_answered_to_where_it_came_from() {
    let mut t = Setup::client().paths(3).established();
    for (from, answer) in [(1, "P2 SHUTDOWN ACK"), (2, "P3 SHUTDOWN ACK"), (0, "P1 SHUTDOWN ACK")] {
        t.peer_from(t.pairs[from], shutdown(0));
        t.expect(answer); // §6.4
    }
    assert_eq!(t.run_to_timer(), Duration::from_secs(1));
    t.expect("P3 SHUTDOWN ACK"); // after the first, which T2 watches
}

#[test]
fn a_shutdown_from_an_address_that_is_not_verified_is_answered_on_the_primary() {
    let mut t = Setup::server().established();
    let (local, remote) = t.pairs[0];
    t.peer_from((local, (remote.ip(), 4444).into()), shutdown(0));
    t.expect("SHUTDOWN ACK");
    assert_eq!(t.last().remote, remote, "§5.4");
    t.expect("HEARTBEAT");
    assert_eq!(t.last().remote.port(), 4444);
}

#[test]
fn shutdown_is_retransmitted_a_limited_number_of_times() {
    let mut t = Setup::client().set("association_max_retrans", "6").established();
    shut(&mut t);
    t.run_ms(200_000);
    assert_eq!(t.all_sent(), ["SHUTDOWN 0"; 7], "§9.2: Association.Max.Retrans, and no heartbeats");
    assert_eq!(ended(&mut t), Some(AssocClosed::PathsFailed));
    let mut t = Setup::client().set("association_max_retrans", "6").established();
    t.peer(shutdown(0));
    t.run_ms(200_000);
    assert_eq!(t.all_sent(), ["SHUTDOWN ACK"; 7], "§9.2");
    assert_eq!(ended(&mut t), Some(AssocClosed::PathsFailed));
}

#[test]
fn retransmissions_of_shutdown_try_the_other_paths() {
    let mut t = Setup::client().paths(2).established();
    shut(&mut t);
    t.run_ms(3500);
    assert_eq!(t.all_sent(), ["P1 SHUTDOWN 0", "P2 SHUTDOWN 0", "P1 SHUTDOWN 0"]);
}

#[test]
fn data_that_arrives_after_shutdown_is_answered_with_shutdown() {
    let mut t = client();
    t.peer(data(1));
    t.expect("SACK 1");
    shut(&mut t);
    t.expect("SHUTDOWN 1");
    t.run_ms(800);
    t.peer(data(2));
    let sent = t.all_sent();
    assert!(sent.contains(&"SHUTDOWN 2".to_owned()), "§9.2: {sent:?}");
    t.peer(data(4));
    let sent = t.all_sent();
    assert!(sent.contains(&"SHUTDOWN 2".to_owned()), "{sent:?}");
    assert!(sent.contains(&"SACK 2 gaps 4".to_owned()), "§9.2: gaps need a SACK too: {sent:?}");
    t.run_ms(999);
    t.expect_nothing(); // §9.2: T2 was restarted
    t.run_ms(1);
    assert!(t.all_sent().iter().any(|w| w.starts_with("SHUTDOWN")));
    assert_eq!(std::iter::from_fn(|| t.recv()).count(), 2);
}

#[test]
fn heartbeats_of_the_peer_hold_no_lost_shutdown_back() {
    for (is_asked, words) in [(false, "SHUTDOWN 0"), (true, "SHUTDOWN ACK")] {
        let mut t = client();
        if is_asked {
            t.peer(shutdown(0));
        } else {
            shut(&mut t);
        }
        t.expect(words); // lost
        for _ in 0..20 {
            t.run_ms(100);
            t.peer(heartbeat(b"of the peer"));
        }
        let sent = t.all_sent();
        assert!(sent.iter().any(|w| w == words), "§9.2: T2 after an RTO of 1 s: {sent:?}");
    }
}

#[test]
fn a_path_on_which_the_peer_is_heard_does_not_fail_while_its_answer_is_due() {
    for is_asked in [false, true] {
        let mut t = client();
        if is_asked {
            t.peer(shutdown(0));
        } else {
            shut(&mut t);
        }
        // The answer waits for the data that the peer has still to send.
        for _ in 0..100 {
            t.run_ms(100);
            t.peer(heartbeat(b"of the peer"));
        }
        let path = t.path(1);
        assert_eq!((path.state, path.error_count), (PathState::Active, 0), "{is_asked}");
        assert_eq!(path.rto, Duration::from_secs(1), "nothing says that the path is slower");
        let path_events = |e: &Event| matches!(e, Event::PathState { .. });
        assert!(!t.events().iter().any(path_events), "{is_asked}");
        // A peer that falls silent is another matter.
        t.run_ms(3000);
        assert!(t.path(1).error_count > 0, "{is_asked}");
    }
}

#[test]
fn the_guard_timer_ends_a_shutdown_of_a_peer_that_never_completes_it() {
    let mut t = Setup::client().set("rto_max", "10 s").established();
    t.peer(shutdown(0));
    for _ in 0..100 {
        t.run_ms(500);
        t.peer(heartbeat(b"of the peer"));
    }
    assert_eq!(ended(&mut t), Some(AssocClosed::PathsFailed), "five RTO.Max");
}

#[test]
fn a_peer_that_still_sends_gets_the_time_it_needs() {
    let mut t = Setup::client().set("association_max_retrans", "2").established();
    shut(&mut t);
    for tsn in 1..=8 {
        t.run_ms(2500);
        t.peer(data(tsn));
    }
    assert!(t.assoc().closed().is_none(), "§9.2: what arrives clears the count");
}

#[test]
fn the_guard_timer_ends_a_shutdown_that_takes_too_long() {
    let mut t = Setup::client().set("rto_max", "10 s").established();
    shut(&mut t);
    // The peer goes on with what it has to send, then it repeats itself.
    for tsn in 1..=200 {
        t.run_ms(500);
        t.peer(data(tsn));
        assert!(t.assoc().closed().is_none(), "over a slow path it takes as long as it takes");
    }
    let start = t.now();
    for _ in 0..1000 {
        t.run_ms(500);
        t.peer(data(200));
    }
    assert_eq!(ended(&mut t), Some(AssocClosed::PathsFailed));
    let sent = t.take_sent();
    let is_abort = |s: &&SentPacket| matches!(s.packet.chunks().next(), Some(Ok(Chunk::Abort(_))));
    let abort = sent.iter().find(is_abort).expect("§9.2: ABORT");
    assert_eq!((abort.at - start).as_secs(), 50, "§9.2: five RTO.Max");
}

#[test]
fn a_peer_that_is_heard_gets_more_shutdown_acks() {
    let mut t = Setup::client().set("association_max_retrans", "2").established();
    t.peer(shutdown(0));
    t.expect("SHUTDOWN ACK");
    // An answer of the peer takes longer than all attempts together.
    for _ in 0..8 {
        t.run_ms(2500);
        t.peer(shutdown(0));
    }
    assert!(t.assoc().closed().is_none(), "it asks, so it is there");
    t.peer(shutdown_complete());
    assert_eq!(ended(&mut t), Some(AssocClosed::Shutdown));
}

/// A path whose question is under way when the shutdown begins.
fn unanswered_at_shutdown(is_asked: bool) -> (Script, Bytes) {
    let (mut t, info) = with_unverified_path();
    if is_asked {
        t.peer(shutdown(0));
        t.expect("P1 SHUTDOWN ACK");
    } else {
        t.with(|a, now| a.shutdown(now));
        t.expect("P1 SHUTDOWN 0");
    }
    (t, info)
}

#[test]
fn a_path_that_is_verified_during_the_shutdown_carries_its_chunks() {
    for (is_asked, words) in [(false, "SHUTDOWN 0"), (true, "SHUTDOWN ACK")] {
        let (mut t, info) = unanswered_at_shutdown(is_asked);
        t.run_ms(100);
        t.peer_on(2, heartbeat_ack(&info));
        assert_eq!(t.path_state(2), PathState::Active, "§5.4: the answer counts");
        t.run_ms(3500);
        let sent = t.all_sent();
        assert!(sent.contains(&format!("P2 {words}")), "§6.4.1: {sent:?}");
        assert!(!sent.iter().any(|w| w.contains("HEARTBEAT")), "§8.3: none now: {sent:?}");
    }
}

#[test]
fn data_after_the_peers_shutdown_is_dropped() {
    let mut t = client();
    t.send_packets(1);
    t.all_sent();
    t.peer(shutdown(0));
    t.peer(data(1));
    t.expect_nothing(); // §6: not in SHUTDOWN-RECEIVED
    assert_eq!(t.recv(), None);
}

#[test]
fn shutdown_complete_counts_in_shutdown_ack_sent_only() {
    let mut t = client();
    t.peer(shutdown_complete());
    assert!(t.assoc().is_established(), "§9.2");
    shut(&mut t);
    t.expect("SHUTDOWN 0");
    t.peer(shutdown_complete());
    assert!(t.assoc().closed().is_none());
    t.expect_nothing();
}

#[test]
fn a_shutdown_while_opening_is_dropped() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer(shutdown(0));
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    t.peer(shutdown(0));
    t.expect_nothing(); // §9.2
    t.peer(cookie_ack());
    assert!(t.assoc().is_established());
}

#[test]
fn a_shutdown_before_the_association_is_open_that_loses_messages_is_an_abort() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    shut(&mut t);
    t.expect_nothing();
    assert_eq!(ended(&mut t), Some(AssocClosed::Shutdown), "nothing was lost");
    let mut t = Setup::client().start();
    t.connect();
    t.try_send(0, 5).expect("room");
    t.expect_init();
    shut(&mut t);
    assert_eq!(ended(&mut t), Some(AssocClosed::Aborted));
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    shut(&mut t);
    t.expect("ABORT 12"); // the peer may be established already
}

#[test]
fn an_abort_carries_the_users_reason() {
    let mut t = client();
    t.send_packets(4);
    t.all_sent();
    t.with(|a, now| a.abort(now, b"no more"));
    t.expect("ABORT 12"); // §9.1
    assert_eq!(t.last().packet.header.verification_tag, PEER_TAG);
    t.expect_nothing();
    assert_eq!(ended(&mut t), Some(AssocClosed::Aborted));
    assert_eq!(t.endpoint.poll_timeout(), None);
}

#[test]
fn what_arrived_before_the_end_can_still_be_read() {
    let mut t = client();
    t.peer([data(1), data(2)]);
    t.all_sent();
    t.peer([shutdown(0)]);
    t.expect("SHUTDOWN ACK");
    t.peer(shutdown_complete());
    assert_eq!(ended(&mut t), Some(AssocClosed::Shutdown));
    assert_eq!(std::iter::from_fn(|| t.recv()).count(), 2);
    assert_eq!(t.endpoint.poll_timeout(), None);
}

#[test]
fn a_nat_that_changes_a_port_during_the_shutdown_does_not_hold_it_up() {
    let mut t = Setup::server().established();
    shut(&mut t);
    t.expect("SHUTDOWN 0");
    let moved = (t.pairs[0].0, ([10, 6, 6, 6], 4444).into());
    t.peer_from(moved, shutdown_ack());
    t.expect("HEARTBEAT"); // it is a stranger until it answers this
    let info = t.last_heartbeat();
    t.peer_from(moved, heartbeat_ack(&info));
    t.peer_from(moved, shutdown_ack());
    t.expect("SHUTDOWN COMPLETE");
    assert_eq!(t.last().remote, moved.1);
    assert_eq!(ended(&mut t), Some(AssocClosed::Shutdown));
}

#[test]
fn a_reflected_abort_in_shutdown_ack_sent_means_that_the_peer_is_done() {
    let mut t = client();
    t.peer(shutdown(0));
    t.expect("SHUTDOWN ACK");
    // Its SHUTDOWN COMPLETE was overtaken by the answer to a late packet of ours.
    t.peer_with_tag(t.pairs[0], PEER_TAG, abort(&[]).reflected());
    assert_eq!(ended(&mut t), Some(AssocClosed::Shutdown));
}

#[test]
fn no_event_follows_the_end() {
    let mut t = client();
    t.peer([data(1), abort(&[])]);
    let events = t.events();
    assert_eq!(events[0], Event::Readable);
    assert!(matches!(events[1], Event::Closed(_)) && events.len() == 2, "{events:?}");
    assert!(t.recv().is_some(), "what came before it can be read");
}

/// The end of a transfer.
#[derive(Debug)]
struct End {
    /// Milliseconds from the last DATA to SHUTDOWN.
    ms: u128,
    /// The numbers of the chunks that had the I bit.
    asked: Vec<u32>,
}

/// A transfer to a receiver of another make that acknowledges every second packet at once, one
/// alone after 200 ms, and one with the I bit at once (RFC 9260 §6.2).
fn end_of_a_transfer(profile: &str, packets: usize) -> End {
    let mut t = Setup::client().profile(profile).established();
    t.with(|a, now| {
        for _ in 0..packets {
            a.send(now, Default::default(), Bytes::from(vec![0; FULL])).expect("room");
        }
        a.shutdown(now);
    });
    let (mut asked, mut got, mut unacked, mut last) = (Vec::new(), 0, 0, t.now());
    loop {
        while let Some(words) = t.next_sent() {
            if words.starts_with("SHUTDOWN") {
                return End { ms: (t.last().at - last).as_millis(), asked };
            }
            for data in t.last_data() {
                (got, unacked, last) = (got + 1, unacked + 1, t.last().at);
                let asks = data.flags.immediate();
                asked.extend(asks.then_some(got));
                if asks || unacked == 2 {
                    t.peer(sack(got));
                    unacked = 0;
                }
            }
        }
        t.run_ms(1);
        if unacked > 0 && (t.now() - last).as_millis() >= 200 {
            t.peer(sack(got));
            unacked = 0;
        }
    }
}

#[test]
fn the_last_data_before_a_shutdown_asks_for_its_sack() {
    for profile in ["rfc9260", "fast"] {
        let ends = [1, 2, 5, 8, 41].map(|packets| (packets, end_of_a_transfer(profile, packets)));
        let is_quick = ends.iter().all(|(_, end)| end.ms <= 10);
        assert!(is_quick, "{profile}: packets, and the end: {ends:?}");
        for (packets, end) in ends {
            assert_eq!(end.asked, [packets as u32], "{profile}: RFC 7053 §5.2: the last, no other");
        }
    }
}

#[test]
fn data_of_an_association_that_stays_open_asks_for_nothing() {
    let mut t = client();
    t.send(10);
    t.expect("DATA 1");
    assert!(!t.last_data()[0].flags.immediate(), "as a message of a conversation");
}

#[test]
fn the_last_data_asks_again_if_it_was_lost() {
    let mut t = client();
    t.with(|a, now| {
        a.send(now, Default::default(), Bytes::from_static(b"last")).expect("room");
        a.shutdown(now);
    });
    for _ in 0..2 {
        t.expect("DATA 1");
        assert!(t.last_data()[0].flags.immediate());
        t.run_to_timer();
    }
}
