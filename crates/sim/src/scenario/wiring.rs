//! The links of a scenario in a network, and the changes planned on them.

use manypath_proto::Instant;

use super::model::{CompiledScenario, Crossing, PlannedChange, Way};
use crate::ids::LinkId;
use crate::network::Network;
use crate::paths::PathLinks;
use crate::spec::QueueLimit;

/// The two directions of each cable of a scenario.
#[derive(Clone, Debug)]
pub(super) struct Wiring(Vec<[LinkId; 2]>);

impl Wiring {
    /// Adds the links of a scenario and its cross-traffic.
    pub(super) fn add(scenario: &CompiledScenario, net: &mut Network) -> Wiring {
        let mut links = Vec::with_capacity(scenario.cables.len());
        for cable in &scenario.cables {
            let both = [&cable.forward, &cable.reverse];
            // Every queue was resolved with its path.
            links.push(both.map(|spec| net.add_link(spec.clone(), QueueLimit::Unlimited)));
        }
        let wiring = Wiring(links);
        for cross in &scenario.cross {
            let links = wiring.way(&cross.crossings, cross.is_reverse);
            net.add_cross_traffic(&links, &cross.traffic);
        }
        wiring
    }

    /// The two directions of each cable, in the order of the scenario.
    pub(super) fn links(&self) -> &[[LinkId; 2]] {
        &self.0
    }

    /// The links of a way in one direction, in the order in which packets cross them.
    pub(super) fn way(&self, crossings: &[Crossing], is_back: bool) -> Vec<LinkId> {
        let link = |crossing: &Crossing| {
            self.0[crossing.cable][usize::from(crossing.is_reversed != is_back)]
        };
        if is_back {
            crossings.iter().rev().map(link).collect()
        } else {
            crossings.iter().map(link).collect()
        }
    }

    /// The links of a path, both ways.
    pub(super) fn path(&self, crossings: &[Crossing]) -> PathLinks {
        PathLinks { forward: self.way(crossings, false), reverse: self.way(crossings, true) }
    }

    /// Plans a change whose time counts from `from`.
    pub(super) fn plan(&self, net: &mut Network, change: &PlannedChange, from: Instant) {
        let [forward, reverse] = self.0[change.cable];
        for (link, other) in [(forward, Way::Reverse), (reverse, Way::Forward)] {
            if change.way != other {
                net.change_at(from + change.at, link, change.change.clone());
            }
        }
    }
}
