use std::time::Duration;

use proptest::prelude::*;
use turn_types::stun::attribute::{ErrorCode, Nonce, Realm, Username};
use turn_types::stun::message::TransactionId;

use super::*;
use crate::message::sign;
use crate::testing::*;
use crate::{Client, ClientOptions};

mod moving;
mod numbers;
mod open;
mod strangers;

const HOME: &str = "192.0.2.9:7000";
const PEER: &str = "198.51.100.5:9899";

fn answer(reply: Reply) -> Vec<u8> {
    match reply {
        Reply::Answer(bytes) => bytes,
        other => panic!("{other:?}"),
    }
}

fn code(answer: &[u8]) -> u16 {
    let message = Message::from_bytes(answer).unwrap();
    message.attribute::<ErrorCode>().map_or(0, |e| e.code())
}

/// A request of this method with ann's credentials, and more attributes.
fn signed(
    relay: &Relay,
    now: Instant,
    from: SocketAddr,
    method: turn_types::stun::message::Method,
    more: impl FnOnce(&mut MessageWriteVec, TransactionId),
) -> Vec<u8> {
    let mut message = Message::builder_request(method, MessageWriteVec::new());
    let id = message.transaction_id();
    more(&mut message, id);
    add(&mut message, &Username::new("ann").unwrap());
    add(&mut message, &Realm::new("test").unwrap());
    add(&mut message, &Nonce::new(&relay.server.nonces.make(now, from)).unwrap());
    sign(message, &long_term_key("ann", "a secret", "test"))
}

#[test]
fn strangers_get_a_challenge_and_nothing_else() {
    let mut relay = Relay::new(Limits::default());
    let allocate =
        Message::builder_request(turn_types::message::ALLOCATE, MessageWriteVec::new()).finish();
    let challenge = answer(relay.handle(at(0), address(HOME), &allocate));
    assert_eq!(code(&challenge), 401);
    // IPv4 and UDP headers are 28 bytes.
    assert!(challenge.len() + 28 <= 5 * (allocate.len() + 28) / 2, "{}", challenge.len());

    let wrong = signed(&relay, at(0), address(HOME), turn_types::message::ALLOCATE, |_, _| ());
    let last = wrong.len() - 1;
    // The signature; the name of the user, which begins behind the headers.
    for index in [last, 24] {
        let mut bad = wrong.clone();
        bad[index] ^= 1;
        assert_eq!(code(&answer(relay.handle(at(0), address(HOME), &bad))), 401);
    }
    // A nonce works from the address it was given to only, whoever asks.
    assert_eq!(code(&answer(relay.handle(at(0), address("192.0.2.9:7001"), &wrong))), 438);
    assert_eq!((relay.server.allocations(), relay.ports.open.len()), (0, 0));
    assert_eq!(relay.server.stats().allocated, 0);
}

#[test]
fn what_is_not_refreshed_ends_and_its_socket_closes() {
    let mut relay = Relay::new(Limits::default());
    let mut client = relay.client(at(0), address(HOME), address(PEER));
    let ends = relay.server.poll_timeout().unwrap();
    assert_eq!(ends, at(600_000));
    relay.timeout(at(599_999));
    assert_eq!(relay.ports.open.len(), 1);
    relay.timeout(ends);
    assert_eq!((relay.server.allocations(), relay.ports.open.len()), (0, 0));
    assert_eq!(relay.server.stats().expired, 1);
    assert_eq!(relay.server.poll_timeout(), None);

    let packet = client.header(ends, address(PEER), 0).unwrap();
    assert_eq!(relay.handle(ends, address(HOME), &packet), Reply::None);
    let few = Limits { lifetime_max: Duration::from_secs(20), ..Limits::default() };
    let mut relay = Relay::new(few);
    relay.client(at(0), address(HOME), address(PEER));
    assert_eq!(relay.server.poll_timeout(), Some(at(20_000)), "the operator's limit");
}

