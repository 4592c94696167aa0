//! The kernel drops packets whose way back would be another one (RFC 3704).

use super::Check;
use crate::causes::is_filtered_by_source;
use crate::facts::Facts;
use crate::finding::{Finding, Looked, Unseen};
use crate::mend::{keep_sysctl, sysctl};

/// `rp_filter`.
pub(super) struct RpFilter;

impl Check for RpFilter {
    fn name(&self) -> &'static str {
        "rp-filter"
    }

    fn about(&self) -> &'static str {
        "rp_filter, by which the kernel drops answers on an uplink that is not its first choice"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["rp-filter"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        if !facts.host.sysctls.contains_key("net/ipv4/conf/all/rp_filter") {
            return looked
                .miss(Unseen::new("rp_filter", "the kernel's settings could not be read"));
        }
        for (uplink, named) in facts.uplinks.iter().enumerate() {
            if !facts.ways_of(uplink).any(|way| is_filtered_by_source(facts, way)) {
                continue;
            }
            let name = &named.name;
            let path = format!("net/ipv4/conf/{name}/rp_filter");
            looked.find(
                Finding::error(
                    "rp-filter",
                    format!(
                        "Answers that arrive at {name} are dropped, because the route back is another \
                         one and rp_filter is strict."
                    ),
                )
                .at(name.clone())
                // The stricter of `all` and the interface counts, and 2 counts as more than 1.
                .mend(sysctl(&path, 2))
                .keep(keep_sysctl(&path, 2)),
            );
        }
    }
}
