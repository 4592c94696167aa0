//! A scripted peer: drives one [`Endpoint`] with hand-made packets at written times.
//!
//! Each line of a test is one step: a packet that the peer sends, or what the endpoint must have
//! answered.
//!
//! ```
//! use manypath_proto::testing::{Setup, cookie_echo, data, init};
//!
//! let mut t = Setup::server().start();
//! t.peer(init());
//! let cookie = t.expect_init_ack();
//! t.peer(cookie_echo(&cookie));
//! t.expect("COOKIE ACK");
//! t.peer(data(1));
//! t.expect("SACK 1");
//! t.expect_nothing();
//! ```

mod chunk;
pub mod fuzz;
mod observed;
mod render;
mod setup;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
pub use chunk::*;
use manypath_wire::{
    Checksum, Chunk, CommonHeader, Data, IData, Init, Packet, PacketBuilder, Parameter, StreamId,
    Tsn, has_zero_checksum,
};
pub use observed::Observed;
pub use setup::Setup;

use crate::path::PathStats;
use crate::view::{PathId, PathState};
use crate::{
    AssocId, Association, ConnectTo, Datagram, Endpoint, Event, Instant, SendError, SendOptions,
    Transmit,
};

/// The SCTP port of the endpoint under test.
pub const PORT: u16 = 9899;
/// The SCTP port of the scripted peer.
pub const PEER_PORT: u16 = 5000;

/// A packet that the endpoint sent.
#[derive(Clone, Debug)]
pub struct SentPacket {
    /// When.
    pub at: Instant,
    /// From which of our addresses.
    pub local: SocketAddr,
    /// Where to.
    pub remote: SocketAddr,
    /// Routers may mark it (ECT).
    pub is_ect: bool,
    /// The packet.
    pub packet: Packet,
}

/// One endpoint, its association if there is one, and what it has sent and the test has not yet
/// looked at.
pub struct Script {
    /// The endpoint under test.
    pub endpoint: Endpoint,
    /// The pairs of the endpoint's and the peer's addresses.
    pub pairs: Vec<(SocketAddr, SocketAddr)>,
    /// More pairs, which take the place of those that are not answered.
    pub candidates: Vec<(SocketAddr, SocketAddr)>,
    /// The time within which associations must be open.
    pub limit: Option<Duration>,
    /// Addresses of the peer on relays.
    pub relayed: Vec<SocketAddr>,
    /// The endpoint may send packets with checksum 0.
    zero_checksum: bool,
    now: Instant,
    id: Option<AssocId>,
    /// The tag that the peer puts into its packets: the endpoint's.
    tag: u32,
    /// The endpoint's initial TSN less one.
    base: Tsn,
    sent: VecDeque<SentPacket>,
    events: VecDeque<Event>,
    last: Option<SentPacket>,
}

impl Script {
    // ---- Opening ----

    /// The endpoint begins an association over all pairs of addresses.
    pub fn connect(&mut self) {
        let candidates = self.candidates.clone();
        let to = ConnectTo::new(self.pairs.clone(), PEER_PORT);
        let relayed = self.relayed.clone();
        let to = ConnectTo { candidates, limit: self.limit, relayed, ..to };
        self.id = Some(self.endpoint.connect(self.now, to).expect("a valid request"));
        self.settle();
    }

    /// As [`connect`](Self::connect), and the whole handshake with a peer whose INIT ACK is this.
    pub fn connect_to(&mut self, init_ack: PeerChunk) {
        self.connect();
        self.expect_init();
        self.peer(init_ack);
        self.expect_on_any_path("COOKIE ECHO");
        self.peer(cookie_ack());
        self.finish_handshake();
    }

    /// The whole handshake with a peer whose INIT is this.
    pub fn accept(&mut self, init: PeerChunk) {
        self.peer(init);
        let cookie = self.expect_init_ack();
        self.peer(cookie_echo(&cookie));
        self.expect_on_any_path("COOKIE ACK");
        self.finish_handshake();
    }

