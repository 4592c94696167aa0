mod channels;
mod moving;
mod numbers;
mod open;

use super::*;
use crate::testing::*;
use crate::{Limits, Reply};

const HOME: &str = "192.0.2.9:7000";
const PEER: &str = "198.51.100.5:9899";

/// Both directions of the way to the peer.
fn check_way(relay: &mut Relay, now: Instant, client: &mut Client) {
    let (home, peer) = (address(HOME), address(PEER));
    let mut packet = client.header(now, peer, 5).expect("there is a way").to_vec();
    packet.extend(b"hello");
    let Reply::ToPeer { allocation, peer: to, payload } = relay.handle(now, home, &packet) else {
        panic!("not forwarded")
    };
    assert_eq!((to, &packet[payload]), (peer, &b"hello"[..]));
    assert_eq!(Some(relay.ports.open[&allocation]), client.relayed());

    let back = relay.server.handle_peer(now, allocation, peer, b"hi").expect("permitted");
    assert_eq!(back.client, home);
    let crate::Prefix::Channel(header) = back.prefix else { panic!("there is a channel") };
    let datagram = [&header[..], b"hi"].concat();
    assert_eq!(client.handle(now, &datagram), Received::Data { peer, payload: 4..6 });
}

/// Lets time pass until `until`, as a driver would.
fn run(relay: &mut Relay, client: &mut Client, until: Instant) -> Vec<ClientEvent> {
    let mut events = Vec::new();
    for _ in 0..10_000 {
        let next = client.poll_timeout().into_iter().chain(relay.server.poll_timeout()).min();
        let Some(now) = next.filter(|&t| t <= until) else { return events };
        client.handle_timeout(now);
        relay.timeout(now);
        events.extend(relay.serve(now, address(HOME), client));
    }
    panic!(
        "a timer that never rests: {:?} {:?}",
        client.poll_timeout(),
        relay.server.poll_timeout()
    );
}

#[test]
fn packets_go_both_ways_through_a_channel() {
    let mut relay = Relay::new(Limits::default());
    let mut client = relay.client(at(0), address(HOME), address(PEER));
    check_way(&mut relay, at(10), &mut client);
    assert_eq!(client.header(at(10), address("198.51.100.6:9899"), 5), None, "not asked for");
}

#[test]
fn an_allocation_and_its_channel_live_for_hours() {
    let mut relay = Relay::new(Limits::default());
    let mut client = relay.client(at(0), address(HOME), address(PEER));
    let relayed = client.relayed();
    for hour in 1..=5u64 {
        let now = at(hour * 3_600_000);
        assert_eq!(run(&mut relay, &mut client, now), [], "nonces expire, and are renewed");
        check_way(&mut relay, now, &mut client);
        assert_eq!(client.relayed(), relayed);
    }
}

#[test]
fn a_wrong_password_is_final() {
    let mut relay = Relay::new(Limits::default());
    let mut client = Client::new(at(0), "ann", "a guess", ClientOptions::default());
    let events = relay.serve(at(0), address(HOME), &mut client);
    assert_eq!(events, [ClientEvent::Failed(ClientError::NotAuthorised)]);
    assert_eq!(client.poll_timeout(), None);
    assert!(ClientError::NotAuthorised.to_string().contains("401"));
}

#[test]
fn a_relay_that_is_silent_is_asked_again_and_given_up_and_tried_later() {
    let mut client = Client::new(at(0), "ann", "a secret", ClientOptions::default());
    assert!(client.poll_transmit().is_some());
    let mut times = vec![at(0)];
    let mut events = Vec::new();
    while let Some(now) = client.poll_timeout().filter(|&t| t < at(30_000)) {
        client.handle_timeout(now);
        times.extend(std::iter::from_fn(|| client.poll_transmit()).map(|_| now));
        events.extend(std::iter::from_fn(|| client.poll_event()).map(|e| (now, e)));
    }
    let expected = [0, 500, 1500, 3500, 7500, 15500, 25500, 26000, 27000, 29000];
    assert_eq!(times, expected.map(at));
    let silent = ClientEvent::Failed(ClientError::NoAnswer);
    assert_eq!(events, [3500, 23_500, 29_000].map(|ms| (at(ms), silent.clone())));
}

