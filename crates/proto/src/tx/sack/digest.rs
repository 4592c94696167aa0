//! A SACK, turned into facts per path that congestion control, loss recovery and policies read.

use std::time::Duration;

use manypath_wire::{GapAckBlocks, Sack, Tsn};

use crate::config::Cuc;
use crate::policy::recovery::{ReportScope, Rules, SfrCompares, T3Watches};
use crate::time::Instant;
use crate::tx::Echo;
use crate::tx::outstanding::Outstanding;
use crate::tx::outstanding::ranges::{TsnRange, TsnRanges};
use crate::tx::outstanding::ring::TsnState;
use crate::view::PathId;

/// How a SACK is read.
#[derive(Copy, Clone, Debug)]
pub(crate) struct AckRules<'a> {
    /// The rules of the association.
    pub(crate) by: &'a Rules,
    /// Delayed ack for CMT: a SACK may count for several packets (CMT paper, Fig. 4).
    pub(crate) dac: bool,
    /// True if the acknowledgement reports gaps. SHUTDOWN does not, so it revokes nothing (RFC 9260
    /// §3.3.8).
    pub(crate) reports_gaps: bool,
    /// True if the SACK has hardly room for more gap ack blocks.
    pub(crate) is_full: bool,
    /// Some path is in fast recovery.
    pub(crate) in_fast_recovery: bool,
    /// With timestamps, the stamp that the SACK echoes. It measures the RTT of retransmissions,
    /// too.
    pub(crate) echo: Option<Echo>,
    /// The path on which the SACK came in.
    pub(crate) via: Option<SackArrival>,
    /// No path works: after a spurious timeout, wait for what is still in flight.
    pub(crate) waits_for_late: bool,
}

/// The path on which a SACK came in.
#[derive(Copy, Clone, Debug)]
pub(crate) struct SackArrival {
    pub(crate) path: PathId,
    /// The shortest RTT measured on the path, if SACKs that arrive clearly sooner are not trusted.
    pub(crate) rtt_min: Option<Duration>,
}

/// How much longer a busy host may take to answer than an idle one.
const BUSY: Duration = Duration::from_millis(5);

impl SackArrival {
    /// True if both SACKs came back on one path, or on paths whose RTTs differ by at most 1/16 of
    /// the time between them. The delays of the SACKs then differ about as little, unless one path
    /// is slower backwards and faster forwards.
    pub(crate) fn is_alike(self, other: SackArrival, between: Duration) -> bool {
        let differ = self.rtt_min.zip(other.rtt_min).map(|(a, b)| a.abs_diff(b));
        self.path == other.path || differ.is_some_and(|differ| differ * 16 <= between)
    }

    /// True if a SACK came too soon to answer a transmission on this path `took` ago. Allows for a
    /// shortest RTT that was measured with a queue on the path, or by a busy host.
    pub(super) fn is_too_soon(&self, took: Duration) -> bool {
        self.rtt_min.is_some_and(|shortest| took + BUSY < shortest * 3 / 4)
    }
}

/// The SACK flag of CMT's DAC: set if the SACK reports two packets or more (CMT paper, §III-C).
pub(crate) const SACK_FLAG_TWO_PACKETS: u8 = 0x80;

/// Facts of one SACK.
#[derive(Debug, Default)]
pub(crate) struct SackDigest {
    /// Indexed by path.
    pub(crate) paths: Vec<PathDigest>,
    /// The cumulative TSN ack point moved.
    pub(crate) cum_advanced: bool,
    /// The path that the first chunk below the new cumulative TSN ack was last sent on.
    pub(crate) cum_from: Option<PathId>,
    /// Chunks acknowledged for the first time, on all paths.
    pub(crate) newly_acked: usize,
    /// User bytes released from the send buffer.
    pub(crate) released: usize,
    /// User bytes of messages that were given up, released from the send buffer.
    pub(crate) dropped: usize,
    /// The cumulative TSN ack passed a chunk that was fast retransmitted, or retransmitted after a
    /// timeout.
    pub(crate) rtx_cum_acked: bool,
    /// The SACK is older than one already processed (SACKs of different paths overtake each other):
    /// its a_rwnd is out of date.
    pub(crate) stale: bool,
    /// An earlier SACK reported more above this one's highest block: this one is older, or was
    /// truncated. In either case the smaller of the two a_rwnd holds, because the window does not
    /// open while the cumulative TSN ack point stays.
    pub(crate) cut_or_stale: bool,
    pub(super) highest_newly_acked: Option<Tsn>,
    watches_earliest: bool,
    // Scratch space, kept to allocate nothing per SACK.
    pub(crate) reported: TsnRanges,
    /// The part of `reported` that the receiver promises to keep (NR-SACK).
    pub(crate) kept: TsnRanges,
    pub(crate) scratch: TsnRanges,
    pub(crate) fresh: Vec<TsnRange>,
    revoked: Vec<TsnRange>,
}

