//! NATs of a scenario: what the file says of them, and their place in a network.

use std::net::Ipv4Addr;

use manypath_proto::config::units::print_duration;

use super::error::ScenarioError;
use super::keys::{NAT, NATS};
use super::model::CompiledScenario;
use super::read::{Named, Reader};
use crate::ids::NatId;
use crate::nat::{NatBehaviour, NatSpec, PortAssignment};
use crate::network::Network;
use crate::world::FlowNats;

type Result<T> = std::result::Result<T, ScenarioError>;

#[cfg(test)]
mod tests;

/// NATs in a row at most.
const LONGEST_CHAIN: usize = 8;

/// A NAT of a scenario.
#[derive(Clone, Debug)]
pub(super) struct NatModel {
    /// `near`, `far` or `shared`; the second of a row is `near.2`, and so on.
    pub(super) name: String,
    spec: NatSpec,
    /// The NAT around it, if any: an earlier one of the list.
    outer: Option<usize>,
}

/// The NATs of a scenario.
#[derive(Clone, Debug, Default)]
pub(super) struct NatModels {
    /// Each behind those around it.
    pub(super) all: Vec<NatModel>,
    /// The innermost NAT of the near host.
    near: Option<usize>,
    /// The innermost NAT of the far host.
    far: Option<usize>,
}

/// The NATs of a scenario in a network.
#[derive(Clone, Debug, Default)]
pub(super) struct PlacedNats {
    /// In the order of the scenario.
    pub(super) ids: Vec<NatId>,
}

impl NatModels {
    /// Reads `nat`.
    pub(super) fn read(top: &Reader<'_>) -> Result<NatModels> {
        let Some(named) = top.get("nat") else { return Ok(NatModels::default()) };
        let table = named.table(&NATS)?;
        let mut models = NatModels::default();
        let shared = models.add_row(&table, "shared", None)?;
        models.near = models.add_row(&table, "near", shared)?;
        models.far = models.add_row(&table, "far", shared)?;
        if models.all.is_empty() {
            return Err(named.error("no NATs", "say whose: [nat.near], [nat.far] or [nat.shared]"));
        }
        Ok(models)
    }

    /// Reads a row of NATs, the innermost first, and puts it behind a NAT if there is one. Returns
    /// the innermost of all.
    fn add_row(
        &mut self,
        table: &Reader<'_>,
        key: &'static str,
        outer: Option<usize>,
    ) -> Result<Option<usize>> {
        let elements = table.elements(key)?;
        if let Some(beyond) = elements.get(LONGEST_CHAIN) {
            return Err(
                beyond.error(format!("more than {LONGEST_CHAIN} NATs in a row"), "remove some")
            );
        }
        let mut outer = outer;
        for (number, element) in elements.iter().enumerate().rev() {
            let name = if number == 0 { key.to_owned() } else { format!("{key}.{}", number + 1) };
            let spec = NatSpec { public: self.public(outer).into(), ..spec(element)? };
            self.all.push(NatModel { name, spec, outer });
            outer = Some(self.all.len() - 1);
        }
        Ok(outer)
    }

