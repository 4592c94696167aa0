//! Protected associations: every chunk in a DTLS chunk, on every path.

use std::sync::Arc;
use std::time::Duration;

use manypath_keys::psk::SharedKey;
use manypath_keys::tls::{Identity, PeerKeys, TlsKeys};
use manypath_proto::{AssocClosed, PathId};
use manypath_sim::{Keys, Pair, chunk_type, secs};

use crate::MIB;

/// The key management of an end that knows the secret of this number.
fn keys(secret: u8) -> Keys {
    Arc::new(SharedKey::new(&[secret; 32]).expect("long enough"))
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
    let key = || Identity::generate().expect("a key");
    let keys = |identity: &Identity| -> Keys {
        Arc::new(TlsKeys::raw_public_keys(identity, PeerKeys::Any))
    };
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
    assert_eq!(first_byte(Some(keys(&key()))), 5, "in one-way delays");
}
