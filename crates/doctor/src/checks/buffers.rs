//! The buffers of UDP sockets.

use manypath_net::Buffers;

use super::Check;
use crate::facts::Facts;
use crate::finding::{Finding, Looked, Unseen};
use crate::mend::{keep_sysctl, sysctl};

/// Below this a burst of a fast path overflows the buffer before it is read.
const RECEIVE_MIN: usize = 1 << 20;

/// Socket buffers.
pub(super) struct UdpBuffers;

impl Check for UdpBuffers {
    fn name(&self) -> &'static str {
        "buffers"
    }

    fn about(&self) -> &'static str {
        "the socket buffers that the system grants"
    }

    fn ids(&self) -> &'static [&'static str] {
        &["udp-buffers"]
    }

    fn look(&self, facts: &Facts, looked: &mut Looked) {
        let Some(Buffers { receive_wanted, send_wanted, receive, send }) = facts.buffers else {
            return looked.miss(Unseen::new("socket buffers", "no socket could be opened"));
        };
        if receive >= receive_wanted && send >= send_wanted {
            let sentence = format!("Sockets get the {} of buffers that they want.", size(receive));
            return looked.find(Finding::ok("udp-buffers", sentence));
        }
        let sentence = if receive < receive_wanted {
            format!(
                "Sockets get {} of the {} that they want to receive into, so bursts of fast paths are \
                 lost.",
                size(receive),
                size(receive_wanted)
            )
        } else {
            format!(
                "Sockets get {} of the {} that they want to send from, so large batches are split.",
                size(send),
                size(send_wanted)
            )
        };
        let mut finding = if receive < RECEIVE_MIN {
            Finding::warning("udp-buffers", sentence)
        } else {
            Finding::note("udp-buffers", sentence)
        };
        let limits = [
            ("net/core/rmem_max", receive < receive_wanted, receive_wanted),
            ("net/core/wmem_max", send < send_wanted, send_wanted),
        ];
        for (limit, is_low, wanted) in limits {
            if is_low && cfg!(target_os = "linux") {
                finding = finding.mend(sysctl(limit, wanted)).keep(keep_sysctl(limit, wanted));
            }
        }
        looked.find(finding);
    }
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}
