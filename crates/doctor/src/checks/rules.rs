//! Rules of policy routing that are left over.

use super::Check;
use crate::facts::Facts;
use crate::finding::{Finding, Looked};
use crate::shell::quoted;

/// Rules for addresses that this host does not have.
pub(super) struct Rules;

impl Check for Rules {
    fn name(&self) -> &'static str {
        "rules"
    }

    fn about(&self) -> &'static str {
        "rules for addresses that this host does not have any more"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["stale-rule"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        for rule in &facts.host.rules {
            let Some(from) = rule.from else { continue };
            let width = if rule.is_v6 { 128 } else { 32 };
            let (Some(table), false) = (&rule.table, rule.is_narrow) else { continue };
            if from.len == width && facts.host.link_of(from.ip).is_none() {
                let family = if rule.is_v6 { "ip -6" } else { "ip" };
                looked.find(
                    Finding::note(
                        "stale-rule",
                        format!(
                            "A rule sends packets from {} to table {table}, but no interface has that \
                             address.",
                            from.ip
                        ),
                    )
                    .at(from.ip.to_string())
                    .mend(format!(
                        "sudo {family} rule del from {} lookup {}",
                        from.ip,
                        quoted(table)
                    )),
                );
            }
        }
    }
}
