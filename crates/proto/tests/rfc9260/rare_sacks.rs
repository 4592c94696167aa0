//! SACKs for senders that bear few of them, and for those that do not (RFC 9260 §6.2).

use manypath_proto::testing::*;
use manypath_wire::{Parameter, chunk_type};

use super::common::announced;

fn announcement() -> Parameter {
    Parameter::SupportedExtensions(vec![chunk_type::RARE_SACKS].into())
}

/// A server with the profile `fast` whose peer opened with this INIT, and its first SACK was taken.
fn server(init: PeerChunk, paths: u8) -> Script {
    let mut t = Setup::server().profile("fast").preset("adaptive").paths(paths).start();
    t.accept(init);
    t.peer(data(1));
    t.take_sent();
    t
}

fn sacks(t: &mut Script) -> Vec<String> {
    t.all_sent().into_iter().filter(|words| words.contains("SACK")).collect()
}

#[test]
fn an_end_that_sends_few_sacks_says_that_it_bears_few() {
    let says = |profile| {
        let mut t = Setup::client().profile(profile).start();
        t.connect();
        announced(&t.expect_init()).contains(&chunk_type::RARE_SACKS)
    };
    assert_eq!(["fast", "rfc9260", "2006"].map(says), [true, false, false]);
}

/// The congestion window of a sender that knows nothing of us grows by one packet a SACK (§7.2.1),
/// and one lost SACK for a whole flight is silence until its T3-rtx.
#[test]
fn packets_at_hand_together_draw_a_sack_for_every_second_one() {
    let mut t = server(init(), 1);
    t.peer_at_once((2..=9).map(data));
    assert_eq!(sacks(&mut t), ["SACK 3", "SACK 5", "SACK 7", "SACK 9"]);
    let mut t = server(init().param(announcement()), 1);
    t.peer_at_once((2..=9).map(data));
    assert_eq!(sacks(&mut t), ["SACK 9"]);
}

#[test]
fn gaps_among_packets_at_hand_are_reported_each_time() {
    let mut t = server(init(), 1);
    t.peer_at_once([data(2), data(4), data(5), data(3)]);
    assert_eq!(sacks(&mut t), ["SACK 2 gaps 4", "SACK 2 gaps 4-5", "SACK 5"]);
}

#[test]
fn a_high_rate_makes_sacks_rare_for_those_only_who_bear_it() {
    let count = |init| {
        let mut t = server(init, 1);
        for tsn in 2..=401 {
            t.run(std::time::Duration::from_micros(100));
            t.peer(data(tsn));
        }
        sacks(&mut t).len()
    };
    assert_eq!(count(init()), 200);
    let rare = count(init().param(announcement()));
    assert!(rare < 80, "{rare} SACKs");
}

#[test]
fn reordering_between_paths_delays_sacks_for_those_only_who_bear_it() {
    let said = |init| {
        let mut t = server(init, 2);
        t.peer_on(2, data(2));
        t.peer(data(3));
        t.take_sent();
        t.peer_on(2, data(5));
        sacks(&mut t)
    };
    assert_eq!(said(init()), ["P2 SACK 3 gaps 5"]);
    assert_eq!(said(init().param(announcement())), [""; 0]);
}
