//! Associations that are over, as far as their late packets make it necessary to remember them.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;

use crate::time::Instant;

/// Maximum number of associations remembered after their shutdown, for their late packets.
const MAX_ENDED: usize = 64;

/// Maximum number of remembered cookies that made an association, so that their copies make no
/// other. One that comes back after that many more is refused: with thousands of associations
/// a second, they must last longer than a round trip.
const MAX_USED_COOKIES: usize = 1 << 14;

/// The associations that were shut down, and the cookies that made an association, last.
#[derive(Default)]
pub(super) struct Past {
    /// Tag and peer's port of each association.
    ended: VecDeque<(u32, u16)>,
    /// Our tag in each cookie, and when that was made.
    used_cookies: VecDeque<(u32, Instant)>,
    /// The tags in them.
    used_tags: BTreeSet<u32>,
    /// When the newest of the used cookies was made that are not remembered any more.
    forgotten: Option<Instant>,
    /// Tag and peer's port of protected associations, and the packet that ended each.
    last_words: VecDeque<((u32, u16), Bytes)>,
}

impl Past {
    /// An association with this tag and peer's port was shut down.
    pub(super) fn note_ended(&mut self, local_tag: u32, peer_port: u16) {
        self.ended.truncate(MAX_ENDED - 1);
        self.ended.push_front((local_tag, peer_port));
    }

    /// True if an association with this tag and peer's port was shut down.
    pub(super) fn has_ended(&self, local_tag: u32, peer_port: u16) -> bool {
        self.ended.contains(&(local_tag, peer_port))
    }

    /// A protected association with this tag and peer's port was ended by this packet.
    pub(super) fn note_last_words(&mut self, ends: (u32, u16), packet: Bytes) {
        self.last_words.retain(|(known, _)| *known != ends);
        self.last_words.truncate(MAX_ENDED - 1);
        self.last_words.push_front((ends, packet));
    }

    /// The packet that ended an association.
    pub(super) fn last_words(&self, ends: (u32, u16)) -> Option<Bytes> {
        let found = self.last_words.iter().find(|(known, _)| *known == ends);
        found.map(|(_, packet)| packet.clone())
    }

    /// A cookie with this tag, made at that time, has made an association.
    pub(super) fn note_cookie(&mut self, local_tag: u32, created: Instant) {
        while self.used_cookies.len() >= MAX_USED_COOKIES {
            let Some((oldest, created)) = self.used_cookies.pop_back() else { break };
            self.used_tags.remove(&oldest);
            self.forgotten = self.forgotten.max(Some(created));
        }
        self.used_cookies.push_front((local_tag, created));
        self.used_tags.insert(local_tag);
    }

    /// True if a cookie with this tag made an association.
    pub(super) fn is_cookie_used(&self, local_tag: u32) -> bool {
        self.used_tags.contains(&local_tag)
    }

    /// True if a cookie of that time may have made an association that is not remembered.
    pub(super) fn is_cookie_forgotten(&self, created: Instant) -> bool {
        self.forgotten.is_some_and(|newest| created <= newest)
    }
}
