//! Split fast retransmit (CMT paper, section III-A): each path recovers on its own.

use super::fast::FastRecovery;
use super::{Exit, Flight, LossRecovery, PathFacts, PathVerdict, Rules};
use crate::params::{Params, RtxPastCwnd};
use crate::view::PathId;

/// One fast recovery for each path. It ends when nothing sent before it began is in flight there,
/// even if other paths hold back the cumulative TSN ack. For several paths at once.
#[derive(Debug)]
pub struct Sfr {
    rules: Rules,
    fast: FastRecovery,
    /// Every loss lets one packet pass cwnd, not only the first of a recovery.
    passes_often: bool,
    /// Losses of chunks sent before a cut never cut the window again (`cut_once_per_flight`).
    cuts_once: bool,
    /// A timeout is a cut, too: losses of chunks sent before it do not cut the window again.
    counts_timeouts: bool,
    /// All paths have one window (`combined_window`).
    shares: bool,
}

impl Sfr {
    /// With the parameters of a configuration.
    pub fn new(config: &Params) -> Sfr {
        Sfr {
            rules: Rules::standard(config),
            fast: FastRecovery::default(),
            passes_often: config.rtx_past_cwnd == RtxPastCwnd::Loser,
            cuts_once: config.cut_once_per_flight,
            counts_timeouts: false,
            shares: config.combined_window,
        }
    }

    /// After a timeout the whole flight counts as lost, and the window is cut for that. What is
    /// found missing of it later does not cut the window again (RFC 6582 §3.2, step 4).
    pub(super) fn with_timeouts_as_cuts(self) -> Sfr {
        Sfr { counts_timeouts: true, ..self }
    }

    /// Begins a fast recovery.
    pub(super) fn begin(&mut self, path: PathId, exit: Exit) {
        self.fast.set(path, Some(exit));
    }
}

impl LossRecovery for Sfr {
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
        let standing = self.fast.of_path(facts, flight, self.shares);
        let has_lost = facts.lost > 0;
        let was_cut_for = self.cuts_once && standing.was_cut_for
            || self.counts_timeouts && facts.latest_lost <= facts.timed_out;
        let cuts = has_lost && !standing.recovers && !was_cut_for;
        if cuts {
            self.begin(facts.path, flight.exit());
        }
        let passes_cwnd = cuts || has_lost && self.passes_often;
        PathVerdict { recovers: standing.recovers, cuts, passes_cwnd }
    }

    fn on_congestion_mark(&mut self, path: PathId, flight: &dyn Flight) {
        self.begin(path, flight.exit());
    }

    fn on_path_timeout(&mut self, path: PathId) {
        self.fast.set(path, None);
    }

    fn on_spurious_losses(&mut self, path: PathId) {
        self.fast.set(path, None);
    }
}
