//! Reading the output of `ip`, `ethtool` and files of time servers. What cannot be read is left
//! out: other versions print more or less.

use std::net::IpAddr;

use serde_json::Value;

use super::{Address, Link, Lookup, Neighbour, Offloads, Prefix, Route, Rule};
use crate::system::System;

/// The files that name time servers, of systemd, chrony and ntpd.
const TIME_FILES: [&str; 5] = [
    "/etc/systemd/timesyncd.conf",
    "/etc/chrony/chrony.conf",
    "/etc/chrony.conf",
    "/etc/ntpsec/ntp.conf",
    "/etc/ntp.conf",
];
/// Time servers that are asked at most.
const TIME_SERVERS_MAX: usize = 3;

fn list(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap_or_default()
}

fn text(value: &Value, key: &str) -> Option<String> {
    match value.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn number<T: TryFrom<u64>>(value: &Value, key: &str) -> Option<T> {
    value.get(key)?.as_u64()?.try_into().ok()
}

fn ip(value: &Value, key: &str) -> Option<IpAddr> {
    value.get(key)?.as_str()?.parse().ok()
}

fn has_flag(value: &Value, key: &str, flag: &str) -> bool {
    let flags = value.get(key).and_then(Value::as_array);
    flags.is_some_and(|flags| flags.iter().any(|f| f.as_str() == Some(flag)))
}

/// `ip -j -d address show`.
pub(super) fn links(json: &str) -> Vec<Link> {
    list(json).iter().filter_map(link).collect()
}

fn link(value: &Value) -> Option<Link> {
    let flag = |flag| has_flag(value, "flags", flag);
    let kind = value.get("linkinfo").and_then(|info| text(info, "info_kind"));
    let addresses = value.get("addr_info").and_then(Value::as_array);
    Some(Link {
        // A name such as eth0@if5 has its peer behind the @ in other forms of the output.
        name: text(value, "ifname")?.split('@').next()?.to_owned(),
        index: number(value, "ifindex").unwrap_or(0),
        is_up: flag("UP"),
        has_carrier: flag("LOWER_UP") || (flag("UP") && !flag("NO-CARRIER")),
        is_loopback: flag("LOOPBACK"),
        mtu: number(value, "mtu").unwrap_or(0),
        kind,
        master: text(value, "master"),
        is_device: false,
        duplex: None,
        addresses: addresses.into_iter().flatten().filter_map(address).collect(),
    })
}

fn address(value: &Value) -> Option<Address> {
    let ip = ip(value, "local")?;
    let is_true = |key: &str| value.get(key).and_then(Value::as_bool).unwrap_or(false);
    let scope = text(value, "scope").unwrap_or_default();
    let is_global = scope == "global" || scope == "site";
    let is_link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let unfit = ["deprecated", "tentative", "dadfailed"];
    Some(Address {
        prefix: Prefix { ip, len: number(value, "prefixlen")? },
        is_global: is_global && !is_link_local,
        is_unfit: unfit.into_iter().any(is_true),
    })
}

/// `ip -j route show table all`; a route with several next hops is one of each.
pub(super) fn routes(json: &str, v6: bool) -> Vec<Route> {
    list(json).iter().flat_map(|value| route(value, v6)).collect()
}

fn route(value: &Value, v6: bool) -> Vec<Route> {
    let Some(to) = value.get("dst").and_then(Value::as_str).and_then(|to| prefix(to, v6)) else {
        return Vec::new();
    };
    let kind = text(value, "type").unwrap_or_else(|| "unicast".to_owned());
    let one = |hop: &Value| Route {
        to,
        gateway: gateway(hop),
        dev: text(hop, "dev"),
        table: text(value, "table").unwrap_or_else(|| "main".to_owned()),
        // The loopback interface stands for no interface.
        is_unicast: kind == "unicast",
    };
    match value.get("nexthops").and_then(Value::as_array) {
        Some(hops) => hops.iter().map(one).collect(),
        None => vec![one(value)],
    }
}

fn gateway(hop: &Value) -> Option<IpAddr> {
    // An IPv4 route through an IPv6 router has "via".
    ip(hop, "gateway").or_else(|| ip(hop.get("via")?, "host"))
}

fn prefix(text: &str, v6: bool) -> Option<Prefix> {
    if text == "default" || text == "all" {
        let ip = if v6 { IpAddr::from([0u16; 8]) } else { IpAddr::from([0u8; 4]) };
        return Some(Prefix { ip, len: 0 });
    }
    let (ip, len) = match text.split_once('/') {
        Some((ip, len)) => (ip.parse().ok()?, len.parse().ok()?),
        None => (text.parse().ok()?, if v6 { 128 } else { 32 }),
    };
    Some(Prefix { ip, len })
}

/// `ip -j rule show`.
pub(super) fn rules(json: &str, v6: bool) -> Vec<Rule> {
    let rule = |value: &Value| {
        let source = text(value, "src")?;
        let len = number(value, "srclen");
        let from = match source.as_str() {
            "all" => None,
            source => {
                let whole = prefix(source, v6)?;
                Some(Prefix { len: len.unwrap_or(whole.len), ..whole })
            }
        };
        // Packets of this host's programs come "in" from its loopback interface.
        let iif = text(value, "iif").filter(|dev| dev != "lo");
        let narrow = ["fwmark", "ipproto", "sport", "dport", "tos", "uid_start", "not"];
        Some(Rule {
            priority: number(value, "priority").unwrap_or(0),
            from,
            is_v6: v6,
            table: text(value, "table"),
            oif: text(value, "oif"),
            is_narrow: iif.is_some()
                || narrow.iter().any(|key| value.get(*key).is_some())
                || text(value, "dst").is_some_and(|to| to != "all"),
        })
    };
    list(json).iter().filter_map(rule).collect()
}

/// `ip -j neighbour show`.
pub(super) fn neighbours(json: &str) -> Vec<Neighbour> {
    let neighbour = |value: &Value| {
        let state = |state| has_flag(value, "state", state);
        Some(Neighbour {
            ip: ip(value, "dst")?,
            dev: text(value, "dev")?,
            hardware: text(value, "lladdr"),
            is_silent: state("FAILED") || state("INCOMPLETE"),
            is_router: value.get("router").is_some(),
        })
    };
    list(json).iter().filter_map(neighbour).collect()
}

/// `ip -j route get`.
pub(super) fn lookup(json: &str) -> Lookup {
    let found = list(json);
    let first = found.first().unwrap_or(&Value::Null);
    let error = match text(first, "type").as_deref() {
        Some(kind @ ("unreachable" | "prohibit" | "blackhole")) => Some(kind.to_owned()),
        _ => None,
    };
    Lookup { dev: text(first, "dev"), gateway: gateway(first), error }
}

/// `ethtool -k`: lines such as `generic-receive-offload: on [fixed]`.
pub(super) fn offloads(text: &str) -> Offloads {
    let line = |line: &str| {
        let (name, value) = line.trim().split_once(": ")?;
        Some((name.to_owned(), value.starts_with("on")))
    };
    text.lines().filter_map(line).collect()
}

/// The time servers that this host is set up with.
pub(super) fn time_servers(system: &dyn System) -> Vec<String> {
    let mut servers: Vec<String> = Vec::new();
    for file in TIME_FILES {
        let Ok(text) = system.read(file) else { continue };
        for line in text.lines().map(str::trim) {
            let words: Vec<&str> = match line.split_once('=') {
                Some(("NTP" | "FallbackNTP", names)) => names.split_whitespace().collect(),
                _ => match line.split_whitespace().collect::<Vec<_>>()[..] {
                    ["server" | "pool" | "peer", name, ..] => vec![name],
                    _ => Vec::new(),
                },
            };
            for word in words {
                if servers.len() < TIME_SERVERS_MAX && !servers.iter().any(|s| s == word) {
                    servers.push(word.to_owned());
                }
            }
        }
    }
    servers
}
