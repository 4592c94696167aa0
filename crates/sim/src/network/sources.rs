//! Cross-traffic on its way through the network.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::Bytes;
use manypath_proto::Rng;

use super::{LinkId, Network, NodeId, Owner, Route, RouteId, RouteSpec};
use crate::cross::{Source, SourceId, SourceSpec, SourceStats};
use crate::packet::Packet;
use crate::queue::Slot;

#[derive(Debug)]
pub(super) struct SourceState {
    source: Source,
    slot: Slot,
    /// The first link its packets share with others.
    first: LinkId,
    /// The way of its packets if they cross more links than that.
    route: Option<RouteId>,
}

impl Network {
    /// Adds a source of cross-traffic.
    ///
    /// # Panics
    ///
    /// If it names no link, or a generator's rate is infinite.
    pub fn add_source(&mut self, spec: SourceSpec) -> SourceId {
        assert!(!spec.links.is_empty(), "cross-traffic needs a link to cross");
        self.release_links();
        let id = SourceId(self.sources.len() as u32);
        let slot = self.queue.add_slot();
        self.owners.push(Owner::Source(id));
        // Beyond a first shared link its packets are packets like others, but for their end.
        let route = (spec.links.len() > 1).then(|| self.add_blank_route(spec.links.clone()));
        let rng = self.rng.fork(&format!("cross-traffic {}", id.0));
        let first = spec.links[0];
        let mut source = Source::new(spec, &rng, self.queue.now());
        let next = source.next_arrival().map(|at| self.queue.plan(at));
        self.queue.set(slot, next);
        self.sources.push(SourceState { source, slot, first, route });
        id
    }

    /// How many sources of cross-traffic there are.
    pub(crate) fn source_count(&self) -> usize {
        self.sources.len()
    }

    pub(crate) fn fork_rng(&self, name: &str) -> Rng {
        self.rng.fork(name)
    }

    /// What a source offered to its first link so far.
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
            seen_source: nowhere,
            seen_destination: nowhere,
            is_mapped: true,
            is_blank: true,
            path: None,
        });
        id
    }

    /// A packet of cross-traffic has crossed its source's own link.
    pub(super) fn run_source(&mut self, id: SourceId) {
        let state = &mut self.sources[id.0 as usize];
        let size = state.source.emit();
        let next = state.source.next_arrival().map(|at| self.queue.plan(at));
        self.queue.set(state.slot, next);
        let (first, route) = (state.first, state.route);
        match route {
            // It ends here; whether it got in is in the link's counters.
            None => {
                let link = &mut self.links[first.0 as usize].link;
                let _ = link.accept_blank(self.queue.now(), size);
            }
            Some(route) => {
                let (payload, id) = (Bytes::new(), u64::MAX);
                let packet = self.packets.add(Packet {
                    id,
                    payload,
                    route,
                    size,
                    hop: 0,
                    ecn: None,
                    fate: None,
                });
                self.enter(first, packet);
            }
        }
    }
}
