//! Chunks that are late by [`Rack`](super::rack::Rack), which makes them lost (RFC 8985 §6.2, step
//! 5).

use super::digest::{AckRules, LostChunk, SackDigest};
use crate::time::Instant;
use crate::tx::outstanding::Outstanding;
use crate::view::PathId;

impl Outstanding {
    /// Marks the chunks that are late on any path, without counting missing reports.
    pub(crate) fn lose_late_on_all(
        &mut self,
        now: Instant,
        rules: &AckRules<'_>,
        digest: &mut SackDigest,
    ) {
        for path in (0..self.queues.len()).map(|i| PathId(i as u8)) {
            self.lose_late(path, now, rules, 0, digest);
        }
    }

    /// Marks the chunks that are late on a path. Until RACK has seen reordering, missing reports
    /// make a chunk lost even before it is late (§6.2, step 4). `reports` is the number of missing
    /// reports that the SACK gives each chunk.
    pub(super) fn lose_late(
        &mut self,
        path: PathId,
        now: Instant,
        rules: &AckRules<'_>,
        reports: u8,
        digest: &mut SackDigest,
    ) {
        let rack = &self.queues[path.index()].rack;
        let Some(newest) = rack.newest else { return };
        let (takes, counts) = (newest.rtt + rack.window(), !rack.reordering_seen);
        let p = &mut digest.paths[path.index()];
        let lost_before = p.lost_chunks.len();
        let mut at = self.queues[path.index()].flight.head();
        while let Some(tsn) = at {
            let Some(sent) = self.get(tsn) else { break };
            at = sent.next;
            if sent.order >= newest.order {
                break;
            }
            let late_at = sent.sent_at + takes;
            let lost = LostChunk { order: sent.order, size: sent.size() };
            let len = sent.packet_len;
            let by_reports = counts && self.report_missing(tsn, reports, &rules.by.sacks);
            if by_reports || late_at <= now && self.lose(tsn) {
                p.note_lost(tsn, lost, len);
            } else {
                p.late_at = Some(p.late_at.map_or(late_at, |earlier| earlier.min(late_at)));
                if !counts {
                    break; // those behind it were sent later
                }
            }
        }
        if p.lost_chunks.len() > lost_before {
            self.queues[path.index()].rack.on_losses(now);
        }
    }
}
