//! Numbers of open allocations, and strangers who look them up.

use turn_types::message::{ALLOCATE, REFRESH};
use turn_types::stun::attribute::RawAttribute;

use super::super::numbers::LOOKUPS;
use super::*;
use crate::message::{MOBILITY_TICKET, add_rendezvous_number, rendezvous_number};
use crate::{Access, Lookup, LookupError};

const STRANGER: &str = "198.51.100.77:40000";

/// A number that a client asks for.
const ANY: u32 = 0;

/// A relay with this operator's choice, after a start.
fn started(grants_open: bool) -> Relay {
    let mut config = config(Limits::default());
    config.grants_open = grants_open;
    Relay { server: Server::new(at(0), config), ports: Ports::default() }
}

/// A request of ann's at `home` for an open allocation, with a wish.
fn request(relay: &Relay, now: Instant, home: &str, wish: u32) -> Vec<u8> {
    signed(relay, now, address(home), ALLOCATE, |m, _| {
        add(m, &turn_types::attribute::RequestedTransport::new(17));
        Access::Open.add_to(m);
        add(m, &RawAttribute::new(MOBILITY_TICKET, &[]));
        add_rendezvous_number(m, wish);
    })
}

fn number_in(answer: &[u8]) -> Option<u32> {
    assert_eq!(code(answer), 0);
    rendezvous_number(&Message::from_bytes(answer).unwrap())
}

fn relayed_in(answer: &[u8]) -> SocketAddr {
    let message = Message::from_bytes(answer).unwrap();
    let relayed = message.attribute::<turn_types::attribute::XorRelayedAddress>().unwrap();
    relayed.addr(message.transaction_id())
}

/// Allocates an open address for ann at `home`; the number it has.
fn allocate(relay: &mut Relay, home: &str, wish: u32) -> Option<u32> {
    let request = request(relay, at(0), home, wish);
    number_in(&answer(relay.handle(at(0), address(home), &request)))
}

/// The relay's answer to a stranger who asks for a number.
fn look_up(relay: &mut Relay, now: Instant, number: u32) -> Result<SocketAddr, LookupError> {
    let lookup = Lookup::new(number);
    let answer = answer(relay.handle(now, address(STRANGER), lookup.request()));
    lookup.read(&answer).expect("it is the answer")
}

/// Gives the allocation of ann's at `home` back.
fn give_back(relay: &mut Relay, home: &str) {
    let end = signed(relay, at(1), address(home), REFRESH, |m, _| {
        add(m, &turn_types::attribute::Lifetime::new(0));
    });
    assert_eq!(code(&answer(relay.handle(at(1), address(home), &end))), 0);
}

#[test]
fn each_allocation_has_a_number_of_its_own_and_a_stranger_finds_it() {
    let mut relay = started(true);
    let mut given = Vec::new();
    for port in 1..=5 {
        let home = format!("192.0.2.9:{port}");
        let request = request(&relay, at(0), &home, ANY);
        let answer = answer(relay.handle(at(0), address(&home), &request));
        given.push((number_in(&answer).expect("a number"), relayed_in(&answer)));
    }
    for (index, &(number, relayed)) in given.iter().enumerate() {
        assert!((1..=99).contains(&number), "{given:?}");
        assert!(given[..index].iter().all(|&(other, _)| other != number), "{given:?}");
        assert_eq!(look_up(&mut relay, at(1), number), Ok(relayed));
    }
    let free = (1..=99).find(|n| given.iter().all(|(number, _)| number != n)).unwrap();
    for unknown in [free, 0, 1000, 1_000_000, u32::MAX] {
        let said = look_up(&mut relay, at(1), unknown);
        assert_eq!(said, Err(LookupError::NoSuchNumber), "{unknown}");
    }
}

#[test]
fn a_wish_is_granted_if_it_is_free_as_after_a_restart_of_the_relay() {
    let mut relay = started(true);
    let [mine, other] = ["192.0.2.9:1", "192.0.2.9:2"];
    let number = allocate(&mut relay, mine, ANY).unwrap();
    let mut relay = started(true);
    // Somebody else comes first and takes the number that the first one drew before.
    let others = allocate(&mut relay, other, if number == 80 { 81 } else { 80 });
    assert_ne!(others, Some(number));
    assert_eq!(allocate(&mut relay, mine, number), Some(number));
    // A number that is taken or too high is not granted: another one is given.
    for (port, wish) in [(3, number), (4, 1_000_000), (5, u32::MAX)] {
        let given = allocate(&mut relay, &format!("192.0.2.9:{port}"), wish).unwrap();
        assert!(given != wish && (1..=99).contains(&given), "{given} for {wish}");
    }
    assert_eq!(allocate(&mut relay, "192.0.2.9:6", 999_999), Some(999_999));
}

