//! A peer that is heard is not given up, and an answer counts however late it comes (RFC 9260 §8.1,
//! §8.3).

use std::time::Duration;

use manypath_proto::testing::*;
use manypath_proto::{AssocClosed, Event, Instant, PathState};

const GIVEN_UP: Event = Event::Closed(AssocClosed::PathsFailed);

fn fast(preset: &str) -> Script {
    fast_with(preset, "60 s")
}

fn fast_with(preset: &str, association_timeout: &str) -> Script {
    Setup::client()
        .profile("fast")
        .preset(preset)
        .set("pmtu_discovery", "false")
        .set("association_timeout", association_timeout)
        .established()
}

/// Runs for that long. The peer sends DATA so often, and answers no heartbeat. Answers the number
/// of heartbeats.
fn hear_data(t: &mut Script, next_tsn: &mut u32, seconds: u64, every_ms: u64) -> usize {
    let end = t.now() + Duration::from_secs(seconds);
    let mut heartbeats = 0;
    while t.now() < end {
        t.run_ms(every_ms);
        t.peer(data(*next_tsn));
        *next_tsn += 1;
        heartbeats += t.all_sent().iter().filter(|words| words.ends_with("HEARTBEAT")).count();
    }
    heartbeats
}

/// When the association ended, counted from `since`.
fn given_up_after(t: &mut Script, since: Instant, limit: u64) -> Option<Duration> {
    for _ in 0..limit {
        t.run_ms(100);
        if t.events().contains(&GIVEN_UP) {
            return Some(t.now() - since);
        }
    }
    None
}

#[test]
fn a_peer_whose_data_arrives_is_not_given_up() {
    for preset in ["cmt-pf", "adaptive", "mtcp"] {
        let (mut t, mut tsn) = (fast(preset), 1);
        hear_data(&mut t, &mut tsn, 300, 1000);
        assert_eq!(t.assoc().closed(), None, "{preset}");
        let heard_at = t.now();
        let after = given_up_after(&mut t, heard_at, 1000).expect("it is silent now");
        let limit = Duration::from_secs(60);
        assert!(after >= limit && after <= 2 * limit, "{preset}: association_timeout, {after:?}");
    }
}

#[test]
fn data_of_the_peer_clears_the_count_of_timeouts() {
    let settings = [("association_max_retrans", "2"), ("hb_interval", "1 s")];
    let set = |setup: Setup, (name, value): &(&str, &str)| setup.set(name, value);
    let mut t = settings.iter().fold(Setup::client(), set).established();
    t.send(1);
    hear_data(&mut t, &mut 1, 200, 500);
    assert_eq!(t.assoc().closed(), None, "the peer is there, whatever it does not answer");
    let heard_at = t.now();
    assert!(given_up_after(&mut t, heard_at, 6000).is_some(), "§8.1");
}

#[test]
fn a_peer_that_is_heard_and_does_not_answer_is_asked_ever_less_often() {
    for preset in ["cmt-pf", "adaptive", "sctp", "mtcp"] {
        for every_ms in [4, 50, 1250] {
            let (mut t, mut tsn) = (fast(preset), 1);
            let first = hear_data(&mut t, &mut tsn, 120, every_ms);
            let then = hear_data(&mut t, &mut tsn, 60, every_ms);
            let of = format!("{preset}, DATA every {every_ms} ms");
            assert!(first <= 70, "{of}: {first} in two minutes");
            assert!((5..=14).contains(&then), "{of}: {then} in the minute after");
        }
    }
}

#[test]
fn an_answer_counts_however_many_questions_came_after_it() {
    let mut t = fast_with("adaptive", "1 h");
    let mut infos = Vec::new();
    while infos.len() < 30 {
        t.run_to_timer();
        while let Some(words) = t.next_sent() {
            if words.ends_with("HEARTBEAT") {
                infos.push((t.now(), t.last_heartbeat()));
            }
        }
        assert_eq!(t.assoc().closed(), None, "before {} questions", infos.len());
    }
    assert_eq!(t.path_state(1), PathState::Inactive);
    let (asked_at, info) = infos[20].clone();
    t.peer(heartbeat_ack(&info));
    assert_eq!(t.path_state(1), PathState::Active);
    let rtt = t.now() - asked_at;
    let at_most = rtt + Duration::from_micros(9);
    assert!(t.path(1).rtt_heartbeat >= Some(rtt) && t.path(1).rtt_heartbeat <= Some(at_most));
    assert_eq!(t.path(1).rto, Duration::from_secs(10), "the RTO learns, up to RTO.Max");
    // An older answer says nothing new, nor does a copy of the same one.
    let samples = t.path(1).rtt_samples;
    for old in [20, 19, 0] {
        t.peer(heartbeat_ack(&infos[old].1));
        assert_eq!(t.path(1).rtt_samples, samples, "answer {old}");
    }
    t.peer(heartbeat_ack(&infos[21].1));
    assert_eq!(t.path(1).rtt_samples, samples + 1, "a newer one measures, too");
}

#[test]
fn an_answer_that_came_before_does_not_bring_a_path_back() {
    let mut t = Setup::client().paths(2).established();
    let mut first = None;
    while t.path_state(2) != PathState::Inactive {
        t.run_to_timer();
        while let Some(words) = t.next_sent() {
            let is_first = words == "P2 HEARTBEAT" && first.is_none();
            if is_first || words == "P1 HEARTBEAT" {
                let info = t.last_heartbeat();
                t.peer_on(usize::from(is_first) + 1, heartbeat_ack(&info));
                first = first.or(is_first.then_some(info));
            }
        }
    }
    t.peer_on(2, heartbeat_ack(&first.expect("one was answered")));
    assert_eq!(t.path_state(2), PathState::Inactive, "a copy of an old answer is no sign of life");
}

/// Runs for that long. The peer answers every heartbeat at once, and acknowledges nothing. Answers
/// the number of DATA packets.
fn hear_heartbeats(t: &mut Script, seconds: u64) -> usize {
    let end = t.now() + Duration::from_secs(seconds);
    let mut packets = 0;
    while t.now() < end {
        t.run_ms(10);
        while let Some(words) = t.next_sent() {
            if words.ends_with("HEARTBEAT") {
                let (local, remote) = (t.last().local, t.last().remote);
                let info = t.last_heartbeat();
                t.peer_from((local, remote), heartbeat_ack(&info));
            } else if words.contains("DATA") {
                packets += 1;
            }
        }
    }
    packets
}

#[test]
fn a_peer_that_acknowledges_nothing_gets_data_ever_less_often() {
    for preset in ["cmt-pf", "adaptive", "sctp"] {
        for paths in [1, 2] {
            let setup = Setup::client().profile("fast").preset(preset).paths(paths);
            let mut t = setup
                .set("handshake_on_all_paths", "false")
                .set("pmtu_discovery", "false")
                .established();
            t.send_packets(20);
            hear_heartbeats(&mut t, 60);
            let then = hear_heartbeats(&mut t, 60);
            // RTO.Max is 10 s here. Without back-off it was one every 200 ms, and its tail probes.
            let most = 18 * usize::from(paths);
            assert!((6..=most).contains(&then), "{preset}, {paths} paths: {then} in a minute");
            assert_eq!(t.assoc().closed(), None, "{preset}: it is heard");
        }
    }
}
