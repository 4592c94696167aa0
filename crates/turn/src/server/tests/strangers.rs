//! Floods, guesses, and what can be learnt from answers.

use turn_types::message::ALLOCATE;
use turn_types::stun::attribute::XorMappedAddress;

use super::*;

/// A request to allocate, as everybody's first: without credentials.
fn first() -> Vec<u8> {
    let mut message = Message::builder_request(ALLOCATE, MessageWriteVec::new());
    add(&mut message, &turn_types::attribute::RequestedTransport::new(17));
    message.finish()
}

/// The same with a name, a password and a nonce.
fn claim(user: &str, password: &str, nonce: &str) -> Vec<u8> {
    let mut message = Message::builder_request(ALLOCATE, MessageWriteVec::new());
    add(&mut message, &turn_types::attribute::RequestedTransport::new(17));
    add(&mut message, &Username::new(user).unwrap());
    add(&mut message, &Realm::new("test").unwrap());
    add(&mut message, &Nonce::new(nonce).unwrap());
    sign(message, &long_term_key(user, password, "test"))
}

fn nonce(relay: &Relay, now: Instant, from: SocketAddr) -> String {
    relay.server.nonces.make(now, from)
}

fn from(ip: impl Into<std::net::IpAddr>, port: u16) -> SocketAddr {
    SocketAddr::new(ip.into(), port)
}

/// Everything that an answer says, but for what differs in any two.
fn said(answer: &[u8]) -> (u16, Vec<(u16, usize)>) {
    let message = Message::from_bytes(answer).unwrap();
    let attributes = message.iter_attributes();
    (code(answer), attributes.map(|(_, a)| (a.get_type().value(), a.value.len())).collect())
}

#[test]
fn answers_do_not_tell_which_names_are_users() {
    let mut relay = Relay::new(Limits::default());
    let home = address(HOME);
    let good = nonce(&relay, at(0), home);
    let other = nonce(&relay, at(0), address("192.0.2.9:7001"));
    for nonce in [good.as_str(), other.as_str(), "junk", "", "00000000ffffffffffffffff"] {
        let mut answers = Vec::new();
        for user in ["ann", "bob", "eve", "anna", "an", ""] {
            answers.push(said(&answer(relay.handle(at(0), home, &claim(user, "guess", nonce)))));
        }
        let expected = if nonce == good { 401 } else { 438 };
        assert!(answers.iter().all(|a| a == &answers[0]), "{nonce:?}: {answers:?}");
        assert_eq!(answers[0].0, expected, "{nonce:?}");
        relay = Relay::new(Limits::default());
    }
    let right = claim("ann", "a secret", &good);
    assert_eq!(code(&answer(relay.handle(at(0), home, &right))), 0);
}

#[test]
fn names_of_users_and_others_cost_the_same_guesses() {
    let counted = |user: &str| {
        let mut relay = Relay::new(Limits::default());
        let nonce = nonce(&relay, at(0), address(HOME));
        let request = claim(user, "guess", &nonce);
        let answered = |ms| relay.handle(at(ms), address(HOME), &request) != Reply::None;
        (0..10_000).map(answered).collect::<Vec<bool>>()
    };
    let of_user = counted("ann");
    assert_eq!(of_user, counted("eve"));
    let guesses = of_user.iter().filter(|&&answered| answered).count() as u64;
    assert!((GUESSES.address * 11..=GUESSES.address * 12).contains(&guesses), "{guesses}");
}

#[test]
fn passwords_are_tried_no_faster_than_documented_from_everywhere_together() {
    let mut relay = Relay::new(Limits::default());
    let mut guesses = 0;
    // 20,000 a second, of 500 networks.
    for i in 0..100_000_u32 {
        let home = from([10, (i % 500 / 256) as u8, (i % 256) as u8, (i % 199) as u8], 1);
        let now = at(u64::from(i) / 20);
        let request = claim("ann", "guess", &nonce(&relay, now, home));
        guesses += u64::from(relay.handle(now, home, &request) != Reply::None);
    }
    assert!(
        (5 * GUESSES.all - 100..=5 * GUESSES.all + GUESSES.all / 4).contains(&guesses),
        "{guesses}"
    );
}

#[test]
fn what_is_tried_too_fast_is_not_looked_at_even_if_right() {
    let mut relay = Relay::new(Limits::default());
    let home = address(HOME);
    let nonce = nonce(&relay, at(0), home);
    while relay.handle(at(0), home, &claim("ann", "guess", &nonce)) != Reply::None {}
    assert_eq!(relay.handle(at(0), home, &claim("ann", "a secret", &nonce)), Reply::None);
    assert_eq!(code(&answer(relay.handle(at(500), home, &claim("ann", "a secret", &nonce)))), 0);
}

