//! Associations that are over, remembered for their late packets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;

use crate::assoc::{PeerEnd, TagAndPort};
use crate::time::Instant;

/// Most associations remembered after their end. If a thousand end in a second, they are remembered
/// longer than a round trip.
const MAX_ENDED: usize = 1 << 12;

/// Most used cookies remembered, together with further addresses of their peers. A used cookie made
/// an association, so neither its copies nor older cookies of the same peer may make another. A
/// cookie older than a forgotten one is refused. With thousands of associations a second, cookies
/// are remembered longer than a round trip.
const MAX_USED_COOKIES: usize = 1 << 14;

/// A cookie that made an association, or an address of the peer of an association that is over.
struct Used {
    /// Our tag in the cookie, if it is a cookie.
    tag: Option<u32>,
    peer: PeerEnd,
    /// When the cookie was made, or this end began the association.
    created: Instant,
}

/// Facts about the associations that ended last.
#[derive(Debug)]
struct Ended<T> {
    known: BTreeMap<TagAndPort, T>,
    /// The oldest first.
    order: VecDeque<TagAndPort>,
}

impl<T> Default for Ended<T> {
    fn default() -> Ended<T> {
        Ended { known: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<T> Ended<T> {
    fn note(&mut self, ends: TagAndPort, what: T) {
        if self.known.insert(ends, what).is_some() {
            return;
        }
        self.order.push_back(ends);
        if self.order.len() > MAX_ENDED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// The associations that ended last, and the cookies used last.
#[derive(Default)]
pub(super) struct Past {
    shut_down: Ended<()>,
    used_cookies: VecDeque<Used>,
    /// The tags in `used_cookies`.
    used_tags: BTreeSet<u32>,
    /// The newest time in `used_cookies` for each peer.
    newest: BTreeMap<PeerEnd, Instant>,
    /// The newest creation time among used cookies that are forgotten.
    forgotten: Option<Instant>,
    /// The packets that ended protected associations.
    last_words: Ended<Bytes>,
}

impl Past {
    /// Notes that an association was shut down.
    pub(super) fn note_shut_down(&mut self, ends: TagAndPort) {
        self.shut_down.note(ends, ());
    }

    /// True if the association was shut down.
    pub(super) fn was_shut_down(&self, ends: TagAndPort) -> bool {
        self.shut_down.known.contains_key(&ends)
    }

    /// Notes the packet that ended a protected association.
    pub(super) fn note_last_words(&mut self, ends: TagAndPort, packet: Bytes) {
        self.last_words.note(ends, packet);
    }

    /// The packet that ended an association.
    pub(super) fn last_words(&self, ends: TagAndPort) -> Option<Bytes> {
        self.last_words.known.get(&ends).cloned()
    }

    /// Notes a cookie that made an association, with its tag, peer and creation time.
    pub(super) fn note_cookie(&mut self, local_tag: u32, peer: PeerEnd, created: Instant) {
        self.note(Used { tag: Some(local_tag), peer, created });
    }

    /// Notes that an association is over or restarted. `created` is the time of its cookie, or when
    /// this end began it; `peers` are its peer's addresses.
    pub(super) fn note_over(
        &mut self,
        local_tag: u32,
        peers: impl Iterator<Item = PeerEnd>,
        created: Instant,
    ) {
        let mut tag = Some(local_tag).filter(|tag| !self.used_tags.contains(tag));
        for peer in peers {
            if tag.is_some() || !self.is_superseded(peer, created) {
                self.note(Used { tag: tag.take(), peer, created });
            }
        }
    }

    fn note(&mut self, used: Used) {
        while self.used_cookies.len() >= MAX_USED_COOKIES {
            let Some(oldest) = self.used_cookies.pop_back() else { break };
            oldest.tag.inspect(|tag| {
                self.used_tags.remove(tag);
            });
            if self.newest.get(&oldest.peer) == Some(&oldest.created) {
                self.newest.remove(&oldest.peer);
            }
            self.forgotten = self.forgotten.max(Some(oldest.created));
        }
        self.used_tags.extend(used.tag);
        let newest = self.newest.entry(used.peer).or_insert(used.created);
        *newest = used.created.max(*newest);
        self.used_cookies.push_front(used);
    }

    /// True if a peer has or had an association from a cookie of this time or a newer one, so that
    /// its older attempts are over.
    pub(super) fn is_superseded(&self, peer: PeerEnd, created: Instant) -> bool {
        self.newest.get(&peer).is_some_and(|newest| created <= *newest)
    }

    /// True if a cookie with this tag made an association.
    pub(super) fn is_cookie_used(&self, local_tag: u32) -> bool {
        self.used_tags.contains(&local_tag)
    }

    /// True if a cookie of that time may have made an association that is forgotten.
    pub(super) fn is_cookie_forgotten(&self, created: Instant) -> bool {
        self.forgotten.is_some_and(|newest| created <= newest)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn peer(n: u16) -> PeerEnd {
        PeerEnd { address: SocketAddr::from(([192, 0, 2, 1], n)), port: 9899 }
    }

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn a_cookie_supersedes_older_ones_of_its_peer_only() {
        let mut past = Past::default();
        past.note_cookie(7, peer(1), at(20));
        past.note_cookie(8, peer(1), at(10));
        assert!(past.is_superseded(peer(1), at(20)) && past.is_superseded(peer(1), at(11)));
        assert!(!past.is_superseded(peer(1), at(21)), "a new attempt");
        assert!(!past.is_superseded(peer(2), at(11)), "another host, behind the same NAT perhaps");
        past.note_over(7, [peer(1), peer(2)].into_iter(), at(20));
        assert!(past.is_superseded(peer(2), at(11)), "another address of the peer");
        assert!(past.is_cookie_used(7) && !past.is_cookie_used(9));
        past.note_over(9, [peer(3)].into_iter(), at(30));
        assert!(past.is_cookie_used(9), "a cookie may have been made for a crossing INIT");
    }

    #[test]
    fn a_thousand_ends_a_second_are_remembered_for_a_slow_round_trip() {
        let mut past = Past::default();
        let ends = |n: usize| TagAndPort { local_tag: n as u32, peer_port: 9899 };
        for n in 0..=MAX_ENDED {
            past.note_shut_down(ends(n));
            past.note_last_words(ends(n), Bytes::from_static(b"first"));
        }
        let three_seconds_ago = MAX_ENDED - 3000;
        assert!(past.was_shut_down(ends(three_seconds_ago)));
        past.note_last_words(ends(three_seconds_ago), Bytes::from_static(b"second"));
        assert_eq!(past.last_words(ends(three_seconds_ago)).as_deref(), Some(&b"second"[..]));
        assert!(!past.was_shut_down(ends(0)) && past.last_words(ends(0)).is_none());
        assert_eq!(
            (past.shut_down.known.len(), past.last_words.known.len()),
            (MAX_ENDED, MAX_ENDED)
        );
    }

    #[test]
    fn what_is_remembered_is_bounded_and_what_is_forgotten_is_refused() {
        let mut past = Past::default();
        for n in 0..MAX_USED_COOKIES as u32 + 10 {
            past.note_cookie(n, peer((n % 60_000) as u16), at(u64::from(n)));
        }
        assert_eq!(past.used_cookies.len(), MAX_USED_COOKIES);
        assert_eq!((past.used_tags.len(), past.newest.len()), (MAX_USED_COOKIES, MAX_USED_COOKIES));
        assert!(past.is_cookie_forgotten(at(9)) && !past.is_cookie_forgotten(at(10)));
        assert!(!past.is_superseded(peer(9), at(9)) && past.is_superseded(peer(10), at(10)));
    }
}
