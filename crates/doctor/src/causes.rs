//! Why a way does not work, as several checks want to know: each reason is reported by one of them,
//! and the others keep silent about the same way.

use std::net::IpAddr;

use crate::facts::{Facts, Way};
use crate::host::{Prefix, Trial, Verdict};
use crate::probe::SendError;

/// True if no route through the uplink leads to any address of the destination's family that this
/// way belongs to.
pub(crate) fn has_no_route(facts: &Facts, way: &Way) -> bool {
    if facts.host.routes.is_none() {
        return false;
    }
    let family = |other: &&Way| other.source == way.source;
    facts.ways_of(way.uplink).filter(family).all(|way| facts.route(way).is_none())
}

/// The router of the way, if it is in another uplink's network instead of this one's, and that
/// uplink.
pub(crate) fn wrong_gateway(facts: &Facts, way: &Way) -> Option<(IpAddr, usize)> {
    let gateway = facts.route(way)?.gateway?;
    let has = |uplink: usize| {
        let addresses = facts.link(uplink).map(|link| link.addresses.iter());
        addresses.into_iter().flatten().any(|a| a.prefix.len < 128 && a.prefix.contains(gateway))
    };
    if has(way.uplink) {
        return None;
    }
    let other = (0..facts.uplinks.len()).find(|&other| other != way.uplink && has(other))?;
    Some((gateway, other))
}

/// The router of the way, if it does not answer on its network.
pub(crate) fn silent_gateway(facts: &Facts, way: &Way) -> Option<IpAddr> {
    let gateway = facts.route(way)?.gateway?;
    let is_silent = facts.neighbour(way.uplink, gateway)?.is_silent;
    (is_silent && way.is_probed() && !way.answers()).then_some(gateway)
}

/// True if packets that arrive on the way are dropped, because the way back would be another one
/// (`rp_filter` is 1).
pub(crate) fn is_filtered_by_source(facts: &Facts, way: &Way) -> bool {
    if way.source.is_ipv6() || has_no_route(facts, way) {
        return false;
    }
    let value = |name: &str| facts.host.sysctl(&format!("net/ipv4/conf/{name}/rp_filter"));
    let name = facts.name(way.uplink);
    let (all, own) = (value("all").unwrap_or(0), value(name).unwrap_or(0));
    all.max(own) == 1 && leaves_elsewhere(facts, way).is_some() && !way.answers()
}

/// The interface that packets from the address of the way leave through, if it is another one, or
/// nothing if none.
pub(crate) fn leaves_elsewhere<'a>(facts: &Facts, way: &'a Way) -> Option<Option<&'a str>> {
    let chosen = way.chosen.as_ref()?;
    let dev = if chosen.error.is_none() { chosen.dev.as_deref() } else { None };
    (dev != Some(facts.name(way.uplink))).then_some(dev)
}

/// The chain of nftables that drops what leaves or arrives on the way, if it is found. Asked of
/// ways that do not answer only.
pub(crate) fn dropping_chain(facts: &Facts, way: &Way, arrives: bool) -> Option<String> {
    let trial = Trial {
        arrives,
        dev: facts.name(way.uplink),
        local: way.source,
        remote: way.remote.ip(),
        port: way.remote.port(),
    };
    match facts.host.firewall.as_ref()?.decide(&trial) {
        Verdict::Drops { chain } => Some(chain),
        Verdict::Passes => None,
    }
}

/// The first two uplinks that are in networks with the same addresses.
pub(crate) fn same_network(facts: &Facts) -> Option<(usize, usize, Prefix)> {
    let network = |uplink: usize| {
        let source = *facts.uplinks.get(uplink)?.sources.first()?;
        let link = facts.link(uplink).filter(|link| link.is_up)?;
        let own = link.addresses.iter().find(|a| a.prefix.ip == source)?.prefix;
        let width = if own.ip.is_ipv6() { 128 } else { 32 };
        // An address alone is no network.
        (own.len > 0 && own.len < width).then(|| own.network())
    };
    let pairs =
        (1..facts.uplinks.len()).flat_map(|right| (0..right).map(move |left| (left, right)));
    pairs.into_iter().find_map(|(left, right)| {
        let both = network(left).zip(network(right));
        both.filter(|(a, b)| a == b).map(|(network, _)| (left, right, network))
    })
}

/// True if this host's firewall refused to send.
pub(crate) fn is_denied(way: &Way) -> bool {
    error_of(way) == Some(&SendError::Denied)
}

/// True if the destination says that nothing listens there.
pub(crate) fn is_refused(way: &Way) -> bool {
    error_of(way) == Some(&SendError::Refused)
}

fn error_of(way: &Way) -> Option<&SendError> {
    way.reach()?.error.as_ref()
}

/// True if a reason on this host is known why the way does not answer.
pub(crate) fn is_explained(facts: &Facts, way: &Way) -> bool {
    has_no_route(facts, way)
        || facts.host.routes.is_some() && facts.route(way).is_none()
        || wrong_gateway(facts, way).is_some()
        || silent_gateway(facts, way).is_some()
        || is_filtered_by_source(facts, way)
        || same_network(facts).is_some_and(|(a, b, _)| [a, b].contains(&way.uplink))
        || is_denied(way)
        || dropping_chain(facts, way, false).is_some()
        || dropping_chain(facts, way, true).is_some()
}
