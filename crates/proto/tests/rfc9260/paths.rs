//! Paths: verification, heartbeats, failure and return, migration (RFC 9260 §5.4, §6.4, §8; RFC
//! 7829).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use manypath_proto::testing::*;
use manypath_proto::{AssocClosed, Event, PathId, PathState};
use manypath_wire::Parameter;

use super::common::{PMDCS, grow, with_unverified_path};

const P1: PathId = PathId(0);
const P2: PathId = PathId(1);

fn two_paths() -> Script {
    Setup::client().paths(2).established()
}

/// Runs until something is sent that is no answer to a heartbeat, and answers what it is.
/// Heartbeats on the paths in `alive` (counted from 1) are answered at once.
fn next_sent(t: &mut Script, alive: &[usize]) -> String {
    for _ in 0..10_000 {
        if let Some(words) = t.next_sent() {
            let path: usize = words[1..2].parse().expect("a path number");
            if words.ends_with("HEARTBEAT") && alive.contains(&path) {
                let (info, last) = (t.last_heartbeat(), t.last().clone());
                t.peer_from((last.local, last.remote), heartbeat_ack(&info));
                continue;
            }
            return words;
        }
        t.run_to_timer();
    }
    panic!("nothing was sent");
}

#[test]
fn a_path_is_verified_by_a_nonce_before_it_carries_data() {
    let mut t = Setup::client().paths(2).preset("cmt").start();
    t.connect();
    t.expect_init();
    t.peer(init_ack());
    t.expect("P1 COOKIE ECHO");
    t.peer(cookie_ack());
    t.expect("P2 HEARTBEAT"); // §5.4
    let info = t.last_heartbeat();
    assert!(info.len() >= 8, "§3.3.5: a nonce of 64 bits");
    t.events();
    t.send_packets(8);
    let on_p2 = |t: &mut Script| t.all_sent().iter().filter(|w| w.starts_with("P2 DATA")).count();
    assert_eq!(on_p2(&mut t), 0, "§5.4: not to an unconfirmed address");
    t.peer_on(2, heartbeat_ack(&info));
    assert_eq!(on_p2(&mut t), 4);
    let active = Event::PathState { path: P2, from: PathState::Unconfirmed, to: PathState::Active };
    assert!(t.events().contains(&active));
}

#[test]
fn a_forged_or_altered_heartbeat_ack_verifies_nothing_and_a_late_one_does() {
    let (mut t, old) = with_unverified_path();
    let mut altered = old.to_vec();
    altered[0] ^= 1;
    let mut other_path = old.to_vec();
    *other_path.last_mut().expect("not empty") ^= 1;
    let mut long = old.to_vec();
    long.push(0);
    for forged in [altered, other_path, long, vec![], vec![0; 12]] {
        t.peer_on(2, heartbeat_ack(&Bytes::from(forged)));
    }
    assert_eq!(t.path_state(2), PathState::Unconfirmed);
    t.run_ms(1100);
    t.expect("P2 HEARTBEAT");
    assert_ne!(t.last_heartbeat(), old, "each has a nonce of its own");
    assert_eq!(t.path(2).error_count, 1, "the first one counts as lost");
    t.peer_on(2, heartbeat_ack(&old));
    assert_eq!(t.path_state(2), PathState::Active, "late, but nobody else can know the nonce");
    assert_eq!(t.path(2).srtt, Some(Duration::from_millis(1100)), "the RTT is that long");
}

#[test]
fn verification_is_limited_to_hb_max_burst_at_once() {
    let mut t = Setup::client().paths(4).set("hb_max_burst", "1").start();
    t.connect();
    t.expect_init();
    t.peer(init_ack());
    t.expect("P1 COOKIE ECHO");
    t.peer(cookie_ack());
    t.expect("P2 HEARTBEAT");
    t.expect_nothing(); // §5.4
    t.answer_heartbeats();
    t.run_ms(1000);
    assert!(t.all_sent().contains(&"P3 HEARTBEAT".to_owned()), "the next RTO, the next path");
}

