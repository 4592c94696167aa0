//! A relay that moves datagrams between a client and a server as a pair of [`Link`]s lets them pass.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::link::{Link, LinkCounts};

/// Largest UDP datagram.
const DATAGRAM_MAX: usize = 65_535;
/// Wanted receive buffer of the sockets, in bytes: a sender's burst waits there, not in the link.
const SOCKET_BUFFER: usize = 4 << 20;

/// The time that several relays share: zero at the first datagram any of them sees.
#[derive(Clone, Debug, Default)]
pub struct Epoch(Arc<OnceLock<Instant>>);

impl Epoch {
    /// Time since the start, which is now if it has not been yet.
    fn now(&self, now: Instant) -> Duration {
        now - *self.0.get_or_init(|| now)
    }

    /// Time since the start; zero before it.
    pub fn elapsed(&self) -> Duration {
        self.0.get().map_or(Duration::ZERO, Instant::elapsed)
    }
}

/// Which way a datagram goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    ToServer,
    ToClient,
}

/// A relay at work; it stops when dropped.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    links: Arc<Mutex<[Link; 2]>>,
    epoch: Epoch,
    task: JoinHandle<()>,
}

impl Relay {
    /// Listens at `listen`, on a free port, for a client of `server`. `links` are the directions to the
    /// server and to the client.
    pub async fn start(
        listen: IpAddr,
        server: SocketAddr,
        links: [Link; 2],
        epoch: Epoch,
    ) -> io::Result<Relay> {
        let inside = UdpSocket::bind((listen, 0)).await?;
        let outside = UdpSocket::bind((listen, 0)).await?;
        outside.connect(server).await?;
        for socket in [&inside, &outside] {
            // As large as the system grants.
            let _ = socket2::SockRef::from(socket).set_recv_buffer_size(SOCKET_BUFFER);
        }
        let address = inside.local_addr()?;
        let links = Arc::new(Mutex::new(links));
        let mut moving = Moving {
            inside,
            outside,
            client: None,
            links: links.clone(),
            epoch: epoch.clone(),
            under_way: BinaryHeap::new(),
            taken: 0,
        };
        let task = tokio::spawn(async move { moving.run().await });
        Ok(Relay { address, links, epoch, task })
    }

    /// Where the client finds it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What has passed towards the server.
    pub fn to_server(&self) -> LinkCounts {
        lock(&self.links)[0].counts()
    }

    /// What has passed towards the client.
    pub fn to_client(&self) -> LinkCounts {
        lock(&self.links)[1].counts()
    }

    /// Whether the link is down now.
    pub fn is_down(&self) -> bool {
        lock(&self.links)[0].is_down(self.epoch.elapsed())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A datagram on its way: when it arrives, its number for the order of equals, where, and what.
type UnderWay = (Instant, u64, Direction, Vec<u8>);

struct Moving {
    /// Towards the client, which is whoever was heard last.
    inside: UdpSocket,
    /// Towards the server.
    outside: UdpSocket,
    client: Option<SocketAddr>,
    links: Arc<Mutex<[Link; 2]>>,
    epoch: Epoch,
    under_way: BinaryHeap<Reverse<UnderWay>>,
    taken: u64,
}

impl Moving {
    async fn run(&mut self) {
        let mut buffer = vec![0; DATAGRAM_MAX];
        loop {
            let due = self.under_way.peek().map(|Reverse((at, ..))| *at);
            let arrival = async {
                match due {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = arrival => self.deliver(Instant::now()).await,
                _ = self.inside.readable() => {
                    // A burst at once, before anything else keeps it waiting in the socket. An error
                    // is an ICMP message about an earlier datagram: lost, as on a network.
                    while let Ok((len, client)) = self.inside.try_recv_from(&mut buffer) {
                        self.client = Some(client);
                        self.take(Direction::ToServer, &buffer[..len]);
                    }
                }
                _ = self.outside.readable() => {
                    while let Ok(len) = self.outside.try_recv(&mut buffer) {
                        self.take(Direction::ToClient, &buffer[..len]);
                    }
                }
            }
        }
    }

    fn take(&mut self, direction: Direction, datagram: &[u8]) {
        let now = Instant::now();
        let since_start = self.epoch.now(now);
        let arrives = lock(&self.links)[direction as usize].offer(since_start, datagram.len());
        if let Some(arrives) = arrives {
            let at = now + arrives.saturating_sub(since_start);
            self.taken += 1;
            self.under_way.push(Reverse((at, self.taken, direction, datagram.to_vec())));
        }
    }

    async fn deliver(&mut self, now: Instant) {
        while self.under_way.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((_, _, direction, datagram))) = self.under_way.pop() else { return };
            // What the system does not take is lost, as on a network.
            let _ = match (direction, self.client) {
                (Direction::ToServer, _) => self.outside.send(&datagram).await,
                (Direction::ToClient, Some(client)) => self.inside.send_to(&datagram, client).await,
                (Direction::ToClient, None) => Ok(0),
            };
        }
    }
}

/// Locks; a link is usable whatever happened to another holder.
fn lock(links: &Mutex<[Link; 2]>) -> std::sync::MutexGuard<'_, [Link; 2]> {
    links.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use manypath::Rng;

    use super::*;
    use crate::emulator::link::LinkConfig;

    #[tokio::test]
    async fn datagrams_pass_both_ways_after_the_delay() {
        let config = LinkConfig {
            rate_bps: 100_000_000,
            delay: Duration::from_millis(30),
            queue_bytes: 100_000,
            loss: 0.0,
            down: vec![],
        };
        let links = [0, 1].map(|seed| Link::new(config.clone(), Rng::from_number(seed)));
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let localhost = "127.0.0.1".parse().unwrap();
        let at = server.local_addr().unwrap();
        let relay = Relay::start(localhost, at, links, Epoch::default()).await.unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let begin = Instant::now();
        client.send_to(b"ping", relay.address()).await.unwrap();
        let mut buffer = [0; 100];
        let (len, from) = server.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..len], b"ping");
        server.send_to(b"pong", from).await.unwrap();
        let (len, from) = client.recv_from(&mut buffer).await.unwrap();
        assert_eq!((&buffer[..len], from), (&b"pong"[..], relay.address()));
        assert!(begin.elapsed() >= Duration::from_millis(60));
        let one = LinkCounts { packets: 1, bytes: 4, dropped: 0 };
        assert_eq!((relay.to_server(), relay.to_client()), (one, one));
    }
}
