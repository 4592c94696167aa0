//! Open allocations: peers without a channel, and relays that grant none.

use std::collections::BTreeSet;

use super::*;
use crate::Server;

const STRANGER: &str = "198.51.100.77:40000";

/// The address of one of many strangers.
fn stranger(number: u16) -> SocketAddr {
    SocketAddr::new([198, 51, 100, (number % 200) as u8].into(), 1024 + number)
}

/// A packet of `peer` comes to the client; its payload.
fn deliver(relay: &mut Relay, now: Instant, client: &mut Client, peer: SocketAddr) -> Vec<u8> {
    let id = relay.allocation(client);
    let datagram = relay.brought(now, id, peer, b"hello").expect("let in");
    let Received::Data { peer: from, payload } = client.handle(now, &datagram) else {
        panic!("it is dropped")
    };
    assert_eq!(from, peer);
    datagram[payload].to_vec()
}

/// The client's packet to `peer` as the relay gets it.
fn wrapped(client: &mut Client, now: Instant, peer: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let header = client.header(now, peer, payload.len()).expect("it can be sent");
    [&header[..], payload, &[0; 3][..header.padding()]].concat()
}

fn check_answer(relay: &mut Relay, now: Instant, client: &mut Client, peer: SocketAddr) -> usize {
    let packet = wrapped(client, now, peer, b"an answer");
    let reply = relay.handle(now, address(HOME), &packet);
    let Reply::ToPeer { peer: to, payload, .. } = reply else { panic!("not forwarded") };
    assert_eq!((to, &packet[payload]), (peer, &b"an answer"[..]));
    packet.len()
}

#[test]
fn a_stranger_is_heard_and_answered_without_a_channel() {
    let mut relay = Relay::new(Limits::default());
    let mut client = relay.open_client(at(0), address(HOME));
    let peer = address(STRANGER);
    assert_eq!(deliver(&mut relay, at(1), &mut client, peer), b"hello");
    assert_eq!(check_answer(&mut relay, at(2), &mut client, peer), 36 + 12, "Send indication");
    assert_eq!(relay.serve(at(2), address(HOME), &mut client), [], "nothing is asked for him");

    client.add_peer(at(3), peer);
    assert_eq!(check_answer(&mut relay, at(3), &mut client, peer), 36 + 12, "not bound yet");
    let events = relay.serve(at(3), address(HOME), &mut client);
    assert_eq!(events, [ClientEvent::PeerReady(peer)]);
    assert_eq!(check_answer(&mut relay, at(4), &mut client, peer), 4 + 9, "ChannelData");
    assert_eq!(deliver(&mut relay, at(4), &mut client, peer), b"hello");
}

#[test]
fn a_client_that_wants_no_strangers_hears_none() {
    let mut relay = Relay::new(Limits::default());
    let mut client = relay.client(at(0), address(HOME), address(PEER));
    let indication = crate::server::data_indication(address(STRANGER), b"hello").unwrap();
    assert_eq!(client.handle(at(1), &indication), Received::Other);
    assert_eq!(client.header(at(1), address(STRANGER), 5), None);
}

#[test]
fn a_flood_of_strangers_leaves_channels_for_others() {
    let mut relay = Relay::new(Limits::default());
    let mut client = relay.open_client(at(0), address(HOME));
    for number in 0..10_000 {
        let now = at(u64::from(number));
        deliver(&mut relay, now, &mut client, stranger(number));
        client.add_stranger(now, stranger(number));
        relay.serve(now, address(HOME), &mut client);
        client.remove_peer(stranger(number));
    }
    let known = address(PEER);
    client.add_peer(at(10_000), known);
    let events = relay.serve(at(10_000), address(HOME), &mut client);
    assert_eq!(events, [ClientEvent::PeerReady(known)]);
    // Strangers without a channel are answered all the same.
    for number in [0, 9999] {
        check_answer(&mut relay, at(10_001), &mut client, stranger(number));
    }
}

#[test]
fn the_place_of_a_channel_is_used_again_but_its_number_only_later() {
    let mut relay = Relay::new(Limits { peers_per_allocation: 1000, ..Limits::default() });
    let mut client = relay.open_client(at(0), address(HOME));
    let number_of = |relay: &mut Relay, client: &mut Client, now, peer| {
        client.add_peer(now, peer);
        relay.serve(now, address(HOME), client);
        let header = client.header(now, peer, 5).unwrap();
        assert_eq!(header.len(), 4, "{peer} has a channel");
        u16::from_be_bytes([header[0], header[1]])
    };
    // Two at a time, much more often than there are places.
    let mut numbers = BTreeSet::new();
    for peer in 0..100 {
        let now = at(1000 * u64::from(peer));
        let number = number_of(&mut relay, &mut client, now, stranger(peer));
        assert!(numbers.insert(number), "{number:#x} belongs to another peer");
        client.remove_peer(stranger(peer.saturating_sub(1)));
    }
    let again = number_of(&mut relay, &mut client, at(100_000), stranger(7));
    assert_eq!(again, 0x4007, "the peer has its number back");
    client.remove_peer(stranger(7));
    // The relay forgets channels after 600 s, and 300 s more pass.
    let later = at(100_000 + 961_000);
    run(&mut relay, &mut client, later);
    assert!(numbers.contains(&number_of(&mut relay, &mut client, later, stranger(500))));
    assert_eq!(relay.server.stats().refused, 0, "the relay had no objection");
}

