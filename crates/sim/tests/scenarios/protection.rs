//! Protected associations: every chunk in a DTLS chunk, on every path.

use std::sync::Arc;
use std::time::Duration;

use manypath_keys::psk::SharedKey;
use manypath_keys::tls::{Identity, PeerKeys, TlsKeys};
use manypath_proto::{AssocClosed, Event, PathId, PathState};
use manypath_sim::{Keys, LostPackets, Pair, PathSpec, QueueLimit, chunk_type, millis, secs};

use crate::MIB;

/// The key management of an end that knows the secret of this number.
fn keys(secret: u8) -> Keys {
    Arc::new(SharedKey::new(&[secret; 32]).expect("long enough"))
}

/// Keys by TLS, of an end that trusts whoever comes.
fn tls_keys() -> Keys {
    let identity = Identity::generate().expect("a key");
    Arc::new(TlsKeys::raw_public_keys(&identity, PeerKeys::Any))
}

const HANDSHAKE: [u8; 4] =
    [chunk_type::INIT, chunk_type::INIT_ACK, chunk_type::COOKIE_ECHO, chunk_type::COOKIE_ACK];

#[test]
fn everything_but_the_handshake_is_protected() {
    for preset in ["sctp", "cmt-pf", "mtcp"] {
        let mut t = Pair::two_paths(preset).profile("fast").keys(keys(1)).connect();
        t.a.send_file(4 * MIB);
        t.z.send_file(MIB);
        t.a.shutdown();
        t.run_to_end(secs(60));
        assert_eq!(t.z.received_bytes(), 4 * MIB, "{preset}");
        assert_eq!(t.a.received_bytes(), MIB, "{preset}");
        assert_eq!(t.a.closed(), Some(&AssocClosed::Shutdown), "{preset}");
        assert_eq!(t.z.closed(), Some(&AssocClosed::Shutdown), "{preset}");
        for ty in (0..=255).filter(|ty| !HANDSHAKE.contains(ty) && *ty != chunk_type::DTLS) {
            assert_eq!(t.sent(ty).count(), 0, "{preset}: unprotected chunks of type {ty}");
        }
        let second = t.sent(chunk_type::DTLS).on(PathId(1)).count();
        assert_eq!(second > 100, preset != "sctp", "{preset}: {second} packets on path 2");
    }
}

#[test]
fn ends_with_other_keys_give_up_and_deliver_nothing() {
    let mut t = Pair::one_path("sctp").keys_a(Some(keys(1))).keys_z(Some(keys(2))).start();
    t.a.send_file(MIB);
    t.run_until(secs(120));
    let Some(AssocClosed::NotProtected { reason, .. }) = t.a.closed() else {
        panic!("{:?}", t.a.closed());
    };
    assert!(reason.contains("other keys"), "{reason}");
    assert!(t.z.events().is_empty(), "nobody has opened an association: {:?}", t.z.events());
    assert_eq!(t.z.received_bytes(), 0);
    assert!(t.net.now() < secs(121));
}

#[test]
fn an_end_that_protects_refuses_one_that_does_not() {
    for (a, z) in [(Some(keys(1)), None), (None, Some(keys(1)))] {
        let mut t = Pair::one_path("sctp").keys_a(a.clone()).keys_z(z).start();
        t.a.send_file(MIB);
        t.run_until(secs(20));
        let closed = t.a.closed().expect("it is over").to_string();
        assert!(closed.contains("protect"), "{closed}");
        assert_eq!(t.z.received_bytes(), 0);
        assert_eq!(t.sent(chunk_type::DATA).count(), 0);
    }
}

#[test]
fn keys_are_replaced_again_and_again_while_paths_differ() {
    for packets in ["10", "100", "1000"] {
        let mut t = Pair::two_paths("cmt-pf")
            .profile("fast")
            .set("rekey_packets", packets)
            .path(1, |path| path.delay_ms(150.0).loss(0.02))
            .keys(keys(1))
            .connect();
        t.a.send_file(4 * MIB);
        t.run_to_end(secs(60));
        assert_eq!(t.z.received_bytes(), 4 * MIB, "{packets}");
        t.run_for(Duration::from_secs(5));
        assert!(t.a.is_established(), "{packets}");
    }
}

/// One round trip more than plain: ClientHello travels with COOKIE ECHO, and the first data in the
/// same flight as the client's last message of TLS.
#[test]
fn the_handshake_by_tls_takes_one_round_trip_more() {
    let first_byte = |keys: Option<Keys>| {
        let one_way = 50;
        let mut t = Pair::one_path("sctp")
            .profile("fast")
            .rate_mbps(100.0)
            .delay_ms(f64::from(one_way))
            .keys_a(keys.clone())
            .keys_z(keys)
            .start();
        t.a.send_file(1000);
        t.run_until_true(secs(5), |t| t.z.received_bytes() == 1000);
        assert_eq!(t.z.received_bytes(), 1000);
        let trips = t.net.now().as_nanos() as f64 / 1e6 / f64::from(one_way);
        trips.floor() as u32
    };
    // INIT, INIT ACK, COOKIE ECHO with DATA.
    assert_eq!(first_byte(None), 3, "in one-way delays");
    // COOKIE ECHO with ClientHello, COOKIE ACK with ServerHello to Finished, Finished with DATA.
    assert_eq!(first_byte(Some(tls_keys())), 5, "in one-way delays");
}

