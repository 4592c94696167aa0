//! The largest packets that arrive.

use super::Check;
use crate::facts::Facts;
use crate::finding::{Finding, Looked};
use crate::probe::Mtu;
use crate::shell::quoted;

/// MTU and black holes.
pub(super) struct PacketSizes;

impl Check for PacketSizes {
    fn name(&self) -> &'static str {
        "mtu"
    }

    fn about(&self) -> &'static str {
        "the largest packets that arrive at the destination, and routers that swallow larger ones"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["mtu", "mtu-lower", "mtu-black-hole"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        for uplink in 0..facts.uplinks.len() {
            let smallest = facts.ways_of(uplink).filter_map(|way| way.mtu).min_by_key(|m| m.path);
            let Some(Mtu { interface, path, was_told }) = smallest else { continue };
            let name = facts.name(uplink);
            looked.find(match (path < interface, was_told) {
                (false, _) => Finding::ok("mtu", format!("Packets of {path} bytes arrive through {name}."))
                    .at(name),
                (true, true) => Finding::note(
                    "mtu-lower",
                    format!(
                        "Packets of more than {path} bytes do not arrive through {name}, and a router \
                         says so, so all programs adapt."
                    ),
                )
                .at(name),
                (true, false) => Finding::warning(
                    "mtu-black-hole",
                    format!(
                        "Packets of more than {path} bytes vanish on the way from {name} (its MTU is \
                         {interface}) and no router says so; manypath adapts, TCP may hang."
                    ),
                )
                .at(name)
                .mend(format!("sudo ip link set dev {} mtu {path}", quoted(name))),
            });
        }
    }
}
