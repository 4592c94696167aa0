//! Answers of the destination.

use super::Check;
use crate::causes::{is_explained, is_refused};
use crate::facts::{Facts, Way};
use crate::finding::{Finding, Looked, Unseen};
use crate::mend::listed;

/// A port that is seldom blocked.
const OPEN_PORT: u16 = 443;

/// Answers on each uplink.
pub(super) struct Destination;

impl Check for Destination {
    fn name(&self) -> &'static str {
        "destination"
    }

    fn about(&self) -> &'static str {
        "answers of the destination on each uplink, and networks that block UDP"
    }

    fn ids(&self) -> &'static [&'static str] {
        &[
            "dest-here",
            "dest-silent",
            "dest-refused",
            "udp-blocked",
            "dest-address-silent",
            "answers",
        ]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        if facts.destination.is_empty() {
            return looked.miss(
                Unseen::new(
                    "paths to a destination",
                    "no destination was named, so none was probed",
                )
                .mend("manypath doctor HOST"),
            );
        }
        if facts.is_here {
            let sentence = "The destination is this host, so the uplinks were not probed.";
            return looked.find(Finding::note("dest-here", sentence));
        }
        let probed: Vec<&Way> = facts.ways.iter().filter(|way| way.is_probed()).collect();
        if probed.iter().any(|way| way.answers()) {
            return some_answer(facts, &probed, looked);
        }
        if facts.is_udp_silent() {
            // The check of NATs says so.
            return;
        }
        let open: Vec<&&Way> = probed.iter().filter(|way| !is_explained(facts, way)).collect();
        let Some(first) = open.first() else { return };
        let to = listed(&facts.remotes.iter().map(ToString::to_string).collect::<Vec<_>>());
        let port = first.remote.port();
        let listen = format!("manypath recv --port {port}");
        let finding = if open.iter().any(|way| is_refused(way)) {
            let what = format!("The destination says that nothing listens at {to}.");
            Finding::error("dest-refused", what).mend_at_destination(listen)
        } else {
            let what = format!(
                "The destination {to} does not answer on any uplink: nothing listens there, or a \
                 firewall before it drops UDP."
            );
            let rule = format!("sudo nft insert rule inet filter input udp dport {port} accept");
            Finding::error("dest-silent", what)
                .mend_at_destination(listen)
                .mend_at_destination(rule)
        };
        looked.find(finding);
    }
}

fn some_answer(facts: &Facts, probed: &[&Way], looked: &mut Looked) {
    let mut all_answer = true;
    for uplink in 0..facts.uplinks.len() {
        let own = || probed.iter().filter(|way| way.uplink == uplink);
        let is_silent = own().next().is_some() && !facts.reaches(uplink);
        if !is_silent {
            continue;
        }
        all_answer = false;
        let Some(way) = own().find(|way| !is_explained(facts, way)) else { continue };
        let (name, port) = (facts.name(uplink), way.remote.port());
        looked.find(
            Finding::error(
                "udp-blocked",
                format!(
                    "The destination answers on other uplinks but not on {name}, whose network drops \
                     UDP to port {port}; another port may pass."
                ),
            )
            .at(name)
            .mend_at_destination(format!("manypath recv --port {OPEN_PORT}")),
        );
    }
    for remote in &facts.remotes {
        let mut to = probed.iter().filter(|way| way.remote == *remote).peekable();
        if to.peek().is_some() && !to.any(|way| way.answers()) {
            looked.find(
                Finding::note(
                    "dest-address-silent",
                    format!("The destination does not answer at {remote}, but at another address."),
                )
                .at(remote.to_string()),
            );
        }
    }
    if all_answer {
        looked.find(Finding::ok("answers", "The destination answers on every uplink."));
    }
}
