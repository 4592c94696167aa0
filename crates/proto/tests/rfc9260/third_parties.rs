//! Addresses that a peer lists may be a third party's. They get probes only (RFC 9260 §5.4), and
//! no more bytes than the peer sends itself: nobody gains by having us send instead.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use manypath_dtls::manage::{
    Agreement, KeyAction, KeyManagement, KeySession, Peer, PeerIdentity, Roles,
};
use manypath_keys::psk::SharedKey;
use manypath_proto::Instant;
use manypath_proto::testing::*;
use manypath_wire::{CommonHeader, DtlsKeyManagement, DtlsKeyManagementFlags, Parameter};

/// Bytes of the IP and UDP headers of a packet over IPv4.
const HEADERS: u64 = 28;

/// The keys of a server that trusts whoever comes, and whose peer is through with the key
/// management as soon as its cookie is back.
#[derive(Debug)]
struct ForAnybody(SharedKey);

impl KeyManagement for ForAnybody {
    fn methods(&self) -> &[u8] {
        self.0.methods()
    }

    fn roles(&self, begins: bool) -> Roles {
        self.0.roles(begins)
    }

    fn begin(&self, agreement: Agreement) -> Box<dyn KeySession> {
        let peer = Peer::new(PeerIdentity::SharedKey, [0; 32]);
        Box::new(Anybody { session: self.0.begin(agreement), peer: Some(peer) })
    }
}

#[derive(Debug)]
struct Anybody {
    session: Box<dyn KeySession>,
    peer: Option<Peer>,
}

impl KeySession for Anybody {
    fn handle_message(&mut self, message: Bytes) {
        self.session.handle_message(message);
    }

    fn opened(&mut self, epoch: u64) {
        self.session.opened(epoch);
    }

    fn rekey(&mut self) {
        self.session.rekey();
    }

    fn poll(&mut self) -> Option<KeyAction> {
        let action = self.session.poll();
        action.or_else(|| self.peer.take().map(KeyAction::Authenticated))
    }
}

fn shared_key() -> SharedKey {
    SharedKey::new(&[7; 32]).expect("long enough")
}

/// A server, a stranger that lists addresses, and the bytes of the packets between them.
struct Scene {
    t: Script,
    received: u64,
    to_third_parties: u64,
    /// Third parties that were probed.
    probed: Vec<SocketAddr>,
    first_probe: Option<Instant>,
}

impl Scene {
    /// The stranger has sent INIT with `listed` addresses, and COOKIE ECHO.
    fn new(setup: Setup, listed: u8, keys: Option<Arc<dyn KeyManagement>>) -> Scene {
        let mut t = setup.start();
        let flags = DtlsKeyManagementFlags::CLIENT | DtlsKeyManagementFlags::SERVER;
        let offer = DtlsKeyManagement::new(1, flags, &[0]).expect("a method");
        let offer = keys.is_some().then_some(Parameter::DtlsKeyManagement(offer));
        t.endpoint.set_key_management(keys);
        let addresses = (1..=listed).map(|n| Parameter::from(IpAddr::from([198, 51, 100, n])));
        let init = addresses.chain(offer).fold(init(), PeerChunk::param);
        let mut scene =
            Scene { t, received: 0, to_third_parties: 0, probed: Vec::new(), first_probe: None };
        scene.stranger(init);
        let cookie = scene.t.expect_init_ack();
        scene.stranger(cookie_echo(&cookie));
        scene
    }

    fn stranger(&mut self, chunk: PeerChunk) {
        let header =
            CommonHeader { source_port: PEER_PORT, destination_port: PORT, verification_tag: 0 };
        self.received += self.t.packet(header, chunk.clone()).len() as u64 + HEADERS;
        self.t.peer(chunk);
    }

    /// Lets time pass, and counts what was sent.
    fn run_ms(&mut self, ms: u64) {
        self.t.run_ms(ms);
        let near = self.t.pairs[0].1;
        for sent in self.t.take_sent().into_iter().filter(|sent| sent.remote != near) {
            self.to_third_parties += sent.packet.bytes().len() as u64 + HEADERS;
            self.first_probe.get_or_insert(sent.at);
            if !self.probed.contains(&sent.remote) {
                self.probed.push(sent.remote);
            }
        }
    }
}

fn servers() -> [(&'static str, Setup); 2] {
    let fast = Setup::server().profile("fast").preset("adaptive");
    [("rfc9260", Setup::server()), ("fast", fast)]
}

#[test]
fn a_peer_without_keys_draws_nothing_to_the_addresses_that_it_lists() {
    for (name, setup) in servers() {
        let mut scene = Scene::new(setup, 31, Some(Arc::new(shared_key())));
        assert_eq!(scene.t.endpoint.associations().count(), 1, "{name}: it waits for keys");
        scene.run_ms(60_000);
        let multiple = scene.to_third_parties as f64 / scene.received as f64;
        assert_eq!(scene.to_third_parties, 0, "{name}: {multiple:.1} times what the peer sent");
    }
}

#[test]
fn third_parties_get_no_more_bytes_than_the_peer_that_lists_them_has_sent() {
    let keys: Arc<dyn KeyManagement> = Arc::new(ForAnybody(shared_key()));
    let mut all = Vec::new();
    for (name, setup) in servers() {
        for (listed, keys) in [(1, None), (7, None), (31, None), (31, Some(keys.clone()))] {
            let what = format!("{name}, {listed} listed, protected: {}", keys.is_some());
            let mut scene = Scene::new(setup.clone(), listed, keys);
            scene.run_ms(300_000);
            assert!(!scene.probed.is_empty(), "{what}: RFC 9260 §5.4: they are verified");
            all.push((what, scene.to_third_parties as f64 / scene.received as f64));
        }
    }
    assert!(all.iter().all(|(_, multiple)| *multiple <= 1.0), "{all:#?}");
}

#[test]
fn every_listed_address_is_probed_as_soon_as_the_peer_has_sent_enough() {
    for (name, setup) in servers() {
        let mut scene = Scene::new(setup.set("hb_max_burst", "32"), 7, None);
        scene.run_ms(0);
        assert!((2..7).contains(&scene.probed.len()), "{name}: {}", scene.probed.len());
        scene.stranger(data(1).len(1000));
        scene.run_ms(0);
        assert_eq!(scene.probed.len(), 7, "{name}: no timer is waited for");
    }
}

#[test]
fn an_honest_peers_second_address_is_probed_at_once() {
    for (name, setup) in servers() {
        let mut scene = Scene::new(setup, 2, None);
        let begun = scene.t.now();
        scene.run_ms(0);
        assert_eq!(scene.first_probe, Some(begun), "{name}");
    }
}
