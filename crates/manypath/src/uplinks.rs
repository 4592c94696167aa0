//! Associations over every uplink: the interfaces with a route to the peer.
//!
//! An endpoint that is bound by [`BindTo::Auto`] has a socket on every address. When it connects,
//! and when this host's network changes, [`Uplinks`] says which interfaces lead to the peer. If
//! there are several, the driver opens a socket for each, which is kept to its interface, and the
//! association has paths from all of them. A lone uplink costs nothing: the system's own route
//! leads there.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use manypath_net::{
    BindTo, InterfaceAddress, Pairs, UdpSockets, Uplinks, metered_interfaces, preferred_source,
};
use manypath_proto::{AssocId, Instant, PathRank};

use crate::roaming::source_to;
use crate::shared::{Inner, Shared};
use crate::wakers::Wakers;

/// The uplinks that the handles of an endpoint want, and what is known of them.
#[derive(Default)]
pub(crate) struct Wanted {
    /// Sockets that the driver is to open.
    places: Vec<InterfaceAddress>,
    /// Interfaces that were asked about, and those of them that are metered.
    asked: BTreeSet<String>,
    metered: BTreeSet<String>,
    /// Somebody asks already.
    is_asking: bool,
    wakers: Wakers,
}

impl Wanted {
    /// Nobody opens sockets any more.
    pub(crate) fn driver_gone(&mut self, to_wake: &mut Vec<Waker>) {
        self.places.clear();
        self.wakers.wake(to_wake);
    }

    fn note_metered(&mut self, interfaces: &[&str], metered: BTreeSet<String>) {
        self.asked.extend(interfaces.iter().map(|name| (*name).to_owned()));
        self.metered = metered;
        self.is_asking = false;
    }
}

/// The uplinks to a peer, and the pairs of addresses for an association: the driver has opened the
/// sockets that they need. The peer's `relayed` addresses come first, and are matched with ours
/// apart from the `others`: each uplink has a path to one of them.
pub(crate) async fn find(
    shared: &Arc<Shared>,
    relayed: &[SocketAddr],
    others: &[SocketAddr],
) -> (Uplinks, Pairs) {
    let pairs = |uplinks: &Uplinks| {
        let bound = shared.bound();
        let through_relays = Pairs::towards(uplinks, &bound, relayed);
        through_relays.then(Pairs::towards(uplinks, &bound, others))
    };
    if !shared.follows_uplinks {
        let none = Uplinks::default();
        let pairs = pairs(&none);
        return (none, pairs);
    }
    let mut uplinks = Uplinks::to(&[relayed, others].concat());
    let places = uplinks.places();
    if !places.is_empty() {
        let metered = metered_interfaces().await;
        uplinks.set_metered(&metered);
        shared.with(|inner, now| {
            inner.uplinks.note_metered(&uplinks.interfaces(), metered);
            inner.uplinks.places.extend(places);
            inner.spare(now, &uplinks);
            shared.look_at_uplinks.store(true, Ordering::Relaxed);
            inner.assocs.kick();
        });
        poll_fn(|cx| shared.with(|inner, _| inner.poll_uplinks_open(cx))).await;
    }
    let pairs = pairs(&uplinks);
    (uplinks, pairs)
}

impl Inner {
    /// Waits until the driver has opened the sockets that are wanted, or is gone.
    fn poll_uplinks_open(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.uplinks.places.is_empty() || !self.is_open() {
            return Poll::Ready(());
        }
        self.uplinks.wakers.register(cx);
        Poll::Pending
    }

    /// Makes metered uplinks backups, but for those whose rank the application has set.
    fn spare(&mut self, now: Instant, uplinks: &Uplinks) {
        for name in uplinks.spared() {
            let place = BindTo::Interface(name.to_owned());
            self.ranks.want_unless_set(place, PathRank::Backup);
        }
        self.apply_ranks(now);
    }

    /// Opens the sockets that handles wait for. Returns whether there were any.
    pub(crate) fn open_uplinks(&mut self, now: Instant, sockets: &mut UdpSockets) -> bool {
        let places = std::mem::take(&mut self.uplinks.places);
        if places.is_empty() {
            return false;
        }
        sockets.open_uplinks(&places);
        self.set_bound(sockets);
        self.apply_ranks(now);
        self.uplinks.wakers.wake(&mut self.assocs.to_wake);
        true
    }

