//! Paths that follow this host's network while associations last.
//!
//! The sockets say which addresses went and came ([`UdpSockets::follow`]). Here follows what that
//! means for paths: one whose address is gone comes back from the address that its socket has next,
//! or that the kernel prefers; an association that we opened gets paths from new addresses, and
//! follows the route to its peer where a socket is on every address. Whether a path works is the
//! engine's business. With `address_reconfiguration` at both ends, the engine tells the peer
//! (RFC 5061).

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use manypath_net::{
    Followed, NetworkWatch, NewAddress, Relays, UdpSockets, pair, preferred_source,
};
use manypath_proto::{AssocId, Instant, PathId, is_raw_ip};

use crate::shared::{Inner, Shared};

/// The next look at what could not be done yet, such as to open a socket: at first, and at most; it
/// doubles.
const RETRY: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(10);

/// Follows this host's network.
#[derive(Debug)]
pub(crate) struct Roaming {
    watch: NetworkWatch,
    lost: Vec<Lost>,
    /// The wait before the next retry.
    retry: Duration,
}

/// A path whose local address is gone.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Lost {
    assoc: AssocId,
    local: SocketAddr,
    remote: SocketAddr,
    /// Its socket is on every address: the kernel will say where from.
    on_any: bool,
}

impl Roaming {
    /// Begins to follow. Must be called within a tokio runtime.
    pub(crate) fn start(sockets: &mut UdpSockets) -> Roaming {
        // In this order: no change between the two goes unnoticed.
        let watch = NetworkWatch::start();
        sockets.follow();
        Roaming { watch, lost: Vec::new(), retry: RETRY }
    }

    /// Adapts the sockets and the engine if the network has changed; true if it has. The task is
    /// woken at the next change.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        sockets: &mut UdpSockets,
        relays: &mut Relays,
        shared: &Arc<Shared>,
    ) -> bool {
        let mut any = false;
        if shared.look.swap(false, Ordering::Relaxed) {
            self.watch.again_in(Duration::ZERO);
        }
        while let Poll::Ready(is_told) = self.watch.poll_changed(cx) {
            any = true;
            let found = sockets.follow();
            let has_changed = is_told || !found.gone.is_empty() || !found.came.is_empty();
            if has_changed {
                self.retry = RETRY;
            }
            if found.retry {
                self.watch.again_in(self.retry);
                self.retry = (2 * self.retry).min(RETRY_MAX);
            }
            shared.with(|inner, now| {
                self.apply(now, inner, sockets, relays, &found);
                if shared.follows_uplinks {
                    inner.follow_uplinks(now, sockets, shared);
                }
                for id in inner.assocs.open() {
                    follow_route(now, inner, id, sockets);
                }
                if has_changed {
                    inner.assocs.engine.network_changed(now);
                }
            });
        }
        any
    }

    fn apply(
        &mut self,
        now: Instant,
        inner: &mut Inner,
        sockets: &UdpSockets,
        relays: &mut Relays,
        found: &Followed,
    ) {
        inner.set_bound(sockets);
        if !inner.hides_addresses {
            inner.assocs.engine.set_local_addresses(inner.bound.concrete_of_all());
        }
        inner.apply_ranks(now); // before paths from new addresses come
        let open = inner.assocs.open();
        self.lost.retain(|lost| open.contains(&lost.assoc));
        self.note_gone(now, inner, &open, sockets, relays, found);
        if !inner.hides_addresses && !inner.takes_relays_only {
            // A peer that opened the association may come to the address, if it hears of it.
            for new in &found.came {
                inner.assocs.engine.local_added(now, new.address);
            }
        }
        for new in &found.came {
            self.on_new_address(now, inner, &open, *new);
        }
        self.ask_kernel(now, inner);
    }

    /// Tells engine and relays of the addresses that are gone, and keeps in mind which paths had
    /// them.
    fn note_gone(
        &mut self,
        now: Instant,
        inner: &mut Inner,
        open: &[AssocId],
        sockets: &UdpSockets,
        relays: &mut Relays,
        found: &Followed,
    ) {
        let mut gone = found.gone.clone();
        let has_vanished =
            |local: SocketAddr| found.vanished.contains(&local.ip()) && sockets.is_on_any(local);
        let mut ends = Vec::new();
        for &id in open {
            let paths = inner.assocs.engine.assoc(id).into_iter().flat_map(|assoc| assoc.paths());
            ends.extend(paths.map(|p| (id, p.local, p.remote)));
        }
        // Addresses on relays are none of this host's.
        ends.retain(|(_, local, _)| inner.relay_paths.name(*local).is_none());
        let of_paths = ends.iter().map(|(_, local, _)| *local);
        for local in of_paths.chain(relays.locals()).filter(|local| has_vanished(*local)) {
            if !gone.contains(&local) {
                gone.push(local);
            }
        }
        for (assoc, local, remote) in ends {
            let lost = Lost { assoc, local, remote, on_any: !found.gone.contains(&local) };
            if gone.contains(&local) && !self.lost.contains(&lost) {
                self.lost.push(lost);
            }
        }
        for &local in &gone {
            inner.assocs.engine.local_gone(now, local);
        }
        relays.follow(now, &inner.bound, &gone);
    }

    /// A socket has another address, or has its own back: the paths that had the one before come
    /// from there. Where there were none, an association that we opened gets those that it would
    /// have had from the start.
    fn on_new_address(
        &mut self,
        now: Instant,
        inner: &mut Inner,
        open: &[AssocId],
        NewAddress { address, instead_of }: NewAddress,
    ) {
        if inner.takes_relays_only {
            return;
        }
        let mut returned = Vec::new();
        self.lost.retain(|lost| {
            let is_back = !lost.on_any && Some(lost.local) == instead_of;
            if is_back {
                returned.push((lost.assoc, lost.remote));
            }
            !is_back
        });
        let has_none = |id: &&AssocId| returned.iter().all(|(assoc, _)| assoc != *id);
        for &id in open.iter().filter(has_none).collect::<Vec<_>>() {
            let remotes = inner.assocs.remotes(id).to_vec();
            let locals = inner.bound.sources_for(&remotes);
            let paths = pair(&locals, &remotes, |remote| preferred_source(remote).ok());
            let from_there = paths.into_iter().filter(|(local, _)| *local == address);
            returned.extend(from_there.map(|(_, remote)| (id, remote)));
        }
        for (id, remote) in returned {
            if let Some(assoc) = inner.assocs.engine.assoc_mut(id) {
                assoc.add_path(now, address, remote);
            }
        }
    }

    /// For sockets on every address: continues each path that lost its local address from the
    /// source that the kernel now prefers, if there is one.
    fn ask_kernel(&mut self, now: Instant, inner: &mut Inner) {
        let port = inner.bound.port();
        self.lost.retain(|lost| {
            let source = if lost.on_any { usable_source(lost.remote) } else { None };
            let Some(ip) = source else { return true };
            if let Some(assoc) = inner.assocs.engine.assoc_mut(lost.assoc) {
                assoc.add_path(now, source_to(lost.remote, ip, port), lost.remote);
            }
            false
        });
    }
}

