//! Non-renegable SACKs (draft-tuexen-tsvwg-sctp-multipath): what the receiver promises, and what
//! the sender then lets go of.

use manypath_proto::testing::*;
use manypath_wire::{Parameter, chunk_type};

use super::common::announced;

fn announcement() -> Parameter {
    Parameter::SupportedExtensions(vec![chunk_type::NR_SACK].into())
}

/// A client that has sent TSNs 1 to 6 to a peer with NR-SACK, if it has it itself.
fn sender(nr_sack: &str) -> Script {
    let mut t = Setup::client()
        .set("nr_sack", nr_sack)
        .set("max_burst", "0")
        .set("initial_cwnd", "20 pmdcs")
        .set("send_buffer", "6000")
        .start();
    t.connect_to(init_ack().param(announcement()));
    t.send_messages(6, 1000);
    t.take_sent();
    t
}

/// A server with this receive buffer, whose peer has NR-SACK.
fn receiver(receive_buffer: &str) -> Script {
    let mut t = Setup::server()
        .set("nr_sack", "true")
        .set("receive_buffer", receive_buffer)
        .set("mtu", "576 B")
        .start();
    t.accept(init().param(announcement()));
    t
}

#[test]
fn both_ends_must_announce_nr_sack() {
    let answer = |ours: &str, theirs: PeerChunk| {
        let mut t = Setup::server().set("nr_sack", ours).start();
        t.accept(theirs);
        t.peer([data(1), data(3)]);
        t.next_sent().expect("a SACK")
    };
    assert_eq!(answer("true", init().param(announcement())), "NR-SACK 1 kept 3");
    assert_eq!(answer("true", init()), "SACK 1 gaps 3");
    assert_eq!(answer("false", init().param(announcement())), "SACK 1 gaps 3");
}

#[test]
fn a_client_announces_what_it_is_configured_for() {
    let types = |nr_sack: &str, timestamp: &str| {
        let setup = Setup::client().set("nr_sack", nr_sack).set("timestamp", timestamp);
        let mut t = setup.set("partial_reliability", "false").start();
        t.connect();
        announced(&t.expect_init())
    };
    assert_eq!(types("false", "false"), []);
    assert_eq!(types("true", "false"), [chunk_type::NR_SACK]);
    assert_eq!(types("true", "true"), [chunk_type::TIMESTAMP, chunk_type::NR_SACK]);
}

#[test]
fn an_nr_sack_that_was_not_agreed_on_is_discarded_with_what_follows_it() {
    let mut t = sender("false");
    t.peer([nr_sack(6), sack(6)]);
    assert_eq!(t.assoc().unacked_bytes(), 6000, "RFC 9260 §3.2: types 00xxxxxx stop the packet");
    t.peer(sack(6));
    assert_eq!(t.assoc().unacked_bytes(), 0);
}

#[test]
fn the_sender_lets_go_of_what_is_non_renegable() {
    let mut t = sender("true");
    assert_eq!(t.assoc().send_space(), 0);
    t.peer(nr_sack(0).gap(2, 3).nr_gap(5, 6));
    assert_eq!(t.assoc().send_space(), 2000, "TSNs 5 and 6, not 2 and 3");
    t.peer(nr_sack(0).gap(2, 2).nr_gap(3, 3).nr_gap(5, 6));
    assert_eq!(t.assoc().send_space(), 3000, "each once");
    t.peer(nr_sack(1).nr_gap(3, 3).nr_gap(5, 6));
    assert_eq!(t.assoc().unacked_bytes(), 2000, "2 and 4 are missing");
    t.peer(nr_sack(6));
    assert_eq!(t.assoc().unacked_bytes(), 0);
    assert_eq!(t.assoc().stats().bytes_acked, 6000);
}

#[test]
fn renegable_chunks_can_be_taken_back_and_others_cannot() {
    let mut t = sender("true");
    t.peer(nr_sack(0).gap(2, 3).nr_gap(4, 4).nr_gap(6, 6));
    // TSN 1 arrived. The receiver took 2 back, as it may, and forgot 4, as it must not.
    t.peer(nr_sack(1).gap(3, 3).nr_gap(6, 6));
    t.run_ms(1500);
    t.expect("DATA 2"); // RFC 9260 §6.2.1 (D iii)
    t.peer(nr_sack(3).nr_gap(6, 6));
    t.run_ms(3000);
    t.expect("DATA 5"); // which never arrived, unlike 4
}

#[test]
fn a_sack_beside_nr_sacks_takes_nothing_back_that_was_promised() {
    let mut t = sender("true");
    t.peer(nr_sack(0).nr_gap(3, 4));
    t.peer(sack(1).gap(6, 6));
    assert_eq!(t.assoc().send_space(), 3000);
    t.run_ms(3000);
    let again = t.all_sent().join(" ");
    assert!(!again.contains('3') && !again.contains('4'), "{again}");
}

#[test]
fn an_nr_sack_of_what_was_never_sent_ends_the_association() {
    let mut t = sender("true");
    t.peer(nr_sack(0).nr_gap(7, 7));
    t.expect("ABORT 13");
}

#[test]
fn non_renegable_blocks_out_of_order_are_ignored() {
    let mut t = sender("true");
    t.peer(nr_sack(0).nr_gap(4, 5).nr_gap(2, 2));
    assert_eq!(t.assoc().send_space(), 0);
}

#[test]
fn missing_reports_come_from_non_renegable_blocks_too() {
    let mut t = sender("true");
    t.peer(nr_sack(0).nr_gap(2, 2));
    t.peer(nr_sack(0).gap(3, 3).nr_gap(2, 2));
    t.expect_nothing();
    t.peer(nr_sack(0).nr_gap(2, 4));
    t.expect("DATA 1"); // RFC 9260 §7.2.4
}

#[test]
fn what_may_have_to_go_is_not_promised() {
    // Room for three chunks of 500 bytes.
    let mut t = receiver("1500 B");
    t.peer([data(3).len(500)]);
    t.expect("NR-SACK 0 kept 3");
    t.peer([data(4).len(500)]);
    t.expect("NR-SACK 0 gaps 4 kept 3");
}

#[test]
fn short_of_room_the_receiver_discards_only_what_it_did_not_promise() {
    let mut t = receiver("1500 B");
    t.peer([data(3).len(500), data(4).len(500), data(6).len(500)]);
    t.expect("NR-SACK 0 gaps 4 6 kept 3");
    t.peer([data(2).len(500)]);
    t.expect("NR-SACK 0 gaps 4 kept 2-3"); // 6 had to go
    t.peer([data(1).len(500)]);
    t.expect("NR-SACK 3"); // and 4
    for tsn in 1..=3 {
        assert!(t.recv().is_some(), "TSN {tsn}");
    }
    assert!(t.recv().is_none());
    t.take_sent();
    t.peer(data(4).len(500));
    t.peer(data(5).len(500));
    t.expect("NR-SACK 5");
}
