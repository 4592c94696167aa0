//! Spurious losses: the chunk was only late, and has arrived.
//!
//! | evidence of a spurious loss | source |
//! | --- | --- |
//! | the chunk is acknowledged before its retransmission is sent | |
//! | it is acknowledged within 3/4 of the shortest RTT of its retransmission | RFC 3522, by time |
//! | the peer reports it as a duplicate | RFC 9260 §3.3.4, used as in RFC 3708 |
//!
//! The losses of a path are grouped into episodes. An episode begins with the loss of a chunk sent
//! after the previous episode began. An episode is spurious once all of its losses have turned out
//! spurious; congestion control may then undo its reaction. A chunk sent three times or more proves
//! nothing, because nobody can tell which transmission arrived.

use std::time::Duration;

use manypath_wire::{Sack, Tsn};

use super::digest::{AckRules, SackDigest};
use super::doubts::{Episode, Loss};
use crate::policy::recovery::ReportScope;
use crate::policy::rtx::LossCause;
use crate::time::Instant;
use crate::tx::outstanding::Outstanding;
use crate::tx::outstanding::ring::{Sent, TsnState};
use crate::tx::outstanding::second_transmission::{Claim, Transmission};
use crate::view::PathId;

/// After a full SACK, how long chunks that it left out may still be acknowledged. Such chunks do
/// not widen the reordering window.
const FULL_FOR: Duration = Duration::from_secs(1);

impl Outstanding {
    /// Switches on the search for spurious losses.
    pub(crate) fn watch_for_spurious_losses(&mut self) {
        self.doubts.is_wanted = true;
    }

    /// The episode of the latest loss on a path.
    pub(crate) fn loss_episode(&self, path: PathId) -> u64 {
        self.queues[path.index()].episode.number
    }

    /// Counts the loss of the transmission with this order. Returns its episode.
    fn count_loss(&mut self, path: PathId, order: u64) -> u64 {
        let ends = self.last_order();
        let episode = &mut self.queues[path.index()].episode;
        if episode.number == 0 || order > episode.ends {
            self.doubts.episodes += 1;
            *episode = Episode { number: self.doubts.episodes, ends, open: 0 };
        }
        episode.open += 1;
        episode.number
    }

    /// The last transmission of a chunk is taken for lost.
    pub(crate) fn note_loss(&mut self, tsn: Tsn, cause: LossCause) {
        if !self.doubts.is_wanted {
            return;
        }
        let Some((path, order)) = self.get(tsn).map(|sent| (sent.path, sent.order)) else { return };
        let episode = self.count_loss(path, order);
        if let Some(sent) = self.get_mut(tsn) {
            sent.loss = Some(Loss { path, episode, sent_at: sent.sent_at, cause });
        }
    }

    /// Takes note of the loss of a second transmission.
    pub(super) fn note_extra_loss(&mut self, path: PathId, sent: &Transmission) {
        if !self.doubts.is_wanted {
            return;
        }
        let episode = self.count_loss(path, sent.order);
        if sent.claim != Claim::Live {
            let cause = LossCause::FastRetransmit;
            let loss = Loss { path, episode, sent_at: sent.sent_at, cause };
            self.doubts.remember(sent.tsn, loss, true);
        }
    }

    /// Takes note of a chunk acknowledged for the first time. False if its acknowledgement is too
    /// early for the last transmission, so that an earlier one must have arrived.
    pub(super) fn note_arrival(
        &mut self,
        tsn: Tsn,
        now: Instant,
        rules: &AckRules<'_>,
        digest: &mut SackDigest,
    ) -> bool {
        if !self.doubts.is_wanted {
            return true;
        }
        let Some(sent) = self.ring.get_mut(tsn) else { return true };
        let (loss, transmissions) = (sent.loss.take(), sent.transmissions);
        let waits = sent.state != TsnState::InFlight;
        let rack = &mut self.queues[sent.path.index()].rack;
        let is_early = !waits
            && !rack.on_acked(now, sent)
            && rack.is_clearly_early(now.saturating_since(sent.sent_at));
        let Some(loss) = loss else { return !is_early };
        let is_only = transmissions == if waits { 1 } else { 2 };
        let order = sent.order;
        if rules.waits_for_late && waits && is_only && loss.cause == LossCause::Timeout {
            self.return_to_flight(loss, order);
        }
        if waits || is_early {
            let took = is_only.then(|| now.saturating_since(loss.sent_at));
            self.was_none(loss, is_only, took, now, digest);
        } else if transmissions > 1 {
            self.doubts.remember(tsn, loss, is_only);
        }
        !is_early
    }