#[test]
fn an_address_that_never_answers_stays_unverified_and_gets_no_data() {
    let mut t = Setup::server().set("association_max_retrans", "30").start();
    t.accept_without_verification(init().param(Parameter::from(IpAddr::from([10, 9, 9, 9]))));
    for _ in 0..200 {
        t.run_ms(1000);
        while t.next_sent().is_some() {
            let (local, remote) = (t.last().local, t.last().remote);
            if remote == t.pairs[0].1 {
                let info = t.last_heartbeat();
                t.peer_from((local, remote), heartbeat_ack(&info));
            }
        }
    }
    assert_eq!(t.path_state(2), PathState::Unconfirmed, "§5.4");
    assert!(t.assoc().is_established(), "§5.4: its errors are not the association's");
    // The verified path fails too: still nothing but heartbeats for the other.
    t.send(100);
    for _ in 0..100 {
        t.run_ms(1000);
        while let Some(words) = t.next_sent() {
            let to_stranger = t.last().remote.ip() == IpAddr::from([10, 9, 9, 9]);
            assert!(!to_stranger || words == "HEARTBEAT", "{words}");
        }
    }
}

#[test]
fn an_idle_path_is_probed_once_per_interval_with_jitter() {
    let mut waits = Vec::new();
    for seed in 0..40 {
        let setup = if seed % 2 == 0 { Setup::client() } else { Setup::server() };
        let mut t = setup.seed(seed).established();
        let start = t.now();
        while t.next_sent().is_none() {
            t.run_to_timer();
        }
        waits.push((t.last().at - start).as_millis() as i64 + 100);
        let info = t.last_heartbeat();
        t.run_ms(50);
        t.peer(heartbeat_ack(&info));
        assert_eq!(t.path(1).srtt, Some(Duration::from_millis(50)), "§8.3: it is measured");
        let again = t.now();
        t.run_ms(30_000);
        t.expect_nothing();
        while t.next_sent().is_none() {
            t.run_to_timer();
        }
        assert!((t.last().at - again).as_millis() <= 31_500);
    }
    // §8.3: HB.interval 30 s, plus RTO 1 s, give or take half of it.
    assert!(waits.iter().all(|w| (30_500..=31_500).contains(w)), "{waits:?}");
    waits.sort();
    assert!(waits[39] - waits[0] > 500, "it is spread: {waits:?}");
}

#[test]
fn a_path_that_carries_data_is_not_probed() {
    let mut t = two_paths();
    let mut tsn = 0;
    let mut probed = [0, 0];
    for _ in 0..200 {
        t.run_ms(500);
        t.send(10);
        tsn += 1;
        while let Some(words) = t.next_sent() {
            if words.ends_with("HEARTBEAT") {
                probed[usize::from(words.starts_with("P2"))] += 1;
                let (info, last) = (t.last_heartbeat(), t.last().clone());
                t.peer_from((last.local, last.remote), heartbeat_ack(&info));
            }
        }
        t.peer(sack(tsn));
    }
    assert_eq!(probed[0], 0, "§8.3: not idle");
    assert!((2..=4).contains(&probed[1]), "{} heartbeats in 100 s", probed[1]);
}

#[test]
fn heartbeats_can_be_switched_off() {
    let mut t = Setup::client().set("heartbeats", "false").established();
    t.run_ms(600_000);
    t.expect_nothing();
}

#[test]
fn a_heartbeat_is_answered_to_where_it_came_from_with_the_same_information() {
    let mut t = two_paths();
    t.peer_on(2, heartbeat(b"peer's own"));
    t.expect("P2 HEARTBEAT ACK"); // §8.3, §6.4
    let Some(manypath_wire::Chunk::HeartbeatAck(info)) = t.last_chunks().pop() else {
        panic!("ack")
    };
    assert_eq!(info.0, "peer's own");
}

