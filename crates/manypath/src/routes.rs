//! Looking for the hops of an association's paths while it is in use.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use manypath_net::{Leg, RelayStatus, Routes, TraceOptions, preferred_source, route};
use manypath_proto::overlay::Route;
use manypath_proto::{AssocId, Event, PathId};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::association::Association;
use crate::events::EventStream;
use crate::shared::Shared;

/// Paths often come in groups: so long after one others are waited for.
const SETTLES: Duration = Duration::from_millis(100);
/// Time from the first look at the hops to the second one; the next times are twice as long each,
/// up to the interval. Where data has filled a queue before the first look, the link behind that
/// queue seems long, and other links that paths share seem short beside it.
const FIRST_INTERVAL: Duration = Duration::from_secs(2);
/// The longest and the shortest time between two looks at the hops.
const INTERVALS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(86_400));

/// Looks for the hops of an association's paths until it is dropped, see
/// [`Association::watch_routes`].
#[derive(Debug)]
pub struct RouteWatch(JoinHandle<()>);

impl Drop for RouteWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Association {
    /// Looks for the hops of the paths, now, when paths come, and every `interval` (1 s to a day),
    /// in the beginning after 2 s, 4 s and so on; of several times to a router the shortest counts.
    /// Sets paths aside that have too many in common with better ones (mTCP, section 3.3; what
    /// exactly is with the engine's [`set_routes`](manypath_proto::Association::set_routes)). Data
    /// goes on meanwhile. For every first leg of a path, to the peer or to the relay, a few packets
    /// are sent, six at a time; relays are asked for the second legs. Where hops cannot be looked
    /// for (on Linux they can, without privileges) nothing happens.
    ///
    /// It ends when the answer is dropped, or the association is over. Must be called within a
    /// tokio runtime.
    pub fn watch_routes(&self, interval: Duration) -> RouteWatch {
        let events = self.events();
        let interval = interval.clamp(INTERVALS.0, INTERVALS.1);
        let watcher = Watcher {
            shared: Arc::clone(self.shared()),
            id: self.id(),
            routes: Routes::new(),
            asked: BTreeSet::new(),
        };
        RouteWatch(tokio::spawn(watcher.run(events, interval)))
    }
}

/// The task's state. It has no handle of the association, which would keep it open.
struct Watcher {
    shared: Arc<Shared>,
    id: AssocId,
    routes: Routes,
    /// Ways whose relays were asked for the routes since all were due.
    asked: BTreeSet<manypath_net::Way>,
}

impl Watcher {
    async fn run(mut self, mut events: EventStream, interval: Duration) {
        let mut looks = Looks::new(Instant::now(), interval);
        let mut relays = self.shared.relays.subscribe();
        loop {
            let is_due = looks.take_due(Instant::now());
            self.ask_relays(is_due);
            if !self.trace(is_due).await {
                return;
            }
            self.tell();
            if !wait(&mut events, &mut relays, looks.next).await {
                return;
            }
        }
    }

    /// The paths that there are now.
    fn paths(&self) -> Vec<Way> {
        self.shared.with(|inner, _| {
            let Some(association) = inner.assocs.engine.assoc(self.id) else { return Vec::new() };
            let way = |p: manypath_proto::PathStats| Way {
                id: p.id,
                local: p.local,
                remote: p.remote,
                rtt_min: p.rtt_min,
                of_relay: inner.relay_paths.name(p.local).is_some(),
            };
            association.paths().map(way).collect()
        })
    }

    /// Asks the relays for the second halves of the paths through them, only of new paths unless it
    /// is due. Their answers come with the relays' status.
    fn ask_relays(&mut self, is_due: bool) {
        if is_due {
            self.asked.clear();
        }
        let ways = self.paths().into_iter().filter(|path| path.of_relay);
        let ways: Vec<_> = ways.map(|path| (path.local, path.remote)).collect();
        self.asked.retain(|way| ways.contains(way));
        let new: Vec<_> = ways.into_iter().filter(|way| self.asked.insert(*way)).collect();
        if new.is_empty() {
            return;
        }
        self.shared.with(|inner, _| {
            new.into_iter().for_each(|way| inner.relay_paths.want_route(way));
            inner.assocs.kick();
        });
    }