    /// Puts chunks back in flight after a spurious timeout. A chunk arrived without retransmission,
    /// so chunks sent after it on the path are probably still in flight (RFC 5682). Missing reports
    /// find those that are lost; until then, they cannot use another path.
    #[cold]
    fn return_to_flight(&mut self, loss: Loss, after: u64) {
        let Some(queue) = self.queues.get_mut(loss.path.index()) else { return };
        let is_behind = |sent: &Sent| {
            let is_of_timeout = sent.loss.is_some_and(|other| {
                (other.path, other.episode, other.cause) == (loss.path, loss.episode, loss.cause)
            });
            let waits = sent.state == TsnState::Marked && sent.transmissions == 1;
            waits && is_of_timeout && sent.path == loss.path && sent.order > after
        };
        let (ring, listed) = (&self.ring, queue.marked.len());
        let mut behind = Vec::new();
        queue.marked.retain(|&tsn| {
            let is_behind = ring.get(tsn).is_some_and(is_behind);
            // A chunk that was marked twice may be listed twice, in adjacent entries.
            if is_behind && behind.last() != Some(&tsn) {
                behind.push(tsn);
            }
            !is_behind
        });
        self.listed -= listed - queue.marked.len();
        for tsn in behind {
            self.unmark(tsn);
            if let Some(sent) = self.get_mut(tsn) {
                sent.loss = None;
            }
            self.enter_flight_in_order(tsn);
            let episode = &mut self.queues[loss.path.index()].episode;
            if episode.number == loss.episode {
                episode.open = episode.open.saturating_sub(1);
            }
        }
    }

    /// Looks for duplicate reports of chunks that were taken for lost. In that case both
    /// transmissions arrived. True if there are any.
    pub(super) fn read_duplicates(
        &mut self,
        sack: &Sack,
        now: Instant,
        digest: &mut SackDigest,
    ) -> bool {
        if self.doubts.remembered.is_empty() {
            return false;
        }
        let mut has_found = false;
        for tsn in sack.duplicate_tsns() {
            let Some((loss, is_only)) = self.doubts.remembered.remove(&tsn.0) else { continue };
            has_found = true;
            self.was_none(loss, is_only, None, now, digest);
        }
        has_found
    }

    /// Reads the duplicates in an overtaken SACK. Only this SACK reports them, and SACKs of the
    /// slowest path are often overtaken. Returns true if any of them matters.
    #[cold]
    pub(super) fn read_overtaken(
        &mut self,
        sack: &Sack,
        rules: &AckRules<'_>,
        now: Instant,
        digest: &mut SackDigest,
    ) -> bool {
        if sack.duplicate_tsns().len() == 0 {
            return false;
        }
        digest.reset(self);
        digest.stale = true;
        let settles = self.settle_by_overtaken(sack, rules, now, digest);
        let says = self.read_duplicates(sack, now, digest) || settles;
        if says && rules.by.sacks.scope == ReportScope::Time {
            self.lose_late_on_all(now, rules, digest);
        }
        says
    }

    /// A loss was spurious. `is_only` is true if the chunk was lost once; `took` is the time from
    /// the transmission to its acknowledgement, if known.
    fn was_none(
        &mut self,
        loss: Loss,
        is_only: bool,
        took: Option<Duration>,
        now: Instant,
        digest: &mut SackDigest,
    ) {
        let Some(queue) = self.queues.get_mut(loss.path.index()) else { return };
        // Chunks left out of a full SACK had arrived in time. If the reordering window grew for
        // them, it would find real losses later than T3-rtx.
        let was_full = self.full_report_at.is_some_and(|at| now.saturating_since(at) < FULL_FOR);
        if loss.cause == LossCause::FastRetransmit && !was_full {
            queue.rack.on_spurious(now, took);
        }
        let episode = &mut queue.episode;
        if !is_only || loss.episode != episode.number || episode.open == 0 {
            return;
        }
        episode.open -= 1;
        if episode.open == 0 {
            digest.paths[loss.path.index()].spurious = Some(episode.number);
        }
    }
}

#[cfg(test)]
mod tests;
