//! Channels of an allocation: the peers that packets go to, and when each channel is bound again.

use std::net::SocketAddr;
use std::time::Duration;

use manypath_proto::Instant;

use crate::message::CHANNELS;

/// Interval at which a channel is bound again. This also renews its permission, which lasts 300 s
/// (RFC 8656 §9).
const REBIND: Duration = Duration::from_secs(240);
/// A relay may forget a channel sooner: it was restarted, or has a small table. Then it drops our
/// packets in silence. So a channel is also bound again when nothing came from its peer for this
/// time after we sent to it, or when the peer's packets come outside of the channel. The wait
/// doubles with each such request, from the first to the longest, until the channel brings a
/// packet.
const PATIENCE_FIRST: Duration = Duration::from_secs(1);
const PATIENCE_MAX: Duration = Duration::from_secs(16);
/// Wait before a request to bind again that had no answer is repeated.
const NO_ANSWER: Duration = Duration::from_secs(2);
/// Peers at most: as many paths as an association may have.
const PEERS_MAX: usize = 32;
/// Channels in use, and those whose numbers cannot be used again yet, beyond which strangers get
/// none.
const WITH_STRANGERS_MAX: usize = PEERS_MAX / 2;
/// Channels in use, and those whose numbers cannot be used again yet, at most.
const HELD_MAX: usize = 4 * PEERS_MAX;
/// Time after a request to bind a channel in which its number may belong to no other peer, nor the
/// peer to another number: the request is repeated for half a minute, the relay keeps the channel
/// for ten minutes, and five more are to pass (RFC 8656 §12).
const HELD: Duration = Duration::from_secs(960);

/// A channel's number and its peer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Channel {
    pub(super) number: u16,
    pub(super) peer: SocketAddr,
}

/// The channels that were asked for.
#[derive(Default)]
pub(super) struct Channels {
    all: Vec<Entry>,
}

struct Entry {
    channel: Channel,
    /// It is kept bound. Otherwise only its number is held.
    is_wanted: bool,
    /// Packets may go.
    ready: bool,
    /// When to bind the channel next; `None` while it is being bound, or forbidden.
    bind_at: Option<Instant>,
    /// When it was last bound, or is being bound.
    asked: Instant,
    /// Since when nothing came from the peer after packets that we sent since the channel was
    /// bound.
    unanswered: Option<Instant>,
    /// The wait before the next doubt that the relay still knows the channel.
    patience: Duration,
}

impl Entry {
    /// When to bind the channel next, by the clock or because the peer is silent.
    fn due_at(&self) -> Option<Instant> {
        let bind_at = self.bind_at?;
        let unanswered = if self.ready { self.unanswered } else { None };
        let silent = unanswered.map(|since| since + self.patience);
        Some(silent.map_or(bind_at, |at| at.min(bind_at)))
    }

    /// True while the channel keeps its number.
    fn is_held(&self, now: Instant) -> bool {
        self.is_wanted || now < self.asked + HELD
    }

    /// Nothing goes through the channel until it is bound again.
    fn close(&mut self) {
        (self.ready, self.bind_at) = (false, None);
        (self.unanswered, self.patience) = (None, PATIENCE_FIRST);
    }

    /// The channel is to be bound at once, because it may be lost.
    fn doubt(&mut self, now: Instant) {
        self.bind_at = Some(now);
        self.unanswered = None;
        self.patience = (self.patience * 2).min(PATIENCE_MAX);
    }
}

impl Channels {
    /// Adds a channel to `peer`, which is to be bound; `None` if there is one, or no room for more.
    pub(super) fn add(&mut self, now: Instant, peer: SocketAddr) -> Option<Channel> {
        self.all.retain(|entry| entry.is_held(now));
        let is_full = self.iter().count() >= PEERS_MAX;
        if let Some(entry) = self.all.iter_mut().find(|e| e.channel.peer == peer) {
            let comes_back = !entry.is_wanted && !is_full;
            entry.is_wanted |= comes_back;
            return comes_back.then_some(entry.channel);
        }
        if is_full || self.all.len() >= HELD_MAX {
            return None;
        }
        let is_free = |number: &u16| self.all.iter().all(|e| e.channel.number != *number);
        let channel = Channel { number: CHANNELS.into_iter().find(is_free)?, peer };
        self.all.push(Entry {
            channel,
            is_wanted: true,
            ready: false,
            bind_at: None,
            asked: Instant::ZERO,
            unanswered: None,
            patience: PATIENCE_FIRST,
        });
        Some(channel)
    }

