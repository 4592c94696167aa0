//! Direct paths to peers behind NATs: where this host may be reached, found out and kept up to
//! date. The engine tells peers, and looks for the paths.

#[cfg(feature = "port-mapping")]
mod mappings;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use manypath_net::{BoundAddresses, Outgoing, Reflexive, Relays, is_link_local_v6};
use manypath_proto::{
    Candidate, CandidateKind, Datagram, Endpoint, Event, Instant, PathState, Transmit,
};

/// Most servers that are asked for public addresses. Others would say the same, except behind a NAT
/// that gives each of them another address.
const SERVERS_MAX: usize = 4;
/// Packets in a row after which a pause is a sign that a NAT may have forgotten us.
const BUSY: usize = 20;
/// The length of such a pause: few round trips are longer.
const PAUSE: Duration = Duration::from_millis(400);
/// Most addresses of this host that peers are told of.
const HOSTS_MAX: usize = 12;

/// The wish for direct paths, as handles of the endpoint change it.
#[derive(Debug, Default)]
pub(crate) struct Wish {
    /// Direct paths are looked for.
    is_there: bool,
    /// Servers that say under which address they see us: relays.
    servers: Vec<SocketAddr>,
    /// The servers, or the addresses of this host, have changed.
    is_stale: bool,
    /// A path has failed: a NAT may have given us other addresses.
    has_doubts: bool,
}

impl Wish {
    /// Looks for direct paths from now on, and asks these servers, too.
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        engine: &mut Endpoint,
        servers: impl IntoIterator<Item = SocketAddr>,
    ) {
        if !std::mem::replace(&mut self.is_there, true) {
            engine.set_candidates(now, Vec::new());
            self.is_stale = true;
        }
        for server in servers {
            if self.servers.len() < SERVERS_MAX && !self.servers.contains(&server) {
                self.servers.push(server);
                self.is_stale = true;
            }
        }
    }

    /// The addresses of this host have changed, or of its relays.
    pub(crate) fn look_again(&mut self) {
        self.is_stale = true;
    }

    pub(crate) fn note(&mut self, event: &Event) {
        if let Event::PathState { to, .. } = event {
            self.has_doubts |= *to != PathState::Active;
        }
    }
}

/// The packets that have arrived lately.
#[derive(Debug, Default)]
struct Arrivals {
    /// Packets since the last doubt.
    count: usize,
    last: Option<Instant>,
}

impl Arrivals {
    fn note(&mut self, now: Instant, packets: usize) {
        if packets > 0 {
            self.count = self.count.saturating_add(packets);
            self.last = Some(now);
        }
    }

    /// When a pause is long enough to doubt.
    fn doubt_at(&self) -> Option<Instant> {
        if self.count >= BUSY { self.last.map(|at| at + PAUSE) } else { None }
    }

    /// True if many packets came and then none. It is told once.
    fn take_doubt(&mut self, now: Instant) -> bool {
        let is_due = self.doubt_at().is_some_and(|at| at <= now);
        if is_due {
            self.count = 0;
        }
        is_due
    }
}

/// The search for the addresses at which peers may reach this host.
#[derive(Debug, Default)]
pub(crate) struct Search {
    hosts: Vec<SocketAddr>,
    arrivals: Arrivals,
    reflexive: Reflexive,
    #[cfg(feature = "port-mapping")]
    mappings: mappings::Mappings,
}

