//! Packets that leave through another uplink than the one whose address they have.

use std::net::SocketAddr;

use super::Check;
use crate::causes::{has_no_route, is_filtered_by_source, leaves_elsewhere, wrong_gateway};
use crate::facts::{Facts, Way};
use crate::finding::{Finding, Looked};
use crate::mend::source_route;
use crate::probe::Reach;

/// Routes by source address.
pub(super) struct Sources;

impl Check for Sources {
    fn name(&self) -> &'static str {
        "sources"
    }

    fn about(&self) -> &'static str {
        "packets leave through the uplink whose address they have (routes by source)"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["no-source-route", "sources"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        let mut asked = 0;
        let mut wrong: Vec<std::net::IpAddr> = Vec::new();
        for way in &facts.ways {
            asked += usize::from(way.chosen.is_some());
            let is_off = facts.link(way.uplink).is_some_and(|link| !link.is_up);
            let Some(dev) = leaves_elsewhere(facts, way) else { continue };
            // Another check reports these, or nothing is wrong: a second address of the destination
            // may have a way of its own.
            if is_off
                || has_no_route(facts, way)
                || facts.route(way).is_none()
                || is_filtered_by_source(facts, way)
                || wrong_gateway(facts, way).is_some()
                || is_unreachable(facts, way.remote)
                || dev.and_then(|dev| facts.host.link(dev)).is_some_and(|link| link.is_tunnel())
                || wrong.contains(&way.source)
            {
                continue;
            }
            wrong.push(way.source);
            looked.find(finding(facts, way, dev));
        }
        if asked > 0 && wrong.is_empty() {
            let sentence = "Packets leave through the uplink whose address they have.";
            looked.find(Finding::ok("sources", sentence));
        }
    }
}

/// True if no uplink is answered from this address of the destination, but one is from another: it
/// is the address that does not work.
fn is_unreachable(facts: &Facts, remote: SocketAddr) -> bool {
    facts.ways.iter().any(Way::answers)
        && !facts.ways.iter().any(|way| way.remote == remote && way.answers())
}

fn finding(facts: &Facts, way: &Way, dev: Option<&str>) -> Finding {
    let (name, source) = (facts.name(way.uplink), way.source);
    let answers = |reach: &Option<Reach>| reach.as_ref().map(Reach::is_answered);
    let place = match dev {
        Some(dev) => format!("leave through {dev}"),
        None => "have no route".to_owned(),
    };
    let finding = match (answers(&way.by_device), answers(&way.by_address)) {
        (_, Some(true)) => Finding::note(
            "no-source-route",
            format!("Packets from {source} ({name}) {place}, and are answered all the same."),
        ),
        (None, None) | (Some(true), None) => Finding::warning(
            "no-source-route",
            format!("Packets from {source} ({name}) {place}, whose provider may drop them."),
        ),
        (Some(true), Some(false)) => Finding::warning(
            "no-source-route",
            format!(
                "Packets from {source} ({name}) {place} and are not answered; those of manypath are \
                 kept to {name} (--bind auto, --bind {name})."
            ),
        ),
        _ => Finding::error(
            "no-source-route",
            format!("Packets from {source} ({name}) {place}, and none is answered."),
        ),
    };
    finding.at(name).mend_all(source_route(facts, way))
}
