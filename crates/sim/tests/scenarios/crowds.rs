//! Honest clients begin while a stranger opens thousands of associations a second with valid
//! cookies, and never says a word of the key management.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use manypath_keys::tls::{Identity, PeerKeys, TlsKeys};
use manypath_proto::{
    Config, ConnectTo, Datagram, Endpoint, EndpointConfig, Event, Instant, KeyManagement, Rng, Tsn,
};
use manypath_wire::{
    Checksum, Chunk, CommonHeader, DtlsKeyManagement, DtlsKeyManagementFlags, Init, Packet,
    PacketBuilder, Parameter,
};

const PORT: u16 = 9899;
const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], PORT);
/// Handshakes of the stranger in a second.
const FLOOD: u32 = 3000;
/// The stranger is near, so that it has an answer at once.
const STRANGERS_DELAY: Duration = Duration::from_micros(500);
/// The first honest client begins when the stranger has had all the places for a while.
const FIRST: Duration = Duration::from_millis(400);
/// The time from one honest client to the next, and from the last one to the end.
const NEXT: Duration = Duration::from_millis(130);
const PATIENCE: Duration = Duration::from_secs(2);
const CLIENTS: u8 = 5;

fn keys() -> Option<Arc<dyn KeyManagement>> {
    let identity = Identity::generate().expect("a key");
    Some(Arc::new(TlsKeys::raw_public_keys(&identity, PeerKeys::Any)))
}

fn endpoint(address: SocketAddr, accept: bool, seed: u64) -> Endpoint {
    let config = EndpointConfig {
        config: Arc::new(Config::build("fast", "adaptive", &[]).expect("a configuration")),
        sctp_port: PORT,
        accept,
        max_associations: 1024,
        local_addresses: vec![address],
    };
    let mut endpoint = Endpoint::new(config, Rng::from_number(seed));
    endpoint.set_key_management(keys());
    endpoint
}

/// A packet under way.
struct Flying {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// A server, its clients, and the stranger.
struct World {
    now: Instant,
    server: Endpoint,
    clients: BTreeMap<SocketAddr, Endpoint>,
    /// By arrival and number.
    flying: BTreeMap<(Instant, u64), Flying>,
    sent: u64,
    delay: Duration,
    /// Hosts of 198.51.100.0/24 that the stranger has.
    hosts: u8,
    handshakes: u32,
}

impl World {
    fn new(rtt: Duration, hosts: u8) -> World {
        World {
            now: Instant::ZERO,
            server: endpoint(SERVER.into(), true, 1),
            clients: BTreeMap::new(),
            flying: BTreeMap::new(),
            sent: 0,
            delay: rtt / 2,
            hosts,
            handshakes: 0,
        }
    }

    fn send(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        let is_honest = self.clients.contains_key(&from) || self.clients.contains_key(&to);
        let delay = if is_honest { self.delay } else { STRANGERS_DELAY };
        self.sent += 1;
        self.flying.insert((self.now + delay, self.sent), Flying { from, to, bytes });
    }

    /// The stranger's next handshake begins, each from an SCTP port of its own.
    fn next_handshake(&mut self) {
        let number = self.handshakes;
        self.handshakes += 1;
        let host = 1 + (number % u32::from(self.hosts)) as u8;
        let from = SocketAddr::from(([198, 51, 100, host], 5000));
        let offer = DtlsKeyManagement::new(7, DtlsKeyManagementFlags::CLIENT, &[192]);
        let offer = Parameter::DtlsKeyManagement(offer.expect("a method"));
        let init = Init {
            initiate_tag: number + 1,
            a_rwnd: 65_536,
            outbound_streams: 4,
            inbound_streams: 4,
            initial_tsn: Tsn(1),
            params: [offer].into_iter().collect(),
        };
        let bytes = packet(1 + (number % 60_000) as u16, 0, |p| p.push_init(&init));
        self.send(from, SERVER.into(), bytes);
    }

    /// The stranger returns each cookie.
    fn stranger_hears(&mut self, flying: Flying) {
        let packet_ = Packet::parse(flying.bytes.into(), Checksum::Verify).expect("a packet");
        let Some(Ok(Chunk::InitAck(ack))) = packet_.chunks().next() else { return };
        let cookie = ack.params.iter().find_map(|p| match p {
            Ok(Parameter::StateCookie(cookie)) => Some(cookie),
            _ => None,
        });
        let cookie = cookie.expect("a cookie");
        let port = packet_.header.destination_port;
        let bytes = packet(port, ack.initiate_tag, |p| p.push_cookie_echo(&cookie));
        self.send(flying.to, flying.from, bytes);
    }

