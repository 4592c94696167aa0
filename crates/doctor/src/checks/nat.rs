//! Address translation on the way, as STUN servers see it, and the peers that it leaves reachable.

use std::time::Duration;

use manypath_net::port_mapping::{MappedPort, MappingState};

use super::Check;
use crate::facts::{Facts, Way};
use crate::finding::{Finding, Looked, Unseen};
use crate::mend::listed;
use crate::probe::{Behaviour, Dependence, Mapped};

/// Heartbeats come every 5 s with the command line's profile, up to half of that late; the rest is
/// for one that is lost.
const MEMORY_MIN: Duration = Duration::from_secs(16);

/// The kind of NAT of each uplink.
pub(super) struct Nat;

impl Check for Nat {
    fn name(&self) -> &'static str {
        "nat"
    }

    fn about(&self) -> &'static str {
        "address translation on each uplink, of which kind (RFC 4787), and what that leaves to peers"
    }

    fn ids(&self) -> &'static [&'static str] {
        &[
            "nat-none",
            "nat",
            "nat-symmetric",
            "nat-timeout",
            "nat-remembers",
            "udp-silent",
            "port-mapping",
            "port-mapping-inner",
            "port-mapping-none",
        ]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        if !facts.is_probed && facts.stun.is_empty() {
            return;
        }
        remembered(facts, looked);
        if facts.is_udp_silent() {
            return looked.find(udp_is_silent(facts));
        }
        let mut seen = false;
        for uplink in 0..facts.uplinks.len() {
            match View::of(facts, uplink) {
                Some(view) => {
                    seen = true;
                    looked.find(view.finding());
                    mapping(facts, uplink, looked);
                }
                // With a destination, its answers say whether UDP passes.
                None if !facts.is_probed && facts.is_silent_to_stun(uplink) => {
                    looked.find(uplink_is_silent(facts.name(uplink)));
                }
                None => {}
            }
        }
        if !seen {
            looked.miss(
                Unseen::new(
                    "NAT",
                    "only STUN servers and relays say which address they see, and none was asked or \
                     answered",
                )
                .mend("manypath doctor --stun RELAY"),
            );
        }
    }
}

/// An uplink as STUN servers see it.
struct View<'a> {
    name: &'a str,
    first: Mapped,
    /// Servers see different addresses of one socket.
    differs: bool,
    behaviour: Behaviour,
    /// A port that the router maps for peers elsewhere.
    open: Option<MappedPort>,
}

impl View<'_> {
    /// `None` if no server has answered.
    fn of(facts: &Facts, uplink: usize) -> Option<View<'_>> {
        let way: &Way = facts.ways_of(uplink).find(|way| !way.mapped.is_empty())?;
        let all = || facts.ways_of(uplink).flat_map(|way| &way.mapped);
        let first = *way.mapped.first()?;
        // A socket has a single mapping, unless it depends on the server.
        let differs = all().any(|m| m.local == first.local && m.seen != first.seen);
        let open = match &facts.uplinks[uplink].port_mapping {
            Some(MappingState::Mapped(port)) if !port.is_behind_another_nat() => Some(*port),
            _ => None,
        };
        let (name, behaviour) = (facts.name(uplink), way.behaviour);
        Some(View { name, first, differs, behaviour, open })
    }

    fn finding(&self) -> Finding {
        let (name, Mapped { local, seen, .. }) = (self.name, self.first);
        if local == seen {
            let filter = self.filter();
            let sentence = format!("No addresses are translated on {name}: {filter}.");
            return Finding::ok("nat-none", sentence).at(name);
        }
        let by = self.open.map(|port| format!("its router maps ports by {}", port.by));
        if self.is_symmetric() {
            let what = format!("The NAT of {name} gives each destination another port");
            return match by {
                Some(by) => {
                    let sentence = format!("{what}, but {by}: direct with all peers.");
                    Finding::note("nat-symmetric", sentence).at(name)
                }
                None => Finding::warning(
                    "nat-symmetric",
                    format!(
                        "{what}: direct only with peers that let in packets from any port, and with \
                         others through a relay; paths that begin here work."
                    ),
                )
                .at(name)
                .mend_at_destination("manypath relay"),
            };
        }
        let reach = match by {
            Some(by) => format!("{by}, so direct with all peers"),
            None => self.filter(),
        };
        let sentence =
            format!("The NAT of {name} shows {local} as {seen}{}: {reach}.", self.destinations());
        Finding::note("nat", sentence).at(name)
    }

    fn is_symmetric(&self) -> bool {
        use Dependence::{AddressAndPortDependent, AddressDependent};
        let mapping = self.behaviour.mapping;
        self.differs || matches!(mapping, Some(AddressDependent | AddressAndPortDependent))
    }

    /// The destinations that see this address.
    fn destinations(&self) -> &'static str {
        match self.behaviour.mapping {
            Some(Dependence::EndpointIndependent) => " to all destinations",
            Some(Dependence::PortIndependent) => " to all ports of a destination",
            _ => "",
        }
    }

    /// The peers that the filter leaves reachable.
    fn filter(&self) -> String {
        match self.behaviour.filtering {
            Some(Dependence::EndpointIndependent) => {
                "direct with all peers, as packets from everywhere come in"
            }
            Some(Dependence::AddressDependent | Dependence::PortIndependent) => {
                "direct with all peers, as those that were sent to are let in from any port"
            }
            Some(Dependence::AddressAndPortDependent) => {
                "direct with most peers, but not with those whose NAT gives each destination \
                 another port, as only answers come in"
            }
            None if self.first.local == self.first.seen => "direct, unless a firewall filters",
            None => "direct with most peers; a relay of ours says more",
        }
        .to_owned()
    }
}

