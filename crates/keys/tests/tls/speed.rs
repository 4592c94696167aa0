//! Handshakes per second, for the choice of the default identity.

use std::time::{Duration, Instant};

use manypath_keys::tls::{Identity, IdentityKind, PeerKeys, TlsKeys};

use crate::harness::Pair;

/// `cargo test -p manypath-keys --test tls speed -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
#[allow(clippy::disallowed_methods)]
fn handshakes_per_second() {
    for kind in [IdentityKind::Ed25519, IdentityKind::P256] {
        let keys = || {
            let identity = Identity::generate_kind(kind).unwrap();
            TlsKeys::raw_public_keys(&identity, PeerKeys::Any)
        };
        let (client, server) = (keys(), keys());
        let begin = Instant::now();
        let mut count = 0;
        while begin.elapsed() < Duration::from_secs(3) {
            Pair::established(&client, &server);
            count += 1;
        }
        let rate = f64::from(count) / begin.elapsed().as_secs_f64();
        println!("{kind:?}: {rate:.0} handshakes per second, both ends together");
    }
}
