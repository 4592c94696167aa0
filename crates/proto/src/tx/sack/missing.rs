//! Which chunks a SACK makes lost: missing reports, by path and over all paths.

use manypath_wire::Tsn;

use super::digest::{AckRules, LostChunk, PathDigest, SackDigest};
use crate::policy::recovery::{SackRules, SfrCompares};
use crate::policy::rtx::LossCause;
use crate::tx::outstanding::Outstanding;
use crate::tx::outstanding::ranges::TsnRange;
use crate::tx::outstanding::ring::{Sent, TsnState};

impl Outstanding {
    /// SFR with DAC (CMT paper, Figs. 2 and 4): a chunk gets a missing report only from chunks that
    /// were sent later on its own path.
    ///
    /// The paper compares TSNs. We compare the order of transmission. Both are the same for chunks
    /// sent once, but only the order is right for retransmissions: a chunk sent before a
    /// retransmission proves nothing about it. So MFR needs no stored state to detect a lost
    /// retransmission.
    pub(super) fn split_fast_retransmit(
        &mut self,
        rules: &AckRules<'_>,
        packets: u8,
        digest: &mut SackDigest,
    ) {
        let rules = &rules.by.sacks;
        let counts = |p: &&PathDigest| match rules.compares {
            SfrCompares::Tsn => p.highest_gap.is_some(),
            SfrCompares::Order => p.newly_acked_bytes > 0,
        };
        let one_path = digest.paths.iter().filter(counts).count() == 1;
        for (i, p) in digest.paths.iter_mut().enumerate() {
            // In most cases nothing was acknowledged that could report other chunks missing.
            let says_nothing = match rules.compares {
                SfrCompares::Tsn => p.highest_gap.is_none(),
                SfrCompares::Order => p.latest.is_none(),
            };
            if says_nothing {
                continue;
            }
            let mut at = self.queues[i].flight.head();
            while let Some(tsn) = at {
                let Some(sent) = self.get(tsn) else { break };
                at = sent.next;
                let is_below = match rules.compares {
                    SfrCompares::Tsn => p.highest_gap.is_some_and(|h| tsn.lt(h)),
                    SfrCompares::Order => p.latest.is_some_and(|latest| sent.order < latest),
                };
                if !is_below {
                    // Only retransmitted and revoked chunks are not in the order of TSNs.
                    let in_order = sent.transmissions == 1 && !rules.overtaken_revokes;
                    if rules.compares == SfrCompares::Tsn && !in_order {
                        continue;
                    }
                    break;
                }
                let all_above = p.lowest.is_some_and(|l| l.gt(tsn));
                let reports = if one_path && all_above { packets } else { 1 };
                let may_be_lost = (rules.mfr || !sent.fast_retransmitted)
                    && (rules.reports_after_timeout || sent.transmissions == 1);
                let lost = LostChunk { order: sent.order, size: sent.size() };
                let len = sent.packet_len;
                if may_be_lost && self.report_missing(tsn, reports, rules) {
                    p.note_lost(tsn, lost, len);
                }
            }
        }
    }

    /// RFC 9260 §7.2.4: every chunk below the highest TSN newly acknowledged gets a missing report,
    /// whatever path it was sent on; in fast recovery, every missing one if the cumulative ack
    /// moved.
    ///
    /// With MFR a fast-retransmitted chunk gets a report only if a newly acknowledged TSN was first
    /// sent after that fast retransmit: chunks in flight at that time prove nothing about it. With
    /// `mfr_on_one_path` a chunk on another path does not count either. Otherwise data on a working
    /// path would draw retransmissions on a dead path, whose T3-rtx would never expire.
    pub(super) fn fast_retransmit(&mut self, rules: &AckRules<'_>, digest: &mut SackDigest) {
        let in_recovery = rules.in_fast_recovery && digest.cum_advanced;
        let rules = &rules.by.sacks;
        let newest = if rules.highest_stays {
            self.newest.filter(|_| digest.reported.last().is_some())
        } else {
            digest.highest_newly_acked
        };
        let highest = if in_recovery { digest.reported.last() } else { newest };
        let Some(highest) = highest.filter(|h| h.gt(self.ring.base())) else { return };
        let mut tsn = self.ring.base();
        let mut number = 0;
        while tsn.lt(highest) {
            let gap = self.acked.get(number).unwrap_or(TsnRange { first: highest, last: highest });
            number += 1;
            while tsn.lt(gap.first) && tsn.lt(highest) {
                let last_sent = self
                    .get(tsn)
                    .map(|s| (s.path, LostChunk { order: s.order, size: s.size() }, s.packet_len));
                let newer = |s: &Sent| Newer {
                    newest,
                    on_its_path: digest.paths[s.path.index()].latest_sent,
                };
                if self.get(tsn).is_some_and(|s| may_be_lost(s, rules, newer(s)))
                    && self.report_missing(tsn, 1, rules)
                    && let Some((path, lost, len)) = last_sent
                {
                    let p = &mut digest.paths[path.index()];
                    p.note_lost(tsn, lost, len);
                }
                tsn = tsn.next();
            }
            tsn = gap.last.next();
        }
    }

    /// Counts missing reports for a chunk in flight; returns true if they make it lost now.
    pub(super) fn report_missing(&mut self, tsn: Tsn, reports: u8, rules: &SackRules) -> bool {
        let Some(sent) = self.get_mut(tsn) else { return false };
        let waits = sent.state == TsnState::Marked;
        if !sent.is_awaited() || waits && !rules.waiting_is_reported {
            return false;
        }
        sent.missing_reports = sent.missing_reports.saturating_add(reports);
        sent.missing_reports >= rules.missing_reports && self.lose(tsn)
    }

    /// Takes a chunk for lost that is in flight or waits for retransmission. Always returns true.
    pub(crate) fn lose(&mut self, tsn: Tsn) -> bool {
        let highest_sent = self.highest_tsn();
        let Some(sent) = self.get_mut(tsn) else { return false };
        let waits = sent.state == TsnState::Marked;
        let has_copy = sent.also_on.is_some();
        if !waits {
            self.note_loss(tsn, LossCause::FastRetransmit);
        }
        if has_copy && self.goes_on_elsewhere(tsn) {
            return true;
        }
        let Some(sent) = self.get_mut(tsn) else { return false };
        sent.fast_retransmitted = true;
        sent.mfr_after = Some(highest_sent);
        if waits {
            sent.lost_by = LossCause::FastRetransmit;
            sent.missing_reports = 0;
        } else {
            self.count_lost(tsn);
            self.mark(tsn, LossCause::FastRetransmit);
        }
        true
    }
}

/// The newest chunks that a SACK newly acknowledges.
struct Newer {
    /// The highest TSN.
    newest: Option<Tsn>,
    /// The order of the latest transmission on the path of the chunk in question.
    on_its_path: Option<u64>,
}

/// True if missing reports count for a chunk. They count until they have made it lost; with
/// `reports_after_timeout` a retransmission at a timeout does not end that. With MFR they count
/// again if the SACK newly acknowledges a TSN above all that were sent when reports last made the
/// chunk lost, and with `mfr_on_one_path` also a later transmission on its path.
fn may_be_lost(sent: &Sent, rules: &SackRules, newer: Newer) -> bool {
    let Some(after) = sent.mfr_after else {
        return rules.reports_after_timeout || sent.transmissions == 1;
    };
    let is_overtaken = newer.on_its_path.is_some_and(|order| sent.order < order);
    rules.mfr
        && newer.newest.is_some_and(|tsn| tsn.gt(after))
        && (is_overtaken || !rules.mfr_on_one_path)
}
