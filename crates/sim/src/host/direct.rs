//! The search of a host behind NATs for direct paths: which candidates it has, and when it looks.

use std::net::SocketAddr;
use std::time::Duration;

use manypath_proto::{Candidate, CandidateKind, Instant};

use super::planned::Planned;
use super::{Host, ReflexiveAddress};
use crate::network::Network;

/// The time that a question to a STUN server takes.
const ASKING: Duration = Duration::from_millis(40);
/// The time between two questions, as on a real host.
const INTERVAL: Duration = Duration::from_secs(15);

/// The search for direct paths.
#[derive(Debug)]
pub(super) struct Search {
    /// Addresses that relays have lent, to this host or its peer.
    pub(super) relayed: Vec<SocketAddr>,
    /// When the host asks next.
    next: Instant,
}

impl Search {
    pub(super) fn new(relayed: Vec<SocketAddr>) -> Search {
        Search { relayed, next: Instant::ZERO }
    }
}

impl Host {
    /// Plans to ask a STUN server, unless that is planned for an earlier time.
    fn ask_at(&mut self, at: Instant) {
        if let Some(search) = &mut self.search {
            search.next = at;
            self.plan(at, Planned::Gather);
        }
    }

    /// Begins to look for direct paths, if it does at all.
    pub(super) fn begin_search(&mut self) {
        self.ask_at(Instant::ZERO + ASKING);
    }

    /// A path has failed: a NAT may have forgotten its mapping.
    pub(super) fn doubt_addresses(&mut self, now: Instant) {
        let is_earlier = |search: &super::Search| now + ASKING < search.next;
        if self.search.as_ref().is_some_and(is_earlier) {
            self.ask_at(now + ASKING);
        }
    }

    /// Asks how a STUN server sees the host's addresses, if it is time, and tells the engine.
    pub(super) fn gather(&mut self, net: &mut Network) {
        let now = net.now();
        let Some(search) = self.search.as_ref().filter(|search| search.next <= now) else { return };
        let relayed = search.relayed.clone();
        let mut candidates = Vec::new();
        for ReflexiveAddress { local, seen } in self.reflexive_addresses(net) {
            let of_kind = |kind, address| Candidate { kind, base: local, address };
            if relayed.contains(&local) {
                candidates.push(of_kind(CandidateKind::Relayed, local));
                continue;
            }
            candidates.push(of_kind(CandidateKind::Host, local));
            if seen != local {
                candidates.push(of_kind(CandidateKind::Reflexive, seen));
            }
        }
        self.endpoint.set_candidates(now, candidates);
        self.ask_at(now + INTERVAL);
    }
}
