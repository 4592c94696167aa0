//! Hops and links that two paths share.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// A router, or a host, under whichever of its addresses it answered.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouterId(pub u32);

/// Which addresses are one router. A router answers a traceroute with the address of the interface
/// that the probe came in on, so it may have another one on each path.
#[derive(Clone, Debug, Default)]
pub struct Aliases {
    numbers: BTreeMap<IpAddr, u32>,
    /// For each number a smaller one of the same router, or itself.
    parents: Vec<u32>,
}

impl Aliases {
    /// No address is known to be another's alias.
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
    /// Who answered; `None` if nobody did.
    pub router: Option<RouterId>,
    /// One-way latency of the link that leads to it. Where nobody answered it is 0: the next hop
    /// that answers has the latency since the last one that did.
    pub latency: Duration,
}

/// The hops from the source, which is the first and has no latency, to the destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The hops in order.
    pub hops: Vec<Hop>,
}

/// A link between two routers that answered, with this number of silent ones between them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    from: RouterId,
    to: RouterId,
    silent: u32,
}

/// A link that two routes share.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SharedLink {
    /// Where it begins.
    pub from: RouterId,
    /// Where it ends.
    pub to: RouterId,
    /// Its latency: the smaller of the two that were measured.
    pub latency: Duration,
}

impl Route {
    /// A route from routers and the round-trip time from the source to each, in order; the source
    /// is the first. The latency of a link is half of the difference of round-trip times, and 0
    /// where later routers answered sooner.
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

    /// The links between routers that answered. Routers that did not are counted, not compared: two
    /// routes with as many silent routers between the same two are taken to share that stretch.
    fn links(&self) -> BTreeMap<Link, Duration> {
        let mut links = BTreeMap::new();
        let (mut last, mut silent) = (None, 0);
        for hop in &self.hops {
            let Some(to) = hop.router else {
                silent += 1;
                continue;
            };
            // Two addresses of one router in a row are no link.
            if let Some(from) = last.filter(|&from| from != to) {
                let latency = links.entry(Link { from, to, silent }).or_insert(Duration::ZERO);
                *latency += hop.latency;
            }
            (last, silent) = (Some(to), 0);
        }
        links
    }
}

/// A path with less one-way latency than this is not compared by latency: that of its links would
/// be mostly what hosts need to answer. The value is ours; hosts take some tenths of a millisecond.
pub const RESOLUTION: Duration = Duration::from_millis(1);

/// Two paths are disjoint if their [`disjoint`] is above this: the paper's value (section 3.3).
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

/// Disjoint(X, Y) = 1 − Σ latency of shared links / min(latency of X, latency of Y), from 0 (all
/// of one is in the other) to 1 (nothing in common); mTCP §3.3.
///
/// By latency rather than by number the first links, short ones that all paths of a host share,
/// hardly count. A path shorter than [`RESOLUTION`] is compared by the number of links instead, the
/// paper's alternative, without the links by which both leave the source and reach the destination:
/// they are no reason to prefer a path to another.
pub fn disjoint(x: &Route, y: &Route) -> f64 {
    let shared = shared_links(x, y);
    let shorter = x.latency().min(y.latency());
    let overlapping: Duration = shared.iter().map(|link| link.latency).sum();
    let share = if shorter >= RESOLUTION {
        overlapping.as_secs_f64() / shorter.as_secs_f64()
    } else {
        let fewer = x.links().len().min(y.links().len());
        let at_the_ends = usize::from(leave_alike(x, y)) + usize::from(arrive_alike(x, y));
        // Something must be left to compare.
        let left_out = at_the_ends.min(fewer.saturating_sub(1));
        shared.len().saturating_sub(left_out) as f64 / (fewer - left_out).max(1) as f64
    };
    1.0 - share.min(1.0)
}

/// Both routes begin with the same link.
fn leave_alike(x: &Route, y: &Route) -> bool {
    are_one_link(x.hops.iter(), y.hops.iter())
}

/// Both routes end with the same link.
fn arrive_alike(x: &Route, y: &Route) -> bool {
    are_one_link(x.hops.iter().rev(), y.hops.iter().rev())
}

/// The first two routers of both are a link, and the same one.
fn are_one_link<'a>(x: impl Iterator<Item = &'a Hop>, y: impl Iterator<Item = &'a Hop>) -> bool {
    let mut x = x.map_while(|hop| hop.router);
    let mut y = y.map_while(|hop| hop.router);
    let ends = [x.next(), x.next()];
    ends[0] != ends[1] && ends[1].is_some() && ends == [y.next(), y.next()]
}
