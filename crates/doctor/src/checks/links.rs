//! Interfaces that are off, have no cable, or run badly.

use super::Check;
use crate::facts::{Facts, Way};
use crate::finding::{Finding, Looked};
use crate::host::Link;
use crate::mend::source_route;
use crate::shell::quoted;

/// The state of interfaces.
pub(super) struct Links;

impl Check for Links {
    fn name(&self) -> &'static str {
        "links"
    }

    fn about(&self) -> &'static str {
        "interfaces that are off, unplugged, without an address, or at half duplex"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["link-down", "no-carrier", "no-address", "half-duplex"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        for (index, uplink) in facts.uplinks.iter().enumerate() {
            let Some(link) = facts.host.link(&uplink.name) else { continue };
            if !link.is_up {
                looked.find(down(facts, index, link));
            } else if !link.has_carrier {
                looked.find(
                    Finding::warning(
                        "no-carrier",
                        format!(
                            "{} is on but has no connection: plug its cable in, or join its network.",
                            link.name
                        ),
                    )
                    .at(link.name.clone()),
                );
            } else if link.duplex.as_deref() == Some("half") {
                looked.find(
                    Finding::warning(
                        "half-duplex",
                        format!(
                            "{} sends or receives, but not both at once (half duplex).",
                            link.name
                        ),
                    )
                    .at(link.name.clone())
                    .mend(format!("sudo ethtool -s {} autoneg on", quoted(&link.name))),
                );
            }
        }
        for link in facts.host.links.iter().filter(|link| is_bare(link)) {
            let name = &link.name;
            let finding = Finding::warning(
                "no-address",
                format!("{name} is connected but has no address, so it carries nothing."),
            );
            let word = quoted(name);
            let command = match facts.host.manager {
                Some("nmcli") => format!("sudo nmcli device connect {word}"),
                Some(_) => format!("sudo networkctl reconfigure {word}"),
                None => format!("sudo dhclient {word}"),
            };
            looked.find(finding.at(name.clone()).mend(command));
        }
    }
}

/// A device with a network behind it, and nothing set up.
fn is_bare(link: &Link) -> bool {
    link.is_device
        && link.is_up
        && link.has_carrier
        && link.kind.is_none()
        && link.master.is_none()
        && !link.is_loopback
        && link.usable().next().is_none()
}

fn down(facts: &Facts, uplink: usize, link: &Link) -> Finding {
    let name = &link.name;
    let finding =
        Finding::warning("link-down", format!("{name} has an address but is switched off."))
            .at(name.clone());
    let word = quoted(name);
    match facts.host.manager {
        Some("nmcli") => finding.mend(format!("sudo nmcli device connect {word}")),
        Some(_) => finding.mend(format!("sudo networkctl up {word}")),
        // Its routes went with it.
        None => {
            let mut seen = Vec::new();
            let first = |way: &&Way| {
                let is_new = !seen.contains(&way.source);
                seen.push(way.source);
                is_new
            };
            let routes: Vec<String> = facts
                .ways_of(uplink)
                .filter(first)
                .flat_map(|way| source_route(facts, way))
                .collect();
            finding.mend(format!("sudo ip link set dev {word} up")).mend_all(routes)
        }
    }
}
