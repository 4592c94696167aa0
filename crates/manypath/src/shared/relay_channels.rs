//! Channels at the relays for peers that came through them.
//!
//! A relay brings packets of everybody, and packets go back to everybody: neither needs any state
//! for a peer. A peer gets a channel, whose header is shorter, once it has an association with a
//! path through the relay. Strangers get one only while there are many left.

use std::collections::{BTreeMap, BTreeSet};

use manypath_net::{Relays, Way};
use manypath_proto::{AssocId, Event, Instant};

use super::Inner;

/// How well a peer is known, the better the greater.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// The application knows nothing of it yet.
    Stranger,
    Known,
}

/// The channels that relays were asked for.
#[derive(Debug, Default)]
pub(super) struct RelayChannels {
    kept: BTreeMap<Way, Standing>,
    /// Paths came or went, or a stranger was admitted, since this was brought up to date.
    is_stale: bool,
}

impl RelayChannels {
    /// Looks at the paths again, soon.
    pub(super) fn look_again(&mut self) {
        self.is_stale = true;
    }

    /// Takes note of an event of an association.
    pub(super) fn note(&mut self, event: &Event) {
        self.is_stale |= matches!(
            event,
            Event::Connected { .. }
                | Event::Closed(_)
                | Event::PathAdded { .. }
                | Event::PathRemoved { .. }
        );
    }
}

impl Inner {
    /// Asks the relays for channels to the peers that have paths through them, and gives up those
    /// of peers that have none any more.
    pub(crate) fn follow_relayed_peers(&mut self, now: Instant, relays: &mut Relays) {
        if !std::mem::take(&mut self.relay_channels.is_stale) {
            return;
        }
        let ways = self.relayed_ways();
        let before = std::mem::replace(&mut self.relay_channels.kept, ways);
        let after = &self.relay_channels.kept;
        for way in before.keys().filter(|way| !after.contains_key(way)) {
            relays.drop_peer(*way);
        }
        for (way, standing) in after.iter().filter(|(way, now)| before.get(way) != Some(now)) {
            match standing {
                Standing::Stranger => relays.keep_stranger(now, *way),
                Standing::Known => relays.keep_peer(now, *way),
            }
        }
    }

    /// The ways through relays that paths of open associations take.
    fn relayed_ways(&self) -> BTreeMap<Way, Standing> {
        let strangers: BTreeSet<AssocId> =
            self.strangers.iter().flat_map(|crowd| crowd.ids()).collect();
        let engine = &self.assocs.engine;
        let mut ways = BTreeMap::new();
        for id in engine.associations() {
            let Some(assoc) = engine.assoc(id).filter(|assoc| assoc.closed().is_none()) else {
                continue;
            };
            // The application hears of a protected one only when its peer has shown its keys.
            let is_known = self.assocs.contains(id) && !strangers.contains(&id);
            let standing = if is_known { Standing::Known } else { Standing::Stranger };
            for path in assoc.paths().filter(|path| self.relay_paths.is_relayed(path.local)) {
                let best = ways.entry((path.local, path.remote)).or_insert(standing);
                *best = (*best).max(standing);
            }
        }
        ways
    }
}
