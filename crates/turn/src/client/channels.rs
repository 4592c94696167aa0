//! Channels of an allocation: the peers that packets go to, and when each channel is bound again.

use std::net::SocketAddr;
use std::time::Duration;

use manypath_proto::Instant;

use crate::message::CHANNELS;

/// Interval at which a channel is bound again. This also renews its permission, which lasts 300 s
/// (RFC 8656 §9).
const REBIND: Duration = Duration::from_secs(240);
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
}

impl Channels {
    /// Adds a channel to `peer`; `None` if there is one, or no room for more.
    pub(super) fn add(&mut self, peer: SocketAddr) -> Option<Channel> {
        if self.all.len() >= PEERS_MAX || self.iter().any(|c| c.peer == peer) {
            return None;
        }
        let channel = Channel { number: CHANNELS.start() + self.all.len() as u16, peer };
        self.all.push(Entry { channel, ready: false, bind_at: None });
        Some(channel)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Channel> {
        self.all.iter().map(|entry| entry.channel)
    }

    /// The channel to `peer`, if packets may go.
    pub(super) fn ready_to(&self, peer: SocketAddr) -> Option<Channel> {
        self.all.iter().find(|e| e.channel.peer == peer && e.ready).map(|e| e.channel)
    }

    /// The peer of the channel with this number.
    pub(super) fn peer(&self, number: u16) -> Option<SocketAddr> {
        self.iter().find(|c| c.number == number).map(|c| c.peer)
    }

    /// When a channel is to be bound next.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.all.iter().filter_map(|e| e.bind_at).min()
    }

    /// A channel that is to be bound now, until [`binding`](Channels::binding) is called for it.
    pub(super) fn due(&self, now: Instant) -> Option<Channel> {
        let is_due = |e: &&Entry| e.bind_at.is_some_and(|at| at <= now);
        self.all.iter().find(is_due).map(|e| e.channel)
    }

    /// The channel is being bound.
    pub(super) fn binding(&mut self, channel: Channel) {
        if let Some(entry) = self.entry(channel) {
            entry.bind_at = None;
        }
    }

    /// The channel is bound; true if packets could not go before.
    pub(super) fn bound(&mut self, now: Instant, channel: Channel) -> bool {
        let Some(entry) = self.entry(channel) else { return false };
        entry.bind_at = Some(now + REBIND);
        !std::mem::replace(&mut entry.ready, true)
    }

    /// The relay refused to bind the channel. It is tried again at `retry_at`, or never.
    pub(super) fn refused(&mut self, channel: Channel, retry_at: Option<Instant>) {
        if let Some(entry) = self.entry(channel) {
            (entry.ready, entry.bind_at) = (false, retry_at);
        }
    }

    /// No channel is bound any more.
    pub(super) fn reset(&mut self) {
        for entry in &mut self.all {
            (entry.ready, entry.bind_at) = (false, None);
        }
    }

    fn entry(&mut self, channel: Channel) -> Option<&mut Entry> {
        self.all.iter_mut().find(|e| e.channel == channel)
    }
}
