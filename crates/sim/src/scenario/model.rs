//! Model of a scenario once every word of it is read: nodes, links, flows and changes.

use std::sync::Arc;
use std::time::Duration;

use manypath_proto::PathRank;
use manypath_proto::config::Config;
use manypath_proto::sizes::ETHERNET_MTU;

use super::nats::NatModels;
use crate::cross::CrossTraffic;
use crate::ids::End;
use crate::spec::{LinkChange, LinkSpec, QueueLimit, Rate};
use crate::traffic::MessageKind;

/// One point of a scenario, checked and ready to run with any seed.
#[derive(Clone, Debug)]
pub struct CompiledScenario {
    pub(super) name: String,
    pub(super) description: String,
    /// The swept parameters and their values here.
    pub(super) parameters: Vec<(String, String)>,
    pub(super) time_limit: Duration,
    /// Packets are protected, with a key that both ends share.
    pub(super) is_protected: bool,
    pub(super) nodes: Vec<String>,
    pub(super) cables: Vec<Cable>,
    pub(super) flows: Vec<Flow>,
    pub(super) changes: Vec<PlannedChange>,
    pub(super) moves: Vec<PlannedMove>,
    /// Ranks of paths, those from the start included.
    pub(super) ranks: Vec<PlannedRank>,
    pub(super) nats: NatModels,
    pub(super) reboots: Vec<PlannedReboot>,
    pub(super) cross: Vec<CrossModel>,
    /// The file of an idealised split over the flows, in bytes; see `stripe`.
    pub(super) stripe: Option<u64>,
}

/// A link between two nodes, both directions.
#[derive(Clone, Debug)]
pub(super) struct Cable {
    pub(super) name: String,
    /// Where its forward direction starts and ends.
    pub(super) ends: (usize, usize),
    pub(super) forward: LinkSpec,
    pub(super) reverse: LinkSpec,
}

/// A link as a path crosses it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Crossing {
    pub(super) cable: usize,
    /// True if the path's forward direction is the link's reverse.
    pub(super) is_reversed: bool,
}

/// One association and what is sent over it.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) name: String,
    /// Associating host, and the host that waits.
    pub(super) ends: (usize, usize),
    pub(super) config_a: Arc<Config>,
    pub(super) config_z: Arc<Config>,
    /// Name of the preset in results.
    pub(super) preset: String,
    pub(super) paths: Vec<PathModel>,
    pub(super) transfers: Vec<Transfer>,
    /// Associations like this one, each between hosts of its own.
    pub(super) copies: usize,
    /// The transfers of each are later by a random time, which is less than this.
    pub(super) spread: Duration,
    /// It is cross-traffic that responds to congestion.
    pub(super) is_traffic: bool,
}

impl Flow {
    /// The name of a copy, counted from 1.
    pub(super) fn name_of(&self, copy: usize) -> String {
        if self.copies == 1 { self.name.clone() } else { format!("{} {copy}", self.name) }
    }
}

/// Cross-traffic in one direction of a way.
#[derive(Clone, Debug)]
pub(super) struct CrossModel {
    pub(super) crossings: Vec<Crossing>,
    /// Against the way's direction.
    pub(super) is_reverse: bool,
    pub(super) traffic: CrossTraffic,
}

/// A path of a flow.
#[derive(Clone, Debug)]
pub(super) struct PathModel {
    pub(super) name: String,
    /// In the order in which the forward direction crosses them.
    pub(super) crossings: Vec<Crossing>,
    /// It leads to an address that a relay lends.
    pub(super) is_relayed: bool,
}

/// Something to send.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Transfer {
    /// `None` for an endless one.
    pub(super) bytes: Option<u64>,
    pub(super) start: Duration,
    /// When an endless one ends; `None` for the end of the run.
    pub(super) until: Option<Duration>,
    /// From the waiting host to the associating one.
    pub(super) is_reverse: bool,
    pub(super) kind: MessageKind,
    /// The time from one message to the next, if the application paces itself.
    pub(super) every: Option<Duration>,
    /// True if the latencies of its messages are measured.
    pub(super) latency: bool,
}

impl Transfer {
    /// All at once, in messages that nothing is said of.
    pub(super) fn is_file(&self) -> bool {
        self.every.is_none() && self.kind == MessageKind::default()
    }

    /// Sends to the end of the run.
    pub(super) fn is_endless(&self) -> bool {
        self.bytes.is_none() && self.until.is_none()
    }
}

/// Origin of a time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum After {
    Start,
    FirstData,
}

/// Which way a link changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Both,
    Forward,
    Reverse,
}

