//! The associations of an endpoint, as their handles use them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use manypath_net::Uplinks;
use manypath_proto as proto;
use manypath_proto::{AssocClosed, AssocId, ConnectTo, Event, Instant, KeyManagement, SendOptions};

use super::assoc_state::{AssocState, PeerPlaces};
use super::driver_link::DriverLink;
use crate::error::{ConnectError, SendError};
use crate::events::EventStream;
use crate::wakers::Wakers;

/// The engine, the handles' part of each association, and the tasks to wake.
pub(crate) struct Associations {
    pub(crate) engine: proto::Endpoint,
    states: BTreeMap<AssocId, AssocState>,
    /// Over and without handles; the engine may still have their last packets.
    ended: Vec<AssocId>,
    driver: DriverLink,
    /// Waiting for all associations to be over.
    closed_wakers: Wakers,
    /// Associations with tasks that wait for most of what is queued to be sent.
    draining: Vec<AssocId>,
    /// To be woken when the lock is free again.
    pub(crate) to_wake: Vec<Waker>,
}

impl Associations {
    pub(super) fn new(engine: proto::Endpoint) -> Associations {
        Associations {
            engine,
            states: BTreeMap::new(),
            ended: Vec::new(),
            driver: DriverLink::default(),
            closed_wakers: Wakers::default(),
            draining: Vec::new(),
            to_wake: Vec::new(),
        }
    }

    // ---- The driver ----

    /// Makes the driver run soon: an association may have something to send or a new deadline.
    pub(crate) fn kick(&mut self) {
        self.driver.kick(&mut self.to_wake);
    }

    /// The driver runs: it will see everything done before this.
    pub(crate) fn driver_runs(&mut self, cx: &Context<'_>) {
        self.driver.runs(cx);
    }

    /// The driver is gone: every association is over.
    pub(super) fn driver_gone(&mut self) {
        self.driver.set_gone();
        self.closed_wakers.wake(&mut self.to_wake);
        for state in self.states.values_mut() {
            state.stop(&mut self.to_wake);
        }
    }

    /// True if a task is to be woken.
    pub(crate) fn wakes_anyone(&self) -> bool {
        !self.to_wake.is_empty()
    }

    /// Notes an event of the engine and wakes whom it concerns; true if the association is
    /// forgotten with it.
    pub(super) fn on_event(&mut self, now: Instant, id: AssocId, event: Event) -> bool {
        let Some(state) = self.states.get_mut(&id) else { return false };
        if matches!(event, Event::Readable) && !state.is_owned() {
            discard_received(&mut self.engine, now, id);
            return false;
        }
        let over = matches!(event, Event::Closed(_));
        state.on_event(event, &mut self.to_wake);
        let forgotten = over && !state.is_owned();
        if over {
            self.closed_wakers.wake(&mut self.to_wake);
        }
        if forgotten {
            self.forget(id);
        }
        forgotten
    }

    // ---- All of them ----

    /// The handles know of this association.
    pub(super) fn contains(&self, id: AssocId) -> bool {
        self.states.contains_key(&id)
    }

    /// The associations that are not over.
    pub(crate) fn open(&self) -> Vec<AssocId> {
        self.states.keys().copied().filter(|&id| self.closed(id).is_none()).collect()
    }

    fn all_closed(&self) -> bool {
        self.states.keys().all(|&id| self.closed(id).is_some())
    }

    /// True when all are over and the engine has forgotten those without handles.
    pub(super) fn is_finished(&self) -> bool {
        self.ended.is_empty() && self.all_closed()
    }

    /// Waits until no association is open.
    pub(crate) fn poll_all_closed(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.driver.is_gone() || self.all_closed() {
            return Poll::Ready(());
        }
        self.closed_wakers.register(cx);
        Poll::Pending
    }

