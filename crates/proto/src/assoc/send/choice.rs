//! The chunk to send next, and its path.

use manypath_wire::{PacketBuilder, Tsn};

use crate::assoc::Association;
use crate::path::Path;
use crate::policy::redundant::{ChunkCopy, CopyTurn};
use crate::policy::rtx::RtxCandidate;
use crate::sizes;
use crate::time::Instant;
use crate::tx::Sent;
use crate::view::{PathId, PathRank};

/// A chunk that may be sent now, and its path.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) path: PathId,
    source: Source,
}

/// Where the chunk comes from.
#[derive(Copy, Clone, Debug)]
enum Source {
    Retransmission(Tsn),
    /// Of a chunk in flight on another path.
    Copy(ChunkCopy),
    New,
}

impl Choice {
    fn of_copy(copy: ChunkCopy) -> Choice {
        Choice { path: copy.on, source: Source::Copy(copy) }
    }
}

impl Association {
    /// False if there is nothing to choose from. Assigns the paths' roles first, which a choice
    /// depends on.
    pub(super) fn may_have_data(&mut self, now: Instant) -> bool {
        let may_copy = self.policies.needs.roles && self.may_copy(now);
        let may_copy = may_copy || self.is_asked_for_copies();
        !self.queue.is_empty() || self.out.may_have_marked() || may_copy
    }

    /// The chunk leaves unprotected although there are keys: the peer needs it to have them.
    #[inline]
    pub(super) fn goes_in_plain(&self, choice: Choice) -> bool {
        self.may_send_in_plain()
            && match choice.source {
                Source::New => self.queue.is_next_in_plain(),
                Source::Retransmission(tsn) | Source::Copy(ChunkCopy { tsn, .. }) => {
                    self.was_in_plain(tsn)
                }
            }
    }

    /// The chunk to send next and its path: retransmissions first, then new data (RFC 9260 §6.1,
    /// C). Whatever policies say, none takes a barred path.
    pub(crate) fn choose(&mut self, now: Instant) -> Option<Choice> {
        let chosen = self.choose_by_policies(now)?;
        self.paths.get(chosen.path).is_some_and(|p| !p.role.is_barred).then_some(chosen)
    }

    fn choose_by_policies(&mut self, now: Instant) -> Option<Choice> {
        if !self.state.may_send_data() {
            return None;
        }
        if let Some(retransmission) = self.choose_retransmission(now) {
            return Some(retransmission);
        }
        let copy = self.copy_by_roles();
        if let Some(copy) = copy.or_else(|| self.copy_by_choice(now, CopyTurn::BeforeNewData)) {
            return Some(Choice::of_copy(copy));
        }
        if !self.new_data_allowed() {
            self.note_held(now);
            return self.copy_by_choice(now, CopyTurn::Idle).map(Choice::of_copy);
        }
        let path = self.schedule(now);
        if path.is_none() {
            self.end_joint_burst();
        }
        path.map(|path| Choice { path, source: Source::New })
    }

    /// The path of new data.
    fn schedule(&mut self, now: Instant) -> Option<PathId> {
        let waiting_counts = self.recovery.rules.waiting_takes_cwnd && self.out.may_have_marked();
        let is_special = waiting_counts || self.redundant_path().is_some() || self.ranks.differ;
        let path = if is_special {
            self.schedule_on_the_rest(now)?
        } else if self.may_schedule() {
            self.decide(now, |policies, cx| policies.sched.choose(cx))?
        } else {
            return None;
        };
        // A forced retransmission does not let new data past cwnd.
        self.has_room(path).then_some(path)
    }

    /// Notes that nothing but Max.Burst holds new data back.
    fn end_joint_burst(&mut self) {
        if !self.recovery.bursts.are_joint() {
            return;
        }
        let latest = self.paths.iter().max_by_key(|p| p.flow.last_new_data);
        let holds =
            |p: &Path| p.flow.burst.is_spent() && p.flow.window.cwnd > self.out.flight_size(p.id);
        if latest.is_some_and(holds) {
            self.recovery.bursts.end();
        }
    }

    /// False if no path has room that the scheduler could choose: mostly so when all that can be
    /// sent was.
    fn may_schedule(&self) -> bool {
        let has_room = |p: &Path| p.role.usable && p.flow.cwnd_space(self.out.counted(p.id)) > 0;
        self.recovery.past_cwnd.is_allowed() || self.paths.iter().any(has_room)
    }

    /// The path of new data where chunks that wait for retransmission fill the window, too, where a
    /// path carries copies only, or where paths have ranks.
    #[inline(never)]
    fn schedule_on_the_rest(&mut self, now: Instant) -> Option<PathId> {
        let counts = self.recovery.rules.waiting_takes_cwnd;
        let waiting: smallvec::SmallVec<[usize; 8]> = self
            .paths
            .ids()
            .map(|id| if counts { self.out.waiting_bytes(id) } else { 0 })
            .collect();
        let redundant = self.redundant_path();
        let dearest =
            if self.ranks.differ { self.rank_limit(now, redundant) } else { PathRank::Backup };
        self.decide(now, |policies, cx| {
            let mut views = cx.paths.to_vec();
            for (view, waiting) in views.iter_mut().zip(&waiting) {
                view.cwnd_space = view.cwnd_space.saturating_sub(*waiting);
                view.usable &= Some(view.id) != redundant && view.rank <= dearest;
            }
            policies.sched.choose(&mut cx.of(&views))
        })
    }

