//! A box in the middle of one path, in user space: it forwards, stops forwarding, and changes its
//! port as a NAT does after it has forgotten a mapping.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Forwards between whoever sends to [`Relay::address`] and a server.
pub struct Relay {
    pub address: SocketAddr,
    cut: Arc<AtomicBool>,
    forwarded: Arc<AtomicU64>,
    rebind: mpsc::Sender<()>,
    task: JoinHandle<()>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Relay {
    /// A relay on `ip` to `server`.
    pub async fn start(ip: &str, server: SocketAddr) -> Relay {
        let front = UdpSocket::bind((ip, 0)).await.unwrap();
        let address = front.local_addr().unwrap();
        let (rebind, commands) = mpsc::channel(1);
        let (cut, forwarded) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let middle = Middle {
            front,
            back: back(ip, server).await,
            client: None,
            cut: Arc::clone(&cut),
            forwarded: Arc::clone(&forwarded),
        };
        let task = tokio::spawn(middle.run(ip.to_owned(), server, commands));
        Relay { address, cut, forwarded, rebind, task }
    }

    /// Drops everything from now on, both ways, or stops doing so.
    pub fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }

    /// Packets forwarded so far.
    pub fn forwarded(&self) -> u64 {
        self.forwarded.load(Ordering::Relaxed)
    }

    /// Goes on from another port; packets to the old one are lost.
    pub async fn rebind(&self) {
        self.rebind.send(()).await.unwrap();
    }
}

struct Middle {
    front: UdpSocket,
    back: UdpSocket,
    client: Option<SocketAddr>,
    cut: Arc<AtomicBool>,
    forwarded: Arc<AtomicU64>,
}

impl Middle {
    async fn run(mut self, ip: String, server: SocketAddr, mut commands: mpsc::Receiver<()>) {
        let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
        loop {
            tokio::select! {
                got = self.front.recv_from(&mut up) => {
                    if let Ok((length, from)) = got {
                        self.client = Some(from);
                        self.pass(self.back.send(&up[..length])).await;
                    }
                }
                got = self.back.recv(&mut down) => {
                    if let (Ok(length), Some(client)) = (got, self.client) {
                        self.pass(self.front.send_to(&down[..length], client)).await;
                    }
                }
                command = commands.recv() => match command {
                    Some(()) => self.back = back(&ip, server).await,
                    None => return,
                },
            }
        }
    }

    async fn pass(&self, send: impl Future<Output = io::Result<usize>>) {
        if !self.cut.load(Ordering::Relaxed) {
            // A refused packet is a lost one.
            let _ = send.await;
            self.forwarded.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn back(ip: &str, server: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((ip, 0)).await.unwrap();
    socket.connect(server).await.unwrap();
    socket
}
