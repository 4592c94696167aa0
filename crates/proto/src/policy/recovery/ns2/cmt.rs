//! ns-2's agent for CMT.

use manypath_wire::Tsn;

use super::silent::SilentPaths;
use super::{Rule, RuleSet, cmt, in_force};
use crate::params::Params;
use crate::policy::cc::Window;
use crate::policy::recovery::{Flight, LossRecovery, PathFacts, PathVerdict, Rules, Sfr, Silence};
use crate::time::Instant;
use crate::view::PathId;

/// Split fast retransmit with the rules of ns-2's agent: see [`Rule`].
#[derive(Debug)]
pub struct Ns2Cmt {
    rules: Rules,
    in_force: RuleSet,
    base: Sfr,
    silent: SilentPaths,
    cuts: Vec<Cut>,
    /// T3-rtx expired, and neither a SACK nor a HEARTBEAT ACK has arrived since.
    after_timeout: bool,
}

/// The memory of a path's cuts.
#[derive(Copy, Clone, Debug, Default)]
struct Cut {
    /// The window was cut for TSNs up to this one.
    up_to: Option<Tsn>,
    /// The highest TSN outstanding at a cut so far.
    highest: Option<Tsn>,
}

impl Ns2Cmt {
    /// With the parameters of a configuration.
    pub fn new(config: &Params) -> Ns2Cmt {
        Ns2Cmt {
            rules: cmt(config),
            in_force: in_force(config),
            base: Sfr::new(config),
            silent: SilentPaths::new(config.idle_cwnd_decay),
            cuts: Vec::new(),
            after_timeout: false,
        }
    }

    fn has(&self, rule: Rule) -> bool {
        self.in_force.contains(rule)
    }

    fn cut_of(&mut self, path: PathId) -> &mut Cut {
        if self.cuts.len() <= path.index() {
            self.cuts.resize(path.index() + 1, Cut::default());
        }
        &mut self.cuts[path.index()]
    }
}

impl LossRecovery for Ns2Cmt {
    fn rules(&self) -> Rules {
        self.rules
    }

    fn has_optional_rules(&self) -> bool {
        true
    }

    fn reset_path(&mut self, path: PathId) {
        self.base.reset_path(path);
        self.silent.set(path, None);
        *self.cut_of(path) = Cut::default();
    }

    fn share(&mut self, from: PathId, to: PathId) {
        self.base.share(from, to);
    }

    fn recovers(&self, path: PathId) -> bool {
        self.base.recovers(path)
    }

    fn recovers_anywhere(&self) -> bool {
        self.base.recovers_anywhere()
    }

    fn on_path_sack(&mut self, facts: &PathFacts, flight: &dyn Flight) -> PathVerdict {
        if !self.has(Rule::FastRtxCutsWaiting) {
            return self.base.on_path_sack(facts, flight);
        }
        // `cuts_for_waiting` cuts the window.
        let has_lost = facts.lost > 0;
        let verdict = self.base.on_path_sack(&PathFacts { lost: 0, ..*facts }, flight);
        PathVerdict { passes_cwnd: has_lost, ..verdict }
    }

    /// Cuts every path with a waiting chunk that was not cut for that TSN yet. If no new data was
    /// sent since the cut before, the agent forgets this cut, and the next fast retransmit cuts
    /// again.
    fn cuts_for_waiting(&mut self, paths: &[PathId], flight: &dyn Flight) -> Vec<PathId> {
        if !self.has(Rule::FastRtxCutsWaiting) {
            return Vec::new();
        }
        let mut cuts = Vec::new();
        for &path in paths {
            let (waiting, other) = flight.highest_sent_on(path);
            let Some(waiting) = waiting else { continue };
            let cut = self.cut_of(path);
            if cut.up_to.is_some_and(|up_to| !waiting.gt(up_to)) {
                continue;
            }
            let is_lower = |highest: Tsn| other.is_none_or(|tsn| tsn.lt(highest));
            cut.up_to = if cut.highest.is_some_and(is_lower) { None } else { other };
            cut.highest = cut.up_to.or(cut.highest);
            self.base.begin(path, flight.exit());
            cuts.push(path);
        }
        cuts
    }

    fn after_sack(&mut self, _is_fast_retransmit: bool) -> bool {
        self.after_timeout = false;
        false
    }

    fn on_path_timeout(&mut self, path: PathId) {
        if !self.has(Rule::RecoveryOutlastsTimeout) {
            self.base.on_path_timeout(path);
        }
    }

    fn after_timeout(&mut self, _has_lost: bool) {
        self.after_timeout = self.has(Rule::NoNewDataAfterTimeout);
    }

    fn on_heartbeat_ack(&mut self) {
        self.after_timeout = false;
    }

    fn holds_new_data(&self, _any_waits: bool) -> bool {
        self.after_timeout
    }

    fn on_data_sent(&mut self, path: PathId, rto_ends: Instant) {
        self.silent.set(path, Some(rto_ends));
    }

    fn decayed(&mut self, path: PathId, silence: &Silence) -> Window {
        self.silent.decayed(path, silence)
    }
}
