use std::collections::BTreeMap;

use super::*;
use crate::testing::{Ports, at, config};
use crate::{Limits, Reply, Server, ServerConfig};

/// Relays by their last number: 198.51.100.N, which everybody may ask.
fn relay(n: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, n], 3478))
}

/// The relays as one of them sees them, with these named to it.
fn mesh(named: &[SocketAddr]) -> Mesh {
    let mut mesh = Mesh::new("ann", "a secret");
    mesh.name(at(0), named);
    mesh
}

/// Relays and the network between them, without delay.
#[derive(Default)]
struct World {
    relays: BTreeMap<SocketAddr, Server>,
    now: u64,
    /// Datagrams that relays sent to each other.
    asked: u32,
}

impl World {
    fn add(&mut self, n: u8, named: &[u8]) {
        let mut config = config(Limits::default());
        config.secret = [n; 32];
        self.add_with(n, named, config);
    }

    fn add_with(&mut self, n: u8, named: &[u8], config: ServerConfig) {
        let mut server = Server::new(at(self.now), config);
        server.set_own_addresses(&[relay(n)]);
        let named: Vec<_> = named.iter().map(|n| relay(*n)).collect();
        server.name_relays(at(self.now), &named);
        self.relays.insert(relay(n), server);
    }

    /// Lets this much time pass.
    fn run_ms(&mut self, ms: u64) {
        let end = self.now + ms;
        loop {
            self.deliver();
            let due = self.relays.values().filter_map(Server::poll_timeout).min();
            let Some(due) = due.filter(|due| *due <= at(end)) else { break };
            self.now = self.now.max(due.as_nanos() / 1_000_000);
            for server in self.relays.values_mut() {
                server.handle_timeout(due, &mut Ports::default());
            }
        }
        self.now = end;
    }

    fn deliver(&mut self) {
        loop {
            let sent =
                |(from, server): (&SocketAddr, &mut Server)| Some((*from, server.poll_transmit()?));
            let Some((from, out)) = self.relays.iter_mut().find_map(sent) else { return };
            self.asked += 1;
            let now = at(self.now);
            let Some(to) = self.relays.get_mut(&out.to) else { continue };
            let reply = to.handle_client(now, from, &out.bytes, &mut Ports::default());
            if let (Reply::Answer(answer), Some(asked)) = (reply, self.relays.get_mut(&from)) {
                assert_eq!(
                    asked.handle_client(now, out.to, &answer, &mut Ports::default()),
                    Reply::None
                );
            }
        }
    }

    /// The relays that relay `n` knows and that work.
    fn alive(&self, n: u8) -> Vec<SocketAddr> {
        let relays = self.relays[&relay(n)].relays();
        relays.into_iter().filter(|relay| relay.is_alive).map(|relay| relay.address).collect()
    }
}

/// Three relays, of which the second and the third name the first.
fn three() -> World {
    let mut world = World::default();
    world.add(1, &[]);
    world.add(2, &[1]);
    world.add(3, &[1]);
    world
}

#[test]
fn relays_that_name_one_another_learn_of_all() {
    let mut world = three();
    world.run_ms(11_000);
    assert_eq!(world.alive(1), [relay(2), relay(3)]);
    assert_eq!(world.alive(2), [relay(1), relay(3)]);
    assert_eq!(world.alive(3), [relay(1), relay(2)]);
    let known = &world.relays[&relay(2)].relays()[0];
    assert_eq!((known.rtt, known.loss), (Some(Duration::ZERO), 0.0));
}

#[test]
fn one_that_joins_later_is_known_to_all_after_one_round() {
    let mut world = three();
    world.run_ms(20_000);
    world.add(4, &[2]);
    world.run_ms(11_000);
    for n in 1..=3 {
        assert!(world.alive(n).contains(&relay(4)), "relay {n}");
    }
    assert_eq!(world.alive(4), [relay(1), relay(2), relay(3)]);
}

#[test]
fn a_dead_relay_is_left_within_eighteen_seconds() {
    for early in [0, 1, 5_000, 9_000, 9_999] {
        let mut world = three();
        world.run_ms(20_000 + early);
        world.relays.remove(&relay(3));
        world.run_ms(15_000);
        assert_eq!(world.alive(1), [relay(2)]);
        assert_eq!(world.alive(2), [relay(1)]);
        // It comes back.
        world.add(3, &[]);
        world.run_ms(11_000);
        assert_eq!(world.alive(1), [relay(2), relay(3)]);
    }
}

#[test]
fn three_lost_answers_in_a_row_kill_nobody() {
    let mut mesh = mesh(&[relay(1)]);
    mesh.handle_timeout(at(0));
    for lost in 0..3 {
        assert!(!mesh.handle_timeout(at(1000 * (lost + 1))), "{lost}");
    }
    let known = mesh.relays().next().unwrap();
    assert_eq!((known.is_alive, known.loss), (false, 1.0));
}

