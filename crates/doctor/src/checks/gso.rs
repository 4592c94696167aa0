//! Sending in batches: segmentation by the kernel or the device.

use super::Check;
use crate::facts::Facts;
use crate::finding::{Finding, Looked};
use crate::shell::quoted;

/// GSO.
pub(super) struct Gso;

const FEATURES: [(&str, &str); 2] =
    [("generic-segmentation-offload", "gso"), ("tx-checksumming", "tx")];

impl Check for Gso {
    fn name(&self) -> &'static str {
        "gso"
    }

    fn about(&self) -> &'static str {
        "sending many packets in one call (GSO)"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["gso-off"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        for (index, uplink) in facts.uplinks.iter().enumerate() {
            let name = &uplink.name;
            let off: Vec<&(&str, &str)> = match facts.host.offloads.get(name) {
                Some(features) => {
                    FEATURES.iter().filter(|(f, _)| features.get(*f) == Some(&false)).collect()
                }
                None => Vec::new(),
            };
            let refused = facts.ways_of(index).any(|way| way.sends_batches == Some(false));
            // Without the checksums of a device batches are slower, and work all the same.
            let gso_off = off.iter().any(|(_, short)| *short == "gso");
            if !refused && !gso_off {
                continue;
            }
            let sentence = if refused {
                format!(
                    "The kernel takes no batches of packets for {name}, so that sending costs several \
                     times the processor time."
                )
            } else {
                format!(
                    "Segmentation of batches (GSO) is off on {name}, so that sending costs more \
                     processor time."
                )
            };
            let finding = Finding::warning("gso-off", sentence).at(name.clone());
            let switches: Vec<String> =
                off.iter().map(|(_, short)| format!("{short} on")).collect();
            looked.find(if switches.is_empty() {
                finding.mend(format!("ethtool -k {}", quoted(name)))
            } else {
                finding.mend(format!("sudo ethtool -K {} {}", quoted(name), switches.join(" ")))
            });
        }
    }
}