    /// Begins to shut down every association; those not yet established are aborted.
    pub(crate) fn shutdown_all(&mut self, now: Instant) {
        let ids: Vec<_> = self.states.keys().copied().collect();
        for id in ids {
            self.shutdown(now, id);
        }
    }

    pub(crate) fn abort_all(&mut self, now: Instant, reason: &[u8]) {
        let ids: Vec<_> = self.states.keys().copied().collect();
        for id in ids {
            self.abort(now, id, reason);
        }
    }

    // ---- Opening ----

    /// Opens an association.
    pub(super) fn connect(
        &mut self,
        now: Instant,
        to: ConnectTo,
        keys: Option<Arc<dyn KeyManagement>>,
        peer: PeerPlaces,
        first: Option<(SendOptions, Bytes)>,
    ) -> Result<AssocId, ConnectError> {
        let id = self.engine.connect_with(now, to, keys)?;
        if let (Some((options, payload)), Some(assoc)) = (first, self.engine.assoc_mut(id))
            && let Err(e) = assoc.send(now, options, payload)
        {
            self.engine.forget(id);
            return Err(ConnectError::FirstMessage(e));
        }
        self.states.insert(id, AssocState::owned(peer));
        Ok(id)
    }

    /// Takes an association that a peer opened; the application will get a handle.
    pub(super) fn take_incoming(&mut self, id: AssocId) {
        self.states.insert(id, AssocState::owned(PeerPlaces::default()));
    }

    /// Refuses an association that a peer opened.
    pub(super) fn refuse_incoming(&mut self, now: Instant, id: AssocId, reason: &[u8]) {
        self.states.insert(id, AssocState::default());
        if let Some(assoc) = self.engine.assoc_mut(id) {
            assoc.abort(now, reason);
        }
        self.kick();
    }

    pub(crate) fn poll_established(
        &mut self,
        cx: &Context<'_>,
        id: AssocId,
    ) -> Poll<Result<(), AssocClosed>> {
        if self.state(id).is_established() {
            return Poll::Ready(Ok(()));
        }
        self.poll_closed(cx, id).map(Err)
    }

    // ---- Sending and receiving ----

    /// The handles' part of association `id`, which exists as long as a handle does.
    pub(crate) fn state(&mut self, id: AssocId) -> &mut AssocState {
        self.states.entry(id).or_default()
    }

    /// The peer's addresses that an association was opened to; none if the peer opened it.
    pub(crate) fn remotes(&self, id: AssocId) -> &[SocketAddr] {
        self.states.get(&id).map_or(&[], |state| &state.peer.remotes)
    }

    /// The uplinks of an association that follows them.
    pub(crate) fn uplinks(&self, id: AssocId) -> Option<&Uplinks> {
        self.states.get(&id)?.peer.uplinks.as_ref()
    }

    pub(crate) fn set_uplinks(&mut self, id: AssocId, uplinks: Uplinks) {
        if let Some(state) = self.states.get_mut(&id) {
            state.peer.uplinks = Some(uplinks);
        }
    }

