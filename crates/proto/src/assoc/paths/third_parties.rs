//! Limits probes to addresses that only the peer listed, which may belong to a third party. Until
//! they are verified they get probes (RFC 9260 §5.4), but no more bytes than the peer has sent:
//! nobody can use this end to amplify traffic. Addresses that packets come from have another limit:
//! they are forgotten if they do not answer.

use std::net::SocketAddr;

use manypath_wire::COMMON_HEADER_LEN;

use super::heartbeat_info::{CHECK_INFO_LEN, INFO_LEN};
use crate::assoc::Association;
use crate::datagram::AddressPair;
use crate::path::Path;
use crate::sizes;
use crate::view::{PathId, PathState};

/// Bytes of a HEARTBEAT chunk (RFC 9260 §3.3.5).
const HEARTBEAT: usize = 8 + INFO_LEN;

impl Association {
    /// Counts the bytes of a peer's packet: as many may be sent to addresses that it listed.
    #[inline]
    pub(crate) fn note_bytes_of_peer(&mut self, remote: SocketAddr, len: usize) {
        let outer = sizes::outer_headers(remote, self.config.udp_encapsulation);
        self.heartbeats.credit = self.heartbeats.credit.saturating_add(len + outer);
    }

    /// True if a probe may be sent on this path now.
    ///
    /// Deviation: RFC 9260 §5.4 and §8.3 have no such limit.
    pub(crate) fn may_probe(&self, p: &Path) -> bool {
        // With `data_before_verification` the path carries more than probes anyway.
        !is_only_listed(p)
            || self.config.data_before_verification
            || self.heartbeats.credit >= self.probe_len(p)
    }

    /// Counts the bytes of a probe on this path.
    pub(super) fn note_probe(&mut self, id: PathId) {
        if let Some(p) = self.paths.get(id).filter(|p| is_only_listed(p)) {
            let left = self.heartbeats.credit.saturating_sub(self.probe_len(p));
            self.heartbeats.credit = left;
        }
    }

    /// Bytes of a check between these addresses, with all headers.
    pub(super) fn check_len(&self, pair: AddressPair) -> usize {
        let sealing = if self.is_protected() { sizes::PROTECTION } else { 0 };
        let outer = sizes::outer_headers(pair.remote, self.config.udp_encapsulation);
        outer + sealing + COMMON_HEADER_LEN + 8 + sizes::padded(CHECK_INFO_LEN)
    }

    /// Bytes of a probe on this path, with all headers.
    fn probe_len(&self, p: &Path) -> usize {
        p.headers(&self.config) + COMMON_HEADER_LEN + HEARTBEAT
    }
}

/// True for an unverified address that the peer listed and the application did not name.
fn is_only_listed(p: &Path) -> bool {
    !p.origin.is_named() && !p.origin.is_learnt() && p.liveness.state == PathState::Unconfirmed
}
