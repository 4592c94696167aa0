//! The engine alone: two endpoints in one thread, no sockets, checksums on.
//!
//! `cargo bench -p manypath-proto --bench engine` prints bulk throughput with 1400-byte messages,
//! the rate of 100-byte messages, and bulk throughput over two paths that reorder, all per core.

#![allow(missing_docs, clippy::disallowed_methods, clippy::unwrap_used)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant as Clock};

use bytes::Bytes;
use manypath_proto::{
    AssocId, Config, ConnectTo, Datagram, Endpoint, EndpointConfig, Event, Instant, Rng,
    SendOptions, Transmit,
};

const BATCH: usize = 32;

/// A packet batch on its way: what GSO and GRO would hand over.
struct InFlight {
    at: Instant,
    transmit: Transmit,
    bytes: Bytes,
}

struct Host {
    endpoint: Endpoint,
    assoc: Option<AssocId>,
    wire: VecDeque<InFlight>,
    readable: bool,
}

impl Host {
    fn new(paths: usize, last: u8, accept: bool, config: &Config) -> Host {
        let local_addresses = (0..paths).map(|i| address(i, last)).collect();
        let config = EndpointConfig {
            config: Arc::new(config.clone()),
            sctp_port: 9899,
            accept,
            max_associations: 1,
            local_addresses,
        };
        let endpoint = Endpoint::new(config, Rng::from_number(last.into()));
        Host { endpoint, assoc: None, wire: VecDeque::new(), readable: false }
    }

    /// Sends what can be sent; it arrives after the delay of its path.
    fn drain(&mut self, now: Instant, delays: &[Duration], buf: &mut Vec<u8>) {
        while let Some(transmit) = self.endpoint.poll_transmit(now, BATCH, buf) {
            let path = match transmit.local {
                std::net::SocketAddr::V4(a) => a.ip().octets()[2] as usize,
                std::net::SocketAddr::V6(_) => 0,
            };
            let at = now + delays[path];
            let bytes = Bytes::copy_from_slice(buf);
            let place = self.wire.iter().rposition(|p| p.at <= at).map_or(0, |i| i + 1);
            self.wire.insert(place, InFlight { at, transmit, bytes });
        }
        while let Some((id, event)) = self.endpoint.poll_event() {
            match event {
                Event::Connected { .. } => self.assoc = Some(id),
                Event::Readable => self.readable = true,
                _ => {}
            }
        }
    }

    fn receive(&mut self, now: Instant, flight: InFlight) {
        let mut rest = flight.bytes;
        while !rest.is_empty() {
            let payload = rest.split_to(rest.len().min(flight.transmit.segment_size));
            let (local, remote) = (flight.transmit.remote, flight.transmit.local);
            self.endpoint.handle_datagram(now, Datagram::new(local, remote, payload));
        }
    }
}

fn address(path: usize, last: u8) -> std::net::SocketAddr {
    std::net::SocketAddr::from(([10, 0, path as u8, last], 9899))
}

fn arrived(wire: &mut VecDeque<InFlight>, now: Instant) -> Option<InFlight> {
    if wire.front()?.at <= now { wire.pop_front() } else { None }
}

struct Outcome {
    seconds: f64,
    messages: u64,
    bytes: u64,
}

/// Moves `total` messages of `size` bytes and measures the time both endpoints take together.
fn transfer(delays: &[Duration], size: usize, total: u64) -> Outcome {
    let config = Config::build("fast", "cmt-pf", &[("pacing".into(), "false".into())]).unwrap();
    let paths = delays.len();
    let mut a = Host::new(paths, 1, false, &config);
    let mut z = Host::new(paths, 2, true, &config);
    let mut now = Instant::ZERO;
    let pairs = (0..paths).map(|i| (address(i, 1), address(i, 2))).collect();
    let id = a.endpoint.connect(now, ConnectTo::new(pairs, 9899)).unwrap();
    let message = Bytes::from(vec![7u8; size]);
    let (mut sent, mut received, mut bytes) = (0u64, 0u64, 0u64);
    let mut buf = Vec::new();
    let start = Clock::now();
    while received < total {
        let assoc = a.endpoint.assoc_mut(id).unwrap();
        while sent < total && assoc.send(now, SendOptions::default(), message.clone()).is_ok() {
            sent += 1;
        }
        a.drain(now, delays, &mut buf);
        z.drain(now, delays, &mut buf);
        // The next thing to happen: an arrival or a timer.
        let next = [
            a.wire.front().map(|p| p.at),
            z.wire.front().map(|p| p.at),
            a.endpoint.poll_timeout(),
            z.endpoint.poll_timeout(),
        ];
        now = next.into_iter().flatten().min().expect("something is under way").max(now);
        for _ in 0..4 {
            let Some(p) = arrived(&mut a.wire, now) else { break };
            z.receive(now, p);
        }
        while let Some(p) = arrived(&mut z.wire, now) {
            a.receive(now, p);
        }
        a.endpoint.handle_timeout(now);
        z.endpoint.handle_timeout(now);
        z.drain(now, delays, &mut buf);
        if std::mem::take(&mut z.readable) {
            let assoc = z.endpoint.assoc_mut(z.assoc.unwrap()).unwrap();
            while let Some(m) = assoc.recv(now) {
                received += 1;
                bytes += m.payload.len() as u64;
            }
        }
    }
    Outcome { seconds: start.elapsed().as_secs_f64(), messages: received, bytes }
}

fn main() {
    let us = Duration::from_micros;
    let cases: [(&str, &[Duration], usize, u64); 4] = [
        ("1 path, 1400-byte messages", &[us(50)], 1400, 2_000_000),
        ("1 path, 100-byte messages", &[us(50)], 100, 4_000_000),
        ("1 path, 64 KiB messages", &[us(50)], 65_536, 40_000),
        ("2 paths (50, 250 us), 1400-byte messages", &[us(50), us(250)], 1400, 2_000_000),
    ];
    println!("{:<44} {:>10} {:>14}", "engine in memory, one thread", "Gbit/s", "messages/s");
    for (name, delays, size, total) in cases {
        let o = transfer(delays, size, total);
        let gbits = o.bytes as f64 * 8.0 / o.seconds / 1e9;
        println!("{name:<44} {gbits:>10.2} {:>14.0}", o.messages as f64 / o.seconds);
    }
}
