use std::sync::Arc;

use manypath_proto::{Config, Endpoint, EndpointConfig, Rng};
use manypath_turn::{Limits, PeerRules, ServerConfig, User};
use tokio::net::UdpSocket;

use super::*;
use crate::relays::Relay;
use crate::{RelayServer, RelayServerOptions, StunPort};

/// Takes associations on `ip`, and does not hear every `deaf`-th datagram.
async fn responder(ip: &str, deaf: u32) -> SocketAddr {
    let socket = UdpSocket::bind((ip, 0)).await.unwrap();
    let local = socket.local_addr().unwrap();
    let config = EndpointConfig {
        config: Arc::new(Config::default()),
        sctp_port: 9899,
        accept: true,
        max_associations: 4,
        local_addresses: vec![local],
    };
    tokio::spawn(async move {
        let mut engine = Endpoint::new(config, Rng::from_number(1));
        let clock = Clock::start();
        let (mut buffer, mut out, mut heard) = ([0; 2000], Vec::new(), 0);
        loop {
            let (len, remote) = socket.recv_from(&mut buffer).await.unwrap();
            heard += 1;
            if deaf > 0 && heard % deaf == 0 {
                continue;
            }
            let payload = &buffer[..len];
            let now = clock.now();
            engine.handle_datagram(now, Datagram::new(local, remote, payload));
            assert_eq!(engine.associations().count(), 0, "nothing is kept for a probe");
            while let Some(t) = engine.poll_transmit(now, 1, &mut out) {
                socket.send_to(&out, t.remote).await.unwrap();
            }
        }
    });
    local
}

fn options(count: u32) -> ProbeOptions {
    ProbeOptions {
        count,
        interval: Duration::from_millis(10),
        wait: Duration::from_secs(3),
        relay_wait: Duration::from_secs(3),
        sctp_port: 9899,
    }
}

const HOME: BindTo = BindTo::Address(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

#[tokio::test]
async fn a_peer_at_an_ipv4_address_in_an_ipv6_one_is_at_the_ipv4_address() {
    let peer = responder("127.0.0.33", 0).await;
    let given = SocketAddr::new("::ffff:127.0.0.33".parse().unwrap(), peer.port());
    let paths = Prober::bind(&[HOME]).unwrap().probe(&[given], options(1)).await;
    assert_eq!((paths.len(), paths[0].remote, paths[0].probes.answered), (1, peer, 1));
}

#[tokio::test]
async fn probes_count_losses_and_times_on_each_path() {
    let (good, bad) = (responder("127.0.0.31", 0).await, responder("127.0.0.32", 4).await);
    let mut prober = Prober::bind(&[HOME]).unwrap();
    let paths = prober.probe(&[good, bad], options(20)).await;
    let lost: Vec<_> = paths.iter().map(|p| (p.remote, p.probes.sent, p.probes.lost())).collect();
    assert_eq!(lost, [(good, 20, 0.0), (bad, 20, 0.25)]);
    assert!(paths[0].probes.rtt().unwrap() < Duration::from_millis(200));
    assert!(paths[0].probes.score() > paths[1].probes.score());
}

#[tokio::test]
async fn a_path_that_nobody_answers_has_score_0() {
    let silent = UdpSocket::bind("127.0.0.33:0").await.unwrap();
    let mut prober = Prober::bind(&[HOME]).unwrap();
    let paths = prober.probe(&[silent.local_addr().unwrap()], options(3)).await;
    assert_eq!((paths[0].probes.sent, paths[0].probes.answered), (3, 0));
    assert_eq!(paths[0].probes.score(), 0.0);
}

#[tokio::test]
async fn a_path_through_a_relay_is_probed_beside_the_direct_one() {
    let target = responder("127.0.0.34", 0).await;
    let mut server = RelayServer::bind(RelayServerOptions {
        config: ServerConfig {
            realm: "r".into(),
            users: vec![User { name: "ann".into(), password: "secret".into() }],
            limits: Limits::default(),
            peers: PeerRules { allow: vec!["127.0.0.0/8".parse().unwrap()] },
            grants_open: true,
            secret: [1; 32],
        },
        listen: vec![BindTo::Address([127, 0, 0, 35].into())],
        port: 0,
        ports: 49152..=65535,
        external: None,
        stun_port: StunPort::Off,
    })
    .unwrap();
    let relay = |name: &str, password: &str, address| Relay {
        name: name.into(),
        address,
        user: "ann".into(),
        password: password.into(),
    };
    let wrong = relay("wrong", "guess", server.addresses()[0]);
    let right = relay("right", "secret", server.addresses()[0]);
    tokio::spawn(async move { server.run().await });

    let mut prober = Prober::bind_with(&[HOME], &[right]).unwrap();
    let paths = prober.probe(&[target], options(10)).await;
    let shape: Vec<_> = paths.iter().map(|p| (p.relay, p.probes.answered)).collect();
    assert_eq!(shape, [(None, 10), (Some(0), 10)]);
    assert_eq!(Some(paths[1].local), prober.relays()[0].relayed);
    prober.close().await;

    let mut prober = Prober::bind_with(&[HOME], &[wrong]).unwrap();
    let paths = prober.probe(&[target], options(2)).await;
    assert_eq!(paths.len(), 1, "a relay that refuses us gives no path");
    assert!(prober.relays()[0].error.as_ref().unwrap().contains("401"));
}