impl Search {
    /// Does what is due. If this host's candidates have changed, answers them.
    pub(crate) fn run(
        &mut self,
        now: Instant,
        wish: &mut Wish,
        bound: &BoundAddresses,
        relays: &mut Relays,
    ) -> Option<Vec<Candidate>> {
        if !wish.is_there {
            return None;
        }
        let is_stale = std::mem::take(&mut wish.is_stale);
        if is_stale {
            self.hosts = hosts(bound);
            let of = |&server: &SocketAddr| {
                let sources = bound.sources_for(&[server]);
                sources.into_iter().map(move |local| (local, server))
            };
            let pairs: Vec<_> = wish.servers.iter().flat_map(of).collect();
            self.reflexive.follow(now, &pairs);
            #[cfg(feature = "port-mapping")]
            if let Some(server) = wish.servers.first() {
                self.mappings.follow(now, &self.hosts, server.ip());
            }
        }
        if std::mem::take(&mut wish.has_doubts) | self.arrivals.take_doubt(now) {
            self.reflexive.ask_again(now);
        }
        self.reflexive.handle_timeout(now);
        let is_mapped_anew = self.reflexive.take_changed();
        if is_mapped_anew {
            relays.doubt(now);
        }
        let has_changed = is_mapped_anew | self.look_at_mappings(now) | is_stale;
        has_changed.then(|| self.candidates(relays))
    }

    /// Takes the answers of servers out of what has arrived.
    pub(crate) fn take(&mut self, now: Instant, received: &mut Vec<Datagram>) {
        if !self.hosts.is_empty() {
            self.arrivals.note(now, received.len());
            received.retain(|d| !self.reflexive.handle(now, d.local, d.remote, &d.payload));
        }
    }

    /// The next question to a server.
    pub(crate) fn poll_transmit(&mut self) -> Option<Outgoing> {
        let question = self.reflexive.poll_transmit()?;
        let len = question.bytes.len();
        let transmit = Transmit::new(question.local, question.server, len);
        Some(Outgoing::new(transmit, question.bytes))
    }

    /// When [`run`](Self::run) is to be called.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let asks = self.reflexive.poll_timeout();
        let asks = asks.into_iter().chain(self.arrivals.doubt_at()).min();
        #[cfg(feature = "port-mapping")]
        let asks = asks.into_iter().chain(self.mappings.poll_timeout()).min();
        asks
    }

    #[cfg(feature = "port-mapping")]
    fn look_at_mappings(&mut self, now: Instant) -> bool {
        self.mappings.look(now)
    }

    #[cfg(not(feature = "port-mapping"))]
    fn look_at_mappings(&mut self, _now: Instant) -> bool {
        false
    }

    fn candidates(&self, relays: &Relays) -> Vec<Candidate> {
        let host =
            |&address: &SocketAddr| Candidate { kind: CandidateKind::Host, base: address, address };
        let mut candidates: Vec<_> = self.hosts.iter().map(host).collect();
        let reflexive = self.reflexive.found().map(|(base, address)| Candidate {
            kind: CandidateKind::Reflexive,
            base,
            address,
        });
        let relayed = relays.links().map(|(address, ..)| Candidate {
            kind: CandidateKind::Relayed,
            base: address,
            address,
        });
        #[cfg(feature = "port-mapping")]
        let reflexive = reflexive.chain(self.mappings.found().map(|(base, address)| Candidate {
            kind: CandidateKind::Mapped,
            base,
            address,
        }));
        for candidate in reflexive.chain(relayed) {
            if candidates.iter().all(|known| known.address != candidate.address) {
                candidates.push(candidate);
            }
        }
        candidates
    }
}

/// The addresses of this host that peers may reach. Loopback addresses are, if there are no others:
/// both ends are on one host then.
fn hosts(bound: &BoundAddresses) -> Vec<SocketAddr> {
    let mut hosts: Vec<SocketAddr> = Vec::new();
    for address in bound.reachable() {
        if !hosts.contains(&address) && !is_link_local(address.ip()) {
            hosts.push(address);
        }
    }
    let is_near = |address: &SocketAddr| address.ip().is_loopback();
    if !hosts.iter().all(is_near) {
        hosts.retain(|address| !is_near(address));
    }
    hosts.truncate(HOSTS_MAX);
    hosts
}

fn is_link_local(ip: IpAddr) -> bool {
    is_link_local_v6(ip) || matches!(ip, IpAddr::V4(ip) if ip.is_link_local())
}
