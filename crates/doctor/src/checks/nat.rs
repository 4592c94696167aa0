//! Address translation on the way, as STUN servers see it.

use std::time::Duration;

use super::Check;
use crate::facts::Facts;
use crate::finding::{Finding, Looked, Unseen};

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
        "address translation on each uplink, and of which kind (RFC 4787)"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["nat-none", "nat", "nat-symmetric", "nat-timeout", "nat-remembers"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        if !facts.is_probed {
            return;
        }
        remembered(facts, looked);
        let mut seen = false;
        for uplink in 0..facts.uplinks.len() {
            let name = facts.name(uplink);
            let mut mapped: Vec<_> = facts.ways_of(uplink).flat_map(|way| &way.mapped).collect();
            mapped.dedup();
            let Some(first) = mapped.first() else { continue };
            seen = true;
            // One socket is one mapping, unless it depends on the server.
            let differs = mapped.iter().any(|m| m.local == first.local && m.seen != first.seen);
            if first.local == first.seen {
                let sentence = format!("No addresses are translated on {name}.");
                looked.find(Finding::ok("nat-none", sentence).at(name));
            } else if differs {
                looked.find(
                    Finding::warning(
                        "nat-symmetric",
                        format!(
                            "The NAT of {name} gives each destination another port, so that peers \
                             cannot open a path to here; paths that begin here work."
                        ),
                    )
                    .at(name)
                    .mend_at_destination("manypath relay"),
                );
            } else {
                let sentence = format!(
                    "The NAT of {name} shows {} as {}; paths must begin here.",
                    first.local, first.seen
                );
                looked.find(Finding::note("nat", sentence).at(name));
            }
        }
        if !seen {
            looked.miss(
                Unseen::new(
                    "NAT",
                    "only STUN servers and relays say which address they see, and none was asked or \
                     answered",
                )
                .mend("manypath doctor HOST --stun STUN-SERVER,ANOTHER"),
            );
        }
    }
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
            .mend("manypath doctor HOST --long --stun RELAY"),
        );
    }
}
