//! Attacks that were published, against each state of an association. `docs/attacks.md` lists them
//! with their sources.

use bytes::Bytes;
use manypath_proto::testing::*;
use manypath_proto::{AssocClosed, Event, SendError};
use manypath_wire::{Chunk, ErrorCause};

/// A tag that an attacker guesses, who is not on the path.
const GUESSED: u32 = 0x5eed_5eed;

/// An association in one state, and how it goes on with an honest peer.
struct Stage {
    name: &'static str,
    begin: fn() -> Script,
    /// Panics unless the association goes on as if nothing had been.
    go_on: fn(&mut Script),
}

const STAGES: [Stage; 6] = [
    Stage { name: "COOKIE-WAIT", begin: cookie_wait, go_on: open_from_cookie_wait },
    Stage { name: "COOKIE-ECHOED", begin: cookie_echoed, go_on: open_from_cookie_echoed },
    Stage { name: "ESTABLISHED", begin: established, go_on: exchange },
    Stage { name: "SHUTDOWN-SENT", begin: shutdown_sent, go_on: end_from_shutdown_sent },
    Stage { name: "SHUTDOWN-RECEIVED", begin: shutdown_received, go_on: end_from_received },
    Stage { name: "SHUTDOWN-ACK-SENT", begin: shutdown_ack_sent, go_on: end_from_ack_sent },
];

fn cookie_wait() -> Script {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.events();
    t
}

fn cookie_echoed() -> Script {
    let mut t = cookie_wait();
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    t.events();
    t
}

fn established() -> Script {
    let mut t = Setup::client().start();
    t.connect_to(init_ack());
    t.events();
    t
}

fn shutdown_sent() -> Script {
    let mut t = established();
    t.with(|a, now| a.shutdown(now));
    t.expect("SHUTDOWN 0");
    t
}

/// The peer shuts down while data of ours is in flight.
fn shutdown_received() -> Script {
    let mut t = established();
    t.send(100);
    t.expect("DATA 1");
    t.peer(shutdown(0));
    t.events();
    t
}

fn shutdown_ack_sent() -> Script {
    let mut t = established();
    t.peer(shutdown(0));
    t.expect("SHUTDOWN ACK");
    t.events();
    t
}

fn open_from_cookie_wait(t: &mut Script) {
    assert!(!t.assoc().is_established());
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    open_from_cookie_echoed(t);
}

fn open_from_cookie_echoed(t: &mut Script) {
    assert!(!t.assoc().is_established());
    t.peer(cookie_ack());
    assert!(t.assoc().is_established());
    exchange(t);
}

/// Data arrives in both directions, with the tags of the beginning.
fn exchange(t: &mut Script) {
    t.all_sent();
    t.send(100);
    t.expect("DATA 1");
    assert_eq!(t.last().packet.header.verification_tag, PEER_TAG);
    t.peer([sack(1), data(1).len(5)]);
    assert_eq!(t.assoc().unacked_bytes(), 0);
    assert_eq!(t.recv().map(|message| message.len()), Some(5));
}

fn end_from_shutdown_sent(t: &mut Script) {
    t.all_sent();
    t.peer(shutdown_ack());
    t.expect("SHUTDOWN COMPLETE");
    assert_eq!(t.events().pop(), Some(Event::Closed(AssocClosed::Shutdown)));
}

fn end_from_received(t: &mut Script) {
    assert_eq!(t.try_send(0, 1), Err(SendError::Closed));
    t.all_sent();
    t.peer(sack(1));
    t.expect("SHUTDOWN ACK");
    end_from_ack_sent(t);
}

fn end_from_ack_sent(t: &mut Script) {
    t.peer(shutdown_complete());
    assert_eq!(t.events().pop(), Some(Event::Closed(AssocClosed::Shutdown)));
}

fn garbage() -> Bytes {
    Bytes::from(vec![0x5a; 200])
}

/// Chunks with which the attacker tries to move or to end the association.
fn forgeries() -> Vec<PeerChunk> {
    let states = [shutdown(0), shutdown_ack(), shutdown_complete(), cookie_ack(), init_ack()];
    let content = [data(1), sack(1), forward_tsn(5, &[]), heartbeat(b"are you there?")];
    let errors = [abort(&[]), error(ErrorCause::StaleCookie(1)), cookie_echo(&garbage())];
    let reflected = [abort(&[]).reflected(), shutdown_complete().reflected()];
    states.into_iter().chain(content).chain(errors).chain(reflected).collect()
}

/// The attacker is not on the path, but knows the addresses and ports of both ends.
#[test]
fn chunks_with_a_guessed_tag_change_nothing_in_any_state() {
    for Stage { name, begin, go_on } in STAGES {
        let mut t = begin();
        for forgery in forgeries() {
            t.peer_with_tag(t.pairs[0], GUESSED, forgery);
            let answers = t.all_sent();
            // RFC 9260 §8.5.1 E: the peer may still be ending an association from before.
            let is_opening = name.starts_with("COOKIE");
            let is_right = answers.is_empty() || is_opening && answers == ["SHUTDOWN COMPLETE T"];
            assert!(is_right, "{name}: {answers:?}");
            assert_eq!(t.events(), [], "{name}");
        }
        go_on(&mut t);
    }
}

