//! The one packet of retransmissions that ignores cwnd (RFC 9260 §7.2.4, point 3, and §6.3.3, E3).

use crate::params::{Params, RtxPastCwnd};
use crate::view::PathId;

/// The permission for a packet to pass cwnd, and the paths that may use it.
#[derive(Debug)]
pub(crate) struct PastCwnd {
    /// Any path may send it, not only those that lost data.
    any: bool,
    /// A packet may pass.
    allowed: bool,
    /// The paths that lost data at the last fast retransmit, one bit each.
    losers: u32,
    /// The paths in `losers` that have not sent a packet since the last fast retransmit or timeout.
    unused: u32,
}

/// The bit of a path; `max_paths` is at most 32.
fn bit_of(path: PathId) -> u32 {
    1u32.checked_shl(path.0.into()).unwrap_or(0)
}

impl PastCwnd {
    pub(super) fn new(config: &Params) -> PastCwnd {
        let any = config.rtx_past_cwnd == RtxPastCwnd::Any;
        PastCwnd { any, allowed: false, losers: 0, unused: 0 }
    }

    pub(super) fn reset_path(&mut self, path: PathId) {
        self.losers &= !bit_of(path);
        self.unused &= !bit_of(path);
    }

    /// Allows a packet to pass, if `is_so`.
    #[inline]
    pub(crate) fn allow_if(&mut self, is_so: bool) {
        self.allowed |= is_so;
    }

    /// Ends the permission.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.allowed = false;
    }

    /// True if a packet may pass on some path.
    #[inline]
    pub(crate) fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// True if a packet may pass on this path.
    #[inline]
    pub(crate) fn is_allowed_on(&self, path: PathId) -> bool {
        self.allowed && (self.any || self.unused & bit_of(path) != 0)
    }

    /// A fast retransmit was made because these paths lost data.
    pub(crate) fn set_losers(&mut self, losers: impl Iterator<Item = PathId>) {
        self.losers = losers.fold(0, |bits, path| bits | bit_of(path));
        self.unused = self.losers;
    }

    /// T3-rtx expired, so each of these paths may send a packet again.
    pub(crate) fn renew(&mut self) {
        self.unused = self.losers;
    }

    /// A path sent a retransmission.
    pub(crate) fn use_on(&mut self, path: PathId) {
        self.unused &= !bit_of(path);
    }
}
