//! A peer that speaks raw chunks by a script: one that lies, floods, or says what no engine would.
//!
//! A [`Stage`] is a [`Pair`] and a stranger on the same network, with a link of its own to host
//! `z`. What the stranger says is a [`Script`]'s: it sees every packet that reaches it, and says
//! when it wants to be woken. [`Greedy`] and [`Flood`] are two scripts.
//!
//! ```
//! use manypath_sim::testing::hostile::{Flood, FloodOf, Stage};
//! use manypath_sim::{Pair, PathSpec, secs};
//!
//! let pair = Pair::one_path("cmt-pf").profile("fast").lean().start();
//! let flood = Flood::new(FloodOf::Heartbeats, secs(1)..secs(2), 10_000);
//! let mut stage = Stage::new(pair, &PathSpec::new().rate_mbps(100.0), flood);
//! stage.pair.a.send_file(1_000_000);
//! stage.run_until(secs(3));
//! assert_eq!(stage.pair.z.received_bytes(), 1_000_000);
//! assert!(stage.script.answers < 1000, "out of the blue, so each draws an ABORT; but not all");
//! ```

use std::net::SocketAddr;
use std::ops::Range;

use bytes::Bytes;
use manypath_proto::Instant;
use manypath_wire::{
    Checksum, Chunk, CommonHeader, Data, IData, Init, Packet, PacketBuilder, Parameter, Params, Tsn,
};

use crate::host::Host;
use crate::ids::NodeId;
use crate::network::{Happening, Network};
use crate::pair::Pair;
use crate::paths::PathEnds;
use crate::spec::PathSpec;
use crate::world::drive_waiting;

/// The SCTP port of both ends.
const PORT: u16 = 9899;
/// Longest packet of a stranger, in bytes.
const PACKET_MAX: usize = 1472;

/// Behaviour of a stranger.
pub trait Script {
    /// A packet reached it.
    fn on_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox);

    /// It is woken, as it asked.
    fn on_time(&mut self, now: Instant, out: &mut Outbox);

    /// When it is to be woken; `None` for never. Asked after everything that it did.
    fn wakes_at(&self) -> Option<Instant>;
}

/// The packets that a stranger sends now.
#[derive(Debug, Default)]
pub struct Outbox {
    packets: Vec<Vec<u8>>,
}

impl Outbox {
    /// Sends a packet under this verification tag.
    ///
    /// # Panics
    ///
    /// If the chunks do not fit a packet.
    pub fn send(&mut self, tag: u32, write: impl FnOnce(&mut PacketBuilder<'_>) -> bool) {
        let header =
            CommonHeader { source_port: PORT, destination_port: PORT, verification_tag: tag };
        let mut packet = Vec::new();
        let mut builder = PacketBuilder::new(&mut packet, header, PACKET_MAX);
        assert!(write(&mut builder), "the script's chunks do not fit a packet");
        builder.finish(false);
        self.packets.push(packet);
    }

    /// Sends any bytes.
    pub fn send_raw(&mut self, packet: Vec<u8>) {
        self.packets.push(packet);
    }
}

/// A pair and a stranger.
#[derive(Debug)]
pub struct Stage<S> {
    /// The honest hosts and the network. Time is driven by the stage.
    pub pair: Pair,
    /// The stranger's behaviour.
    pub script: S,
    node: NodeId,
    ends: (SocketAddr, SocketAddr),
    path: usize,
}

impl<S: Script> Stage<S> {
    /// Puts a stranger beside a pair, at the other end of a path from host `z`, whose address on
    /// the first path it knows.
    ///
    /// # Panics
    ///
    /// If `z` has no address.
    pub fn new(mut pair: Pair, link: &PathSpec, script: S) -> Stage<S> {
        let near: SocketAddr = "203.0.113.66:9899".parse().expect("an address");
        let far = pair.z.addresses().first().copied().expect("z can be reached");
        let node = pair.net.add_node();
        let path =
            pair.net.add_path(PathEnds { near: (node, near), far: (pair.z.node(), far) }, link);
        let mut stage = Stage { pair, script, node, ends: (near, far), path };
        stage.wake();
        stage
    }

    /// Runs to that time.
    pub fn run_until(&mut self, limit: Instant) {
        while self.step(limit) {}
    }

