//! Cost of one SACK for a sender with a large window: parsing, digest, windows and timers.
//!
//! `cargo bench -p manypath-proto --bench sack`
//!
//! The first chunk stays missing, so every SACK repeats one gap ack block that grows to the whole
//! window. The time per SACK must depend on neither the window nor the block.

#![allow(missing_docs, clippy::disallowed_methods, clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant as Clock;

use bytes::Bytes;
use manypath_proto::{
    AssocId, Config, ConnectTo, Datagram, Endpoint, EndpointConfig, Instant, Rng, SendOptions, Tsn,
};
use manypath_wire::{
    Checksum, Chunk, CommonHeader, Init, Packet, PacketBuilder, Parameter, StreamId,
};

const PORT: u16 = 9899;
const PEER_TAG: u32 = 7;

fn addresses() -> (SocketAddr, SocketAddr) {
    (SocketAddr::from(([10, 0, 0, 1], PORT)), SocketAddr::from(([10, 0, 0, 2], PORT)))
}

struct Sender {
    endpoint: Endpoint,
    id: AssocId,
    tag: u32,
    first_tsn: Tsn,
    now: Instant,
    buf: Vec<u8>,
}

impl Sender {
    fn new() -> Sender {
        let overrides =
            [("initial_cwnd", "100000 pmdcs"), ("send_buffer", "1 GiB"), ("pacing", "false")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()));
        let config = Config::build("fast", "cmt-pf", &overrides).unwrap();
        let (local, remote) = addresses();
        let mut endpoint = Endpoint::new(
            EndpointConfig {
                config: Arc::new(config),
                sctp_port: PORT,
                accept: false,
                max_associations: 1,
                local_addresses: vec![local],
            },
            Rng::from_number(1),
        );
        let to = ConnectTo::new(vec![(local, remote)], PORT);
        let id = endpoint.connect(Instant::ZERO, to).unwrap();
        let now = Instant::ZERO;
        let mut s = Sender { endpoint, id, tag: 0, first_tsn: Tsn(0), now, buf: Vec::new() };
        s.shake_hands();
        s
    }

    fn first_chunk(&mut self) -> Chunk {
        self.endpoint.poll_transmit(self.now, 1, &mut self.buf).unwrap();
        let packet = Packet::parse(Bytes::copy_from_slice(&self.buf), Checksum::Verify).unwrap();
        packet.chunks().next().unwrap().unwrap()
    }

    fn shake_hands(&mut self) {
        let Chunk::Init(init) = self.first_chunk() else { panic!("INIT comes first") };
        (self.tag, self.first_tsn) = (init.initiate_tag, init.initial_tsn);
        let answer = Init {
            initiate_tag: PEER_TAG,
            a_rwnd: u32::MAX,
            outbound_streams: 1,
            inbound_streams: 1,
            initial_tsn: Tsn(1),
            params: [Parameter::StateCookie(Bytes::from_static(b"cookie"))].into_iter().collect(),
        };
        self.deliver(|p| p.push_init_ack(&answer));
        assert!(matches!(self.first_chunk(), Chunk::CookieEcho(_)));
        self.deliver(|p| p.push_cookie_ack());
    }

    fn deliver(&mut self, write: impl FnOnce(&mut PacketBuilder<'_>) -> bool) {
        let payload = self.packet(write);
        self.receive(payload);
    }

    fn packet(&self, write: impl FnOnce(&mut PacketBuilder<'_>) -> bool) -> Bytes {
        let header =
            CommonHeader { source_port: PORT, destination_port: PORT, verification_tag: self.tag };
        let mut bytes = Vec::new();
        let mut packet = PacketBuilder::new(&mut bytes, header, 1472);
        assert!(write(&mut packet));
        packet.finish(true);
        bytes.into()
    }

    fn receive(&mut self, payload: Bytes) {
        let (local, remote) = addresses();
        self.endpoint.handle_datagram(self.now, Datagram::new(local, remote, payload));
    }

    /// Sends `window` chunks of 1000 bytes.
    fn fill(&mut self, window: u32) {
        let message = Bytes::from(vec![0; 1000]);
        let options = SendOptions { stream: StreamId(0), ..SendOptions::default() };
        let assoc = self.endpoint.assoc_mut(self.id).unwrap();
        for _ in 0..window {
            assoc.send(self.now, options, message.clone()).unwrap();
        }
        while self.endpoint.poll_transmit(self.now, 64, &mut self.buf).is_some() {}
    }
}

fn main() {
    println!("{:>14} {:>10} {:>14}", "window, chunks", "SACKs", "ns per SACK");
    for window in [100u32, 1000, 10_000, 60_000] {
        let (mut sacks, mut nanos) = (0, 0);
        while sacks < 30_000 {
            let mut s = Sender::new();
            s.fill(window);
            let cum = s.first_tsn.prev();
            let packets: Vec<Bytes> = (1..window as u16 / 2)
                .map(|i| {
                    let gap = std::iter::once((2, 2 * i + 1));
                    s.packet(|p| p.push_sack(cum, u32::MAX, 0x80, gap, std::iter::empty()))
                })
                .collect();
            sacks += packets.len();
            let start = Clock::now();
            for packet in packets {
                s.receive(packet);
            }
            nanos += start.elapsed().as_nanos();
        }
        println!("{window:>14} {sacks:>10} {:>14.0}", nanos as f64 / sacks as f64);
    }
}
