//! The agents of ns-2's SCTP module (University of Delaware, releases 3.5 to 3.8; the last is that
//! of ns-2 2.35).
//!
//! The papers' results were made with them, so results can be compared only if these rules are
//! repeated. They are two programs, which differ from RFC 2960 and from each other: one for one
//! path with the retransmission policies ([`Ns2Single`]), one for CMT ([`Ns2Cmt`]). [`Rule`] says
//! what they do otherwise, rule by rule. How the rules were found is in
//! `experiments/001-rtx/README.md` and `experiments/002-cmt/cmt-fig11a/README.md`; tests `ns2.rs`
//! and `ns2_one_path.rs` of the simulator hold transfers to ns-2's times.
//!
//! The releases differ in constants only, which the profiles `ns2` and `ns2-3.5` set: from 3.7 on
//! no data is sent before every path has answered a HEARTBEAT, and from 3.8 on windows begin and
//! end as in RFC 4960.

mod cmt;
mod silent;
mod single;

pub use cmt::Ns2Cmt;
pub use single::Ns2Single;

use super::{Rules, SfrCompares, T3Watches};
use crate::config::Config;

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $rule:ident = $name:literal,)+) => {
        /// A rule of ns-2's agents that is not RFC 9260's.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        pub enum Rule { $($(#[doc = $doc])+ $rule),+ }

        impl Rule {
            /// All of them.
            pub const ALL: &'static [Rule] = &[$(Rule::$rule),+];

            /// Name in `recovery_without`.
            pub const fn name(self) -> &'static str {
                match self { $(Rule::$rule => $name),+ }
            }
        }
    };
}

rules! {
    // ---- Both agents ----

    /// Both: headers of DATA chunks take room in the receive buffer, as both ends see it. RFC 9260
    /// §6.2 leaves it open.
    RwndCountsHeaders = "rwnd_counts_headers",
    /// Both: chunks that wait for retransmission keep their room in the peer's receive buffer,
    /// where RFC 9260 §6.2.1 (C) gives it to new data.
    RwndCountsMarked = "rwnd_counts_marked",
    /// Both: HB.interval counts from when a HEARTBEAT is sent, with the RTO of then, and a repeated
    /// one takes the place of the next. A path whose RTO has backed off is measured seldom. RFC
    /// 9260 §8.3 leaves it open.
    HbIntervalFromSending = "hb_interval_from_sending",
    /// Both: a path that fails is probed at once and then each RTO. RFC 9260 §8.3 adds HB.interval.
    FailedPathsProbedAtOnce = "failed_paths_probed_at_once",
    /// Both: a packet of duplicates only, acknowledged at once, also counts towards the next
    /// delayed SACK: the lone packet after it need not wait 200 ms. Not with `dac`. RFC 9260 §6.2
    /// leaves it open.
    SackCountsDuplicates = "sack_counts_duplicates",
    /// Both: congestion avoidance counts acknowledged bytes from the pseudo-cumack on, and those of
    /// the cumulative ack only while cwnd was used up. RFC 2960 §7.2.2 counts all. With `cuc` and
    /// `rfc2960` only.
    GrowthCountsUsedWindow = "growth_counts_used_window",
    /// Both: chunks acknowledged while they wait for retransmission count as in flight when it is
    /// judged if cwnd was used up. cwnd grows fast after a timeout that nothing was lost for.
    MarkedFillsCwnd = "marked_fills_cwnd",
    /// Both: cwnd decays for every RTO in which a path sent nothing, though data is in flight
    /// there, until T3-rtx expires; and to `idle_cwnd_floor` even from below, if it is more than
    /// two packets. RFC 9260 §7.2.1 speaks of idle paths. The primary path is silent while a slow
    /// alternate retransmits.
    CwndDecaysInFlight = "cwnd_decays_in_flight",
    /// Both: T3-rtx watches the lowest TSN of a path, whenever that was sent, and its
    /// retransmission starts the timer anew. RFC 9260 §6.3.2 (R3) watches what was sent first.
    T3WatchesLowestTsn = "t3_watches_lowest_tsn",
    /// Both: T3-rtx of a path runs, and expires, also while chunks last sent there only wait for
    /// retransmission, as they do for room on a slow alternate path. RFC 9260 §6.3.2 times what is
    /// in flight.
    T3CoversWaiting = "t3_covers_waiting",
    /// Both: an expiry of T3-rtx does not end fast recovery: cwnd grows again when all that was
    /// outstanding at its beginning is acknowledged. RFC 9260 §7.2.4 leaves it open.
    RecoveryOutlastsTimeout = "recovery_outlasts_timeout",
    /// Both: a fast retransmit cuts windows for chunks that wait, not for those newly lost (RFC
    /// 9260 §7.2.4). By it the window that a timeout has collapsed opens to `ssthresh_floor`. The
    /// agent for CMT cuts every path with a waiting chunk that was not cut for yet, and forgets the
    /// cut if no new data was sent since the one before. That for one path cuts once: for the
    /// lowest TSN that waits and was sent after the recovery under way began.
    FastRtxCutsWaiting = "fast_rtx_cuts_waiting",
    /// Both: chunks that wait for retransmission keep new data from the path they were last sent
    /// on. RFC 9260 §6.1 counts what is in flight.
    WaitingFillsCwnd = "waiting_fills_cwnd",
    /// Both: a SACK that another has overtaken takes back what it does not report; those chunks
    /// count as in flight until the next SACK reports them anew. RFC 9260 §6.2.1 (D) leaves
    /// reordering open.
    OvertakenSackRevokes = "overtaken_sack_revokes",
    /// Both: a timeout lets no new data leave before the next SACK or HEARTBEAT ACK. RFC 9260 §6.1
    /// has none.
    NoNewDataAfterTimeout = "no_new_data_after_timeout",

    // ---- The agent for CMT ----

    /// CMT: SFR compares TSNs, as the paper's Fig. 2, rather than the order of transmission.
    /// Retransmissions have a low TSN and are sent late.
    SfrComparesTsns = "sfr_compares_tsns",
    /// CMT: missing reports do not make a chunk lost that was sent again after a timeout. RFC 9260
    /// §7.2.4 (5) speaks of chunks that were fast retransmitted.
    NoFastRtxAfterTimeout = "no_fast_rtx_after_timeout",

    // ---- The agents for one path ----

    /// One path: a SACK reports everything missing below the highest TSN acknowledged so far, also
    /// if it acknowledges nothing new. RFC 9260 §7.2.4 takes the highest newly acknowledged.
    ReportsByHighestSoFar = "reports_by_highest_so_far",
    /// One path: missing reports count for chunks, too, that a timeout has marked and that wait to
    /// be sent again: so many as make a chunk lost begin a fast retransmit, by which the window
    /// opens.
    WaitingCountsReports = "waiting_counts_reports",
    /// One path: a fast retransmit of a chunk beyond those that were sent when fast recovery began
    /// cuts the window again, though the recovery goes on: it does while a retransmission is on its
    /// way over a slow alternate.
    NewLossesCutAgain = "new_losses_cut_again",
    /// One path: of timeouts in a row, that is while cwnd is one packet, only the first sets
    /// ssthresh. RFC 9260 §7.2.3 sets it at each.
    RepeatedTimeoutKeepsSsthresh = "repeated_timeout_keeps_ssthresh",
    /// One path: retransmissions beyond the one packet that passes cwnd wait for the next SACK. RFC
    /// 9260 §6.3.3 (E3) sends what cwnd allows.
    RtxWaitsForSack = "rtx_waits_for_sack",
    /// One path: new data waits until nothing waits for retransmission, on whatever path. RFC 9260
    /// §6.1 (C) sends what cwnd allows.
    NewDataWaitsForRtx = "new_data_waits_for_rtx",
    /// One path, with `har`: a timeout cuts ssthresh to two packets at least, where the agents
    /// without a heartbeat after each timeout have taken RFC 4960's four from release 3.8 on.
    HarLowersFloor = "har_lowers_floor",
}

