//! State that the driver and the handles of an endpoint share.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use manypath_net::{BoundAddresses, Clock, RelayChange, RelayStatus, SendFailures, Way};
use manypath_proto as proto;
use manypath_proto::{AssocClosed, AssocId, ConnectTo, Event, Instant, SendOptions};
use tokio::sync::{broadcast, watch};

use crate::error::{ConnectError, SendError};
use crate::events::{EVENT_BACKLOG, EventStream};
use crate::inbox::Inbox;
use crate::strangers::{StrangerLimits, Strangers};
use crate::wakers::Wakers;

/// An endpoint's state behind its lock, and what never changes.
pub(crate) struct Shared {
    inner: Mutex<Inner>,
    pub(crate) clock: Clock,
    /// The application says that the network has changed.
    pub(crate) look: AtomicBool,
    pub(crate) notes: Vec<String>,
    pub(crate) relays: watch::Sender<Vec<RelayStatus>>,
}

impl Shared {
    pub(crate) fn new(
        engine: proto::Endpoint,
        clock: Clock,
        bound: BoundAddresses,
        notes: Vec<String>,
        relays: Vec<RelayStatus>,
        (accept_backlog, strangers): (usize, Option<StrangerLimits>),
    ) -> Arc<Shared> {
        let inner = Inner {
            engine,
            assocs: BTreeMap::new(),
            ended: Vec::new(),
            accept: AcceptQueue { limit: accept_backlog, ..AcceptQueue::default() },
            strangers: strangers.map(Strangers::new),
            open: true,
            handles: true,
            driver: DriverLink::default(),
            closed_wakers: Wakers::default(),
            to_wake: Vec::new(),
            send_failures: SendFailures::default(),
            bound,
            ways: Ways { relays: relays.len(), ..Ways::default() },
        };
        let (inner, relays) = (Mutex::new(inner), watch::Sender::new(relays));
        Arc::new(Shared { inner, clock, look: AtomicBool::new(false), notes, relays })
    }

    /// The addresses of the sockets now.
    pub(crate) fn bound(&self) -> BoundAddresses {
        self.with(|inner, _| inner.bound.clone())
    }

    /// Runs `f` under the lock, and wakes whom it chose to wake after the lock is free again.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut Inner, Instant) -> R) -> R {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let result = f(&mut inner, self.clock.now());
        let wakers = std::mem::take(&mut inner.to_wake);
        drop(inner);
        wakers.into_iter().for_each(Waker::wake);
        result
    }
}

/// How the handles reach the driver.
#[derive(Default)]
struct DriverLink {
    waker: Option<Waker>,
    /// It has been woken and has not run since.
    kicked: bool,
    /// It was dropped with its runtime; nothing moves any more.
    gone: bool,
}

/// Associations that peers opened, until the application takes them.
#[derive(Default)]
struct AcceptQueue {
    ids: VecDeque<AssocId>,
    limit: usize,
    wakers: Wakers,
}

/// State of an association that the handles keep beside the engine's.
#[derive(Default)]
pub(crate) struct AssocState {
    /// A handle exists, or the accept queue will make one.
    owned: bool,
    established: bool,
    peer_shutdown: bool,
    /// The peer's addresses, where we opened it.
    remotes: Vec<SocketAddr>,
    pub(crate) inbox: Inbox,
    send_wakers: Wakers,
    /// Waiting for it to be established, acknowledged or over.
    state_wakers: Wakers,
    events: Option<broadcast::Sender<Event>>,
}

/// The engine and all that is known of its associations; behind the lock.
pub(crate) struct Inner {
    pub(crate) engine: proto::Endpoint,
    assocs: BTreeMap<AssocId, AssocState>,
    /// Over and without handles; the engine may still have their last packets.
    ended: Vec<AssocId>,
    accept: AcceptQueue,
    pub(crate) strangers: Option<Strangers<AssocId>>,
    /// New associations are wanted: not closed, and a handle of the endpoint is left.
    open: bool,
    /// A handle of the endpoint is left.
    handles: bool,
    driver: DriverLink,
    /// Waiting for all associations to be over.
    closed_wakers: Wakers,
    to_wake: Vec<Waker>,
    pub(crate) send_failures: SendFailures,
    /// The addresses of the sockets now.
    pub(crate) bound: BoundAddresses,
    pub(crate) ways: Ways,
}

