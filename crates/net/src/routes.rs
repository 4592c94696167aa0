//! Routes of several paths: the hops that were traced of each, and which addresses are one router.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use manypath_proto::overlay::{Aliases, Route, RouterId};
use tokio::task::{JoinSet, spawn_blocking};

use crate::ipid::{self, Counter};
use crate::relays::RelayStatus;
use crate::traceroute::{Trace, TraceHop, TraceOptions, answers_from, traceroute};

/// The part of a path that can be traced from here: from our address to the peer's or relay's.
pub type Leg = (IpAddr, IpAddr);

/// A hop as it was seen: who answered, and after which time.
pub type Seen = Option<(IpAddr, Duration)>;

/// How long a router may take to answer when it is asked for an alias.
const ALIAS_WAIT: Duration = Duration::from_millis(300);
/// As many addresses are asked for aliases.
const ALIASES_MAX: usize = 64;
/// As many of them at a time: a few packets beside a transfer.
const ASKED_TOGETHER: usize = 16;
/// Pairs of addresses at most whose identifications are compared at a time.
const PAIRS_MAX: usize = 32;
/// Two addresses of one router are at most that many hops apart, as seen from here.
const HOPS_APART_MAX: usize = 2;

/// Known routes, by their first and last address.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    traces: BTreeMap<Leg, Trace>,
    /// Traces that relays made, by the relay and the peer.
    beyond: BTreeMap<Leg, Trace>,
    /// Addresses that were asked for aliases.
    asked: BTreeSet<IpAddr>,
    /// Addresses that answered from the address they were asked at.
    answering: BTreeSet<Ipv4Addr>,
    /// Pairs whose identifications were compared.
    compared: BTreeSet<(Ipv4Addr, Ipv4Addr)>,
    /// Pairs of addresses of one router.
    aliases: Vec<(IpAddr, IpAddr)>,
}

impl Routes {
    /// Nothing is known yet.
    pub fn new() -> Routes {
        Routes::default()
    }

    /// Looks for the routers of a leg, again if they were looked for before. An error says why
    /// nothing was found. Routers limit how often they answer: one leg after the other.
    pub async fn find(&mut self, leg: Leg, options: TraceOptions) -> io::Result<()> {
        let tracing = spawn_blocking(move || traceroute(leg.0, leg.1, options));
        // An error of the task is the end of the runtime.
        let found = tracing.await.unwrap_or_else(|_| Ok(Trace::default()));
        let (mut trace, result) = match found {
            Ok(trace) => (trace, Ok(())),
            Err(error) => (Trace::default(), Err(error)),
        };
        if let Some(before) = self.traces.get(&leg) {
            keep_shortest(&mut trace, before);
        }
        self.insert(leg, trace);
        result
    }

    /// Takes note of a leg that was traced in another way.
    pub fn insert(&mut self, leg: Leg, trace: Trace) {
        self.traces.insert(leg, trace);
    }

    /// Takes note of the route from a relay to a peer, which the relay traced.
    pub fn insert_beyond(&mut self, relay: IpAddr, peer: IpAddr, mut trace: Trace) {
        if let Some(before) = self.beyond.get(&(relay, peer)) {
            keep_shortest(&mut trace, before);
        }
        self.beyond.insert((relay, peer), trace);
    }

    /// Takes note of what relays told of their routes to peers.
    pub fn learn_from(&mut self, relays: &[RelayStatus]) {
        for relay in relays {
            for (&peer, route) in &relay.routes {
                if let Some(route) = route {
                    self.insert_beyond(relay.address.ip(), peer, route.clone());
                }
            }
        }
    }

    /// Takes note of two addresses of one router.
    pub fn join(&mut self, a: IpAddr, b: IpAddr) {
        self.aliases.push((a, b));
    }

    /// True if the route from this relay to a peer is known.
    pub fn knows_beyond(&self, relay: IpAddr, peer: IpAddr) -> bool {
        self.beyond.contains_key(&(relay, peer))
    }

    /// True if the leg was traced.
    pub fn knows(&self, leg: Leg) -> bool {
        self.traces.contains_key(&leg)
    }

    /// Forgets all legs but these.
    pub fn retain(&mut self, legs: &BTreeSet<Leg>) {
        self.traces.retain(|leg, _| legs.contains(leg));
        let relays: BTreeSet<IpAddr> = legs.iter().map(|leg| leg.1).collect();
        self.beyond.retain(|(relay, _), _| relays.contains(relay));
    }

