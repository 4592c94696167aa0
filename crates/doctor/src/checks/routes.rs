//! Uplinks without any route to the destination.

use super::Check;
use crate::causes::has_no_route;
use crate::facts::{Facts, Way};
use crate::finding::{Finding, Looked, Unseen};
use crate::mend::source_route;

/// A route through each uplink.
pub(super) struct Routes;

impl Check for Routes {
    fn name(&self) -> &'static str {
        "routes"
    }

    fn about(&self) -> &'static str {
        "a route to the destination through each uplink"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["no-route", "routes"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        if facts.host.routes.is_none() {
            return looked.miss(Unseen::new("routes", "they could not be read"));
        }
        let mut missing = 0;
        for (uplink, source) in each_source(facts) {
            let Some(way) = facts.ways_of(uplink).find(|way| way.source == source) else {
                continue;
            };
            let is_off = facts.link(uplink).is_some_and(|link| !link.is_up || !link.has_carrier);
            if is_off || !has_no_route(facts, way) {
                continue;
            }
            missing += 1;
            looked.find(finding(facts, way));
        }
        if missing == 0 && !facts.ways.is_empty() {
            let sentence = format!("Every uplink has a route to {}.", destination(facts));
            looked.find(Finding::ok("routes", sentence));
        }
    }
}

fn destination(facts: &Facts) -> &'static str {
    if facts.is_probed { "the destination" } else { "other networks" }
}

/// The addresses to send from of all uplinks.
pub(super) fn each_source(facts: &Facts) -> Vec<(usize, std::net::IpAddr)> {
    let all = facts.uplinks.iter().enumerate();
    all.flat_map(|(index, uplink)| uplink.sources.iter().map(move |&ip| (index, ip))).collect()
}

fn finding(facts: &Facts, way: &Way) -> Finding {
    let name = facts.name(way.uplink);
    let family = if way.source.is_ipv6() { "IPv6" } else { "IPv4" };
    let sentence = format!(
        "{name} has the address {} but no route to {}, so nothing is sent through it by {family}.",
        way.source,
        destination(facts)
    );
    // With the other family it works: one path, and not two of one uplink.
    let works = facts.reaches(way.uplink);
    let finding = match (works, way.source.is_ipv6()) {
        (true, _) => Finding::note("no-route", sentence),
        // Networks without a way out often have IPv6 addresses; IPv4 will be used.
        (false, true) if facts.remotes.iter().any(|remote| remote.is_ipv4()) => {
            Finding::note("no-route", sentence)
        }
        _ => Finding::error("no-route", sentence),
    };
    finding.at(name).mend_all(source_route(facts, way))
}