    /// Traces the legs of all paths, also of those that relays will give; only new ones unless it
    /// is due. False if that is not possible on this system.
    async fn trace(&mut self, is_due: bool) -> bool {
        let relays = self.shared.relays.borrow().clone();
        let paths = self.paths();
        for leg in legs_to_trace(&mut self.routes, &paths, &relays, is_due) {
            let found = self.routes.find(leg, TraceOptions::default()).await;
            if let Err(error) = found
                && matches!(
                    error.kind(),
                    io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied
                )
            {
                return false;
            }
        }
        self.routes.find_aliases().await;
        true
    }

    /// Tells the engine what is known of the paths that there are now.
    fn tell(&mut self) {
        let relays = self.shared.relays.borrow().clone();
        self.routes.learn_from(&relays);
        let found = known_routes(&self.routes, &self.paths(), &relays);
        self.shared.with(|inner, now| {
            if let Some(association) = inner.assocs.engine.assoc_mut(self.id) {
                association.set_routes(now, found);
                inner.drain_events(now);
                inner.assocs.kick();
            }
        });
    }
}

/// When the hops of all paths are looked at.
#[derive(Debug)]
struct Looks {
    next: Instant,
    /// From the next look to the one after it.
    pause: Duration,
    interval: Duration,
}

impl Looks {
    /// The first look is due now.
    fn new(now: Instant, interval: Duration) -> Looks {
        Looks { next: now, pause: FIRST_INTERVAL.min(interval), interval }
    }

    /// True if a look is due, which is made now.
    fn take_due(&mut self, now: Instant) -> bool {
        let is_due = now >= self.next;
        if is_due {
            self.next += self.pause;
            self.pause = (self.pause * 2).min(self.interval);
        }
        is_due
    }
}

/// A path, as far as its hops are concerned.
#[derive(Clone, Debug)]
struct Way {
    id: PathId,
    local: SocketAddr,
    remote: SocketAddr,
    rtt_min: Option<Duration>,
    /// Our address on it is, or was, a relay's.
    of_relay: bool,
}

impl Way {
    /// The leg that can be traced. None if its relay has another address for us by now.
    fn leg(&self, relays: &[RelayStatus]) -> Option<Leg> {
        if self.of_relay {
            relay_leg(relays.iter().find(|r| r.relayed == Some(self.local))?)
        } else {
            Some((self.local.ip(), self.remote.ip()))
        }
    }
}

/// The legs that are to be traced now: all if it is due, and otherwise those that are new, also of
/// paths that relays will give. The others are forgotten.
fn legs_to_trace(
    routes: &mut Routes,
    paths: &[Way],
    relays: &[RelayStatus],
    is_due: bool,
) -> Vec<Leg> {
    let used = paths.iter().filter_map(|path| path.leg(relays));
    let legs: BTreeSet<Leg> = used.chain(relays.iter().filter_map(relay_leg)).collect();
    routes.retain(&legs);
    legs.into_iter().filter(|&leg| is_due || !routes.knows(leg)).collect()
}

/// The routes of paths, as far as they were traced. Those without a round-trip time wait for one.
fn known_routes(routes: &Routes, paths: &[Way], relays: &[RelayStatus]) -> Vec<(PathId, Route)> {
    let peer: Vec<IpAddr> = paths.iter().map(|path| path.remote.ip()).collect();
    let mut aliases = routes.aliases(&peer);
    let mut found = Vec::new();
    for path in paths {
        let (Some(leg), Some(rtt)) = (path.leg(relays), path.rtt_min) else { continue };
        let hops = routes.hops(leg, path.of_relay, path.remote.ip(), rtt);
        found.push((path.id, route(&hops, &mut aliases)));
    }
    found
}

/// The leg that can be traced of a path through a relay.
fn relay_leg(relay: &RelayStatus) -> Option<Leg> {
    Some((preferred_source(relay.address).ok()?, relay.address.ip()))
}

/// Waits until `due`, or until shortly after paths come or relays tell something new. False if the
/// association is over.
async fn wait(
    events: &mut EventStream,
    relays: &mut watch::Receiver<Vec<RelayStatus>>,
    due: Instant,
) -> bool {
    let mut until = due;
    loop {
        let is_new = tokio::select! {
            event = events.next() => match event {
                None => return false,
                Some(event) => {
                    matches!(event, Event::PathAdded { .. } | Event::PathState { .. })
                }
            },
            Ok(()) = relays.changed() => true,
            () = sleep_until(until) => return true,
        };
        if is_new {
            until = until.min(Instant::now() + SETTLES);
        }
    }
}

#[cfg(test)]
mod tests;
