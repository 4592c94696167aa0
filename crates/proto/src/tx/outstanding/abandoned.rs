//! Messages that are given up before they are acknowledged (RFC 3758).
//!
//! A chunk of such a message that is in flight stays in flight until a SACK says what became of it,
//! because it fills the path until then. A chunk that is lost is not sent again. The peer learns
//! by FORWARD TSN that it need not wait for either.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use manypath_wire::{
    FORWARD_TSN_ENTRY_LEN, FORWARD_TSN_HEADER_LEN, ForwardTsn, I_FORWARD_TSN_ENTRY_LEN, Mid,
    SkippedMessage, StreamId, Tsn,
};

use super::Outstanding;
use super::ring::{Sent, TsnState};
use crate::sizes::DataKind;
use crate::time::Instant;
use crate::tx::Fragment;
use crate::tx::sack::digest::SackDigest;
use crate::view::PathId;

/// How long, and how often, a message is sent.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// When it is given up.
    pub(crate) expires: Option<Instant>,
    /// How often each of its chunks may be sent again.
    pub(crate) retransmissions: Option<u16>,
}

/// The number of a message in its stream. Unordered messages in DATA chunks have none: they all
/// have number 0, and their TSNs tell them apart.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct MessageId {
    pub(crate) stream: StreamId,
    pub(crate) unordered: bool,
    pub(crate) mid: Mid,
}

impl MessageId {
    fn of(sent: &Sent) -> MessageId {
        MessageId { stream: sent.stream, unordered: sent.flags.unordered(), mid: sent.mid }
    }
}

/// A message with limits of which a chunk was sent.
#[derive(Debug)]
struct Limited {
    id: MessageId,
    /// The TSNs of its first chunk, and of the last one sent so far.
    first: Tsn,
    last: Tsn,
    /// All of it was sent.
    is_whole: bool,
    ppid: u32,
    limits: Limits,
}

/// A message that was given up.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct GivenUp {
    pub(crate) id: MessageId,
    pub(crate) ppid: u32,
    /// All of it was sent.
    pub(crate) is_whole: bool,
}

/// The messages with limits, and the TSNs that the peer is told to skip.
#[derive(Debug)]
pub(crate) struct Abandonment {
    /// In the order of their first chunks.
    limited: VecDeque<Limited>,
    /// Advanced.Peer.Ack.Point (RFC 3758 §3.5): all TSNs up to it are acknowledged or given up.
    point: Tsn,
    /// The highest TSN that the peer was told to skip to.
    told: Tsn,
    /// Payload was dropped since this was last asked.
    has_freed: bool,
}

impl Outstanding {
    /// Notes the limits of the message of a new chunk.
    pub(crate) fn note_limited(&mut self, tsn: Tsn, limits: Limits) {
        let point = self.cum_tsn_ack_point();
        let Some(sent) = self.ring.get_mut(tsn) else { return };
        sent.is_limited = true;
        let (id, flags, ppid) = (MessageId::of(sent), sent.flags, sent.ppid_or_fsn);
        let new = || {
            let limited = VecDeque::new();
            Box::new(Abandonment { limited, point, told: point, has_freed: false })
        };
        let limited = &mut self.abandonment.get_or_insert_with(new).limited;
        if flags.begin() {
            let is_whole = flags.end();
            limited.push_back(Limited { id, first: tsn, last: tsn, is_whole, ppid, limits });
        } else if let Some(begun) = limited.iter_mut().rev().find(|m| m.id == id && !m.is_whole) {
            (begun.last, begun.is_whole) = (tsn, flags.end());
        }
    }

    /// True if a message with limits was sent.
    #[inline]
    pub(crate) fn has_limited(&self) -> bool {
        self.abandonment.is_some()
    }