/// The client's packet with the SACK for the server's keys and its own last message is lost. The
/// server sends its keys again, in plain, which the client takes from nobody any more; but it sends
/// the SACK again.
#[test]
fn the_sack_for_the_peers_keys_is_sent_again() {
    let mut is_forward = false;
    let loses_the_fifth = PathSpec::new().rate_mbps(50.0).delay_ms(5.0).each(|link| {
        is_forward = !is_forward;
        if is_forward {
            link.lost = LostPackets::new(vec![5], 1 << 40);
        }
    });
    let pair = Pair::paths("adaptive", vec![loses_the_fifth]).profile("fast");
    let mut t = pair.keys(tls_keys()).start();
    t.run_until(millis(90));
    let paths = t.z.paths();
    assert_eq!(paths[0].counters.retransmissions, 1);
    // The rest is less than keys.
    assert!(paths[0].flight_size < 100, "{} bytes in flight", paths[0].flight_size);
}

/// A queue of two packets drops the last packets of the client's first flight, so that the server
/// has no keys when a heartbeat comes on the other path. That is probed again when the server shows
/// its keys, not after a timeout.
#[test]
fn a_path_whose_first_heartbeat_came_before_the_keys_is_probed_again() {
    let path = |rate, ms, queue| {
        PathSpec::new().rate_mbps(rate).delay_ms(ms).queue(QueueLimit::Packets(queue))
    };
    let paths = vec![path(29.4, 3.0, 15), path(5.5, 2.0, 2)];
    let mut t = Pair::paths("adaptive", paths).profile("fast").keys(tls_keys()).start();
    t.a.send(0, 48);
    let is_active = |t: &Pair| t.a.paths().iter().all(|p| p.state == PathState::Active);
    assert!(t.run_until_true(millis(100), |t| t.z.received_messages() == 1 && is_active(t)));
}

/// A client restarts when its last message of TLS is on its way, and that way has become slow. The
/// new association begins on the other path. Then the message comes.
#[test]
fn the_late_end_of_a_key_agreement_opens_nothing_beside_a_newer_association() {
    let path = |ms| PathSpec::new().rate_mbps(50.0).delay_ms(ms);
    let paths = vec![path(20.0), path(10.0)];
    let mut t = Pair::paths("adaptive", paths).profile("fast").keys(tls_keys()).start();
    t.run_until(millis(35));
    assert!(t.sent(chunk_type::COOKIE_ACK).count() > 0 && !t.a.is_established());
    t.net.path(1).set_delay(Duration::from_millis(300));
    t.run_until(millis(45));
    assert!(t.a.is_established() && t.z.events().is_empty(), "the message is on its way");
    t.a.kill_and_restart();
    t.a.send_file(300_000);
    t.run_for(Duration::from_secs(2));
    assert_eq!(t.z.received_bytes(), 300_000);
    let accepted = t.z.events().iter().filter(|(_, e)| matches!(e, Event::Connected { .. }));
    assert_eq!(accepted.count(), 1);
}

/// When a client dies.
#[derive(Copy, Clone, Debug)]
enum Dies {
    DuringTheHandshake,
    WhileItSends,
    WhileIdle,
}

#[test]
fn a_client_that_comes_back_from_the_same_port_is_served_at_once() {
    for dies in [Dies::DuringTheHandshake, Dies::WhileItSends, Dies::WhileIdle] {
        let pair = Pair::two_paths("adaptive").profile("fast").keys(tls_keys());
        let mut t = match dies {
            Dies::DuringTheHandshake => pair.start(),
            Dies::WhileItSends | Dies::WhileIdle => pair.connect(),
        };
        match dies {
            Dies::DuringTheHandshake => {
                while t.sent(chunk_type::COOKIE_ACK).count() == 0 {
                    t.run_for(Duration::from_millis(1));
                }
                assert!(t.z.events().is_empty(), "the keys are not agreed on");
            }
            Dies::WhileItSends => {
                t.a.send_file(64 * MIB);
                t.run_for(Duration::from_secs(1));
                assert!(t.z.received_bytes() > 0);
            }
            Dies::WhileIdle => t.run_for(Duration::from_secs(20)),
        }
        t.a.kill_and_restart();
        t.a.send_file(300_000);
        t.run_for(Duration::from_secs(2));
        assert_eq!(t.z.received_bytes(), 300_000, "{dies:?}");
    }
}

/// The addresses that a client lists are probed before it has sent much: the bound on such probes
/// must not keep its second path waiting. With a round trip of 40 ms the cookie comes back after
/// 60 ms, and the peer is authenticated after 100; then the path is probed, and then used.
#[test]
fn a_servers_second_path_is_probed_as_soon_as_its_peer_is_authenticated() {
    for (what, keys, limit) in [
        ("plain", None, millis(60 + 2 * 40 + 5)),
        ("shared key", Some(keys(1)), millis(100 + 2 * 40 + 5)),
        ("tls", Some(tls_keys()), millis(100 + 2 * 40 + 5)),
    ] {
        let pair = Pair::two_paths("adaptive").profile("fast").rate_mbps(20.0).delay_ms(20.0);
        let mut t = pair.keys_a(keys.clone()).keys_z(keys).start();
        t.z.send_file(4 * MIB);
        let is_used = |t: &Pair| t.z.paths().get(1).is_some_and(|p| p.counters.acked_bytes > 0);
        assert!(t.run_until_true(limit, is_used), "{what}: not by {limit:?}");
    }
}
