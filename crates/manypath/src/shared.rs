//! State that the driver and the handles of an endpoint share, behind one lock.

mod accept_queue;
mod assoc_state;
mod associations;
mod driver_link;
mod relay_channels;
mod relay_paths;

#[cfg(feature = "relay")]
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use manypath_net::{BoundAddresses, Clock, RelayStatus, SendFailures, UdpSockets};
use manypath_proto as proto;
use manypath_proto::{AssocId, ConnectTo, Crowd, Event, Instant, KeyManagement, SendOptions};
use tokio::sync::watch;

#[cfg(feature = "relay")]
use crate::direct::Wish;
use crate::error::ConnectError;
use crate::ranks::Ranks;
use crate::strangers::StrangerLimits;
use crate::uplinks::Wanted;
use accept_queue::AcceptQueue;
pub(crate) use assoc_state::PeerPlaces;
pub(crate) use associations::Associations;
use relay_channels::RelayChannels;
use relay_paths::RelayPaths;

/// An endpoint's state behind its lock, and what never changes.
pub(crate) struct Shared {
    inner: Mutex<Inner>,
    pub(crate) clock: Clock,
    /// The application says that the network has changed.
    pub(crate) look: AtomicBool,
    /// Associations have paths from every uplink: the endpoint is bound by
    /// [`BindTo::Auto`](manypath_net::BindTo::Auto).
    pub(crate) follows_uplinks: bool,
    /// A handle waits for sockets of uplinks.
    pub(crate) look_at_uplinks: AtomicBool,
    pub(crate) notes: Vec<String>,
    /// The SCTP port over IP itself, if that is used.
    pub(crate) raw_ip_port: Option<u16>,
    pub(crate) relays: watch::Sender<Vec<RelayStatus>>,
}

/// Facts about the sockets of an endpoint.
pub(crate) struct Below {
    pub(crate) bound: BoundAddresses,
    /// The SCTP port over IP itself, if that is used.
    pub(crate) raw_ip_port: Option<u16>,
    /// Notes for the user.
    pub(crate) notes: Vec<String>,
    pub(crate) follows_uplinks: bool,
}

/// Bounds of an endpoint that accepts.
pub(crate) struct AcceptLimits {
    /// Associations that wait to be accepted.
    pub(crate) backlog: usize,
    /// Limits for associations of peers that are not admitted yet.
    pub(crate) strangers: Option<StrangerLimits>,
}

impl Shared {
    pub(crate) fn new(
        engine: proto::Endpoint,
        clock: Clock,
        below: Below,
        relays: Vec<RelayStatus>,
        limits: AcceptLimits,
    ) -> Arc<Shared> {
        let Below { bound, raw_ip_port, notes, follows_uplinks } = below;
        let inner = Inner {
            assocs: Associations::new(engine),
            accept: AcceptQueue::new(limits.backlog),
            strangers: limits.strangers.map(|limits| Crowd::new(limits.crowd())),
            relay_paths: RelayPaths::new(relays.len()),
            relay_channels: RelayChannels::default(),
            takes_relays_only: false,
            hides_addresses: false,
            #[cfg(feature = "relay")]
            direct: Wish::default(),
            open: true,
            handles: true,
            send_failures: SendFailures::default(),
            bound,
            ranks: Ranks::default(),
            uplinks: Wanted::default(),
        };
        Arc::new(Shared {
            inner: Mutex::new(inner),
            clock,
            look: AtomicBool::new(false),
            follows_uplinks,
            look_at_uplinks: AtomicBool::new(false),
            notes,
            raw_ip_port,
            relays: watch::Sender::new(relays),
        })
    }

    /// The addresses of the sockets now.
    pub(crate) fn bound(&self) -> BoundAddresses {
        self.with(|inner, _| inner.bound.clone())
    }

    /// Runs `f` under the lock, and wakes whom it chose to wake after the lock is free again.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Inner, Instant) -> R) -> R {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let result = f(&mut inner, self.clock.now());
        let wakers = std::mem::take(&mut inner.assocs.to_wake);
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
        result
    }
}

/// An endpoint's associations, and what it needs to open, accept and close them; behind the lock.
pub(crate) struct Inner {
    pub(crate) assocs: Associations,
    accept: AcceptQueue,
    pub(crate) strangers: Option<Crowd<AssocId>>,
    pub(crate) relay_paths: RelayPaths,
    relay_channels: RelayChannels,
    /// Packets leave and come through relays of this host alone.
    pub(crate) takes_relays_only: bool,
    /// Peers are told no address of this host.
    pub(crate) hides_addresses: bool,
    /// The wish for direct paths.
    #[cfg(feature = "relay")]
    pub(crate) direct: Wish,
    /// New associations are wanted: not closed, and a handle of the endpoint is left.
    open: bool,
    /// A handle of the endpoint is left.
    handles: bool,
    pub(crate) send_failures: SendFailures,
    /// The addresses of the sockets now.
    pub(crate) bound: BoundAddresses,
    pub(crate) ranks: Ranks,
    pub(crate) uplinks: Wanted,
}

impl Inner {
    // ---- The driver ----

    /// True when nothing is left to do, now or later.
    pub(crate) fn is_finished(&self) -> bool {
        !self.handles && self.assocs.is_finished()
    }