#[test]
fn a_path_is_inactive_after_more_than_path_max_retrans_timeouts() {
    let mut t = Setup::client().paths(2).set("path_max_retrans", "2").established();
    t.events();
    t.send(100);
    assert_eq!(next_sent(&mut t, &[2]), "P1 DATA 1");
    assert_eq!(next_sent(&mut t, &[2]), "P1 DATA 1");
    assert_eq!(next_sent(&mut t, &[2]), "P1 DATA 1");
    assert_eq!(t.path_state(1), PathState::Active);
    let moved = next_sent(&mut t, &[2]);
    assert_eq!(moved, "P2 DATA 1", "§6.4.1: data goes to an active path");
    assert_eq!(t.path_state(1), PathState::Inactive);
    let inactive = Event::PathState { path: P1, from: PathState::Active, to: PathState::Inactive };
    assert!(t.events().contains(&inactive), "§8.2: reported");
    t.peer_on(2, sack(1));
    t.send(100);
    assert_eq!(next_sent(&mut t, &[2]), "P2 DATA 2");
    t.peer_on(2, sack(2));
    // It answers a heartbeat: the primary carries data again.
    assert_eq!(next_sent(&mut t, &[2]), "P1 HEARTBEAT");
    let info = t.last_heartbeat();
    t.peer_on(1, heartbeat_ack(&info));
    assert_eq!(t.path_state(1), PathState::Active, "§8.2");
    assert_eq!(t.path(1).error_count, 0);
    t.send(100);
    assert_eq!(next_sent(&mut t, &[2]), "P1 DATA 3", "§6.4: the primary by default");
}

#[test]
fn lost_heartbeats_of_spare_paths_never_end_the_association() {
    let mut t = Setup::client().paths(4).established();
    for _ in 0..300 {
        t.run_ms(1000);
        while let Some(words) = t.next_sent() {
            if words == "P1 HEARTBEAT" {
                let info = t.last_heartbeat();
                t.peer_on(1, heartbeat_ack(&info));
            }
        }
    }
    assert!(t.assoc().is_established(), "§8.1");
    assert_eq!(t.path_state(4), PathState::Inactive);
}

#[test]
fn an_association_without_any_answer_ends_by_count_or_by_time() {
    let mut t = Setup::client().paths(2).established();
    t.send(10);
    // Lost heartbeats of the second path count once the first has failed; by then its RTO is 60 s.
    t.run_ms(600_000);
    assert_eq!(t.events().pop(), Some(Event::Closed(AssocClosed::PathsFailed)), "§8.1");
    let mut t = Setup::client()
        .paths(2)
        .set("association_max_retrans", "off")
        .set("association_timeout", "20 s")
        .set("path_max_retrans", "0")
        .established();
    t.send(10);
    let start = t.now();
    while t.assoc().closed().is_none() {
        t.run_to_timer();
    }
    // 1 s to the first timeout, and as much for the path after it; 20 s from then on.
    assert!((21..=25).contains(&(t.now() - start).as_secs()), "{:?}", t.now() - start);
}

#[test]
fn with_pf_one_timeout_moves_data_to_the_other_path_until_a_heartbeat_is_answered() {
    let mut t = Setup::client().paths(2).preset("sctp-pf").established();
    let base = grow(&mut t, 10);
    t.send(100);
    assert_eq!(next_sent(&mut t, &[2]), "P1 DATA 11");
    t.events();
    let sent = [next_sent(&mut t, &[2]), next_sent(&mut t, &[2])];
    assert!(sent.contains(&"P1 HEARTBEAT".to_owned()), "RFC 7829: probed at once: {sent:?}");
    assert!(sent.contains(&"P2 DATA 11".to_owned()), "RFC 7829: data leaves it: {sent:?}");
    assert_eq!(t.path_state(1), PathState::PotentiallyFailed);
    t.peer_on(2, sack(base + 1));
    // One heartbeat per RTO, which doubles.
    let mut times = vec![t.now()];
    for _ in 0..3 {
        assert_eq!(next_sent(&mut t, &[2]), "P1 HEARTBEAT");
        times.push(t.now());
    }
    let waits: Vec<_> = times.windows(2).map(|w| (w[1] - w[0]).as_secs()).collect();
    assert_eq!(waits, [2, 4, 8], "RFC 7829 §4.2");
    t.send(100);
    assert_eq!(next_sent(&mut t, &[2]), "P2 DATA 12", "no data on a PF path");
    let info = loop {
        if next_sent(&mut t, &[2]) == "P1 HEARTBEAT" {
            break t.last_heartbeat();
        }
        t.peer_on(2, sack(base + 2));
    };
    t.peer_on(1, heartbeat_ack(&info));
    assert_eq!(t.path_state(1), PathState::Active);
    assert_eq!(t.path(1).cwnd, PMDCS, "CMT-PF1");
    t.send(100);
    assert_eq!(next_sent(&mut t, &[2]), "P1 DATA 13");
}

