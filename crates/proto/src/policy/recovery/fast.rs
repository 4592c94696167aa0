//! The fast recovery of each path (RFC 9260 §7.2.4).

use super::{Exit, Flight, PathFacts};
use crate::view::PathId;

/// The fast recoveries of an association's paths.
#[derive(Debug, Default)]
pub(super) struct FastRecovery {
    exits: Vec<Option<Exit>>,
}

/// The recovery of a path after a SACK, before any window is cut.
#[derive(Copy, Clone, Debug)]
pub(super) struct Standing {
    /// The path is in fast recovery.
    pub(super) recovers: bool,
    /// Another path is in fast recovery, and its recovery is that of the whole association.
    pub(super) others_recover: bool,
    /// The lost chunks were sent before the last cut.
    pub(super) was_cut_for: bool,
}

impl FastRecovery {
    pub(super) fn exit(&self, path: PathId) -> Option<Exit> {
        self.exits.get(path.index()).copied().flatten()
    }

    pub(super) fn set(&mut self, path: PathId, exit: Option<Exit>) {
        if self.exits.len() <= path.index() {
            self.exits.resize(path.index() + 1, None);
        }
        self.exits[path.index()] = exit;
    }

    /// All paths share one window, so they recover together.
    pub(super) fn share(&mut self, from: PathId, to: PathId) {
        self.set(to, self.exit(from));
    }

    pub(super) fn is_any(&self) -> bool {
        self.exits.iter().any(Option::is_some)
    }

    /// The exits of all paths in recovery.
    pub(super) fn exits(&self) -> impl Iterator<Item = Exit> + '_ {
        self.exits.iter().copied().flatten()
    }

    /// Ends the recovery of a path if the cumulative ack has reached its exit. RFC 9260 §7.2.4 has
    /// one fast recovery per association, so a path also recovers while another does.
    pub(super) fn of_association(&mut self, facts: &PathFacts, flight: &dyn Flight) -> Standing {
        let cum = flight.cum_tsn_ack_point();
        let own = facts.path.index();
        let goes_on = |exit: &Exit| !cum.ge(exit.tsn);
        let mut others = self.exits.iter().enumerate().filter(|(i, _)| *i != own);
        let others_recover = (facts.grows || facts.lost > 0)
            && others.any(|(_, exit)| exit.as_ref().is_some_and(goes_on));
        let recovers = self.exit(facts.path).filter(goes_on);
        if self.exit(facts.path) != recovers {
            self.set(facts.path, None);
        }
        Standing { recovers: recovers.is_some(), others_recover, was_cut_for: false }
    }

    /// Ends the recovery of a path if the cumulative ack has reached its exit, or if nothing sent
    /// before it began is in flight there. The latter does not hold for a path that `shares` its
    /// window with the others.
    ///
    /// The last cut was also for chunks that were sent before it and are lost now, even if this
    /// SACK ends the recovery: chunks sent after the cut show that the last ones of the window are
    /// missing.
    pub(super) fn of_path(
        &mut self,
        facts: &PathFacts,
        flight: &dyn Flight,
        shares: bool,
    ) -> Standing {
        let Some(exit) = self.exit(facts.path) else {
            return Standing { recovers: false, others_recover: false, was_cut_for: false };
        };
        let was_cut_for = facts.latest_lost <= Some(exit.order);
        let is_left = flight.cum_tsn_ack_point().ge(exit.tsn);
        let earliest = flight.earliest_order(facts.path);
        let recovers =
            !is_left && (shares || earliest.is_some_and(|earliest| earliest <= exit.order));
        if !recovers {
            self.set(facts.path, None);
        }
        Standing { recovers, others_recover: false, was_cut_for }
    }
}
