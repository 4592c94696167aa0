//! Looking for the hops of an association's paths while it is in use.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use manypath_net::{Leg, RelayStatus, Routes, TraceOptions, preferred_source, route};
use manypath_proto::overlay::Route;
use manypath_proto::{AssocId, Event, PathId, PathStats};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::association::Association;
use crate::events::EventStream;
use crate::shared::Shared;

/// Paths often come in groups: so long after one others are waited for.
const SETTLES: Duration = Duration::from_millis(100);
/// The longest and the shortest time between two looks at the hops.
const INTERVALS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(86_400));

/// Looks for the hops of an association's paths until it is dropped, see [`Association::watch_routes`].
#[derive(Debug)]
pub struct RouteWatch(JoinHandle<()>);

impl Drop for RouteWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Association {
    /// Looks for the hops of the paths, now, when paths come, and every `interval` (1 s to a day), and sets paths aside that
    /// have too many in common with better ones (mTCP, section 3.3; what exactly is with the engine's
    /// [`set_routes`](manypath_proto::Association::set_routes)). Data goes on meanwhile. For every first leg of a path, to the
    /// peer or to the relay, a few packets are sent, six at a time. Where hops cannot be looked for (on Linux they can,
    /// without privileges) nothing happens.
    ///
    /// It ends when the answer is dropped, or the association is over. Must be called within a tokio runtime.
    pub fn watch_routes(&self, interval: Duration) -> RouteWatch {
        let events = self.events();
        let interval = interval.clamp(INTERVALS.0, INTERVALS.1);
        let watcher =
            Watcher { shared: Arc::clone(self.shared()), id: self.id(), routes: Routes::new() };
        RouteWatch(tokio::spawn(watcher.run(events, interval)))
    }
}

/// The task's state. It has no handle of the association, which would keep it open.
struct Watcher {
    shared: Arc<Shared>,
    id: AssocId,
    routes: Routes,
}

impl Watcher {
    async fn run(mut self, mut events: EventStream, interval: Duration) {
        let mut again = Instant::now();
        loop {
            let is_due = Instant::now() >= again;
            if is_due {
                again += interval;
            }
            if !self.trace(is_due).await {
                return;
            }
            self.tell();
            if !wait(&mut events, again).await {
                return;
            }
        }
    }

    /// The paths, what can be traced of each, and whether that ends at a relay.
    fn legs(&self) -> Vec<(PathStats, Leg, bool)> {
        let relays = self.shared.relays.borrow().clone();
        let (paths, of_relays) = self.shared.with(|inner, _| {
            let paths = inner.engine.assoc(self.id).map(|a| a.paths().collect());
            let paths: Vec<PathStats> = paths.unwrap_or_default();
            let names: Vec<bool> =
                paths.iter().map(|p| inner.relay_name(p.local).is_some()).collect();
            (paths, names)
        });
        let with_legs = paths.into_iter().zip(of_relays).filter_map(|(path, of_relay)| {
            let leg = match of_relay {
                // Nothing of a path whose relay has another address for us by now.
                true => relay_leg(relays.iter().find(|r| r.relayed == Some(path.local))?)?,
                false => (path.local.ip(), path.remote.ip()),
            };
            Some((path, leg, of_relay))
        });
        with_legs.collect()
    }

    /// Traces the legs of all paths, also of those that relays will give; only new ones unless it is due. False if that
    /// is not possible on this system.
    async fn trace(&mut self, is_due: bool) -> bool {
        let relays = self.shared.relays.borrow().clone();
        let known = self.legs().into_iter().map(|(_, leg, _)| leg);
        let legs: BTreeSet<Leg> = known.chain(relays.iter().filter_map(relay_leg)).collect();
        self.routes.retain(&legs);
        for leg in legs {
            if !is_due && self.routes.knows(leg) {
                continue;
            }
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
    fn tell(&self) {
        let paths = self.legs();
        let peer: Vec<IpAddr> = paths.iter().map(|(path, ..)| path.remote.ip()).collect();
        let mut aliases = self.routes.aliases(&peer);
        let mut found: Vec<(PathId, Route)> = Vec::new();
        for (path, leg, through_relay) in paths {
            let Some(rtt) = path.rtt_min else { continue };
            let hops = self.routes.hops(leg, through_relay, path.remote.ip(), rtt);
            found.push((path.id, route(&hops, &mut aliases)));
        }
        self.shared.with(|inner, now| {
            if let Some(association) = inner.engine.assoc_mut(self.id) {
                association.set_routes(now, found);
                inner.drain_events(now);
                inner.kick();
            }
        });
    }
}

/// What can be traced of a path through a relay.
fn relay_leg(relay: &RelayStatus) -> Option<Leg> {
    Some((preferred_source(relay.address).ok()?, relay.address.ip()))
}

/// Waits until `due`, or until shortly after paths come. False if the association is over.
async fn wait(events: &mut EventStream, due: Instant) -> bool {
    let mut until = due;
    loop {
        match timeout_at(until, events.next()).await {
            Err(_) => return true,
            Ok(None) => return false,
            Ok(Some(Event::PathAdded { .. } | Event::PathState { .. })) => {
                until = until.min(Instant::now() + SETTLES);
            }
            Ok(Some(_)) => {}
        }
    }
}