    /// When the next message expires of which a chunk was sent.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.abandonment.as_ref()?.limited.iter().filter_map(|m| m.limits.expires).min()
    }

    /// True if a chunk must not be sent again.
    pub(crate) fn is_over(&self, tsn: Tsn, now: Instant) -> bool {
        let Some(sent) = self.get(tsn).filter(|s| s.is_limited) else { return false };
        if sent.is_abandoned {
            return true;
        }
        let Some(message) = self.limited_at(tsn) else { return false };
        let Limits { expires, retransmissions } = message.limits;
        expires.is_some_and(|at| at <= now)
            || retransmissions.is_some_and(|most| sent.transmissions > most)
    }

    /// The message of a chunk.
    fn limited_at(&self, tsn: Tsn) -> Option<&Limited> {
        self.abandonment.as_ref()?.limited.get(self.place_of(tsn)?)
    }

    fn place_of(&self, tsn: Tsn) -> Option<usize> {
        let id = MessageId::of(self.get(tsn)?);
        let limited = &self.abandonment.as_ref()?.limited;
        let behind = limited.partition_point(|m| m.first.le(tsn));
        (0..behind).rev().find(|&i| limited[i].id == id && tsn.le(limited[i].last))
    }

    /// Gives up the message of a chunk.
    pub(crate) fn give_up_at(&mut self, tsn: Tsn) -> Option<GivenUp> {
        self.give_up(self.place_of(tsn)?)
    }

    /// Gives up the message that has begun to leave.
    pub(crate) fn give_up_begun(&mut self, id: MessageId) {
        let place = self.abandonment.as_ref().and_then(|a| {
            a.limited.iter().rposition(|message| message.id == id && !message.is_whole)
        });
        if let Some(place) = place {
            self.give_up(place);
        }
    }

    /// Ends a message that was given up, and of which the rest will not be sent. A chunk that is
    /// never sent takes the place of that rest: the peer may have received all that was sent, and
    /// needs a TSN to skip.
    pub(crate) fn end_given_up(&mut self, id: MessageId, kind: DataKind, path: PathId) {
        let rest = Fragment {
            payload: Bytes::new(),
            stream: id.stream,
            flags: Fragment::end_of(id.unordered),
            kind,
            mid: id.mid,
            ppid_or_fsn: 0,
        };
        let sent = Sent { state: TsnState::Abandoned, is_abandoned: true, ..Sent::new(rest, path) };
        self.ring.push(sent);
    }

    /// Gives up the messages that have expired and have not arrived.
    pub(crate) fn give_up_expired(&mut self, now: Instant) -> Vec<GivenUp> {
        let mut all = Vec::new();
        let mut place = 0;
        while let Some(message) = self.abandonment.as_ref().and_then(|a| a.limited.get(place)) {
            if message.limits.expires.is_none_or(|at| at > now) {
                place += 1;
            } else if self.has_arrived(message) {
                self.forget_limited(place);
            } else {
                all.extend(self.give_up(place));
            }
        }
        all
    }

    fn has_arrived(&self, message: &Limited) -> bool {
        let is_acked = |tsn: Tsn| self.get(tsn).is_none_or(|s| s.state == TsnState::Acked);
        message.is_whole && self.tsns_of(message).all(is_acked)
    }

    /// The TSNs of a message that are outstanding, and perhaps those of others between them.
    fn tsns_of(&self, message: &Limited) -> impl Iterator<Item = Tsn> + use<> {
        let base = self.ring.base();
        let first = if message.first.lt(base) { base } else { message.first };
        let last = message.last;
        std::iter::successors(Some(first), |tsn| Some(tsn.next())).take_while(move |t| t.le(last))
    }

    fn forget_limited(&mut self, place: usize) {
        if let Some(a) = &mut self.abandonment {
            a.limited.remove(place);
        }
    }

    fn give_up(&mut self, place: usize) -> Option<GivenUp> {
        let message = self.abandonment.as_mut()?.limited.remove(place)?;
        for tsn in self.tsns_of(&message) {
            let Some(sent) = self.get_mut(tsn).filter(|s| MessageId::of(s) == message.id) else {
                continue;
            };
            sent.is_abandoned = true;
            if sent.state == TsnState::Marked {
                self.unmark(tsn);
                self.let_go(tsn);
            }
        }
        Some(GivenUp { id: message.id, ppid: message.ppid, is_whole: message.is_whole })
    }

    /// Drops a chunk that was given up and is neither in flight nor waiting for retransmission.
    pub(crate) fn let_go(&mut self, tsn: Tsn) {
        if self.counts_lost {
            self.settle_lost(tsn);
        }
        let Some(sent) = self.get_mut(tsn) else { return };
        sent.state = TsnState::Abandoned;
        let payload = std::mem::take(&mut sent.payload);
        self.user_bytes -= payload.len();
        if let Some(a) = &mut self.abandonment {
            a.has_freed = true;
        }
    }

    /// True if payload was dropped since this was last asked.
    pub(crate) fn take_has_freed(&mut self) -> bool {
        self.abandonment.as_mut().is_some_and(|a| std::mem::take(&mut a.has_freed))
    }

    /// True if the peer was told to skip a chunk that was given up: a cumulative TSN ack does not
    /// say then that the chunk arrived, and counts neither for the window nor for the RTT.
    pub(crate) fn is_skipped(&self, tsn: Tsn) -> bool {
        let is_told = |a: &Abandonment| tsn.le(a.told);
        let Some(sent) = self.get(tsn).filter(|s| s.is_abandoned) else { return false };
        sent.state == TsnState::Abandoned || self.abandonment.as_deref().is_some_and(is_told)
    }

    /// Takes a skipped chunk out of the flight, without any conclusion about its path.
    pub(crate) fn forgo(&mut self, tsn: Tsn, digest: &mut SackDigest) {
        self.forget_extra(tsn);
        if self.counts_lost {
            self.settle_lost(tsn);
        }
        let Some(sent) = self.get_mut(tsn) else { return };
        if let Some(loss) = sent.loss.take() {
            // A later report of a duplicate says that it arrived after all.
            let is_only = sent.transmissions == 1;
            self.doubts.remember(tsn, loss, is_only);
        }
        let Some(sent) = self.get(tsn).filter(|s| s.state == TsnState::InFlight) else { return };
        let path = sent.path;
        digest.paths[path.index()].watched_acked |= self.first_in_queue(path) == Some(tsn);
        let queue = &mut self.queues[path.index()];
        queue.rtt_probe.take_if(|probe| *probe == tsn);
        queue.pseudo_cumacks.forget();
        self.leave_flight(tsn);
    }

    /// Forgets messages that are acknowledged, and advances the Advanced.Peer.Ack.Point (RFC 3758
    /// §3.5, C1 and C2).
    pub(crate) fn advance_point(&mut self) {
        let (base, cum) = (self.ring.base(), self.cum_tsn_ack_point());
        let Some(a) = &mut self.abandonment else { return };
        while a.limited.front().is_some_and(|m| m.is_whole && m.last.lt(base)) {
            a.limited.pop_front();
        }
        if a.point.lt(cum) {
            a.point = cum;
        }
        while self.ring.get(a.point.next()).is_some_and(|s| s.is_abandoned) {
            a.point = a.point.next();
        }
    }

    /// True if FORWARD TSN may list a message of these streams, or of any if there are none in the
    /// list. While it may, their numbers must not begin again: a peer that has begun already would
    /// take the old number for a new one.
    pub(crate) fn may_list(&self, streams: &[StreamId]) -> bool {
        let is_of = |sent: &Sent| streams.is_empty() || streams.contains(&sent.stream);
        self.has_limited() && self.ring.iter().any(is_of)
    }

    /// True if the peer waits for TSNs that were given up.
    pub(crate) fn must_skip(&self) -> bool {
        self.abandonment.as_ref().is_some_and(|a| a.point.gt(self.cum_tsn_ack_point()))
    }

    /// True if the peer was not told yet of all TSNs that were given up.
    pub(crate) fn is_news_to_peer(&self) -> bool {
        self.must_skip() && self.abandonment.as_ref().is_some_and(|a| a.point.gt(a.told))
    }

    /// The chunk of at most `room` bytes that tells the peer what to skip (RFC 3758 §3.5, C3 and
    /// C4). It lists the last message of each stream; messages that do not fit wait for the next
    /// chunk.
    pub(crate) fn forward_tsn(&mut self, kind: DataKind, room: usize) -> Option<ForwardTsn> {
        let is_interleaved = kind == DataKind::IData;
        let entry = if is_interleaved { I_FORWARD_TSN_ENTRY_LEN } else { FORWARD_TSN_ENTRY_LEN };
        let most = room.saturating_sub(FORWARD_TSN_HEADER_LEN) / entry;
        let (mut skipped, mut tsn) = (BTreeMap::new(), self.cum_tsn_ack_point());
        if !self.must_skip() {
            return None;
        }
        let point = self.abandonment.as_ref()?.point;
        while tsn.lt(point) {
            let Some(id) = self.get(tsn.next()).map(MessageId::of) else { break };
            if is_interleaved || !id.unordered {
                let key = (id.stream, id.unordered);
                if skipped.len() >= most && !skipped.contains_key(&key) {
                    break;
                }
                skipped.insert(key, id.mid);
            }
            tsn = tsn.next();
        }
        if let Some(a) = self.abandonment.as_mut().filter(|a| tsn.gt(a.told)) {
            a.told = tsn;
        }
        let message = |((stream, unordered), mid)| SkippedMessage { stream, unordered, mid };
        Some(ForwardTsn::new(tsn, is_interleaved, skipped.into_iter().map(message)))
    }
}
