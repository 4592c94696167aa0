//! The rules of nftables, tried with a packet that exists in thought only.
//!
//! Only what tells UDP packets apart is understood: protocol, ports, addresses, interfaces, the
//! state of connections, sets that are written in place, jumps. A rule with any other condition
//! counts as one that does not match, so a finding names a rule that drops for sure, and some are
//! not found. That packets are dropped is known before this is asked.

use std::net::IpAddr;

use serde_json::Value;

use super::Prefix;

/// Jumps within jumps at most.
const DEPTH_MAX: u8 = 16;

/// A chain of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chain {
    family: String,
    table: String,
    name: String,
    hook: Option<String>,
    priority: i64,
    drops: bool,
    rules: Vec<Vec<Value>>,
}

/// The rules of nftables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ruleset {
    chains: Vec<Chain>,
}

/// A UDP packet to try the rules with.
#[derive(Copy, Clone, Debug)]
pub struct Trial<'a> {
    /// It arrives; else it leaves.
    pub arrives: bool,
    /// The interface.
    pub dev: &'a str,
    /// Our address.
    pub local: IpAddr,
    /// The peer's address.
    pub remote: IpAddr,
    /// The peer's UDP port.
    pub port: u16,
}

/// The result of rules for a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passes, as far as the rules are understood.
    Passes,
    /// A base chain drops it: where to put a rule that accepts it.
    Drops {
        /// `FAMILY TABLE CHAIN`, as `nft insert rule` wants it.
        chain: String,
    },
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum End {
    Accept,
    Drop,
    Return,
}

impl Ruleset {
    /// Reads `nft -j list ruleset`.
    pub fn parse(json: &str) -> Option<Ruleset> {
        let value: Value = serde_json::from_str(json).ok()?;
        let mut chains: Vec<Chain> = Vec::new();
        for object in value.get("nftables")?.as_array()? {
            if let Some(chain) = object.get("chain") {
                chains.extend(read_chain(chain));
            } else if let Some(rule) = object.get("rule") {
                let of = |c: &&mut Chain| {
                    word(rule, "family") == c.family
                        && word(rule, "table") == c.table
                        && word(rule, "chain") == c.name
                };
                let expressions = rule.get("expr").and_then(Value::as_array);
                if let (Some(chain), Some(all)) = (chains.iter_mut().find(of), expressions) {
                    chain.rules.push(all.clone());
                }
            }
        }
        Some(Ruleset { chains })
    }

    /// True if it has no chains that packets pass.
    pub fn is_empty(&self) -> bool {
        !self.chains.iter().any(|chain| chain.hook.is_some())
    }

    /// The fate of a packet.
    pub fn decide(&self, trial: &Trial<'_>) -> Verdict {
        let hook = if trial.arrives { "input" } else { "output" };
        let family = if trial.remote.is_ipv6() { "ip6" } else { "ip" };
        let mut base: Vec<&Chain> = self
            .chains
            .iter()
            .filter(|c| c.hook.as_deref() == Some(hook))
            .filter(|c| c.family == "inet" || c.family == family)
            .collect();
        base.sort_by_key(|chain| chain.priority);
        for chain in base {
            let end = self.walk(chain, trial, 0);
            if end == End::Drop || (end == End::Return && chain.drops) {
                let chain = format!("{} {} {}", chain.family, chain.table, chain.name);
                return Verdict::Drops { chain };
            }
        }
        Verdict::Passes
    }

    fn walk(&self, chain: &Chain, trial: &Trial<'_>, depth: u8) -> End {
        for rule in &chain.rules {
            if !rule.iter().all(|expression| holds(expression, trial)) {
                continue;
            }
            for expression in rule {
                let (kind, inner) = match verdict_of(expression, trial) {
                    Some(found) => found,
                    None => continue,
                };
                let target = || {
                    let name = inner.get("target").and_then(Value::as_str)?;
                    let same = |c: &&Chain| c.family == chain.family && c.table == chain.table;
                    self.chains.iter().filter(same).find(|c| c.name == name)
                };
                match kind {
                    "accept" => return End::Accept,
                    "drop" | "reject" => return End::Drop,
                    "return" => return End::Return,
                    "jump" | "goto" if depth < DEPTH_MAX => {
                        let end = target().map_or(End::Return, |t| self.walk(t, trial, depth + 1));
                        if end != End::Return || kind == "goto" {
                            return end;
                        }
                    }
                    _ => {}
                }
            }
        }
        End::Return
    }
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn read_chain(value: &Value) -> Option<Chain> {
    let hook = value.get("hook").and_then(Value::as_str).map(str::to_owned);
    Some(Chain {
        family: word(value, "family").to_owned(),
        table: word(value, "table").to_owned(),
        name: value.get("name")?.as_str()?.to_owned(),
        // Chains that translate addresses drop nothing.
        hook: if word(value, "type") == "filter" { hook } else { None },
        priority: value.get("prio").and_then(Value::as_i64).unwrap_or(0),
        drops: word(value, "policy") == "drop",
        rules: Vec::new(),
    })
}

const VERDICTS: [&str; 6] = ["accept", "drop", "reject", "return", "jump", "goto"];

/// The verdict of an expression: its own, or that of the entry of its map for this packet.
fn verdict_of<'a>(expression: &'a Value, trial: &Trial<'_>) -> Option<(&'static str, &'a Value)> {
    let plain = |value: &'a Value| {
        VERDICTS.into_iter().find_map(|kind| value.get(kind).map(|inner| (kind, inner)))
    };
    if let Some(found) = plain(expression) {
        return Some(found);
    }
    let map = expression.get("vmap")?;
    let entries = map.get("data")?.get("set")?.as_array()?;
    let entry = entries.iter().filter_map(Value::as_array).find(|entry| {
        matches!(&entry[..], [key, _] if equals(map.get("key").unwrap_or(&Value::Null), key, trial) == Some(true))
    })?;
    plain(entry.get(1)?)
}

