//! Paths through relays: which are wanted, which are open, and which associations use them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use manypath_net::{RelayChange, RelayStatus, Way};
use manypath_proto::{AssocId, Endpoint, Instant, is_raw_ip};

/// Maximum number of relays' addresses whose names are kept, so that a relay that keeps giving out
/// new ones fills nothing.
const NAMES_MAX: usize = 1000;

/// The paths through an endpoint's relays.
#[derive(Default)]
pub(crate) struct RelayPaths {
    /// How many relays there are.
    relays: usize,
    /// The address that a relay gave us and the peer's address, for each path that is open.
    open: Vec<Way>,
    /// Relays, by number, and peers to open paths to, until the driver asks for them.
    wanted: Vec<(usize, SocketAddr)>,
    /// Ways whose routes relays are to tell, until the driver asks for them.
    wanted_routes: Vec<Way>,
    /// The peer's addresses of each association that uses relays.
    users: BTreeMap<AssocId, Vec<SocketAddr>>,
    /// Names of the relays by the addresses they gave us, also those of before.
    names: BTreeMap<SocketAddr, String>,
}

impl RelayPaths {
    pub(crate) fn new(relays: usize) -> RelayPaths {
        RelayPaths { relays, ..RelayPaths::default() }
    }

    /// Requests paths to the peer of a new association, and gives it those that are open. One for
    /// each relay: relay i goes to the peer's address i, the list beginning again at its end.
    /// Relays forward UDP only.
    pub(crate) fn add_user(
        &mut self,
        now: Instant,
        engine: &mut Endpoint,
        id: AssocId,
        remotes: Vec<SocketAddr>,
    ) {
        let remotes: Vec<_> = remotes.into_iter().filter(|remote| !is_raw_ip(*remote)).collect();
        if self.relays == 0 || remotes.is_empty() {
            return;
        }
        self.want(&remotes);
        if let Some(assoc) = engine.assoc_mut(id) {
            for &(relayed, peer) in self.open.iter().filter(|w| remotes.contains(&w.1)) {
                assoc.add_path(now, relayed, peer);
            }
        }
        self.users.insert(id, remotes);
    }

    /// Requests a path to one of these addresses through each relay.
    pub(crate) fn want(&mut self, remotes: &[SocketAddr]) {
        if !remotes.is_empty() {
            let wanted = (0..self.relays).map(|i| (i, remotes[i % remotes.len()]));
            self.wanted.extend(wanted);
        }
    }

    /// The open paths to these addresses.
    #[cfg(feature = "relay")]
    pub(crate) fn ways_to(&self, remotes: &[SocketAddr]) -> Vec<Way> {
        self.open.iter().copied().filter(|way| remotes.contains(&way.1)).collect()
    }

    /// The association uses relays no more.
    pub(crate) fn remove_user(&mut self, id: AssocId) {
        self.users.remove(&id);
    }

    /// Takes the requests for paths: the relay, by number, and the peer.
    pub(crate) fn take_wanted(&mut self) -> impl Iterator<Item = (usize, SocketAddr)> {
        self.wanted.drain(..)
    }

    /// Requests the route of a way from its relay to the peer.
    #[cfg(feature = "measure")]
    pub(crate) fn want_route(&mut self, way: Way) {
        self.wanted_routes.push(way);
    }

    /// Takes the requests for routes.
    pub(crate) fn take_wanted_routes(&mut self) -> impl Iterator<Item = Way> {
        self.wanted_routes.drain(..)
    }

    /// Adds or removes paths after a change at a relay.
    pub(crate) fn on_change(&mut self, now: Instant, engine: &mut Endpoint, change: RelayChange) {
        match change {
            RelayChange::Open((relayed, peer)) => {
                if !self.open.contains(&(relayed, peer)) {
                    self.open.push((relayed, peer));
                }
                for (&id, _) in self.users.iter().filter(|(_, r)| r.contains(&peer)) {
                    if let Some(assoc) = engine.assoc_mut(id) {
                        assoc.add_path(now, relayed, peer);
                    }
                }
            }
            RelayChange::Gone(relayed) => {
                self.open.retain(|&(local, _)| local != relayed);
                for &id in self.users.keys() {
                    let Some(assoc) = engine.assoc_mut(id) else { continue };
                    let path = assoc.paths().find(|p| p.local == relayed).map(|p| p.id);
                    if let Some(path) = path {
                        assoc.remove_path(now, path);
                    }
                }
            }
            RelayChange::Moved { from, to } => {
                self.open.retain(|&(local, _)| local != from);
                move_paths(now, engine, from, to);
            }
            RelayChange::Joined(index) => {
                self.relays = self.relays.max(index + 1);
                for remotes in self.users.values() {
                    self.wanted.push((index, remotes[index % remotes.len()]));
                }
            }
            RelayChange::Status => {}
        }
    }

    /// Notes the names of relays' addresses.
    pub(crate) fn note_names(&mut self, status: &[RelayStatus]) {
        for relay in status {
            if let Some(relayed) = relay.relayed {
                self.names.insert(relayed, relay.name.clone());
            }
        }
        while self.names.len() > NAMES_MAX {
            self.names.pop_first();
        }
    }

    /// True for an address that a relay gave us, now or before.
    pub(crate) fn is_relayed(&self, local: SocketAddr) -> bool {
        self.names.contains_key(&local)
    }

    /// The name of the relay that gave us this address.
    pub(crate) fn name(&self, local: SocketAddr) -> Option<String> {
        self.names.get(&local).cloned()
    }
}

/// Replaces the paths of all associations from one address of a relay by those from another. A peer
/// that a NAT keeps packets of unknown senders from hears nothing on the new path.
fn move_paths(now: Instant, engine: &mut Endpoint, from: SocketAddr, to: SocketAddr) {
    for id in engine.associations().collect::<Vec<_>>() {
        let Some(assoc) = engine.assoc_mut(id) else { continue };
        let there = assoc.paths().filter(|path| path.local == from);
        let old: Vec<_> = there.map(|path| (path.id, path.remote)).collect();
        for (path, remote) in old {
            // First, because the last path of an association cannot be removed.
            assoc.add_path(now, to, remote);
            assoc.remove_path(now, path);
        }
    }
}
