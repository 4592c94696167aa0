//! Numbers that a client asks for, and has again.

use turn_types::attribute::XorRelayedAddress;
use turn_types::stun::message::MessageWriteVec;

use super::*;
use crate::message::{add, add_rendezvous_number, long_term_key, rendezvous_number, sign};
use crate::{Lookup, Server};

/// A client of ann's that wants an open allocation and this number.
fn wanting(number: WantedNumber) -> Client {
    let options = ClientOptions { access: Access::Open, number, ..ClientOptions::default() };
    Client::new(at(0), "ann", "a secret", options)
}

/// A relay after this restart: it has another secret.
fn restarted(restart: u8) -> Relay {
    let mut config = config(Limits::default());
    config.secret = [10 + restart; 32];
    Relay { server: Server::new(at(0), config), ports: Ports::default() }
}

/// The last number and address that these events tell.
fn given(events: &[ClientEvent]) -> (Option<u32>, SocketAddr) {
    let Some(ClientEvent::Allocated { number, relayed, .. }) = events.last() else {
        panic!("{events:?}")
    };
    (*number, *relayed)
}

fn found(relay: &mut Relay, now: Instant, number: u32) -> Option<SocketAddr> {
    let lookup = Lookup::new(number);
    let reply = relay.handle(now, address("198.51.100.77:4000"), lookup.request());
    let Reply::Answer(answer) = reply else { panic!("{reply:?}") };
    lookup.read(&answer).expect("its answer").ok()
}

#[test]
fn a_client_is_told_the_number_that_others_find_it_by() {
    let mut relay = Relay::new(Limits::default());
    let mut client = wanting(WantedNumber::Any);
    let (number, relayed) = given(&relay.serve(at(0), address(HOME), &mut client));
    assert_eq!(found(&mut relay, at(1), number.expect("a number")), Some(relayed));
    let other = address("192.0.2.9:7001");
    let mut wishing = wanting(WantedNumber::Wish(4711));
    assert_eq!(given(&relay.serve(at(1), other, &mut wishing)).0, Some(4711));
    client.close(at(2));
    relay.serve(at(2), address(HOME), &mut client);
    assert_eq!(found(&mut relay, at(3), number.unwrap()), None);
}

#[test]
fn a_client_that_wants_no_number_has_none() {
    let mut relay = Relay::new(Limits::default());
    let mut client = wanting(WantedNumber::None);
    assert_eq!(given(&relay.serve(at(0), address(HOME), &mut client)).0, None);
}

#[test]
fn a_relay_without_open_allocations_gives_no_number() {
    let mut config = config(Limits::default());
    config.grants_open = false;
    let mut relay = Relay { server: Server::new(at(0), config), ports: Ports::default() };
    let mut client = wanting(WantedNumber::Any);
    assert_eq!(given(&relay.serve(at(0), address(HOME), &mut client)).0, None);
}

#[test]
fn the_number_stays_while_the_relay_is_restarted_twice_and_the_address_changes() {
    let mut relay = Relay::new(Limits::default());
    let mut client = wanting(WantedNumber::Any);
    let first = given(&relay.serve(at(0), address(HOME), &mut client));
    let mut old = first;
    for restart in 1..=2 {
        relay = restarted(restart);
        let restarted_at = at(20_000 * u64::from(restart - 1) + 1);
        let now = at(20_000 * u64::from(restart));
        for port in 1..=restart {
            let other = SocketAddr::new([192, 0, 2, 10].into(), u16::from(port));
            relay.serve(restarted_at, other, &mut wanting(WantedNumber::Wish(4711)));
        }
        let new = given(&run(&mut relay, &mut client, now));
        assert_eq!(new.0, first.0);
        assert_ne!(new.1, old.1);
        assert_eq!(found(&mut relay, now, first.0.unwrap()), Some(new.1));
        old = new;
    }
}

#[test]
fn a_number_that_another_one_took_meanwhile_is_replaced() {
    let mut relay = Relay::new(Limits::default());
    let mut client = wanting(WantedNumber::Wish(7));
    assert_eq!(given(&relay.serve(at(0), address(HOME), &mut client)).0, Some(7));
    relay = restarted(1);
    let mut thief = wanting(WantedNumber::Wish(7));
    relay.serve(at(1), address("192.0.2.10:1"), &mut thief);
    let (number, _) = given(&run(&mut relay, &mut client, at(15_000)));
    assert!(number.is_some_and(|number| number != 7), "{number:?}");
}

#[test]
fn the_number_stays_when_the_client_moves() {
    let mut relay = Relay::new(Limits::default());
    let mut client = wanting(WantedNumber::Any);
    let before = given(&relay.serve(at(0), address(HOME), &mut client));
    client.restart(at(1000));
    let after = given(&relay.serve(at(1000), address("192.0.2.200:9000"), &mut client));
    assert_eq!(after, before);
}

/// A relay that signs rightly and gives this number.
fn told(number: u32) -> Option<u32> {
    let mut relay = Relay::new(Limits::default());
    let mut client = wanting(WantedNumber::Any);
    let first = client.poll_transmit().unwrap();
    let Reply::Answer(challenge) = relay.handle(at(0), address(HOME), &first) else { panic!() };
    client.handle(at(0), &challenge);
    let request = client.poll_transmit().unwrap();
    let request = Message::from_bytes(&request).unwrap();
    assert_eq!(rendezvous_number(&request), Some(0), "any");
    let mut answer = Message::builder_success(&request, MessageWriteVec::new());
    let relayed = XorRelayedAddress::new(address("203.0.113.1:5"), request.transaction_id());
    add(&mut answer, &relayed);
    add_rendezvous_number(&mut answer, number);
    client.handle(at(0), &sign(answer, &long_term_key("ann", "a secret", "test")));
    let events: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
    given(&events).0
}

#[test]
fn a_number_that_none_can_be_is_ignored() {
    assert_eq!([1, 7, 999_999].map(told), [Some(1), Some(7), Some(999_999)]);
    assert_eq!([0, 1_000_000, u32::MAX].map(told), [None; 3]);
}
