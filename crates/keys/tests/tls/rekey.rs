//! New keys for an association that has some.

use bytes::Bytes;
use manypath_dtls::manage::Role;
use manypath_keys::tls::{ClientAuth, PeerKeys, TlsKeys};
use rcgen::{ExtendedKeyUsagePurpose, KeyPair};

use crate::certificates::{given_client, given_server};
use crate::harness::{End, Pair, agreement, anybody, identity};
use crate::pki::Authority;

const NAME: &str = "receiver.example";

#[test]
fn the_client_begins() {
    let mut pair = Pair::established(&anybody(), &anybody());
    pair.client.log.clear();
    pair.server.log.clear();
    pair.client.rekey();
    pair.client.rekey();
    pair.run();
    assert_eq!(pair.client.log, ["send 04", "open 4", "send 04", "seal 4"]);
    assert_eq!(pair.server.log, ["send 04", "open 4", "seal 4", "send 84"]);
    pair.assert_works(4);
}

#[test]
fn the_server_begins() {
    let mut pair = Pair::established(&anybody(), &anybody());
    pair.client.log.clear();
    pair.server.log.clear();
    pair.server.rekey();
    pair.server.rekey();
    pair.run();
    assert_eq!(pair.server.log, ["send 04", "open 4", "send 04", "seal 4"]);
    assert_eq!(pair.client.log, ["send 04", "open 4", "seal 4", "send 84"]);
    pair.assert_works(4);
}

/// The handshake of the client wins, whoever's first message comes first.
#[test]
fn both_begin_at_once() {
    for server_is_first in [false, true] {
        let mut pair = Pair::established(&anybody(), &anybody());
        pair.client.rekey();
        pair.server.rekey();
        pair.client.log.clear();
        pair.server.log.clear();
        if server_is_first {
            let hello = pair.server.outbox.pop_front().unwrap();
            pair.client.handle(hello);
        }
        pair.run();
        assert_eq!(pair.client.log, ["open 4", "send 04", "seal 4"]);
        assert_eq!(pair.server.log, ["send 04", "open 4", "seal 4", "send 84"]);
        pair.assert_works(4);
    }
}

/// A handshake gives way to the client's only as long as nothing came of it.
#[test]
fn a_handshake_that_was_answered_does_not_give_way() {
    let (client, server) = (anybody(), anybody());
    let mut pair = Pair::established(&client, &server);
    let mut other = Pair::established(&client, &server);
    other.client.rekey();
    let hello = other.client.outbox.pop_front().unwrap();

    pair.server.rekey();
    pair.client.handle(pair.server.outbox.pop_front().unwrap());
    let flight = pair.client.outbox.pop_front().unwrap();
    pair.server.handle(flight.slice(..flight.len() / 2));
    assert_eq!(pair.server.failure, None);
    pair.server.handle(hello);
    assert!(pair.server.failure.is_some(), "{:?}", pair.server.log);
}

/// The end that begins keeps its old keys until the other has confirmed the new ones.
#[test]
fn keys_change_when_the_other_end_is_ready() {
    let mut pair = Pair::established(&anybody(), &anybody());
    pair.client.rekey();
    pair.run_changing(|_, message| (message[0] != 0x84).then_some(message));
    assert_eq!(pair.client.sealing.as_ref().unwrap().epoch(), 3);
    assert_eq!(pair.server.sealing.as_ref().unwrap().epoch(), 4);
    let record = pair.server.seal(b"new");
    assert_eq!(pair.client.open(&record), Some((4, b"new".to_vec())));
    let record = pair.client.seal(b"old");
    assert_eq!(pair.server.open(&record), Some((3, b"old".to_vec())));
    // It is still under way.
    pair.client.rekey();
    assert!(pair.client.outbox.is_empty());
    pair.client.handle(Bytes::from_static(&[0x84, 0x01]));
    pair.assert_works(4);
}

