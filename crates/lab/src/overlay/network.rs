//! A random network: routers in a plane, hosts behind some of them.

use std::collections::BTreeSet;
use std::time::Duration;

use manypath_proto::Rng;
use manypath_proto::overlay::{Candidate, Hop, Route, RouterId, score};
use petgraph::algo::astar;
use petgraph::graph::{DiGraph, EdgeReference, NodeIndex};
use petgraph::visit::EdgeRef;
use serde::Deserialize;

/// The kind of networks to draw.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shape {
    /// Hosts, each of which may send, receive and relay.
    pub(super) hosts: usize,
    /// Backbone routers. They lie anywhere in a rectangle twice as wide as high.
    pub(super) routers: usize,
    /// Backbone links of a router, on average.
    pub(super) links_per_router: f64,
    /// One-way latency across the rectangle's width, in milliseconds.
    pub(super) width_ms: f64,
    /// Latencies of a host's link to its own router, and of that router's to the backbone, in
    /// milliseconds: the least and the most.
    pub(super) access_ms: [f64; 2],
    /// Loss rates of links: each has one of these. Without any loss a path would have no score.
    pub(super) losses: Vec<f64>,
    /// The route between two hosts.
    #[serde(default)]
    pub(super) routes: Routes,
}

/// How the network routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Routes {
    /// The route of least latency.
    #[default]
    Shortest,
    /// A random one for each two hosts: links have costs from 1 to 1000 that are drawn for them.
    Random,
}

impl Shape {
    /// An error in the values, if there is one.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_time = |ms: f64| (0.0..=10_000.0).contains(&ms);
        let [least, most] = self.access_ms;
        if !is_time(self.width_ms) || !is_time(least) || !is_time(most) || most < least {
            return Err("a latency is negative, above 10 s, or the least is above the most".into());
        }
        let most_links = (self.routers - 1) as f64;
        if !(0.0..=most_links).contains(&self.links_per_router) {
            return Err(format!("{} links of a router", self.links_per_router));
        }
        let is_loss = |loss: &f64| *loss > 0.0 && *loss < 1.0;
        if self.losses.is_empty() || !self.losses.iter().all(is_loss) {
            return Err("`losses` has no value, or one that is not between 0 and 1".into());
        }
        Ok(())
    }

    fn loss(&self, rng: &mut Rng) -> f64 {
        self.losses[rng.below(self.losses.len() as u64) as usize]
    }
}

/// A link, in one direction.
#[derive(Copy, Clone, Debug)]
struct Link {
    latency_ns: u64,
    loss: f64,
}

/// One route between two hosts: its routers, and the loss on it.
#[derive(Clone, Debug)]
struct Way {
    hops: Vec<Hop>,
    /// The fraction of packets that arrives.
    arrives: f64,
}

/// Hosts, and the route of the network between each two.
#[derive(Debug)]
pub(super) struct Network {
    hosts: usize,
    /// From each host to each; the entry of a host to itself is empty.
    ways: Vec<Way>,
}

impl Network {
    /// Draws a network.
    ///
    /// Two routers are linked with a probability that falls with their distance (after Waxman).
    /// Separate parts are then linked at their nearest routers. Packets take the route of least
    /// latency, or a random one.
    pub(super) fn draw(shape: &Shape, seed: u64) -> Network {
        let rng = Rng::from_number(seed);
        let mut graph = backbone(shape, &mut rng.fork("backbone"));
        let mut rng = rng.fork("hosts");
        let [least, most] = shape.access_ms;
        let access = |rng: &mut Rng| link(least + (most - least) * rng.unit(), shape.loss(rng));
        let hosts: Vec<NodeIndex> = (0..shape.hosts)
            .map(|_| {
                let backbone = NodeIndex::new(rng.below(shape.routers as u64) as usize);
                let (router, host) = (graph.add_node(()), graph.add_node(()));
                for (a, b) in [(host, router), (router, backbone)] {
                    let access = access(&mut rng);
                    graph.add_edge(a, b, access);
                    graph.add_edge(b, a, access);
                }
                host
            })
            .collect();
        let mut rng = rng.fork("routes");
        let way = |(from, to): (NodeIndex, NodeIndex)| match shape.routes {
            Routes::Shortest => way(&graph, from, to, |edge| edge.weight().latency_ns),
            Routes::Random => {
                let costs: Vec<u64> = graph.edge_indices().map(|_| 1 + rng.below(1000)).collect();
                way(&graph, from, to, |edge| costs[edge.id().index()])
            }
        };
        let pairs = hosts.iter().flat_map(|from| hosts.iter().map(|to| (*from, *to)));
        Network { hosts: hosts.len(), ways: pairs.map(way).collect() }
    }

