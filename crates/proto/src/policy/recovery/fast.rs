//! Fast recovery (RFC 9260 §7.2.4): where that of each path ends.

use manypath_wire::Tsn;

use super::{Flight, PathFacts};
use crate::path::PathId;

/// Where a fast recovery ends: what was outstanding when it began.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The highest TSN.
    pub tsn: Tsn,
    /// The latest transmission: a path that recovers on its own is not held back by what other
    /// paths lost.
    pub order: u64,
}

/// The fast recoveries of an association's paths.
#[derive(Debug, Default)]
pub(super) struct FastRecovery {
    exits: Vec<Option<Exit>>,
}

/// How a path stands after a SACK, before anything is cut.
#[derive(Copy, Clone, Debug)]
pub(super) struct Standing {
    /// It is in fast recovery.
    pub(super) recovers: bool,
    /// So is another path, whose recovery is of the whole association.
    pub(super) others_recover: bool,
    /// What is lost was sent before the last cut.
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

    /// One window for all paths recovers with all of them.
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

    /// Ends the recovery of a path that the cumulative ack has left behind. RFC 9260 §7.2.4: fast
    /// recovery is of the association, so the path also recovers while another does.
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

    /// Ends the recovery of a path if nothing is in flight there that was sent before it began,
    /// unless it `shares` its window with the others; or if the cumulative ack has left it behind.
    ///
    /// What was sent before the last cut is part of what it was for, even if this SACK ends the
    /// recovery: the last chunks of a window are found missing by those sent after the cut.
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