/// The ways through relays.
#[derive(Default)]
pub(crate) struct Ways {
    /// How many relays there are.
    relays: usize,
    /// Those that are open.
    open: Vec<Way>,
    /// Relays, by number, and peers that ways are wanted to, until the driver asks for them.
    pub(crate) wanted: Vec<(usize, SocketAddr)>,
    /// The peer's addresses of each association that uses relays.
    users: BTreeMap<AssocId, Vec<SocketAddr>>,
    /// Names of the relays by the addresses they gave us, also those of before.
    names: BTreeMap<SocketAddr, String>,
}

/// As many addresses of relays as names are kept for: a relay that gives new ones for ever fills
/// nothing.
const NAMES_MAX: usize = 1000;

impl Inner {
    // ---- The driver ----

    /// Makes the driver run soon: an association may have something to send or a new deadline.
    pub(crate) fn kick(&mut self) {
        if self.driver.kicked {
            return;
        }
        if let Some(waker) = &self.driver.waker {
            self.driver.kicked = true;
            self.to_wake.push(waker.clone());
        }
    }

    /// The driver runs: it will see everything done before this.
    pub(crate) fn driver_runs(&mut self, cx: &Context<'_>) {
        self.driver.kicked = false;
        match &mut self.driver.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    /// True if a task is to be woken.
    pub(crate) fn wakes_anyone(&self) -> bool {
        !self.to_wake.is_empty()
    }

    /// True when nothing is left to do, now or later.
    pub(crate) fn is_finished(&self) -> bool {
        !self.handles && self.ended.is_empty() && self.all_closed()
    }

    fn all_closed(&self) -> bool {
        self.assocs.keys().all(|&id| self.closed(id).is_some())
    }

    /// The driver is dropped before its time, with its runtime: every association is over, and each
    /// peer is told so if the caller still can. `engine_is_sane` is false after a panic.
    pub(crate) fn driver_gone(&mut self, now: Instant, engine_is_sane: bool) {
        if engine_is_sane {
            self.abort_all(now, b"the endpoint was stopped");
            self.drain_events(now);
        }
        self.driver.gone = true;
        self.open = false;
        self.accept.wakers.wake(&mut self.to_wake);
        self.closed_wakers.wake(&mut self.to_wake);
        for state in self.assocs.values_mut() {
            state.wake_all(&mut self.to_wake);
            state.events = None;
        }
    }

    /// Takes the engine's events and wakes whom they concern.
    pub(crate) fn drain_events(&mut self, now: Instant) {
        while let Some((id, event)) = self.engine.poll_event() {
            self.on_event(now, id, event);
        }
    }

    fn on_event(&mut self, now: Instant, id: AssocId, event: Event) {
        if matches!(event, Event::Connected { incoming: true }) && !self.assocs.contains_key(&id) {
            self.on_incoming(now, id);
        }
        if matches!(event, Event::Closed(_)) {
            self.stranger_left(id);
        }
        let Some(state) = self.assocs.get_mut(&id) else { return };
        match &event {
            Event::Connected { .. } => {
                state.established = true;
                state.state_wakers.wake(&mut self.to_wake);
            }
            Event::Readable if !state.owned => discard_received(&mut self.engine, now, id),
            Event::Readable => state.inbox.wake(&mut self.to_wake),
            Event::Writable => state.send_wakers.wake(&mut self.to_wake),
            Event::SendBufferEmpty => state.state_wakers.wake(&mut self.to_wake),
            Event::PeerShutdown => {
                state.peer_shutdown = true;
                state.wake_all(&mut self.to_wake);
            }
            Event::Closed(_) => {
                state.wake_all(&mut self.to_wake);
                self.closed_wakers.wake(&mut self.to_wake);
            }
            _ => {}
        }
        let over = matches!(event, Event::Closed(_));
        if let Some(events) = &state.events
            && !matches!(event, Event::Readable | Event::Writable)
        {
            // An error means that nobody watches any more.
            if events.send(event).is_err() || over {
                state.events = None;
            }
        }
        if over && !state.owned {
            self.forget(id);
        }
    }

    /// A peer has opened an association.
    fn on_incoming(&mut self, now: Instant, id: AssocId) {
        // First, as an older one may make room for it.
        self.stranger_came(now, id);
        let reason: &[u8] = if !self.open {
            b"the endpoint takes no more associations"
        } else if self.accept.ids.len() >= self.accept.limit {
            b"too many associations wait to be accepted; try again later"
        } else {
            self.assocs.insert(id, AssocState { owned: true, ..AssocState::default() });
            self.accept.ids.push_back(id);
            self.accept.wakers.wake(&mut self.to_wake);
            return;
        };
        self.assocs.insert(id, AssocState::default());
        if let Some(assoc) = self.engine.assoc_mut(id) {
            assoc.abort(now, reason);
        }
        self.kick();
    }

    // ---- Relays ----

    /// Wants ways to the peer of a new association, and gives it those that are open. One for each
    /// relay: relay i goes to the peer's address i, the list beginning again at its end.
    fn use_relays(&mut self, now: Instant, id: AssocId, remotes: Vec<SocketAddr>) {
        if self.ways.relays == 0 || remotes.is_empty() {
            return;
        }
        let wanted = (0..self.ways.relays).map(|i| (i, remotes[i % remotes.len()]));
        self.ways.wanted.extend(wanted);
        if let Some(assoc) = self.engine.assoc_mut(id) {
            for &(relayed, peer) in self.ways.open.iter().filter(|w| remotes.contains(&w.1)) {
                assoc.add_path(now, relayed, peer);
            }
        }
        self.ways.users.insert(id, remotes);
    }

    /// Takes note of a change at a relay: paths come, or go.
    pub(crate) fn relay_changed(&mut self, now: Instant, change: RelayChange) {
        match change {
            RelayChange::Open((relayed, peer)) => {
                if !self.ways.open.contains(&(relayed, peer)) {
                    self.ways.open.push((relayed, peer));
                }
                for (&id, _) in self.ways.users.iter().filter(|(_, r)| r.contains(&peer)) {
                    if let Some(assoc) = self.engine.assoc_mut(id) {
                        assoc.add_path(now, relayed, peer);
                    }
                }
            }
            RelayChange::Gone(relayed) => {
                self.ways.open.retain(|&(local, _)| local != relayed);
                for &id in self.ways.users.keys() {
                    let Some(assoc) = self.engine.assoc_mut(id) else { continue };
                    let path = assoc.paths().find(|p| p.local == relayed).map(|p| p.id);
                    if let Some(path) = path {
                        assoc.remove_path(now, path);
                    }
                }
            }
            RelayChange::Status => {}
        }
    }

    /// Notes the names of relays' addresses.
    pub(crate) fn name_relays(&mut self, status: &[RelayStatus]) {
        for relay in status {
            if let Some(relayed) = relay.relayed {
                self.ways.names.insert(relayed, relay.name.clone());
            }
        }
        while self.ways.names.len() > NAMES_MAX {
            self.ways.names.pop_first();
        }
    }

    /// The name of the relay that gave us this address.
    pub(crate) fn relay_name(&self, local: SocketAddr) -> Option<String> {
        self.ways.names.get(&local).cloned()
    }

    // ---- This host's network ----

    /// The associations that are not over.
    pub(crate) fn open_assocs(&self) -> Vec<AssocId> {
        self.assocs.keys().copied().filter(|&id| self.closed(id).is_none()).collect()
    }

    /// The peer's addresses that an association was opened to; none if the peer opened it.
    pub(crate) fn remotes(&self, id: AssocId) -> &[SocketAddr] {
        self.assocs.get(&id).map_or(&[], |state| &state.remotes)
    }

    // ---- The endpoint ----

    pub(crate) fn connect(
        &mut self,
        now: Instant,
        (paths, sctp_port): (Vec<(SocketAddr, SocketAddr)>, u16),
        remotes: Vec<SocketAddr>,
        first: Option<(SendOptions, Bytes)>,
    ) -> Result<AssocId, ConnectError> {
        if !self.open {
            return Err(ConnectError::EndpointClosed);
        }
        let to = ConnectTo { paths, sctp_port };
        let id = self.engine.connect(now, to)?;
        if let (Some((options, payload)), Some(assoc)) = (first, self.engine.assoc_mut(id))
            && let Err(e) = assoc.send(now, options, payload)
        {
            self.engine.forget(id);
            return Err(ConnectError::FirstMessage(e));
        }
        let state = AssocState { owned: true, remotes: remotes.clone(), ..AssocState::default() };
        self.assocs.insert(id, state);
        self.use_relays(now, id, remotes);
        self.kick();
        Ok(id)
    }

    /// The next association that a peer opened; `None` if there will be none.
    pub(crate) fn poll_accept(&mut self, cx: &Context<'_>) -> Poll<Option<AssocId>> {
        if let Some(id) = self.accept.ids.pop_front() {
            return Poll::Ready(Some(id));
        }
        if !self.open {
            return Poll::Ready(None);
        }
        self.accept.wakers.register(cx);
        Poll::Pending
    }

    /// Takes an association off the accept queue; true if it was there.
    pub(crate) fn take_from_accept_queue(&mut self, id: AssocId) -> bool {
        let before = self.accept.ids.len();
        self.accept.ids.retain(|&other| other != id);
        self.accept.ids.len() < before
    }

    /// Takes no more associations, and aborts those nobody has accepted.
    pub(crate) fn stop_accepting(&mut self, now: Instant) {
        self.open = false;
        self.accept.wakers.wake(&mut self.to_wake);
        while let Some(id) = self.accept.ids.pop_front() {
            self.abort(now, id, b"the endpoint was closed");
            self.release(now, id);
        }
        self.kick();
    }

    /// The last handle of the endpoint is gone.
    pub(crate) fn endpoint_dropped(&mut self, now: Instant) {
        self.handles = false;
        self.stop_accepting(now);
    }

    /// Begins to shut down every association; those not yet established are aborted.
    pub(crate) fn shutdown_all(&mut self, now: Instant) {
        let ids: Vec<_> = self.assocs.keys().copied().collect();
        for id in ids {
            self.shutdown(now, id);
        }
    }

    pub(crate) fn abort_all(&mut self, now: Instant, reason: &[u8]) {
        let ids: Vec<_> = self.assocs.keys().copied().collect();
        for id in ids {
            self.abort(now, id, reason);
        }
    }

    /// Waits until no association is open.
    pub(crate) fn poll_all_closed(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.driver.gone || self.all_closed() {
            return Poll::Ready(());
        }
        self.closed_wakers.register(cx);
        Poll::Pending
    }

    // ---- One association ----

    /// Why it is over, if it is.
    pub(crate) fn closed(&self, id: AssocId) -> Option<AssocClosed> {
        match self.engine.assoc(id) {
            Some(assoc) => match assoc.closed() {
                None if self.driver.gone => Some(AssocClosed::Aborted),
                closed => closed.cloned(),
            },
            None => Some(AssocClosed::Aborted),
        }
    }

    /// The handles' part of association `id`, which exists as long as a handle does.
    pub(crate) fn state(&mut self, id: AssocId) -> &mut AssocState {
        self.assocs.entry(id).or_default()
    }

    pub(crate) fn poll_established(
        &mut self,
        cx: &Context<'_>,
        id: AssocId,
    ) -> Poll<Result<(), AssocClosed>> {
        if self.state(id).established {
            return Poll::Ready(Ok(()));
        }
        self.poll_closed(cx, id).map(Err)
    }

    pub(crate) fn poll_closed(&mut self, cx: &Context<'_>, id: AssocId) -> Poll<AssocClosed> {
        if let Some(closed) = self.closed(id) {
            return Poll::Ready(closed);
        }
        self.state(id).state_wakers.register(cx);
        Poll::Pending
    }

    /// Waits until the peer has acknowledged all that was sent.
    pub(crate) fn poll_acknowledged(
        &mut self,
        cx: &Context<'_>,
        id: AssocId,
    ) -> Poll<Result<(), AssocClosed>> {
        if self.engine.assoc(id).is_some_and(|a| a.closed().is_none() && a.unacked_bytes() == 0) {
            return Poll::Ready(Ok(()));
        }
        match self.poll_closed(cx, id) {
            Poll::Ready(AssocClosed::Shutdown) => Poll::Ready(Ok(())),
            other => other.map(Err),
        }
    }

    /// Queues a message, or waits for room.
    pub(crate) fn poll_send(
        &mut self,
        cx: &Context<'_>,
        now: Instant,
        id: AssocId,
        options: SendOptions,
        payload: &Bytes,
    ) -> Poll<Result<(), SendError>> {
        if let Some(closed) = self.closed(id) {
            return Poll::Ready(Err(SendError::Closed(closed)));
        }
        let Some(assoc) = self.engine.assoc_mut(id) else {
            return Poll::Ready(Err(SendError::Closed(AssocClosed::Aborted)));
        };
        let error = match assoc.send(now, options, payload.clone()) {
            Ok(()) => {
                self.kick();
                return Poll::Ready(Ok(()));
            }
            Err(error) => error,
        };
        Poll::Ready(Err(match error {
            proto::SendError::Full => {
                self.state(id).send_wakers.register(cx);
                return Poll::Pending;
            }
            proto::SendError::TooLarge { limit, .. } => SendError::TooLarge { limit },
            proto::SendError::Empty => SendError::Empty,
            proto::SendError::NoSuchStream { .. } => SendError::NoSuchStream(options.stream),
            proto::SendError::Closed => SendError::ShutDown,
        }))
    }

    pub(crate) fn shutdown(&mut self, now: Instant, id: AssocId) {
        let Some(assoc) = self.engine.assoc_mut(id) else { return };
        if assoc.is_established() {
            assoc.shutdown(now);
        } else if assoc.closed().is_none() {
            assoc.abort(now, b"");
        }
        self.kick();
    }

    pub(crate) fn abort(&mut self, now: Instant, id: AssocId, reason: &[u8]) {
        if let Some(assoc) = self.engine.assoc_mut(id)
            && assoc.closed().is_none()
        {
            assoc.abort(now, reason);
            self.kick();
        }
    }

    /// The events of `id` from now on.
    pub(crate) fn subscribe(&mut self, id: AssocId) -> EventStream {
        let over = self.closed(id).is_some();
        let events = &mut self.state(id).events;
        if let Some(sender) = events {
            return EventStream::new(sender.subscribe());
        }
        let (sender, receiver) = broadcast::channel(EVENT_BACKLOG);
        if !over {
            *events = Some(sender);
        }
        EventStream::new(receiver)
    }

    /// The last handle of `id` is gone: an established association shuts down in the background,
    /// what still arrives is discarded.
    pub(crate) fn release(&mut self, now: Instant, id: AssocId) {
        if self.closed(id).is_some() {
            self.forget(id);
        } else {
            let state = self.state(id);
            state.owned = false;
            state.events = None;
            state.inbox = Inbox::default();
            discard_received(&mut self.engine, now, id);
            self.shutdown(now, id);
        }
        self.kick();
    }

    fn forget(&mut self, id: AssocId) {
        self.assocs.remove(&id);
        self.ways.users.remove(&id);
        self.ended.push(id);
    }

    /// Forgets what has ended, once the engine has given out its last packets, such as an ABORT.
    pub(crate) fn all_transmitted(&mut self) {
        for id in self.ended.drain(..) {
            self.engine.forget(id);
        }
    }

    // ---- Receiving ----

    /// How the input ended: all of it was received, or a failure. `None` if it has not ended.
    pub(crate) fn end_of_input(&self, id: AssocId) -> Option<Result<(), AssocClosed>> {
        match self.closed(id) {
            Some(AssocClosed::Shutdown) => Some(Ok(())),
            Some(closed) => Some(Err(closed)),
            // RFC 9260 §9.2: the peer sends SHUTDOWN once all its data is acknowledged.
            None => self.assocs.get(&id).filter(|s| s.peer_shutdown).map(|_| Ok(())),
        }
    }

    /// Takes the next message off the engine into the inbox; false if there is none.
    pub(crate) fn pull(&mut self, now: Instant, id: AssocId) -> bool {
        let Some(message) = self.engine.assoc_mut(id).and_then(|a| a.recv(now)) else {
            return false;
        };
        // The peer may be waiting to hear of the room this made.
        self.kick();
        let state = self.assocs.entry(id).or_default();
        state.inbox.put(message, &mut self.to_wake);
        true
    }

    /// Wakes all readers of `id`, because one of them made room for the others.
    pub(crate) fn wake_readers(&mut self, id: AssocId) {
        let state = self.assocs.entry(id).or_default();
        state.inbox.wake(&mut self.to_wake);
    }
}

impl AssocState {
    fn wake_all(&mut self, to_wake: &mut Vec<Waker>) {
        self.inbox.wake(to_wake);
        self.send_wakers.wake(to_wake);
        self.state_wakers.wake(to_wake);
    }
}

/// Drops what has arrived for an association that nobody reads, so that the peer can finish.
fn discard_received(engine: &mut proto::Endpoint, now: Instant, id: AssocId) {
    if let Some(assoc) = engine.assoc_mut(id) {
        while assoc.recv(now).is_some() {}
    }
}