#[test]
fn a_channel_that_is_given_up_is_not_bound_again() {
    let mut relay = Relay::new(Limits::default());
    let mut client = relay.open_client(at(0), address(HOME));
    client.add_peer(at(0), address(PEER));
    relay.serve(at(0), address(HOME), &mut client);
    client.remove_peer(address(PEER));
    assert_eq!(check_answer(&mut relay, at(1), &mut client, address(PEER)), 36 + 12);
    // The client hears packets that the relay still sends through it.
    assert_eq!(deliver(&mut relay, at(1), &mut client, address(PEER)), b"hello");
    let id = relay.allocation(&client);
    assert_eq!(run(&mut relay, &mut client, at(601_000)), []);
    let datagram = relay.brought(at(601_000), id, address(PEER), b"hello").unwrap();
    assert!(datagram.len() > 36, "the relay has forgotten the channel");
}

/// Times, in ms, at which the client sends something while nothing flows.
fn spoken(client: &mut Client, relay: &mut Relay, until: u64) -> Vec<u64> {
    let mut times = Vec::new();
    while let Some(now) = client.poll_timeout().filter(|&at_| at_ <= at(until)) {
        client.handle_timeout(now);
        times.push(now.as_nanos() / 1_000_000);
        relay.serve(now, address(HOME), client);
    }
    times
}

#[test]
fn a_nat_hears_of_an_idle_client_every_15_s() {
    let mut relay = Relay::new(Limits::default());
    let mut client = relay.open_client(at(0), address(HOME));
    let expected: Vec<u64> = (1..=40).map(|i| 15_000 * i).collect();
    assert_eq!(spoken(&mut client, &mut relay, 600_000), expected);
    // Packets to peers do as well. A second after the last packet of a peer the relay is
    // asked.
    for half in 1201..1320 {
        let now = at(500 * half);
        check_answer(&mut relay, now, &mut client, address(PEER));
        deliver(&mut relay, now, &mut client, address(PEER));
        assert_eq!(client.poll_timeout(), Some(now + Duration::from_secs(1)));
    }
    assert_eq!(spoken(&mut client, &mut relay, 690_000), [660_500, 675_500]);
    let mut usual = relay.client(at(0), address("192.0.2.9:7001"), address(PEER));
    assert_eq!(usual.poll_timeout(), Some(at(240_000)), "a client without an open one is silent");
    assert_eq!(usual.poll_transmit(), None);
}

#[test]
fn an_idle_client_notices_that_the_relay_was_started_anew() {
    let mut relay = Relay::new(Limits::default());
    let mut client = relay.open_client(at(0), address(HOME));
    let old = client.relayed();
    relay = Relay::new(Limits::default());
    let _other = relay.client(at(1000), address("192.0.2.10:1"), address(PEER));
    let events = run(&mut relay, &mut client, at(15_000));
    let [
        ClientEvent::Failed(ClientError::Mismatch),
        ClientEvent::Allocated { relayed, access: Access::Open, number: None },
    ] = events[..]
    else {
        panic!("{events:?}")
    };
    assert_ne!(Some(relayed), old);
    assert_eq!(deliver(&mut relay, at(15_001), &mut client, address(STRANGER)), b"hello");
}

/// A relay that grants no open allocations, such as another program's, and forwards to `allow`.
fn without_open(allow: &str) -> Relay {
    let mut config = config(Limits::default());
    config.grants_open = false;
    config.peers.allow.push(allow.parse().unwrap());
    Relay { server: Server::new(at(0), config), ports: Ports::default() }
}

#[test]
fn without_an_open_allocation_users_of_the_same_relay_get_through() {
    let mut relay = without_open("203.0.113.1");
    let options = ClientOptions { access: Access::Open, ..ClientOptions::default() };
    let mut client = Client::new(at(0), "ann", "a secret", options);
    let events = relay.serve(at(0), address(HOME), &mut client);
    let [ClientEvent::Allocated { relayed, access: Access::Permitted, number: None }] = events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(run(&mut relay, &mut client, at(1)), [], "the permission is no event");

    let near = address("192.0.2.9:7001");
    let mut sender = relay.client(at(1), near, relayed);
    for second in [1, 290, 3000] {
        let now = at(1000 * second);
        assert_eq!(run(&mut relay, &mut client, now), []);
        sender = relay.client(now, address(&format!("192.0.2.9:{}", 8000 + second)), relayed);
        let from = sender.relayed().unwrap();
        assert_eq!(deliver(&mut relay, now, &mut client, from), b"hello", "after {second} s");
        check_answer(&mut relay, now, &mut client, from);
    }
    drop(sender);
    let id = relay.allocation(&client);
    assert_eq!(relay.brought(at(3_000_000), id, address(STRANGER), b"hello"), None);
}

#[test]
fn a_relay_that_lets_nobody_in_says_so() {
    let mut relay = without_open("192.0.2.0/24");
    let options = ClientOptions { access: Access::Open, ..ClientOptions::default() };
    let mut client = Client::new(at(0), "ann", "a secret", options);
    relay.serve(at(0), address(HOME), &mut client);
    let relayed = client.relayed().unwrap();
    let refused = ClientEvent::PeerRefused(relayed, ClientError::Forbidden);
    assert_eq!(run(&mut relay, &mut client, at(100)), [refused]);
}
