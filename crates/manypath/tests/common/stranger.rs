//! A peer that speaks SCTP by hand, as much of it as it likes.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::Duration;

use manypath::{BindTo, StreamId};
use manypath_net::{Outgoing, Sent, UdpReceiver, UdpSockets};
use manypath_proto::{Datagram, Transmit};
use manypath_wire::{
    Checksum, Chunk, CommonHeader, DataFlags, DtlsKeyManagement, DtlsKeyManagementFlags, Init,
    Packet, PacketBuilder, Parameter, Params, Ssn, Tsn,
};

/// Any number of associations from one socket: each has an SCTP port of its own.
pub struct Stranger {
    sockets: UdpSockets,
    receiver: UdpReceiver,
    server: SocketAddr,
    local: SocketAddr,
}

/// One of its associations.
#[derive(Copy, Clone, Debug)]
pub struct Hold {
    port: u16,
    /// The server's verification tag.
    tag: u32,
}

/// The stranger's first TSN.
pub const TSN: u32 = 1000;

impl Stranger {
    pub fn new(ip: &str, server: SocketAddr) -> Stranger {
        let sockets = UdpSockets::bind(&[BindTo::Address(ip.parse().unwrap())], 0).unwrap();
        let local = sockets.bound().as_slice()[0];
        Stranger { sockets, receiver: UdpReceiver::new(), server, local }
    }

    /// A packet of one chunk.
    fn packet(&self, hold: Hold, push: impl FnOnce(&mut PacketBuilder<'_>) -> bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let header = CommonHeader {
            source_port: hold.port,
            destination_port: manypath::DEFAULT_PORT,
            verification_tag: hold.tag,
        };
        let mut packet = PacketBuilder::new(&mut bytes, header, 65_000);
        assert!(push(&mut packet));
        packet.finish(true);
        bytes
    }

    /// Sends packets of one size as one batch; the last may be shorter.
    pub async fn send(&mut self, bytes: Vec<u8>, segment_size: usize) {
        let transmit = Transmit::new(self.local, self.server, segment_size);
        let mut batch = Outgoing::new(transmit, bytes);
        while self.sockets.try_send(&mut batch) == Sent::Blocked {
            poll_fn(|cx| self.sockets.poll_writable(0, cx)).await.unwrap();
        }
    }

    async fn send_packet(&mut self, packet: Vec<u8>) {
        let len = packet.len();
        self.send(packet, len).await;
    }

    /// The next packet to this SCTP port for which `take` has something; `None` after a while
    /// without.
    async fn next<T>(
        &mut self,
        port: u16,
        mut take: impl FnMut(&Packet) -> Option<T>,
    ) -> Option<T> {
        let deadline = tokio::time::Instant::now() + Duration::from_millis(500);
        loop {
            let mut out: Vec<Datagram> = Vec::new();
            let receiving = poll_fn(|cx| self.receiver.poll_recv(cx, &self.sockets, &mut out));
            tokio::time::timeout_at(deadline, receiving).await.ok()?;
            for datagram in out {
                let Ok(packet) = Packet::parse(datagram.payload.freeze(), Checksum::Verify) else {
                    continue;
                };
                if packet.header.destination_port == port
                    && let Some(taken) = take(&packet)
                {
                    return Some(taken);
                }
            }
        }
    }

    /// Opens an association from this SCTP port; `None` if the server refuses it.
    pub async fn open(&mut self, port: u16) -> Option<Hold> {
        self.open_with(port, Params::default()).await
    }

    /// The same, with the promise to agree on keys by TLS.
    pub async fn open_offering_tls(&mut self, port: u16) -> Option<Hold> {
        let offer = DtlsKeyManagement::new(7, DtlsKeyManagementFlags::CLIENT, &[192]);
        let offer = Parameter::DtlsKeyManagement(offer.expect("a method"));
        self.open_with(port, [offer].into_iter().collect()).await
    }

    async fn open_with(&mut self, port: u16, params: Params) -> Option<Hold> {
        let init = Init {
            initiate_tag: u32::from(port) + 1,
            a_rwnd: 65_536,
            outbound_streams: 4,
            inbound_streams: 4,
            initial_tsn: Tsn(TSN),
            params,
        };
        for _ in 0..20 {
            self.send_packet(self.packet(Hold { port, tag: 0 }, |p| p.push_init(&init))).await;
            let answer = self.next(port, |packet| match packet.chunks().next()?.ok()? {
                Chunk::InitAck(ack) => {
                    let cookie = ack.params.iter().find_map(|p| match p {
                        Ok(Parameter::StateCookie(cookie)) => Some(cookie),
                        _ => None,
                    });
                    Some(Ok((ack.initiate_tag, cookie.expect("a cookie"))))
                }
                Chunk::Abort(_) => Some(Err(())),
                _ => None,
            });
            let Some(answer) = answer.await else { continue };
            let Ok((tag, cookie)) = answer else { return None };
            let hold = Hold { port, tag };
            self.send_packet(self.packet(hold, |p| p.push_cookie_echo(&cookie))).await;
            let answer = self.next(port, |packet| {
                packet.chunks().find_map(|chunk| match chunk.ok()? {
                    Chunk::CookieAck => Some(true),
                    Chunk::Abort(_) => Some(false),
                    _ => None,
                })
            });
            match answer.await {
                Some(taken) => return taken.then_some(hold),
                None => continue,
            }
        }
        panic!("the server does not answer");
    }

    /// A packet with one DATA chunk, a whole message of stream 0, this many TSNs and messages after
    /// the first.
    pub fn data(&self, hold: Hold, index: u32, unordered: bool, payload: &[u8]) -> Vec<u8> {
        let (tsn, ssn) = (Tsn(TSN.wrapping_add(index)), Ssn(index as u16));
        let order = if unordered { DataFlags::UNORDERED } else { DataFlags(0) };
        let whole = DataFlags::BEGIN | DataFlags::END | order;
        self.packet(hold, |p| p.push_data(tsn, StreamId(0), ssn, 0, whole, payload))
    }

    pub async fn abort(&mut self, hold: Hold) {
        self.send_packet(self.packet(hold, |p| p.push_abort(false, &[]))).await;
    }
}
