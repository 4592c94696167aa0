//! Tickets (RFC 8016) in the hands of others, and twice.

use turn_types::message::{ALLOCATE, REFRESH};
use turn_types::stun::attribute::RawAttribute;

use super::*;
use crate::message::MOBILITY_TICKET;

const THERE: &str = "192.0.2.200:9000";
const ELSEWHERE: &str = "192.0.2.201:9000";

fn ticket_of(answer: &[u8]) -> Option<Vec<u8>> {
    assert_eq!(code(answer), 0);
    let message = Message::from_bytes(answer).unwrap();
    message.raw_attribute(MOBILITY_TICKET).map(|attribute| attribute.value.to_vec())
}

/// An allocation of ann's at [`HOME`], with a ticket.
fn allocate(relay: &mut Relay) -> Vec<u8> {
    let request = signed(relay, at(0), address(HOME), ALLOCATE, |m, _| {
        add(m, &turn_types::attribute::RequestedTransport::new(17));
        add(m, &RawAttribute::new(MOBILITY_TICKET, &[]));
    });
    ticket_of(&answer(relay.handle(at(0), address(HOME), &request))).expect("a ticket")
}

/// The answer to a Refresh request of `user` that shows the ticket from `home`.
fn show(relay: &mut Relay, user: &str, password: &str, home: &str, ticket: &[u8]) -> Vec<u8> {
    let home = address(home);
    let mut message = Message::builder_request(REFRESH, MessageWriteVec::new());
    add(&mut message, &RawAttribute::new(MOBILITY_TICKET, ticket));
    add(&mut message, &Username::new(user).unwrap());
    add(&mut message, &Realm::new("test").unwrap());
    add(&mut message, &Nonce::new(&relay.server.nonces.make(at(1), home)).unwrap());
    let request = sign(message, &long_term_key(user, password, "test"));
    answer(relay.handle(at(1), home, &request))
}

fn reached(relay: &mut Relay) -> SocketAddr {
    let id = *relay.ports.open.keys().next().unwrap();
    let client = relay.server.by_id[&id];
    assert!(relay.server.allocations.contains_key(&client));
    client
}

#[test]
fn a_ticket_moves_the_allocation_once() {
    let mut relay = Relay::new(Limits::default());
    let first = allocate(&mut relay);
    let moved = show(&mut relay, "ann", "a secret", THERE, &first);
    let second = ticket_of(&moved).expect("another ticket");
    assert_ne!(first, second);
    assert_eq!(reached(&mut relay), address(THERE));
    // The request comes again, because its answer was lost.
    let again = show(&mut relay, "ann", "a secret", THERE, &first);
    assert_eq!(ticket_of(&again), Some(second.clone()));
    // Somebody who has seen the first ticket comes too late.
    assert_eq!(code(&show(&mut relay, "ann", "a secret", ELSEWHERE, &first)), 400);
    assert_eq!(reached(&mut relay), address(THERE));
    show(&mut relay, "ann", "a secret", HOME, &second);
    assert_eq!(reached(&mut relay), address(HOME));
    assert_eq!((relay.server.allocations(), relay.server.ends.len()), (1, 1));
}

#[test]
fn a_ticket_is_worth_nothing_without_the_password_of_its_user() {
    let mut relay = Relay::new(Limits::default());
    let ticket = allocate(&mut relay);
    assert_eq!(code(&show(&mut relay, "bob", "another", THERE, &ticket)), 441);
    assert_eq!(code(&show(&mut relay, "ann", "a guess", THERE, &ticket)), 401);
    for bad in [&[][..], &ticket[..31], &[0; 32], &[0; 200]] {
        assert_eq!(code(&show(&mut relay, "ann", "a secret", THERE, bad)), 400);
    }
    assert_eq!(reached(&mut relay), address(HOME));
}

#[test]
fn a_ticket_takes_no_place_of_another_allocation() {
    let mut relay = Relay::new(Limits::default());
    let ticket = allocate(&mut relay);
    relay.client(at(0), address(THERE), address(PEER));
    assert_eq!(code(&show(&mut relay, "ann", "a secret", THERE, &ticket)), 437);
    assert_eq!(code(&show(&mut relay, "ann", "a secret", "[2001:db8::9]:1", &ticket)), 400);
    assert_eq!(relay.server.allocations(), 2);
    // An allocation that has ended is gone.
    relay.timeout(at(600_000));
    assert_eq!(code(&show(&mut relay, "ann", "a secret", ELSEWHERE, &ticket)), 437);
}

#[test]
fn who_asks_for_no_ticket_gets_none() {
    let mut relay = Relay::new(Limits::default());
    let request = signed(&relay, at(0), address(HOME), ALLOCATE, |m, _| {
        add(m, &turn_types::attribute::RequestedTransport::new(17));
    });
    assert_eq!(ticket_of(&answer(relay.handle(at(0), address(HOME), &request))), None);
}
