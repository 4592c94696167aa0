//! Scenarios that can run outside the simulator: two hosts, and independent paths between them.

use std::sync::Arc;

use manypath_proto::Instant;
use manypath_proto::config::Config;

use super::model::{After, CompiledScenario, Crossing, Flow, Way};
use crate::spec::{HopSpec, LinkChange, LinkSpec, PathSpec};

/// One transfer over paths that share no link.
#[derive(Clone, Debug)]
pub struct PlainTransfer {
    /// Name of the preset in results.
    pub preset: String,
    /// The configuration of the host that associates and sends.
    pub sender: Arc<Config>,
    /// The configuration of the host that waits and receives.
    pub receiver: Arc<Config>,
    /// Packets are protected, with a key that both ends share.
    pub is_protected: bool,
    /// Bytes to send.
    pub bytes: u64,
    /// The paths, forward from the sender, with what changes on them.
    pub paths: Vec<PathSpec>,
}

impl CompiledScenario {
    /// The scenario as one transfer over plain paths.
    ///
    /// # Errors
    ///
    /// What it has beside that, in words.
    pub fn plain(&self) -> Result<PlainTransfer, String> {
        let [flow @ Flow { copies: 1, .. }] = self.flows.as_slice() else {
            return Err("it has more than one association".to_owned());
        };
        if !self.cross.is_empty() {
            return Err("it has cross-traffic".to_owned());
        }
        if let Some(what) = self.beyond_links() {
            return Err(what.to_owned());
        }
        if !self.ranks.is_empty() {
            return Err("it has ranks of paths".to_owned());
        }
        let bytes = match flow.transfers.as_slice() {
            [only] if only.start.is_zero() && !only.is_reverse && only.is_file() => only.bytes,
            _ => None,
        };
        let bytes = bytes.ok_or("its transfer is not one file, sent forward from the start")?;
        let mut paths = Vec::new();
        for path in &flow.paths {
            let hops = path.crossings.iter().map(|crossing| self.plain_hop(flow, *crossing));
            let hops = hops.collect::<Result<Vec<_>, _>>();
            let hops = hops.map_err(|what| format!("path {} has {what}", path.name))?;
            paths.push(PathSpec { hops });
        }
        Ok(PlainTransfer {
            preset: flow.preset.clone(),
            sender: Arc::clone(&flow.config_a),
            receiver: Arc::clone(&flow.config_z),
            is_protected: self.is_protected,
            bytes,
            paths,
        })
    }

    /// The two links of a crossing as the path sees them.
    fn plain_hop(&self, flow: &Flow, crossing: Crossing) -> Result<HopSpec, String> {
        let Crossing { cable, is_reversed } = crossing;
        let crossings = flow.paths.iter().flat_map(|path| &path.crossings);
        if crossings.filter(|other| other.cable == cable).count() > 1 {
            return Err("a link that is not its own".to_owned());
        }
        let own = &self.cables[cable];
        let (there, back) =
            if is_reversed { (&own.reverse, &own.forward) } else { (&own.forward, &own.reverse) };
        Ok(HopSpec {
            forward: self.plain_link(there, cable, Way::Forward.reversed_if(is_reversed))?,
            reverse: self.plain_link(back, cable, Way::Reverse.reversed_if(is_reversed))?,
        })
    }

    /// One direction of a cable, with its changes in the order of their times.
    fn plain_link(&self, spec: &LinkSpec, cable: usize, way: Way) -> Result<LinkSpec, String> {
        if spec.mtu.is_some() {
            return Err("a link's mtu".to_owned());
        }
        let mut link = spec.clone();
        let own = self.changes.iter().filter(|change| {
            change.cable == cable && (change.way == Way::Both || change.way == way)
        });
        for planned in own {
            if planned.after != After::Start {
                return Err("a change whose time counts from the first DATA chunk".to_owned());
            }
            if matches!(planned.change, LinkChange::Mtu(_)) {
                return Err("a link's mtu".to_owned());
            }
            link.changes.push((Instant::ZERO + planned.at, planned.change.clone()));
        }
        link.changes.sort_by_key(|(at, _)| *at);
        Ok(link)
    }
}

#[cfg(test)]
mod tests;