    /// Finds addresses of one router: by the address that it answers from, then by the
    /// identifications of its packets. Routers that were asked before are not asked again. The
    /// second test needs CAP_NET_RAW; without it nothing more is found.
    pub async fn find_aliases(&mut self) {
        self.ask_at_addresses().await;
        self.compare_identifications().await;
    }

    /// Asks every router that was seen, and not asked before, at the address it was seen with:
    /// another one in its answer is an alias.
    async fn ask_at_addresses(&mut self) {
        let mut wanted = Vec::new();
        // No relay has us send anything to what it names.
        for (&(from, _), trace) in &self.traces {
            for (address, _) in trace.hops.iter().filter_map(|hop| hop.answer) {
                if self.asked.len() < ALIASES_MAX && self.asked.insert(address) {
                    wanted.push((from, address));
                }
            }
        }
        let options = TraceOptions { wait: ALIAS_WAIT, rounds: 1, ..TraceOptions::default() };
        for some in wanted.chunks(ASKED_TOGETHER) {
            let mut asking = JoinSet::new();
            for &(from, address) in some {
                asking.spawn_blocking(move || (address, answers_from(from, address, options)));
            }
            while let Some(answer) = asking.join_next().await {
                match answer {
                    Ok((address, Ok(Some(other)))) if other != address => self.join(address, other),
                    Ok((IpAddr::V4(address), Ok(Some(_)))) => {
                        self.answering.insert(address);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Asks pairs of routers' addresses in turn, each pair once: those with one counter of
    /// identifications are aliases.
    async fn compare_identifications(&mut self) {
        let seen = self.routers_seen();
        let (pairs, addresses) = ipid::within_bounds(self.pairs_to_compare(&seen), PAIRS_MAX);
        let questions: Vec<_> = addresses.iter().map(|ip| (seen[ip].from, *ip)).collect();
        if questions.is_empty() {
            return;
        }
        let samples = ipid::sample(&questions).await;
        for (a, b) in pairs {
            self.compared.insert((a, b));
            if ipid::judge(&samples, a, b) == Counter::Same {
                self.join(a.into(), b.into());
            }
        }
    }

    /// The routers that answer at their addresses, without the ends of legs. None that only a
    /// relay named is among them.
    fn routers_seen(&self) -> BTreeMap<Ipv4Addr, RouterSeen> {
        let mut seen = BTreeMap::new();
        for (&(from, to), trace) in &self.traces {
            let IpAddr::V4(from) = from else { continue };
            let routers = trace.hops.len() - usize::from(trace.reached && !trace.hops.is_empty());
            for (hop, answer) in trace.hops.iter().take(routers).map(|hop| hop.answer).enumerate() {
                if let Some((IpAddr::V4(ip), _)) = answer.filter(|(ip, _)| *ip != to)
                    && self.answering.contains(&ip)
                {
                    let new = RouterSeen { from, hop, legs: BTreeSet::new() };
                    let router: &mut RouterSeen = seen.entry(ip).or_insert(new);
                    router.hop = router.hop.min(hop);
                    router.legs.insert((from.into(), to));
                }
            }
        }
        seen
    }

    /// Pairs that may be one router: on different legs, about as far from here, not compared yet
    /// and not known to be one. The most alike come first.
    fn pairs_to_compare(&self, seen: &BTreeMap<Ipv4Addr, RouterSeen>) -> Vec<(Ipv4Addr, Ipv4Addr)> {
        let mut aliases = self.aliases(&[]);
        let mut pairs = Vec::new();
        for (&a, router) in seen {
            for (&b, other) in seen.range(a..).skip(1) {
                let apart = router.hop.abs_diff(other.hop);
                if apart <= HOPS_APART_MAX
                    && router.legs.is_disjoint(&other.legs)
                    && !self.compared.contains(&(a, b))
                    && aliases.router(a.into()) != aliases.router(b.into())
                {
                    pairs.push((apart, a, b));
                }
            }
        }
        pairs.sort_unstable();
        pairs.into_iter().map(|(_, a, b)| (a, b)).collect()
    }

    /// Which addresses are one router, those of `host` among them.
    pub fn aliases(&self, host: &[IpAddr]) -> Aliases {
        let mut aliases = Aliases::new();
        for &(a, b) in &self.aliases {
            aliases.join(a, b);
        }
        for pair in host.windows(2) {
            aliases.join(pair[0], pair[1]);
        }
        aliases
    }

    /// The hops of a path: the routers that were seen, the relay if its leg ends at one, the
    /// routers behind it that it told of, the peer's address. `rtt` is the shortest round-trip
    /// time of the whole path, 0 if not known.
    pub fn hops(&self, leg: Leg, through_relay: bool, peer: IpAddr, rtt: Duration) -> Vec<Seen> {
        let trace = self.traces.get(&leg);
        let hop = |(index, hop): (usize, &TraceHop)| {
            let (ip, time) = hop.answer?;
            Some((ip, self.shortest(leg.0, index, ip).unwrap_or(time)))
        };
        let mut hops: Vec<Seen> =
            trace.map(|t| t.hops.iter().enumerate().map(hop).collect()).unwrap_or_default();
        let reached = trace.is_some_and(|t| t.reached);
        let end = if reached { hops.pop().flatten() } else { None };
        if through_relay {
            // A relay that does not answer a traceroute is as far as the last router before it, at
            // least.
            let before = hops.iter().flatten().map(|(_, rtt)| *rtt).max().unwrap_or_default();
            let at_relay = end.map_or(before, |(_, rtt)| rtt);
            hops.push(Some((leg.1, at_relay)));
            hops.extend(self.hops_beyond(leg.1, peer, at_relay));
        }
        hops.push(Some((peer, rtt)));
        if !rtt.is_zero() {
            space_out(&mut hops, rtt);
        }
        hops
    }

    /// The routers between a relay and the peer. The relay is `at_relay` away.
    fn hops_beyond(&self, relay: IpAddr, peer: IpAddr, at_relay: Duration) -> Vec<Seen> {
        let Some(trace) = self.beyond.get(&(relay, peer)) else { return Vec::new() };
        let routers = trace.hops.len().saturating_sub(usize::from(trace.reached));
        let seen = |hop: &TraceHop| hop.answer.map(|(ip, rtt)| (ip, at_relay + rtt));
        trace.hops.iter().take(routers).map(seen).collect()
    }

    /// The shortest time in which a router answered at that place of a route: of all routes from
    /// here, since a queue at their beginning is not a long link.
    fn shortest(&self, from: IpAddr, index: usize, router: IpAddr) -> Option<Duration> {
        let traces = self.traces.iter().filter(|((begin, _), _)| *begin == from);
        let answers = traces.filter_map(|(_, trace)| trace.hops.get(index)?.answer);
        answers.filter(|(ip, _)| *ip == router).map(|(_, rtt)| rtt).min()
    }
}

/// A router as it was seen from here.
#[derive(Clone, Debug)]
struct RouterSeen {
    /// Our address on a leg through it.
    from: Ipv4Addr,
    /// The lowest number of hops before it.
    hop: usize,
    /// The legs through it.
    legs: BTreeSet<Leg>,
}

/// A router on the way is no farther than the end of it. Where one took longer to answer than that
/// its time says nothing: such routers are taken to be at equal distances between those whose times
/// do.
fn space_out(hops: &mut [Seen], rtt: Duration) {
    let says_nothing = |seen: &Seen| seen.is_some_and(|(_, time)| time > rtt);
    let (mut begin, mut before) = (0, Duration::ZERO);
    for index in 0..hops.len() {
        if says_nothing(&hops[index]) {
            continue;
        }
        let Some((_, after)) = hops[index] else { continue };
        let gaps = u32::try_from(index + 1 - begin).unwrap_or(u32::MAX);
        let step = after.saturating_sub(before) / gaps;
        for (n, hop) in (1..).zip(&mut hops[begin..index]) {
            if let Some((_, time)) = hop.as_mut().filter(|(_, time)| *time > rtt) {
                *time = before + step * n;
            }
        }
        (begin, before) = (index + 1, after.max(before));
    }
}

/// Where the same routers answered sooner before, that counts.
fn keep_shortest(trace: &mut Trace, before: &Trace) {
    for (new, old) in trace.hops.iter_mut().zip(&before.hops) {
        if let (Some((router, rtt)), Some((earlier, then))) = (&mut new.answer, old.answer)
            && *router == earlier
        {
            *rtt = (*rtt).min(then);
        }
    }
}

/// The route that hops are, from this host on.
pub fn route(hops: &[Seen], aliases: &mut Aliases) -> Route {
    // The source is one host whatever address it sends from; no router has this number.
    let source = (Some(RouterId(u32::MAX)), Duration::ZERO);
    let routers = hops.iter().map(|seen| match *seen {
        Some((ip, rtt)) => (Some(aliases.router(ip)), rtt),
        None => (None, Duration::ZERO),
    });
    Route::from_rtts(std::iter::once(source).chain(routers))
}

#[cfg(test)]
mod tests;