    /// Verifies the other paths in 100 ms, and forgets all events so far. A server learns of them
    /// by the peer's heartbeats.
    fn finish_handshake(&mut self) {
        assert!(self.assoc().is_established(), "the handshake is complete");
        for path in 2..=self.pairs.len() {
            if self.assoc().paths().all(|p| (p.local, p.remote) != self.pairs[path - 1]) {
                self.peer_on(path, heartbeat(b"of the peer"));
            }
        }
        self.run_ms(100);
        self.answer_heartbeats();
        self.events.clear();
        self.sent.clear();
    }

    /// As [`accept`](Self::accept), but nothing is answered after the handshake.
    pub fn accept_without_verification(&mut self, init: PeerChunk) {
        self.peer(init);
        let cookie = self.expect_init_ack();
        self.peer(cookie_echo(&cookie));
        self.expect_on_any_path("COOKIE ACK");
        self.sent.clear();
    }

    /// Answers every HEARTBEAT among the packets that were sent, on its own path.
    pub fn answer_heartbeats(&mut self) {
        self.answer(|_| true);
    }

    /// Answers every HEARTBEAT among the packets that were sent to this address.
    pub fn answer_heartbeats_at(&mut self, remote: SocketAddr) {
        self.answer(|s| s.remote == remote);
    }

    fn answer(&mut self, wanted: impl Fn(&SentPacket) -> bool) {
        let (heartbeats, others): (VecDeque<_>, _) = std::mem::take(&mut self.sent)
            .into_iter()
            .partition(|s| wanted(s) && heartbeat_info(&s.packet).is_some());
        self.sent = others;
        for s in heartbeats {
            let info = heartbeat_info(&s.packet).expect("chosen for it");
            self.peer_from((s.local, s.remote), heartbeat_ack(&info));
        }
    }

    // ---- The peer ----

    /// The peer sends one packet on the first path.
    pub fn peer(&mut self, chunks: impl Into<Chunks>) {
        self.peer_on(1, chunks);
    }

    /// The peer sends one packet on this path, counted from 1.
    pub fn peer_on(&mut self, path: usize, chunks: impl Into<Chunks>) {
        self.peer_from(self.pairs[path - 1], chunks);
    }

    /// The peer sends one packet to and from these addresses.
    pub fn peer_from(&mut self, from: (SocketAddr, SocketAddr), chunks: impl Into<Chunks>) {
        let chunks: Chunks = chunks.into();
        let is_init = matches!(chunks.0[0], PeerChunk::Plain(Chunk::Init(_)));
        let tag = if is_init { 0 } else { self.tag };
        self.peer_with_tag(from, tag, chunks);
    }

    /// The peer sends one packet with this verification tag.
    pub fn peer_with_tag(
        &mut self,
        from: (SocketAddr, SocketAddr),
        verification_tag: u32,
        chunks: impl Into<Chunks>,
    ) {
        let header =
            CommonHeader { source_port: PEER_PORT, destination_port: PORT, verification_tag };
        let bytes = self.packet(header, chunks);
        self.peer_bytes(from, bytes);
    }

    /// The peer sends one packet on this path, counted from 1, and a router marks it (CE).
    pub fn peer_marked(&mut self, path: usize, chunks: impl Into<Chunks>) {
        let (local, remote) = self.pairs[path - 1];
        let header = CommonHeader {
            source_port: PEER_PORT,
            destination_port: PORT,
            verification_tag: self.tag,
        };
        let mut datagram = Datagram::new(local, remote, Bytes::from(self.packet(header, chunks)));
        datagram.has_ce = true;
        self.endpoint.handle_datagram(self.now, datagram);
        self.settle();
    }