#[test]
fn a_permission_ends_unless_renewed() {
    let mut relay = Relay::new(Limits::default());
    let mut client = relay.client(at(0), address(HOME), address(PEER));
    let packet = client.header(at(0), address(PEER), 0).unwrap();
    assert_ne!(relay.handle(at(299_000), address(HOME), &packet), Reply::None);
    assert_eq!(relay.handle(at(300_000), address(HOME), &packet), Reply::None);
    let id = *relay.ports.open.keys().next().unwrap();
    assert_eq!(relay.server.handle_peer(at(300_000), id, address(PEER), b"x"), None);
}

#[test]
fn peers_without_permission_do_not_come_through() {
    let mut relay = Relay::new(Limits::default());
    relay.client(at(0), address(HOME), address(PEER));
    let id = *relay.ports.open.keys().next().unwrap();
    assert_eq!(relay.server.handle_peer(at(0), id, address("198.51.100.6:9899"), b"x"), None);
    // Permissions are of an IP address; without a channel for the port it is a Data indication.
    let other_port =
        relay.server.handle_peer(at(0), id, address("198.51.100.5:1"), b"xyz").unwrap();
    let Prefix::Indication(message) = other_port.prefix else { panic!("no channel") };
    let message = Message::from_bytes(&message).unwrap();
    assert_eq!(message.attribute::<Data>().unwrap().data(), b"xyz");
}

#[test]
fn send_indications_pass_to_permitted_peers_only() {
    let mut relay = Relay::new(Limits::default());
    relay.client(at(0), address(HOME), address(PEER));
    let send = |peer: &str| {
        let mut message = Message::builder_indication(SEND, MessageWriteVec::new());
        let id = message.transaction_id();
        add(&mut message, &XorPeerAddress::new(address(peer), id));
        add(&mut message, &Data::new(b"payload"));
        message.finish()
    };
    let bytes = send(PEER);
    let Reply::ToPeer { peer, payload, .. } = relay.handle(at(0), address(HOME), &bytes) else {
        panic!("refused")
    };
    assert_eq!((peer, &bytes[payload]), (address(PEER), &b"payload"[..]));
    assert_eq!(relay.handle(at(0), address(HOME), &send("198.51.100.6:1")), Reply::None);
    assert_eq!(relay.handle(at(0), address("192.0.2.1:1"), &send(PEER)), Reply::None);
}

#[test]
fn another_user_cannot_touch_an_allocation() {
    let mut relay = Relay::new(Limits::default());
    relay.client(at(0), address(HOME), address(PEER));
    let mut bob = Client::new(at(0), "bob", "another", ClientOptions::default());
    let events = relay.serve(at(0), address(HOME), &mut bob);
    assert_eq!(events, [crate::ClientEvent::Failed(crate::ClientError::Mismatch)]);
    assert_eq!(relay.server.allocations(), 1, "and his attempt to give it back failed");
}

#[test]
fn the_rate_of_a_user_is_bounded_over_all_of_his_allocations() {
    let rate = 1_000_000;
    let mut relay = Relay::new(Limits { user_bytes_per_s: rate, ..Limits::default() });
    let (a, b) = (address("192.0.2.9:1"), address("192.0.2.9:2"));
    let mut clients =
        [relay.client(at(0), a, address(PEER)), relay.client(at(0), b, address(PEER))];
    let ids: Vec<_> = relay.ports.open.keys().copied().collect();
    let mut passed = 0;
    for ms in 0..4000 {
        for (index, from) in [a, b].into_iter().enumerate() {
            let mut packet = clients[index].header(at(ms), address(PEER), 972).unwrap().to_vec();
            packet.resize(976, 0);
            passed += 1000 * u64::from(relay.handle(at(ms), from, &packet) != Reply::None);
            let back = relay.server.handle_peer(at(ms), ids[index], address(PEER), &packet[4..]);
            passed += 1000 * u64::from(back.is_some());
        }
    }
    assert!((4 * rate..=4 * rate + rate / 4).contains(&passed), "{passed} of 16 MB in 4 s");
    assert!(relay.server.stats().over_rate > 0);
}