    /// The public address of a new NAT: one for documentation (RFC 5737), or behind another NAT one
    /// of a carrier's network (RFC 6598).
    fn public(&self, outer: Option<usize>) -> Ipv4Addr {
        let number = self.all.len() as u8 + 1;
        match outer {
            None => Ipv4Addr::new(198, 51, 100, number),
            Some(_) => Ipv4Addr::new(100, 64, 0, number),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The names of the NATs, in their order.
    pub(super) fn names(&self) -> Vec<&str> {
        self.all.iter().map(|nat| nat.name.as_str()).collect()
    }

    /// True if the near host can send to the far host's own address.
    fn shows_far_to_near(&self) -> bool {
        let outwards = std::iter::successors(self.near, |nat| self.all[*nat].outer);
        self.far.is_none() || outwards.into_iter().any(|nat| Some(nat) == self.far)
    }

    /// Adds the NATs to a network.
    pub(super) fn place(&self, net: &mut Network) -> PlacedNats {
        let mut ids: Vec<NatId> = Vec::with_capacity(self.all.len());
        for NatModel { spec, outer, .. } in &self.all {
            ids.push(match outer {
                Some(outer) => net.add_nat_behind(spec.clone(), ids[*outer]),
                None => net.add_nat(spec.clone()),
            });
        }
        PlacedNats { ids }
    }

    /// Where the hosts of a flow with these relayed paths are.
    pub(super) fn of_flow(&self, placed: &PlacedNats, relayed: Vec<usize>) -> FlowNats {
        let id = |nat: Option<usize>| nat.map(|nat| placed.ids[nat]);
        FlowNats { near: id(self.near), far: id(self.far), relayed }
    }

    /// The NATs in words, one a line.
    pub(super) fn explain(&self, text: &mut String) {
        for NatModel { name, spec, outer } in &self.all {
            let behind = match outer {
                Some(outer) => format!(" behind {}", self.all[*outer].name),
                None => String::new(),
            };
            let hairpin = if spec.hairpin { "hairpinning" } else { "no hairpinning" };
            *text += &format!(
                "NAT {name}{behind}: mapping {}, filtering {}, ports {}, {} without traffic, {hairpin}\n",
                spec.mapping.name(),
                spec.filtering.name(),
                spec.ports.name(),
                print_duration(spec.timeout),
            );
        }
        if !self.all.is_empty() {
            *text += "\n";
        }
    }
}

/// Refuses a scenario whose hosts do not find each other. `paths` are the elements of `path`.
pub(super) fn check_is_reachable(
    top: &Reader<'_>,
    paths: &[Named<'_>],
    out: &CompiledScenario,
) -> Result<()> {
    let relays = out.flows.iter().flat_map(|flow| &flow.paths).filter(|path| path.is_relayed);
    let has_relay = relays.count() > 0;
    if let Some(named) = top.get("nat")
        && !has_relay
        && !out.nats.shows_far_to_near()
    {
        let remedy = "add a [[path]] with relay = true, through which the hosts find each other";
        return Err(named.error("nobody can send to the far host", remedy));
    }
    // At the near end, a relay's path shares its address with the first of the others.
    let Some(flow) = out.flows.first() else { return Ok(()) };
    let is_shared = |path: usize| {
        let direct = flow.paths.iter().position(|path| !path.is_relayed);
        has_relay && direct.is_some_and(|direct| direct == path || flow.paths[path].is_relayed)
    };
    match out.ranks.iter().map(|planned| planned.path.1).find(|path| is_shared(*path)) {
        Some(path) => {
            let what = "a relay's path and the first of the others share the near host's address";
            Err(paths[path].error(what, "remove the rank, which would be of both"))
        }
        None => Ok(()),
    }
}

fn spec(named: &Named<'_>) -> Result<NatSpec> {
    let table = named.table(&NAT)?;
    let behaviours = NatBehaviour::ALL.map(|behaviour| (behaviour.name(), behaviour));
    let assignments = [PortAssignment::Preserved, PortAssignment::Random]
        .map(|assignment| (assignment.name(), assignment));
    let default = NatSpec::new(Ipv4Addr::UNSPECIFIED.into());
    let behaviour = |key, default| {
        table.get(key).map_or(Ok(default), |named: Named<'_>| named.word(&behaviours))
    };
    let mut spec = NatSpec {
        mapping: behaviour("mapping", default.mapping)?,
        filtering: behaviour("filtering", default.filtering)?,
        ..default
    };
    if let Some(named) = table.get("ports") {
        spec.ports = named.word(&assignments)?;
    }
    if let Some(named) = table.get("timeout") {
        spec.timeout = named.duration()?;
        if spec.timeout.is_zero() {
            return Err(named.error("mappings of no length", "write a time such as \"30 s\""));
        }
    }
    if let Some(named) = table.get("hairpin") {
        spec.hairpin = named.boolean()?;
    }
    Ok(spec)
}
