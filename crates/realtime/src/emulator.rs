//! Emulated paths between real sockets on loopback, without privileges.
//!
//! Each path is a simulated [`Network`] of two nodes that runs by the real clock. The network
//! decides when a datagram arrives or that it is lost. An [`EmulatedPath`] moves the bytes.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use manypath::{Bytes, Rng};
use manypath_proto::Instant as SimInstant;
use manypath_proto::sizes::UDP_IPV4_HEADERS;
use manypath_sim::{Happening, LinkStats, Network, NodeId, PathEnds, PathSpec};
use tokio::net::UdpSocket;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// Largest UDP datagram.
const DATAGRAM_MAX: usize = 65_535;
/// Wanted receive buffer of the sockets, in bytes: a sender's burst waits there, not in the link.
const SOCKET_BUFFER: usize = 4 << 20;

/// The clock that several paths share. It starts at the first datagram on any of them.
#[derive(Clone, Debug)]
pub struct Epoch(Arc<watch::Sender<Option<Instant>>>);

impl Default for Epoch {
    fn default() -> Epoch {
        Epoch(Arc::new(watch::Sender::new(None)))
    }
}

impl Epoch {
    /// Time since the start. Starts the clock if it does not run.
    fn now(&self) -> SimInstant {
        self.0.send_if_modified(|start| start.is_none() && start.replace(Instant::now()).is_none());
        SimInstant::ZERO + self.elapsed()
    }

    /// Time since the start; zero before it.
    pub fn elapsed(&self) -> Duration {
        self.0.borrow().map_or(Duration::ZERO, |start| start.elapsed())
    }

    /// Waits until that time, and for the start if the clock does not run.
    async fn reach(&self, at: SimInstant) {
        let mut changes = self.0.subscribe();
        // `self` holds the sender, so the wait ends only with a start.
        if let Ok(start) = changes.wait_for(Option::is_some).await.map(|start| *start)
            && let Some(start) = start
        {
            sleep_until(start + (at - SimInstant::ZERO)).await;
        }
    }
}

/// An emulated path between a client and a server. It stops when dropped.
#[derive(Debug)]
pub struct EmulatedPath {
    address: SocketAddr,
    net: Arc<Mutex<Network>>,
    task: JoinHandle<()>,
}

impl EmulatedPath {
    /// Listens at `listen`, on a free port, for a client of `server`. The client is the near end of
    /// the path. The times of planned changes count from the epoch.
    pub async fn start(
        listen: IpAddr,
        server: SocketAddr,
        spec: &PathSpec,
        rng: Rng,
        epoch: Epoch,
    ) -> io::Result<EmulatedPath> {
        let inside = UdpSocket::bind((listen, 0)).await?;
        let outside = UdpSocket::bind((listen, 0)).await?;
        outside.connect(server).await?;
        for socket in [&inside, &outside] {
            // As large as the system grants.
            let _ = socket2::SockRef::from(socket).set_recv_buffer_size(SOCKET_BUFFER);
        }
        let address = inside.local_addr()?;
        let mut net = Network::new(rng, UDP_IPV4_HEADERS as u32);
        let (near, far) = (net.add_node(), net.add_node());
        let ends = PathEnds { near: (near, outside.local_addr()?), far: (far, server) };
        net.add_path(ends, spec);
        let net = Arc::new(Mutex::new(net));
        let mut moving = Moving {
            inside,
            outside,
            client: None,
            net: net.clone(),
            ends,
            epoch,
            arrived: VecDeque::new(),
        };
        let task = tokio::spawn(async move { moving.run().await });
        Ok(EmulatedPath { address, net, task })
    }

    /// The address that the client sends to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Statistics of the client's first link towards the server.
    pub fn to_server(&self) -> LinkStats {
        lock(&self.net).path_stats(0).0.first().copied().unwrap_or_default()
    }

    /// Statistics of the server's first link towards the client.
    pub fn to_client(&self) -> LinkStats {
        lock(&self.net).path_stats(0).1.last().copied().unwrap_or_default()
    }

    /// Packets lost towards the server, and towards the client.
    pub fn dropped(&self) -> (u64, u64) {
        let (there, back) = lock(&self.net).dropped_on_path(0);
        (there.packets, back.packets)
    }

    /// True while a link of the path is down.
    pub fn is_down(&self) -> bool {
        lock(&self.net).is_path_down(0)
    }
}

impl Drop for EmulatedPath {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Moving {
    /// Towards the client: the address that sent last.
    inside: UdpSocket,
    /// Towards the server.
    outside: UdpSocket,
    client: Option<SocketAddr>,
    net: Arc<Mutex<Network>>,
    ends: PathEnds,
    epoch: Epoch,
    /// Datagrams that have crossed the network, and the end they are for.
    arrived: VecDeque<(NodeId, Bytes)>,
}

impl Moving {
    async fn run(&mut self) {
        let mut buffer = vec![0; DATAGRAM_MAX];
        loop {
            let next = lock(&self.net).next_event();
            let epoch = self.epoch.clone();
            let event = async {
                match next {
                    Some(at) => epoch.reach(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = event => drop(self.let_pass()),
                _ = self.inside.readable() => {
                    // A burst at once, before anything else keeps it waiting in the socket. An
                    // error is an ICMP message about an earlier datagram: lost, as on a network.
                    while let Ok((len, client)) = self.inside.try_recv_from(&mut buffer) {
                        self.client = Some(client);
                        self.take(self.ends.near, self.ends.far, &buffer[..len]);
                    }
                }
                _ = self.outside.readable() => {
                    while let Ok(len) = self.outside.try_recv(&mut buffer) {
                        self.take(self.ends.far, self.ends.near, &buffer[..len]);
                    }
                }
            }
            self.deliver().await;
        }
    }

    /// Lets the network run up to now.
    fn let_pass(&mut self) -> MutexGuard<'_, Network> {
        let now = self.epoch.now();
        let mut net = lock(&self.net);
        while let Some(happening) = net.poll(now) {
            if let Happening::Packet(packet) = happening {
                self.arrived.push_back((packet.node, packet.payload));
            }
        }
        net
    }

    fn take(&mut self, from: (NodeId, SocketAddr), to: (NodeId, SocketAddr), datagram: &[u8]) {
        let datagram = Bytes::copy_from_slice(datagram);
        self.let_pass().send(from.0, from.1, to.1, datagram);
    }

    async fn deliver(&mut self) {
        while let Some((node, datagram)) = self.arrived.pop_front() {
            // A datagram that the system does not take is lost, as on a network.
            let _ = match self.client {
                _ if node == self.ends.far.0 => self.outside.send(&datagram).await,
                Some(client) => self.inside.send_to(&datagram, client).await,
                None => Ok(0),
            };
        }
    }
}

/// Locks; a network is usable whatever happened to another holder.
fn lock(net: &Mutex<Network>) -> MutexGuard<'_, Network> {
    net.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
