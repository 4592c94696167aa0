//! Commands that several findings advise.

use std::net::IpAddr;

use crate::facts::{Facts, Way};
use crate::host::Prefix;
use crate::shell::quoted;

/// Tables that are made are numbered from here by their interface.
const TABLE: u32 = 100;

/// The router of an uplink for a family: the one of its routes, a neighbour that says that it is
/// one, or the address that most routers have.
pub(crate) fn gateway_of(facts: &Facts, way: &Way) -> Option<IpAddr> {
    let name = facts.name(way.uplink);
    let own = network_of(facts, way)?;
    let is_own = |ip: &IpAddr| {
        let link_local = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
        let is_silent = facts.neighbour(way.uplink, *ip).is_some_and(|n| n.is_silent);
        ip.is_ipv6() == way.source.is_ipv6() && (own.contains(*ip) || link_local) && !is_silent
    };
    let routes = facts.host.routes.iter().flatten();
    let routed = routes
        .filter(|route| route.dev.as_deref() == Some(name) && route.is_unicast)
        .filter_map(|route| route.gateway)
        .find(is_own);
    let neighbours = facts.host.neighbours.iter().filter(|n| n.dev == name && n.is_router);
    // On a link to one other end nobody needs to be named.
    let width = if way.source.is_ipv6() { 128 } else { 32 };
    routed.or_else(|| neighbours.map(|n| n.ip).find(is_own)).or_else(|| {
        let first = own.first_host();
        (own.len < width && first != way.source).then_some(first)
    })
}

/// The network of the way's address.
fn network_of(facts: &Facts, way: &Way) -> Option<Prefix> {
    let addresses = &facts.link(way.uplink)?.addresses;
    let own = addresses.iter().find(|a| a.prefix.ip == way.source)?;
    Some(own.prefix.network())
}

/// The table for packets from the way's address: that of a rule for it, or a new one.
pub(crate) fn table_for(facts: &Facts, way: &Way) -> (String, bool) {
    if let Some(table) = facts.host.rule_for(way.source).and_then(|rule| rule.table.clone())
        && table != "main"
    {
        return (table, true);
    }
    let index = facts.link(way.uplink).map_or(0, |link| link.index);
    let taken = |table: u32| {
        let table = table.to_string();
        let other = |dev: &Option<String>| dev.as_deref() != Some(facts.name(way.uplink));
        let mut routes = facts.host.routes.iter().flatten();
        routes.any(|r| r.table == table && other(&r.dev))
            || facts.host.rules.iter().any(|r| r.table.as_deref() == Some(&table))
    };
    let table = (TABLE + index..).step_by(100).take(20).find(|&table| !taken(table));
    (table.unwrap_or(TABLE + index).to_string(), false)
}

/// The commands that make packets from the way's address leave through its interface.
pub(crate) fn source_route(facts: &Facts, way: &Way) -> Vec<String> {
    let name = quoted(facts.name(way.uplink));
    let family = if way.source.is_ipv6() { "ip -6" } else { "ip" };
    let source = way.source;
    let (table, has_rule) = table_for(facts, way);
    let table = quoted(&table);
    let mut commands = Vec::new();
    if let Some(network) = network_of(facts, way) {
        let width = if source.is_ipv6() { 128 } else { 32 };
        if network.len < width {
            commands
                .push(format!("sudo {family} route replace {network} dev {name} table {table}"));
        }
    }
    let via = gateway_of(facts, way).map_or(String::new(), |ip| format!("via {ip} "));
    commands.push(format!("sudo {family} route replace default {via}dev {name} table {table}"));
    if !has_rule {
        commands.push(format!("sudo {family} rule add from {source} lookup {table}"));
    }
    commands
}

/// The command that sets a kernel setting, by its path below `/proc/sys`.
pub(crate) fn sysctl(path: &str, value: impl std::fmt::Display) -> String {
    format!("sudo sysctl -w {}", quoted(&format!("{}={value}", sysctl_name(path))))
}

/// The command that keeps kernel settings over a restart.
pub(crate) fn keep_sysctl(path: &str, value: impl std::fmt::Display) -> String {
    // In quotes for its spaces.
    let line = quoted(&format!("{} = {value}", sysctl_name(path)));
    format!("echo {line} | sudo tee -a /etc/sysctl.d/90-manypath.conf")
}

/// With dots, unless the name of an interface has one.
fn sysctl_name(path: &str) -> String {
    if path.contains('.') { path.to_owned() } else { path.replace('/', ".") }
}

/// A list as people write it: `eth0, eth1 and eth2`.
pub(crate) fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}
