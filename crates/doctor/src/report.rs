//! The report: uplinks, findings, and what was not seen.

use manypath_net::port_mapping::MappingState;
use serde::Serialize;

use crate::facts::Facts;
use crate::finding::{Finding, Looked, Severity, Unseen};
use crate::probe::{Dependence, Reach};

/// An uplink and what was measured on it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UplinkLine {
    /// The interface.
    pub name: String,
    /// The addresses to send from.
    pub addresses: Vec<String>,
    /// The router, if the routes name one.
    pub gateway: Option<String>,
    /// True if the destination answers there; null if it was not asked.
    pub answers: Option<bool>,
    /// The time of a round trip.
    pub rtt_s: Option<f64>,
    /// Bytes of the largest IP packet that arrives.
    pub mtu_bytes: Option<usize>,
    /// Our transport address as a STUN server sees it.
    pub mapped: Option<String>,
    /// The destinations to which a socket has the same external address.
    pub nat_mapping: Option<Dependence>,
    /// The senders whose packets come in.
    pub nat_filtering: Option<Dependence>,
    /// The protocol by which the router maps ports, or `none`; null if it was not asked.
    pub port_mapping: Option<String>,
}

/// The results. The keys are a public contract.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The destination's transport addresses; empty without one.
    pub destination: Vec<String>,
    /// The uplinks.
    pub uplinks: Vec<UplinkLine>,
    /// The worst severity.
    pub worst: Severity,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
    /// Subjects that could not be looked at.
    pub unseen: Vec<Unseen>,
    /// The value of `--bind` that uses every uplink that answers; null if there are not several.
    pub bind: Option<String>,
}

impl Report {
    pub(crate) fn new(facts: &Facts, looked: Looked) -> Report {
        let mut findings = looked.findings;
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let worst = findings.first().map_or(Severity::Ok, |finding| finding.severity);
        let uplinks: Vec<UplinkLine> = (0..facts.uplinks.len()).map(|u| line(facts, u)).collect();
        let works = |line: &&UplinkLine| line.answers != Some(false);
        let names: Vec<&str> = uplinks.iter().filter(works).map(|u| u.name.as_str()).collect();
        let bind = (names.len() > 1).then(|| names.join(","));
        let destination = facts.destination.iter().map(ToString::to_string).collect();
        Report { destination, uplinks, worst, findings, unseen: looked.unseen, bind }
    }
}

fn line(facts: &Facts, uplink: usize) -> UplinkLine {
    let ways: Vec<_> = facts.ways_of(uplink).collect();
    let gateway = ways.iter().find_map(|way| facts.route(way)?.gateway);
    let rtt = ways.iter().filter_map(|way| way.reach().and_then(|reach: &Reach| reach.rtt)).min();
    let mapped = ways.iter().find_map(|way| way.mapped.first());
    UplinkLine {
        name: facts.name(uplink).to_owned(),
        addresses: facts.uplinks[uplink].sources.iter().map(ToString::to_string).collect(),
        gateway: gateway.map(|ip| ip.to_string()),
        answers: ways.iter().any(|way| way.is_probed()).then(|| facts.reaches(uplink)),
        rtt_s: rtt.map(|rtt| rtt.as_secs_f64()),
        mtu_bytes: ways.iter().filter_map(|way| way.mtu).map(|mtu| mtu.path).min(),
        mapped: mapped.map(|mapped| mapped.seen.to_string()),
        nat_mapping: ways.iter().find_map(|way| way.behaviour.mapping),
        nat_filtering: ways.iter().find_map(|way| way.behaviour.filtering),
        port_mapping: facts.uplinks[uplink].port_mapping.as_ref().map(|state| match state {
            MappingState::Mapped(port) => port.by.to_string(),
            _ => "none".to_owned(),
        }),
    }
}