#[test]
fn nothing_begins_before_the_first_keys_are_confirmed() {
    let mut pair = Pair::new(&anybody(), &anybody());
    pair.server.rekey();
    pair.client.rekey();
    assert_eq!((pair.client.outbox.len(), pair.server.outbox.len()), (1, 0));
    pair.run();
    pair.assert_works(3);
}

#[test]
fn fifty_times_with_records_that_come_late() {
    let mut pair = Pair::established(&anybody(), &anybody());
    for epoch in 4..54 {
        let late = [pair.client.seal(b"late"), pair.server.seal(b"late")];
        match epoch % 3 {
            0 => pair.client.rekey(),
            1 => pair.server.rekey(),
            _ => {
                pair.client.rekey();
                pair.server.rekey();
            }
        }
        pair.run();
        pair.assert_works(epoch);
        assert_eq!(pair.server.open(&late[0]), Some((epoch - 1, b"late".to_vec())));
        assert_eq!(pair.client.open(&late[1]), Some((epoch - 1, b"late".to_vec())));
    }
}

/// Each end keeps to its rules for the other, whatever the TLS role of a rekeying.
#[test]
fn certificates_are_checked_by_the_role_in_key_management() {
    let authority = Authority::new("authority");
    let client = authority.client_keys(&authority.client("sender"), NAME);
    let server = authority.server_keys(&authority.server(NAME), ClientAuth::Required);
    let mut pair = Pair::established(&client, &server);
    pair.server.rekey();
    pair.run();
    pair.assert_works(4);
    pair.client.rekey();
    pair.run();
    pair.assert_works(5);
}

/// Puts another end in the place of one that has established an association: as if an attacker
/// knew the keys of the first handshake. The new end has an association of its own with the same
/// peer, and begins to rekey.
fn replace(pair: &mut Pair, role: Role, (client, server): (&TlsKeys, &TlsKeys)) {
    let mut other = Pair::established(client, server);
    match role {
        Role::Client => {
            other.client.rekey();
            pair.client = other.client;
        }
        Role::Server => {
            other.server.rekey();
            pair.server = other.server;
        }
    }
    pair.run();
}

const ANOTHER: &str = "the peer has another identity than in the beginning";

#[test]
fn another_key_is_refused() {
    let (client, server) = (anybody(), anybody());
    let mut pair = Pair::established(&client, &server);
    replace(&mut pair, Role::Client, (&anybody(), &server));
    assert_eq!(pair.server.reason(), ANOTHER);
    assert_eq!(pair.server.opening.newest(), Some(3), "its keys are not installed");

    let mut pair = Pair::established(&client, &server);
    replace(&mut pair, Role::Server, (&client, &anybody()));
    assert_eq!(pair.client.reason(), ANOTHER);
    assert_eq!(pair.client.opening.newest(), Some(3), "its keys are not installed");
}

/// As above, with the other end as the TLS client.
#[test]
fn another_key_is_refused_in_an_answer() {
    let mut pair = Pair::established(&anybody(), &anybody());
    pair.server = Pair::established(&anybody(), &anybody()).server;
    pair.client.log.clear();
    pair.client.rekey();
    pair.run();
    assert_eq!(
        pair.client.log,
        ["send 04", "fail: the peer has another identity than in the beginning"],
        "it does not show its key to the other one"
    );
}

#[test]
fn a_pinned_key_is_refused_in_place_of_another_pinned_key() {
    let (a, b, own) = (identity(), identity(), identity());
    let pins = PeerKeys::Pinned(vec![a.fingerprint(), b.fingerprint()]);
    let server = TlsKeys::raw_public_keys(&own, pins);
    let [a, b] = [a, b].map(|identity| TlsKeys::raw_public_keys(&identity, PeerKeys::Any));
    let mut pair = Pair::established(&a, &server);
    replace(&mut pair, Role::Client, (&b, &server));
    assert_eq!(pair.server.reason(), ANOTHER);
}