    /// Does what happens next, if that is not beyond `limit`.
    pub fn step(&mut self, limit: Instant) -> bool {
        let Pair { a, z, net, .. } = &mut self.pair;
        drive_waiting(&mut [&mut *a, &mut *z], net);
        let Some(happening) = net.poll(limit) else { return false };
        match happening {
            Happening::Packet(packet) if packet.node == self.node => {
                let Ok(packet) = Packet::parse(packet.payload, Checksum::Ignore) else {
                    return true;
                };
                self.act(|script, now, out| script.on_packet(now, packet, out));
            }
            Happening::Timer(node) if node == self.node => {
                self.act(|script, now, out| script.on_time(now, out));
            }
            Happening::Packet(packet) => {
                if let Some(host) = at([a, z], packet.node) {
                    host.handle_packet(packet, net);
                }
            }
            Happening::Timer(node) => {
                if let Some(host) = at([a, z], node) {
                    host.handle_timer(net);
                }
            }
            Happening::TooLong(message) => {
                if let Some(host) = at([a, z], message.node) {
                    host.handle_too_long(&message, net);
                }
            }
            Happening::Address(change) => {
                if let Some(host) = at([a, z], change.node()) {
                    host.handle_address(&change, net);
                }
            }
        }
        true
    }

    /// Bytes with headers that were sent towards the stranger, whether its link took them or not; a
    /// packet that found the queue full counts as one of 1500 bytes.
    pub fn offered_bytes(&self) -> u64 {
        let (_, back) = self.pair.net.path_stats(self.path);
        back.first().map_or(0, |link| link.bytes + 1500 * link.overflowed)
    }

    fn act(&mut self, act: impl FnOnce(&mut S, Instant, &mut Outbox)) {
        let mut out = Outbox::default();
        act(&mut self.script, self.pair.net.now(), &mut out);
        let (near, far) = self.ends;
        for packet in out.packets {
            self.pair.net.send(self.node, near, far, Bytes::from(packet));
        }
        self.wake();
    }

    fn wake(&mut self) {
        let net: &mut Network = &mut self.pair.net;
        net.set_timer(self.node, self.script.wakes_at());
    }
}

fn at(hosts: [&mut Host; 2], node: NodeId) -> Option<&mut Host> {
    hosts.into_iter().find(|host| host.node() == node)
}

/// A client that acknowledges the highest TSN it has seen, whatever was lost below: the loss of
/// what its link cannot carry stays hidden, and a sender that believes it sends faster and faster.
#[derive(Debug)]
pub struct Greedy {
    /// Its tag, new for each association.
    tag: u32,
    peer_tag: u32,
    cookie: Option<Bytes>,
    highest: Option<Tsn>,
    acked: Option<Tsn>,
    wakes_at: Option<Instant>,
    /// It connects again when it is sent away.
    pub returns: bool,
    /// Associations that it had.
    pub associations: u32,
    /// ABORTs that it got.
    pub aborts: u32,
    /// The text of the last of them.
    pub reason: String,
}

/// How often a greedy client acknowledges, or asks again.
const GREEDY_EVERY: std::time::Duration = std::time::Duration::from_millis(1);
/// The receive buffer that it pretends to have, in bytes.
const GREEDY_WINDOW: u32 = 1 << 30;

impl Greedy {
    /// One that connects at once, and again whenever it is sent away if `returns`.
    pub fn new(returns: bool) -> Greedy {
        Greedy {
            tag: 0x0bad_0000,
            peer_tag: 0,
            cookie: None,
            highest: None,
            acked: None,
            wakes_at: Some(Instant::ZERO),
            returns,
            associations: 0,
            aborts: 0,
            reason: String::new(),
        }
    }

    fn connect(&mut self, out: &mut Outbox) {
        self.tag += 1;
        (self.peer_tag, self.cookie, self.highest, self.acked) = (0, None, None, None);
        let init = init(self.tag, &[]);
        out.send(0, |p| p.push_init(&init));
    }
}

impl Script for Greedy {
    fn on_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        if packet.header.verification_tag != self.tag {
            return;
        }
        for chunk in packet.chunks() {
            match chunk {
                Ok(Chunk::InitAck(init)) if self.peer_tag == 0 => {
                    self.peer_tag = init.initiate_tag;
                    let cookie = init.params.into_iter().find_map(|p| match p {
                        Ok(Parameter::StateCookie(cookie)) => Some(cookie),
                        _ => None,
                    });
                    let cookie = cookie.unwrap_or_default();
                    out.send(self.peer_tag, |p| p.push_cookie_echo(&cookie));
                    self.cookie = Some(cookie);
                    self.associations += 1;
                }
                Ok(Chunk::Data(Data { tsn, .. }) | Chunk::IData(IData { tsn, .. }))
                    if self.highest.is_none_or(|highest| tsn.gt(highest)) =>
                {
                    self.highest = Some(tsn);
                }
                Ok(Chunk::Heartbeat(info)) => {
                    out.send(self.peer_tag, |p| p.push_heartbeat_ack(&info.0));
                }
                Ok(Chunk::Abort(abort)) => {
                    self.aborts += 1;
                    let cause = abort.causes.iter().find_map(Result::ok);
                    self.reason = cause.map(|cause| format!("{cause:?}")).unwrap_or_default();
                    self.wakes_at = None;
                    if self.returns {
                        self.connect(out);
                        self.wakes_at = Some(now + GREEDY_EVERY);
                    }
                    return;
                }
                _ => {}
            }
        }
    }

