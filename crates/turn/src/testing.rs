//! A relay and its clients in one process, without a network.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};

use manypath_proto::Instant;

use crate::*;

pub(crate) fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

pub(crate) fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Sockets that are only numbers.
#[derive(Default)]
pub(crate) struct Ports {
    pub(crate) open: BTreeMap<AllocationId, SocketAddr>,
    next: u16,
    /// The relay's address.
    pub(crate) on: Option<IpAddr>,
}

impl Sockets for Ports {
    fn open(&mut self, id: AllocationId, wanted: Wanted) -> io::Result<SocketAddr> {
        if wanted.v6 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.next += 1;
        self.next += u16::from(wanted.even && self.next % 2 == 1);
        let relayed = SocketAddr::new([203, 0, 113, 1].into(), 50_000 + self.next);
        self.open.insert(id, relayed);
        Ok(relayed)
    }

    fn close(&mut self, id: AllocationId) {
        assert!(self.open.remove(&id).is_some(), "closed what was not open");
    }

    fn spoken_to(&self) -> Option<IpAddr> {
        self.on
    }
}

/// A server with its sockets.
pub(crate) struct Relay {
    pub(crate) server: Server,
    pub(crate) ports: Ports,
}

pub(crate) fn config(limits: Limits) -> ServerConfig {
    let user = |name: &str, password: &str| User { name: name.into(), password: password.into() };
    ServerConfig {
        realm: "test".into(),
        users: vec![user("ann", "a secret"), user("bob", "another")],
        limits,
        peers: PeerRules { allow: vec!["198.51.100.0/24".parse().unwrap()] },
        grants_open: true,
        secret: [3; 32],
    }
}

impl Relay {
    pub(crate) fn new(limits: Limits) -> Relay {
        Relay { server: Server::new(at(0), config(limits)), ports: Ports::default() }
    }

    pub(crate) fn handle(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Reply {
        self.server.handle_client(now, from, datagram, &mut self.ports)
    }

    pub(crate) fn timeout(&mut self, now: Instant) {
        self.server.handle_timeout(now, &mut self.ports);
    }

    /// Passes everything that the client wants to say to and fro; its events.
    pub(crate) fn serve(
        &mut self,
        now: Instant,
        from: SocketAddr,
        client: &mut Client,
    ) -> Vec<ClientEvent> {
        while let Some(datagram) = client.poll_transmit() {
            if let Reply::Answer(answer) = self.handle(now, from, &datagram) {
                assert_eq!(client.handle(now, &answer), Received::Other);
            }
        }
        std::iter::from_fn(|| client.poll_event()).collect()
    }

    /// A client of ann at `from` that wants an open allocation, and has one.
    pub(crate) fn open_client(&mut self, now: Instant, from: SocketAddr) -> Client {
        let options = ClientOptions { access: Access::Open, ..ClientOptions::default() };
        let mut client = Client::new(now, "ann", "a secret", options);
        let events = self.serve(now, from, &mut client);
        assert!(matches!(events[..], [ClientEvent::Allocated { .. }]), "{events:?}");
        client
    }

    /// The allocation of the client that has this relayed address.
    pub(crate) fn allocation(&self, client: &Client) -> AllocationId {
        let mut open = self.ports.open.iter();
        let is_its = |relayed: &SocketAddr| Some(*relayed) == client.relayed();
        *open.find(|(_, relayed)| is_its(relayed)).expect("it is allocated").0
    }

    /// A packet of a peer, as the datagram that the client gets.
    pub(crate) fn brought(
        &mut self,
        now: Instant,
        id: AllocationId,
        peer: SocketAddr,
        payload: &[u8],
    ) -> Option<Vec<u8>> {
        Some(match self.server.handle_peer(now, id, peer, payload)?.prefix {
            Prefix::Channel(header) => [&header[..], payload].concat(),
            Prefix::Indication(whole) => whole,
        })
    }

    /// A client of ann at `from` that has allocated, with a way to `peer`.
    pub(crate) fn client(&mut self, now: Instant, from: SocketAddr, peer: SocketAddr) -> Client {
        let mut client = Client::new(now, "ann", "a secret", ClientOptions::default());
        client.add_peer(now, peer);
        let events = self.serve(now, from, &mut client);
        let [ClientEvent::Allocated { .. }, ClientEvent::PeerReady(ready)] = events[..] else {
            panic!("{events:?}")
        };
        assert_eq!(ready, peer);
        client
    }
}