#[test]
fn a_relay_that_was_started_anew_is_noticed_and_gives_a_new_address() {
    let mut relay = Relay::new(Limits::default());
    let mut client = relay.client(at(0), address(HOME), address(PEER));
    let old = client.relayed();
    relay = Relay::new(Limits::default());
    let _other = relay.client(at(1000), address("192.0.2.10:1"), address(PEER));

    assert!(client.header(at(2000), address(PEER), 5).is_some());
    let events = run(&mut relay, &mut client, at(8000));
    let [
        ClientEvent::Failed(ClientError::Mismatch),
        ClientEvent::Allocated { relayed: new, .. },
        ClientEvent::PeerReady(_),
    ] = events[..]
    else {
        panic!("{events:?}")
    };
    assert_ne!(Some(new), old);
    check_way(&mut relay, at(8000), &mut client);
}

#[test]
fn errors_say_what_to_do() {
    let few = Limits { allocations_per_user: 1, ..Limits::default() };
    let mut relay = Relay::new(few);
    relay.client(at(0), address(HOME), address(PEER));
    let mut second = Client::new(at(0), "ann", "a secret", ClientOptions::default());
    let events = relay.serve(at(0), address("192.0.2.9:7001"), &mut second);
    assert_eq!(events, [ClientEvent::Failed(ClientError::Quota)]);
    assert!(second.poll_timeout().is_some(), "others may leave: it tries again");

    let mut bob = Client::new(at(0), "bob", "another", ClientOptions::default());
    let private = address("10.0.0.1:80");
    bob.add_peer(at(0), private);
    let events = relay.serve(at(0), address("192.0.2.9:7002"), &mut bob);
    assert_eq!(events[1..], [ClientEvent::PeerRefused(private, ClientError::Forbidden)]);

    bob.close(at(0));
    relay.serve(at(0), address("192.0.2.9:7002"), &mut bob);
    let mut v6 = Client::new(
        at(0),
        "bob",
        "another",
        ClientOptions { v6: true, ..ClientOptions::default() },
    );
    let events = relay.serve(at(0), address("192.0.2.9:7003"), &mut v6);
    assert_eq!(events, [ClientEvent::Failed(ClientError::AddressFamily)]);
}

#[test]
fn closing_gives_the_allocation_back() {
    let mut relay = Relay::new(Limits::default());
    let mut client = relay.client(at(0), address(HOME), address(PEER));
    client.close(at(5));
    assert_eq!(relay.serve(at(5), address(HOME), &mut client), []);
    assert_eq!((relay.server.allocations(), relay.ports.open.len()), (0, 0));
    assert_eq!((client.relayed(), client.poll_timeout()), (None, None));
    assert_eq!(relay.server.stats().expired, 0);
}

#[test]
fn an_allocation_of_an_earlier_life_is_replaced() {
    let mut relay = Relay::new(Limits::default());
    relay.client(at(0), address(HOME), address(PEER));
    // The program was restarted and has the same port.
    let mut client = Client::new(at(1000), "ann", "a secret", ClientOptions::default());
    client.add_peer(at(1000), address(PEER));
    let mut events = relay.serve(at(1000), address(HOME), &mut client);
    events.extend(run(&mut relay, &mut client, at(4000)));
    assert_eq!(events[0], ClientEvent::Failed(ClientError::Mismatch));
    assert!(matches!(events[1], ClientEvent::Allocated { .. }), "{events:?}");
    assert_eq!(relay.server.allocations(), 1);
    check_way(&mut relay, at(4000), &mut client);
}

#[test]
fn forged_and_damaged_answers_change_nothing() {
    let mut relay = Relay::new(Limits::default());
    let mut client = Client::new(at(0), "ann", "a secret", ClientOptions::default());
    let first = client.poll_transmit().unwrap();
    let Reply::Answer(challenge) = relay.handle(at(0), address(HOME), &first) else { panic!() };
    client.handle(at(0), &challenge);
    let request = client.poll_transmit().unwrap();
    let Reply::Answer(good) = relay.handle(at(0), address(HOME), &request) else { panic!() };
    // The length field is not signed, but says nothing either: a datagram has an end.
    for index in (0..good.len()).filter(|i| ![2, 3].contains(i)) {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[index] ^= 1 << bit;
            client.handle(at(1), &bad);
            client.handle(at(1), &good[..index]);
        }
    }
    assert_eq!(client.relayed(), None);
    client.handle(at(1), &good);
    assert!(client.relayed().is_some());
}

