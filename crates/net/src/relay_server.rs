//! The sockets under a relay ([`manypath_turn::Server`]).

mod second;

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::task::{Context, Poll};

use manypath_proto::{Datagram, Instant, Transmit};
use manypath_turn::{
    AllocationId, MeshRelay, MeshTransmit, Prefix, RelayRoute, Reply, Server, ServerConfig,
    ServerStats, Sockets, TraceWanted, Wanted,
};
use socket2::SockRef;
use tokio::task::JoinSet;
use tokio::time::Sleep;

use crate::bind::{BindError, BindTo};
use crate::clock::Clock;
use crate::recv::UdpReceiver;
use crate::relays::source;
use crate::send::Outgoing;
use crate::sockets::UdpSockets;
use crate::traceroute::{TraceOptions, traceroute};
use crate::turn::told;
use second::Second;
pub use second::StunPort;

/// Size of the buffers of an allocation's socket in bytes, each way: some 50 ms at 100 Mbit/s. With
/// the limit on allocations it bounds what peers can fill.
const BUFFER: usize = 1 << 20;

/// Ports tried for an allocation before the relay says that it has no room.
const PORT_TRIES: usize = 16;

/// Rounds of receiving and sending before other tasks get their turn.
const ROUNDS: usize = 8;

/// Bytes of a batch at most, with room for what comes before a payload.
const BATCH_BYTES: usize = 64_000;

/// How a relay is opened.
#[derive(Clone)]
pub struct RelayServerOptions {
    /// The users, limits and rules.
    pub config: ServerConfig,
    /// Where clients reach it; nothing is every address. An allocation is opened on the address
    /// that its client spoke to.
    pub listen: Vec<BindTo>,
    /// The UDP port for clients; 3478 is the one of TURN.
    pub port: u16,
    /// The UDP ports for allocations. RFC 8656 §7.2 has 49152 to 65535.
    pub ports: RangeInclusive<u16>,
    /// The address that peers reach the relay at, if a NAT translates its own one for one.
    pub external: Option<IpAddr>,
    /// The second UDP port, by which clients find out how the NAT before them behaves.
    pub stun_port: StunPort,
}

/// A TURN server on UDP sockets.
pub struct RelayServer {
    clients: UdpSockets,
    second: Second,
    receiver: UdpReceiver,
    received: Vec<Datagram>,
    server: Server,
    opener: Opener,
    clock: Clock,
    timer: Pin<Box<Sleep>>,
    /// The time that the timer is set to.
    timer_at: Option<Instant>,
    outgoing: Batches,
    /// Routes that are being traced for users.
    traces: JoinSet<(TraceWanted, RelayRoute)>,
}

/// Packets on their way out, those that follow each other on one way as one batch.
#[derive(Default)]
struct Batches(Vec<(Leaves, Outgoing)>);

/// The socket that a packet leaves from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Leaves {
    Clients,
    Second,
    Allocation(AllocationId),
}

/// Opens the sockets of allocations.
struct Opener {
    open: BTreeMap<AllocationId, UdpSockets>,
    ports: RangeInclusive<u16>,
    external: Option<IpAddr>,
    /// The address that the client in question spoke to.
    on: IpAddr,
}