#[test]
fn a_relay_with_another_password_is_listed_to_nobody() {
    let mut world = three();
    let mut other = config(Limits::default());
    other.users[0].password = "a guess".into();
    world.add_with(9, &[1], other);
    world.run_ms(40_000);
    assert_eq!(world.alive(1), [relay(2), relay(3)]);
    assert_eq!(world.alive(9), [] as [SocketAddr; 0]);
    // A relay that knows another user's password is not listed either.
    let mut second = config(Limits::default());
    second.users.remove(0);
    world.add_with(10, &[1], second);
    world.run_ms(40_000);
    assert!(!world.alive(1).contains(&relay(10)));
}

#[test]
fn a_relay_that_is_named_no_more_is_forgotten_once_it_is_dead() {
    let mut mesh = mesh(&[relay(1)]);
    let known = |mesh: &Mesh| mesh.relays().map(|relay| relay.address).collect::<Vec<_>>();
    mesh.name(at(0), &[relay(2)]);
    assert_eq!(known(&mesh), [relay(1), relay(2)]);
    for second in 0..700 {
        mesh.handle_timeout(at(1000 * second));
    }
    assert_eq!(known(&mesh), [relay(2)]);
}

#[test]
fn a_relay_asks_neither_itself_nor_more_than_it_has_room_for() {
    let mut mesh = mesh(&[relay(1)]);
    mesh.handle_timeout(at(0));
    let request = mesh.poll_transmit().unwrap();
    let request = Message::from_bytes(&request.bytes).unwrap();
    assert!(is_of_relay(&request));
    mesh.set_own(&[relay(7)]);
    mesh.learn(at(0), relay(7));
    assert_eq!(mesh.relays().count(), 1, "it is ourselves");
    for n in 0..=u8::MAX {
        mesh.learn(at(0), relay(n));
    }
    assert_eq!(mesh.relays().count(), RELAYS_MAX);
}

/// Nobody is here.
fn stranger(n: u8) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 77], 10_000 + u16::from(n)))
}

/// The relays that `mesh` knows.
fn known(mesh: &Mesh) -> Vec<SocketAddr> {
    mesh.relays().map(|relay| relay.address).collect()
}

#[test]
fn strangers_that_fill_the_list_keep_no_relay_out() {
    let mut mesh = mesh(&[relay(1)]);
    for n in 0..RELAYS_MAX as u8 {
        mesh.learn(at(0), stranger(n));
    }
    mesh.handle_timeout(at(0));
    mesh.handle_timeout(at(1000));
    // A listed relay moves nobody, so that a lie leads to few packets.
    mesh.learn_listed(at(1000), stranger(99));
    assert!(!known(&mesh).contains(&stranger(99)));
    // A relay that asks takes the place of one that does not answer; so does a named one.
    mesh.learn(at(1000), relay(2));
    mesh.name(at(1000), &[relay(1), relay(3)]);
    for wanted in [relay(1), relay(2), relay(3)] {
        assert!(known(&mesh).contains(&wanted), "{wanted} of {:?}", known(&mesh));
    }
    assert_eq!(known(&mesh).len(), RELAYS_MAX);
    // A flood of such requests within a second does not move those that had no time to answer.
    for n in 100..=u8::MAX {
        mesh.learn(at(1001), stranger(n));
    }
    assert!(known(&mesh).contains(&relay(2)));
}

#[test]
fn a_relay_whose_password_is_mended_after_hours_is_taken_up() {
    let mut world = World::default();
    world.add(1, &[2]);
    let mut wrong = config(Limits::default());
    wrong.users[0].password = "a typing error".into();
    world.add_with(2, &[], wrong);
    world.run_ms(6 * 3_600_000);
    assert_eq!(world.alive(1), []);
    world.add(2, &[]);
    world.run_ms(20_000);
    assert_eq!(world.alive(1), [relay(2)]);
}

#[test]
fn a_relay_that_refuses_is_asked_once_in_ten_seconds() {
    let mut world = World::default();
    let mut wrong = config(Limits::default());
    wrong.users[0].password = "a typing error".into();
    world.add_with(2, &[], wrong);
    world.add(1, &[2]);
    world.run_ms(5_000);
    assert_eq!(world.asked, 2, "one without a signature, one with it");
    world.run_ms(100_000);
    assert!((12..=22).contains(&world.asked), "{} requests", world.asked);
}

#[test]
fn an_address_in_another_notation_is_the_same_and_port_zero_is_none() {
    let mut mesh = mesh(&[]);
    mesh.set_own(&[relay(7)]);
    let mapped = |n: u8| {
        let ip: std::net::IpAddr = format!("::ffff:198.51.100.{n}").parse().unwrap();
        SocketAddr::new(ip, 3478)
    };
    for address in [mapped(7), mapped(1), relay(1), SocketAddr::new(relay(2).ip(), 0)] {
        mesh.learn_listed(at(0), address);
    }
    assert_eq!(known(&mesh), [relay(1)]);
}

#[test]
fn requests_that_cannot_leave_do_not_pile_up() {
    let mut mesh = mesh(&[relay(1), relay(2)]);
    for second in 0..1000 {
        mesh.handle_timeout(at(1000 * second));
    }
    assert_eq!(std::iter::from_fn(|| mesh.poll_transmit()).count(), 2);
}
