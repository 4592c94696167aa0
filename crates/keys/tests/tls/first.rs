//! The first handshake of an association, with raw public keys.

use bytes::{Bytes, BytesMut};
use manypath_dtls::manage::{KeyManagement, PeerIdentity, Role, Roles};
use manypath_keys::tls::{Fingerprint, Identity, IdentityError, IdentityKind, PeerKeys, TlsKeys};

use crate::harness::{CLIENT_PARAMETER, End, Pair, agreement, anybody, identity};

#[test]
fn ends_that_know_nobody_are_encrypted() {
    for kind in [IdentityKind::Ed25519, IdentityKind::P256] {
        let (a, b) = (Identity::generate_kind(kind).unwrap(), identity());
        let client = TlsKeys::raw_public_keys(&a, PeerKeys::Any);
        let server = TlsKeys::raw_public_keys(&b, PeerKeys::Any);
        let pair = Pair::established(&client, &server);
        let identity = |end: &End| end.peer.clone().unwrap().identity;
        assert_eq!(identity(&pair.client), PeerIdentity::PublicKey(b.public_key().clone()));
        assert_eq!(identity(&pair.server), PeerIdentity::PublicKey(a.public_key().clone()));
    }
}

#[test]
fn ends_that_pin_each_other_trust_each_other() {
    let (a, b, c) = (identity(), identity(), identity());
    let client =
        TlsKeys::raw_public_keys(&a, PeerKeys::Pinned(vec![b.fingerprint(), c.fingerprint()]));
    let server = TlsKeys::raw_public_keys(&b, PeerKeys::Pinned(vec![a.fingerprint()]));
    Pair::established(&client, &server);
}

/// The order matters: keys before what they open, the client's last flight before it protects all.
#[test]
fn actions_come_in_the_order_that_associations_need() {
    let pair = Pair::established(&anybody(), &anybody());
    assert_eq!(pair.client.log, ["send 03", "open 3", "send 03", "seal 3", "authenticated"]);
    assert_eq!(
        pair.server.log,
        ["send 03", "open 3", "seal 3", "authenticated", "send 83"],
        "flight, keys, and Protection Established"
    );
}

/// A client of the draft waits for "Protection Established": so it must come, and come last.
#[test]
fn the_server_confirms_that_it_protects() {
    let mut pair = Pair::new(&anybody(), &anybody());
    let mut last = Bytes::new();
    pair.run_changing(|from, message| {
        if from == Role::Server {
            last = message.clone();
        }
        Some(message)
    });
    assert_eq!(last[..], [0x83, 0x01]);
}

/// A server of the draft may take its time with it.
#[test]
fn the_client_does_not_wait_for_the_confirmation() {
    let mut pair = Pair::new(&anybody(), &anybody());
    pair.run_changing(|_, message| (message[0] != 0x83).then_some(message));
    pair.assert_works(3);
}

#[test]
fn bindings_are_those_of_one_association() {
    let (client, server) = (anybody(), anybody());
    let (first, second) =
        (Pair::established(&client, &server), Pair::established(&client, &server));
    assert_ne!(first.client.peer.unwrap().binding, second.client.peer.unwrap().binding);
}

/// It must say nothing of itself to a stranger.
#[test]
fn a_client_refuses_another_server_before_it_shows_its_key() {
    let (expected, other) = (identity(), identity());
    let client =
        TlsKeys::raw_public_keys(&identity(), PeerKeys::Pinned(vec![expected.fingerprint()]));
    let server = TlsKeys::raw_public_keys(&other, PeerKeys::Any);
    let pair = Pair::run_new(&client, &server);
    let fingerprint = other.fingerprint();
    assert_eq!(
        pair.client.log,
        [
            "send 03".to_owned(),
            "send 03".to_owned(),
            format!("fail: the key {fingerprint} is not one that is expected")
        ]
    );
    assert!(!pair.client.failure.as_ref().unwrap().by_peer);
    assert_eq!(
        pair.server.reason(),
        "the peer ended the TLS handshake: it does not accept our key or certificate"
    );
    assert!(pair.server.failure.as_ref().unwrap().by_peer);
    assert!(pair.server.sealing.is_none() && pair.server.peer.is_none());
}

/// The keys protect what it says why.
#[test]
fn a_server_refuses_a_client_with_keys_installed() {
    let (a, b) = (identity(), identity());
    let client = TlsKeys::raw_public_keys(&a, PeerKeys::Pinned(vec![b.fingerprint()]));
    for pins in [vec![], vec![b.fingerprint()]] {
        let server = TlsKeys::raw_public_keys(&b, PeerKeys::Pinned(pins));
        let mut pair = Pair::run_new(&client, &server);
        let fingerprint = a.fingerprint();
        assert_eq!(
            pair.server.log,
            [
                "send 03".to_owned(),
                "open 3".to_owned(),
                "seal 3".to_owned(),
                format!("fail: the key {fingerprint} is not one that is expected")
            ]
        );
        assert!(pair.server.peer.is_none());
        let abort = pair.server.seal(b"abort");
        assert_eq!(pair.client.open(&abort), Some((3, b"abort".to_vec())));
    }
}

