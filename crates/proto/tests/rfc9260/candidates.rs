//! Candidate pairs (RFC 8445): what takes the place of paths that do not answer.

use std::net::{IpAddr, SocketAddr};

use manypath_proto::testing::*;
use manypath_proto::{AssocClosed, Event, PathId, PathState};
use manypath_wire::{ErrorCause, Init, Parameter};

const P1: PathId = PathId(0);

type Pair = (SocketAddr, SocketAddr);

/// Our address `l` and the peer's address `r`.
fn pair(l: u8, r: u8) -> Pair {
    (([10, 0, l, 1], PORT).into(), ([10, 9, r, 2], PORT).into())
}

/// An endpoint with these paths and candidates, on the profile `fast`.
fn with(paths: &[Pair], candidates: &[Pair]) -> Setup {
    Setup::client().profile("fast").preset("cmt").pairs(paths).candidates(candidates)
}

/// Where packets went since the last look, each pair once, in the order of their first.
fn asked(t: &mut Script) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for packet in t.take_sent() {
        if !pairs.contains(&(packet.local, packet.remote)) {
            pairs.push((packet.local, packet.remote));
        }
    }
    pairs
}

/// The pairs of the association's paths, and their states.
fn paths(t: &Script) -> Vec<(Pair, PathState)> {
    t.assoc().paths().map(|p| ((p.local, p.remote), p.state)).collect()
}

/// The pairs that the application was told of as without an answer.
fn unanswered(t: &mut Script) -> Vec<Pair> {
    let events = t.events().into_iter();
    let told = events.filter_map(|event| match event {
        Event::NoAnswer { local, remote, .. } => Some((local, remote)),
        _ => None,
    });
    told.collect()
}

/// Opens the association over this pair, which answers INIT at once.
fn open_on(t: &mut Script, answers: Pair) {
    t.connect();
    t.expect_init();
    t.take_sent();
    t.peer_from(answers, init_ack());
    t.peer_from(answers, cookie_ack());
    assert!(t.assoc().is_established());
}

fn addresses(init: &Init) -> Vec<IpAddr> {
    let listed = init.params.iter().flatten().filter_map(|parameter| match parameter {
        Parameter::Ipv4(ip) => Some(ip.into()),
        Parameter::Ipv6(ip) => Some(ip.into()),
        _ => None,
    });
    listed.collect()
}

// ---- While the association is open ----

#[test]
fn a_path_that_does_not_answer_within_a_second_gives_way_to_the_next_remote_address() {
    let (works, dead) = (pair(1, 1), pair(2, 2));
    let next = [pair(2, 1), pair(2, 3)];
    let mut t = with(&[works, dead], &next).start();
    open_on(&mut t, works);
    t.events();
    t.run_ms(999);
    assert_eq!(asked(&mut t), [works, dead], "the trial lasts a second");
    t.run_ms(1);
    let at = |path, to: Pair| Event::PathAdded { path, local: to.0, remote: to.1 };
    let path = PathId(1);
    let told = t.events();
    let no_answer = Event::NoAnswer { path, local: dead.0, remote: dead.1 };
    assert_eq!(told, [no_answer, Event::PathRemoved { path }, at(path, next[0])]);
    assert!(asked(&mut t).contains(&next[0]), "it is probed at once");
    t.run_ms(300);
    t.answer_heartbeats();
    assert_eq!(paths(&t), [(works, PathState::Active), (next[0], PathState::Active)]);
    t.run_ms(60_000);
    let elsewhere: Vec<_> =
        asked(&mut t).into_iter().filter(|to| *to != works && *to != next[0]).collect();
    assert_eq!((unanswered(&mut t), elsewhere), (vec![], vec![]), "what answers is kept");
}

/// A server asks from all its addresses. What it sends from that of a bridge arrives, and nothing
/// that is sent there does.
#[test]
fn packets_of_the_peer_are_no_answer() {
    let (works, one_way) = (pair(1, 1), pair(2, 2));
    let next = pair(2, 1);
    let mut t = with(&[works, one_way], &[next]).start();
    open_on(&mut t, works);
    t.answer_heartbeats_at(works.1);
    t.peer_from(one_way, heartbeat(b"of the peer"));
    t.run_ms(1000);
    t.answer_heartbeats_at(works.1);
    assert_eq!(unanswered(&mut t), [one_way]);
    assert_eq!(paths(&t), [(works, PathState::Active), (next, PathState::Active)]);
    t.peer_from(one_way, heartbeat(b"of the peer"));
    t.run_ms(10_000);
    assert!(paths(&t).contains(&(next, PathState::Active)), "what answers is kept");
}