/// Facts of one SACK about one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathDigest {
    /// Flight size before the SACK, in bytes; with `pipe_accounting` the pipe.
    pub(crate) flight_before: usize,
    /// Bytes of DATA chunks acknowledged for the first time.
    pub(crate) newly_acked_bytes: usize,
    /// The part of these bytes acknowledged by the cumulative TSN ack.
    pub(crate) cum_acked_bytes: usize,
    /// The part of these bytes gap-acknowledged from the pseudo-cumack on.
    pub(crate) edge_acked_bytes: usize,
    /// Flight size before the SACK plus the bytes that wait for retransmission.
    pub(crate) used_before: usize,
    /// User bytes of the newly acknowledged chunks.
    pub(crate) newly_acked_user_bytes: usize,
    /// The left edge of the path moved: its cwnd may grow (CUC; without it, the cumulative TSN ack
    /// point moved).
    pub(crate) cwnd_update: bool,
    /// The chunk that T3-rtx watches is acknowledged: the timer restarts.
    pub(crate) watched_acked: bool,
    /// A round-trip time measured by this SACK.
    pub(crate) rtt: Option<Duration>,
    /// Chunks that the SACK made lost.
    pub(crate) lost: usize,
    /// Lost transmissions of chunks that are also in flight elsewhere, or have arrived there. They
    /// are a sign of congestion, but need no retransmission.
    pub(crate) lost_extra: usize,
    /// The transmissions counted in `lost` and `lost_extra`.
    pub(crate) lost_chunks: Vec<LostChunk>,
    /// Order of the latest transmission among them.
    pub(crate) latest_lost: Option<u64>,
    /// The highest TSN among them.
    pub(crate) highest_lost: Option<Tsn>,
    /// The loss episode in which all losses have turned out spurious.
    pub(crate) spurious: Option<u64>,
    /// With loss detection by time: when the next chunk will be late.
    pub(crate) late_at: Option<Instant>,
    /// Order of the latest transmission acknowledged; for a retransmitted chunk, of its last one.
    pub(crate) latest_sent: Option<u64>,
    /// Order of the latest acknowledged transmission of a chunk sent once.
    pub(crate) latest: Option<u64>,
    /// When that transmission was sent.
    pub(crate) latest_sent_at: Option<Instant>,
    /// Number of newly acknowledged chunks of which a transmission was sent on this path.
    pub(crate) chunks_sent_here: usize,
    /// With `pmtu_discovery`: the longest packets among those acknowledged, and among those lost,
    /// in bytes.
    pub(crate) largest_acked: u16,
    pub(crate) largest_lost: u16,
    /// A newly acknowledged chunk with two transmissions, if this SACK answers the one on this
    /// path: that one's order and sending time.
    pub(super) arrived_here: Option<(u64, Instant)>,
    pub(crate) lowest: Option<Tsn>,
    /// The highest TSN gap-acknowledged for the first time.
    pub(super) highest_gap: Option<Tsn>,
    /// The lowest unacknowledged TSN of the path before the SACK, if T3-rtx watches that TSN.
    watched: Option<Tsn>,
}

/// A transmission that was lost.
#[derive(Copy, Clone, Debug)]
pub(crate) struct LostChunk {
    /// The transmission's place in the order of all transmissions.
    pub(crate) order: u64,
    /// Length of the DATA chunk in bytes.
    pub(crate) size: usize,
}