    /// Brings the uplinks of all associations that this endpoint opened up to date with routes:
    /// opens and closes sockets, and adds the paths from interfaces that have come.
    pub(crate) fn follow_uplinks(
        &mut self,
        now: Instant,
        sockets: &mut UdpSockets,
        shared: &Arc<Shared>,
    ) {
        let mut found: Vec<(AssocId, Uplinks)> = Vec::new();
        for id in self.assocs.open() {
            if self.assocs.uplinks(id).is_some() {
                let mut uplinks = Uplinks::to(self.assocs.remotes(id));
                uplinks.set_metered(&self.uplinks.metered);
                found.push((id, uplinks));
            }
        }
        self.ask_metered(&found, shared);
        let places: Vec<_> = found.iter().flat_map(|(_, uplinks)| uplinks.places()).collect();
        if found.iter().any(|(_, uplinks)| !uplinks.beside_tunnel.is_empty()) {
            sockets.keep_uplinks(&places);
        }
        sockets.open_uplinks(&places);
        self.bound = sockets.bound().clone();
        for (id, uplinks) in found {
            self.spare(now, &uplinks);
            self.add_uplink_paths(now, id, &uplinks);
            self.leave_to_tunnel(now, id, &uplinks);
            self.assocs.set_uplinks(id, uplinks);
        }
    }

    /// Moves the paths beside a tunnel into it: an address that the peer has heard of would bring
    /// them back.
    fn leave_to_tunnel(&mut self, now: Instant, id: AssocId, uplinks: &Uplinks) {
        let Some(assoc) = self.assocs.engine.assoc_mut(id) else { return };
        assoc.avoid_locals(uplinks.beside_tunnel.clone());
        let beside = assoc.paths().filter(|path| uplinks.beside_tunnel.contains(&path.local.ip()));
        let beside: Vec<_> = beside.map(|path| (path.id, path.remote)).collect();
        for (path, remote) in beside {
            if let Some(uplink) = uplinks.used.iter().find(|u| u.remotes.contains(&remote)) {
                assoc.move_path(now, path, source_to(remote, uplink.ip, self.bound.port()));
            }
        }
    }

    /// Interfaces that nobody has asked about carry nothing before it is known whether they are
    /// metered: has the system asked, and the network looked at again after that.
    fn ask_metered(&mut self, found: &[(AssocId, Uplinks)], shared: &Arc<Shared>) {
        let all = found.iter().flat_map(|(_, uplinks)| uplinks.places());
        let new: Vec<String> =
            all.map(|place| place.name).filter(|name| !self.uplinks.asked.contains(name)).collect();
        if new.is_empty() || std::mem::replace(&mut self.uplinks.is_asking, true) {
            return;
        }
        tokio::spawn(ask(Arc::downgrade(shared), new));
    }

    /// Adds the paths from uplinks that an association has none from yet.
    fn add_uplink_paths(&mut self, now: Instant, id: AssocId, uplinks: &Uplinks) {
        if uplinks.places().is_empty() {
            return;
        }
        let port = self.bound.port();
        let pairs = Pairs::of_uplinks(uplinks, port, |remote| preferred_source(remote).ok());
        let is_known = |local: SocketAddr| {
            let mut interfaces = uplinks.used.iter().filter(|uplink| uplink.ip == local.ip());
            interfaces.all(|uplink| self.uplinks.asked.contains(&uplink.interface))
        };
        let Some(assoc) = self.assocs.engine.assoc_mut(id) else { return };
        let has_path: BTreeSet<SocketAddr> = assoc.paths().map(|path| path.local).collect();
        let is_new = |local: &SocketAddr| !has_path.contains(local) && is_known(*local);
        for &(local, remote) in pairs.paths.iter().filter(|(local, _)| is_new(local)) {
            assoc.add_path(now, local, remote);
        }
        for &(local, remote) in pairs.candidates.iter().filter(|(local, _)| is_new(local)) {
            assoc.add_candidate(now, local, remote);
        }
    }
}

/// Asks which interfaces are metered, and has the network looked at again.
async fn ask(shared: Weak<Shared>, interfaces: Vec<String>) {
    let metered = metered_interfaces().await;
    let Some(shared) = shared.upgrade() else { return };
    shared.with(|inner, _| {
        let names: Vec<&str> = interfaces.iter().map(String::as_str).collect();
        inner.uplinks.note_metered(&names, metered);
        shared.look.store(true, Ordering::Relaxed);
        inner.assocs.kick();
    });
}
