//! The number of uplinks.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::Check;
use crate::facts::Facts;
use crate::finding::{Finding, Looked};
use crate::mend::listed;
use crate::shell::quoted;

/// The number of uplinks, and addresses that two of them share.
pub(super) struct Uplinks;

impl Check for Uplinks {
    fn name(&self) -> &'static str {
        "uplinks"
    }

    fn about(&self) -> &'static str {
        "interfaces with addresses to send from, at least two of them"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["no-such-uplink", "no-uplink", "one-uplink", "uplinks", "address-twice"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        let name = |uplink: &crate::facts::Uplink| {
            let addresses: Vec<String> = uplink.sources.iter().map(ToString::to_string).collect();
            format!("{} ({})", uplink.name, addresses.join(", "))
        };
        let names: Vec<String> = facts.uplinks.iter().map(name).collect();
        let relay =
            "a path through another host is one more: run `manypath relay` there and use --via";
        for place in &facts.missing {
            let sentence = format!("This host has no interface or address {place}.");
            looked.find(Finding::error("no-such-uplink", sentence).mend("ip address show"));
        }
        match &names[..] {
            [] if !facts.missing.is_empty() => {}
            [] => looked.find(
                Finding::error("no-uplink", "No interface has an address to send from.")
                    .mend("ip address show"),
            ),
            [one] => looked.find(Finding::note(
                "one-uplink",
                format!(
                    "This host has one uplink, {one}, so there is one path from here; {relay}."
                ),
            )),
            several => looked.find(Finding::ok(
                "uplinks",
                format!("This host has {} uplinks: {}.", several.len(), listed(several)),
            )),
        }
        let mut owners: BTreeMap<IpAddr, Vec<String>> = BTreeMap::new();
        for link in facts.host.links.iter().filter(|link| !link.is_loopback) {
            for address in link.usable() {
                owners.entry(address.prefix.ip).or_default().push(link.name.clone());
            }
        }
        for (ip, names) in owners.iter().filter(|(_, names)| names.len() > 1) {
            let last = &names[names.len() - 1];
            let len = facts
                .host
                .link(last)
                .and_then(|link| link.addresses.iter().find(|a| a.prefix.ip == *ip))
                .map_or(32, |a| a.prefix.len);
            looked.find(
                Finding::warning(
                    "address-twice",
                    format!(
                        "The address {ip} is on {}, so packets to it arrive at one of them only.",
                        listed(names)
                    ),
                )
                .at(last.clone())
                .mend(format!("sudo ip address del {ip}/{len} dev {}", quoted(last))),
            );
        }
    }
}