impl PathDigest {
    /// The RTT of the latest acknowledged chunk that was sent once; without such a chunk, the RTT
    /// that the SACK measured for RTO.
    pub(crate) fn latest_rtt(&self, now: Instant) -> Option<Duration> {
        self.latest_sent_at.map(|at| now.saturating_since(at)).or(self.rtt)
    }

    /// Transmissions that the SACK made lost, second ones of chunks included.
    pub(crate) fn lost_transmissions(&self) -> usize {
        self.lost + self.lost_extra
    }

    /// Takes note of a chunk that the SACK made lost.
    pub(super) fn note_lost(&mut self, tsn: Tsn, lost: LostChunk, packet_len: u16) {
        let LostChunk { order, .. } = lost;
        self.lost += 1;
        self.lost_chunks.push(lost);
        self.largest_lost = self.largest_lost.max(packet_len);
        self.latest_lost = self.latest_lost.max(Some(order));
        self.note_highest_lost(tsn);
    }

    /// Takes note of a lost transmission that needs no retransmission.
    pub(super) fn note_lost_extra(&mut self, lost: LostChunk) {
        self.lost_extra += 1;
        self.lost_chunks.push(lost);
        self.latest_lost = self.latest_lost.max(Some(lost.order));
    }

    fn note_highest_lost(&mut self, tsn: Tsn) {
        if self.highest_lost.is_none_or(|highest| tsn.gt(highest)) {
            self.highest_lost = Some(tsn);
        }
    }
}

/// An invalid SACK: the association is aborted (RFC 9260 §6.2.1 and §3.3.4).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum SackError {
    /// A TSN is acknowledged that was never sent.
    AcksUnsent,
    /// The gap ack blocks are out of order, overlap, or touch the cumulative TSN ack.
    BadGapAckBlocks,
}

impl Outstanding {
    /// Applies a SACK and leaves its facts in `digest`.
    ///
    /// The work is proportional to what is newly acknowledged and to the number of gaps, never to
    /// the window. Returns false for a SACK below the cumulative TSN ack point that reports nothing
    /// new.
    pub(crate) fn acknowledge(
        &mut self,
        sack: &Sack,
        rules: &AckRules<'_>,
        now: Instant,
        digest: &mut SackDigest,
    ) -> Result<bool, SackError> {
        let point = self.cum_tsn_ack_point();
        if sack.cum_tsn_ack.distance_from(point) as usize > self.ring.len() {
            let is_above = sack.cum_tsn_ack.gt(point);
            if is_above {
                return Err(SackError::AcksUnsent);
            }
            return Ok(self.read_overtaken(sack, rules, now, digest));
        }
        digest.reset(self);
        digest.watches_earliest = rules.by.t3.watches == T3Watches::EarliestSent;
        digest.read_blocks(sack, self.highest_tsn())?;
        let up_to = digest.reported.last().unwrap_or(sack.cum_tsn_ack);
        if rules.is_full {
            self.full_report_at = Some(now);
        }
        // A full SACK may have left out higher blocks, so it does not lower the value.
        if !rules.is_full || up_to.gt(self.reported_up_to) {
            self.reported_up_to = up_to;
        }
        self.acknowledge_cumulatively(sack.cum_tsn_ack, rules, now, digest);
        self.newest = digest.highest_newly_acked.or(self.newest);
        self.acknowledge_gaps(rules, now, digest);
        if !digest.kept.is_empty() {
            self.release_kept(digest);
        }
        if self.has_extra {
            self.settle_extra(sack, rules, now, digest);
        }
        self.read_duplicates(sack, now, digest);
        let is_above = |h: &Tsn| self.newest.is_none_or(|newest| h.gt(newest));
        self.newest = digest.highest_newly_acked.filter(is_above).or(self.newest);
        if rules.reports_gaps {
            let is_newer = sack.cum_tsn_ack.gt(self.newest_report);
            if is_newer {
                self.newest_report = sack.cum_tsn_ack;
            }
            self.find_reneged(is_newer, rules, digest);
        }
        match rules.by.sacks.scope {
            ReportScope::Path => {
                let is_two = rules.dac && sack.flags & SACK_FLAG_TWO_PACKETS != 0;
                self.split_fast_retransmit(rules, if is_two { 2 } else { 1 }, digest);
            }
            ReportScope::Association => self.fast_retransmit(rules, digest),
            ReportScope::Time => {
                let is_two = rules.dac && sack.flags & SACK_FLAG_TWO_PACKETS != 0;
                for path in (0..digest.paths.len()).map(|i| PathId(i as u8)) {
                    let says = digest.paths[path.index()].newly_acked_bytes > 0;
                    let reports = u8::from(says) * if is_two { 2 } else { 1 };
                    self.lose_late(path, now, rules, reports, digest);
                }
            }
        }
        Ok(true)
    }

