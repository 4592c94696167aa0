//! Hops and links that two paths share.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// A router or a host, whichever of its addresses answered.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouterId(pub u32);

/// The addresses that belong to one router. A router answers a traceroute with the address of the
/// interface on which the probe came in, so it may have another address on each path.
#[derive(Clone, Debug, Default)]
pub struct Aliases {
    numbers: BTreeMap<IpAddr, u32>,
    /// For each number, a smaller number of the same router, or itself.
    parents: Vec<u32>,
}

impl Aliases {
    /// A state without known aliases.
    pub fn new() -> Aliases {
        Aliases::default()
    }

    /// The router that has `ip`: the same for all of its addresses.
    pub fn router(&mut self, ip: IpAddr) -> RouterId {
        let next = self.parents.len() as u32;
        let number = *self.numbers.entry(ip).or_insert(next);
        if number == next {
            self.parents.push(next);
        }
        RouterId(self.root(number))
    }

    /// Notes that two addresses are of one router.
    pub fn join(&mut self, a: IpAddr, b: IpAddr) {
        let (a, b) = (self.router(a).0, self.router(b).0);
        self.parents[a.max(b) as usize] = a.min(b);
    }

    fn root(&self, mut number: u32) -> u32 {
        while self.parents[number as usize] != number {
            number = self.parents[number as usize];
        }
        number
    }
}

/// One hop of a route.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The router that answered; `None` if none did.
    pub router: Option<RouterId>,
    /// The one-way latency of the link to this hop. It is 0 if no router answered: the next hop
    /// that answers then has the latency since the last one that did.
    pub latency: Duration,
}

/// The hops from the source to the destination. The source is first and has no latency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The hops in order.
    pub hops: Vec<Hop>,
}

/// A link between two routers that answered, with a number of silent ones between them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    from: RouterId,
    to: RouterId,
    silent: u32,
}

/// A link that two routes share.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SharedLink {
    /// The router where it begins.
    pub from: RouterId,
    /// The router where it ends.
    pub to: RouterId,
    /// The link's latency: the smaller of the two measurements.
    pub latency: Duration,
}

impl Route {
    /// A route from routers and the RTTs from the source to them, in order; the source is first.
    /// The latency of a link is half of the difference of two RTTs, or 0 if a later router answered
    /// sooner.
    pub fn from_rtts(hops: impl IntoIterator<Item = (Option<RouterId>, Duration)>) -> Route {
        let mut before = Duration::ZERO;
        let hop = |(router, rtt): (Option<RouterId>, Duration)| {
            let Some(router) = router else {
                return Hop { router: None, latency: Duration::ZERO };
            };
            let latency = rtt.saturating_sub(before) / 2;
            before = before.max(rtt);
            Hop { router: Some(router), latency }
        };
        Route { hops: hops.into_iter().map(hop).collect() }
    }

    /// The sum of the links' latencies.
    pub fn latency(&self) -> Duration {
        self.hops.iter().map(|h| h.latency).sum()
    }

    /// The links between routers that answered. Silent routers are counted, not compared: two
    /// routes with equally many silent routers between the same two are assumed to share that part.
    fn links(&self) -> BTreeMap<Link, Duration> {
        let mut links = BTreeMap::new();
        let (mut last, mut silent) = (None, 0);
        for hop in &self.hops {
            let Some(to) = hop.router else {
                silent += 1;
                continue;
            };
            // Two addresses of one router in a row are not a link.
            if let Some(from) = last.filter(|&from| from != to) {
                let latency = links.entry(Link { from, to, silent }).or_insert(Duration::ZERO);
                *latency += hop.latency;
            }
            (last, silent) = (Some(to), 0);
        }
        links
    }
}

/// Least one-way latency of a path that is compared by latency. Below it, the latencies of links
/// would mainly be the time in which hosts answer: some tenths of a millisecond. The value is ours.
pub const RESOLUTION: Duration = Duration::from_millis(1);

/// Two paths are disjoint if [`disjoint`] is above this value, which is the paper's (section 3.3).
pub const BETA: f64 = 0.5;

/// The links that are in both routes, in the same direction.
pub fn shared_links(x: &Route, y: &Route) -> Vec<SharedLink> {
    let others = y.links();
    let shared = x.links().into_iter().filter_map(|(link, latency)| {
        let other = others.get(&link)?;
        Some(SharedLink { from: link.from, to: link.to, latency: latency.min(*other) })
    });
    shared.collect()
}

/// Disjoint(X, Y) = 1 − Σ latency of shared links / min(latency of X, latency of Y), from 0 (one
/// contains all of the other) to 1 (nothing in common); mTCP §3.3.
///
/// Weighted by latency, the short first links that all paths of a host share hardly count. A path
/// shorter than [`RESOLUTION`] is compared by the number of links instead, the paper's alternative.
/// The links by which both leave the source and reach the destination are then left out, because
/// they are no reason to prefer one path.
pub fn disjoint(x: &Route, y: &Route) -> f64 {
    let shared = shared_links(x, y);
    let shorter = x.latency().min(y.latency());
    let overlapping: Duration = shared.iter().map(|link| link.latency).sum();
    let share = if shorter >= RESOLUTION {
        overlapping.as_secs_f64() / shorter.as_secs_f64()
    } else {
        let fewer = x.links().len().min(y.links().len());
        let at_the_ends = usize::from(leave_alike(x, y)) + usize::from(arrive_alike(x, y));
        // At least one link must be left to compare.
        let left_out = at_the_ends.min(fewer.saturating_sub(1));
        shared.len().saturating_sub(left_out) as f64 / (fewer - left_out).max(1) as f64
    };
    1.0 - share.min(1.0)
}

/// True if both routes begin with the same link.
fn leave_alike(x: &Route, y: &Route) -> bool {
    are_one_link(x.hops.iter(), y.hops.iter())
}

/// True if both routes end with the same link.
fn arrive_alike(x: &Route, y: &Route) -> bool {
    are_one_link(x.hops.iter().rev(), y.hops.iter().rev())
}

/// True if the first two routers of both are the same link.
fn are_one_link<'a>(x: impl Iterator<Item = &'a Hop>, y: impl Iterator<Item = &'a Hop>) -> bool {
    let mut x = x.map_while(|hop| hop.router);
    let mut y = y.map_while(|hop| hop.router);
    let ends = [x.next(), x.next()];
    ends[0] != ends[1] && ends[1].is_some() && ends == [y.next(), y.next()]
}
