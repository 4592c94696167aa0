//! Cross-traffic on its way through the network.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use manypath_proto::Rng;

use super::feed::{SourceState, Way};
use super::route::NatRole;
use super::{LinkState, Network, Owner, Route, RouteSpec};
use crate::cross::{CrossTraffic, GeneratorSpec, Pattern, Source, SourceSpec, SourceStats};
use crate::ids::{LinkId, NodeId, RouteId, SourceId};
use crate::packet::Packet;
use crate::spec::Rate;

impl Network {
    /// Adds cross-traffic over these links, in one direction. Adds none if its load is 0.
    ///
    /// # Panics
    ///
    /// If there are no links or all of them are infinitely fast.
    pub fn add_cross_traffic(&mut self, links: &[LinkId], traffic: &CrossTraffic) -> Vec<SourceId> {
        if traffic.load <= 0.0 {
            return Vec::new();
        }
        let rates = links.iter().filter_map(|&link| self.link_spec(link).rate.bits_per_second());
        let slowest = rates.min().expect("cross-traffic needs a link of finite rate to load");
        // Every generator makes as many packets, so the bytes of one round of all are:
        let round: u32 = traffic.packet_sizes.iter().sum();
        let rounds = traffic.load * slowest as f64 / (traffic.nodes as f64 * f64::from(round));
        let peak = match traffic.pattern {
            Pattern::Cbr => 1.0,
            Pattern::ParetoOnOff { mean_on, mean_off, .. } => {
                (mean_on + mean_off).as_secs_f64() / mean_on.as_secs_f64()
            }
        };
        let mut rng = self.fork_rng(&format!("cross-traffic from source {}", self.source_count()));
        let mut sources = Vec::with_capacity(traffic.nodes);
        for _ in 0..traffic.nodes {
            let (least, most) = traffic.access_delay;
            let delay = least + between(&mut rng, most.saturating_sub(least));
            let (first, last) = traffic.start;
            let generators = traffic.packet_sizes.iter().map(|&packet_bytes| GeneratorSpec {
                rate: Rate::bps((rounds * f64::from(packet_bytes) * peak).round() as u64),
                packet_bytes,
                pattern: traffic.pattern,
                start: first + between(&mut rng, last.saturating_since(first)),
            });
            let access = Some((traffic.access_rate, delay));
            let generators = generators.collect();
            sources.push(self.add_source(SourceSpec { access, links: links.to_vec(), generators }));
        }
        sources
    }

    /// Adds a source of cross-traffic.
    ///
    /// # Panics
    ///
    /// If it names no link, or a generator's rate is infinite.
    pub fn add_source(&mut self, spec: SourceSpec) -> SourceId {
        assert!(!spec.links.is_empty(), "cross-traffic needs a link to cross");
        self.release_links();
        let id = SourceId(self.sources.len() as u32);
        let rng = self.rng.fork(&format!("cross-traffic {}", id.0));
        let links = spec.links.clone();
        let mut source = Source::new(spec, &rng, self.queue.now());
        let next = source.next_arrival().map(|at| self.queue.plan(at));
        let only = (links.len() == 1).then(|| links[0]);
        let way = match only {
            Some(only) => {
                let feed = &mut self.links[only.0 as usize].feed;
                next.into_iter().for_each(|due| feed.add(due, id));
                if !self.fed.contains(&only) {
                    self.fed.push(only);
                }
                Way::Feed
            }
            None => {
                let (slot, first) = (self.queue.add_slot(), links[0]);
                self.owners.push(Owner::Source(id));
                self.queue.set(slot, next);
                // Beyond the first shared link its packets are like others, except that they end on
                // the last link.
                Way::Route { slot, first, route: self.add_blank_route(links) }
            }
        };
        self.sources.push(SourceState { source, way });
        id
    }

    /// Lets the cross-traffic that comes before the present event enter all links where it ends.
    #[inline]
    pub(super) fn catch_up(&mut self) {
        for index in 0..self.fed.len() {
            self.catch_up_on(self.fed[index]);
        }
    }

    /// Lets the cross-traffic that comes before the present event enter one link where it ends.
    #[inline]
    pub(super) fn catch_up_on(&mut self, link: LinkId) {
        let LinkState { link, feed, .. } = &mut self.links[link.0 as usize];
        while let Some(due) = feed.first().filter(|&due| self.queue.is_past(due)) {
            let (_, id) = feed.arrivals[feed.first];
            let source = &mut self.sources[id.0 as usize].source;
            // It ends here; whether it got in is in the link's counters.
            let _ = link.accept_blank(due.at(), source.emit());
            self.events += 1;
            feed.replace_first(source.next_arrival().map(|at| due.then(at)));
        }
    }

    /// How many sources of cross-traffic there are.
    pub(crate) fn source_count(&self) -> usize {
        self.sources.len()
    }

    pub(crate) fn fork_rng(&self, name: &str) -> Rng {
        self.rng.fork(name)
    }

    /// Packets and bytes that a source has offered to its first link so far.
    pub fn source_stats(&self, source: SourceId) -> SourceStats {
        self.sources[source.0 as usize].source.stats()
    }

    fn add_blank_route(&mut self, links: Vec<LinkId>) -> RouteId {
        let nobody = NodeId(u32::MAX);
        let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        let id = RouteId(self.routes.len() as u32);
        self.routes.push(Route {
            spec: RouteSpec {
                from: nobody,
                source: nowhere,
                destination: nowhere,
                links,
                to: nobody,
            },
            seen_ends: (nowhere, nowhere),
            is_mapped: true,
            is_blank: true,
            role: NatRole::None,
            path: None,
        });
        id
    }

    /// A packet of cross-traffic has crossed its source's own link.
    #[inline(never)]
    pub(super) fn run_source(&mut self, id: SourceId) {
        let SourceState { source, way } = &mut self.sources[id.0 as usize];
        let Way::Route { slot, first, route } = *way else { return };
        let size = source.emit();
        let next = source.next_arrival().map(|at| self.queue.plan(at));
        self.queue.set(slot, next);
        let id = u64::MAX;
        let packet = Packet {
            id,
            payload: None,
            damaged: None,
            route,
            size,
            hop: 0,
            may_fragment: true,
            is_ect: false,
            has_ce: false,
            fate: None,
        };
        let packet = self.packets.add(packet);
        self.enter(first, packet);
    }
}

/// Uniform from zero to `bound`.
fn between(rng: &mut Rng, bound: Duration) -> Duration {
    let nanos = u64::try_from(bound.as_nanos()).unwrap_or(u64::MAX - 1);
    Duration::from_nanos(rng.below(nanos.saturating_add(1)))
}