    fn acknowledge_cumulatively(
        &mut self,
        cum: Tsn,
        rules: &AckRules<'_>,
        now: Instant,
        digest: &mut SackDigest,
    ) {
        while self.ring.base().le(cum) {
            let tsn = self.ring.base();
            let Some(first) = self.ring.first() else { break };
            let path = first.path.index();
            digest.cum_from.get_or_insert(first.path);
            if first.is_abandoned && self.is_skipped(tsn) {
                self.forgo(tsn, digest);
            } else if first.state != TsnState::Acked {
                self.newly_acked(tsn, rules, now, digest);
                // CUC step 2: a chunk acknowledged for the first time by the cumulative ack.
                digest.paths[path].cwnd_update = true;
                digest.paths[path].cum_acked_bytes = digest.paths[path].newly_acked_bytes;
                self.queues[path].pseudo_cumacks.forget();
            }
            digest.paths[path].watched_acked |= !digest.watches_earliest;
            let Some(sent) = self.ring.pop_first() else { break };
            self.user_bytes -= sent.payload.len();
            if sent.is_abandoned {
                digest.dropped += sent.payload.len();
            } else {
                digest.released += sent.payload.len();
            }
            digest.rtx_cum_acked |= sent.fast_retransmitted
                || sent.transmissions > 1 && !rules.by.sacks.reports_after_timeout;
            digest.cum_advanced = true;
        }
        self.acked.remove_up_to(cum);
        self.kept.remove_up_to(cum);
    }

    fn acknowledge_gaps(&mut self, rules: &AckRules<'_>, now: Instant, digest: &mut SackDigest) {
        let cuc = rules.by.sacks.cuc;
        let mut fresh = std::mem::take(&mut digest.fresh);
        digest.reported.difference(&self.acked, &mut fresh);
        if cuc == Cuc::V1 {
            self.find_left_edges(digest);
        } else if !fresh.is_empty() {
            self.find_pseudo_cumacks();
        }
        if !fresh.is_empty() && !digest.watches_earliest {
            for (i, p) in digest.paths.iter_mut().enumerate() {
                p.watched = self.lowest_unacked(PathId(i as u8));
            }
        }
        for range in &fresh {
            let mut tsn = range.first;
            while tsn.le(range.last) {
                let Some(path) = self.get(tsn).map(|s| s.path) else { break };
                // CUC step 3: the pseudo-cumack is acknowledged. CUC has one; CUCv2 has one for
                // chunks sent once and one for retransmitted chunks.
                let moved = match cuc {
                    Cuc::Off => false,
                    Cuc::V1 | Cuc::V2 => self.queues[path.index()].pseudo_cumacks.passes(tsn),
                };
                digest.paths[path.index()].cwnd_update |= moved;
                digest.paths[path.index()].watched_acked |=
                    digest.paths[path.index()].watched == Some(tsn);
                let before = digest.paths[path.index()].newly_acked_bytes;
                self.newly_acked(tsn, rules, now, digest);
                let p = &mut digest.paths[path.index()];
                if p.newly_acked_bytes > before {
                    p.highest_gap = Some(tsn);
                }
                if p.cwnd_update {
                    p.edge_acked_bytes += p.newly_acked_bytes - before;
                }
                if let Some(sent) = self.get_mut(tsn) {
                    sent.state = TsnState::Acked;
                }
                tsn = tsn.next();
            }
        }
        if cuc == Cuc::V1 {
            self.find_left_edges(digest);
        }
        if cuc == Cuc::Off {
            // RFC 9260 §7.2.1: without CUC cwnd moves with the cumulative TSN ack point only.
            for p in &mut digest.paths {
                p.cwnd_update = digest.cum_advanced && p.newly_acked_bytes > 0;
            }
        }
        digest.fresh = fresh;
    }