#[test]
fn the_relay_traces_the_route_to_a_peer_for_its_user() {
    let mut relay = Relay::new(Limits::default());
    let (home, peer) = (address(HOME), address(PEER));
    let mut client = relay.client(at(0), home, peer);
    client.trace(at(0), peer);
    client.trace(at(0), peer);
    assert_eq!(relay.serve(at(0), home, &mut client), []);
    let wanted = relay.server.poll_trace().expect("a route to trace");
    assert_eq!((wanted.peer, relay.server.poll_trace()), (peer.ip(), None));
    // Meanwhile it is asked once a second.
    assert_eq!(run(&mut relay, &mut client, at(2500)), []);
    let hop = crate::RouteHop { address: [198, 51, 100, 1].into(), rtt: Duration::from_millis(4) };
    let route = RelayRoute { hops: vec![None, Some(hop)], reached: false };
    relay.server.handle_trace(at(2600), wanted, route.clone());
    let traced = [ClientEvent::Traced(peer, Some(route))];
    assert_eq!(run(&mut relay, &mut client, at(4000)), traced);
    client.trace(at(4000), peer);
    assert_eq!(relay.serve(at(4000), home, &mut client), traced, "known by now");
}

#[test]
fn no_route_is_told_to_hosts_without_a_permission() {
    let mut relay = Relay::new(Limits::default());
    let mut client = relay.client(at(0), address(HOME), address(PEER));
    let other = address("198.51.100.77:9899");
    client.trace(at(0), other);
    let events = relay.serve(at(0), address(HOME), &mut client);
    assert_eq!(events, [ClientEvent::Traced(other, None)]);
    assert_eq!(relay.server.poll_trace(), None);
}

#[test]
fn a_relay_that_never_finds_the_route_is_asked_for_half_a_minute() {
    let mut relay = Relay::new(Limits::default());
    let (home, peer) = (address(HOME), address(PEER));
    let mut client = relay.client(at(0), home, peer);
    client.trace(at(0), peer);
    relay.serve(at(0), home, &mut client);
    assert_eq!(run(&mut relay, &mut client, at(28_999)), []);
    assert_eq!(run(&mut relay, &mut client, at(30_000)), [ClientEvent::Traced(peer, None)]);
}

#[test]
fn the_relays_of_an_overlay_are_asked_for_every_two_seconds() {
    let mut relay = Relay::new(Limits::default());
    let mut client = Client::new(at(0), "ann", "a secret", ClientOptions::default());
    client.follow_relays();
    relay.serve(at(0), address(HOME), &mut client);
    let mut answers = 0;
    for second in 1..=20 {
        run(&mut relay, &mut client, at(1000 * second));
        answers += u32::from(client.take_listed() == Some(Vec::new()));
    }
    assert_eq!(answers, 11, "the first at once");
    // Without being told to, a client does not ask.
    let mut other = Client::new(at(0), "ann", "a secret", ClientOptions::default());
    relay.serve(at(0), address("192.0.2.9:7001"), &mut other);
    assert_eq!(other.take_listed(), None);
}

#[test]
fn a_relay_that_lost_the_allocation_is_found_out_although_it_lists_relays() {
    let mut relay = Relay::new(Limits::default());
    let mut client = Client::new(at(0), "ann", "a secret", ClientOptions::default());
    client.follow_relays();
    client.add_peer(at(0), address(PEER));
    relay.serve(at(0), address(HOME), &mut client);
    // It was restarted.
    relay = Relay::new(Limits::default());
    let mut events = Vec::new();
    for second in 1..=8 {
        client.header(at(1000 * second), address(PEER), 5);
        events.extend(run(&mut relay, &mut client, at(1000 * second + 500)));
    }
    let again = events.iter().any(|event| matches!(event, ClientEvent::Allocated { .. }));
    assert!(again, "{events:?}");
}
