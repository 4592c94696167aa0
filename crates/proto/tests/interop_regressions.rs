//! Findings of tests against other stacks on real sockets, each as a script that repeats it.

use bytes::Bytes;
use manypath_proto::testing::*;
use manypath_proto::{AssocClosed, Datagram, Event};
use manypath_wire::CommonHeader;

/// usrsctp updates its window from one address when SHUTDOWN ACK has left from the other: both are
/// in one batch of datagrams, SHUTDOWN ACK first. The ABORT for a packet out of the blue reached
/// usrsctp before SHUTDOWN COMPLETE, and a transfer that was complete ended with an error.
#[test]
fn a_sack_that_shutdown_ack_overtook_is_not_answered_with_abort() {
    let mut t = Setup::client().paths(2).established();
    t.send(100);
    t.expect("P1 DATA 1");
    t.peer(sack(1));
    t.with(|a, now| a.shutdown(now));
    t.expect("P1 SHUTDOWN 0");

    let header =
        CommonHeader { source_port: PEER_PORT, destination_port: PORT, verification_tag: t.tag() };
    let ack = t.packet(header, shutdown_ack());
    let window = t.packet(header, sack(1));
    for (bytes, (local, remote)) in [(ack, t.pairs[0]), (window.clone(), t.pairs[1])] {
        let payload = Bytes::from(bytes);
        t.endpoint.handle_datagram(t.now(), Datagram::new(local, remote, payload));
    }
    t.settle();
    t.expect("P1 SHUTDOWN COMPLETE");
    t.expect_nothing();
    assert_eq!(t.events().pop(), Some(Event::Closed(AssocClosed::Shutdown)));

    // The same when the application has let go of the association.
    t.endpoint.forget(t.id());
    t.peer_bytes(t.pairs[1], window);
    t.expect_nothing();
    t.peer(shutdown_ack());
    t.expect("P1 SHUTDOWN COMPLETE T"); // RFC 9260 §8.4, rule 5: it was lost
}