/// Somebody between the ends that weakened what they agreed on.
#[test]
fn keys_differ_if_a_parameter_was_changed() {
    for client_sees in [true, false] {
        let changed = Bytes::from([CLIENT_PARAMETER, b"x"].concat());
        let mut agreements = [agreement(Role::Client), agreement(Role::Server)];
        let index = usize::from(client_sees);
        agreements[index].client_parameter = changed.clone();
        agreements[1 - index].server_parameter = changed;
        let [client, server] = agreements;
        let mut pair =
            Pair { client: End::new(&anybody(), client), server: End::new(&anybody(), server) };
        pair.run();
        let (record, answer) = (pair.client.seal(b"ping"), pair.server.seal(b"pong"));
        assert_eq!(pair.server.open(&record), None);
        assert_eq!(pair.client.open(&answer), None);
        assert_ne!(pair.client.peer.unwrap().binding, pair.server.peer.unwrap().binding);
    }
}

/// Where the ClientHello has its first cipher suite, AES-128-GCM: after two bytes of length.
fn first_suite(hello: &[u8]) -> usize {
    let suites = hello.windows(4).position(|bytes| bytes[2..] == [0x13, 0x01] && bytes[0] == 0);
    suites.expect("the suite is offered") + 2
}

#[test]
fn a_weakened_list_of_cipher_suites_is_noticed() {
    let mut pair = Pair::new(&anybody(), &anybody());
    let mut is_first = true;
    pair.run_changing(|_, message| {
        let mut message = BytesMut::from(&message[..]);
        if std::mem::take(&mut is_first) {
            let at = first_suite(&message);
            message[at..at + 2].copy_from_slice(&[0x13, 0x03]);
        }
        Some(message.freeze())
    });
    for end in [&pair.client, &pair.server] {
        assert!(end.failure.is_some() && end.peer.is_none(), "{:?}", end.log);
    }
}

#[test]
fn the_end_that_begins_is_the_client() {
    let keys = anybody();
    assert_eq!(keys.roles(true), Roles::CLIENT);
    assert_eq!(keys.roles(false), Roles::SERVER);
    assert_eq!(keys.methods(), [192]);
}

#[test]
fn identities_are_kept_in_pem() {
    for kind in [IdentityKind::Ed25519, IdentityKind::P256] {
        let identity = Identity::generate_kind(kind).unwrap();
        let pem = identity.to_pem();
        assert!(pem.starts_with("-----BEGIN PRIVATE KEY-----\n"));
        let read = Identity::from_pem(pem.as_bytes()).unwrap();
        assert_eq!(read.kind(), kind);
        assert_eq!(read.fingerprint(), identity.fingerprint());
        assert_eq!(read.public_key(), identity.public_key());
        let text = identity.fingerprint().to_string();
        assert_eq!(text.parse(), Ok(identity.fingerprint()));
        assert!(!format!("{identity:?}").contains(&pem[40..60]));
    }
}

/// Of the tests of RFC 8410, section 10.3; the fingerprint is by
/// `openssl pkey -pubout -outform DER | sha256sum`.
#[test]
fn an_identity_of_another_program_is_read() {
    let pem = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
        -----END PRIVATE KEY-----\n";
    let identity = Identity::from_pem(pem.as_bytes()).unwrap();
    assert_eq!(identity.kind(), IdentityKind::Ed25519);
    let expected = "sha256:a1e9156054e04fac899ae9f275132cdc07a5dbc4ea2c2ad3a1ffc6e0d253681f";
    assert_eq!(identity.fingerprint().to_string(), expected);
    assert_eq!(Fingerprint::of(identity.public_key()).to_string(), expected);
}

#[test]
fn what_is_no_identity_is_refused_with_advice() {
    let error = |pem: &str| Identity::from_pem(pem.as_bytes()).unwrap_err();
    assert_eq!(error(""), IdentityError::NoKey);
    assert_eq!(error("certificates only"), IdentityError::NoKey);
    let sec1 = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n";
    assert!(error(sec1).to_string().contains("openssl pkcs8 -topk8"));
    let junk = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    assert_eq!(error(junk), IdentityError::Unsupported);
    let cut = "-----BEGIN PRIVATE KEY-----\nMC4CAQAw";
    assert!(matches!(error(cut), IdentityError::Pem(_)));
    let p384 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    assert_eq!(error(&p384.serialize_pem()), IdentityError::Unsupported);
    for text in ["", "zz", &"g".repeat(64), &"+1".repeat(32), &"ä".repeat(32)] {
        assert!(text.parse::<Fingerprint>().is_err(), "{text}");
    }
}