/// A change of one link.
#[derive(Clone, Debug)]
pub(super) struct PlannedChange {
    pub(super) at: Duration,
    pub(super) after: After,
    pub(super) cable: usize,
    pub(super) way: Way,
    pub(super) change: LinkChange,
}

/// A host that gets another address.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedMove {
    pub(super) at: Duration,
    pub(super) after: After,
    /// Flow, and its path.
    pub(super) path: (usize, usize),
    pub(super) end: End,
    /// How long it has none.
    pub(super) away: Duration,
}

/// A NAT that reboots.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedReboot {
    pub(super) at: Duration,
    pub(super) after: After,
    /// The index of the NAT in [`NatModels::all`].
    pub(super) nat: usize,
}

/// A path that gets a rank, at both ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedRank {
    pub(super) at: Duration,
    pub(super) after: After,
    /// Flow, and its path.
    pub(super) path: (usize, usize),
    pub(super) rank: PathRank,
}

impl PlannedRank {
    /// A rank that a path has when the run begins.
    pub(super) fn from_start(path: (usize, usize), rank: PathRank) -> PlannedRank {
        PlannedRank { at: Duration::ZERO, after: After::Start, path, rank }
    }
}

impl Way {
    /// The same as seen from the other end.
    pub(super) fn reversed_if(self, is_reversed: bool) -> Way {
        match (self, is_reversed) {
            (Way::Forward, true) => Way::Reverse,
            (Way::Reverse, true) => Way::Forward,
            (way, _) => way,
        }
    }
}

impl CompiledScenario {
    /// Says what it has that a network of links between hosts cannot have, if anything.
    pub(super) fn beyond_links(&self) -> Option<&'static str> {
        let mut paths = self.flows.iter().flat_map(|flow| &flow.paths);
        if !self.moves.is_empty() {
            Some("it has changes of addresses")
        } else if !self.nats.is_empty() {
            Some("it has NATs")
        } else if paths.any(|path| path.is_relayed) {
            Some("it has a relay")
        } else {
            None
        }
    }

    /// The name of the scenario.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The author's description of what it shows; may be empty.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Simulated time at which a run ends, complete or not.
    pub fn time_limit(&self) -> Duration {
        self.time_limit
    }

    /// Sets when a run ends at the latest.
    pub fn set_time_limit(&mut self, limit: Duration) {
        self.time_limit = limit;
    }

    /// The preset of the first flow, as results name it.
    pub fn preset(&self) -> &str {
        self.flows.first().map_or("", |flow| flow.preset.as_str())
    }

    /// The configuration of the sender of the first flow.
    pub fn config(&self) -> Option<&Config> {
        self.flows.first().map(|flow| &*flow.config_a)
    }

    /// Changes the configurations of both ends of all flows but those of `[[traffic]]`, as for
    /// policies of a program's own.
    pub fn configure(&mut self, change: impl Fn(&mut Config)) {
        for flow in self.flows.iter_mut().filter(|flow| !flow.is_traffic) {
            for config in [&mut flow.config_a, &mut flow.config_z] {
                change(Arc::make_mut(config));
            }
        }
    }

    /// The sum of the delays of a path, there and back.
    pub(super) fn base_rtt(&self, crossings: &[Crossing]) -> Duration {
        base_rtt(&self.cables, crossings)
    }

    /// The lowest rate of a path's forward direction.
    pub(super) fn bottleneck(&self, crossings: &[Crossing]) -> Rate {
        let rates = crossings.iter().map(|c| direction(&self.cables, *c).rate);
        rates
            .min_by_key(|rate| rate.bits_per_second().unwrap_or(u64::MAX))
            .unwrap_or(Rate::INFINITE)
    }
}

/// The link that a path's forward direction crosses.
pub(super) fn direction(cables: &[Cable], crossing: Crossing) -> &LinkSpec {
    let cable = &cables[crossing.cable];
    if crossing.is_reversed { &cable.reverse } else { &cable.forward }
}

/// The sum of delays of these links, there and back.
pub(super) fn base_rtt(cables: &[Cable], crossings: &[Crossing]) -> Duration {
    let both = |c: &Crossing| cables[c.cable].forward.delay + cables[c.cable].reverse.delay;
    crossings.iter().map(both).sum()
}

/// A queue of `products` bandwidth-delay products, in packets of 1500 bytes.
pub(super) fn queue_of_bdp(products: f64, rate: Rate, rtt: Duration) -> QueueLimit {
    let Some(bits) = rate.bits_per_second() else { return QueueLimit::Unlimited };
    let packet_bits = 8.0 * ETHERNET_MTU as f64;
    let packets = products * bits as f64 * rtt.as_secs_f64() / packet_bits;
    QueueLimit::Packets((packets.ceil() as usize).max(1))
}