    pub(crate) fn first_in_queue(&self, path: PathId) -> Option<Tsn> {
        self.queues[path.index()].flight.head()
    }

    /// Finds the pseudo-cumacks of CUC, if a SACK reports gaps.
    fn find_left_edges(&mut self, digest: &SackDigest) {
        if digest.reported.is_empty() {
            return;
        }
        for (i, queue) in self.queues.iter_mut().enumerate() {
            if queue.flight.flight_size() + queue.waiting_bytes > 0 {
                queue.pseudo_cumacks.find_one(PathId(i as u8), &self.ring);
            }
        }
    }

    /// Finds the unknown pseudo-cumacks of CUCv2 on all paths.
    fn find_pseudo_cumacks(&mut self) {
        for queue in &mut self.queues {
            queue.pseudo_cumacks.find(&queue.flight, &self.ring, self.skipped);
        }
    }

    /// Books a chunk acknowledged for the first time and takes it out of its queue.
    fn newly_acked(
        &mut self,
        tsn: Tsn,
        rules: &AckRules<'_>,
        now: Instant,
        digest: &mut SackDigest,
    ) {
        let Some(sent) = self.get(tsn) else { return };
        if sent.state == TsnState::Abandoned {
            self.note_arrival(tsn, now, rules, digest);
            return;
        }
        if let Some(second) = sent.also_on {
            return self.acked_on_either(tsn, second, rules, now, digest);
        }
        let path = sent.path;
        let is_last = self.note_arrival(tsn, now, rules, digest);
        let is_first = self.first_in_queue(path) == Some(tsn);
        let Some(sent) = self.get(tsn) else { return };
        let p = &mut digest.paths[path.index()];
        p.watched_acked |= is_first && digest.watches_earliest;
        if rules.by.sacks.waiting_used_cwnd && sent.state == TsnState::Marked {
            p.flight_before += sent.size();
        }
        p.chunks_sent_here += 1;
        p.largest_acked = p.largest_acked.max(sent.packet_len);
        p.newly_acked_bytes += sent.size();
        p.newly_acked_user_bytes += sent.payload.len();
        if is_last {
            p.latest_sent = p.latest_sent.max(Some(sent.order));
        }
        if sent.transmissions == 1 {
            // The ack of a retransmitted chunk does not say which transmission arrived.
            if p.latest < Some(sent.order) {
                p.latest_sent_at = Some(sent.sent_at);
            }
            p.latest = p.latest.max(Some(sent.order));
        }
        if sent.transmissions == 1 || rules.by.sacks.compares == SfrCompares::Tsn {
            p.lowest.get_or_insert(tsn);
        }
        if let Some(echo) = rules.echo {
            // Takes one measurement from a SACK: chunks sent together all give the same.
            p.rtt = p.rtt.or_else(|| echo.is_of(sent.sent_at).then(|| now - sent.sent_at));
        }
        let queue = &mut self.queues[path.index()];
        if queue.rtt_probe == Some(tsn) && rules.echo.is_none() {
            queue.rtt_probe = None;
            let (sent_at, once) =
                self.get(tsn).map_or((now, false), |s| (s.sent_at, s.transmissions == 1));
            if once {
                p.rtt = Some(now - sent_at);
            }
        }
        digest.note_acked(tsn);
        self.leave_flight(tsn);
        self.unmark(tsn);
        if self.counts_lost {
            self.settle_lost(tsn);
        }
    }