#[test]
fn a_number_ends_with_its_allocation() {
    let mut relay = started(true);
    let number = allocate(&mut relay, HOME, 7).unwrap();
    assert_eq!(number, 7);
    give_back(&mut relay, HOME);
    assert_eq!(look_up(&mut relay, at(2), 7), Err(LookupError::NoSuchNumber));
    assert_eq!(allocate(&mut relay, HOME, 7), Some(7), "it is free again");

    let ends = relay.server.poll_timeout().unwrap();
    assert!(look_up(&mut relay, at(599_000), 7).is_ok());
    assert_eq!(look_up(&mut relay, ends, 7), Err(LookupError::NoSuchNumber), "expired");
    relay.timeout(ends);
    assert_eq!(look_up(&mut relay, ends, 7), Err(LookupError::NoSuchNumber));
    assert_eq!(allocate(&mut relay, "192.0.2.9:2", 7), Some(7), "it is free again");
}

#[test]
fn a_number_stays_when_the_client_moves() {
    let mut relay = started(true);
    let there = "192.0.2.200:9000";
    let request = request(&relay, at(0), HOME, ANY);
    let allocated = answer(relay.handle(at(0), address(HOME), &request));
    let (number, relayed) = (number_in(&allocated).unwrap(), relayed_in(&allocated));
    let message = Message::from_bytes(&allocated).unwrap();
    let ticket = message.raw_attribute(MOBILITY_TICKET).expect("a ticket").value.to_vec();
    let refresh = signed(&relay, at(1), address(there), REFRESH, |m, _| {
        add(m, &RawAttribute::new(MOBILITY_TICKET, &ticket));
    });
    assert_eq!(code(&answer(relay.handle(at(1), address(there), &refresh))), 0);
    assert_eq!(look_up(&mut relay, at(2), number), Ok(relayed));
    give_back(&mut relay, there);
    assert_eq!(look_up(&mut relay, at(2), number), Err(LookupError::NoSuchNumber));
}

#[test]
fn a_repeated_request_gets_the_same_number() {
    let mut relay = started(true);
    let request = request(&relay, at(0), HOME, ANY);
    let answers = [0, 500, 1500].map(|ms| {
        number_in(&answer(relay.handle(at(ms), address(HOME), &request))).expect("a number")
    });
    assert_eq!(answers, [answers[0]; 3]);
}

#[test]
fn only_an_open_allocation_that_asks_for_a_number_has_one() {
    let mut relay = started(false);
    assert_eq!(allocate(&mut relay, HOME, 7), None, "the operator grants no open ones");
    assert_eq!(look_up(&mut relay, at(1), 7), Err(LookupError::NoSuchNumber));

    let mut relay = started(true);
    let named = signed(&relay, at(0), address(HOME), ALLOCATE, |m, _| {
        add(m, &turn_types::attribute::RequestedTransport::new(17));
        add_rendezvous_number(m, 7);
    });
    assert_eq!(number_in(&answer(relay.handle(at(0), address(HOME), &named))), None, "not open");
    let client = relay.open_client(at(0), address("192.0.2.9:2"));
    let id = relay.allocation(&client);
    let client = relay.server.by_id[&id];
    assert_eq!(relay.server.allocations[&client].number, None, "not asked for");
    assert_eq!(look_up(&mut relay, at(1), 7), Err(LookupError::NoSuchNumber));
}

#[test]
fn a_number_of_another_length_is_none() {
    let mut relay = started(true);
    for (port, len) in [0, 1, 3, 5, 8, 400].into_iter().enumerate() {
        let value = vec![7; len];
        let attribute = RawAttribute::new(0xd1a4.into(), &value);
        let home = SocketAddr::new([192, 0, 2, 9].into(), 1 + port as u16);
        let allocation = signed(&relay, at(0), home, ALLOCATE, |m, _| {
            add(m, &turn_types::attribute::RequestedTransport::new(17));
            Access::Open.add_to(m);
            add(m, &attribute);
        });
        let allocated = answer(relay.handle(at(0), home, &allocation));
        assert_eq!(number_in(&allocated), None, "an address without a number: {len} bytes");

        let mut lookup = Message::builder_request(crate::lookup::LOOKUP, MessageWriteVec::new());
        add(&mut lookup, &attribute);
        let refusal = answer(relay.handle(at(0), home, &lookup.finish()));
        assert_eq!(code(&refusal), 400, "{len} bytes");
    }
    let without = Message::builder_request(crate::lookup::LOOKUP, MessageWriteVec::new());
    assert_eq!(code(&answer(relay.handle(at(0), address(STRANGER), &without.finish()))), 400);
}

/// Answers to a stranger's lookups from these addresses, one each millisecond for ten seconds.
fn answered(from: impl Fn(u32) -> [u8; 4]) -> u64 {
    let mut relay = started(true);
    let mut answers = 0;
    for ms in 0..10_000 {
        let from = SocketAddr::new(from(ms).into(), 4000);
        let lookup = Lookup::new(1 + ms % 99);
        answers +=
            u64::from(relay.handle(at(u64::from(ms)), from, lookup.request()) != Reply::None);
    }
    let expected = 10_000 - answers;
    assert_eq!(relay.server.stats().over_rate, expected, "each that is not answered is counted");
    assert_eq!(relay.server.stats().refused, 0);
    answers
}

