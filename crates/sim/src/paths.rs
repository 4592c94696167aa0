//! Paths between two nodes, and how a test takes hold of one.

use std::net::SocketAddr;
use std::time::Duration;

use manypath_proto::Instant;

use crate::ids::{End, LinkId, NodeId};
use crate::ledger::tsns;
use crate::link::LinkStats;
use crate::network::{Network, Path, PathDirection, PathDrops, RouteSpec};
use crate::schedule::Change;
use crate::spec::{LinkChange, Loss, PathSpec, Rate};

/// The two ends of a path: a node and its address there.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PathEnds {
    /// The near end, from which "forward" leads away.
    pub near: (NodeId, SocketAddr),
    /// The far end.
    pub far: (NodeId, SocketAddr),
}

/// The links of a path, each direction in the order in which its packets cross them. Paths that
/// name the same links share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathLinks {
    /// Away from the near end.
    pub forward: Vec<LinkId>,
    /// Towards the near end.
    pub reverse: Vec<LinkId>,
}

impl Network {
    /// Adds the links and routes of a path. Returns its number, counted from 0.
    pub fn add_path(&mut self, ends: PathEnds, spec: &PathSpec) -> usize {
        let links = self.add_path_links(spec);
        self.add_path_over(ends, links)
    }

    /// Adds the links of a path's hops.
    pub fn add_path_links(&mut self, spec: &PathSpec) -> PathLinks {
        let default = spec.default_queue();
        let (mut forward, mut reverse) = (Vec::new(), Vec::new());
        for hop in &spec.hops {
            forward.push(self.add_link(hop.forward.clone(), default));
            reverse.push(self.add_link(hop.reverse.clone(), default));
        }
        reverse.reverse();
        PathLinks { forward, reverse }
    }

    /// Adds the routes of a path over links that other paths and cross-traffic may share. Returns
    /// its number, counted from 0.
    pub fn add_path_over(&mut self, ends: PathEnds, links: PathLinks) -> usize {
        let ((near, source), (far, destination)) = (ends.near, ends.far);
        let PathLinks { forward, mut reverse } = links;
        let there = RouteSpec { from: near, source, destination, links: forward.clone(), to: far };
        let back = RouteSpec {
            from: far,
            source: destination,
            destination: source,
            links: reverse.clone(),
            to: near,
        };
        reverse.reverse();
        let (away, home) = (self.add_route(there), self.add_route(back));
        let number = self.paths.len();
        let (forward_drops, reverse_drops) = Default::default();
        let routes = (away, home);
        self.paths.push(Path { forward, reverse, routes, forward_drops, reverse_drops });
        self.mark_routes(number, away, home);
        number
    }

    /// Takes hold of a path by its number.
    ///
    /// # Panics
    ///
    /// If there is no such path.
    pub fn path(&mut self, number: usize) -> PathControl<'_> {
        assert!(
            number < self.paths.len(),
            "there are {} paths, no path {number}",
            self.path_count()
        );
        PathControl { net: self, number, at: None, direction: Direction::Both, hop: None }
    }

    /// The links of a path, both ways.
    pub(crate) fn path_links(&self, number: usize) -> Vec<LinkId> {
        let path = &self.paths[number];
        path.forward.iter().chain(&path.reverse).copied().collect()
    }

    /// Counts a drop to the path of its route.
    pub(crate) fn count_drop(&mut self, direction: PathDirection, packet: &[u8]) {
        let path = &mut self.paths[direction.path];
        let drops =
            if direction.is_forward { &mut path.forward_drops } else { &mut path.reverse_drops };
        drops.packets += 1;
        drops.data_chunks += tsns(packet).count() as u64;
    }

    /// How many paths there are.
    pub fn path_count(&self) -> usize {
        self.paths.len()
    }

    /// Counters of the links of a path: first all forward links, then all back, each in the order
    /// of the hops.
    pub fn path_stats(&self, number: usize) -> (Vec<LinkStats>, Vec<LinkStats>) {
        let stats = |links: &[LinkId]| links.iter().map(|&link| self.link_stats(link)).collect();
        let path = &self.paths[number];
        (stats(&path.forward), stats(&path.reverse))
    }

    /// The network's drops on a path: away from the near end, and back.
    pub fn dropped_on_path(&self, number: usize) -> (PathDrops, PathDrops) {
        let path = &self.paths[number];
        (path.forward_drops, path.reverse_drops)
    }

    /// True if a link of the path is down, in either direction.
    pub fn is_path_down(&self, number: usize) -> bool {
        self.path_links(number).into_iter().any(|link| self.is_link_down(link))
    }

    pub(crate) fn rebind_path(&mut self, number: usize, public: SocketAddr) {
        let (forward, reverse) = self.paths[number].routes;
        let (forward, reverse) = self.rebind(forward, reverse, public);
        self.paths[number].routes = (forward, reverse);
        self.mark_routes(number, forward, reverse);
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Direction {
    Both,
    Forward,
    Reverse,
}

/// A hold on a path, to change it now or, after [`at`](Self::at), later.
///
/// A change concerns all hops in both directions unless narrowed.
///
/// ```
/// # use manypath_sim::{Pair, secs};
/// # let mut t = Pair::two_paths("cmt-pf").connect();
/// t.net.path(1).cut();
/// t.net.path(1).at(secs(10)).restore();
/// t.net.path(0).at(secs(20)).forward().set_loss(0.05);
/// ```
#[derive(Debug)]
#[must_use = "a hold does nothing until a change is named"]
pub struct PathControl<'n> {
    net: &'n mut Network,
    number: usize,
    at: Option<Instant>,
    direction: Direction,
    hop: Option<usize>,
}