    /// The events of `id` from now on.
    pub(crate) fn subscribe(&mut self, id: AssocId) -> EventStream {
        let over = self.closed(id).is_some();
        self.state(id).subscribe(over)
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
                self.state(id).wait_for_room(cx);
                return Poll::Pending;
            }
            proto::SendError::TooLarge { limit, .. } => SendError::TooLarge { limit },
            proto::SendError::Empty => SendError::Empty,
            proto::SendError::NoSuchStream { .. } => SendError::NoSuchStream(options.stream),
            proto::SendError::Closed => SendError::ShutDown,
        }))
    }

    /// Waits until at most `limit` bytes of what is queued are unsent.
    pub(crate) fn poll_drained(
        &mut self,
        cx: &Context<'_>,
        id: AssocId,
        limit: usize,
    ) -> Poll<Result<(), AssocClosed>> {
        if let Some(closed) = self.closed(id) {
            return Poll::Ready(Err(closed));
        }
        if self.engine.assoc(id).is_none_or(|assoc| assoc.unsent_bytes() <= limit) {
            return Poll::Ready(Ok(()));
        }
        self.state(id).wait_for_drain(cx, limit);
        if !self.draining.contains(&id) {
            self.draining.push(id);
        }
        Poll::Pending
    }

    /// Wakes the tasks that wait for queued data to be sent, where that has happened.
    pub(crate) fn wake_drained(&mut self) {
        let (engine, states, to_wake) = (&self.engine, &mut self.states, &mut self.to_wake);
        self.draining.retain(|id| {
            let unsent = engine.assoc(*id).map_or(0, proto::Association::unsent_bytes);
            states.get_mut(id).is_some_and(|state| state.wake_drained(unsent, to_wake))
        });
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

    /// Takes the next message off the engine into the inbox; false if there is none.
    pub(crate) fn pull(&mut self, now: Instant, id: AssocId) -> bool {
        let Some(message) = self.engine.assoc_mut(id).and_then(|a| a.recv(now)) else {
            return false;
        };
        // The peer may be waiting to hear of the room this made.
        self.kick();
        let state = self.states.entry(id).or_default();
        state.inbox.put(message, &mut self.to_wake);
        true
    }

    /// Wakes all readers of `id`, because one of them made room for the others.
    pub(crate) fn wake_readers(&mut self, id: AssocId) {
        let state = self.states.entry(id).or_default();
        state.inbox.wake(&mut self.to_wake);
    }

    // ---- Ending ----

    /// Why it is over, if it is.
    pub(crate) fn closed(&self, id: AssocId) -> Option<AssocClosed> {
        match self.engine.assoc(id) {
            Some(assoc) => match assoc.closed() {
                None if self.driver.is_gone() => Some(AssocClosed::Aborted),
                closed => closed.cloned(),
            },
            None => Some(AssocClosed::Aborted),
        }
    }

    /// How the input ended: all of it was received, or a failure. `None` if it has not ended.
    pub(crate) fn end_of_input(&self, id: AssocId) -> Option<Result<(), AssocClosed>> {
        match self.closed(id) {
            Some(AssocClosed::Shutdown) => Some(Ok(())),
            Some(closed) => Some(Err(closed)),
            // RFC 9260 §9.2: the peer sends SHUTDOWN once all its data is acknowledged.
            None => self.states.get(&id).filter(|s| s.has_peer_shutdown()).map(|_| Ok(())),
        }
    }

    pub(crate) fn poll_closed(&mut self, cx: &Context<'_>, id: AssocId) -> Poll<AssocClosed> {
        if let Some(closed) = self.closed(id) {
            return Poll::Ready(closed);
        }
        self.state(id).wait_for_change(cx);
        Poll::Pending
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

    /// The last handle of `id` is gone: an established association shuts down in the background,
    /// what still arrives is discarded. True if the association is forgotten with it.
    pub(super) fn release(&mut self, now: Instant, id: AssocId) -> bool {
        let over = self.closed(id).is_some();
        if over {
            self.forget(id);
        } else {
            self.state(id).release();
            discard_received(&mut self.engine, now, id);
            self.shutdown(now, id);
        }
        self.kick();
        over
    }

    fn forget(&mut self, id: AssocId) {
        self.states.remove(&id);
        self.ended.push(id);
    }

    /// Forgets what has ended, once the engine has given out its last packets, such as an ABORT.
    pub(crate) fn all_transmitted(&mut self) {
        for id in self.ended.drain(..) {
            self.engine.forget(id);
        }
    }
}

/// Drops what has arrived for an association that nobody reads, so that the peer can finish.
fn discard_received(engine: &mut proto::Endpoint, now: Instant, id: AssocId) {
    if let Some(assoc) = engine.assoc_mut(id) {
        while assoc.recv(now).is_some() {}
    }
}
