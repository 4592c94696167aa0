//! Parameters that change while an association is open, of all paths and of one (RFC 6458 §8.1).

use std::time::Duration;

use manypath_proto::testing::*;
use manypath_proto::{CHANGEABLE, CHANGEABLE_OF_PATHS, PathId, PathState};

use super::common::without_heartbeats;

fn client(paths: u8) -> Script {
    let mut t = Setup::client().paths(paths).set("max_burst", "0").start();
    t.connect_to(init_ack());
    for path in 1..paths {
        t.answer_heartbeats_at(t.pairs[usize::from(path)].1);
    }
    t.all_sent();
    t
}

fn change(t: &mut Script, values: &[(&str, &str)]) {
    t.with(|a, now| a.set_parameters(now, values)).expect("they can change");
}

fn change_path(t: &mut Script, path: u8, values: &[(&str, &str)]) {
    t.with(|a, now| a.set_path_parameters(now, PathId(path), values)).expect("they can change");
}

#[test]
fn the_sack_delay_changes_from_the_next_packet_on() {
    let mut t = client(1);
    t.peer(data(1));
    t.expect("SACK 1"); // the first at once
    change(&mut t, &[("sack_delay", "40 ms")]);
    let came = t.now();
    t.peer(data(2));
    t.run_ms(100);
    t.expect_after_ms(came, 40, "SACK 2");
    change(&mut t, &[("sack_every", "1")]);
    t.peer(data(3));
    t.expect("SACK 3");
    assert_eq!(t.assoc().config().get("sack_delay").as_deref(), Ok("40 ms"));
}

#[test]
fn the_bounds_of_the_rto_change_at_once() {
    let mut t = client(1);
    change(&mut t, &[("rto_initial", "400 ms"), ("rto_min", "300 ms"), ("rto_max", "700 ms")]);
    assert_eq!(t.path(1).rto, Duration::from_millis(400), "not measured yet");
    t.send(100);
    let sent = t.now();
    t.expect("DATA 1");
    t.run_ms(1200);
    t.expect_after_ms(sent, 400, "DATA 1");
    t.expect_after_ms(sent, 400 + 700, "DATA 1");
    // The back-off stays within the new bounds.
    change(&mut t, &[("rto_max", "500 ms")]);
    assert_eq!(t.path(1).rto, Duration::from_millis(500));
}

#[test]
fn a_path_has_bounds_of_its_own() {
    let mut t = client(2);
    change_path(&mut t, 1, &[("rto_min", "2 s"), ("rto_initial", "2 s")]);
    assert!(t.path(1).rto < Duration::from_secs(2) && t.path(2).rto >= Duration::from_secs(2));
    // Other values of all paths leave it alone; the same value replaces it.
    change(&mut t, &[("path_max_retrans", "3")]);
    assert!(t.path(2).rto >= Duration::from_secs(2));
    change(&mut t, &[("rto_min", "1 s"), ("rto_initial", "1 s")]);
    assert!(t.path(2).rto < Duration::from_secs(2));
}

#[test]
fn a_path_is_asked_at_intervals_of_its_own_or_not_at_all() {
    let mut t = client(2);
    change(&mut t, &[("heartbeats", "false")]);
    t.run(Duration::from_secs(300));
    t.expect_nothing();
    change_path(&mut t, 1, &[("heartbeats", "true"), ("hb_interval", "1 s")]);
    assert!(t.run_to_timer() < Duration::from_secs(4), "HB.interval + RTO");
    t.expect("P2 HEARTBEAT");
    let info = t.last_heartbeat();
    t.peer_on(1, heartbeat_ack(&info));
    assert!(t.run_to_timer() < Duration::from_secs(4));
    t.expect("P2 HEARTBEAT");
}

#[test]
fn a_path_fails_after_timeouts_of_its_own_number() {
    let mut t = client(2);
    change_path(&mut t, 0, &[("path_max_retrans", "0")]);
    t.send(100);
    assert_eq!(without_heartbeats(&mut t), ["P1 DATA 1"]);
    t.run(Duration::from_secs(2));
    assert_eq!((t.path_state(1), t.path_state(2)), (PathState::Inactive, PathState::Active));
    let of = |path, name| t.assoc().path_parameter(PathId(path), name);
    assert_eq!(of(0, "path_max_retrans").as_deref(), Some("0"));
    assert_eq!(of(1, "path_max_retrans").as_deref(), Some("5"));
    assert_eq!((of(0, "sack_delay"), of(9, "rto_min")), (None, None));
}

#[test]
fn wrong_changes_say_why_and_change_nothing() {
    let mut t = client(1);
    let before = t.assoc().config().to_toml();
    let wrong: [&[(&str, &str)]; 4] = [
        &[("rto_min", "2 s"), ("rto_max", "1 s"), ("rto_initial", "1 s")],
        &[("hb_interval", "1 s"), ("send_buffer", "1 MiB")],
        &[("sack_delay", "soon")],
        &[("hb_intervall", "1 s")],
    ];
    for values in wrong {
        let refused = t.with(|a, now| a.set_parameters(now, values)).expect_err("it cannot");
        assert!(!refused.to_string().is_empty());
    }
    let of_path = |a: &mut manypath_proto::Association, now| {
        a.set_path_parameters(now, PathId(0), &[("sack_delay", "1 ms")])
    };
    let refused = t.with(of_path).expect_err("all paths have one");
    assert!(refused.to_string().contains("rto_min"), "it says which can: {refused}");
    assert_eq!(t.assoc().config().to_toml(), before);
    assert!(CHANGEABLE_OF_PATHS.iter().all(|name| CHANGEABLE.contains(name)));
    assert_eq!(t.assoc().state_name(), "ESTABLISHED");
}
