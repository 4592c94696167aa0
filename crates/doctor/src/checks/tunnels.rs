//! VPNs that take the packets of uplinks.

use super::Check;
use crate::causes::leaves_elsewhere;
use crate::facts::Facts;
use crate::finding::{Finding, Looked};
use crate::mend::{listed, source_route};
use crate::shell::quoted;

/// Routes into a tunnel.
pub(super) struct Tunnels;

impl Check for Tunnels {
    fn name(&self) -> &'static str {
        "tunnels"
    }

    fn about(&self) -> &'static str {
        "VPNs that take the packets of the uplinks, so that all paths are one"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["tunnel"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        let mut taken: Vec<(String, Vec<String>, Vec<String>)> = Vec::new();
        for way in &facts.ways {
            let Some(Some(dev)) = leaves_elsewhere(facts, way) else { continue };
            if !facts.host.link(dev).is_some_and(|link| link.is_tunnel()) {
                continue;
            }
            let name = facts.name(way.uplink).to_owned();
            let commands = source_route(facts, way);
            match taken.iter_mut().find(|(tunnel, ..)| tunnel == dev) {
                Some((_, names, all)) => {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                    all.extend(
                        commands.into_iter().filter(|c| !all.contains(c)).collect::<Vec<_>>(),
                    );
                }
                None => taken.push((dev.to_owned(), vec![name], commands)),
            }
        }
        for (tunnel, names, commands) in taken {
            looked.find(
                Finding::warning(
                    "tunnel",
                    format!(
                        "Packets of {} leave through the tunnel {tunnel}, which manypath uses alone \
                         unless --bind {} names the interfaces.",
                        listed(&names),
                        quoted(&names.join(","))
                    ),
                )
                .at(tunnel)
                .mend_all(commands),
            );
        }
    }
}
