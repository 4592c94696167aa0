//! A window for strangers, which grows once the application knows them.

use manypath_proto::SendOptions;
use manypath_proto::testing::*;
use manypath_wire::Chunk;

const LITTLE: usize = 64 << 10;

fn server() -> Script {
    let mut t = Setup::server().profile("fast").start();
    t.endpoint.set_incoming_window(LITTLE);
    t
}

fn last_window(t: &Script) -> usize {
    let window = t.last_chunks().into_iter().find_map(|c| match c {
        Chunk::Sack(sack) => Some(sack.a_rwnd),
        Chunk::NrSack(sack) => Some(sack.a_rwnd),
        Chunk::InitAck(init) => Some(init.a_rwnd),
        _ => None,
    });
    window.expect("a chunk with a window") as usize
}

#[test]
fn a_stranger_is_told_of_little_room_from_the_start_and_gets_no_more() {
    let mut t = server();
    t.peer(init());
    let cookie = t.expect_init_ack();
    assert_eq!(last_window(&t), LITTLE);
    t.peer(cookie_echo(&cookie));
    // A peer that does not care about the window: TSN 1 is missing, so that nothing can be read.
    for tsn in 2..200 {
        t.peer(data(tsn).len(1400));
    }
    let held = t.assoc().stats().receive_buffered;
    assert!((LITTLE - 1400..=LITTLE).contains(&held), "{held}");
    assert_eq!(t.assoc().receive_buffer(), LITTLE);
}

#[test]
fn who_is_admitted_hears_of_all_the_room_at_once() {
    let mut t = server();
    t.accept(init());
    t.take_sent();
    t.peer(data(1).len(40));
    t.recv().expect("the hello");
    let at = t.now();
    let full = t.assoc().config().receive_buffer;
    t.take_sent();
    t.with(|a, now| {
        a.set_receive_buffer(now, full);
        a.send(now, SendOptions::default(), b"welcome"[..].into()).expect("there is room");
    });
    t.expect("SACK 1, DATA 1");
    assert_eq!((t.last().at, last_window(&t)), (at, full), "in the packet of the answer");
    t.expect_nothing();
    // 1 MB that waits for one TSN.
    for tsn in 3..700 {
        t.peer(data(tsn).len(1400));
    }
    assert_eq!(t.assoc().stats().receive_buffered, 697 * 1400);
}

#[test]
fn a_restart_does_not_take_back_what_the_application_gave() {
    let mut t = server();
    t.accept(init());
    let full = t.assoc().config().receive_buffer;
    t.with(|a, now| a.set_receive_buffer(now, full));
    t.take_sent();
    t.peer(init().tag(77));
    let cookie = t.expect_init_ack();
    assert_eq!(last_window(&t), full);
    t.peer(cookie_echo(&cookie));
    assert_eq!(t.assoc().receive_buffer(), full);
}

#[test]
fn associations_that_are_opened_here_have_the_whole_buffer() {
    let mut t = Setup::client().profile("fast").start();
    t.endpoint.set_incoming_window(LITTLE);
    t.connect_to(init_ack());
    assert_eq!(t.assoc().receive_buffer(), t.assoc().config().receive_buffer);
}

#[test]
fn what_is_ready_when_the_buffer_shrinks_can_still_be_read() {
    let mut t = server();
    t.accept(init());
    let full = t.assoc().config().receive_buffer;
    t.with(|a, now| a.set_receive_buffer(now, full));
    for tsn in 1..201 {
        t.peer(data(tsn).len(1400));
    }
    t.with(|a, now| a.set_receive_buffer(now, 0));
    assert_eq!(t.assoc().receive_buffer(), 1500, "the least of RFC 9260 §3.3.2");
    let received = std::iter::from_fn(|| t.recv()).count();
    assert_eq!(received, 200);
    t.assoc().check_invariants();
}
