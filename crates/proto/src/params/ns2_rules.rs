//! Rules of ns-2's agents, which releases have them, and sets of them as values.

use super::kinds::Ns2Release;

macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $rule:ident = $name:literal,)+) => {
        /// A rule of ns-2's agents that differs from RFC 9260.
        #[derive(Copy, Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Rule { $($(#[doc = $doc])+ $rule),+ }

        impl Rule {
            /// All rules.
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

    /// Both: headers of DATA chunks take room in the receive buffer, at both ends. RFC 9260 §6.2
    /// leaves it open.
    RwndCountsHeaders = "rwnd_counts_headers",
    /// Both: chunks that wait for retransmission keep their room in the peer's receive buffer,
    /// where RFC 9260 §6.2.1 (C) gives it to new data.
    RwndCountsMarked = "rwnd_counts_marked",
    /// Both: HB.interval counts from the sending of a HEARTBEAT, with the RTO of that time. The
    /// repetition of a lost HEARTBEAT replaces the next one, so a path whose RTO has backed off is
    /// seldom measured. RFC 9260 §8.3 leaves it open.
    HbIntervalFromSending = "hb_interval_from_sending",
    /// Both: a path that fails is probed at once and then every RTO. RFC 9260 §8.3 adds
    /// HB.interval.
    FailedPathsProbedAtOnce = "failed_paths_probed_at_once",
    /// Both: a packet with nothing but duplicates is acknowledged at once and also counts towards
    /// the next delayed SACK, so a lone packet after it does not wait 200 ms. Not with `dac`. RFC
    /// 9260 §6.2 leaves it open.
    SackCountsDuplicates = "sack_counts_duplicates",
    /// Both: congestion avoidance counts acknowledged bytes from the pseudo-cumack on. It counts
    /// those of the cumulative ack only if cwnd was used up. RFC 2960 §7.2.2 counts all. With `cuc`
    /// and `rfc2960` only.
    GrowthCountsUsedWindow = "growth_counts_used_window",
    /// Both: chunks acknowledged while they wait for retransmission count as in flight in the check
    /// if cwnd was used up. So cwnd grows fast after a spurious timeout.
    MarkedFillsCwnd = "marked_fills_cwnd",
    /// Both: cwnd decays for every RTO in which a path sent nothing, even with data in flight,
    /// until T3-rtx expires. It goes to `idle_cwnd_floor` even from below if it is more than two
    /// packets. RFC 9260 §7.2.1 speaks of idle paths only. It matters while a slow alternate path
    /// retransmits and the primary path is silent.
    CwndDecaysInFlight = "cwnd_decays_in_flight",
    /// Both: T3-rtx watches the lowest TSN of a path, and its retransmission restarts the timer.
    /// RFC 9260 §6.3.2 (R3) watches the chunk that was sent first.
    T3WatchesLowestTsn = "t3_watches_lowest_tsn",
    /// Both: T3-rtx of a path also runs while chunks last sent there only wait for retransmission,
    /// for example for room on a slow alternate path. RFC 9260 §6.3.2 times chunks in flight.
    T3CoversWaiting = "t3_covers_waiting",
    /// Both: an expiry of T3-rtx does not end fast recovery. cwnd grows again when all data that
    /// was outstanding at its beginning is acknowledged. RFC 9260 §7.2.4 leaves it open.
    RecoveryOutlastsTimeout = "recovery_outlasts_timeout",
    /// Both: a fast retransmit cuts windows for chunks that wait, not for those newly lost as in
    /// RFC 9260 §7.2.4. This opens a window that a timeout has collapsed to `ssthresh_floor`. The
    /// agent for CMT cuts every path with a waiting chunk that it has not cut for yet, and forgets
    /// the cut if no new data was sent since the one before. The agents for one path cut once: for
    /// the lowest waiting TSN, or during a recovery for the lowest that was sent after it began.
    FastRtxCutsWaiting = "fast_rtx_cuts_waiting",
    /// Both: chunks that wait for retransmission take room in the window of the path they were last
    /// sent on. RFC 9260 §6.1 counts chunks in flight.
    WaitingFillsCwnd = "waiting_fills_cwnd",
    /// Both: a SACK that another has overtaken revokes the chunks that it does not report. They
    /// count as in flight until the next SACK reports them again. RFC 9260 §6.2.1 (D) leaves
    /// reordering open.
    OvertakenSackRevokes = "overtaken_sack_revokes",
    /// Both: after a timeout new data waits for the next SACK or HEARTBEAT ACK. RFC 9260 §6.1 has
    /// no such rule.
    NoNewDataAfterTimeout = "no_new_data_after_timeout",

    // ---- Both agents of older releases ----

    /// Both, up to 3.6: no HEARTBEAT at the start. All paths are active when the association opens,
    /// and the RTO of an idle one is RTO.Initial until its first interval is over. RFC 9260 §5.4
    /// verifies each path.
    NoHeartbeatAtStart = "no_heartbeat_at_start",
    /// Both, up to 3.6: one interval for all paths, after which the path is probed that has been
    /// idle for longest. RFC 9260 §8.3 probes each idle path.
    HbOneAtATime = "hb_one_at_a_time",
    /// Both, 3.4: half of the interval, without jitter: RTO + 15 s.
    HbIntervalHalved = "hb_interval_halved",
    /// Both, 3.4: a lost HEARTBEAT is not repeated before the next interval is over.
    LostHbWaits = "lost_hb_waits",
    /// Both, from 3.5 on: a retransmission that becomes the lowest TSN of a path restarts its
    /// T3-rtx. With `t3_watches_lowest_tsn` only.
    LowerTsnRestartsT3 = "lower_tsn_restarts_t3",
    /// Both, 3.4: each advance of the cumulative TSN ack clears the error count of the path that
    /// its first chunk was last sent on, even if that chunk waits for retransmission. RFC 9260 §8.2
    /// asks on which path the chunk arrived.
    CumAckClearsErrors = "cum_ack_clears_errors",

    // ---- The agent for CMT ----

    /// CMT: SFR compares TSNs, as in Fig. 2 of the paper, not the order of transmission. The two
    /// differ for retransmissions.
    SfrComparesTsns = "sfr_compares_tsns",
    /// CMT: missing reports do not make a chunk lost after its retransmission at a timeout. RFC
    /// 9260 §7.2.4 (5) excludes only chunks that were fast retransmitted.
    NoFastRtxAfterTimeout = "no_fast_rtx_after_timeout",

    // ---- The agents for one path ----

    /// Single path: a SACK reports all gaps below the highest TSN acknowledged so far as missing,
    /// even if it acknowledges nothing new, and with `mfr` whatever way that went. RFC 9260 §7.2.4
    /// takes the highest newly acknowledged.
    ReportsByHighestSoFar = "reports_by_highest_so_far",
    /// Single path: missing reports count even for chunks that wait after a timeout. Enough of them
    /// begin a fast retransmit, which opens the window.
    WaitingCountsReports = "waiting_counts_reports",
    /// Single path: a fast retransmit of a chunk that was sent after fast recovery began cuts the
    /// window again, though the recovery goes on. It matters while a retransmission takes a slow
    /// alternate path.
    NewLossesCutAgain = "new_losses_cut_again",
    /// Single path: a timeout while cwnd is one packet, so one after another, leaves ssthresh as it
    /// is. RFC 9260 §7.2.3 sets it at each timeout.
    RepeatedTimeoutKeepsSsthresh = "repeated_timeout_keeps_ssthresh",
    /// Single path: retransmissions wait for the next SACK, except for the one packet that passes
    /// cwnd. RFC 9260 §6.3.3 (E3) sends as much as cwnd allows.
    RtxWaitsForSack = "rtx_waits_for_sack",
    /// Single path: new data waits until no chunk of any path waits for retransmission. RFC 9260
    /// §6.1 (C) sends as much as cwnd allows.
    NewDataWaitsForRtx = "new_data_waits_for_rtx",
    /// Agent for one path, 3.4: each fast retransmit cuts the window of every path that a waiting
    /// chunk was last sent on, and windows grow meanwhile. RFC 9260 §7.2.4 cuts once in a fast
    /// recovery.
    EachFastRtxCuts = "each_fast_rtx_cuts",
    /// Single path, with `har`: a timeout cuts ssthresh to at least two packets. The agents without
    /// a heartbeat after each timeout have RFC 4960's four packets from release 3.8 on.
    HarLowersFloor = "har_lowers_floor",
}

impl Rule {
    /// True if the agents of that release have the rule.
    pub fn is_in(self, release: Ns2Release) -> bool {
        match self {
            Rule::NoHeartbeatAtStart | Rule::HbOneAtATime => release <= Ns2Release::R36,
            Rule::HbIntervalHalved
            | Rule::LostHbWaits
            | Rule::CumAckClearsErrors
            | Rule::EachFastRtxCuts => release <= Ns2Release::R34,
            Rule::LowerTsnRestartsT3 => release >= Ns2Release::R35,
            _ => true,
        }
    }
}

/// A set of rules. Its text is "none" or the names, separated by commas.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet(u64);

impl RuleSet {
    /// No rule.
    pub const NONE: RuleSet = RuleSet(0);

    /// The rules of a release, without some.
    pub(crate) fn of_release(release: Ns2Release, without: RuleSet) -> RuleSet {
        let holds = |rule: &&Rule| rule.is_in(release) && !without.contains(**rule);
        let bits = Rule::ALL.iter().filter(holds).map(|rule| 1 << *rule as u32);
        RuleSet(bits.fold(0, |set, bit: u64| set | bit))
    }

    /// True if the set contains a rule.
    pub const fn contains(self, rule: Rule) -> bool {
        self.0 & (1 << rule as u32) != 0
    }

    /// The set with these names, or `None` if a name is unknown.
    pub fn from_names(text: &str) -> Option<RuleSet> {
        let rule = |name: &str| Rule::ALL.iter().find(|rule| rule.name() == name.trim());
        match text {
            "none" => Some(RuleSet::NONE),
            _ => text.split(',').try_fold(RuleSet::NONE, |set, name| {
                rule(name).map(|rule| RuleSet(set.0 | (1 << *rule as u32)))
            }),
        }
    }

    /// The text that [`from_names`](Self::from_names) reads.
    pub fn names(self) -> String {
        let names = Rule::ALL.iter().filter(|rule| self.contains(**rule));
        let names: Vec<_> = names.map(|rule| rule.name()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }
}
