//! Probing paths without an association: round-trip time and loss of each.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use manypath_proto::overlay::Probes;
use manypath_proto::{Datagram, Instant, Transmit};
use tokio::time::Sleep;

use crate::address::unmapped;
use crate::bind::{BindError, BindTo};
use crate::clock::Clock;
use crate::pairing::Pairs;
use crate::probe;
use crate::recv::UdpReceiver;
use crate::relays::{RelayChange, RelayStatus, Relays, Way};
use crate::send::{Outgoing, Sent};
use crate::sockets::UdpSockets;
use crate::uplinks::Uplinks;

/// How paths are probed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct ProbeOptions {
    /// Probes on each path.
    pub count: u32,
    /// Time between two on one path.
    pub interval: Duration,
    /// How long an answer is waited for.
    pub wait: Duration,
    /// How long relays may take to give us an address and a way.
    pub relay_wait: Duration,
    /// The peer's SCTP port.
    pub sctp_port: u16,
}

/// A path and what its probes showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbedPath {
    /// Our transport address, on the relay if there is one.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// The number of the relay.
    pub relay: Option<usize>,
    /// Results of the probes.
    pub probes: Probes,
}

/// Sockets and relays to probe from.
pub struct Prober {
    sockets: UdpSockets,
    relays: Relays,
    receiver: UdpReceiver,
    clock: Clock,
    timer: Pin<Box<Sleep>>,
    notes: Vec<String>,
    open: Vec<Way>,
}

/// Probes on their way, by the tag that the answer will carry.
type OnTheirWay = BTreeMap<u32, (usize, Instant)>;

impl Prober {
    /// Opens the sockets. Must be called within a tokio runtime.
    pub fn bind(bind: &[BindTo]) -> Result<Prober, BindError> {
        let sockets = UdpSockets::bind(bind, 0)?;
        let notes = sockets.notes().to_vec();
        let timer = Box::pin(tokio::time::sleep(Duration::ZERO));
        let (clock, receiver, open) = (Clock::start(), UdpReceiver::new(), Vec::new());
        Ok(Prober { sockets, relays: Relays::default(), receiver, clock, timer, notes, open })
    }

    /// Like [`bind`](Self::bind), with a path through each of these relays.
    #[cfg(feature = "relay")]
    pub fn bind_with(bind: &[BindTo], relays: &[crate::Relay]) -> Result<Prober, BindError> {
        let mut prober = Prober::bind(bind)?;
        let (relays, notes) = Relays::new(prober.clock.now(), relays, prober.sockets.bound());
        prober.relays = relays;
        prober.notes.extend(notes);
        Ok(prober)
    }

    /// Notes for the user on the sockets and relays.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How the relays are doing.
    pub fn relays(&self) -> Vec<RelayStatus> {
        self.relays.status()
    }

    /// Probes every direct path to `remotes`, as an endpoint would pair addresses, and one through
    /// each relay.
    pub async fn probe(
        &mut self,
        remotes: &[SocketAddr],
        options: ProbeOptions,
    ) -> Vec<ProbedPath> {
        let remotes: Vec<_> = remotes.iter().copied().map(unmapped).collect();
        let direct = self.pair(&remotes);
        let path =
            |(local, remote), relay| ProbedPath { local, remote, relay, probes: Probes::default() };
        let mut paths: Vec<_> = direct.into_iter().map(|way| path(way, None)).collect();
        self.open_ways(&remotes, options.relay_wait).await;
        for &way in &self.open {
            let of = |r: &RelayStatus| r.relayed == Some(way.0);
            let relay = self.relays.status().iter().position(of);
            paths.push(path(way, relay));
        }
        paths[..].sort_by_key(|p| p.relay);

        let mut on_their_way = OnTheirWay::new();
        let mut next = self.clock.now();
        for round in 0..options.count {
            for (index, path) in paths.iter().enumerate() {
                // Tags are ours to choose; only an answer to this very probe carries this one.
                let Ok(tag) = getrandom::u32() else { continue };
                let tag = tag.max(1);
                let init = probe::init(tag, options.sctp_port, 0);
                self.send(path.local, path.remote, init).await;
                on_their_way.insert(tag, (index, self.clock.now()));
            }
            let last = round + 1 == options.count;
            next = if last { self.clock.now() + options.wait } else { next + options.interval };
            self.listen(next, &mut paths, &mut on_their_way, last).await;
            // What is too late is lost.
            let now = self.clock.now();
            on_their_way.retain(|_, (index, sent)| {
                let late = now - *sent >= options.wait || last;
                if late {
                    paths[*index].probes.add(None);
                }
                !late
            });
        }
        paths
    }

