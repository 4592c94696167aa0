//! The agents of ns-2's SCTP module (University of Delaware, releases 3.4 to 3.8; the last is that
//! of ns-2 2.35).
//!
//! The papers' results come from these agents, so a comparison needs their rules. There are two
//! programs, which differ from RFC 2960 and from each other: one for a single path with the
//! retransmission policies ([`Ns2Single`]), one for CMT ([`Ns2Cmt`]). [`Rule`] lists the
//! differences. `experiments/001-rtx/README.md` and `experiments/002-cmt/cmt-fig11a/README.md`
//! tell how the rules were found. The simulator's tests `ns2.rs` and `ns2_one_path.rs` compare
//! transfer times with those of ns-2.
//!
//! `ns2_release` says which release's rules hold ([`Rule::is_in`]). Constants that differ are
//! parameters, which the profiles `ns2-3.4` to `ns2-3.7` and `ns2` set: from 3.7 on no data is sent
//! before every path has answered a HEARTBEAT (`verify_all_paths_first`), and from 3.8 on the
//! limits of windows are those of RFC 4960. `experiments/RELEASES.md` compares each profile with
//! its release.

mod cmt;
mod silent;
mod single;

pub use cmt::Ns2Cmt;
pub use single::Ns2Single;

use super::{Rules, SfrCompares, T3Watches};
use crate::params::Params;
pub use crate::params::{Rule, RuleSet};

/// The rules of the release in a configuration, without those that it leaves out.
fn in_force(params: &Params) -> RuleSet {
    RuleSet::of_release(params.ns2_release, params.recovery_without)
}

/// The rules of both agents, without those that the configuration leaves out.
fn common(params: &Params) -> Rules {
    let rules_in_force = in_force(params);
    let has = |rule| rules_in_force.contains(rule);
    let mut rules = Rules::standard(params);
    rules.room.of_headers = has(Rule::RwndCountsHeaders);
    rules.room.of_waiting = has(Rule::RwndCountsMarked);
    rules.heartbeats.from_sending = has(Rule::HbIntervalFromSending);
    rules.heartbeats.failed_at_once = has(Rule::FailedPathsProbedAtOnce);
    rules.heartbeats.none_at_start = has(Rule::NoHeartbeatAtStart);
    rules.heartbeats.one_at_a_time = has(Rule::HbOneAtATime);
    rules.heartbeats.halved = has(Rule::HbIntervalHalved);
    rules.heartbeats.repeated_at_once = !has(Rule::LostHbWaits);
    rules.duplicates_count = has(Rule::SackCountsDuplicates);
    rules.growth_needs_used_window = has(Rule::GrowthCountsUsedWindow);
    rules.sacks.waiting_used_cwnd = has(Rule::MarkedFillsCwnd);
    rules.decays_in_silence = has(Rule::CwndDecaysInFlight);
    if has(Rule::T3WatchesLowestTsn) {
        rules.t3.watches = T3Watches::LowestTsn;
        rules.t3.restarts_for_lower = has(Rule::LowerTsnRestartsT3);
    }
    rules.sacks.cum_ack_clears_errors = has(Rule::CumAckClearsErrors);
    rules.t3.covers_waiting = has(Rule::T3CoversWaiting);
    rules.waiting_takes_cwnd = has(Rule::WaitingFillsCwnd);
    rules.sacks.overtaken_revokes = has(Rule::OvertakenSackRevokes);
    rules.holds_data = true;
    rules
}

/// The rules of the agent for CMT.
fn cmt(params: &Params) -> Rules {
    let rules_in_force = in_force(params);
    let has = |rule| rules_in_force.contains(rule);
    let mut rules = common(params);
    if has(Rule::SfrComparesTsns) {
        rules.sacks.compares = SfrCompares::Tsn;
    }
    rules.sacks.reports_after_timeout = !has(Rule::NoFastRtxAfterTimeout);
    rules
}

/// The rules of the agents for one path.
fn single(params: &Params) -> Rules {
    let rules_in_force = in_force(params);
    let has = |rule| rules_in_force.contains(rule);
    let mut rules = common(params);
    rules.sacks.highest_stays = has(Rule::ReportsByHighestSoFar);
    rules.sacks.mfr_on_one_path = !rules.sacks.highest_stays;
    rules.sacks.waiting_is_reported = has(Rule::WaitingCountsReports);
    rules
}