#[test]
fn cmt_pf2_resumes_with_two_packets() {
    let mut t = Setup::client().paths(2).preset("cmt-pf").established();
    t.send_packets(1);
    t.expect("P1 DATA 1");
    t.run_ms(1000);
    assert_eq!(t.path_state(1), PathState::PotentiallyFailed);
    t.run_ms(50);
    t.answer_heartbeats();
    assert_eq!(t.path_state(1), PathState::Active);
    assert_eq!(t.path(1).cwnd, 2 * PMDCS, "CMT-PF paper, section III-A");
}

#[test]
fn the_ack_of_a_retransmission_leaves_a_path_potentially_failed() {
    let mut t = Setup::client().paths(2).preset("sctp-pf").set("rtx_policy", "same").established();
    t.send_packets(2);
    t.expect_all(&["P1 DATA 1", "P1 DATA 2"]);
    t.run_ms(1000);
    assert_eq!(t.all_sent(), ["P1 HEARTBEAT", "P2 DATA 1", "P2 DATA 2"]);
    t.peer_on(2, sack(2));
    assert_eq!(t.path_state(1), PathState::PotentiallyFailed, "CMT-PF paper: ambiguous");
}

#[test]
fn a_pf_path_becomes_inactive_after_path_max_retrans_and_data_takes_the_least_bad() {
    let mut t = Setup::client()
        .paths(2)
        .preset("sctp-pf")
        .set("path_max_retrans", "3")
        .set("association_max_retrans", "off")
        .set("association_timeout", "1 h")
        .established();
    t.send(10);
    t.run_ms(120_000);
    let states = [t.path_state(1), t.path_state(2)];
    assert_eq!(states, [PathState::Inactive; 2]);
    t.all_sent();
    // Neither answers: the retransmissions alternate by the number of errors.
    let mut used = std::collections::BTreeSet::new();
    for _ in 0..50 {
        let words = next_sent(&mut t, &[]);
        if words.ends_with("DATA 1") {
            used.insert(words);
        }
    }
    assert_eq!(used.len(), 2, "RFC 7829 §5.3: fewest timeouts first: {used:?}");
}

#[test]
fn the_primary_switches_for_good_after_its_threshold() {
    let mut t = Setup::client()
        .paths(2)
        .preset("sctp-pf")
        .set("primary_switchover_max_retrans", "2")
        .established();
    assert_eq!(t.assoc().primary(), P1);
    t.send(100);
    for _ in 0..100 {
        t.run_ms(200);
        while let Some(words) = t.next_sent() {
            if words == "P2 DATA 1" {
                t.peer_on(2, sack(1));
            }
        }
    }
    assert_eq!(t.assoc().primary(), P2, "RFC 7829 §5");
    let mut t = Setup::client().paths(2).preset("sctp-pf").established();
    t.send(100);
    t.run_ms(20_000);
    assert_eq!(t.assoc().primary(), P1, "off: it stays");
}

#[test]
fn the_upper_layer_chooses_the_primary() {
    let mut t = two_paths();
    t.with(|a, now| a.set_primary(now, P2));
    t.send(10);
    t.expect("P2 DATA 1");
}

#[test]
fn a_path_is_learnt_from_a_packet_with_the_right_tag_and_verified() {
    let mut t = Setup::server().established();
    let uplink: (SocketAddr, SocketAddr) = (t.pairs[0].0, ([10, 0, 8, 8], PORT).into());
    t.peer_with_tag(uplink, t.tag() ^ 1, heartbeat(b"guess"));
    assert_eq!(t.assoc().paths().count(), 1, "a wrong tag teaches nothing");
    t.all_sent();
    t.peer_from(uplink, heartbeat(b"hello"));
    t.expect("HEARTBEAT ACK, HEARTBEAT");
    assert_eq!(t.last().remote, uplink.1);
    let info = t.last_heartbeat();
    assert_eq!(t.path_state(2), PathState::Unconfirmed);
    t.peer_from(uplink, heartbeat_ack(&info));
    assert_eq!(t.path_state(2), PathState::Active);
}

