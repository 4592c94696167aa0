use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io;

use bytes::Bytes;
use manypath_proto::Datagram;
use manypath_turn::{
    AllocationId, Limits, PeerRules, Reply, Server, ServerConfig, Sockets, User, Wanted,
};

use super::*;
use crate::{BindTo, UdpSockets};

/// Between two looks at what is due, in milliseconds.
const STEP: u64 = 100;
const PEER: &str = "127.0.0.7:9899";

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// The relay with this number.
fn place(n: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 1, n], 3478))
}

/// Sockets of the relay with this number, which are only numbers themselves.
struct Ports(u8, u16);

impl Sockets for Ports {
    fn open(&mut self, _: AllocationId, _: Wanted) -> io::Result<SocketAddr> {
        self.1 += 1;
        Ok(SocketAddr::from(([127, 0, 1, self.0], 50_000 + self.1)))
    }

    fn close(&mut self, _: AllocationId) {}
}

struct Program {
    server: Server,
    ports: Ports,
}

/// Relays that know each other, a user, and the network between them, without delay.
struct World {
    programs: BTreeMap<SocketAddr, Program>,
    relays: Relays,
    now: u64,
    changes: Vec<RelayChange>,
    /// Where the user's requests went.
    asked: Vec<SocketAddr>,
    _sockets: UdpSockets,
}

impl World {
    /// A user who names the first relay.
    async fn new() -> World {
        World::naming(&[(1, "secret")]).await
    }

    /// A user who names these, each with a password.
    async fn naming(named: &[(u8, &str)]) -> World {
        let sockets = UdpSockets::bind(&[BindTo::Address([127, 0, 0, 1].into())], 0).unwrap();
        let relay = |&(n, password): &(u8, &str)| Relay {
            name: n.to_string(),
            address: place(n),
            user: "ann".into(),
            password: password.into(),
        };
        let named: Vec<_> = named.iter().map(relay).collect();
        let (mut relays, _) = Relays::new(at(0), &named, sockets.bound());
        relays.follow_overlay(sockets.bound());
        World {
            programs: BTreeMap::new(),
            relays,
            now: 0,
            changes: Vec::new(),
            asked: Vec::new(),
            _sockets: sockets,
        }
    }

    /// Starts a relay that names these.
    fn add(&mut self, n: u8, named: &[u8], password: &str) {
        let config = ServerConfig {
            realm: "r".into(),
            users: vec![User { name: "ann".into(), password: password.into() }],
            limits: Limits::default(),
            peers: PeerRules { allow: vec!["127.0.0.0/8".parse().unwrap()] },
            grants_open: true,
            secret: [n; 32],
        };
        let mut server = Server::new(at(self.now), config);
        server.set_own_addresses(&[place(n)]);
        let named: Vec<_> = named.iter().map(|n| place(*n)).collect();
        server.name_relays(at(self.now), &named);
        self.programs
            .insert(place(n), Program { server, ports: Ports(n, (self.now / 1000) as u16) });
    }

    /// A datagram, and the answer if there is one.
    fn ask(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
        let Program { server, ports } = self.programs.get_mut(&to)?;
        match server.handle_client(at(self.now), from, bytes, ports) {
            Reply::Answer(answer) => Some(answer),
            _ => None,
        }
    }

    fn deliver(&mut self) {
        loop {
            let mut sent = self.programs.iter_mut();
            let out = sent.find_map(|(from, p)| Some((*from, p.server.poll_transmit()?)));
            if let Some((from, out)) = out {
                if let Some(answer) = self.ask(from, out.to, &out.bytes) {
                    self.ask(out.to, from, &answer);
                }
                continue;
            }
            let Some(out) = self.relays.poll_transmit() else { return };
            let (home, relay) = (out.transmit.local, out.transmit.remote);
            self.asked.push(relay);
            if let Some(answer) = self.ask(home, relay, &out.bytes) {
                let mut datagrams = vec![Datagram::new(home, relay, Bytes::from(answer))];
                self.relays.unwrap(at(self.now), &mut datagrams);
                assert!(datagrams.is_empty(), "what a relay says is not for the engine");
            }
        }
    }

    fn run_s(&mut self, seconds: u64) {
        for _ in 0..seconds * 1000 / STEP {
            self.now += STEP;
            for Program { server, ports } in self.programs.values_mut() {
                server.handle_timeout(at(self.now), ports);
            }
            self.relays.handle_timeout(at(self.now));
            self.deliver();
            self.changes.extend(std::iter::from_fn(|| self.relays.poll_change()));
        }
    }

    /// The relays that gave the user an address.
    fn used(&self) -> Vec<SocketAddr> {
        let status = self.relays.status();
        status.iter().filter(|s| s.relayed.is_some()).map(|s| s.address).collect()
    }

    /// The first relay names these.
    fn name(&mut self, listed: impl IntoIterator<Item = SocketAddr>) {
        self.relays.links[0].listed = listed.into_iter().collect();
        self.relays.links[0].listed_at = Some(at(self.now));
        self.relays.join_listed(at(self.now));
    }
}