    /// The bytes of a packet of the peer.
    pub fn packet(&self, header: CommonHeader, chunks: impl Into<Chunks>) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut packet = PacketBuilder::new(&mut bytes, header, 65_535);
        for chunk in chunks.into().0 {
            assert!(chunk.push(self.base, &mut packet), "{chunk:?} does not fit");
        }
        packet.finish(true);
        bytes
    }

    /// The peer sends these bytes.
    pub fn peer_bytes(&mut self, (local, remote): (SocketAddr, SocketAddr), bytes: Vec<u8>) {
        let payload = Bytes::from(bytes);
        self.endpoint.handle_datagram(self.now, Datagram::new(local, remote, payload));
        self.settle();
    }

    /// The peer sends these packets on the first path, and the driver has all of them at hand: it
    /// takes what the endpoint sends where it [owes a SACK](Endpoint::owes_sack), and in the end.
    pub fn peer_at_once(&mut self, packets: impl IntoIterator<Item = PeerChunk>) {
        let (local, remote) = self.pairs[0];
        for chunk in packets {
            let header = CommonHeader {
                source_port: PEER_PORT,
                destination_port: PORT,
                verification_tag: self.tag,
            };
            let payload = Bytes::from(self.packet(header, chunk));
            self.endpoint.handle_datagram(self.now, Datagram::new(local, remote, payload));
            if self.endpoint.owes_sack() {
                self.settle();
            }
        }
        self.settle();
    }

    // ---- Time ----

    /// The time since the start of the script.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Lets time pass, in milliseconds; timers act when they are due.
    pub fn run_ms(&mut self, ms: u64) {
        self.run(Duration::from_millis(ms));
    }

    /// Lets time pass; timers act when they are due.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.endpoint.poll_timeout().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            self.endpoint.handle_timeout(self.now);
            self.settle();
        }
        self.now = end;
    }

    /// Lets time pass until the next timer acts, and answers how long that took.
    pub fn run_to_timer(&mut self) -> Duration {
        let at = self.endpoint.poll_timeout().expect("a timer runs");
        let time = at - self.now;
        self.run(time);
        time
    }

    /// Drains the endpoint's outputs and checks the invariants of all its associations.
    pub fn settle(&mut self) {
        let mut buffer = Vec::new();
        while let Some(t) = self.endpoint.poll_transmit(self.now, 8, &mut buffer) {
            for bytes in buffer.chunks(t.segment_size) {
                let is_free = self.zero_checksum && has_zero_checksum(bytes);
                let check = if is_free { Checksum::Ignore } else { Checksum::Verify };
                let packet = Packet::parse(Bytes::copy_from_slice(bytes), check)
                    .expect("the endpoint sends well-formed packets");
                let Transmit { local, remote, is_ect, .. } = t;
                self.sent.push_back(SentPacket { at: self.now, local, remote, is_ect, packet });
            }
        }
        while let Some((id, event)) = self.endpoint.poll_event() {
            if matches!(event, Event::Connected { .. }) {
                self.id = Some(id);
            }
            self.events.push_back(event);
        }
        for id in self.endpoint.associations().collect::<Vec<_>>() {
            self.endpoint.assoc(id).expect("it is listed").check_invariants();
        }
    }

    // ---- The application ----

    /// The association.
    pub fn assoc(&self) -> &Association {
        self.endpoint.assoc(self.id()).expect("it was not forgotten")
    }

    /// Gives the association a command, then drains the outputs.
    pub fn with<T>(&mut self, command: impl FnOnce(&mut Association, Instant) -> T) -> T {
        let (id, now) = (self.id(), self.now);
        let result = command(self.endpoint.assoc_mut(id).expect("it was not forgotten"), now);
        self.settle();
        result
    }

    /// The association's id.
    pub fn id(&self) -> AssocId {
        self.id.expect("an association was opened")
    }

    /// Queues a message of `len` bytes on stream 0.
    pub fn send(&mut self, len: usize) {
        self.try_send(0, len).expect("there is room");
    }

    /// Queues messages that each fill a packet.
    pub fn send_packets(&mut self, count: usize) {
        self.send_messages(count, self.assoc().fragment_size());
    }

    /// Queues `count` messages of `len` bytes each, then drains the outputs.
    pub fn send_messages(&mut self, count: usize, len: usize) {
        let id = self.id();
        for _ in 0..count {
            let message = Bytes::from(vec![b'x'; len]);
            let assoc = self.endpoint.assoc_mut(id).expect("it was not forgotten");
            assoc.send(self.now, SendOptions::default(), message).expect("there is room");
        }
        self.settle();
    }

    /// Queues a message.
    ///
    /// # Errors
    /// Those of [`Association::send`].
    pub fn try_send(&mut self, stream: u16, len: usize) -> Result<(), SendError> {
        let options = SendOptions { stream: StreamId(stream), ..SendOptions::default() };
        self.with(|a, now| a.send(now, options, Bytes::from(vec![b'x'; len])))
    }

    /// The payload of the next message, or `None`.
    pub fn recv(&mut self) -> Option<Vec<u8>> {
        self.with(|a, now| a.recv(now)).map(|m| m.payload.to_vec())
    }

    /// A path as it stands, counted from 1.
    pub fn path(&self, number: u8) -> PathStats {
        let id = PathId(number - 1);
        self.assoc().paths().find(|p| p.id == id).expect("the path exists")
    }

    /// The state of a path, counted from 1.
    pub fn path_state(&self, number: u8) -> PathState {
        self.path(number).state
    }

    // ---- Expectations ----

    /// The next packet is this: its chunks in words, after `P2 ` for path 2 if there are several
    /// paths.
    #[track_caller]
    pub fn expect(&mut self, words: &str) {
        let next = self.next_sent();
        assert_eq!(next.as_deref(), Some(words), "at {:?}", self.now);
    }

    /// The next packets are these.
    #[track_caller]
    pub fn expect_all(&mut self, packets: &[&str]) {
        for words in packets {
            self.expect(words);
        }
    }

    /// The next packet is this, and was sent `ms` milliseconds after `since`.
    #[track_caller]
    pub fn expect_after_ms(&mut self, since: Instant, ms: u64, words: &str) {
        self.expect(words);
        let after = self.last().at - since;
        assert_eq!(after, Duration::from_millis(ms), "when {words} was sent");
    }

    /// Nothing was sent that the test has not looked at.
    #[track_caller]
    pub fn expect_nothing(&mut self) {
        assert_eq!(self.next_sent(), None, "at {:?}", self.now);
    }

    /// The next packet is INIT.
    #[track_caller]
    pub fn expect_init(&mut self) -> Init {
        self.expect_on_any_path("INIT");
        let Some(Chunk::Init(init)) = self.last_chunks().pop() else { unreachable!() };
        self.learn(&init);
        init
    }

    /// The next packet is INIT ACK; answers its state cookie.
    #[track_caller]
    pub fn expect_init_ack(&mut self) -> Bytes {
        self.expect_on_any_path("INIT ACK");
        let Some(Chunk::InitAck(init)) = self.last_chunks().pop() else { unreachable!() };
        self.learn(&init);
        let cookie = init.params.iter().find_map(|p| match p {
            Ok(Parameter::StateCookie(cookie)) => Some(cookie),
            _ => None,
        });
        cookie.expect("INIT ACK carries a cookie")
    }

    /// Takes tag and TSNs for granted from here on.
    fn learn(&mut self, init: &Init) {
        self.tag = init.initiate_tag;
        self.base = init.initial_tsn.prev();
    }

    #[track_caller]
    fn expect_on_any_path(&mut self, words: &str) {
        let next = self.next_sent();
        let matches = next.as_deref().is_some_and(|n| n.trim_start_matches(path_prefix) == words);
        assert!(matches, "expected {words}, found {next:?} at {:?}", self.now);
    }

    /// The next packet in words, which then is [`last`](Self::last).
    pub fn next_sent(&mut self) -> Option<String> {
        let next = self.sent.pop_front()?;
        let mut words = render::render(&next.packet, self.base);
        if self.pairs.len() > 1 {
            let pair = (next.local, next.remote);
            let path = self.pairs.iter().position(|&p| p == pair);
            words = path.map_or_else(|| format!("P? {words}"), |i| format!("P{} {words}", i + 1));
        }
        self.last = Some(next);
        Some(words)
    }

    /// Everything sent that the test has not looked at.
    pub fn take_sent(&mut self) -> Vec<SentPacket> {
        self.sent.drain(..).collect()
    }

    /// Everything sent that the test has not looked at, in words.
    pub fn all_sent(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.next_sent()).collect()
    }

    /// The packet of the latest expectation.
    pub fn last(&self) -> &SentPacket {
        self.last.as_ref().expect("a packet was expected")
    }

    /// The chunks of the packet of the latest expectation.
    pub fn last_chunks(&self) -> Vec<Chunk> {
        self.last().packet.chunks().map(|c| c.expect("well-formed")).collect()
    }

    /// The DATA chunks of the packet of the latest expectation.
    pub fn last_data(&self) -> Vec<Data> {
        let data = |c| match c {
            Chunk::Data(data) => Some(data),
            _ => None,
        };
        self.last_chunks().into_iter().filter_map(data).collect()
    }

    /// The I-DATA chunks of the packet of the latest expectation.
    pub fn last_i_data(&self) -> Vec<IData> {
        let data = |c| match c {
            Chunk::IData(data) => Some(data),
            _ => None,
        };
        self.last_chunks().into_iter().filter_map(data).collect()
    }

    /// a_rwnd of the SACK in the packet of the latest expectation.
    pub fn last_rwnd(&self) -> u32 {
        let rwnd = |c| match c {
            Chunk::Sack(sack) => Some(sack.a_rwnd),
            _ => None,
        };
        self.last_chunks().into_iter().find_map(rwnd).expect("the packet has a SACK")
    }

    /// The Heartbeat Information in the packet of the latest expectation.
    pub fn last_heartbeat(&self) -> Bytes {
        heartbeat_info(&self.last().packet).expect("the packet has a HEARTBEAT")
    }

    /// The endpoint's tag, which the peer puts into its packets.
    pub fn tag(&self) -> u32 {
        self.tag
    }

    /// The tag, and the TSN that counts as 0, that the peer goes by: those of the endpoint's latest
    /// INIT or INIT ACK.
    pub fn view(&self) -> (u32, Tsn) {
        (self.tag, self.base)
    }

    /// Sets what the peer goes by from now on.
    pub fn set_view(&mut self, (tag, base): (u32, Tsn)) {
        (self.tag, self.base) = (tag, base);
    }

    /// The next event.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// All events that the test has not looked at.
    pub fn events(&mut self) -> Vec<Event> {
        self.events.drain(..).collect()
    }
}

fn path_prefix(c: char) -> bool {
    matches!(c, 'P' | '0'..='9' | '?' | ' ')
}

/// The information of the first HEARTBEAT in a packet.
/// The information of a packet's HEARTBEAT, if it has one.
pub fn heartbeat_info(packet: &Packet) -> Option<Bytes> {
    packet.chunks().find_map(|c| match c {
        Ok(Chunk::Heartbeat(info)) => Some(info.0),
        _ => None,
    })
}

/// The chunks of one packet of the peer.
#[derive(Clone, Debug)]
pub struct Chunks(Vec<PeerChunk>);

impl From<PeerChunk> for Chunks {
    fn from(chunk: PeerChunk) -> Chunks {
        Chunks(vec![chunk])
    }
}

impl<const N: usize> From<[PeerChunk; N]> for Chunks {
    fn from(chunks: [PeerChunk; N]) -> Chunks {
        Chunks(chunks.into())
    }
}

impl From<Vec<PeerChunk>> for Chunks {
    fn from(chunks: Vec<PeerChunk>) -> Chunks {
        Chunks(chunks)
    }
}
