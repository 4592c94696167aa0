//! Receiving in batches.

use super::Check;
use crate::facts::Facts;
use crate::finding::{Finding, Looked};
use crate::shell::quoted;

/// GRO.
pub(super) struct Gro;

impl Check for Gro {
    fn name(&self) -> &'static str {
        "gro"
    }

    fn about(&self) -> &'static str {
        "receiving many packets in one call (GRO)"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["gro-off"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        for uplink in &facts.uplinks {
            let name = &uplink.name;
            let features = facts.host.offloads.get(name);
            if features.and_then(|f| f.get("generic-receive-offload")) != Some(&false) {
                continue;
            }
            let sentence = format!(
                "Batches of received packets (GRO) are off on {name}, so that receiving costs several \
                 times the processor time."
            );
            looked.find(
                Finding::warning("gro-off", sentence)
                    .at(name.clone())
                    .mend(format!("sudo ethtool -K {} gro on", quoted(name))),
            );
        }
    }
}