#[test]
fn memory_is_bounded_for_each_user_and_in_all() {
    let limits = Limits {
        allocations_total: 5,
        allocations_per_user: 3,
        peers_per_allocation: 4,
        ..Limits::default()
    };
    let mut relay = Relay::new(limits);
    let ask = |relay: &mut Relay, user: &str, password: &str, port: u16| {
        let mut client = Client::new(at(0), user, password, ClientOptions::default());
        for i in 0..20u8 {
            client.add_peer(at(0), SocketAddr::new([198, 51, 100, i].into(), 1));
        }
        let from = SocketAddr::new([192, 0, 2, 1].into(), port);
        relay.serve(at(0), from, &mut client)
    };
    let mut outcomes = Vec::new();
    for port in 1..=4 {
        outcomes.push(ask(&mut relay, "ann", "a secret", port).len());
    }
    assert_eq!(outcomes, [21, 21, 21, 1], "486 for the fourth");
    assert!(matches!(
        &ask(&mut relay, "bob", "another", 10)[..],
        [crate::ClientEvent::Allocated { .. }, rest @ ..]
            if rest.iter().filter(|e| matches!(e, crate::ClientEvent::PeerReady(_))).count() == 4
    ));
    ask(&mut relay, "bob", "another", 11);
    assert_eq!(
        ask(&mut relay, "bob", "another", 12),
        [crate::ClientEvent::Failed(crate::ClientError::Full)]
    );
    assert_eq!((relay.server.allocations(), relay.ports.open.len()), (5, 5));
    assert_eq!(relay.server.ends.len(), 5);
}

#[test]
fn a_repeated_request_gets_the_same_answer() {
    let mut relay = Relay::new(Limits::default());
    let request = signed(&relay, at(0), address(HOME), turn_types::message::ALLOCATE, |m, _| {
        add(m, &turn_types::attribute::RequestedTransport::new(17));
    });
    let first = answer(relay.handle(at(0), address(HOME), &request));
    let second = answer(relay.handle(at(10), address(HOME), &request));
    let relayed = |bytes: &[u8]| {
        let message = Message::from_bytes(bytes).unwrap();
        let id = message.transaction_id();
        message.attribute::<turn_types::attribute::XorRelayedAddress>().unwrap().addr(id)
    };
    assert_eq!(relayed(&first), relayed(&second));
    assert_eq!(relay.ports.open.len(), 1);
}

#[test]
fn what_is_not_supported_is_said() {
    let mut relay = Relay::new(Limits::default());
    let allocate = turn_types::message::ALLOCATE;
    let home = address(HOME);
    let tcp = signed(&relay, at(0), home, allocate, |m, _| {
        add(m, &turn_types::attribute::RequestedTransport::new(6));
    });
    let even = signed(&relay, at(0), home, allocate, |m, _| {
        add(m, &turn_types::attribute::RequestedTransport::new(17));
        add(m, &turn_types::attribute::EvenPort::new(true));
    });
    let dont_fragment = signed(&relay, at(0), home, allocate, |m, _| {
        add(m, &turn_types::attribute::DontFragment::new());
    });
    let none = signed(&relay, at(0), home, allocate, |_, _| ());
    let refresh = signed(&relay, at(0), home, turn_types::message::REFRESH, |_, _| ());
    let connect = signed(&relay, at(0), home, turn_types::message::CONNECT, |_, _| ());
    for (request, expected) in
        [(tcp, 442), (even, 508), (dont_fragment, 420), (none, 400), (refresh, 437), (connect, 400)]
    {
        assert_eq!(code(&answer(relay.handle(at(0), home, &request))), expected);
    }
    assert_eq!(relay.server.allocations(), 0);
}

#[test]
fn an_even_port_is_given_to_those_who_ask() {
    let mut relay = Relay::new(Limits::default());
    for client in ["192.0.2.9:1", "192.0.2.9:2", "192.0.2.9:3"] {
        let request =
            signed(&relay, at(0), address(client), turn_types::message::ALLOCATE, |m, _| {
                add(m, &turn_types::attribute::RequestedTransport::new(17));
                add(m, &turn_types::attribute::EvenPort::new(false));
            });
        assert_eq!(code(&answer(relay.handle(at(0), address(client), &request))), 0);
    }
    assert_eq!(relay.ports.open.len(), 3);
    assert!(relay.ports.open.values().all(|a| a.port() % 2 == 0));
}

