//! Clients whose address changes: the allocation follows them (RFC 8016).

use super::*;
use crate::message::{MOBILITY_TICKET, error_answer};
use crate::server::ServerStats;

/// Addresses that a NAT gives the client, one after the other.
const HOMES: [&str; 3] = ["192.0.2.9:7000", "192.0.2.9:7100", "203.0.113.200:7000"];
const STRANGER: &str = "198.51.100.77:40000";

/// A client behind a NAT, and the relay.
struct World {
    relay: Relay,
    client: Client,
    home: SocketAddr,
    /// Where the relay sends packets for the client.
    reached_at: Option<SocketAddr>,
}

impl World {
    fn new() -> World {
        let mut relay = Relay::new(Limits::default());
        let client = relay.open_client(at(0), address(HOMES[0]));
        World { relay, client, home: address(HOMES[0]), reached_at: None }
    }

    /// Lets time pass.
    fn run(&mut self, until: Instant) -> Vec<ClientEvent> {
        let mut events = self.relay.serve(until, self.home, &mut self.client);
        while let Some(now) = self.client.poll_timeout().filter(|&due| due <= until) {
            self.client.handle_timeout(now);
            events.extend(self.relay.serve(now, self.home, &mut self.client));
        }
        events
    }

    /// A packet of `peer`; true if it comes to where the client is.
    fn is_reached(&mut self, now: Instant, peer: SocketAddr) -> bool {
        let id = *self.relay.ports.open.keys().next().unwrap();
        let forward = self.relay.server.handle_peer(now, id, peer, b"hello").expect("let in");
        self.reached_at = Some(forward.client);
        if forward.client != self.home {
            return false;
        }
        let datagram = match forward.prefix {
            crate::Prefix::Channel(header) => [&header[..], b"hello"].concat(),
            crate::Prefix::Indication(whole) => whole,
        };
        matches!(self.client.handle(now, &datagram), Received::Data { .. })
    }

    fn stats(&self) -> ServerStats {
        self.relay.server.stats()
    }
}

#[test]
fn an_allocation_follows_a_client_that_knows_of_its_new_address() {
    let mut world = World::new();
    let relayed = world.client.relayed().unwrap();
    world.client.add_peer(at(0), address(PEER));
    world.run(at(1));
    for (step, home) in (1u64..).zip(HOMES.iter().cycle().skip(1).take(7)) {
        let now = at(1000 * step);
        world.home = address(home);
        world.client.restart(now);
        assert_eq!(world.client.relayed(), None, "not before the relay knows");
        let events = world.run(now);
        let stays = ClientEvent::Allocated { relayed, access: Access::Open, number: None };
        assert_eq!(events, [stays], "and nobody needs to hear more");
        assert!(world.is_reached(now, address(PEER)), "by its channel");
        assert!(world.is_reached(now, address(STRANGER)));
        assert_eq!(world.client.header(now, address(PEER), 5).unwrap().len(), 4);
    }
    assert_eq!((world.stats().allocated, world.relay.server.allocations()), (1, 1));
}

#[test]
fn a_nat_that_gives_another_port_is_noticed_while_packets_come_and_while_none_do() {
    let mut world = World::new();
    let relayed = world.client.relayed().unwrap();
    assert!(world.is_reached(at(500), address(PEER)));
    world.home = address(HOMES[1]);
    assert!(!world.is_reached(at(600), address(PEER)));
    // A second without a packet, after packets came.
    let stays = [ClientEvent::Allocated { relayed, access: Access::Open, number: None }];
    assert_eq!(world.run(at(1500)), stays);
    assert!(world.is_reached(at(1501), address(PEER)));
    world.run(at(10_000));
    // While nothing flows, the next request every 15 s.
    world.home = address(HOMES[2]);
    assert_eq!(world.run(at(20_000)), stays);
    assert!(world.is_reached(at(20_001), address(PEER)));
    assert_eq!(world.stats().allocated, 1);
}

#[test]
fn a_lost_answer_is_repeated() {
    let mut world = World::new();
    let relayed = world.client.relayed().unwrap();
    world.home = address(HOMES[1]);
    world.client.restart(at(1000));
    // The challenge comes, the answer to the ticket does not.
    let first = world.client.poll_transmit().unwrap();
    let Reply::Answer(challenge) = world.relay.handle(at(1000), world.home, &first) else {
        panic!("no challenge")
    };
    world.client.handle(at(1000), &challenge);
    let signed = world.client.poll_transmit().unwrap();
    assert!(matches!(world.relay.handle(at(1000), world.home, &signed), Reply::Answer(_)));
    let events = world.run(at(2000));
    assert_eq!(events, [ClientEvent::Allocated { relayed, access: Access::Open, number: None }]);
    assert!(world.is_reached(at(2000), address(PEER)));
    // The new ticket is the one that counts.
    world.home = address(HOMES[2]);
    world.client.restart(at(3000));
    assert_eq!(world.run(at(3000)).len(), 1);
    assert_eq!(world.stats().allocated, 1);
}

#[test]
fn a_relay_that_was_started_again_does_not_know_the_ticket() {
    let mut world = World::new();
    let mut config = config(Limits::default());
    config.secret = [4; 32];
    world.relay = Relay { server: crate::Server::new(at(0), config), ports: Ports::default() };
    let _other = world.relay.client(at(0), address("192.0.2.10:1"), address(PEER));
    let old = world.client.relayed();
    world.home = address(HOMES[1]);
    world.client.restart(at(1000));
    let events = world.run(at(1000));
    let [
        ClientEvent::Failed(ClientError::Mismatch),
        ClientEvent::Allocated { relayed, access: Access::Open, number: None },
    ] = events[..]
    else {
        panic!("{events:?}")
    };
    assert_ne!(Some(relayed), old);
}

#[test]
fn a_relay_without_mobility_gives_a_new_address() {
    let mut relay = Relay::new(Limits::default());
    // A client that asked for no ticket has none, as one of such a relay.
    let mut client = relay.client(at(0), address(HOMES[0]), address(PEER));
    let old = client.relayed();
    client.restart(at(1000));
    let events = relay.serve(at(1000), address(HOMES[1]), &mut client);
    assert!(matches!(events[0], ClientEvent::Allocated { relayed, .. } if Some(relayed) != old));
}

/// coturn answers so unless it was told to allow mobility.
#[test]
fn a_relay_that_forbids_mobility_is_asked_for_an_address_that_stays() {
    let mut relay = Relay::new(Limits::default());
    let options = ClientOptions { access: Access::Open, ..ClientOptions::default() };
    let mut client = Client::new(at(0), "ann", "a secret", options);
    let challenged = client.poll_transmit().expect("a request");
    let Reply::Answer(challenge) = relay.handle(at(0), address(HOMES[0]), &challenged) else {
        panic!("no challenge")
    };
    client.handle(at(0), &challenge);
    let signed = client.poll_transmit().expect("a request");
    let request = Message::from_bytes(&signed).expect("a message");
    assert!(request.has_attribute(MOBILITY_TICKET));
    client.handle(at(0), &error_answer(&request, 405).finish());
    let events = relay.serve(at(0), address(HOMES[0]), &mut client);
    assert!(matches!(events[..], [ClientEvent::Allocated { .. }]), "{events:?}");
    // So it gets another one elsewhere.
    let old = client.relayed();
    client.restart(at(1000));
    let events = relay.serve(at(1000), address(HOMES[1]), &mut client);
    assert!(matches!(events[..], [ClientEvent::Allocated { .. }]), "{events:?}");
    assert_ne!(client.relayed(), old);
}
