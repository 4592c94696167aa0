//! IPv6 that is off or ignored, where the destination has it.

use super::Check;
use crate::facts::Facts;
use crate::finding::{Finding, Looked};
use crate::mend::{keep_sysctl, sysctl};

/// IPv6 on this host.
pub(super) struct Ipv6;

impl Check for Ipv6 {
    fn name(&self) -> &'static str {
        "ipv6"
    }

    fn about(&self) -> &'static str {
        "IPv6 on the uplinks, where the destination has it: often a path of its own"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["ipv6-off", "ra-ignored", "no-ipv6"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        if !facts.is_probed || !facts.remotes.iter().any(|remote| remote.is_ipv6()) {
            return;
        }
        let value = |name: &str, what: &str| {
            facts.host.sysctl(&format!("net/ipv6/conf/{name}/{what}")).unwrap_or(0)
        };
        let has_v6 = |uplink: &crate::facts::Uplink| uplink.sources.iter().any(|ip| ip.is_ipv6());
        for uplink in facts.uplinks.iter().filter(|uplink| !has_v6(uplink)) {
            let name = &uplink.name;
            let mut off = Vec::new();
            for place in ["all", name] {
                if value(place, "disable_ipv6") == 1 {
                    off.push(format!("net/ipv6/conf/{place}/disable_ipv6"));
                }
            }
            let ra = value(name, "accept_ra");
            let is_router = value("all", "forwarding") == 1 || value(name, "forwarding") == 1;
            if !off.is_empty() {
                let sentence =
                    format!("IPv6 is off on {name}, but the destination has an IPv6 address.");
                let mut finding = Finding::warning("ipv6-off", sentence).at(name.clone());
                for path in off {
                    finding = finding.mend(sysctl(&path, 0)).keep(keep_sysctl(&path, 0));
                }
                looked.find(finding);
            } else if facts.host.sysctls.contains_key(&format!("net/ipv6/conf/{name}/accept_ra"))
                && (ra == 0 || (ra == 1 && is_router))
                && facts.host.manager.is_none()
            {
                let path = format!("net/ipv6/conf/{name}/accept_ra");
                let sentence = format!(
                    "{name} ignores routers that offer IPv6 (accept_ra is {ra}), and has no IPv6 \
                     address of its own."
                );
                looked.find(
                    Finding::note("ra-ignored", sentence)
                        .at(name.clone())
                        .mend(sysctl(&path, 2))
                        .keep(keep_sysctl(&path, 2)),
                );
            } else {
                let sentence = format!(
                    "The network of {name} gives no IPv6 address, so only IPv4 addresses of the \
                     destination are used there."
                );
                looked.find(Finding::note("no-ipv6", sentence).at(name.clone()));
            }
        }
    }
}
