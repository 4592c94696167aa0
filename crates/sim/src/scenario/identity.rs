//! Which runs are the same without being made.

use xxhash_rust::xxh3::xxh3_128;

use super::model::{Cable, CompiledScenario};
use crate::host::knows_true_loss;
use crate::link::loss_range::LossRange;
use crate::spec::Loss;

/// Everything that a run depends on beside its seed. Two points with equal runs have equal
/// identities, whatever their names and wherever their values come from.
///
/// Points that differ only in losses may have runs in common, too: a link that few packets crossed
/// loses the same of them with 4 % and with 5 %. A run tells by its [`LossRange`]s.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// Of everything but the losses.
    rest: u128,
    /// Of each link, forward and back; none where the engine is told them, and they are part of the
    /// rest.
    losses: Vec<Loss>,
}

impl Identity {
    /// A hash of everything but the losses. Only points with equal hashes can have runs in common.
    pub fn group(&self) -> u128 {
        self.rest
    }

    /// A hash of everything, losses included.
    pub fn hash(&self) -> u128 {
        xxh3_128(format!("{self:?}").as_bytes())
    }

    /// True if the run of `self` that had these ranges, one for each link, is that of `other` with
    /// the same seed.
    pub fn has_run_in_common(&self, ranges: &[LossRange], other: &Identity) -> bool {
        let mut losses = self.losses.iter().zip(&other.losses).zip(ranges);
        self.rest == other.rest && losses.all(|((own, other), range)| range.allows(*own, *other))
    }
}

impl CompiledScenario {
    /// Everything that its runs depend on.
    pub fn identity(&self) -> Identity {
        let configs = self.flows.iter().flat_map(|flow| [&flow.config_a, &flow.config_z]);
        let losses_count = configs.into_iter().any(|config| knows_true_loss(config));
        let mut cables = self.cables.clone();
        let mut losses = Vec::new();
        if !losses_count {
            for Cable { forward, reverse, .. } in &mut cables {
                let links = [forward, reverse];
                losses.extend(links.map(|link| std::mem::replace(&mut link.loss, Loss::NONE)));
            }
        }
        let CompiledScenario {
            name,
            time_limit,
            is_protected,
            nodes,
            flows,
            changes,
            moves,
            ranks,
            nats,
            reboots,
            cross,
            stripe,
            ..
        } = self;
        let world = (name, time_limit, is_protected, nodes, &cables);
        let rest = (world, flows, changes, moves, ranks, nats, reboots, cross, stripe);
        Identity { rest: xxh3_128(format!("{rest:?}").as_bytes()), losses }
    }
}

#[cfg(test)]
mod tests;