/// Some of the rules; as a parameter "none", or their names with commas between.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet(u32);

impl RuleSet {
    /// No rule.
    pub const NONE: RuleSet = RuleSet(0);

    /// Whether a rule is among them.
    pub const fn contains(self, rule: Rule) -> bool {
        self.0 & (1 << rule as u32) != 0
    }

    /// The set with these names; `None` if one is no rule's.
    pub fn from_names(text: &str) -> Option<RuleSet> {
        let rule = |name: &str| Rule::ALL.iter().find(|rule| rule.name() == name.trim());
        match text {
            "none" => Some(RuleSet::NONE),
            _ => text.split(',').try_fold(RuleSet::NONE, |set, name| {
                rule(name).map(|rule| RuleSet(set.0 | (1 << *rule as u32)))
            }),
        }
    }

    /// What [`from_names`](Self::from_names) reads.
    pub fn names(self) -> String {
        let names = Rule::ALL.iter().filter(|rule| self.contains(**rule));
        let names: Vec<_> = names.map(|rule| rule.name()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }
}

/// The rules of both agents, less those that the configuration leaves out.
fn common(config: &Config) -> Rules {
    let has = |rule| !config.recovery_without.contains(rule);
    let mut rules = Rules::standard(config);
    rules.room.of_headers = has(Rule::RwndCountsHeaders);
    rules.room.of_waiting = has(Rule::RwndCountsMarked);
    rules.heartbeats.from_sending = has(Rule::HbIntervalFromSending);
    rules.heartbeats.failed_at_once = has(Rule::FailedPathsProbedAtOnce);
    rules.duplicates_count = has(Rule::SackCountsDuplicates);
    rules.growth_needs_used_window = has(Rule::GrowthCountsUsedWindow);
    rules.sacks.waiting_used_cwnd = has(Rule::MarkedFillsCwnd);
    rules.decays_in_silence = has(Rule::CwndDecaysInFlight);
    if has(Rule::T3WatchesLowestTsn) {
        rules.t3.watches = T3Watches::LowestTsn;
    }
    rules.t3.covers_waiting = has(Rule::T3CoversWaiting);
    rules.waiting_takes_cwnd = has(Rule::WaitingFillsCwnd);
    rules.sacks.overtaken_revokes = has(Rule::OvertakenSackRevokes);
    rules.holds_data = true;
    rules
}

/// Those of the agent for CMT.
fn cmt(config: &Config) -> Rules {
    let has = |rule| !config.recovery_without.contains(rule);
    let mut rules = common(config);
    if has(Rule::SfrComparesTsns) {
        rules.sacks.compares = SfrCompares::Tsn;
    }
    rules.sacks.reports_after_timeout = !has(Rule::NoFastRtxAfterTimeout);
    rules
}

/// Those of the agents for one path.
fn single(config: &Config) -> Rules {
    let has = |rule| !config.recovery_without.contains(rule);
    let mut rules = common(config);
    rules.sacks.highest_stays = has(Rule::ReportsByHighestSoFar);
    rules.sacks.waiting_is_reported = has(Rule::WaitingCountsReports);
    rules
}