    /// The driver is dropped before its time, with its runtime: every association is over, and each
    /// peer is told so if the caller still can. `engine_is_sane` is false after a panic.
    pub(crate) fn driver_gone(&mut self, now: Instant, engine_is_sane: bool) {
        if engine_is_sane {
            self.assocs.abort_all(now, b"the endpoint was stopped");
            self.drain_events(now);
        }
        self.open = false;
        self.accept.wake(&mut self.assocs.to_wake);
        self.uplinks.driver_gone(&mut self.assocs.to_wake);
        self.assocs.driver_gone();
    }

    /// Takes note of the addresses that the sockets have now.
    pub(crate) fn set_bound(&mut self, sockets: &UdpSockets) {
        self.bound = sockets.bound().clone();
        #[cfg(feature = "relay")]
        self.direct.look_again();
    }

    /// Takes the engine's events and wakes whom they concern.
    pub(crate) fn drain_events(&mut self, now: Instant) {
        while let Some((id, event)) = self.assocs.engine.poll_event() {
            self.on_event(now, id, event);
        }
    }

    fn on_event(&mut self, now: Instant, id: AssocId, event: Event) {
        self.relay_channels.note(&event);
        #[cfg(feature = "relay")]
        self.direct.note(&event);
        if matches!(event, Event::Connected { incoming: true }) && !self.assocs.contains(id) {
            self.on_incoming(now, id);
        }
        if matches!(event, Event::Closed(_)) {
            self.stranger_left(id);
        }
        if self.assocs.on_event(now, id, event) {
            self.relay_paths.remove_user(id);
        }
    }

    /// A peer has opened an association.
    fn on_incoming(&mut self, now: Instant, id: AssocId) {
        // First, as an older one may make room for it.
        self.stranger_came(now, id);
        if !self.open {
            let reason = b"the endpoint takes no more associations";
            self.assocs.refuse_incoming(now, id, reason);
        } else if self.accept.is_full() {
            let reason = b"too many associations wait to be accepted; try again later";
            self.assocs.refuse_incoming(now, id, reason);
        } else {
            self.assocs.take_incoming(id);
            if self.strangers.is_none()
                && let Some(assoc) = self.assocs.engine.assoc_mut(id)
            {
                assoc.seek_direct_paths(now);
            }
            self.accept.push(id, &mut self.assocs.to_wake);
        }
    }

    /// Looks for direct paths from now on. These relays say which addresses NATs give this host.
    #[cfg(feature = "relay")]
    pub(crate) fn seek_direct_paths(&mut self, now: Instant, relays: Vec<SocketAddr>) {
        self.direct.ask(now, &mut self.assocs.engine, relays);
        self.assocs.kick();
    }

    // ---- The endpoint ----

    /// New associations are wanted.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    pub(crate) fn connect(
        &mut self,
        now: Instant,
        to: ConnectTo,
        keys: Option<Arc<dyn KeyManagement>>,
        peer: PeerPlaces,
        first: Option<(SendOptions, Bytes)>,
    ) -> Result<AssocId, ConnectError> {
        if !self.open {
            return Err(ConnectError::EndpointClosed);
        }
        let remotes = peer.remotes.clone();
        let id = self.assocs.connect(now, to, keys, peer, first)?;
        self.relay_paths.add_user(now, &mut self.assocs.engine, id, remotes);
        self.assocs.kick();
        Ok(id)
    }

    /// The next association that a peer opened; `None` if there will be none.
    pub(crate) fn poll_accept(&mut self, cx: &Context<'_>) -> Poll<Option<AssocId>> {
        if let Some(id) = self.accept.pop() {
            return Poll::Ready(Some(id));
        }
        if !self.open {
            return Poll::Ready(None);
        }
        self.accept.wait(cx);
        Poll::Pending
    }

    /// Takes an association off the accept queue; true if it was there.
    pub(crate) fn take_from_accept_queue(&mut self, id: AssocId) -> bool {
        self.accept.remove(id)
    }

    /// Tells the engine the ranks of the addresses that this host has now.
    pub(crate) fn apply_ranks(&mut self, now: Instant) {
        self.ranks.apply(now, &mut self.assocs.engine);
        self.assocs.kick();
    }

    /// Takes no more associations, and aborts those nobody has accepted.
    pub(crate) fn stop_accepting(&mut self, now: Instant) {
        self.open = false;
        self.accept.wake(&mut self.assocs.to_wake);
        while let Some(id) = self.accept.pop() {
            self.assocs.abort(now, id, b"the endpoint was closed");
            self.release(now, id);
        }
        self.assocs.kick();
    }

    /// The last handle of the endpoint is gone.
    pub(crate) fn endpoint_dropped(&mut self, now: Instant) {
        self.handles = false;
        self.stop_accepting(now);
    }

    /// A stranger was admitted.
    pub(crate) fn stranger_known(&mut self) {
        self.relay_channels.look_again();
        self.assocs.kick();
    }

    /// The last handle of association `id` is gone.
    pub(crate) fn release(&mut self, now: Instant, id: AssocId) {
        if self.assocs.release(now, id) {
            self.relay_paths.remove_user(id);
        }
    }
}