    /// The lowest of the lost chunks that may be sent again now, and its path.
    #[inline]
    fn choose_retransmission(&mut self, now: Instant) -> Option<Choice> {
        if !self.out.may_have_marked() {
            self.recovery.past_cwnd.end();
            return None;
        }
        self.choose_marked(now)
    }

    #[inline(never)] // mostly nothing is lost
    fn choose_marked(&mut self, now: Instant) -> Option<Choice> {
        let mut heads: smallvec::SmallVec<[(Tsn, PathId); 8]> = smallvec::SmallVec::new();
        for id in self.paths.ids() {
            heads.extend(self.out.next_marked(id).map(|tsn| (tsn, id)));
        }
        // The exemption from cwnd is for retransmissions, and ends with them.
        if heads.is_empty() {
            self.recovery.past_cwnd.end();
        }
        let may_pass = self.recovery.past_cwnd.is_allowed();
        if !may_pass && self.recovery.policy.holds_retransmissions() {
            return None;
        }
        let base = self.out.cum_tsn_ack_point();
        heads.sort_unstable_by_key(|(tsn, _)| tsn.distance_from(base));
        for (tsn, last_path) in heads {
            let Some(sent) = self.out.get(tsn) else { continue };
            let (cause, transmissions) = (sent.lost_by, sent.transmissions);
            let lost = RtxCandidate { last_path, cause, transmissions };
            if let Some(path) = self.decide(now, |policies, cx| policies.rtx.choose(cx, &lost)) {
                let path = self.path_for_length(path, tsn);
                return Some(Choice { path, source: Source::Retransmission(tsn) });
            }
        }
        None
    }

    /// Instead of the path that was chosen for a chunk too long for its packets, one that takes it
    /// whole, if one may send now.
    fn path_for_length(&self, chosen: PathId, tsn: Tsn) -> PathId {
        let carries = |p: &Path, needed| p.size.max_packet >= needed;
        if !self.config.pmtu_discovery {
            return chosen;
        }
        let needed = self.packet_for(tsn);
        if self.paths.get(chosen).is_some_and(|p| carries(p, needed)) {
            return chosen;
        }
        let mut others = self.paths.iter().filter(|p| p.role.usable && carries(p, needed));
        others.find(|p| self.has_room(p.id)).map_or(chosen, |p| p.id)
    }

    /// The chunk to send next, if it may go on `path`.
    pub(super) fn choose_for(&mut self, now: Instant, path: PathId) -> Option<Choice> {
        self.choose(now).filter(|choice| choice.path == path)
    }

    /// The chunk that joins `last` in a packet with `room` bytes left.
    ///
    /// New data needs no decision again: the scheduler decides for packets, and the packet is
    /// filled while the window lasts.
    pub(super) fn choose_after(
        &mut self,
        now: Instant,
        last: Choice,
        room: usize,
    ) -> Option<Choice> {
        if !matches!(last.source, Source::New) || self.out.may_have_marked() {
            return self.choose_for(now, last.path);
        }
        let next = self.queue.next_len(self.fragmentation_point())?;
        let fits = self.agreed.data_kind.header() + next <= room;
        let joins = fits && self.new_data_allowed() && self.has_room(last.path);
        joins.then_some(last)
    }

    // ---- For the packet that takes the chunk ----

    /// The length of the packet that a chunk needs, in bytes; 0 if it can be cut to fit.
    pub(crate) fn needed(&self, choice: Choice) -> usize {
        match choice.source {
            Source::Retransmission(tsn) | Source::Copy(ChunkCopy { tsn, .. }) => {
                self.packet_for(tsn)
            }
            Source::New => 0,
        }
    }

    /// The length of a packet with a chunk that was sent before. If it was cut for larger packets
    /// than its path takes, as before that path was added, it must still be sent whole.
    fn packet_for(&self, tsn: Tsn) -> usize {
        let has_timestamp = self.agreed.timestamps.is_some();
        let packet = |sent: &Sent| sizes::packet_of(sent.size(), has_timestamp);
        self.out.get(tsn).map_or(0, packet)
    }

    /// Appends the chunk to a packet for its path. Returns false if the packet has no room for it.
    pub(super) fn push_chosen(
        &mut self,
        now: Instant,
        Choice { path, source }: Choice,
        packet: &mut PacketBuilder<'_>,
    ) -> bool {
        match source {
            Source::Retransmission(tsn) => self.push_again(now, path, tsn, packet),
            Source::Copy(copy) => self.push_copy(now, copy, packet),
            Source::New => self.push_new(now, path, packet),
        }
    }

    /// The TSN of the chunk that was just appended, if its record speaks of this transmission. That
    /// of a copied chunk speaks of the other one.
    pub(super) fn recorded_tsn(&self, choice: Choice) -> Option<Tsn> {
        match choice.source {
            Source::New => Some(self.out.highest_tsn()),
            Source::Retransmission(tsn) => Some(tsn),
            Source::Copy(_) => None,
        }
    }
}
