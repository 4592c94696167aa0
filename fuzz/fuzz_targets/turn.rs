//! Arbitrary datagrams to a relay, to sockets of its allocations, and to its client. Nothing may
//! panic, nobody who has not proven who he is gets an allocation, and answers to strangers are not
//! much longer than what they sent.

#![no_main]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use manypath_proto::Instant;
use manypath_turn::{
    Access, AllocationId, Client, ClientOptions, Limits, Lookup, PeerRules, Received, Reply,
    Server, ServerConfig, Sockets, User, Wanted, WantedNumber,
};

/// Sockets that always open.
#[derive(Default)]
struct Ports {
    opened: Vec<AllocationId>,
}

impl Sockets for Ports {
    fn open(&mut self, id: AllocationId, wanted: Wanted) -> io::Result<SocketAddr> {
        self.opened.push(id);
        let port = 50_000 + 2 * self.opened.len() as u16;
        let ip = if wanted.v6 { "2001:db8::1" } else { "192.0.2.1" };
        Ok(SocketAddr::new(ip.parse().expect("an address"), port))
    }

    fn close(&mut self, _: AllocationId) {}

    fn spoken_to(&self) -> Option<IpAddr> {
        Some([192, 0, 2, 1].into())
    }
}

fn server(now: Instant) -> Server {
    let user = |name: &str, password: &str| User { name: name.into(), password: password.into() };
    Server::new(
        now,
        ServerConfig {
            realm: "fuzz".into(),
            users: vec![user("ann", "a secret")],
            limits: Limits::default(),
            peers: PeerRules::default(),
            grants_open: true,
            secret: [7; 32],
        },
    )
}

/// A datagram as the answer to a lookup, with its transaction ID.
fn look_up(datagram: &[u8]) {
    let lookup = Lookup::new(7);
    let mut answer = datagram.to_vec();
    if let (Some(id), Some(asked)) = (answer.get_mut(8..20), lookup.request().get(8..20)) {
        id.copy_from_slice(asked);
    }
    lookup.read(&answer);
}

fuzz_target!(|bytes: &[u8]| {
    let mut now = Instant::from_millis(1);
    let addr = |text: &str| -> SocketAddr { text.parse().expect("an address") };
    let (honest, stranger) = (addr("203.0.113.1:4000"), addr("203.0.113.66:4000"));
    let peer = addr("198.51.100.9:9899");
    let (mut server, mut ports) = (server(now), Ports::default());
    server.set_stun_ports(3478, 3479);
    let (access, number) = (Access::Open, WantedNumber::Any);
    let options = ClientOptions { access, number, ..ClientOptions::default() };
    let mut client = Client::new(now, "ann", "a secret", options);
    client.add_peer(now, peer);
    // A client with an allocation and a channel, so that there is something to break.
    for _ in 0..8 {
        while let Some(request) = client.poll_transmit() {
            if let Reply::Answer(answer) = server.handle_client(now, honest, &request, &mut ports) {
                client.handle(now, &answer);
            }
        }
    }
    let allocations = server.allocations();
    assert_eq!(allocations, 1, "the client has one");

    // One datagram after another: a byte says where to, and two how long it is.
    let mut rest = bytes;
    while let [to, high, low, after @ ..] = rest {
        let len = (usize::from(*high % 8) << 8 | usize::from(*low)).min(after.len());
        let (datagram, after) = after.split_at(len);
        rest = after;
        now = now + Duration::from_millis(u64::from(to >> 3) * 40);
        match to % 8 {
            at @ 0..=3 => {
                let reply = if at == 3 {
                    server.handle_other(now, stranger, datagram, &ports)
                } else {
                    server.handle_client(now, stranger, datagram, &mut ports)
                };
                let (to, answer) = match reply {
                    Reply::None => (stranger, Vec::new()),
                    Reply::Answer(answer) => (stranger, answer),
                    Reply::AnswerAt(to, answer) | Reply::AnswerFromOther(to, answer) => {
                        (to, answer)
                    }
                    Reply::ToPeer { .. } => panic!("a stranger is not served"),
                };
                assert_eq!(to.ip(), stranger.ip(), "nobody else gets an answer");
                assert!(answer.len() + 28 <= 5 * (len + 28) / 2, "{} for {len}", answer.len());
            }
            4 => {
                if let Reply::ToPeer { payload, .. } =
                    server.handle_client(now, honest, datagram, &mut ports)
                {
                    assert!(datagram.get(payload).is_some());
                }
            }
            5 => drop(server.handle_peer(now, ports.opened[0], peer, datagram)),
            _ => {
                if let Received::Data { payload, .. } = client.handle(now, datagram) {
                    assert!(datagram.get(payload).is_some());
                }
                look_up(datagram);
            }
        }
        if client.poll_timeout().is_some_and(|at| at <= now) {
            client.handle_timeout(now);
        }
        while client.poll_transmit().is_some() || client.poll_event().is_some() {}
    }
    assert!(server.allocations() <= allocations, "nobody else was let in");
});