    /// True if a peer that nobody knows may have one.
    pub(super) fn has_room_for_strangers(&mut self, now: Instant) -> bool {
        self.all.retain(|entry| entry.is_held(now));
        self.all.len() < WITH_STRANGERS_MAX
    }

    /// The channel to `peer` is bound no more.
    pub(super) fn remove(&mut self, peer: SocketAddr) {
        if let Some(entry) = self.all.iter_mut().find(|e| e.channel.peer == peer) {
            entry.close();
            entry.is_wanted = false;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Channel> {
        self.all.iter().filter(|entry| entry.is_wanted).map(|entry| entry.channel)
    }

    /// The channel to `peer` for a packet that is sent now, if packets may go.
    pub(super) fn send(&mut self, now: Instant, peer: SocketAddr) -> Option<Channel> {
        let entry = self.all.iter_mut().find(|e| e.channel.peer == peer && e.ready)?;
        entry.unanswered.get_or_insert(now);
        Some(entry.channel)
    }

    /// The peer of the channel with this number, which brought a packet.
    pub(super) fn receive(&mut self, number: u16) -> Option<SocketAddr> {
        let entry = self.all.iter_mut().find(|e| e.channel.number == number)?;
        (entry.unanswered, entry.patience) = (None, PATIENCE_FIRST);
        Some(entry.channel.peer)
    }

    /// A packet of `peer` came outside of its channel, so the relay does not know the channel. It
    /// becomes due, unless that was so a short time ago. False if there is no channel to this
    /// peer.
    pub(super) fn receive_outside(&mut self, now: Instant, peer: SocketAddr) -> bool {
        let has_channel = |e: &&mut Entry| e.is_wanted && e.channel.peer == peer;
        let Some(entry) = self.all.iter_mut().find(has_channel) else { return false };
        let is_settled = entry.ready && entry.bind_at.is_some();
        if is_settled && entry.asked + entry.patience <= now {
            entry.doubt(now);
        }
        true
    }

    /// When a channel is to be bound next.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.all.iter().filter_map(Entry::due_at).min()
    }

    /// A channel that is to be bound now, until [`binding`](Channels::binding) is called for it.
    pub(super) fn due(&mut self, now: Instant) -> Option<Channel> {
        let is_due = |e: &&mut Entry| e.due_at().is_some_and(|at| at <= now);
        let entry = self.all.iter_mut().find(is_due)?;
        if entry.bind_at.is_some_and(|at| now < at) {
            entry.doubt(now);
        }
        Some(entry.channel)
    }

    /// The channel is being bound.
    pub(super) fn binding(&mut self, now: Instant, channel: Channel) {
        if let Some(entry) = self.entry(channel) {
            (entry.bind_at, entry.asked) = (None, now);
        }
    }

    /// The channel is bound; true if packets could not go before.
    pub(super) fn bound(&mut self, now: Instant, channel: Channel) -> bool {
        let Some(entry) = self.entry(channel).filter(|e| e.is_wanted) else { return false };
        // Only packets that were sent through the channel as it is now tell something of it.
        (entry.bind_at, entry.unanswered) = (Some(now + REBIND), None);
        !std::mem::replace(&mut entry.ready, true)
    }

    /// The relay refused to bind the channel. It is tried again at `retry_at`, or never.
    pub(super) fn refused(&mut self, channel: Channel, retry_at: Option<Instant>) {
        if let Some(entry) = self.entry(channel).filter(|e| e.is_wanted) {
            (entry.ready, entry.bind_at) = (false, retry_at);
        }
    }

    /// The request to bind the channel had no answer. A channel that was bound before stays open,
    /// and is bound again soon: true. False if it was not bound.
    pub(super) fn keep(&mut self, now: Instant, channel: Channel) -> bool {
        let Some(entry) = self.entry(channel).filter(|e| e.ready) else { return false };
        entry.bind_at = Some(now + NO_ANSWER);
        true
    }

    /// No channel is bound any more: the allocation is gone, and the next one has none.
    pub(super) fn reset(&mut self) {
        self.all.retain(|entry| entry.is_wanted);
        self.all.iter_mut().for_each(Entry::close);
    }

    fn entry(&mut self, channel: Channel) -> Option<&mut Entry> {
        self.all.iter_mut().find(|e| e.channel == channel)
    }
}
