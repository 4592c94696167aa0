//! Asking for SACKs without delay (RFC 9260 §6.1, RFC 7053). `docs/rfc7053.md` names the test for
//! each rule.

use bytes::Bytes;
use manypath_proto::SendOptions;
use manypath_proto::config::{Config, Profile};
use manypath_proto::testing::*;
use manypath_wire::{Chunk, Parameter, chunk_type};

use super::common::FULL;

fn asking() -> Setup {
    Setup::client().set("immediate_sacks", "true")
}

/// The TSNs sent since the last look, with an `I` behind those that asked for a SACK.
fn asked(t: &mut Script) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(words) = t.next_sent() {
        let flags = t.last_chunks().into_iter().filter_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data.flags.immediate()),
            Chunk::IData(data) => Some(data.flags.immediate()),
            _ => None,
        });
        let marks: String = flags.map(|is_set| if is_set { 'I' } else { '-' }).collect();
        seen.push(format!(
            "{} {marks}",
            words.trim_start_matches("I-").trim_start_matches("DATA ")
        ));
    }
    seen
}

#[test]
fn the_last_chunk_of_a_message_asks_if_the_application_says_so() {
    for interleaving in ["false", "true"] {
        let types = Parameter::SupportedExtensions(vec![chunk_type::I_DATA].into());
        let mut t = Setup::client().set("message_interleaving", interleaving).start();
        t.connect_to(init_ack().param(types));
        let asks = SendOptions { sack_immediately: true, ..SendOptions::default() };
        for options in [asks, SendOptions::default()] {
            let message = Bytes::from(vec![0; FULL + 10]);
            t.with(|a, now| a.send(now, options, message)).expect("room");
        }
        let marks: String =
            asked(&mut t).iter().map(|s| s.split(' ').next_back().unwrap_or("")).collect();
        assert_eq!(marks, "-I--", "RFC 9260 §11.1.5, interleaving: {interleaving}");
    }
}

#[test]
fn a_repeated_chunk_of_such_a_message_asks_again() {
    let mut t = Setup::client().established();
    let asks = SendOptions { sack_immediately: true, ..SendOptions::default() };
    t.with(|a, now| a.send(now, asks, Bytes::from_static(b"m"))).expect("room");
    assert_eq!(asked(&mut t), ["1 I"]);
    t.run_to_timer();
    assert_eq!(asked(&mut t), ["1 I"]);
}

#[test]
fn the_chunk_that_fills_the_congestion_window_asks_once_a_round_trip() {
    let mut t = asking().established();
    t.send_packets(20);
    assert_eq!(asked(&mut t), ["1 -", "2 -", "3 -", "4 I"]);
    t.run_ms(10);
    t.peer(sack(2));
    let more = asked(&mut t);
    assert!(more.len() > 1 && more.iter().all(|s| s.ends_with('-')), "4 is under way: {more:?}");
    t.run_ms(10);
    t.peer(sack(4));
    let more = asked(&mut t);
    let (last, others) = more.split_last().expect("the window is open");
    assert!(last.ends_with('I') && others.iter().all(|s| s.ends_with('-')), "{more:?}");
}

#[test]
fn of_several_paths_the_one_that_is_filled_last_asks() {
    let mut t = asking().preset("cmt").paths(2).established();
    t.send_packets(20);
    let sent = asked(&mut t);
    let (last, others) = sent.split_last().expect("the windows are open");
    assert!(last.ends_with('I') && others.iter().all(|s| s.ends_with('-')), "{sent:?}");
}

#[test]
fn the_chunk_that_fills_the_peers_window_asks() {
    let mut t = asking().start();
    t.connect_to(init_ack().rwnd(3000));
    t.send_packets(3);
    assert_eq!(asked(&mut t), ["1 -", "2 I"]);
}

#[test]
fn a_probe_of_a_closed_window_asks() {
    for (asks, probes) in [("true", ["2 I", "2 I"]), ("false", ["2 -", "2 -"])] {
        let mut t = Setup::client().set("immediate_sacks", asks).established();
        t.send_packets(1);
        t.all_sent();
        t.peer(sack(1).rwnd(0));
        t.send_packets(1);
        let mut seen = asked(&mut t);
        t.run_to_timer();
        seen.extend(asked(&mut t));
        assert_eq!(seen, probes, "immediate_sacks: {asks}");
    }
}

#[test]
fn a_retransmission_that_is_alone_in_flight_asks() {
    let mut t = asking().established();
    t.send(10);
    assert_eq!(asked(&mut t), ["1 -"], "nothing waits for its SACK");
    t.run_to_timer();
    assert_eq!(asked(&mut t), ["1 I"]);
}

#[test]
fn nothing_asks_while_no_data_waits() {
    let mut t = asking().established();
    for message in 1..5 {
        t.send(10);
        assert_eq!(asked(&mut t), [format!("{message} -")]);
        t.peer(sack(message));
    }
}

#[test]
fn no_profile_asks_by_itself() {
    for profile in Profile::ALL.map(Profile::name) {
        let config = Config::build(profile, "cmt", &[]).expect("a profile");
        assert!(!config.immediate_sacks, "{profile}");
    }
}