/// Nothing answers by UDP.
fn udp_is_silent(facts: &Facts) -> Finding {
    let mut asked: Vec<String> = facts.stun.iter().map(ToString::to_string).collect();
    if facts.is_probed {
        asked.insert(0, "the destination".to_owned());
    }
    let sentence = format!(
        "No answer by UDP comes from {}: UDP is blocked, or nothing listens there. Another port may \
         pass, or another network.",
        listed(&asked)
    );
    Finding::error("udp-silent", sentence).mend_at_destination("manypath relay --port 443")
}

/// STUN servers answer on other uplinks alone.
fn uplink_is_silent(name: &str) -> Finding {
    let sentence = format!(
        "No STUN server answers on {name}, but on another uplink: the network of {name} drops UDP, \
         or has no way out. Another port may pass, or another network."
    );
    Finding::error("udp-silent", sentence).at(name).mend_at_destination("manypath relay --port 443")
}

/// The router's answer to the request for a mapping.
fn mapping(facts: &Facts, uplink: usize, looked: &mut Looked) {
    let name = facts.name(uplink);
    let Some(state) = &facts.uplinks[uplink].port_mapping else { return };
    looked.find(
        match state {
            MappingState::Mapped(port) if port.is_behind_another_nat() => Finding::note(
                "port-mapping-inner",
                format!(
                    "The router of {name} maps ports by {}, but is behind a NAT itself, as its \
                     address there, {}, is of no use to peers elsewhere.",
                    port.by,
                    port.external.ip()
                ),
            ),
            MappingState::Mapped(port) => Finding::ok(
                "port-mapping",
                format!("The router of {name} maps ports by {}, as {}.", port.by, port.external),
            ),
            MappingState::NotMapped(why) => Finding::note(
                "port-mapping-none",
                format!(
                    "The router of {name} maps no ports ({why}); with PCP, NAT-PMP or UPnP switched \
                     on there, all peers can open paths to here."
                ),
            ),
            MappingState::Asking => return,
        }
        .at(name),
    );
}

/// How long NATs and firewalls on the way remember a path without traffic.
fn remembered(facts: &Facts, looked: &mut Looked) {
    let mut seen = false;
    for uplink in 0..facts.uplinks.len() {
        let name = facts.name(uplink);
        let Some(memory) = facts.ways_of(uplink).find_map(|way| way.memory) else { continue };
        seen = true;
        let kept = memory.kept.as_secs_f64();
        looked.find(match memory.forgotten {
            None => {
                let sentence =
                    format!("After {kept:.0} s of silence packets still arrive through {name}.");
                Finding::ok("nat-remembers", sentence).at(name)
            }
            Some(after) if after > MEMORY_MIN => {
                let sentence = format!(
                    "A NAT or firewall on the way of {name} forgets a silent path within {:.0} s, \
                     which is longer than the time between heartbeats.",
                    after.as_secs_f64()
                );
                Finding::note("nat-remembers", sentence).at(name)
            }
            // Heartbeats come up to half an interval late, and may have to be repeated.
            Some(after) => Finding::warning(
                "nat-timeout",
                format!(
                    "A NAT or firewall on the way of {name} forgets a silent path within {:.0} s; \
                     shorter heartbeats keep it open: --set hb_interval={:.0}ms at this end.",
                    after.as_secs_f64(),
                    (memory.kept.as_secs_f64() * 500.0).max(200.0)
                ),
            )
            .at(name),
        });
    }
    if facts.is_long && !seen {
        looked.miss(
            Unseen::new(
                "how long NATs remember",
                "this needs a relay of ours or a STUN server with RESPONSE-PORT, and none was asked \
                 or answered",
            )
            .mend("manypath doctor --long --stun RELAY"),
        );
    }
}