#[test]
fn each_pair_has_three_trials_and_is_told_of_once() {
    let works = pair(1, 1);
    let dead: Vec<_> = (2..6).map(|r| pair(2, r)).collect();
    let mut t = with(&[works, dead[0]], &dead[1..]).start();
    open_on(&mut t, works);
    t.events();
    let mut tried = Vec::new();
    for _ in 0..20 {
        let on = paths(&t).into_iter().find(|(to, _)| to.0 == dead[0].0).expect("a path stays");
        tried.push(on.0);
        t.run_ms(1000);
        t.answer_heartbeats_at(works.1);
    }
    let in_turn: Vec<_> = dead.iter().copied().cycle().take(12).collect();
    assert_eq!(tried[..12], in_turn);
    assert_eq!(tried[12..], [dead[0]; 8], "then the path stays with the first");
    assert_eq!(unanswered(&mut t), dead);
    asked(&mut t);
    t.run_ms(600_000);
    t.answer_heartbeats_at(works.1);
    assert!(asked(&mut t).iter().all(|to| *to == dead[0] || *to == works));
    assert_eq!(unanswered(&mut t), []);
}

#[test]
fn an_address_that_answers_elsewhere_is_tried_first() {
    let works = pair(1, 9);
    let mut t = with(&[works, pair(2, 2)], &[pair(2, 3), pair(2, 4), pair(2, 9)]).start();
    open_on(&mut t, works);
    t.run_ms(1000);
    assert_eq!(paths(&t)[1].0, pair(2, 9));
}

#[test]
fn a_candidate_that_answers_late_is_kept() {
    let (works, slow) = (pair(1, 1), pair(2, 2));
    let mut t = with(&[works, slow], &[pair(2, 3), pair(2, 4)]).start();
    open_on(&mut t, works);
    t.answer_heartbeats_at(works.1);
    let mut sent = Vec::new();
    // Packets to and from there take 1.5 s together.
    for _ in 0..80 {
        t.run_ms(100);
        for packet in t.take_sent() {
            match heartbeat_info(&packet.packet) {
                Some(info) if packet.remote == slow.1 => sent.push((t.now(), info)),
                Some(info) if packet.remote == works.1 => t.peer_from(works, heartbeat_ack(&info)),
                _ => {}
            }
        }
        let is_there = |at| t.now() - at >= std::time::Duration::from_millis(1500);
        let arrived = sent.iter().filter(|(at, _)| is_there(*at)).count();
        for (_, info) in sent.drain(..arrived) {
            t.peer_from(slow, heartbeat_ack(&info));
        }
    }
    assert_eq!(paths(&t), [(works, PathState::Active), (slow, PathState::Active)]);
    let told = unanswered(&mut t);
    assert!(told.contains(&slow) && told.len() <= 3, "{told:?}");
}

#[test]
fn what_was_added_later_is_tried_at_once_if_the_path_has_had_its_trial() {
    let (works, dead, next) = (pair(1, 1), pair(2, 2), pair(2, 3));
    let mut t = with(&[works, dead], &[]).start();
    open_on(&mut t, works);
    t.run_ms(1000);
    assert_eq!(unanswered(&mut t), [dead], "also without a candidate");
    t.run_ms(5000);
    asked(&mut t);
    t.with(|a, now| a.add_candidate(now, next.0, next.1));
    assert_eq!(asked(&mut t), [next]);
    assert_eq!(paths(&t)[1].0, next);
    t.with(|a, now| a.add_candidate(now, next.0, next.1));
    t.with(|a, now| a.add_candidate(now, works.0, works.1));
    t.run_ms(10_000);
    let expected = [works, dead, next];
    assert!(asked(&mut t).iter().all(|to| expected.contains(to)), "a path is no candidate");
    assert_eq!(paths(&t).len(), 2);
}