    fn on_time(&mut self, now: Instant, out: &mut Outbox) {
        if self.cookie.is_none() && self.peer_tag == 0 && self.tag == 0x0bad_0000 {
            self.connect(out);
        }
        if let Some(highest) = self.highest
            && self.highest != self.acked
        {
            out.send(self.peer_tag, |p| {
                p.push_sack(highest, GREEDY_WINDOW, 0, std::iter::empty(), std::iter::empty())
            });
            self.acked = Some(highest);
        }
        self.wakes_at = Some(now + GREEDY_EVERY);
    }

    fn wakes_at(&self) -> Option<Instant> {
        self.wakes_at
    }
}

/// An INIT of a stranger, with a list of addresses.
pub fn init(tag: u32, addresses: &[std::net::IpAddr]) -> Init {
    Init {
        initiate_tag: tag,
        a_rwnd: GREEDY_WINDOW,
        outbound_streams: 16,
        inbound_streams: 16,
        initial_tsn: Tsn(tag),
        params: addresses.iter().map(|&ip| Parameter::from(ip)).collect::<Params>(),
    }
}

/// Kind of packets that a [`Flood`] consists of.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FloodOf {
    /// INITs, each with another tag.
    Inits,
    /// The same INIT again and again.
    OneInit,
    /// COOKIE ECHOs with cookies that nobody made.
    Cookies,
    /// DATA under tags that nobody has.
    Data,
    /// SHUTDOWN ACKs out of the blue.
    ShutdownAcks,
    /// HEARTBEATs out of the blue.
    Heartbeats,
    /// ABORTs under tags that nobody has.
    Aborts,
    /// SACKs of many blocks under tags that nobody has.
    Sacks,
    /// Bytes that are no packet.
    Junk,
}

impl FloodOf {
    /// All of them.
    pub const ALL: [FloodOf; 9] = [
        FloodOf::Inits,
        FloodOf::OneInit,
        FloodOf::Cookies,
        FloodOf::Data,
        FloodOf::ShutdownAcks,
        FloodOf::Heartbeats,
        FloodOf::Aborts,
        FloodOf::Sacks,
        FloodOf::Junk,
    ];
}

/// Packets of one kind at a constant rate, from a time on.
#[derive(Debug)]
pub struct Flood {
    of: FloodOf,
    next: Instant,
    until: Instant,
    every: std::time::Duration,
    /// Packets sent.
    pub sent: u32,
    /// Packets that came back.
    pub answers: u64,
    /// Their bytes.
    pub answer_bytes: u64,
}

impl Flood {
    /// A flood of `of` during `span`, `rate` packets a second.
    pub fn new(of: FloodOf, span: Range<Instant>, rate: u32) -> Flood {
        let every = std::time::Duration::from_secs(1) / rate.max(1);
        Flood { of, next: span.start, until: span.end, every, sent: 0, answers: 0, answer_bytes: 0 }
    }
}

impl Script for Flood {
    fn on_packet(&mut self, _now: Instant, packet: Packet, _out: &mut Outbox) {
        self.answers += 1;
        self.answer_bytes += packet.bytes().len() as u64;
    }

    fn on_time(&mut self, _now: Instant, out: &mut Outbox) {
        self.sent += 1;
        self.next += self.every;
        let tag = self.sent | 0x4000_0000;
        match self.of {
            FloodOf::Inits => out.send(0, |p| p.push_init(&init(tag, &[]))),
            FloodOf::OneInit => out.send(0, |p| p.push_init(&init(7, &[]))),
            FloodOf::Cookies => out.send(tag, |p| p.push_cookie_echo(&[tag as u8; 160])),
            FloodOf::Data => {
                let (stream, flags) = (manypath_wire::StreamId(0), manypath_wire::DataFlags(3));
                out.send(tag, |p| {
                    let (ssn, ppid) = (manypath_wire::Ssn(0), 0);
                    p.push_data(Tsn(tag), stream, ssn, ppid, flags, &[0; 100])
                });
            }
            FloodOf::ShutdownAcks => out.send(tag, |p| p.push_shutdown_ack()),
            FloodOf::Heartbeats => out.send(tag, |p| p.push_heartbeat(&[0; 12])),
            FloodOf::Aborts => out.send(tag, |p| p.push_abort(false, &[])),
            FloodOf::Sacks => {
                let block = |n: u16| (2 * n, 2 * n);
                out.send(tag, |p| {
                    p.push_sack(Tsn(tag), 0, 0, (1..300).map(block), std::iter::empty())
                });
            }
            FloodOf::Junk => out.send_raw(vec![tag as u8; 64]),
        }
    }

    fn wakes_at(&self) -> Option<Instant> {
        Some(self.next).filter(|at| *at < self.until)
    }
}