#[test]
fn a_user_at_work_does_not_suffer_from_guesses_behind_the_same_address() {
    let mut relay = Relay::new(Limits::default());
    relay.client(at(0), address(HOME), address(PEER));
    let neighbour = address("192.0.2.9:7001");
    let guess = claim("bob", "guess", &nonce(&relay, at(0), neighbour));
    while relay.handle(at(0), neighbour, &guess) != Reply::None {}
    let refresh = signed(&relay, at(0), address(HOME), turn_types::message::REFRESH, |_, _| ());
    assert_eq!(code(&answer(relay.handle(at(0), address(HOME), &refresh))), 0);
}

/// Clients that come each 100 ms during a flood, from 203.0.113.0/24, and how many of them have an
/// address at the end. Each asks again after 500 ms, seven times (RFC 8489 §6.2.1 with a constant
/// interval).
fn served(flood: impl Fn(u64) -> Vec<SocketAddr>) -> (usize, usize) {
    let limits =
        Limits { allocations_total: 1000, allocations_per_user: 1000, ..Limits::default() };
    let mut relay = Relay::new(limits);
    let mut clients: Vec<(SocketAddr, Client, bool)> = Vec::new();
    for ms in 0..10_000 {
        for home in flood(ms) {
            relay.handle(at(ms), home, &first());
        }
        if ms % 100 == 0 && ms < 6000 {
            let home = from([203, 0, 113, (ms / 100) as u8], 1);
            clients.push((
                home,
                Client::new(at(ms), "ann", "a secret", ClientOptions::default()),
                false,
            ));
        }
        for (home, client, done) in &mut clients {
            client.handle_timeout(at(ms));
            let events = relay.serve(at(ms), *home, client);
            *done |= events.iter().any(|e| matches!(e, crate::ClientEvent::Allocated { .. }));
        }
    }
    (clients.iter().filter(|(_, _, done)| *done).count(), clients.len())
}

#[test]
fn a_flood_keeps_no_new_client_out() {
    let one = |_| vec![from([192, 0, 2, 1], 1); 10];
    let network = |ms| (0..10).map(|i| from([192, 0, 2, i], ms as u16)).collect();
    let forged = |ms: u64| {
        let ip = |i: u32| (ms as u32 * 10 + i).wrapping_mul(0x9e37_79b9).to_be_bytes();
        (0..10).map(|i| from(ip(i), 1)).collect()
    };
    let neighbour = |_| vec![from([203, 0, 113, 250], 1); 10];
    let all = served(|_| Vec::new());
    assert_eq!(all, (60, 60));
    assert_eq!(served(one), all, "from one address");
    assert_eq!(served(network), all, "from one network");
    assert_eq!(served(neighbour), all, "from one address of the clients' network");
    assert_eq!(served(forged), all, "from forged addresses");
}

/// A Binding request whose answer is to go to another port (RFC 5780).
fn binding_for(port: u16) -> Vec<u8> {
    let mut message = Message::builder_request(BINDING, MessageWriteVec::new());
    let [a, b] = port.to_be_bytes();
    let value = [a, b, 0, 0];
    let attribute = turn_types::stun::attribute::RawAttribute::new(0x27.into(), &value);
    message.add_attribute(&attribute).unwrap();
    message.finish()
}

#[test]
fn an_answer_goes_to_another_port_of_the_same_address_only() {
    let mut relay = Relay::new(Limits::default());
    let home = address(HOME);
    let Reply::AnswerAt(to, bytes) = relay.handle(at(0), home, &binding_for(77)) else {
        panic!("not to the other port")
    };
    assert_eq!(to, SocketAddr::new(home.ip(), 77));
    let answer = Message::from_bytes(&bytes).unwrap();
    let seen = answer.attribute::<XorMappedAddress>().unwrap().addr(answer.transaction_id());
    assert_eq!(seen, home, "where the request came from");
    assert!(matches!(relay.handle(at(0), home, &binding_for(0)), Reply::Answer(_)));
    // It counts as any other answer.
    let answers = (0..1000).filter(|_| relay.handle(at(0), home, &binding_for(77)) != Reply::None);
    assert!(answers.count() <= 2 * STRANGERS.address as usize, "two seconds' worth at once");
}

#[test]
fn nobody_can_be_sent_more_than_a_little() {
    let mut relay = Relay::new(Limits::default());
    let mut answers = [0, 0];
    for i in 0..100_000_u32 {
        let now = at(u64::from(i) / 10);
        answers[0] += u64::from(relay.handle(now, address(HOME), &first()) != Reply::None);
        // Binding requests count with them.
        let binding = Message::builder_request(BINDING, MessageWriteVec::new()).finish();
        let other = from([192, 0, 2, (i % 250) as u8], 9);
        if let Reply::Answer(bytes) = relay.handle(now, other, &binding) {
            assert!(Message::from_bytes(&bytes).unwrap().has_attribute(XorMappedAddress::TYPE));
            answers[1] += 1;
        }
    }
    assert!(answers[0] <= STRANGERS.address * 12, "{answers:?}");
    assert!(answers[0] + answers[1] <= STRANGERS.network * 12, "{answers:?}");
    assert_eq!(relay.server.allocations.len() + relay.server.ends.len(), 0, "nothing is kept");
}