/// CVE-2021-3772: an INIT with the Initiate Tag 0 made the receiver abort its own association.
#[test]
fn an_init_with_the_initiate_tag_0_ends_nothing() {
    for Stage { name, begin, go_on } in STAGES {
        let mut t = begin();
        t.peer(init().tag(0));
        assert_eq!(t.all_sent(), [""; 0], "{name}: nothing is answered");
        assert_eq!(t.events(), [], "{name}");
        go_on(&mut t);
    }
}

/// An INIT that the attacker forges is at most answered, and not with the tag of the association
/// once that is open.
#[test]
fn a_forged_init_moves_no_association() {
    for Stage { name, begin, go_on } in STAGES {
        let mut t = begin();
        t.peer(init().tag(GUESSED));
        for sent in t.take_sent() {
            let Some(Ok(Chunk::InitAck(answer))) = sent.packet.chunks().next() else { continue };
            assert_eq!(sent.packet.header.verification_tag, GUESSED, "{name}");
            let is_open = !name.starts_with("COOKIE");
            assert!(!is_open || answer.initiate_tag != t.tag(), "{name}: the tag is told");
        }
        assert_eq!(t.events(), [], "{name}");
        go_on(&mut t);
    }
}

/// A server that lies knows the tag. It opens no association that nobody asked for, and none in
/// which it was not given a cookie.
#[test]
fn an_evil_server_opens_nothing_without_a_cookie() {
    for setup in [Setup::client(), Setup::server()] {
        let mut t = setup.start();
        for forgery in [cookie_ack(), cookie_ack(), cookie_echo(&garbage())] {
            t.peer_with_tag(t.pairs[0], GUESSED, forgery);
        }
        assert_eq!(t.endpoint.associations().count(), 0);
        assert_eq!(t.all_sent(), [""; 0]);
    }
    let mut t = cookie_wait();
    let stale = || error(ErrorCause::StaleCookie(1));
    for forgery in [cookie_ack(), cookie_echo(&garbage()), stale(), cookie_ack()] {
        t.peer(forgery);
        assert!(!t.assoc().is_established());
        assert_eq!(t.all_sent(), [""; 0]);
    }
    open_from_cookie_wait(&mut t);
}

/// An ABORT of the server ends an attempt, as often as the client begins another.
#[test]
fn an_evil_server_that_aborts_leaves_no_half_open_association() {
    let mut t = cookie_wait();
    for forgery in [cookie_ack(), cookie_echo(&garbage()), abort(&[])] {
        t.peer(forgery);
    }
    assert!(matches!(t.events().pop(), Some(Event::Closed(AssocClosed::PeerAborted { .. }))));
    for late in [init_ack(), cookie_ack(), cookie_echo(&garbage())] {
        t.peer(late);
    }
    assert_eq!(t.events(), []);
    assert!(t.all_sent().iter().all(|words| words == "ABORT T"), "as out of the blue");
}

/// An end that was told of a shutdown goes on to SHUTDOWN-ACK-SENT or CLOSED, whatever else comes.
#[test]
fn an_evil_server_cannot_take_its_shutdown_back() {
    let mut t = shutdown_received();
    let forgeries =
        [cookie_ack(), cookie_echo(&garbage()), init(), shutdown(0), shutdown_complete()];
    for forgery in forgeries {
        t.peer(forgery);
        assert_eq!(t.try_send(0, 1), Err(SendError::Closed));
    }
    assert_eq!(t.events(), []);
    end_from_received(&mut t);
}

/// The attacker captures the ABORT of an association, and repeats it in the next one between the
/// same addresses and ports.
#[test]
fn a_repeated_abort_does_not_end_the_next_association() {
    let mut t = established();
    let header = t.last().packet.header;
    let (old_tag, old) = (t.tag(), t.id());
    t.peer(abort(&[]));
    assert!(matches!(t.events().pop(), Some(Event::Closed(AssocClosed::PeerAborted { .. }))));
    t.endpoint.forget(old);
    t.connect_to(init_ack());
    t.events();
    assert_ne!(t.tag(), old_tag, "tags are drawn anew: {header:?}");
    t.peer_with_tag(t.pairs[0], old_tag, abort(&[]));
    assert_eq!(t.events(), []);
    exchange(&mut t);
}

/// RFC 9260 can be read as if the peer's tag were that of a later INIT, which anybody may have
/// forged. The tag of its INIT ACK counts.
#[test]
fn an_init_in_cookie_echoed_does_not_change_the_tag_of_the_peer() {
    let mut t = cookie_echoed();
    t.peer(init().tag(GUESSED));
    t.expect("INIT ACK");
    assert_eq!(t.last().packet.header.verification_tag, GUESSED);
    open_from_cookie_echoed(&mut t);
}

/// RFC 9260 can be read as if a shutdown in COOKIE-ECHOED could go on at once: then one end would
/// shut down what the other has not opened. Here it ends the attempt.
#[test]
fn a_shutdown_in_cookie_echoed_sends_no_shutdown() {
    let mut t = cookie_echoed();
    t.with(|a, now| a.shutdown(now));
    t.expect("ABORT 12");
    assert_eq!(t.events(), [Event::Closed(AssocClosed::Aborted)]);
    t.peer(cookie_ack());
    t.expect_nothing();
}