    /// An honest client begins.
    fn begin(&mut self, number: u8) {
        let from = SocketAddr::from(([203, 0, 113, number], 6000));
        let mut client = endpoint(from, false, 100 + u64::from(number));
        let to = ConnectTo::new(vec![(from, SERVER.into())], PORT);
        client.connect(self.now, to).expect("begun");
        self.clients.insert(from, client);
    }

    /// Sends what all endpoints have to send; the number of clients that the server has let in.
    fn drain(&mut self) -> usize {
        let mut out = Vec::new();
        let mut buffer = Vec::new();
        let mut let_in = 0;
        for endpoint in self.clients.values_mut().chain([&mut self.server]) {
            while let Some(transmit) = endpoint.poll_transmit(self.now, 16, &mut buffer) {
                for bytes in buffer.chunks(transmit.segment_size) {
                    out.push((transmit.local, transmit.remote, bytes.to_vec()));
                }
            }
        }
        while let Some((_, event)) = self.server.poll_event() {
            let_in += usize::from(matches!(event, Event::Connected { .. }));
        }
        for (from, to, bytes) in out {
            self.send(from, to, bytes);
        }
        let_in
    }

    fn arrive(&mut self, flying: Flying) {
        let datagram = |f: Flying| Datagram::new(f.to, f.from, f.bytes.as_slice());
        if flying.to == SERVER.into() {
            return self.server.handle_datagram(self.now, datagram(flying));
        }
        match self.clients.get_mut(&flying.to) {
            Some(client) => client.handle_datagram(self.now, datagram(flying)),
            None => self.stranger_hears(flying),
        }
    }

    /// Runs until all clients are let in, or until this time. Returns how long each of them took.
    fn run(&mut self, until: Instant) -> Vec<Duration> {
        let mut let_in = Vec::new();
        let begins = |n: u8| Instant::ZERO + FIRST + NEXT * u32::from(n);
        while self.now < until && let_in.len() < usize::from(CLIENTS) {
            let flood = Instant::ZERO + Duration::from_secs(1) / FLOOD * self.handshakes;
            let begun = self.clients.len() as u8;
            let arrival = self.flying.keys().next().map(|(at, _)| *at);
            let begin = (begun < CLIENTS).then(|| begins(begun));
            let timers = self.clients.values_mut().chain([&mut self.server]);
            let timer = timers.filter_map(Endpoint::poll_timeout).min();
            let times = [Some(flood), arrival, begin, timer, Some(until)];
            self.now = times.into_iter().flatten().min().unwrap_or(until).max(self.now);
            if begin == Some(self.now) {
                self.begin(begun);
            }
            if flood <= self.now {
                self.next_handshake();
            }
            while let Some(first) = self.flying.first_entry()
                && first.key().0 <= self.now
            {
                let flying = first.remove();
                self.arrive(flying);
            }
            for endpoint in self.clients.values_mut().chain([&mut self.server]) {
                if endpoint.poll_timeout().is_some_and(|at| at <= self.now) {
                    endpoint.handle_timeout(self.now);
                }
            }
            for _ in 0..self.drain() {
                // They begin in this order, and take the same time.
                let_in.push(self.now - begins(let_in.len() as u8));
            }
        }
        let_in
    }
}

fn packet(
    source_port: u16,
    tag: u32,
    push: impl FnOnce(&mut PacketBuilder<'_>) -> bool,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = CommonHeader { source_port, destination_port: PORT, verification_tag: tag };
    let mut packet = PacketBuilder::new(&mut bytes, header, 65_000);
    assert!(push(&mut packet));
    packet.finish(true);
    bytes
}

/// All honest clients are let in at their first attempt, in no more round trips than without the
/// stranger.
fn assert_let_in(hosts: u8) {
    for rtt in [10, 100, 300].map(Duration::from_millis) {
        let mut world = World::new(rtt, hosts);
        let end = Instant::ZERO + FIRST + NEXT * u32::from(CLIENTS) + PATIENCE;
        let let_in = world.run(end);
        assert!(world.handshakes > FLOOD / 2, "{}", world.handshakes);
        assert_eq!(let_in.len(), usize::from(CLIENTS), "let in at {rtt:?}: {let_in:?}");
        let slowest = let_in.iter().max().expect("clients");
        assert!(*slowest < PATIENCE && *slowest <= 3 * rtt, "{rtt:?}: {let_in:?}");
    }
}

#[test]
fn a_stranger_with_one_address_keeps_nobody_out() {
    assert_let_in(1);
}

#[test]
fn a_stranger_with_one_network_keeps_nobody_out() {
    assert_let_in(250);
}
