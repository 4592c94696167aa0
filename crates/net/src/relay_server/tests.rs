use std::time::Duration;

use manypath_turn::{Client, ClientEvent, ClientOptions, Limits, PeerRules, Received, User};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);

fn options(limits: Limits) -> RelayServerOptions {
    let user = User { name: "ann".into(), password: "secret".into() };
    RelayServerOptions {
        config: ServerConfig {
            realm: "r".into(),
            users: vec![user],
            limits,
            peers: PeerRules { allow: vec!["127.0.0.0/8".parse().unwrap()] },
            grants_open: true,
            secret: [1; 32],
        },
        listen: vec![BindTo::Address([127, 0, 0, 2].into())],
        port: 0,
        ports: 49152..=65535,
        external: None,
        stun_port: StunPort::Off,
    }
}

/// A client with its socket.
struct Speaker {
    socket: UdpSocket,
    relay: SocketAddr,
    client: Client,
    clock: Clock,
}

impl Speaker {
    async fn new(relay: SocketAddr, password: &str) -> Speaker {
        let clock = Clock::start();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        Speaker {
            socket,
            relay,
            client: Client::new(clock.now(), "ann", password, ClientOptions::default()),
            clock,
        }
    }

    /// Speaks until something happens or a payload comes.
    async fn next(&mut self) -> Result<ClientEvent, Vec<u8>> {
        let mut buffer = [0; 2000];
        loop {
            while let Some(datagram) = self.client.poll_transmit() {
                self.socket.send_to(&datagram, self.relay).await.unwrap();
            }
            if let Some(event) = self.client.poll_event() {
                return Ok(event);
            }
            let received = self.socket.recv_from(&mut buffer);
            let Ok(received) = timeout(Duration::from_millis(50), received).await else {
                self.client.handle_timeout(self.clock.now());
                continue;
            };
            let (len, _) = received.unwrap();
            let got = self.client.handle(self.clock.now(), &buffer[..len]);
            if let Received::Data { payload, .. } = got {
                return Err(buffer[payload].to_vec());
            }
        }
    }
}

/// Runs `talk` with a relay, and gives the relay back.
async fn with_relay<F: Future<Output = ()>>(
    limits: Limits,
    talk: impl FnOnce(SocketAddr) -> F,
) -> RelayServer {
    let mut relay = RelayServer::bind(options(limits)).unwrap();
    let address = relay.addresses()[0];
    let ended = tokio::select! {
        ended = timeout(PATIENCE, talk(address)) => ended,
        () = relay.run() => panic!("a relay runs until it is dropped"),
    };
    ended.expect("in time");
    relay
}

#[tokio::test]
async fn a_peer_and_a_client_speak_through_it_after_much_garbage() {
    let relay = with_relay(Limits::default(), |address| async move {
        let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        for i in 0..2000u32 {
            let junk: Vec<u8> = (0..i % 90).map(|j| (i * 31 + j * 7) as u8).collect();
            stranger.send_to(&junk, address).await.unwrap();
        }
        let peer = UdpSocket::bind("127.0.0.3:0").await.unwrap();
        let mut speaker = Speaker::new(address, "secret").await;
        let now = speaker.clock.now();
        speaker.client.add_peer(now, peer.local_addr().unwrap());
        let Ok(ClientEvent::Allocated { relayed, .. }) = speaker.next().await else { panic!() };
        assert_eq!(relayed.ip(), address.ip());
        let Ok(ClientEvent::PeerReady(to)) = speaker.next().await else { panic!() };

        let header = speaker.client.header(speaker.clock.now(), to, 5).unwrap();
        let packet = [&header[..], b"hello"].concat();
        speaker.socket.send_to(&packet, address).await.unwrap();
        let mut buffer = [0; 100];
        let (len, from) = peer.recv_from(&mut buffer).await.unwrap();
        assert_eq!((&buffer[..len], from), (&b"hello"[..], relayed));
        peer.send_to(b"hi", relayed).await.unwrap();
        assert_eq!(speaker.next().await, Err(b"hi".to_vec()));
    })
    .await;
    let (stats, allocations) = relay.stats();
    assert_eq!((stats.allocated, allocations, stats.bytes), (1, 1, 7));
    assert!(stats.garbage > 500, "{stats:?}");
}

#[tokio::test]
async fn who_has_no_password_gets_nothing() {
    let relay = with_relay(Limits::default(), |address| async move {
        let mut speaker = Speaker::new(address, "guess").await;
        let Ok(ClientEvent::Failed(error)) = speaker.next().await else { panic!() };
        assert!(error.is_final());
    })
    .await;
    assert_eq!(relay.stats().1, 0);
    assert!(relay.opener.open.is_empty());
    assert_eq!(relay.stats().0.refused, 1);
}