/// An association that we opened from a socket on every address follows the route to its peer: if
/// the kernel prefers a source that no path has, the path moves there.
fn follow_route(now: Instant, inner: &mut Inner, id: AssocId, sockets: &UdpSockets) {
    let port = inner.bound.port();
    for remote in inner.assocs.remotes(id).to_vec() {
        let Some(assoc) = inner.assocs.engine.assoc(id) else { return };
        let there: Vec<_> = assoc.paths().filter(|p| p.remote == remote).collect();
        let on_any: Vec<PathId> = (there.iter())
            .filter(|p| sockets.is_on_any(p.local) && inner.relay_paths.name(p.local).is_none())
            .map(|p| p.id)
            .collect();
        if on_any.is_empty() {
            continue;
        }
        let Some(ip) = usable_source(remote) else { continue };
        let source = source_to(remote, ip, port);
        if !sockets.is_on_any(source) || there.iter().any(|p| p.local == source) {
            continue;
        }
        let Some(assoc) = inner.assocs.engine.assoc_mut(id) else { return };
        for path in on_any {
            assoc.move_path(now, path, source);
        }
    }
}

/// A local address to send to a remote from: with the UDP port, or over IP itself.
pub(crate) fn source_to(remote: SocketAddr, ip: IpAddr, udp_port: u16) -> SocketAddr {
    SocketAddr::new(ip, if is_raw_ip(remote) { 0 } else { udp_port })
}

/// The source that the kernel prefers for a remote; `None` if it has no route there. A host that
/// lost its addresses speaks to others from loopback in vain.
fn usable_source(remote: SocketAddr) -> Option<IpAddr> {
    let source = preferred_source(remote).ok()?;
    (source.is_loopback() == remote.ip().is_loopback() || !source.is_loopback()).then_some(source)
}