#[test]
fn candidates_are_limited() {
    let (works, dead) = (pair(1, 1), pair(2, 200));
    let many: Vec<_> = (10..160).map(|r| pair(2, r)).collect();
    let mut t = with(&[works, dead], &many).start();
    open_on(&mut t, works);
    let mut all = Vec::new();
    for _ in 0..400 {
        t.run_ms(1000);
        t.answer_heartbeats_at(works.1);
        all.extend(asked(&mut t));
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 2 + 64);
}

#[test]
fn a_candidate_whose_address_is_gone_is_tried_no_more() {
    let (works, dead) = (pair(1, 1), pair(2, 2));
    let mut t = with(&[works, dead], &[pair(2, 3)]).start();
    open_on(&mut t, works);
    t.with(|a, now| a.local_gone(now, dead.0));
    asked(&mut t);
    t.run_ms(10_000);
    t.with(|a, now| a.add_path(now, dead.0, dead.1));
    t.run_ms(10_000);
    assert!(asked(&mut t).iter().all(|to| *to != pair(2, 3)));
}

#[test]
fn a_change_of_the_network_begins_the_trials_again() {
    let (works, dead) = (pair(1, 1), pair(2, 2));
    let mut t = with(&[works, dead], &[pair(2, 3)]).start();
    open_on(&mut t, works);
    t.run_ms(20_000);
    asked(&mut t);
    t.run_ms(20_000);
    assert!(!asked(&mut t).contains(&pair(2, 3)), "it had its trials");
    t.with(|a, now| a.network_changed(now));
    t.run_ms(1500);
    assert!(asked(&mut t).contains(&pair(2, 3)));
}

#[test]
fn a_path_that_the_peers_packets_opened_replaces_one_that_does_not_answer() {
    let (works, dead, other) = (pair(1, 1), pair(2, 2), pair(2, 4));
    let mut t = with(&[works, dead], &[pair(2, 3), other]).start();
    open_on(&mut t, works);
    t.answer_heartbeats_at(works.1);
    t.peer_from(other, heartbeat(b"of the peer"));
    t.answer_heartbeats_at(works.1);
    t.run_ms(1000);
    t.answer_heartbeats_at(other.1);
    let all: Vec<_> = paths(&t).into_iter().map(|(to, _)| to).collect();
    assert_eq!(all, [works, other], "the failed path is gone, and the third not needed");
    t.run_ms(10_000);
    assert!(!asked(&mut t).contains(&pair(2, 3)));
}

// ---- While it is opened ----

#[test]
fn a_handshake_succeeds_if_only_one_of_four_pairs_works() {
    let all = [pair(1, 2), pair(2, 1), pair(1, 1), pair(2, 2)];
    for profile in ["fast", "rfc9260"] {
        for works in all {
            let mut t = with(&all[..2], &all[2..]).profile(profile).start();
            t.connect();
            t.expect_init();
            let mut seconds = 0;
            while !asked(&mut t).contains(&works) {
                t.run_ms(1000);
                seconds += 1;
                assert!(seconds < 30, "{profile}: no INIT on {works:?}");
            }
            t.peer_from(works, init_ack());
            assert_eq!(asked(&mut t), [works], "{profile}: COOKIE ECHO");
            t.peer_from(works, cookie_ack());
            assert!(t.assoc().is_established(), "{profile}");
            let on = t.assoc().paths().find(|p| p.id == t.assoc().primary()).expect("it is there");
            assert_eq!((on.local, on.remote), works, "{profile}");
        }
    }
}

#[test]
fn eight_addresses_are_tried_in_eight_seconds() {
    let all: Vec<_> = (0..8).map(|r| pair(1, r)).collect();
    let mut t = with(&all[..1], &all[1..]).start();
    t.connect();
    t.expect_init();
    for works in &all {
        t.run_ms(999);
        assert_eq!(asked(&mut t), [*works]);
        t.run_ms(1);
    }
    t.peer_from(all[3], init_ack());
    assert!(asked(&mut t).contains(&all[3]), "a late INIT ACK counts");
    t.peer_from(all[3], cookie_ack());
    assert!(t.assoc().is_established());
}