#[tokio::test]
async fn an_allocation_that_nobody_refreshes_closes_its_socket() {
    let short = Limits { lifetime_max: Duration::from_secs(1), ..Limits::default() };
    let relay = with_relay(short, |address| async move {
        let mut speaker = Speaker::new(address, "secret").await;
        let Ok(ClientEvent::Allocated { relayed, .. }) = speaker.next().await else { panic!() };
        assert!(std::net::UdpSocket::bind(relayed).is_err(), "in use");
        drop(speaker);
        while std::net::UdpSocket::bind(relayed).is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let (stats, allocations) = relay.stats();
    assert_eq!((allocations, stats.expired, relay.opener.open.len()), (0, 1, 0));
}

#[test]
fn packets_that_follow_each_other_on_one_way_become_one_batch() {
    let (a, b): (SocketAddr, SocketAddr) =
        ("127.0.0.1:1".parse().unwrap(), "127.0.0.2:2".parse().unwrap());
    let mut batches = Batches::default();
    for len in [100, 100, 60, 100, 104] {
        batches.add(Leaves::Clients, a, b, &[1; 4], &vec![2; len]);
    }
    batches.add(Leaves::Clients, b, a, &[], &[3; 108]);
    let shape: Vec<_> =
        batches.0.iter().map(|(_, o)| (o.transmit.segment_size, o.bytes.len())).collect();
    assert_eq!(shape, [(104, 272), (104, 104), (108, 108), (108, 108)]);
    for _ in 0..200 {
        batches.add(Leaves::Clients, a, b, &[], &[4; 10]);
    }
    let packets = |o: &Outgoing| o.bytes.len().div_ceil(o.transmit.segment_size);
    assert!(batches.0.iter().all(|(_, o)| packets(o) <= MAX_SEGMENTS));
}

#[tokio::test]
async fn a_public_ipv4_address_in_an_ipv6_one_is_an_ipv4_address() {
    let external = Some("::ffff:192.0.2.1".parse().unwrap());
    let relay =
        RelayServer::bind(RelayServerOptions { external, ..options(Limits::default()) }).unwrap();
    assert_eq!(relay.opener.external, Some("192.0.2.1".parse().unwrap()));
}

#[tokio::test]
async fn the_relay_traces_its_route_to_a_peer_of_its_user() {
    with_relay(Limits::default(), |relay| async move {
        let mut speaker = Speaker::new(relay, "secret").await;
        let peer = "127.0.0.7:9899".parse().unwrap();
        speaker.client.add_peer(speaker.clock.now(), peer);
        while speaker.next().await != Ok(ClientEvent::PeerReady(peer)) {}
        speaker.client.trace(speaker.clock.now(), peer);
        let event = timeout(PATIENCE, speaker.next()).await.expect("it answers");
        let Ok(ClientEvent::Traced(of, Some(route))) = event else { panic!("{event:?}") };
        assert_eq!(of, peer);
        if cfg!(target_os = "linux") {
            let hops: Vec<_> = route.hops.iter().flatten().map(|hop| hop.address).collect();
            assert_eq!((hops, route.reached), (vec![peer.ip()], true));
        }
    })
    .await;
}

/// A Binding request of STUN, which asks for an answer from another port if `change` is true.
fn binding(change: bool) -> Vec<u8> {
    let cookie = [0x21, 0x12, 0xa4, 0x42];
    let attribute: &[u8] = if change { &[0, 3, 0, 4, 0, 0, 0, 2] } else { &[] };
    [&[0, 1, 0, attribute.len() as u8][..], &cookie, &[7; 12], attribute].concat()
}

#[tokio::test]
async fn a_stranger_gets_answers_from_the_port_that_he_asks_for() {
    let listen = vec![BindTo::Address([127, 0, 0, 9].into())];
    // The port after a free one may be in use.
    let mut relay = loop {
        let (listen, stun_port) = (listen.clone(), StunPort::Next);
        let options = RelayServerOptions { listen, stun_port, ..options(Limits::default()) };
        let relay = RelayServer::bind(options).unwrap();
        if relay.stun_port().is_some() {
            break relay;
        }
        assert!(relay.stun_port_error().is_some());
    };
    let main = relay.addresses()[0];
    let second = SocketAddr::new(main.ip(), relay.stun_port().unwrap());
    assert_eq!(second.port(), main.port() + 1);
    let asking = async {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        for (to, change, expected) in [
            (main, false, main),
            (main, true, second),
            (second, false, second),
            (second, true, main),
        ] {
            socket.send_to(&binding(change), to).await.unwrap();
            let mut buffer = [0; 200];
            let (_, from) = socket.recv_from(&mut buffer).await.unwrap();
            assert_eq!((from, &buffer[..2]), (expected, &[1, 1][..]), "{to} {change}");
        }
        // The second port takes nothing but Binding requests.
        let allocate = [&[0, 3][..], &binding(false)[2..]].concat();
        socket.send_to(&allocate, second).await.unwrap();
        let mut buffer = [0; 200];
        let answer = timeout(Duration::from_millis(200), socket.recv_from(&mut buffer)).await;
        assert!(answer.is_err(), "{answer:?}");
    };
    tokio::select! {
        ended = timeout(PATIENCE, asking) => ended.expect("in time"),
        () = relay.run() => panic!("a relay runs until it is dropped"),
    }
    assert_eq!(relay.stats().0.garbage, 1);
}

#[tokio::test]
async fn a_relay_whose_second_port_is_taken_works_without() {
    let taken = UdpSocket::bind("127.0.0.10:0").await.unwrap();
    let stun_port = StunPort::Port(taken.local_addr().unwrap().port());
    let listen = vec![BindTo::Address([127, 0, 0, 10].into())];
    let options = RelayServerOptions { listen, stun_port, ..options(Limits::default()) };
    let relay = RelayServer::bind(options).unwrap();
    assert_eq!(relay.stun_port(), None);
    assert!(matches!(relay.stun_port_error(), Some(BindError::InUse(_))));
    assert!(!relay.addresses().is_empty());
}

/// A relay at this address.
fn relay_at(ip: [u8; 4]) -> RelayServer {
    let listen = vec![BindTo::Address(ip.into())];
    RelayServer::bind(RelayServerOptions { listen, ..options(Limits::default()) }).unwrap()
}

/// True if the relay knows this one, and it answers.
fn finds_alive(relay: &RelayServer, other: SocketAddr) -> bool {
    relay.relays().iter().any(|known| known.address == other && known.is_alive)
}

/// RON leaves a dead path after 18 s on average.
const DEAD_WITHIN: Duration = Duration::from_secs(18);

#[tokio::test]
async fn relays_list_and_measure_each_other_and_leave_one_that_stops() {
    let (mut one, mut two) = (relay_at([127, 0, 0, 3]), relay_at([127, 0, 0, 4]));
    let (first, second) = (one.addresses()[0], two.addresses()[0]);
    one.name_relays(&[second]);
    assert!(!one.relays()[0].is_alive, "it did not answer yet");
    // The second one learns of the first by its request.
    let both = async {
        while !(finds_alive(&one, second) && finds_alive(&two, first)) {
            tokio::select! {
                () = one.run_until_relays_change() => {}
                () = two.run_until_relays_change() => {}
            }
        }
    };
    timeout(PATIENCE, both).await.expect("they answer");
    for (relay, other) in [(&one, second), (&two, first)] {
        let known = relay.relays();
        assert_eq!(known.iter().map(|relay| relay.address).collect::<Vec<_>>(), [other]);
        assert!(known[0].rtt.is_some_and(|rtt| rtt < PATIENCE), "{known:?}");
        assert_eq!(known[0].loss, 0.0);
    }
    drop(two);
    let change = timeout(DEAD_WITHIN, one.run_until_relays_change());
    change.await.expect("it is given up");
    assert!(!finds_alive(&one, second));
    assert!(one.relays()[0].loss > 0.0);
}

#[tokio::test]
async fn a_stranger_finds_two_clients_by_their_numbers() {
    use manypath_turn::{Access, WantedNumber};
    with_relay(Limits::default(), |relay| async move {
        let (access, number) = (Access::Open, WantedNumber::Any);
        let wanted = ClientOptions { access, number, ..ClientOptions::default() };
        let mut found = Vec::new();
        let mut speakers = Vec::new();
        for _ in 0..2 {
            let mut speaker = Speaker::new(relay, "secret").await;
            speaker.client = Client::new(speaker.clock.now(), "ann", "secret", wanted);
            let event = speaker.next().await;
            let Ok(ClientEvent::Allocated { relayed, number: Some(number), .. }) = event else {
                panic!("{event:?}")
            };
            let from = [std::net::IpAddr::from([127, 0, 0, 5])];
            let told = crate::look_up_number(relay, number, &from).await.unwrap();
            assert_eq!(told, relayed);
            found.push(number);
            speakers.push(speaker);
        }
        assert_ne!(found[0], found[1]);
        let free = (1..=99).find(|number| !found.contains(number)).unwrap();
        let nobody = crate::look_up_number(relay, free, &[]).await;
        assert!(matches!(nobody, Err(crate::LookupError::NoSuchNumber)), "{nobody:?}");
    })
    .await;
}
