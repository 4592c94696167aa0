//! Fast retransmit and fast recovery of RFC 9260 §7.2.4.

use manypath_wire::Tsn;

use super::fast::FastRecovery;
use super::{Exit, Flight, LossRecovery, PathFacts, PathVerdict, Rules};
use crate::params::{Params, RtxPastCwnd};
use crate::view::PathId;

/// One fast recovery for the association. The window of a path that loses data is cut once. No
/// window grows until all data that was outstanding then is acknowledged. For one path at a time.
#[derive(Debug)]
pub struct Rfc9260 {
    rules: Rules,
    fast: FastRecovery,
    /// Every loss lets one packet pass cwnd, not only the first of a recovery.
    passes_often: bool,
}

impl Rfc9260 {
    /// With the parameters of a configuration.
    pub fn new(config: &Params) -> Rfc9260 {
        Rfc9260 {
            rules: Rules::standard(config),
            fast: FastRecovery::default(),
            passes_often: config.rtx_past_cwnd == RtxPastCwnd::Loser,
        }
    }

    /// The verdict on a path. If it cuts the window, the caller has to [`begin`](Self::begin) a
    /// recovery.
    pub(super) fn judge(&mut self, facts: &PathFacts, flight: &dyn Flight) -> PathVerdict {
        let standing = self.fast.of_association(facts, flight);
        let recovers = standing.recovers || standing.others_recover;
        let has_lost = facts.lost > 0;
        // §7.2.4 (2): cut once per fast recovery.
        let cuts = has_lost && !recovers;
        PathVerdict { recovers, cuts, passes_cwnd: cuts || has_lost && self.passes_often }
    }

    /// Begins a fast recovery.
    pub(super) fn begin(&mut self, path: PathId, exit: Exit) {
        self.fast.set(path, Some(exit));
    }

    /// True if a chunk is lost that was sent after all current fast recoveries began.
    pub(super) fn loses_beyond(&self, facts: &PathFacts) -> bool {
        let is_beyond = |tsn: Tsn| self.fast.exits().all(|exit| tsn.gt(exit.tsn));
        facts.highest_lost.is_some_and(is_beyond)
    }

    /// The TSN that ends the last of the current fast recoveries.
    pub(super) fn latest_exit(&self, flight: &dyn Flight) -> Option<Tsn> {
        let base = flight.cum_tsn_ack_point();
        self.fast.exits().map(|exit| exit.tsn).max_by_key(|tsn| tsn.distance_from(base))
    }
}

impl LossRecovery for Rfc9260 {
    fn rules(&self) -> Rules {
        self.rules
    }

    fn reset_path(&mut self, path: PathId) {
        self.fast.set(path, None);
    }

    fn share(&mut self, from: PathId, to: PathId) {
        self.fast.share(from, to);
    }

    fn recovers(&self, path: PathId) -> bool {
        self.fast.exit(path).is_some()
    }

    fn recovers_anywhere(&self) -> bool {
        self.fast.is_any()
    }

    fn on_path_sack(&mut self, facts: &PathFacts, flight: &dyn Flight) -> PathVerdict {
        let verdict = self.judge(facts, flight);
        if verdict.cuts {
            self.begin(facts.path, flight.exit());
        }
        verdict
    }

    fn on_congestion_mark(&mut self, path: PathId, flight: &dyn Flight) {
        self.begin(path, flight.exit());
    }

    fn on_path_timeout(&mut self, path: PathId) {
        self.fast.set(path, None);
    }
}
