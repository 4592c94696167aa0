//! Routes of several paths: the hops that were traced of each, and which addresses are one router.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use manypath_proto::overlay::{Aliases, Route, RouterId};
use tokio::task::{JoinSet, spawn_blocking};

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

/// Known routes, by their first and last address.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    traces: BTreeMap<Leg, Trace>,
    /// Addresses that were asked for aliases.
    asked: BTreeSet<IpAddr>,
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

    /// Takes note of two addresses of one router.
    pub fn join(&mut self, a: IpAddr, b: IpAddr) {
        self.aliases.push((a, b));
    }

    /// True if the leg was traced.
    pub fn knows(&self, leg: Leg) -> bool {
        self.traces.contains_key(&leg)
    }

    /// Forgets all legs but these.
    pub fn retain(&mut self, legs: &BTreeSet<Leg>) {
        self.traces.retain(|leg, _| legs.contains(leg));
    }

    /// Asks every router that was seen, and not asked before, at the address it was seen with:
    /// another one in its answer is an alias.
    pub async fn find_aliases(&mut self) {
        let mut wanted = Vec::new();
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
                if let Ok((address, Ok(Some(other)))) = answer
                    && other != address
                {
                    self.join(address, other);
                }
            }
        }
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

    /// The hops of a path: the routers that were seen, the relay if its leg ends at one, the peer's
    /// address. `rtt` is the shortest round-trip time of the whole path, 0 if not known.
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
            hops.push(Some((leg.1, end.map_or(before, |(_, rtt)| rtt))));
        }
        hops.push(Some((peer, rtt)));
        if !rtt.is_zero() {
            space_out(&mut hops, rtt);
        }
        hops
    }

    /// The shortest time in which a router answered at that place of a route: of all routes from
    /// here, since a queue at their beginning is not a long link.
    fn shortest(&self, from: IpAddr, index: usize, router: IpAddr) -> Option<Duration> {
        let traces = self.traces.iter().filter(|((begin, _), _)| *begin == from);
        let answers = traces.filter_map(|(_, trace)| trace.hops.get(index)?.answer);
        answers.filter(|(ip, _)| *ip == router).map(|(_, rtt)| rtt).min()
    }
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
mod tests {
    use manypath_proto::overlay::disjoint;

    use super::*;

    fn ip(n: u8) -> IpAddr {
        [192, 0, 2, n].into()
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn trace(hops: &[(u8, u64)], reached: bool) -> Trace {
        let hop = |&(n, rtt): &(u8, u64)| TraceHop { answer: Some((ip(n), ms(rtt))) };
        Trace { hops: hops.iter().map(hop).collect(), reached }
    }

    /// Direct: routers 1 and 2, 20 ms; a relay behind router 2, and one behind router 4.
    fn routes(first_hop_ms: u64) -> Routes {
        let mut routes = Routes::new();
        let q = first_hop_ms;
        routes.insert((ip(0), ip(9)), trace(&[(1, q), (2, q + 20), (9, q + 20)], true));
        routes.insert((ip(0), ip(8)), trace(&[(1, q), (2, q + 20), (8, q + 30)], true));
        routes.insert((ip(0), ip(7)), trace(&[(1, q), (4, q + 20)], false));
        routes
    }

    #[test]
    fn a_relay_behind_the_direct_link_shares_it_and_another_does_not() {
        let routes = routes(0);
        let mut aliases = routes.aliases(&[]);
        let mut of = |leg, relay, rtt| {
            route(&routes.hops((ip(0), leg), relay, ip(9), ms(rtt)), &mut aliases)
        };
        let (direct, behind, beside) =
            (of(ip(9), false, 20), of(ip(8), true, 40), of(ip(7), true, 30));
        assert_eq!(disjoint(&direct, &behind), 0.0);
        assert_eq!(disjoint(&direct, &beside), 1.0);
        // The relay did not answer: it is where the last router before it is.
        assert_eq!(routes.hops((ip(0), ip(7)), true, ip(9), ms(30))[2], Some((ip(7), ms(20))));
    }

    #[test]
    fn a_queue_at_the_first_hop_is_not_a_long_link() {
        // As seen while the uplink's queue held 100 ms, but for one answer.
        let mut loaded = routes(100);
        let hop = &mut loaded.traces.get_mut(&(ip(0), ip(7))).unwrap().hops[0];
        hop.answer = Some((ip(1), ms(1)));
        let mut aliases = loaded.aliases(&[]);
        let mut of =
            |leg, relay| route(&loaded.hops((ip(0), leg), relay, ip(9), ms(121)), &mut aliases);
        let (direct, beside) = (of(ip(9), false), of(ip(7), true));
        assert!(disjoint(&direct, &beside) > 0.95);
    }

    #[test]
    fn times_longer_than_the_path_say_nothing() {
        let mut routes = Routes::new();
        let late = [(1, 2), (2, 90), (3, 95), (4, 12), (5, 80)];
        routes.insert((ip(0), ip(9)), trace(&late, false));
        let hops = routes.hops((ip(0), ip(9)), false, ip(9), ms(20));
        let times: Vec<u128> = hops.iter().flatten().map(|(_, time)| time.as_micros()).collect();
        assert_eq!(times, [2_000, 5_333, 8_666, 12_000, 16_000, 20_000]);
        // All of three paths' first hops seem to be far, and are not.
        let mut aliases = Aliases::new();
        let mut slow = routes.clone();
        slow.insert((ip(0), ip(9)), trace(&[(1, 60), (2, 90), (9, 90)], true));
        slow.insert((ip(0), ip(7)), trace(&[(1, 60), (7, 70)], true));
        let mut of =
            |leg, relay| route(&slow.hops((ip(0), leg), relay, ip(9), ms(3)), &mut aliases);
        assert!(disjoint(&of(ip(9), false), &of(ip(7), true)) > 0.6);
    }

    #[test]
    fn what_was_nearer_before_is_not_farther_now() {
        let mut now = trace(&[(1, 90), (2, 110), (3, 120)], true);
        keep_shortest(&mut now, &trace(&[(1, 2), (5, 3)], false));
        assert_eq!(now, trace(&[(1, 2), (2, 110), (3, 120)], true));
    }

    #[test]
    fn addresses_of_one_host_are_one() {
        let mut routes = routes(0);
        routes.join(ip(2), ip(4));
        let mut aliases = routes.aliases(&[ip(9), ip(19)]);
        assert_eq!(aliases.router(ip(2)), aliases.router(ip(4)));
        assert_eq!(aliases.router(ip(9)), aliases.router(ip(19)));
        assert_ne!(aliases.router(ip(1)), aliases.router(ip(2)));
    }

    #[tokio::test]
    async fn loopback_is_traced_and_forgotten() {
        let leg: Leg = ([127, 0, 0, 1].into(), [127, 0, 0, 77].into());
        let mut routes = Routes::new();
        let found = routes.find(leg, TraceOptions::default()).await;
        assert_eq!(found.is_ok(), cfg!(target_os = "linux"), "{found:?}");
        assert!(routes.knows(leg));
        routes.find_aliases().await;
        assert!(routes.aliases.is_empty(), "a host answers from the address it is asked at");
        routes.retain(&BTreeSet::new());
        assert!(!routes.knows(leg));
    }
}