#[test]
fn a_stranger_with_the_right_tag_can_harm_nothing() {
    let mut t = Setup::server().established();
    t.send_packets(2);
    t.all_sent();
    let stranger = (t.pairs[0].0, ([10, 6, 6, 6], PORT).into());
    t.peer_from(stranger, abort(&[]));
    t.peer_from(stranger, [shutdown(0), sack(2), data(1)]);
    assert!(t.assoc().is_established(), "§8.5: known by its addresses");
    assert_eq!(t.assoc().unacked_bytes(), 2 * super::common::FULL);
    assert_eq!(t.recv(), None);
}

#[test]
fn an_abort_from_another_port_of_the_peer_counts_once_that_port_is_verified() {
    let mut t = Setup::server().established();
    let other = (t.pairs[0].0, ([10, 0, 0, 2], 4444).into());
    t.peer_from(other, abort(&[]));
    assert!(t.assoc().is_established(), "who knows a tag may have sent it from there");
    t.run_ms(50);
    t.answer_heartbeats_at(other.1);
    assert_eq!(t.path_state(2), PathState::Active);
    t.peer_from(other, abort(&[]));
    assert!(t.assoc().closed().is_some(), "§8.5.1 B");
}

#[test]
fn learnt_paths_are_limited_and_leave_nothing_behind() {
    let mut t = Setup::server().set("max_paths", "4").established();
    for port in 1..=2000 {
        t.peer_from((t.pairs[0].0, ([10, 0, 8, 8], port).into()), heartbeat(b"hello"));
        t.all_sent();
    }
    assert!(t.assoc().paths().count() <= 4);
    assert_eq!(t.path_state(1), PathState::Active, "the verified one stays");
    t.with(|a, now| a.abort(now, b""));
    let id = t.id();
    t.endpoint.forget(id);
    t.all_sent();
    // INITs from there are strangers' again.
    t.peer_from((t.pairs[0].0, ([10, 0, 8, 8], 7).into()), init());
    t.expect_init_ack();
}

#[test]
fn a_nat_that_changes_a_port_moves_the_path_with_its_window() {
    let mut t = Setup::server().established();
    grow(&mut t, 20);
    let cwnd = t.path(1).cwnd;
    let moved = (t.pairs[0].0, ([10, 0, 0, 2], 4444).into());
    t.run_ms(10);
    t.peer_from(moved, data(1));
    t.run_ms(50);
    t.answer_heartbeats_at(moved.1);
    assert_eq!(t.path_state(2), PathState::Active);
    // The old port answers nothing: the path goes on behind the new one.
    for _ in 0..50 {
        t.run_ms(100);
        t.answer_heartbeats_at(moved.1);
    }
    let paths: Vec<_> = t.assoc().paths().collect();
    assert_eq!(paths.len(), 1);
    assert_eq!((paths[0].id, paths[0].remote), (P1, moved.1));
    assert!(paths[0].cwnd >= cwnd / 2, "its congestion state went with it");
    t.all_sent();
    t.peer_from(moved, data(2));
    t.peer_from(moved, data(3));
    t.send(10);
    while t.next_sent().is_some() {
        assert_eq!(t.last().remote, moved.1);
    }
}

#[test]
fn two_uplinks_behind_one_nat_are_two_paths() {
    let mut t = Setup::server().established();
    let second = (t.pairs[0].0, ([10, 0, 0, 2], 4444).into());
    t.run_ms(10);
    t.peer_from(second, heartbeat(b"hello"));
    for _ in 0..3000 {
        t.run_ms(100);
        t.answer_heartbeats(); // both answer
    }
    let remotes: Vec<_> = t.assoc().paths().map(|p| (p.remote.port(), p.state)).collect();
    assert_eq!(remotes, [(PORT, PathState::Active), (4444, PathState::Active)]);
}