#[test]
fn a_late_init_ack_counts_where_there_is_no_room_for_another_path() {
    for profile in ["fast", "rfc9260"] {
        let mut t = with(&[pair(1, 1)], &[pair(1, 2), pair(1, 3)])
            .profile(profile)
            .set("max_paths", "1")
            .start();
        t.connect();
        t.expect_init();
        t.run_ms(1500);
        assert_eq!(paths(&t), [(pair(1, 2), PathState::Unconfirmed)], "{profile}");
        asked(&mut t);
        t.peer_from(pair(1, 1), init_ack());
        assert_eq!(asked(&mut t), [pair(1, 1)], "{profile}");
        t.peer_from(pair(1, 1), cookie_ack());
        assert_eq!(paths(&t), [(pair(1, 1), PathState::Active)], "{profile}");
        t.run_ms(20_000);
        assert!(asked(&mut t).iter().all(|to| *to == pair(1, 1)), "{profile}: no other");
    }
}

#[test]
fn trials_go_on_after_a_stale_cookie() {
    let mut t = with(&[pair(1, 1), pair(2, 2)], &[pair(2, 3)]).start();
    t.connect();
    t.expect_init();
    t.run_ms(500);
    t.peer_from(pair(1, 1), init_ack());
    t.run_ms(1000);
    assert!(!asked(&mut t).contains(&pair(2, 3)), "COOKIE ECHO needs no other pair");
    t.peer_from(pair(1, 1), error(ErrorCause::StaleCookie(1)));
    t.run_ms(10);
    assert!(asked(&mut t).contains(&pair(2, 3)));
}

#[test]
fn a_peer_that_comes_late_is_found_on_the_first_pair() {
    let mut t = with(&[pair(1, 1)], &[pair(1, 2), pair(1, 3)]).start();
    t.connect();
    t.expect_init();
    t.run_ms(20_000);
    asked(&mut t);
    t.run_ms(5000);
    assert_eq!(asked(&mut t), [pair(1, 1)]);
}

#[test]
fn a_handshake_that_nobody_answers_ends_as_without_candidates() {
    let ends_after = |candidates: &[Pair]| {
        let mut t = with(&[pair(1, 1), pair(2, 2)], candidates).profile("rfc9260").start();
        t.connect();
        while t.assoc().closed().is_none() {
            t.run_to_timer();
        }
        assert_eq!(t.assoc().closed(), Some(&AssocClosed::HandshakeTimedOut));
        t.now()
    };
    assert_eq!(ends_after(&[]), ends_after(&[pair(1, 2), pair(2, 1)]));
}

// ---- INIT ----

#[test]
fn init_lists_the_local_addresses_of_paths_and_candidates() {
    let ip = |l| pair(l, 0).0.ip();
    let paths = [pair(1, 1), pair(2, 1)];
    let mut t = with(&paths, &[pair(3, 1), pair(1, 2)]).on_every_address().start();
    t.connect();
    assert_eq!(addresses(&t.expect_init()), [ip(1), ip(2), ip(3)]);
    t.with(|a, now| a.local_gone(now, pair(2, 1).0));
    t.take_sent();
    t.run_ms(250);
    assert_eq!(addresses(&t.expect_init()), [ip(1), ip(3)], "what is gone is listed no more");
    // They are listed only: no path to an address of the peer begins there.
    t.peer_from(pair(1, 1), init_ack().param(Parameter::from(pair(0, 7).1.ip())));
    assert!(t.assoc().paths().all(|p| p.remote != pair(0, 7).1));
}

#[test]
fn one_address_is_not_listed_nor_is_any_if_the_configuration_says_so() {
    let mut t = with(&[pair(1, 1)], &[pair(1, 2)]).on_every_address().start();
    t.connect();
    assert_eq!(addresses(&t.expect_init()), [] as [IpAddr; 0]);
    let two = [pair(1, 1), pair(2, 1)];
    let mut t = with(&two, &[]).on_every_address().set("advertise_addresses", "false").start();
    t.connect();
    assert_eq!(addresses(&t.expect_init()), [] as [IpAddr; 0]);
}

#[test]
fn a_path_alone_without_candidates_has_no_trial() {
    let mut t = with(&[pair(1, 1)], &[]).start();
    t.connect();
    t.expect_init();
    t.run_ms(5000);
    assert_eq!(unanswered(&mut t), []);
    assert_eq!(paths(&t)[0].0, pair(1, 1));
    assert_eq!(t.assoc().primary(), P1);
}