#[tokio::test]
async fn relays_that_join_are_used_and_dead_ones_left_and_none_is_renumbered() {
    let mut world = World::new().await;
    world.add(1, &[], "secret");
    world.add(2, &[1], "secret");
    world.run_s(15);
    assert_eq!(world.used(), [place(1), place(2)]);
    world.add(3, &[2], "secret");
    world.run_s(13);
    assert_eq!(world.used(), [place(1), place(2), place(3)]);
    assert!(world.changes.contains(&RelayChange::Joined(2)), "{:?}", world.changes);

    // The second one dies: the relays say so within 15 s, and the user notices by the next list.
    let gone = world.relays.status()[1].relayed.unwrap();
    world.programs.remove(&place(2));
    world.run_s(18);
    assert_eq!(world.used(), [place(1), place(3)]);
    assert!(world.changes.contains(&RelayChange::Gone(gone)), "{:?}", world.changes);
    assert_eq!(world.relays.links[2].relay.address, place(3), "it keeps its number");

    // It returns, with the number that is free.
    world.add(2, &[3], "secret");
    world.run_s(15);
    assert_eq!(world.used(), [place(1), place(2), place(3)]);
    assert_eq!(world.relays.links.len(), 3);

    // The one that the user named is never given up.
    world.programs.remove(&place(1));
    world.run_s(60);
    assert!(world.relays.status().iter().any(|status| status.address == place(1)));
    assert!(world.used().contains(&place(2)) && world.used().contains(&place(3)));
}

#[tokio::test]
async fn no_more_than_eight_relays_are_used() {
    let mut world = World::new().await;
    for n in 1..=12 {
        world.add(n, &[1], "secret");
    }
    world.run_s(30);
    assert_eq!(world.used().len(), LINKS_MAX);
    // Unless the user does not want any.
    let mut alone = World::new().await;
    alone.relays.overlay.bound = None;
    alone.add(1, &[], "secret");
    alone.add(2, &[1], "secret");
    alone.run_s(30);
    assert_eq!(alone.used(), [place(1)]);
}

#[tokio::test]
async fn a_list_that_lies_does_not_make_the_user_flood_strangers() {
    let mut world = World::new().await;
    world.add(1, &[], "secret");
    world.run_s(1);
    world.asked.clear();
    for second in 0..60 {
        world.name((second * 4..=u8::MAX).take(32).map(place));
        world.run_s(1);
    }
    let strangers: BTreeSet<_> = world.asked.iter().filter(|a| **a != place(1)).collect();
    assert!((1..REFUSED_MAX + LINKS_MAX).contains(&strangers.len()), "{}", strangers.len());
    for stranger in strangers {
        let packets = world.asked.iter().filter(|a| *a == stranger).count();
        assert!(packets <= 5, "{stranger}: {packets} packets in a minute");
    }
    assert_eq!(world.used(), [place(1)]);
    assert_eq!(world.relays.status().len(), 1, "who is none of ours is not shown");
}

#[tokio::test]
async fn whoever_knows_no_password_is_asked_once_and_not_used() {
    let mut world = World::new().await;
    world.add(1, &[], "secret");
    world.add(9, &[], "another");
    world.run_s(1);
    for _ in 0..60 {
        world.name([place(9)]);
        world.run_s(1);
    }
    assert_eq!(world.used(), [place(1)]);
    // Without a signature, then with one.
    assert_eq!(world.asked.iter().filter(|to| **to == place(9)).count(), 2);
}

#[tokio::test]
async fn only_addresses_that_may_be_a_relay_of_this_one_are_asked() {
    let mut world = World::new().await;
    world.add(1, &[], "secret");
    world.run_s(1);
    let bad = ["127.0.1.5:0", "[::1]:3478", "224.0.0.1:3478", "169.254.169.254:3478"];
    world.name(bad.map(|text| text.parse().unwrap()));
    // To a public relay every private address is one of another network.
    world.relays.links[0].relay.address = "8.8.8.8:3478".parse().unwrap();
    world.name(["10.0.0.1:3478", "127.0.0.1:53"].map(|text| text.parse().unwrap()));
    assert_eq!(world.relays.links.len(), 1);
}

#[tokio::test]
async fn the_peers_own_address_as_a_relay_takes_no_packet_from_the_engine() {
    let mut world = World::new().await;
    world.add(1, &[], "secret");
    world.run_s(1);
    let peer: SocketAddr = PEER.parse().unwrap();
    world.name([peer]);
    assert_eq!(world.relays.links[1].relay.address, peer);
    let home = world.relays.links[1].local;
    let mut datagrams =
        vec![Datagram::new(home, peer, Bytes::from_static(&[0x26, 0xab, 1, 2, 3, 4, 5, 6, 7]))];
    world.relays.unwrap(at(world.now), &mut datagrams);
    assert_eq!(datagrams.len(), 1);
}

#[tokio::test]
async fn one_relay_of_the_user_cannot_spoil_what_another_lists() {
    let mut world = World::naming(&[(1, "of the liar"), (2, "secret")]).await;
    world.add(1, &[], "of the liar");
    world.run_s(3);
    // From now on only this test speaks for the liar. It lists what the other one will list, and
    // strangers.
    world.programs.remove(&place(1));
    for second in 0..160_u8 {
        if second == 20 {
            world.add(2, &[], "secret");
            world.add(3, &[2], "secret");
        }
        let strangers = (0..31).map(|n| place(100 + second % 4 * 31 + n));
        world.name([place(3)].into_iter().chain(strangers));
        world.run_s(1);
    }
    assert_eq!(world.used(), [place(1), place(2), place(3)]);
}

#[tokio::test]
async fn an_old_list_leads_nowhere() {
    let mut world = World::naming(&[(1, "secret"), (2, "secret")]).await;
    world.add(1, &[], "secret");
    world.add(2, &[], "secret");
    world.run_s(3);
    world.name([place(9)]);
    world.programs.remove(&place(1));
    world.run_s(60);
    world.asked.clear();
    world.run_s(300);
    assert!(!world.asked.contains(&place(9)), "the relay that listed it is dead");
}
