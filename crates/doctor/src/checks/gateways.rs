//! Routers: one for each uplink, and each answers.

use super::Check;
use crate::causes::{same_network, silent_gateway, wrong_gateway};
use crate::facts::{Facts, Way};
use crate::finding::{Finding, Looked};
use crate::mend::{gateway_of, source_route, table_for};
use crate::shell::quoted;

/// The routers of the uplinks.
pub(super) struct Gateways;

impl Check for Gateways {
    fn name(&self) -> &'static str {
        "gateways"
    }

    fn about(&self) -> &'static str {
        "a router of its own for each uplink, which answers"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["wrong-gateway", "gateway-silent", "same-network"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        let mut reported = Vec::new();
        for way in &facts.ways {
            let key = (way.uplink, way.source);
            if reported.contains(&key) {
                continue;
            }
            if let Some((gateway, other)) = wrong_gateway(facts, way) {
                reported.push(key);
                let (name, other) = (facts.name(way.uplink), facts.name(other));
                looked.find(
                    Finding::error(
                        "wrong-gateway",
                        format!(
                            "The route of {name} leads to {gateway}, the router of {other}, so both \
                             uplinks have the same router and {name} does not use its own."
                        ),
                    )
                    .at(name)
                    .mend_all(replace(facts, way)),
                );
            } else if let Some(gateway) = silent_gateway(facts, way) {
                reported.push(key);
                let name = facts.name(way.uplink);
                let found = replace(facts, way);
                let sentence =
                    format!("The router {gateway} of {name} does not answer on its network.");
                let finding = Finding::error("gateway-silent", sentence).at(name);
                // Setting the route that is there again would mend nothing.
                looked.find(match gateway_of(facts, way) {
                    Some(other) if other != gateway => finding.mend_all(found),
                    _ => finding.mend(format!("ip neighbour show dev {}", quoted(name))),
                });
            }
        }
        report_same_network(facts, looked);
    }
}

/// The commands for a route through the router of the uplink's own network.
fn replace(facts: &Facts, way: &Way) -> Vec<String> {
    let wrong = facts.route(way);
    let (table, _) = table_for(facts, way);
    if wrong.is_some_and(|route| route.table == table) {
        return source_route(facts, way);
    }
    // A route of the main table stands beside those of other uplinks: only it is replaced.
    let Some((route, gateway)) = wrong.zip(gateway_of(facts, way)) else {
        return source_route(facts, way);
    };
    let family = if way.source.is_ipv6() { "ip -6" } else { "ip" };
    let (name, old) =
        (quoted(facts.name(way.uplink)), route.gateway.map_or(String::new(), |ip| ip.to_string()));
    let to = if route.to.len == 0 { "default".to_owned() } else { route.to.to_string() };
    let mut commands = vec![
        format!("sudo {family} route del {to} via {old} dev {name}"),
        format!("sudo {family} route add {to} via {gateway} dev {name} metric 1024"),
    ];
    commands.extend(source_route(facts, way));
    commands
}

/// Two uplinks in one network have one router, and one bottleneck behind it.
fn report_same_network(facts: &Facts, looked: &mut Looked) {
    let Some((left, right, network)) = same_network(facts) else { return };
    let (one, two) = (facts.name(left), facts.name(right));
    // The hardware of the routers, if both answered.
    let hardware = |uplink: usize| {
        let gateway = facts.ways_of(uplink).find_map(|way| facts.route(way)?.gateway)?;
        facts.neighbour(uplink, gateway)?.hardware.clone()
    };
    let sentence = match hardware(left).zip(hardware(right)) {
        Some((a, b)) if a != b => format!(
            "{one} and {two} are in two networks with the same addresses, {network}, which this host \
             cannot tell apart."
        ),
        _ => format!(
            "{one} and {two} are in the same network, {network}, so they share its router and are one \
             path."
        ),
    };
    looked.find(
        Finding::warning("same-network", sentence)
            .at(two)
            // With its address it would count as an uplink that is off.
            .mend(format!("sudo ip address flush dev {}", quoted(two)))
            .mend(format!("sudo ip link set dev {} down", quoted(two))),
    );
}
