//! Address translation on the way, as STUN servers see it.

use super::Check;
use crate::facts::Facts;
use crate::finding::{Finding, Looked, Unseen};

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
        &["nat-none", "nat", "nat-symmetric"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        if !facts.is_probed {
            return;
        }
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