impl Sockets for Opener {
    fn open(&mut self, id: AllocationId, wanted: Wanted) -> io::Result<SocketAddr> {
        if wanted.v6 != self.on.is_ipv6() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        for _ in 0..PORT_TRIES {
            let port = random_port(&self.ports)?;
            let port = if wanted.even { port & !1 } else { port };
            if !self.ports.contains(&port) {
                continue;
            }
            match UdpSockets::bind(&[BindTo::Address(self.on)], port) {
                Ok(sockets) => {
                    for socket in &sockets.sockets {
                        let socket = SockRef::from(&socket.io);
                        socket.set_recv_buffer_size(BUFFER)?;
                        socket.set_send_buffer_size(BUFFER)?;
                    }
                    self.open.insert(id, sockets);
                    return Ok(SocketAddr::new(self.external.unwrap_or(self.on), port));
                }
                Err(BindError::InUse(_)) => {}
                Err(BindError::System { source, .. }) => return Err(source),
                Err(_) => return Err(io::ErrorKind::AddrNotAvailable.into()),
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    fn close(&mut self, id: AllocationId) {
        self.open.remove(&id);
    }

    fn spoken_to(&self) -> Option<IpAddr> {
        Some(self.external.unwrap_or(self.on))
    }
}

/// The addresses that clients and other relays reach a relay at.
fn reachable(clients: &UdpSockets, external: Option<IpAddr>) -> Vec<SocketAddr> {
    let own = clients.bound().reachable();
    let translated = external.map(|ip| SocketAddr::new(ip, clients.bound().port()));
    own.into_iter().chain(translated).collect()
}

/// A port of the range; nobody should guess which an allocation gets.
fn random_port(ports: &RangeInclusive<u16>) -> io::Result<u16> {
    let random = getrandom::u32().map_err(io::Error::other)?;
    let count = u32::from(ports.end().saturating_sub(*ports.start())) + 1;
    Ok(ports.start().saturating_add((random % count) as u16))
}

impl RelayServer {
    /// Opens the sockets for clients. Must be called within a tokio runtime.
    pub fn bind(options: RelayServerOptions) -> Result<RelayServer, BindError> {
        let clock = Clock::start();
        let clients = UdpSockets::bind(&options.listen, options.port)?;
        let opener = Opener {
            open: BTreeMap::new(),
            ports: options.ports,
            external: options.external.map(|ip| ip.to_canonical()),
            on: std::net::Ipv4Addr::UNSPECIFIED.into(),
        };
        let own = reachable(&clients, opener.external);
        let mut server = Server::new(clock.now(), options.config);
        server.set_own_addresses(&own);
        let main = clients.bound().port();
        let second = Second::open(&options.listen, main, options.stun_port);
        if let Some(other) = second.port() {
            server.set_stun_ports(main, other);
        }
        Ok(RelayServer {
            clients,
            second,
            receiver: UdpReceiver::new(),
            received: Vec::new(),
            server,
            opener,
            clock,
            timer: Box::pin(tokio::time::sleep(std::time::Duration::ZERO)),
            timer_at: None,
            outgoing: Batches::default(),
            traces: JoinSet::new(),
        })
    }

    /// The addresses that clients can reach it at.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.clients.bound().reachable()
    }

    /// Its counters so far, and the number of allocations now.
    pub fn stats(&self) -> (ServerStats, usize) {
        (self.server.stats(), self.server.allocations())
    }

    /// The other relays that it knows, by address.
    pub fn relays(&self) -> Vec<MeshRelay> {
        self.server.relays()
    }

    /// Takes the other relays that the operator names, in place of those named before. It asks them
    /// as the first of its users.
    pub fn name_relays(&mut self, named: &[SocketAddr]) {
        self.server.name_relays(self.clock.now(), named);
    }

    /// Serves until a relay comes, dies or comes back.
    pub async fn run_until_relays_change(&mut self) {
        loop {
            // A turn that brings a change may be pending: nothing else is left to do.
            let has_changed = poll_fn(|cx| {
                let turn = self.poll_turn(cx);
                let has_changed = self.server.take_relays_changed();
                if has_changed { Poll::Ready(true) } else { turn.map(|()| false) }
            });
            if has_changed.await {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Serves until the future is dropped.
    pub async fn run(&mut self) {
        loop {
            poll_fn(|cx| self.poll_turn(cx)).await;
            tokio::task::yield_now().await;
        }
    }

    /// A few rounds; pending when there is nothing to do for now.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..ROUNDS {
            let now = self.clock.now();
            let mut any = self.serve_clients(cx, now);
            any |= self.serve_second(cx, now);
            any |= self.serve_peers(cx, now);
            any |= self.trace(cx, now);
            self.server.handle_timeout(now, &mut self.opener);
            self.ask_relays(cx);
            self.send();
            if !any && self.poll_timer(cx).is_pending() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    fn serve_clients(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let any = self.receiver.poll_recv(cx, &self.clients, &mut self.received).is_ready();
        for datagram in self.received.drain(..) {
            let Datagram { local, remote: client, payload, .. } = datagram;
            self.opener.on = local.ip();
            match self.server.handle_client(now, client, &payload, &mut self.opener) {
                Reply::None => {}
                Reply::Answer(answer) => {
                    self.outgoing.add(Leaves::Clients, local, client, &[], &answer);
                }
                Reply::AnswerAt(to, answer) => {
                    self.outgoing.add(Leaves::Clients, local, to, &[], &answer);
                }
                Reply::AnswerFromOther(to, answer) => {
                    let Some(port) = self.second.port() else { continue };
                    let from = SocketAddr::new(local.ip(), port);
                    self.outgoing.add(Leaves::Second, from, to, &[], &answer);
                }
                Reply::ToPeer { allocation, peer, payload: range } => {
                    let from = self.opener.open.get(&allocation).map(|s| s.bound().as_slice()[0]);
                    let (Some(from), Some(data)) = (from, payload.get(range)) else { continue };
                    self.outgoing.add(Leaves::Allocation(allocation), from, peer, &[], data);
                }
            }
        }
        any
    }

    fn serve_peers(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let mut any = false;
        for (&id, sockets) in &self.opener.open {
            any |= self.receiver.poll_recv(cx, sockets, &mut self.received).is_ready();
            for Datagram { local, remote: peer, payload, .. } in self.received.drain(..) {
                let Some(forward) = self.server.handle_peer(now, id, peer, &payload) else {
                    continue;
                };
                // Clients are spoken to from the address they spoke to, which the allocation is on
                // too.
                let from = SocketAddr::new(local.ip(), self.clients.bound().port());
                let (header, message): (&[u8], &[u8]) = match &forward.prefix {
                    Prefix::Channel(header) => (header, &payload),
                    Prefix::Indication(message) => (&[], message),
                };
                self.outgoing.add(Leaves::Clients, from, forward.client, header, message);
            }
        }
        any
    }

    /// Sends what other relays are asked. It waits for the sockets: what a full one does not take
    /// would count as lost on the way.
    fn ask_relays(&mut self, cx: &mut Context<'_>) {
        let mut sockets = 0..self.clients.count();
        if !sockets.all(|index| self.clients.poll_writable(index, cx).is_ready()) {
            return;
        }
        while let Some(MeshTransmit { to, bytes }) = self.server.poll_transmit() {
            if let Some(local) = source(to, self.clients.bound()) {
                self.outgoing.add(Leaves::Clients, local, to, &[], &bytes);
            }
        }
    }

    /// Begins to trace what users asked for, and takes what was found.
    fn trace(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let mut any = false;
        while let Some(wanted) = self.server.poll_trace() {
            any = true;
            let from = self.opener.open.get(&wanted.allocation).map(|s| s.bound().as_slice()[0]);
            let Some(from) = from else {
                self.server.handle_trace(now, wanted, RelayRoute::default());
                continue;
            };
            self.traces.spawn_blocking(move || {
                // Without a route there is nothing to tell.
                let found = traceroute(from.ip(), wanted.peer, TraceOptions::default());
                (wanted, told(&found.unwrap_or_default()))
            });
        }
        while let Poll::Ready(Some(done)) = self.traces.poll_join_next(cx) {
            any = true;
            // An error of the task is the end of the runtime.
            if let Ok((wanted, route)) = done {
                self.server.handle_trace(now, wanted, route);
            }
        }
        any
    }

    /// Sends all there is. What a full socket does not take is lost, as on a full link.
    fn send(&mut self) {
        for (leaves, mut batch) in self.outgoing.0.drain(..) {
            let sockets = match leaves {
                Leaves::Clients => Some(&mut self.clients),
                Leaves::Second => self.second.sockets_mut(),
                Leaves::Allocation(id) => self.opener.open.get_mut(&id),
            };
            if let Some(sockets) = sockets
                && sockets.try_send(&mut batch) == crate::Sent::Blocked
            {
                sockets.drop_batch(&batch);
            }
        }
    }

    /// Ready if something is due.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.server.poll_timeout() else { return Poll::Pending };
        if self.timer_at != Some(at) {
            self.timer.as_mut().reset(self.clock.to_std(at).into());
            self.timer_at = Some(at);
        }
        let due = self.timer.as_mut().poll(cx);
        if due.is_ready() {
            self.timer_at = None;
        }
        due
    }
}

impl Batches {
    /// Adds a packet: to the last batch if it goes the same way and the sizes allow it.
    fn add(
        &mut self,
        leaves: Leaves,
        local: SocketAddr,
        remote: SocketAddr,
        header: &[u8],
        payload: &[u8],
    ) {
        let len = header.len() + payload.len();
        if let Some((of, last)) = self.0.last_mut() {
            let segment = last.transmit.segment_size;
            let same =
                *of == leaves && (last.transmit.local, last.transmit.remote) == (local, remote);
            // All but the last of a batch are of one size.
            let fits = last.bytes.len().is_multiple_of(segment.max(1))
                && len <= segment
                && last.bytes.len() + len <= BATCH_BYTES
                && last.bytes.len() / segment.max(1) < MAX_SEGMENTS;
            if same && fits && len > 0 {
                last.bytes.extend_from_slice(header);
                last.bytes.extend_from_slice(payload);
                return;
            }
        }
        let transmit = Transmit::new(local, remote, len);
        self.0.push((leaves, Outgoing::new(transmit, [header, payload].concat())));
    }
}

/// Packets of a batch at most; Linux segments no more than 64 (UDP_MAX_SEGMENTS).
const MAX_SEGMENTS: usize = 64;

#[cfg(test)]
mod tests;
