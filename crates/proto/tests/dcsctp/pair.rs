//! A socket of dcsctp and an endpoint of ours, and the messages that each has for the other.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use dcsctp::api::{
    DcSctpSocket, Message, Options, PpId, SendOptions, SocketEvent, SocketState, SocketTime,
    StreamId,
};
use manypath_proto::config::Config;
use manypath_proto::{
    AssocId, Association, ConnectTo, Datagram, Endpoint, EndpointConfig, Event, Instant, Rng,
};

use super::network::{Network, To, UnderWay};

/// The port that dcsctp has by default.
const PORT: u16 = 5000;
/// No test here takes as long.
const LIMIT: Duration = Duration::from_secs(3600);

fn address(last: u8) -> SocketAddr {
    ([10, 0, 0, last], PORT).into()
}

/// The end that opens the association.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Opens {
    Manypath,
    Dcsctp,
}

/// Both ends and what is between them.
#[derive(Clone)]
pub struct Setup {
    pub profile: &'static str,
    pub preset: &'static str,
    /// Parameters of our end that differ.
    pub parameters: Vec<(&'static str, &'static str)>,
    pub options: Options,
    pub round_trip: Duration,
    pub loss_rate: f64,
    pub seed: u64,
}

impl Default for Setup {
    /// The default of both, 20 ms apart.
    fn default() -> Setup {
        Setup {
            profile: "fast",
            preset: "adaptive",
            parameters: Vec::new(),
            options: Options::default(),
            round_trip: Duration::from_millis(20),
            loss_rate: 0.0,
            seed: 1,
        }
    }
}

/// A message, and how it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mail {
    pub stream: u16,
    pub unordered: bool,
    /// Tells the messages of one direction apart.
    pub number: u32,
    pub length: usize,
    pub lifetime: Option<Duration>,
    pub max_retransmissions: Option<u16>,
}

impl Mail {
    /// May it be given up?
    pub fn is_limited(&self) -> bool {
        self.lifetime.is_some() || self.max_retransmissions.is_some()
    }

    fn payload(&self) -> Vec<u8> {
        (0..self.length).map(|at| (at as u32).wrapping_add(self.number * 31) as u8).collect()
    }

    fn of_dcsctp(&self) -> (Message, SendOptions) {
        let message = Message::new(StreamId(self.stream), PpId(self.number), self.payload());
        let options = SendOptions {
            unordered: self.unordered,
            lifetime: self.lifetime,
            max_retransmissions: self.max_retransmissions,
            lifecycle_id: None,
        };
        (message, options)
    }

    fn of_ours(&self) -> (manypath_proto::SendOptions, Bytes) {
        let options = manypath_proto::SendOptions {
            stream: manypath_wire::StreamId(self.stream),
            ppid: self.number,
            unordered: self.unordered,
            lifetime: self.lifetime,
            max_retransmissions: self.max_retransmissions,
            ..Default::default()
        };
        (options, self.payload().into())
    }
}

/// A message that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub stream: u16,
    pub number: u32,
    pub payload: Vec<u8>,
}

pub struct Pair {
    now: Instant,
    pub network: Network,
    pub dcsctp: Box<dyn DcSctpSocket>,
    pub endpoint: Endpoint,
    id: Option<AssocId>,
    /// Messages that wait for room.
    pub from_dcsctp: VecDeque<Mail>,
    pub from_us: VecDeque<Mail>,
    pub at_us: Vec<Arrived>,
    pub at_dcsctp: Vec<Arrived>,
    pub events: Vec<Event>,
    pub dcsctp_events: Vec<SocketEvent>,
    /// Parts of a message that is not complete.
    parts: Vec<u8>,
}

impl Pair {
    /// Both ends, of which this one has begun to open the association.
    pub fn new(opens: Opens, setup: &Setup) -> Pair {
        // dcsctp draws tags and TSNs from it.
        fastrand::seed(setup.seed);
        let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let parameters: Vec<_> = setup.parameters.iter().map(text).collect();
        let config = Config::build(setup.profile, setup.preset, &parameters).expect("valid");
        let config = EndpointConfig {
            config: Arc::new(config),
            sctp_port: PORT,
            accept: opens == Opens::Dcsctp,
            max_associations: 1,
            local_addresses: vec![address(2)],
        };
        let mut pair = Pair {
            now: Instant::ZERO,
            network: Network::new(setup.round_trip, setup.loss_rate, setup.seed),
            dcsctp: dcsctp::new_socket("dcsctp", &setup.options),
            endpoint: Endpoint::new(config, Rng::from_number(setup.seed)),
            id: None,
            from_dcsctp: VecDeque::new(),
            from_us: VecDeque::new(),
            at_us: Vec::new(),
            at_dcsctp: Vec::new(),
            events: Vec::new(),
            dcsctp_events: Vec::new(),
            parts: Vec::new(),
        };
        match opens {
            Opens::Dcsctp => pair.dcsctp.connect(),
            Opens::Manypath => {
                let to = ConnectTo::new(vec![(address(2), address(1))], PORT);
                pair.id = Some(pair.endpoint.connect(pair.now, to).expect("a valid request"));
            }
        }
        pair
    }

    /// As [`new`](Self::new), once both ends are open.
    pub fn open(opens: Opens, setup: &Setup) -> Pair {
        let mut pair = Pair::new(opens, setup);
        pair.run_until("both are open", |pair| {
            pair.dcsctp.state() == SocketState::Connected
                && pair.id.is_some_and(|id| pair.endpoint.assoc(id).unwrap().is_established())
        });
        pair
    }