#[test]
fn numbers_are_looked_up_no_faster_than_documented() {
    let one = answered(|_| [192, 0, 2, 1]);
    assert!((LOOKUPS.address * 11..=LOOKUPS.address * 12).contains(&one), "{one}");
    let network = answered(|ms| [192, 0, 2, (ms % 200) as u8]);
    assert!((LOOKUPS.network * 11..=LOOKUPS.network * 12).contains(&network), "{network}");
    let mut relay = started(true);
    let mut all = 0;
    for i in 0..50_000_u32 {
        let [_, a, b, c] = i.wrapping_mul(0x9e37_79b9).to_be_bytes();
        let now = at(u64::from(i) / 10);
        let from = SocketAddr::new([b, c, a, 1].into(), 1);
        all += u64::from(relay.handle(now, from, Lookup::new(1).request()) != Reply::None);
    }
    assert!((4 * LOOKUPS.all..=5 * LOOKUPS.all + LOOKUPS.all / 4).contains(&all), "{all} in 5 s");
}

/// Lookups from forged addresses and from that of the client itself, 20 in each millisecond.
#[test]
fn a_flood_of_lookups_keeps_nobody_from_logging_in() {
    let mut relay = started(true);
    let home = address(HOME);
    for i in 0..40_000_u32 {
        let forged = i.wrapping_mul(0x9e37_79b9).to_be_bytes();
        let from = if i % 2 == 0 { forged } else { [192, 0, 2, 9] };
        let from = SocketAddr::new(from.into(), 1);
        relay.handle(at(u64::from(i) / 20), from, Lookup::new(i % 99).request());
    }
    while relay.handle(at(2000), home, Lookup::new(1).request()) != Reply::None {}
    let options = ClientOptions { access: Access::Open, ..ClientOptions::default() };
    let mut client = Client::new(at(2000), "ann", "a secret", options);
    let events = relay.serve(at(2000), home, &mut client);
    assert!(matches!(events[..], [crate::ClientEvent::Allocated { .. }]), "{events:?}");
}

#[test]
fn wrong_passwords_keep_nobody_from_looking_numbers_up() {
    let mut relay = started(true);
    let home = address(HOME);
    allocate(&mut relay, "192.0.2.10:1", 7);
    let mut message = Message::builder_request(ALLOCATE, MessageWriteVec::new());
    add(&mut message, &Username::new("ann").unwrap());
    add(&mut message, &Realm::new("test").unwrap());
    add(&mut message, &Nonce::new(&relay.server.nonces.make(at(0), home)).unwrap());
    let guess = sign(message, &long_term_key("ann", "a guess", "test"));
    while relay.handle(at(0), home, &guess) != Reply::None {}
    let lookup = Lookup::new(7);
    let told = answer(relay.handle(at(0), home, lookup.request()));
    assert!(matches!(lookup.read(&told), Some(Ok(_))));
}

#[test]
fn an_answer_is_at_most_two_and_a_half_times_as_long_as_the_lookup() {
    let mut relay = started(true);
    allocate(&mut relay, HOME, 7);
    let nothing = Message::builder_request(crate::lookup::LOOKUP, MessageWriteVec::new()).finish();
    let requests = [Lookup::new(7).request().to_vec(), Lookup::new(8).request().to_vec(), nothing];
    for (request, expected) in requests.into_iter().zip([0, 404, 400]) {
        let answer = answer(relay.handle(at(1), address(STRANGER), &request));
        assert_eq!(code(&answer), expected);
        // IPv4 and UDP headers are 28 bytes. An IPv6 address is 12 bytes longer.
        let longest = answer.len() + 28 + if expected == 0 { 12 } else { 0 };
        assert!(longest <= 5 * (request.len() + 28) / 2, "{} {longest}", request.len());
    }
    assert_eq!(relay.server.allocations.len(), 1, "nothing is kept for those who ask");
}

#[test]
fn what_is_no_request_to_look_up_is_garbage() {
    let mut relay = started(true);
    allocate(&mut relay, HOME, 7);
    let request = Lookup::new(7).request().to_vec();
    for class in [0x10, 0x100, 0x110_u16] {
        let mut other = request.clone();
        other[0] |= class.to_be_bytes()[0];
        other[1] |= class.to_be_bytes()[1];
        assert_eq!(relay.handle(at(1), address(STRANGER), &other), Reply::None, "{class:#x}");
    }
    for cut in 0..request.len() {
        assert_eq!(relay.handle(at(1), address(STRANGER), &request[..cut]), Reply::None, "{cut}");
    }
}
