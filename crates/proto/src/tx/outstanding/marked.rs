//! Chunks that are taken for lost and wait for retransmission.

use manypath_wire::Tsn;

use super::ring::{Sent, TsnState};
use crate::policy::rtx::LossCause;
use crate::time::Instant;
use crate::tx::outstanding::Outstanding;
use crate::view::PathId;

impl Outstanding {
    /// Takes a chunk for lost: it leaves the flight and waits for retransmission.
    pub(crate) fn mark(&mut self, tsn: Tsn, cause: LossCause) {
        self.leave_flight(tsn);
        self.unmark(tsn);
        let Some(sent) = self.get_mut(tsn) else { return };
        if sent.is_abandoned {
            return self.let_go(tsn);
        }
        sent.state = TsnState::Marked;
        sent.lost_by = cause;
        sent.missing_reports = 0;
        let (path, user, size) = (sent.path, sent.payload.len(), sent.size());
        self.queues[path.index()].waiting_bytes += size;
        self.marked_chunks += 1;
        self.marked_user_bytes += user;
        let marked = &mut self.queues[path.index()].marked;
        let at = marked.iter().rposition(|&t| t.lt(tsn)).map_or(0, |i| i + 1);
        marked.insert(at, tsn);
        self.listed += 1;
    }

    /// Takes a chunk out of the count of waiting chunks, if it was counted; the caller sets its new
    /// state. A new chunk is in state `Marked` until its first transmission, but is not counted.
    pub(crate) fn unmark(&mut self, tsn: Tsn) {
        let is_waiting = |s: &&Sent| s.state == TsnState::Marked;
        let waiting = self.get(tsn).filter(is_waiting);
        if let Some((path, user, size)) = waiting.map(|s| (s.path, s.payload.len(), s.size())) {
            self.queues[path.index()].waiting_bytes -= size;
            self.marked_chunks -= 1;
            self.marked_user_bytes -= user;
        }
    }

    /// Marks the chunks in flight on a path, because its T3-rtx expired (RFC 9260 §6.3.3, E3).
    /// Returns their number, and the order of the last transmission among them.
    ///
    /// Chunks sent after `spare_after` stay in flight: none that is younger than one SRTT can have
    /// timed out (CMT paper, §IV-C2).
    pub(crate) fn mark_path(&mut self, path: PathId, spare_after: Option<Instant>) -> (usize, u64) {
        let mut at = self.queues[path.index()].flight.head();
        let (mut count, mut latest) = (0, 0);
        while let Some(tsn) = at {
            let Some(sent) = self.get(tsn) else { break };
            at = sent.next;
            let spared = spare_after.is_some_and(|limit| sent.sent_at > limit);
            if !spared {
                latest = sent.order;
                self.note_loss(tsn, LossCause::Timeout);
                if !self.goes_on_elsewhere(tsn) {
                    self.mark(tsn, LossCause::Timeout);
                }
                count += 1;
            }
        }
        self.queues[path.index()].rtt_probe = None;
        let (extra, latest_extra) = self.lose_extra(path, spare_after);
        (count + extra, latest.max(latest_extra))
    }

    /// Marks one chunk in flight so that the caller can send it again at once.
    pub(crate) fn mark_for_probe(&mut self, tsn: Tsn) {
        self.count_lost(tsn);
        self.forget_extra(tsn);
        self.mark(tsn, LossCause::FastRetransmit);
    }

    /// Marks as lost all chunks in flight on a path in IP packets of more than `len` bytes, which
    /// the path does not carry.
    pub(crate) fn mark_larger(&mut self, path: PathId, len: usize) {
        let is_larger = |(_, sent): &(Tsn, &Sent)| usize::from(sent.packet_len) > len;
        let larger: Vec<Tsn> =
            self.queue_from_head(path).filter(is_larger).map(|(tsn, _)| tsn).collect();
        for tsn in larger {
            self.mark_for_probe(tsn);
        }
    }

    /// Counts the chunks that already wait for retransmission as lost by a T3-rtx expiry, too.
    pub(crate) fn time_out_waiting(&mut self, path: PathId) {
        let waiting = |s: &&mut Sent| s.path == path && s.state == TsnState::Marked;
        for sent in self.ring.iter_mut().filter(waiting) {
            sent.lost_by = LossCause::Timeout;
            sent.missing_reports = 0;
        }
    }

    /// The lowest TSN waiting for retransmission that was last sent on `path`.
    pub(crate) fn next_marked(&mut self, path: PathId) -> Option<Tsn> {
        while let Some(&tsn) = self.queues[path.index()].marked.front() {
            if self.get(tsn).is_some_and(|s| s.state == TsnState::Marked && s.path == path) {
                return Some(tsn);
            }
            self.queues[path.index()].marked.pop_front();
            self.listed -= 1;
        }
        None
    }

    /// Bytes of DATA chunks that were last sent on `path` and wait for retransmission.
    pub(crate) fn waiting_bytes(&self, path: PathId) -> usize {
        self.queues[path.index()].waiting_bytes
    }

    /// False if nothing waits for retransmission; cheaper than [`has_marked`](Self::has_marked).
    pub(crate) fn may_have_marked(&self) -> bool {
        self.listed > 0
    }

    /// True if something waits for retransmission.
    pub(crate) fn has_marked(&mut self) -> bool {
        self.may_have_marked()
            && (0..self.queues.len()).any(|i| self.next_marked(PathId(i as u8)).is_some())
    }
}