/// True unless the expression is a condition that is not met or not understood.
fn holds(expression: &Value, trial: &Trial<'_>) -> bool {
    let Some(condition) = expression.get("match") else {
        // Old matches of iptables are opaque.
        return expression.get("xt").is_none();
    };
    let null = Value::Null;
    let (left, right) =
        (condition.get("left").unwrap_or(&null), condition.get("right").unwrap_or(&null));
    match (word(condition, "op"), equals(left, right, trial)) {
        ("==" | "in", Some(is)) => is,
        ("!=", Some(is)) => !is,
        _ => false,
    }
}

/// Compares a property of the packet with a value; `None` if either is not understood.
fn equals(left: &Value, right: &Value, trial: &Trial<'_>) -> Option<bool> {
    if let Some(all) = right.as_array().or_else(|| right.get("set")?.as_array()) {
        let each = all.iter().map(|one| equals(left, one, trial));
        let each: Vec<Option<bool>> = each.collect();
        let any = each.contains(&Some(true));
        return if any { Some(true) } else { (!each.contains(&None)).then_some(false) };
    }
    let meta = left.get("meta").map(|m| word(m, "key"));
    let ct = left.get("ct").map(|c| word(c, "key"));
    let payload = left.get("payload").map(|p| (word(p, "protocol"), word(p, "field")));
    let name = right.as_str();
    let family = if trial.remote.is_ipv6() { "ipv6" } else { "ipv4" };
    match (meta, ct, payload) {
        (Some("l4proto"), ..) => Some(matches!(name, Some("udp")) || right.as_u64() == Some(17)),
        (Some("nfproto"), ..) => Some(name == Some(family)),
        (Some("iifname" | "iif"), ..) => {
            Some(trial.arrives && name.is_some_and(|n| fits(n, trial)))
        }
        (Some("oifname" | "oif"), ..) => {
            Some(!trial.arrives && name.is_some_and(|n| fits(n, trial)))
        }
        // The first packet leaves as a new connection, its answer is part of it.
        (_, Some("state"), _) => {
            Some(name == Some(if trial.arrives { "established" } else { "new" }))
        }
        (_, _, Some(("udp" | "th", field @ ("dport" | "sport")))) => {
            let is_theirs = (field == "sport") == trial.arrives;
            // Ours is any high port.
            if is_theirs { port(right, trial.port) } else { None }
        }
        (_, _, Some(("tcp" | "icmp" | "icmpv6" | "sctp" | "dccp", _))) => Some(false),
        (_, _, Some((protocol @ ("ip" | "ip6"), field))) => {
            if (protocol == "ip6") != trial.remote.is_ipv6() {
                return Some(false);
            }
            let is_theirs = match field {
                "saddr" => trial.arrives,
                "daddr" => !trial.arrives,
                "protocol" | "nexthdr" => return Some(name == Some("udp")),
                _ => return None,
            };
            let ip = if is_theirs { trial.remote } else { trial.local };
            address(right, ip)
        }
        _ => None,
    }
}

/// A name of an interface, which may end in `*`.
fn fits(name: &str, trial: &Trial<'_>) -> bool {
    match name.strip_suffix('*') {
        Some(start) => trial.dev.starts_with(start),
        None => trial.dev == name,
    }
}

fn port(right: &Value, port: u16) -> Option<bool> {
    if let Some(range) = right.get("range").and_then(Value::as_array) {
        let [first, last] = &range[..] else { return None };
        return Some((first.as_u64()?..=last.as_u64()?).contains(&port.into()));
    }
    right.as_u64().map(|number| number == u64::from(port))
}

fn address(right: &Value, ip: IpAddr) -> Option<bool> {
    if let Some(prefix) = right.get("prefix") {
        let len = prefix.get("len")?.as_u64()?.try_into().ok()?;
        return Some(Prefix { ip: word(prefix, "addr").parse().ok()?, len }.contains(ip));
    }
    right.as_str()?.parse().ok().map(|other: IpAddr| other == ip)
}
