//! Packets between interfaces: which enters the network, which leaves it where, and how late.
//!
//! Like the network it has no clock: the caller says what time it is.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use manypath::Bytes;
use manypath_proto::Instant;
use manypath_sim::scenario::BareNetwork;
use manypath_sim::{DurationHistogram, Happening};

use super::ip;
use super::plan::as_socket_addr;
use super::report::{Lateness, LinkReport, Report};

/// A packet that has crossed the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// The interface that it is for, by its number.
    pub(super) interface: usize,
    /// When it should arrive.
    pub(super) planned: Instant,
    /// The packet.
    pub(super) packet: Bytes,
}

/// The network and the interfaces at its edge.
#[derive(Debug)]
pub(super) struct Crossing {
    bare: BareNetwork,
    /// The interfaces by address.
    interfaces: BTreeMap<SocketAddr, usize>,
    has_begun: bool,
    unroutable: u64,
    undelivered: u64,
    lateness: DurationHistogram,
    delivered: u64,
    latest: Duration,
}

impl Crossing {
    pub(super) fn new(bare: BareNetwork) -> Crossing {
        let ends = bare.paths.iter().flat_map(|path| path.ends);
        let interfaces = ends.enumerate().map(|(number, end)| (end.address, number)).collect();
        Crossing {
            bare,
            interfaces,
            has_begun: false,
            unroutable: 0,
            undelivered: 0,
            lateness: DurationHistogram::default(),
            delivered: 0,
            latest: Duration::ZERO,
        }
    }

    /// When something happens next.
    pub(super) fn next_event(&self) -> Option<Instant> {
        self.bare.net.next_event()
    }

    /// Lets a packet from an interface into its first link now, which is the time of the last
    /// [`poll`](Self::poll).
    pub(super) fn enter(&mut self, interface: usize, packet: &[u8]) {
        let end = self.bare.paths.get(interface / 2).map(|path| path.ends[interface % 2]);
        let (Some(end), Some(header)) = (end, ip::read(packet)) else {
            self.unroutable += 1;
            return;
        };
        let node = self.bare.hosts[end.host].node;
        let (from, to) = (as_socket_addr(header.source), as_socket_addr(header.destination));
        let net = &mut self.bare.net;
        let packet = Bytes::copy_from_slice(packet);
        let route = if header.may_fragment {
            net.send_without_df(node, from, to, packet)
        } else {
            net.send(node, from, to, packet)
        };
        match route {
            None => self.unroutable += 1,
            Some(_) if !self.has_begun => {
                self.has_begun = true;
                self.bare.note_first_data();
            }
            Some(_) => {}
        }
    }

    /// The next packet that arrives until `now`; `None` if there is none, and it is `now` in the
    /// network.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Arrival> {
        while let Some(happening) = self.bare.net.poll(now) {
            let planned = self.bare.net.now();
            let (to, packet) = match happening {
                Happening::Packet(packet) => {
                    (self.bare.net.seen_ends(packet.route).0, packet.payload)
                }
                Happening::TooLong(message) => match ip::too_big(&message.quoted, message.mtu) {
                    Some(packet) => (message.local, packet.into()),
                    None => continue,
                },
                Happening::Timer(_) | Happening::Address(_) => continue,
            };
            if let Some(&interface) = self.interfaces.get(&to) {
                return Some(Arrival { interface, planned, packet });
            }
        }
        None
    }

    /// Notes that a packet planned for `planned` was handed to its interface at `now`, or could not
    /// be.
    pub(super) fn note_delivery(&mut self, planned: Instant, now: Instant, is_delivered: bool) {
        if !is_delivered {
            self.undelivered += 1;
            return;
        }
        let late = now.saturating_since(planned);
        self.lateness.add(late, 1);
        self.latest = self.latest.max(late);
        self.delivered += 1;
    }

    /// The counters of the links until now.
    pub(super) fn report(&self, elapsed: Duration) -> Report {
        let links = self.bare.links.iter().flat_map(|link| {
            [("forward", link.forward), ("reverse", link.reverse)].map(|(direction, id)| {
                let stats = self.bare.net.link_stats(id);
                LinkReport { link: link.name.clone(), direction, stats }
            })
        });
        Report {
            seconds: elapsed.as_secs_f64(),
            links: links.collect(),
            unroutable: self.unroutable,
            undelivered: self.undelivered,
            dropped_before_links: 0,
            lateness: Lateness {
                packets: self.delivered,
                p50_s: self.lateness.quantile_s(0.5),
                p99_s: self.lateness.quantile_s(0.99),
                max_s: (self.delivered > 0).then_some(self.latest.as_secs_f64()),
            },
        }
    }
}

#[cfg(test)]
mod tests;