    /// Each two hosts once.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let hosts = self.hosts;
        (0..hosts).flat_map(move |a| (a + 1..hosts).map(move |b| (a, b)))
    }

    /// The direct path from one host to another, and those through each of the others.
    pub(super) fn candidates(&self, from: usize, to: usize) -> Vec<Candidate> {
        let relays = (0..self.hosts).filter(|relay| ![from, to].contains(relay));
        let direct = candidate(&[self.way(from, to)]);
        let relayed = relays.map(|relay| candidate(&[self.way(from, relay), self.way(relay, to)]));
        std::iter::once(direct).chain(relayed).collect()
    }

    fn way(&self, from: usize, to: usize) -> &Way {
        &self.ways[from * self.hosts + to]
    }
}

/// A path over several routes in sequence. Delay and loss are the same in both directions.
fn candidate(ways: &[&Way]) -> Candidate {
    let hops: Vec<Hop> = ways.iter().flat_map(|way| way.hops.iter().copied()).collect();
    let route = Route { hops };
    let arrives: f64 = ways.iter().map(|way| way.arrives).product();
    Candidate { score: score(2 * route.latency(), 1.0 - arrives), route }
}

fn backbone(shape: &Shape, rng: &mut Rng) -> DiGraph<(), Link> {
    let mut graph = DiGraph::new();
    let places: Vec<(f64, f64)> = (0..shape.routers)
        .map(|_| (rng.unit() * shape.width_ms, rng.unit() * shape.width_ms / 2.0))
        .collect();
    let nodes: Vec<NodeIndex> = places.iter().map(|_| graph.add_node(())).collect();
    let ms = |a: usize, b: usize| {
        let ((ax, ay), (bx, by)) = (places[a], places[b]);
        ((ax - bx) * (ax - bx) + (ay - by) * (ay - by)).sqrt()
    };
    let mut join = |rng: &mut Rng, a: usize, b: usize| {
        let link = link(ms(a, b), shape.loss(rng));
        graph.add_edge(nodes[a], nodes[b], link);
        graph.add_edge(nodes[b], nodes[a], link);
    };
    // A tree first: each router to the nearest before it.
    let nearest = |a: usize| (0..a).min_by(|&b, &c| ms(a, b).total_cmp(&ms(a, c)));
    let tree: BTreeSet<(usize, usize)> =
        (1..places.len()).filter_map(|a| Some((a, nearest(a)?))).collect();
    for &(a, b) in &tree {
        join(rng, a, b);
    }
    let others: Vec<(usize, usize)> = (0..places.len())
        .flat_map(|a| (0..a).map(move |b| (a, b)))
        .filter(|pair| !tree.contains(pair))
        .collect();
    let near = shape.width_ms / 10.0;
    let weight = |&(a, b): &(usize, usize)| {
        let far = 1.0 + ms(a, b) / near.max(f64::MIN_POSITIVE);
        1.0 / (far * far)
    };
    let wanted = (shape.links_per_router * places.len() as f64 / 2.0 - tree.len() as f64).max(0.0);
    let total: f64 = others.iter().map(weight).sum();
    for pair in &others {
        if rng.chance(wanted * weight(pair) / total) {
            join(rng, pair.0, pair.1);
        }
    }
    graph
}

fn link(ms: f64, loss: f64) -> Link {
    Link { latency_ns: (ms * 1e6) as u64, loss }
}

/// The route of least cost.
fn way(
    graph: &DiGraph<(), Link>,
    from: NodeIndex,
    to: NodeIndex,
    cost: impl Fn(EdgeReference<'_, Link>) -> u64,
) -> Way {
    let found = astar(graph, from, |node| node == to, cost, |_| 0);
    let nodes = found.map_or(Vec::new(), |(_, nodes)| nodes);
    let router = |node: NodeIndex| Some(RouterId(node.index() as u32));
    let mut way =
        Way { hops: vec![Hop { router: router(from), latency: Duration::ZERO }], arrives: 1.0 };
    for pair in nodes.windows(2) {
        let Some(link) = graph.find_edge(pair[0], pair[1]).map(|edge| graph[edge]) else {
            continue;
        };
        way.hops
            .push(Hop { router: router(pair[1]), latency: Duration::from_nanos(link.latency_ns) });
        way.arrives *= 1.0 - link.loss;
    }
    way
}
