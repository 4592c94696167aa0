//! Open allocations: peers that the client has not named.

use turn_types::message::{ALLOCATE, SEND};

use super::*;
use crate::Access;

const STRANGER: &str = "198.51.100.77:40000";
/// Not among the addresses that the relay forwards to.
const PRIVATE: &str = "10.0.0.1:9899";

/// A request for an open allocation of ann's at `home`.
fn open_request(relay: &Relay, now: Instant, home: SocketAddr) -> Vec<u8> {
    signed(relay, now, home, ALLOCATE, |m, _| {
        add(m, &turn_types::attribute::RequestedTransport::new(17));
        Access::Open.add_to(m);
    })
}

fn granted_access(answer: &[u8]) -> Access {
    assert_eq!(code(answer), 0);
    Access::of(&Message::from_bytes(answer).unwrap())
}

/// The only allocation, of a client at [`HOME`].
fn allocate(relay: &mut Relay) -> (AllocationId, Access) {
    let request = open_request(relay, at(0), address(HOME));
    let answer = answer(relay.handle(at(0), address(HOME), &request));
    (*relay.ports.open.keys().next().unwrap(), granted_access(&answer))
}

fn send_indication(peer: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let mut message = Message::builder_indication(SEND, MessageWriteVec::new());
    let id = message.transaction_id();
    add(&mut message, &XorPeerAddress::new(peer, id));
    add(&mut message, &Data::new(payload));
    message.finish()
}

#[test]
fn an_open_allocation_lets_all_in_that_the_rules_allow() {
    let mut relay = Relay::new(Limits::default());
    let (id, access) = allocate(&mut relay);
    assert_eq!(access, Access::Open);
    let stranger = address(STRANGER);
    let forward = relay.server.handle_peer(at(1), id, stranger, b"hello").expect("let in");
    assert_eq!(forward.client, address(HOME));
    let Prefix::Indication(whole) = forward.prefix else { panic!("there is no channel") };
    let message = Message::from_bytes(&whole).unwrap();
    let (peer, payload) = crate::message::read_indication(&message).unwrap();
    assert_eq!((peer, &whole[payload]), (stranger, &b"hello"[..]));
    assert_eq!(relay.server.handle_peer(at(1), id, address(PRIVATE), b"hello"), None);

    let back = send_indication(stranger, b"hi");
    let Reply::ToPeer { allocation, peer, payload } = relay.handle(at(2), address(HOME), &back)
    else {
        panic!("not sent")
    };
    assert_eq!((allocation, peer, &back[payload]), (id, stranger, &b"hi"[..]));
    for not_allowed in [PRIVATE, "127.0.0.1:80", "[2001:4860::1]:80"] {
        let back = send_indication(address(not_allowed), b"hi");
        assert_eq!(relay.handle(at(2), address(HOME), &back), Reply::None, "{not_allowed}");
    }
}

#[test]
fn an_allocation_is_open_only_if_client_and_operator_want_it() {
    let mut config = config(Limits::default());
    config.grants_open = false;
    let mut relay = Relay { server: Server::new(at(0), config), ports: Ports::default() };
    let (id, access) = allocate(&mut relay);
    assert_eq!(access, Access::Permitted);
    assert_eq!(relay.server.handle_peer(at(1), id, address(STRANGER), b"hello"), None);
    let out = send_indication(address(STRANGER), b"hi");
    assert_eq!(relay.handle(at(1), address(HOME), &out), Reply::None);

    let mut relay = Relay::new(Limits::default());
    let client = relay.client(at(0), address(HOME), address(PEER));
    let id = relay.allocation(&client);
    assert_eq!(relay.server.handle_peer(at(1), id, address(STRANGER), b"hello"), None);
}

#[test]
fn a_repeated_request_gets_the_same_open_allocation() {
    let mut relay = Relay::new(Limits::default());
    let request = open_request(&relay, at(0), address(HOME));
    let answers = [0, 500, 1500].map(|ms| {
        let answer = answer(relay.handle(at(ms), address(HOME), &request));
        let message = Message::from_bytes(&answer).unwrap();
        let relayed = message.attribute::<turn_types::attribute::XorRelayedAddress>().unwrap();
        (granted_access(&answer), relayed.addr(message.transaction_id()))
    });
    assert_eq!(answers, [answers[0]; 3]);
    assert_eq!((answers[0].0, relay.ports.open.len()), (Access::Open, 1));
}

#[test]
fn a_channel_of_an_open_allocation_needs_no_permission() {
    let mut relay = Relay::new(Limits::default());
    let mut client = relay.open_client(at(0), address(HOME));
    client.add_peer(at(0), address(PEER));
    relay.serve(at(0), address(HOME), &mut client);
    let packet = client.header(at(0), address(PEER), 0).unwrap().to_vec();
    // The permission lasts 300 s, the channel 600 s.
    assert_ne!(relay.handle(at(301_000), address(HOME), &packet), Reply::None);
    assert_eq!(relay.handle(at(600_000), address(HOME), &packet), Reply::None);
}

#[test]
fn a_flood_of_strangers_uses_up_the_rate_of_that_user_alone() {
    let user_bytes_per_s = 1_000_000;
    let mut relay = Relay::new(Limits { user_bytes_per_s, ..Limits::default() });
    let (id, _) = allocate(&mut relay);
    let mut bob = Client::new(at(0), "bob", "another", ClientOptions::default());
    bob.add_peer(at(0), address(PEER));
    relay.serve(at(0), address("192.0.2.9:7001"), &mut bob);
    let bobs = relay.allocation(&bob);

    let payload = [0; 972];
    let (mut let_in, mut of_bob) = (0, 0);
    for packet in 0..20_000u32 {
        // 10 MB/s, each packet from another port or host.
        let now = at(u64::from(packet) / 10);
        let [.., a, b] = packet.to_be_bytes();
        let stranger = SocketAddr::new([198, 51, 100, a].into(), 1024 + u16::from(b));
        let_in += usize::from(relay.server.handle_peer(now, id, stranger, &payload).is_some());
        of_bob += usize::from(
            packet % 100 == 0 && relay.server.handle_peer(now, bobs, address(PEER), b"x").is_some(),
        );
    }
    // Two seconds, and the quarter of one that the bucket holds.
    assert!((2000..=2260).contains(&let_in), "{let_in} packets of 1000 bytes");
    assert_eq!(of_bob, 200, "others do not notice");
}
