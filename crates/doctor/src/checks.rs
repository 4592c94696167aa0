//! The checks: each a file and a line in [`CHECKS`].
//!
//! A check reads [`Facts`] and does no I/O. It keeps silent about a fault that another check
//! reports (see [`causes`](crate::causes)), so that each fault has one finding.

mod buffers;
mod clock;
mod conntrack;
mod destination;
mod firewall;
mod gateways;
mod gro;
mod gso;
mod ipv6;
mod links;
mod mtu;
mod nat;
mod routes;
mod rp_filter;
mod rules;
mod sources;
mod tunnels;
mod uplinks;

use crate::facts::Facts;
use crate::finding::Looked;

/// A check.
pub trait Check: Sync {
    /// Its name, for `--only`.
    fn name(&self) -> &'static str;
    /// Its subject in one sentence.
    fn about(&self) -> &'static str;
    /// The findings that it may report.
    fn ids(&self) -> &'static [&'static str];
    /// Reports what it finds.
    fn look(&self, facts: &Facts, looked: &mut Looked);
}

/// All checks, in the order of their reports.
pub static CHECKS: &[&dyn Check] = &[
    &uplinks::Uplinks,
    &links::Links,
    &routes::Routes,
    &sources::Sources,
    &tunnels::Tunnels,
    &rules::Rules,
    &gateways::Gateways,
    &rp_filter::RpFilter,
    &firewall::Firewall,
    &destination::Destination,
    &mtu::PacketSizes,
    &buffers::UdpBuffers,
    &gso::Gso,
    &gro::Gro,
    &nat::Nat,
    &conntrack::Conntrack,
    &ipv6::Ipv6,
    &clock::Clock,
];

/// The check of this name.
pub fn check_named(name: &str) -> Option<&'static dyn Check> {
    CHECKS.iter().copied().find(|check| check.name() == name)
}

/// Asks each of `checks`.
pub(crate) fn look(facts: &Facts, checks: &[&'static dyn Check], looked: &mut Looked) {
    for check in checks {
        let before = looked.findings.len();
        check.look(facts, looked);
        for finding in &mut looked.findings[before..] {
            finding.check = check.name();
            debug_assert!(check.ids().contains(&finding.id), "{} of {}", finding.id, check.name());
        }
    }
}

#[cfg(test)]
mod tests;