    /// Compares the gap ack blocks with those of earlier SACKs. `is_newer` is true if the
    /// cumulative TSN ack is above that of every earlier SACK.
    fn find_reneged(&mut self, is_newer: bool, rules: &AckRules<'_>, digest: &mut SackDigest) {
        let overtaken_revokes = rules.by.sacks.overtaken_revokes;
        let mut revoked = std::mem::take(&mut digest.revoked);
        self.acked.difference(&digest.reported, &mut revoked);
        if revoked.is_empty() {
            // In most cases the SACK reports all that earlier ones did.
            self.acked.copy_from(&digest.reported);
            digest.stale = false;
            digest.cut_or_stale = false;
            digest.revoked = revoked;
            return;
        }
        if !overtaken_revokes && let Some(highest) = digest.reported.last() {
            // Differences above the highest block prove nothing: the SACK may have been truncated.
            let differs = revoked.len();
            revoked.retain(|r| r.first.lt(highest));
            digest.cut_or_stale = revoked.len() < differs && !is_newer;
        }
        // A newer SACK was sent after all that were processed, so the receiver dropped the TSNs
        // that it no longer reports. Any other SACK may be older, because SACKs of different paths
        // overtake each other. It may also report TSNs that a newer, truncated SACK left out.
        let is_newer = is_newer || overtaken_revokes;
        digest.stale = !is_newer && !revoked.is_empty();
        if is_newer && !self.kept.is_empty() {
            // Promised TSNs cannot have been dropped, and their payload is already released here.
            digest.scratch.clear();
            revoked.iter().for_each(|&r| digest.scratch.push_back(r));
            digest.scratch.difference(&self.kept, &mut revoked);
        }
        if is_newer && !revoked.is_empty() {
            for r in &revoked {
                let mut tsn = r.first;
                while tsn.le(r.last) {
                    self.revoke(tsn, overtaken_revokes);
                    tsn = tsn.next();
                }
            }
            self.acked.subtract(&revoked, &mut digest.scratch);
        }
        self.acked.union_with(&digest.reported, &mut digest.scratch);
        digest.revoked = revoked;
    }
}

impl SackDigest {
    pub(crate) fn reset(&mut self, outstanding: &Outstanding) {
        self.paths.clear();
        self.paths.extend(outstanding.queues.iter().map(|q| PathDigest {
            flight_before: q.flight.flight_size() + q.lost_bytes,
            used_before: q.flight.flight_size() + q.waiting_bytes,
            ..PathDigest::default()
        }));
        self.cum_advanced = false;
        self.cum_from = None;
        self.newly_acked = 0;
        self.released = 0;
        self.dropped = 0;
        self.rtx_cum_acked = false;
        self.stale = false;
        self.cut_or_stale = false;
        self.highest_newly_acked = None;
    }

    /// A chunk was acknowledged for the first time.
    pub(super) fn note_acked(&mut self, tsn: Tsn) {
        self.newly_acked += 1;
        self.highest_newly_acked = Some(tsn);
    }

    fn read_blocks(&mut self, sack: &Sack, highest_sent: Tsn) -> Result<(), SackError> {
        let cum = sack.cum_tsn_ack;
        read_blocks(&mut self.reported, sack.gap_ack_blocks(), cum, highest_sent)?;
        read_blocks(&mut self.kept, sack.nr_gap_ack_blocks(), cum, highest_sent)?;
        if !self.kept.is_empty() {
            self.reported.union_with(&self.kept, &mut self.scratch);
        }
        Ok(())
    }
}

/// Reads one list of blocks of a SACK.
fn read_blocks(
    into: &mut TsnRanges,
    blocks: GapAckBlocks<'_>,
    cum: Tsn,
    highest_sent: Tsn,
) -> Result<(), SackError> {
    into.clear();
    let mut above = 1u32;
    for block in blocks {
        let (start, end) = (u32::from(block.start), u32::from(block.end));
        // Block offsets start at 2: cum + 1 is missing by definition (RFC 9260 §3.3.4).
        if start <= above || end < start {
            return Err(SackError::BadGapAckBlocks);
        }
        above = end;
        let last = cum.add(end);
        if last.gt(highest_sent) {
            return Err(SackError::AcksUnsent);
        }
        into.push_back(TsnRange { first: cum.add(start), last });
    }
    Ok(())
}

#[cfg(test)]
pub(in crate::tx) mod tests;