/// Certificates are renewed in the lifetime of an association: the name stays.
#[test]
fn a_new_certificate_with_the_same_subject_is_the_same_peer() {
    let authority = Authority::new("authority");
    let server = authority.server_keys(&authority.server(NAME), ClientAuth::Required);
    let client = authority.client_keys(&authority.client("sender"), NAME);
    let renewed = authority.client_keys(&authority.client("sender"), NAME);
    let mut pair = Pair::established(&client, &server);
    replace(&mut pair, Role::Client, (&renewed, &server));
    assert_eq!(pair.server.failure, None);
    assert_eq!(pair.server.opening.newest(), Some(4));
}

#[test]
fn another_subject_is_refused() {
    let authority = Authority::new("authority");
    let server = authority.server_keys(&authority.server(NAME), ClientAuth::Required);
    let nameless = || {
        authority.issue_with("sender", ExtendedKeyUsagePurpose::ClientAuth, |params| {
            params.distinguished_name = rcgen::DistinguishedName::new();
        })
    };
    for (first, second) in [
        (authority.client("sender"), authority.client("other")),
        // An empty subject is nobody's.
        (nameless(), nameless()),
    ] {
        let client = authority.client_keys(&first, NAME);
        let mut pair = Pair::established(&client, &server);
        replace(&mut pair, Role::Client, (&authority.client_keys(&second, NAME), &server));
        assert_eq!(pair.server.reason(), ANOTHER);
    }
}

#[test]
fn the_same_key_with_another_subject_is_the_same_peer() {
    let authority = Authority::new("authority");
    let server = authority.server_keys(&authority.server(NAME), ClientAuth::Required);
    let key = KeyPair::generate().unwrap();
    let with_key = |name| authority.issue_for(name, ExtendedKeyUsagePurpose::ClientAuth, &key);
    let client = authority.client_keys(&with_key("sender"), NAME);
    let mut pair = Pair::established(&client, &server);
    let renamed = authority.client_keys(&with_key("renamed"), NAME);
    replace(&mut pair, Role::Client, (&renamed, &server));
    assert_eq!(pair.server.failure, None);
    assert_eq!(pair.server.opening.newest(), Some(4));
}

/// The server's certificate has to have the right name, also when the server begins.
#[test]
fn the_name_of_the_server_is_checked_when_it_begins() {
    let authority = Authority::new("authority");
    let issued = authority.client("sender");
    let server = authority.server_keys(&authority.server(NAME), ClientAuth::Required);
    let mut pair = Pair::established(&authority.client_keys(&issued, NAME), &server);
    let other = authority.server_keys(&authority.server("other.example"), ClientAuth::Required);
    let elsewhere = authority.client_keys(&issued, "other.example");
    replace(&mut pair, Role::Server, (&elsewhere, &other));
    assert!(pair.client.reason().contains("not valid for name"), "{}", pair.client.reason());
}

/// Ends with a rustls configuration for one role only.
#[test]
fn missing_configurations_leave_rekeying_to_the_other_end() {
    let authority = Authority::new("authority");
    let client_config = given_client(&authority, Some(&authority.client("sender")));
    let server_issued = authority.server(NAME);
    let server_config = given_server(&authority, &server_issued);
    let client = TlsKeys::from_rustls(Some(client_config), None).unwrap();

    let server = TlsKeys::from_rustls(None, Some(server_config)).unwrap();
    let mut pair = Pair::established(&client, &server);
    pair.server.rekey();
    assert!(pair.server.outbox.is_empty(), "it cannot be a TLS client");

    // This server can be one; the client cannot be a TLS server, and begins itself.
    let server = authority.server_keys(&server_issued, ClientAuth::Required);
    let mut pair = Pair::established(&client, &server);
    pair.client.log.clear();
    pair.server.rekey();
    pair.run();
    assert_eq!(pair.client.log, ["send 04", "open 4", "send 04", "seal 4"]);
    pair.assert_works(4);
}

#[test]
fn a_role_without_configuration_fails_at_once() {
    let authority = Authority::new("authority");
    let client = given_client(&authority, None);
    let client = TlsKeys::from_rustls(Some(client), None).unwrap();
    let end = End::new(&client, agreement(Role::Server));
    assert_eq!(end.reason(), "there is no TLS configuration for this end's role");
}