    /// Has every relay trace its route to the peer; waits until all have told it, or say that they
    /// do not, and no longer than `wait`. The routes are in the relays' [status](Self::relays).
    pub async fn trace_relays(&mut self, wait: Duration) {
        let now = self.clock.now();
        for &(relayed, peer) in &self.open {
            self.relays.trace(now, relayed, peer);
        }
        let until = now + wait;
        let is_missing = |prober: &Prober| {
            let status = prober.relays.status();
            prober.open.iter().any(|(relayed, peer)| {
                let relay = status.iter().find(|relay| relay.relayed == Some(*relayed));
                relay.is_some_and(|relay| !relay.routes.contains_key(&peer.ip()))
            })
        };
        while is_missing(self) && self.clock.now() < until {
            self.receive(until).await;
        }
    }

    /// The paths that an endpoint would begin with.
    fn pair(&mut self, remotes: &[SocketAddr]) -> Vec<(SocketAddr, SocketAddr)> {
        let mut uplinks = Uplinks::default();
        if self.sockets.follows_uplinks() {
            uplinks = Uplinks::to(remotes);
            self.sockets.open_uplinks(&uplinks.places());
        }
        Pairs::towards(&uplinks, self.sockets.bound(), remotes).paths
    }

    /// Gives the relays' addresses back.
    pub async fn close(&mut self) {
        self.relays.close(self.clock.now());
        self.serve_relays().await;
    }

    /// Waits until every relay has a way to the peer or an error.
    async fn open_ways(&mut self, remotes: &[SocketAddr], wait: Duration) {
        let now = self.clock.now();
        for index in 0..self.relays.count() {
            if let Some(&remote) = remotes.get(index % remotes.len().max(1)) {
                self.relays.add_peer(now, index, remote);
            }
        }
        let until = now + wait;
        loop {
            let waiting = self.relays.status().iter().any(|relay| {
                let ready = self.open.iter().any(|way| Some(way.0) == relay.relayed);
                !ready && relay.error.is_none()
            });
            if !waiting || self.clock.now() >= until {
                return;
            }
            self.receive(until).await;
        }
    }

    /// Takes answers until `until`, or until there are none to wait for.
    async fn listen(
        &mut self,
        until: Instant,
        paths: &mut [ProbedPath],
        on_their_way: &mut OnTheirWay,
        until_all_are_here: bool,
    ) {
        while self.clock.now() < until && !(until_all_are_here && on_their_way.is_empty()) {
            for datagram in self.receive(until).await {
                let Some(tag) = probe::answered(&datagram.payload) else { continue };
                let Some(&(index, sent)) = on_their_way.get(&tag) else { continue };
                let path = &mut paths[index];
                // Also behind a NAT the answer comes from where the probe went.
                if datagram.remote == path.remote {
                    on_their_way.remove(&tag);
                    path.probes.add(Some(self.clock.now() - sent));
                }
            }
        }
    }

    /// The next datagrams, if any arrive until `until`; serves relays meanwhile.
    async fn receive(&mut self, until: Instant) -> Vec<Datagram> {
        let mut received = Vec::new();
        self.serve_relays().await;
        let deadline = self.relays.poll_timeout().map_or(until, |at| at.min(until));
        self.timer.as_mut().reset(self.clock.to_std(deadline).into());
        poll_fn(|cx: &mut Context<'_>| {
            let arrived = self.receiver.poll_recv(cx, &self.sockets, &mut received).is_ready();
            if arrived || self.timer.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
        self.relays.unwrap(self.clock.now(), &mut received);
        self.serve_relays().await;
        received
    }

    async fn serve_relays(&mut self) {
        self.relays.handle_timeout(self.clock.now());
        while let Some(change) = self.relays.poll_change() {
            match change {
                RelayChange::Open(way) if !self.open.contains(&way) => self.open.push(way),
                RelayChange::Gone(local) => self.open.retain(|way| way.0 != local),
                _ => {}
            }
        }
        while let Some(message) = self.relays.poll_transmit() {
            self.put(message).await;
        }
    }

    async fn send(&mut self, local: SocketAddr, remote: SocketAddr, bytes: Vec<u8>) {
        let transmit = Transmit::new(local, remote, bytes.len());
        let mut probe = Outgoing::new(transmit, bytes);
        if self.relays.wrap(self.clock.now(), &mut probe) {
            self.put(probe).await;
        }
    }

    /// Hands a packet to its socket, when that takes it: a new socket does not at once.
    async fn put(&mut self, mut packet: Outgoing) {
        let Some(index) = self.sockets.socket_for(packet.transmit.local) else { return };
        while self.sockets.try_send(&mut packet) == Sent::Blocked {
            if poll_fn(|cx| self.sockets.poll_writable(index, cx)).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(all(test, feature = "relay"))]
mod tests;