#[test]
fn the_guess_which_local_address_belongs_to_a_listed_one_is_corrected() {
    // The server has two addresses; the peer's second one turns out to reach the first of them.
    let mut t = Setup::server().paths(2).start();
    t.peer(init().param(IpAddr::from([10, 0, 1, 2]).into()));
    let cookie = t.expect_init_ack();
    t.peer(cookie_echo(&cookie));
    t.all_sent();
    assert_eq!((t.path(2).local, t.path(2).remote), t.pairs[1]);
    let real = (t.pairs[0].0, t.pairs[1].1);
    t.peer_from(real, heartbeat(b"hello"));
    assert_eq!(t.assoc().paths().count(), 2);
    assert_eq!((t.path(2).local, t.path(2).remote), real);
}

#[test]
fn a_removed_paths_outstanding_data_moves_to_the_others() {
    let mut t = Setup::client().paths(2).preset("cmt").established();
    t.send_packets(8);
    t.all_sent();
    t.events();
    t.with(|a, now| a.remove_path(now, P1));
    assert_eq!(t.events(), [Event::PathRemoved { path: P1 }]);
    assert_eq!(t.assoc().paths().count(), 1);
    t.peer_on(2, sack(0).gap(5, 8)); // what the other path carried
    assert_eq!(t.all_sent(), ["P2 DATA 1", "P2 DATA 2", "P2 DATA 3", "P2 DATA 4"]);
    t.peer_on(2, sack(8));
    assert_eq!(t.assoc().unacked_bytes(), 0);
    t.with(|a, now| a.remove_path(now, P2));
    assert_eq!(t.assoc().paths().count(), 1, "the last path stays");
}

#[test]
fn an_added_path_is_verified_and_used() {
    let mut t = Setup::client().preset("cmt").established();
    let (local, remote) = (([10, 0, 3, 1], PORT).into(), ([10, 0, 3, 2], PORT).into());
    let id = t.with(|a, now| a.add_path(now, local, remote));
    assert_eq!(id, Some(P2));
    assert_eq!(t.with(|a, now| a.add_path(now, local, remote)), None, "it exists");
    t.expect("HEARTBEAT");
    assert_eq!(t.last().remote, remote);
    let info = t.last_heartbeat();
    t.peer_from((local, remote), heartbeat_ack(&info));
    t.send_packets(8);
    let mut on_new = 0;
    while t.next_sent().is_some() {
        on_new += u32::from(t.last().remote == remote);
    }
    assert_eq!(on_new, 4);
}

#[test]
fn a_chunk_cut_for_a_larger_packet_still_fits_a_path_added_later() {
    let mut t = Setup::client().established();
    t.send_packets(1);
    t.expect("DATA 1");
    let v6 = |last: &str| format!("[2001:db8::{last}]:9899").parse::<SocketAddr>().expect("ok");
    let (local, remote) = (v6("1"), v6("2"));
    t.with(|a, now| a.add_path(now, local, remote));
    t.answer_heartbeats();
    t.with(|a, now| a.remove_path(now, P1));
    t.expect("DATA 1"); // §6.9: IP fragments it rather than SCTP
    assert_eq!(t.last().remote, remote);
}

#[test]
fn what_a_removed_path_left_outlives_its_heir() {
    let mut t = Setup::client().paths(3).start();
    t.connect_to(init_ack());
    t.send_packets(1);
    t.expect("P1 DATA 1");
    t.with(|a, now| {
        a.remove_path(now, PathId(0));
        a.remove_path(now, PathId(1)); // which carried nothing yet
    });
    t.expect("P3 DATA 1");
}

/// Each chunk is longer than all that the peer has room for, so that each is a probe.
#[test]
fn probes_of_a_small_window_that_are_lost_count_on_their_path() {
    let mut t = Setup::client().paths(2).preset("all-rtx-alt").established();
    t.send_packets(1);
    t.expect("P1 DATA 1");
    t.peer(sack(1).rwnd(1000));
    t.send_packets(20);
    // The first path is dead from now on. The other one delivers, and the peer says so.
    for tsn in 2..8 {
        t.expect(&format!("P1 DATA {tsn}"));
        while t.all_sent() != [format!("P2 DATA {tsn}")] {
            t.run_to_timer();
        }
        assert_eq!(t.path(1).error_count, tsn - 1);
        t.peer_on(2, sack(tsn).rwnd(1000));
    }
    assert_eq!(t.path_state(1), PathState::Inactive);
}
