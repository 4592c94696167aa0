//! A relay that looks into packets and changes them, for what usrsctp by itself never sends.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::mpsc;
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

/// A change of the chunks of one side.
pub type Change = Box<dyn FnMut(&mut Vec<Chunk>) + Send>;

/// Forwards everything as it is.
pub fn nothing() -> Change {
    Box::new(|_| {})
}

/// A box in the middle of a path on 127.0.0.1: forwards what usrsctp and manypath send to it,
/// whoever begins.
pub struct Rewriter {
    /// The UDP port that usrsctp sends to, and that manypath's packets come from.
    pub usrsctp_side: u16,
    /// The UDP port that manypath sends to, and that usrsctp's packets come from.
    pub manypath_side: u16,
    seen: Arc<Mutex<Seen>>,
    rebind: mpsc::Sender<bool>,
    task: JoinHandle<()>,
}

impl Drop for Rewriter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One of its sockets, and who is there.
struct Side {
    socket: Arc<UdpSocket>,
    /// The UDP port of the last one heard, who may be a relay.
    peer: u16,
    change: Change,
}

impl Side {
    async fn new(peer: u16, change: Change) -> Side {
        Side { socket: bind(free_udp_port()).await, peer, change }
    }

    fn port(&self) -> u16 {
        self.socket.local_addr().expect("its address").port()
    }
}

async fn bind(port: u16) -> Arc<UdpSocket> {
    Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).await.expect("a socket"))
}

impl Rewriter {
    /// Starts it between two UDP ports, each with what the chunks from there go through. Every
    /// packet takes `delay`.
    pub async fn start(
        usrsctp: (u16, Change),
        manypath: (u16, Change),
        delay: Duration,
    ) -> Rewriter {
        let mut usrsctp = Side::new(usrsctp.0, usrsctp.1).await;
        let mut manypath = Side::new(manypath.0, manypath.1).await;
        let (usrsctp_side, manypath_side) = (usrsctp.port(), manypath.port());
        let seen = Arc::new(Mutex::new(Seen::default()));
        let kept = Arc::clone(&seen);
        let (rebind, mut rebinds) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            let (mut a, mut b) = (vec![0; 65_536], vec![0; 65_536]);
            loop {
                tokio::select! {
                    Ok((length, from)) = usrsctp.socket.recv_from(&mut a) => {
                        usrsctp.peer = from.port();
                        let mut chunks = parse(&a[..length]);
                        remember(&mut kept.lock().expect("the chunks").from_usrsctp, &chunks);
                        (usrsctp.change)(&mut chunks);
                        forward(&manypath, encode(&a[..12], &chunks), delay);
                    }
                    Ok((length, from)) = manypath.socket.recv_from(&mut b) => {
                        manypath.peer = from.port();
                        let mut chunks = parse(&b[..length]);
                        remember(&mut kept.lock().expect("the chunks").from_manypath, &chunks);
                        (manypath.change)(&mut chunks);
                        forward(&usrsctp, encode(&b[..12], &chunks), delay);
                    }
                    Some(seen_by_usrsctp) = rebinds.recv() => {
                        let side = if seen_by_usrsctp { &mut usrsctp } else { &mut manypath };
                        side.socket = bind(free_udp_port()).await;
                    }
                }
            }
        });
        Rewriter { usrsctp_side, manypath_side, seen, rebind, task }
    }

    /// Forwards to usrsctp, or to manypath, from another port from now on, as a NAT in front of the
    /// other one does that has forgotten its mapping; what is sent to the old port is lost.
    pub async fn rebind(&self, seen_by_usrsctp: bool) {
        self.rebind.send(seen_by_usrsctp).await.expect("it runs");
    }

    /// The chunks that passed by until now.
    pub fn seen(&self) -> Seen {
        self.seen.lock().expect("the chunks").clone()
    }
}

fn forward(to: &Side, packet: Vec<u8>, delay: Duration) {
    let (socket, peer) = (Arc::clone(&to.socket), to.peer);
    tokio::spawn(async move {
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        // A refused packet is a lost one.
        let _ = socket.send_to(&packet, (Ipv4Addr::LOCALHOST, peer)).await;
    });
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