    pub fn association(&mut self) -> &mut Association {
        let id = self.id.expect("it has begun");
        self.endpoint.assoc_mut(id).expect("it is there")
    }

    pub fn now(&self) -> Instant {
        self.now
    }

    /// Goes on until this holds.
    pub fn run_until(&mut self, what: &str, holds: impl Fn(&Pair) -> bool) {
        let limit = self.now + LIMIT;
        loop {
            self.take_from_dcsctp();
            self.take_from_us();
            if holds(self) {
                return;
            }
            self.step(limit, what);
        }
    }

    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        self.run_until("that time is over", |pair| pair.now >= end);
    }

    fn step(&mut self, limit: Instant, what: &str) {
        let next = self.next_at().filter(|next| *next <= limit);
        self.now = next.unwrap_or_else(|| {
            panic!("until {what}; ours: {:?}; dcsctp: {:?}", self.events, self.dcsctp_events)
        });
        self.deliver();
        self.dcsctp.advance_time(SocketTime::zero() + (self.now - Instant::ZERO));
        self.endpoint.handle_timeout(self.now);
    }

    pub fn take_from_dcsctp(&mut self) {
        // Before COOKIE ACK it would send DATA in other packets, which RFC 9260 §5.1 forbids:
        // if COOKIE ECHO is lost, they draw an ABORT.
        while self.dcsctp.state() == SocketState::Connected
            && let Some(mail) = self.from_dcsctp.front()
        {
            let (message, options) = mail.of_dcsctp();
            if self.dcsctp.send(message, &options).is_err() {
                break;
            }
            self.from_dcsctp.pop_front();
        }
        while let Some(event) = self.dcsctp.poll_event() {
            match event {
                SocketEvent::SendPacket(packet) => self.network.send(self.now, To::Us, packet),
                event => self.dcsctp_events.push(event),
            }
        }
        while let Some(Message { stream_id, ppid, payload }) = self.dcsctp.get_next_message() {
            let arrived = Arrived { stream: stream_id.0, number: ppid.0, payload };
            self.at_dcsctp.push(arrived);
        }
    }

    pub fn take_from_us(&mut self) {
        self.send_ours();
        let mut packet = Vec::new();
        while self.endpoint.poll_transmit(self.now, 1, &mut packet).is_some() {
            self.network.send(self.now, To::Dcsctp, packet.clone());
        }
        while let Some((id, event)) = self.endpoint.poll_event() {
            self.id = Some(id);
            self.events.push(event);
        }
        let Some(association) = self.id.and_then(|id| self.endpoint.assoc_mut(id)) else { return };
        while let Some(message) = association.recv(self.now) {
            self.parts.extend_from_slice(&message.payload.to_vec());
            if message.end_of_message {
                let payload = std::mem::take(&mut self.parts);
                let (stream, number) = (message.stream.0, message.ppid);
                self.at_us.push(Arrived { stream, number, payload });
            }
        }
    }

    fn send_ours(&mut self) {
        let Some(association) = self.id.and_then(|id| self.endpoint.assoc_mut(id)) else { return };
        while association.is_established()
            && let Some(mail) = self.from_us.front()
        {
            let (options, payload) = mail.of_ours();
            if association.send(self.now, options, payload).is_err() {
                break;
            }
            self.from_us.pop_front();
        }
    }

    fn next_at(&mut self) -> Option<Instant> {
        let of_dcsctp = self.dcsctp.poll_timeout();
        let of_dcsctp = (of_dcsctp != SocketTime::infinite_future())
            .then(|| Instant::ZERO + (of_dcsctp - SocketTime::zero()));
        let all = [self.network.next_at(), of_dcsctp, self.endpoint.poll_timeout()];
        all.into_iter().flatten().min()
    }

    /// Packets that arrive at once are at hand together, as with the sockets.
    fn deliver(&mut self) {
        while let Some(UnderWay { to, packet, .. }) = self.network.arrived(self.now) {
            match to {
                To::Dcsctp => self.dcsctp.handle_input(&packet),
                To::Us => {
                    let datagram = Datagram::new(address(2), address(1), Bytes::from(packet));
                    self.endpoint.handle_datagram(self.now, datagram);
                    if self.endpoint.owes_sack() {
                        self.take_from_us();
                    }
                }
            }
        }
    }
}

/// Panics unless these messages have arrived, of those that may be given up any, in order within
/// each stream.
pub fn check(sent: &[Mail], arrived: &[Arrived]) {
    for came in arrived {
        let mail = sent.iter().find(|mail| mail.number == came.number).expect("it was sent");
        assert!(came.stream == mail.stream && came.payload == mail.payload(), "{mail:?}");
    }
    let mut numbers: Vec<u32> = arrived.iter().map(|came| came.number).collect();
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "each once: {numbers:?}");
    for mail in sent.iter().filter(|mail| !mail.is_limited()) {
        assert!(numbers.binary_search(&mail.number).is_ok(), "{mail:?} is missing");
    }
    for stream in 0..=sent.iter().map(|mail| mail.stream).max().unwrap_or(0) {
        let of_stream = |came: &&Arrived| came.stream == stream && !is_unordered(sent, came);
        let order: Vec<u32> = arrived.iter().filter(of_stream).map(|came| came.number).collect();
        assert!(order.is_sorted(), "of stream {stream}: {order:?}");
    }
}

fn is_unordered(sent: &[Mail], came: &Arrived) -> bool {
    sent.iter().any(|mail| mail.number == came.number && mail.unordered)
}