impl PathControl<'_> {
    /// Makes the change at that time.
    pub fn at(mut self, at: Instant) -> Self {
        self.at = Some(at);
        self
    }

    /// Changes only the links away from the near end.
    pub fn forward(mut self) -> Self {
        self.direction = Direction::Forward;
        self
    }

    /// Changes only the links towards the near end.
    pub fn reverse(mut self) -> Self {
        self.direction = Direction::Reverse;
        self
    }

    /// Changes only this hop, counted from 0 at the near end.
    pub fn hop(mut self, hop: usize) -> Self {
        self.hop = Some(hop);
        self
    }

    /// From then on, what enters is lost.
    pub fn cut(self) {
        self.change(&LinkChange::Cut);
    }

    /// Ends a cut.
    pub fn restore(self) {
        self.change(&LinkChange::Restore);
    }

    /// Cuts now, or at the time given, and restores after `length`.
    pub fn cut_for(self, length: Duration) {
        let at = self.at.unwrap_or(self.net.now());
        let PathControl { net, number, direction, hop, .. } = self;
        PathControl { net: &mut *net, number, at: Some(at), direction, hop }.cut();
        PathControl { net, number, at: Some(at + length), direction, hop }.restore();
    }

    /// Sets the rate.
    pub fn set_rate_mbps(self, megabits: f64) {
        self.change(&LinkChange::Rate(Rate::mbps(megabits)));
    }

    /// Sets the propagation delay of each link.
    pub fn set_delay(self, delay: Duration) {
        self.change(&LinkChange::Delay(delay));
    }

    /// Sets the loss of each link: a probability, or a model.
    pub fn set_loss(self, loss: impl Into<Loss>) {
        self.change(&LinkChange::Loss(loss.into()));
    }

    /// Sets the probability of duplication of each link.
    pub fn set_duplicate(self, duplicate: f64) {
        self.change(&LinkChange::Duplicate(duplicate));
    }

    /// Sets the probability of reordering of each link, and how long such a packet is held back.
    pub fn set_reorder(self, reorder: f64, by: Duration) {
        self.change(&LinkChange::Reorder(reorder, by));
    }

    /// Sets the bound of the random extra delay of each link.
    pub fn set_jitter(self, jitter: Duration) {
        self.change(&LinkChange::Jitter(jitter));
    }

    /// Sets the probability with which each link damages a packet.
    pub fn set_corrupt(self, corrupt: f64) {
        self.change(&LinkChange::Corrupt(corrupt));
    }

    /// Sets the longest packet that each link takes, in bytes; `None` for no bound.
    pub fn set_mtu(self, mtu: impl Into<Option<u32>>) {
        self.change(&LinkChange::Mtu(mtu.into()));
    }

    /// Gives the near end a new source address in the eyes of the far end, as a NAT between them
    /// does when it forgets a mapping. Direction and hop do not matter.
    pub fn rebind_source(self, public: SocketAddr) {
        match self.at {
            Some(at) => self.net.plan(at, Change::Rebind(self.number, public)),
            None => self.net.rebind_path(self.number, public),
        }
    }

    /// Takes the address of an end away, from all paths that have it, and gives the host another
    /// after `away`: `to`, or one that nobody had before. The host is told of both, its peer of
    /// nothing. Direction and hop do not matter.
    pub fn renumber(self, end: End, away: Duration, to: Option<SocketAddr>) {
        let at = self.at.unwrap_or(self.net.now());
        self.net.plan(at, Change::TakeAddress(self.number, end));
        self.net.plan(at + away, Change::GiveAddress(self.number, end, to));
    }

    /// Takes the address of an end away for good.
    pub fn take_address(self, end: End) {
        let at = self.at.unwrap_or(self.net.now());
        self.net.plan(at, Change::TakeAddress(self.number, end));
    }

    fn change(self, change: &LinkChange) {
        let path = &self.net.paths[self.number];
        let chosen = |links: &[LinkId], wanted: bool| -> Vec<LinkId> {
            if !wanted {
                return Vec::new();
            }
            let hops =
                links.iter().enumerate().filter(|(hop, _)| self.hop.is_none_or(|h| h == *hop));
            hops.map(|(_, &link)| link).collect()
        };
        let mut links = chosen(&path.forward, self.direction != Direction::Reverse);
        links.extend(chosen(&path.reverse, self.direction != Direction::Forward));
        for link in links {
            match self.at {
                Some(at) => self.net.change_at(at, link, change.clone()),
                None => self.net.change(link, change),
            }
        }
    }
}
