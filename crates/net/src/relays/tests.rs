use std::collections::BTreeMap;
use std::io;

use bytes::Bytes;
use manypath_turn::{
    AllocationId, Limits, PeerRules, Prefix, Reply, Server, ServerConfig, Sockets, User, Wanted,
};

use super::*;
use crate::{BindTo, UdpSockets};

const PEER: &str = "127.0.0.7:9899";

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

#[derive(Default)]
struct Ports(BTreeMap<AllocationId, SocketAddr>);

impl Sockets for Ports {
    fn open(&mut self, id: AllocationId, _: Wanted) -> io::Result<SocketAddr> {
        let relayed = SocketAddr::new([127, 0, 0, 9].into(), 50_000 + self.0.len() as u16);
        self.0.insert(id, relayed);
        Ok(relayed)
    }

    fn close(&mut self, id: AllocationId) {
        self.0.remove(&id);
    }
}

fn server(password: &str) -> Server {
    started(password, 1)
}

/// A server after a start, with a secret of its own.
fn started(password: &str, secret: u8) -> Server {
    let config = ServerConfig {
        realm: "r".into(),
        users: vec![User { name: "ann".into(), password: password.into() }],
        limits: Limits::default(),
        peers: PeerRules { allow: vec!["127.0.0.0/8".parse().unwrap()] },
        grants_open: true,
        secret: [secret; 32],
    };
    Server::new(at(0), config)
}

fn relay(address: &str) -> Relay {
    Relay {
        name: "first".into(),
        address: address.parse().unwrap(),
        user: "ann".into(),
        password: "secret".into(),
    }
}

async fn bound() -> UdpSockets {
    UdpSockets::bind(&[BindTo::Address([127, 0, 0, 1].into())], 0).unwrap()
}

/// Lets relays and server talk; what changed.
fn talk(relays: &mut Relays, server: &mut Server, ports: &mut Ports) -> Vec<RelayChange> {
    while let Some(out) = relays.poll_transmit() {
        let (home, relay) = (out.transmit.local, out.transmit.remote);
        if let Reply::Answer(answer) = server.handle_client(at(0), home, &out.bytes, ports) {
            let answer = Bytes::from(answer);
            let mut datagrams = vec![Datagram::new(home, relay, answer)];
            relays.unwrap(at(0), &mut datagrams);
            assert!(datagrams.is_empty(), "what the relay says is not for the engine");
        }
    }
    std::iter::from_fn(|| relays.poll_change()).collect()
}

