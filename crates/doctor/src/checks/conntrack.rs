//! Address translation and firewalls of this host that forget connections too early.

use super::Check;
use crate::facts::Facts;
use crate::finding::{Finding, Looked};
use crate::mend::{keep_sysctl, sysctl};

const FIRST: &str = "net/netfilter/nf_conntrack_udp_timeout";
const STREAM: &str = "net/netfilter/nf_conntrack_udp_timeout_stream";
/// Idle paths send a heartbeat every 5 s with the profile `fast`, every 30 s with the library's;
/// they are late by up to half of that and a timeout.
const TIMEOUT_MIN_S: i64 = 30;
/// Linux's own values.
const DEFAULTS_S: [(&str, i64); 2] = [(FIRST, 30), (STREAM, 120)];

/// Timeouts of connection tracking.
pub(super) struct Conntrack;

impl Check for Conntrack {
    fn name(&self) -> &'static str {
        "conntrack"
    }

    fn about(&self) -> &'static str {
        "how long this host's address translation and firewall remember UDP"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["nat-forgets"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        // Where nothing is tracked, the settings mean nothing.
        let is_used = facts.host.sysctl("net/netfilter/nf_conntrack_count").is_some_and(|n| n > 0);
        if !is_used {
            return;
        }
        let low = |&(name, _): &&(&str, i64)| {
            facts.host.sysctl(name).is_some_and(|seconds| seconds < TIMEOUT_MIN_S)
        };
        let low: Vec<&(&str, i64)> = DEFAULTS_S.iter().filter(low).collect();
        let Some(shortest) = low.iter().filter_map(|(name, _)| facts.host.sysctl(name)).min()
        else {
            return;
        };
        let sentence = format!(
            "Address translation or firewall of this host forget UDP after {shortest} s of silence, so \
             idle paths may be lost between two heartbeats."
        );
        let mut finding = Finding::warning("nat-forgets", sentence);
        for (name, seconds) in low {
            finding = finding.mend(sysctl(name, seconds)).keep(keep_sysctl(name, seconds));
        }
        looked.find(finding);
    }
}
