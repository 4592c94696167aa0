//! This host's firewall.

use super::Check;
use crate::causes::{
    dropping_chain, has_no_route, is_denied, is_filtered_by_source, silent_gateway, wrong_gateway,
};
use crate::facts::{Facts, Way};
use crate::finding::{Finding, Looked};
use crate::shell::quoted;

/// Packets that this host's firewall drops.
pub(super) struct Firewall;

impl Check for Firewall {
    fn name(&self) -> &'static str {
        "firewall"
    }

    fn about(&self) -> &'static str {
        "rules of this host's firewall that drop our packets or the answers"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["firewall-out", "firewall-in"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        let mut reported: Vec<Finding> = Vec::new();
        for way in facts.ways.iter().filter(|way| way.is_probed() && !way.answers()) {
            let otherwise = has_no_route(facts, way)
                || wrong_gateway(facts, way).is_some()
                || silent_gateway(facts, way).is_some()
                || is_filtered_by_source(facts, way);
            if otherwise {
                continue;
            }
            if let Some(finding) = of(facts, way)
                && !reported.iter().any(|f| f.id == finding.id && f.mend == finding.mend)
            {
                reported.push(finding);
            }
        }
        reported.into_iter().for_each(|finding| looked.find(finding));
    }
}

fn of(facts: &Facts, way: &Way) -> Option<Finding> {
    let (name, port) = (facts.name(way.uplink), way.remote.port());
    let chain = dropping_chain(facts, way, false);
    if is_denied(way) || chain.is_some() {
        let sentence = match &chain {
            Some(chain) => format!(
                "The firewall of this host drops UDP to port {port} that leaves through {name}, in the \
                 chain {chain}."
            ),
            None => {
                format!(
                    "A firewall of this host drops UDP to port {port} that leaves through {name}."
                )
            }
        };
        let command = match chain {
            Some(chain) => {
                format!("sudo nft insert rule {} udp dport {port} accept", words(&chain))
            }
            None if facts.host.has_iptables => {
                format!("sudo iptables -I OUTPUT -p udp --dport {port} -j ACCEPT")
            }
            None => "sudo nft list ruleset".to_owned(),
        };
        return Some(Finding::error("firewall-out", sentence).at(name).mend(command));
    }
    let chain = dropping_chain(facts, way, true)?;
    let sentence = format!(
        "The firewall of this host drops the answers that arrive at {name} from UDP port {port}, in the \
         chain {chain}."
    );
    let chain = words(&chain);
    let command = format!("sudo nft insert rule {chain} ct state established,related accept");
    Some(Finding::error("firewall-in", sentence).at(name).mend(command))
}

/// Family, table and name of a chain, for a shell.
fn words(chain: &str) -> String {
    chain.split(' ').map(quoted).collect::<Vec<_>>().join(" ")
}