#[tokio::test]
async fn a_batch_is_wrapped_as_a_batch_and_comes_back_unpacked() {
    let (mut server, mut ports) = (server("secret"), Ports::default());
    let sockets = bound().await;
    let home = sockets.bound().as_slice()[0];
    let relay = relay("127.0.0.2:3478");
    let (mut relays, notes) = Relays::new(at(0), &[relay.clone(), relay.clone()], sockets.bound());
    assert_eq!((relays.count(), notes.len()), (1, 1), "named twice: {notes:?}");
    let peer: SocketAddr = PEER.parse().unwrap();
    relays.add_peer(at(0), 0, peer);
    let changes = talk(&mut relays, &mut server, &mut ports);
    let relayed = relays.status()[0].relayed.unwrap();
    assert!(changes.contains(&RelayChange::Open((relayed, peer))), "{changes:?}");

    let transmit = Transmit::new(relayed, peer, 100);
    let bytes: Vec<u8> = (0..250u8).collect();
    let mut batch = Outgoing::new(transmit, bytes.clone());
    assert!(relays.wrap(at(1), &mut batch));
    let Transmit { local, remote, segment_size, .. } = batch.transmit;
    assert_eq!((local, remote, segment_size), (home, relay.address, 104));
    assert_eq!(batch.bytes.len(), 250 + 3 * RELAY_OVERHEAD);
    let mut forwarded = Vec::new();
    for packet in batch.bytes.chunks(segment_size) {
        match server.handle_client(at(1), home, packet, &mut ports) {
            Reply::ToPeer { peer: to, payload, .. } if to == peer => {
                forwarded.extend_from_slice(&packet[payload]);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(forwarded, bytes);

    let id = *ports.0.keys().next().unwrap();
    let back = server.handle_peer(at(1), id, peer, b"answer").unwrap();
    let Prefix::Channel(header) = back.prefix else { panic!("no channel") };
    let payload = Bytes::from([&header[..], b"answer"].concat());
    let direct = Datagram::new(home, peer, "direct");
    let mut datagrams = vec![direct, Datagram::new(home, relay.address, payload)];
    relays.unwrap(at(1), &mut datagrams);
    assert_eq!((datagrams[1].local, datagrams[1].remote), (relayed, peer));
    assert_eq!(datagrams[1].payload, b"answer"[..]);
    assert_eq!((datagrams[0].local, &datagrams[0].payload[..]), (home, &b"direct"[..]));

    relays.close(at(2));
    talk(&mut relays, &mut server, &mut ports);
    assert_eq!(ports.0.len(), 0, "given back");
    let mut late = Outgoing::new(transmit, bytes);
    assert!(!relays.wrap(at(2), &mut late), "nothing leaves from an address that is not ours");
}

/// Sends a batch of 100, 100 and 50 bytes to the peer: the length of each packet of it but the
/// last, and of the whole batch, as they leave.
fn send_batch(
    relays: &mut Relays,
    server: &mut Server,
    ports: &mut Ports,
    relayed: SocketAddr,
) -> (usize, usize) {
    let (peer, bytes) = (PEER.parse().unwrap(), (0..250u8).collect::<Vec<u8>>());
    let mut batch = Outgoing::new(Transmit::new(relayed, peer, 100), bytes.clone());
    assert!(relays.wrap(at(1), &mut batch));
    let (home, segment) = (batch.transmit.local, batch.transmit.segment_size);
    let mut forwarded = Vec::new();
    for packet in batch.bytes.chunks(segment) {
        match server.handle_client(at(1), home, packet, ports) {
            Reply::ToPeer { peer: to, payload, .. } if to == peer => {
                forwarded.push(packet[payload].to_vec());
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(forwarded.concat(), bytes);
    assert_eq!(forwarded.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 50]);
    (segment, batch.bytes.len())
}

#[tokio::test]
async fn a_stranger_is_answered_without_a_channel_and_a_peer_with_one() {
    let (mut server, mut ports) = (server("secret"), Ports::default());
    let sockets = bound().await;
    let relay = relay("127.0.0.2:3478");
    let (mut relays, _) = Relays::accepting(at(0), std::slice::from_ref(&relay), sockets.bound());
    let changes = talk(&mut relays, &mut server, &mut ports);
    assert_eq!(changes, [RelayChange::Status]);
    let status = relays.status().remove(0);
    let relayed = status.relayed.unwrap();
    assert!(status.is_open);
    let less: Vec<_> = relays.links().map(|(_, _, less)| less).collect();
    assert_eq!(less, [36], "room for the longer header");

    let peer: SocketAddr = PEER.parse().unwrap();
    let id = *ports.0.keys().next().unwrap();
    let Prefix::Indication(whole) = server.handle_peer(at(1), id, peer, b"hello").unwrap().prefix
    else {
        panic!("there is no channel")
    };
    let home = sockets.bound().as_slice()[0];
    let mut datagrams = vec![Datagram::new(home, relay.address, Bytes::from(whole))];
    relays.unwrap(at(1), &mut datagrams);
    assert_eq!((datagrams[0].local, datagrams[0].remote), (relayed, peer));
    assert_eq!(datagrams[0].payload, b"hello"[..]);

    let batch = send_batch(&mut relays, &mut server, &mut ports, relayed);
    assert_eq!(batch, (136, 136 + 136 + 36 + 52), "words are filled");
    relays.keep_peer(at(1), (relayed, peer));
    talk(&mut relays, &mut server, &mut ports);
    assert_eq!(send_batch(&mut relays, &mut server, &mut ports, relayed), (104, 262));
    relays.drop_peer((relayed, peer));
    assert_eq!(send_batch(&mut relays, &mut server, &mut ports, relayed).0, 136);
}

#[tokio::test]
async fn another_address_of_a_relay_that_peers_come_through_is_told_with_the_old_one() {
    let (mut old, mut ports) = (server("secret"), Ports::default());
    let sockets = bound().await;
    let (mut relays, _) = Relays::accepting(at(0), &[relay("127.0.0.2:3478")], sockets.bound());
    talk(&mut relays, &mut old, &mut ports);
    let from = relays.status()[0].relayed.unwrap();
    // The relay was started again, and others were faster.
    let mut new = server("secret");
    assert_eq!(relays.poll_timeout(), Some(at(15_000)));
    relays.handle_timeout(at(15_000));
    talk(&mut relays, &mut new, &mut ports);
    assert_eq!(relays.status()[0].relayed, None);
    relays.handle_timeout(at(15_000));
    let changes = talk(&mut relays, &mut new, &mut ports);
    let to = relays.status()[0].relayed.unwrap();
    assert!(changes.contains(&RelayChange::Moved { from, to }), "{changes:?}");
}

#[tokio::test]
async fn a_relay_at_an_ipv4_address_in_an_ipv6_one_is_at_the_ipv4_address() {
    let sockets = bound().await;
    let both = ["[::ffff:127.0.0.2]:3478", "127.0.0.2:3478"].map(relay);
    let (relays, notes) = Relays::new(at(0), &both, sockets.bound());
    assert_eq!(relays.status()[0].address, both[1].address);
    assert!(notes[0].contains("named twice"), "{notes:?}");
}

#[tokio::test]
async fn what_is_wrong_with_a_relay_is_said() {
    let (mut server, mut ports) = (server("another"), Ports::default());
    let sockets = bound().await;
    let relays = [relay("127.0.0.2:3478"), relay("[2001:db8::1]:3478")];
    let (mut relays, notes) = Relays::new(at(0), &relays, sockets.bound());
    assert!(notes[0].contains("no local address"), "{notes:?}");
    let changes = talk(&mut relays, &mut server, &mut ports);
    assert_eq!(changes, [RelayChange::Status]);
    let status = &relays.status()[0];
    assert_eq!((status.name.as_str(), status.relayed), ("first", None));
    assert!(status.error.as_ref().unwrap().contains("401"), "{status:?}");
    assert!(!format!("{:?}", relay("127.0.0.2:1")).contains("secret"), "no password in logs");
}

#[tokio::test]
async fn a_way_that_the_relay_forgot_opens_after_a_second_of_silence() {
    let (mut server, mut ports) = (server("secret"), Ports::default());
    let sockets = bound().await;
    let (mut relays, _) = Relays::new(at(0), &[relay("127.0.0.2:3478")], sockets.bound());
    let peer: SocketAddr = PEER.parse().unwrap();
    relays.add_peer(at(0), 0, peer);
    talk(&mut relays, &mut server, &mut ports);
    let relayed = relays.status()[0].relayed.unwrap();

    // The allocation lasts 600 s, the permission 300 s. Only the relay's clock has moved.
    let later = at(400_000);
    let is_forwarded = |relays: &mut Relays, server: &mut Server, ports: &mut Ports, ms| {
        let mut batch = Outgoing::new(Transmit::new(relayed, peer, 5), b"hello".to_vec());
        assert!(relays.wrap(at(ms), &mut batch));
        let reply = server.handle_client(later, batch.transmit.local, &batch.bytes, ports);
        matches!(reply, Reply::ToPeer { .. })
    };
    assert!(!is_forwarded(&mut relays, &mut server, &mut ports, 5000), "dropped in silence");
    assert_eq!(relays.poll_timeout(), Some(at(6000)));
    relays.handle_timeout(at(6000));
    let request = relays.poll_transmit().expect("a request to bind the channel");
    let home = request.transmit.local;
    let reply = server.handle_client(later, home, &request.bytes, &mut ports);
    let Reply::Answer(answer) = reply else { panic!("{reply:?}") };
    let answer = Datagram::new(home, request.transmit.remote, Bytes::from(answer));
    relays.unwrap(at(6000), &mut vec![answer]);
    assert!(is_forwarded(&mut relays, &mut server, &mut ports, 6001), "forwarded again");
    assert_eq!(relays.poll_change(), None, "the way was open all the time");
}

#[tokio::test]
async fn a_number_outlives_the_relays_restart_and_the_address_does_not() {
    let (mut old, mut ports) = (server("secret"), Ports::default());
    let sockets = bound().await;
    let (mut relays, _) = Relays::numbered(at(0), &[relay("127.0.0.2:3478")], sockets.bound());
    talk(&mut relays, &mut old, &mut ports);
    let before = relays.status().remove(0);
    let number = before.number.expect("a number");
    let mut new = started("secret", 2);
    relays.handle_timeout(at(15_000));
    talk(&mut relays, &mut new, &mut ports);
    relays.handle_timeout(at(15_000));
    talk(&mut relays, &mut new, &mut ports);
    let after = relays.status().remove(0);
    assert_eq!(after.number, Some(number));
    assert_ne!(after.relayed, before.relayed);
    relays.close(at(15_001));
    assert_eq!(relays.status()[0].number, None, "it is not ours any more");
}

#[tokio::test]
async fn an_endpoint_that_wants_no_number_asks_for_none() {
    let (mut server, mut ports) = (server("secret"), Ports::default());
    let sockets = bound().await;
    let (mut relays, _) = Relays::accepting(at(0), &[relay("127.0.0.2:3478")], sockets.bound());
    talk(&mut relays, &mut server, &mut ports);
    let status = relays.status().remove(0);
    assert!(status.is_open && status.number.is_none(), "{status:?}");
}
