//! ns-2's agents for one path at a time, with the retransmission policies and their extensions.

use super::silent::SilentPaths;
use super::{Rule, RuleSet, in_force, single};
use crate::params::Params;
use crate::policy::cc::{Limits, Window};
use crate::policy::recovery::{
    Flight, LossRecovery, PathFacts, PathVerdict, Rfc9260, Rules, Silence,
};
use crate::time::Instant;
use crate::view::PathId;

/// One fast recovery for the association with the rules of ns-2's agents: see [`Rule`].
#[derive(Debug)]
pub struct Ns2Single {
    rules: Rules,
    in_force: RuleSet,
    base: Rfc9260,
    silent: SilentPaths,
    /// The agent sends a heartbeat after each timeout.
    har: bool,
    /// T3-rtx expired, and neither a SACK nor a HEARTBEAT ACK has arrived since.
    after_timeout: bool,
    /// No SACK has arrived since the last loss, so retransmissions wait.
    rtx_waits: bool,
}

impl Ns2Single {
    /// With the parameters of a configuration.
    pub fn new(config: &Params) -> Ns2Single {
        Ns2Single {
            rules: single(config),
            in_force: in_force(config),
            base: Rfc9260::new(config),
            silent: SilentPaths::new(config.idle_cwnd_decay),
            har: config.har,
            after_timeout: false,
            rtx_waits: false,
        }
    }

    fn has(&self, rule: Rule) -> bool {
        self.in_force.contains(rule)
    }
}

impl LossRecovery for Ns2Single {
    fn rules(&self) -> Rules {
        self.rules
    }

    fn has_optional_rules(&self) -> bool {
        true
    }

    fn reset_path(&mut self, path: PathId) {
        self.base.reset_path(path);
        self.silent.set(path, None);
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
        if self.has(Rule::EachFastRtxCuts) {
            // `cuts_for_waiting` cuts the window, and there is no recovery.
            return PathVerdict { recovers: false, cuts: false, passes_cwnd: facts.lost > 0 };
        }
        if self.has(Rule::FastRtxCutsWaiting) {
            // `cuts_for_waiting` cuts the window.
            let verdict = self.base.judge(facts, flight);
            return PathVerdict { cuts: false, passes_cwnd: facts.lost > 0, ..verdict };
        }
        let cuts_again = self.has(Rule::NewLossesCutAgain) && self.base.loses_beyond(facts);
        let mut verdict = self.base.judge(facts, flight);
        verdict.cuts |= cuts_again;
        if verdict.cuts {
            verdict.passes_cwnd = true;
            self.base.begin(facts.path, flight.exit());
        }
        verdict
    }

    /// Cuts one path: that of the lowest waiting TSN, or during a fast recovery of the lowest that
    /// was sent after it began. Before release 3.5: every path with a waiting chunk.
    fn cuts_for_waiting(&mut self, paths: &[PathId], flight: &dyn Flight) -> Vec<PathId> {
        if self.has(Rule::EachFastRtxCuts) {
            let waits = |path: &PathId| flight.highest_sent_on(*path).0.is_some();
            return paths.iter().copied().filter(waits).collect();
        }
        if !self.has(Rule::FastRtxCutsWaiting) {
            return Vec::new();
        }
        let under_way = self.base.latest_exit(flight);
        if under_way.is_some() && !self.has(Rule::NewLossesCutAgain) {
            return Vec::new();
        }
        let path = flight.lowest_waiting_beyond(under_way).filter(|path| paths.contains(path));
        if let Some(path) = path {
            self.base.begin(path, flight.exit());
        }
        path.into_iter().collect()
    }

    fn after_sack(&mut self, is_fast_retransmit: bool) -> bool {
        self.after_timeout = false;
        self.rtx_waits = is_fast_retransmit && self.has(Rule::RtxWaitsForSack);
        self.rtx_waits
    }

    fn timeout_limits(&self, window: &Window, limits: Limits) -> Option<Limits> {
        if window.cwnd <= limits.packet && self.has(Rule::RepeatedTimeoutKeepsSsthresh) {
            return None;
        }
        let is_lower = self.har && self.has(Rule::HarLowersFloor);
        let ssthresh_floor = if is_lower { 2 * limits.packet } else { limits.ssthresh_floor };
        Some(Limits { ssthresh_floor, ..limits })
    }

    fn on_path_timeout(&mut self, path: PathId) {
        if !self.has(Rule::RecoveryOutlastsTimeout) {
            self.base.on_path_timeout(path);
        }
    }

    fn after_timeout(&mut self, has_lost: bool) {
        self.after_timeout = self.has(Rule::NoNewDataAfterTimeout);
        self.rtx_waits |= has_lost && self.has(Rule::RtxWaitsForSack);
    }

    fn on_heartbeat_ack(&mut self) {
        self.after_timeout = false;
    }

    fn on_path_back(&mut self) {
        self.rtx_waits = false;
    }

    fn holds_new_data(&self, any_waits: bool) -> bool {
        self.after_timeout || any_waits && self.has(Rule::NewDataWaitsForRtx)
    }

    fn holds_retransmissions(&self) -> bool {
        self.rtx_waits
    }

    fn on_data_sent(&mut self, path: PathId, rto_ends: Instant) {
        self.silent.set(path, Some(rto_ends));
    }

    fn decayed(&mut self, path: PathId, silence: &Silence) -> Window {
        self.silent.decayed(path, silence)
    }
}
