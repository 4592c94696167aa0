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

/// A channel's number and its peer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Channel {
    pub(super) number: u16,
    pub(super) peer: SocketAddr,
}

/// The channels that were asked for, in the order of their numbers.
#[derive(Default)]
pub(super) struct Channels {
    all: Vec<Entry>,
}

struct Entry {
    channel: Channel,
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

    /// The channel is to be bound at once, because it may be lost.
    fn doubt(&mut self, now: Instant) {
        self.bind_at = Some(now);
        self.unanswered = None;
        self.patience = (self.patience * 2).min(PATIENCE_MAX);
    }
}

impl Channels {
    /// Adds a channel to `peer`; `None` if there is one, or no room for more.
    pub(super) fn add(&mut self, peer: SocketAddr) -> Option<Channel> {
        if self.all.len() >= PEERS_MAX || self.iter().any(|c| c.peer == peer) {
            return None;
        }
        let channel = Channel { number: CHANNELS.start() + self.all.len() as u16, peer };
        self.all.push(Entry {
            channel,
            ready: false,
            bind_at: None,
            asked: Instant::ZERO,
            unanswered: None,
            patience: PATIENCE_FIRST,
        });
        Some(channel)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Channel> {
        self.all.iter().map(|entry| entry.channel)
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
        let Some(entry) = self.all.iter_mut().find(|e| e.channel.peer == peer) else {
            return false;
        };
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
        let Some(entry) = self.entry(channel) else { return false };
        // Only packets that were sent through the channel as it is now tell something of it.
        (entry.bind_at, entry.unanswered) = (Some(now + REBIND), None);
        !std::mem::replace(&mut entry.ready, true)
    }

    /// The relay refused to bind the channel. It is tried again at `retry_at`, or never.
    pub(super) fn refused(&mut self, channel: Channel, retry_at: Option<Instant>) {
        if let Some(entry) = self.entry(channel) {
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

    /// No channel is bound any more.
    pub(super) fn reset(&mut self) {
        for entry in &mut self.all {
            (entry.ready, entry.bind_at) = (false, None);
            (entry.unanswered, entry.patience) = (None, PATIENCE_FIRST);
        }
    }

    fn entry(&mut self, channel: Channel) -> Option<&mut Entry> {
        self.all.iter_mut().find(|e| e.channel == channel)
    }
}