#[test]
fn a_channel_belongs_to_one_peer() {
    let mut relay = Relay::new(Limits::default());
    relay.client(at(0), address(HOME), address(PEER));
    let bind = |relay: &Relay, number: u16, peer: &str| {
        let peer = address(peer);
        signed(relay, at(0), address(HOME), turn_types::message::CHANNEL_BIND, |m, id| {
            add(m, &turn_types::attribute::ChannelNumber::new(number));
            add(m, &XorPeerAddress::new(peer, id));
        })
    };
    for (number, peer, expected) in [
        (0x4000, PEER, 0),
        (0x4000, "198.51.100.6:1", 400),
        (0x4001, PEER, 400),
        (0x3fff, "198.51.100.7:1", 400),
        (0x8000, "198.51.100.7:1", 400),
        (0x4001, "198.51.100.7:1", 0),
        (0x4002, "127.0.0.1:1", 403),
        (0x4002, "[2001:db8::1]:1", 443),
    ] {
        let request = bind(&relay, number, peer);
        let said = code(&answer(relay.handle(at(0), address(HOME), &request)));
        assert_eq!(said, expected, "{number:#x} {peer}");
    }
}

/// Datagrams that a client would send in its life, one of each kind.
fn samples() -> Vec<Vec<u8>> {
    let relay = Relay::new(Limits::default());
    let method =
        |m, f: fn(&mut MessageWriteVec, TransactionId)| signed(&relay, at(0), address(HOME), m, f);
    use turn_types::attribute as a;
    use turn_types::message as m;
    vec![
        method(m::ALLOCATE, |m, _| {
            add(m, &a::RequestedTransport::new(17));
            crate::Access::Open.add_to(m);
            crate::message::add_rendezvous_number(m, 7);
        }),
        method(m::REFRESH, |m, _| add(m, &a::Lifetime::new(100))),
        method(m::CREATE_PERMISSION, |m, id| add(m, &XorPeerAddress::new(address(PEER), id))),
        method(m::CHANNEL_BIND, |m, id| {
            add(m, &a::ChannelNumber::new(0x4005));
            add(m, &XorPeerAddress::new(address(PEER), id));
        }),
        [&channel_header(0x4005, 10)[..], &[1; 10]].concat(),
        Message::builder_request(BINDING, MessageWriteVec::new()).finish(),
        crate::Lookup::new(7).request().to_vec(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Nothing that arrives breaks it: random bytes, and cut and changed messages.
    #[test]
    fn garbage_is_survived(
        random in prop::collection::vec(any::<u8>(), 0..200),
        cut in 0usize..200,
        flips in prop::collection::vec((0usize..200, any::<u8>()), 0..6),
        order in prop::collection::vec(0usize..7, 1..12),
    ) {
        let mut relay = Relay::new(Limits { allocations_total: 2, ..Limits::default() });
        let samples = samples();
        let home = address(HOME);
        for (step, &which) in order.iter().enumerate() {
            let now = at(step as u64);
            let good = &samples[which];
            let mut bad = good[..cut.min(good.len())].to_vec();
            for &(index, value) in &flips {
                if let Some(byte) = bad.get_mut(index) {
                    *byte = value;
                }
            }
            for datagram in [&bad, &random, good] {
                if let Reply::ToPeer { payload, .. } = relay.handle(now, home, datagram) {
                    prop_assert!(datagram.get(payload).is_some(), "inside of the datagram");
                }
                let mut client = Client::new(now, "ann", "a secret", ClientOptions::default());
                if let crate::Received::Data { payload, .. } = client.handle(now, datagram) {
                    prop_assert!(datagram.get(payload).is_some());
                }
            }
            prop_assert!(relay.server.allocations() <= 1);
            prop_assert_eq!(relay.ports.open.len(), relay.server.allocations());
        }
    }
}
