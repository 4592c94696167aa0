//! A relay that looks into packets and changes them, for what usrsctp by itself never sends.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

use super::free_udp_port;

/// One chunk of a packet. Its padding is left out.
#[derive(Clone, Debug)]
pub struct Chunk {
    pub kind: u8,
    pub flags: u8,
    pub value: Vec<u8>,
}

impl Chunk {
    /// Appends a parameter, as chunks of INIT, INIT ACK and ERROR hold them (RFC 9260 §3.2.1).
    pub fn push_parameter(&mut self, kind: u16, value: &[u8]) {
        pad(&mut self.value);
        self.value.extend(kind.to_be_bytes());
        self.value.extend((4 + value.len() as u16).to_be_bytes());
        self.value.extend(value);
    }

    /// The parameters behind the first `fixed` bytes of the value, with their types.
    pub fn parameters(&self, fixed: usize) -> Vec<(u16, Vec<u8>)> {
        let mut rest = &self.value[fixed..];
        let mut parameters = Vec::new();
        while rest.len() >= 4 {
            let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
            parameters.push((u16::from_be_bytes([rest[0], rest[1]]), rest[4..length].to_vec()));
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        parameters
    }
}

/// Chunks that passed by, before they were changed.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub from_usrsctp: Vec<Chunk>,
    pub from_manypath: Vec<Chunk>,
}

/// Forwards between usrsctp and manypath on 127.0.0.1, whichever sends first.
pub struct Rewriter {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl Drop for Rewriter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Where a side sends to and what its chunks go through.
struct Side {
    socket: UdpSocket,
    peer: Option<SocketAddr>,
}

impl Rewriter {
    /// A relay, and the port to connect to. `target` is the UDP port of whoever is connected to;
    /// `target_is_usrsctp` says who that is. Each side's chunks go through its function before they are
    /// sent on.
    pub async fn start(
        target: u16,
        target_is_usrsctp: bool,
        mut from_usrsctp: impl FnMut(&mut Vec<Chunk>) + Send + 'static,
        mut from_manypath: impl FnMut(&mut Vec<Chunk>) + Send + 'static,
    ) -> (Rewriter, u16) {
        let loopback = |port| (Ipv4Addr::LOCALHOST, port);
        let front_port = free_udp_port();
        let front = UdpSocket::bind(loopback(front_port)).await.expect("a socket");
        let back = UdpSocket::bind(loopback(0)).await.expect("a socket");
        let mut front = Side { socket: front, peer: None };
        let mut back = Side { socket: back, peer: Some(loopback(target).into()) };
        let seen = Arc::new(Mutex::new(Seen::default()));
        let kept = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            let (mut a, mut b) = (vec![0; 65_536], vec![0; 65_536]);
            loop {
                let (packet, at_front) = tokio::select! {
                    Ok((length, from)) = front.socket.recv_from(&mut a) => {
                        front.peer = Some(from);
                        (&a[..length], true)
                    }
                    Ok((length, _)) = back.socket.recv_from(&mut b) => (&b[..length], false),
                };
                let mut chunks = parse(packet);
                if at_front == target_is_usrsctp {
                    remember(&mut kept.lock().expect("the chunks").from_manypath, &chunks);
                    from_manypath(&mut chunks);
                } else {
                    remember(&mut kept.lock().expect("the chunks").from_usrsctp, &chunks);
                    from_usrsctp(&mut chunks);
                }
                let to = if at_front { &mut back } else { &mut front };
                if let Some(peer) = to.peer {
                    let _ = to.socket.send_to(&encode(&packet[..12], &chunks), peer).await;
                }
            }
        });
        (Rewriter { seen, task }, front_port)
    }

    /// What passed by until now.
    pub fn seen(&self) -> Seen {
        self.seen.lock().expect("the chunks").clone()
    }
}

/// Keeps the first chunks, which are those of the handshake.
fn remember(kept: &mut Vec<Chunk>, chunks: &[Chunk]) {
    let room = 200_usize.saturating_sub(kept.len());
    kept.extend(chunks.iter().take(room).cloned());
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn parse(packet: &[u8]) -> Vec<Chunk> {
    let mut rest = &packet[12..];
    let mut chunks = Vec::new();
    while rest.len() >= 4 {
        let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        chunks.push(Chunk { kind: rest[0], flags: rest[1], value: rest[4..length].to_vec() });
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    chunks
}

fn encode(header: &[u8], chunks: &[Chunk]) -> Vec<u8> {
    let mut packet = header.to_vec();
    packet[8..12].fill(0);
    for chunk in chunks {
        packet.extend([chunk.kind, chunk.flags]);
        packet.extend((4 + chunk.value.len() as u16).to_be_bytes());
        packet.extend(&chunk.value);
        pad(&mut packet);
    }
    let checksum = crc32c(&packet);
    packet[8..12].copy_from_slice(&checksum.to_le_bytes());
    packet
}

/// CRC32c bit by bit (RFC 9260, Appendix A), so that not the code under test vouches for itself.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (if crc & 1 == 1 { 0x82f6_3b78 } else { 0 })
        })
    })
}
