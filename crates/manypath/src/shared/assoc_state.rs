//! State of one association that its handles keep beside the engine's.

use std::net::SocketAddr;
use std::task::{Context, Waker};

use manypath_net::Uplinks;
use manypath_proto::Event;
use tokio::sync::broadcast;

use crate::events::{EVENT_BACKLOG, EventStream};
use crate::inbox::Inbox;
use crate::wakers::Wakers;

/// The places that an association was opened to, and over.
#[derive(Clone, Debug, Default)]
pub(crate) struct PeerPlaces {
    /// The peer's addresses; none if the peer opened it.
    pub(crate) remotes: Vec<SocketAddr>,
    /// The interfaces that lead there; `None` if it does not follow them.
    pub(crate) uplinks: Option<Uplinks>,
}

/// The handles' part of an association: what it has received, who waits for it, who watches it.
#[derive(Default)]
pub(crate) struct AssocState {
    /// A handle exists, or the accept queue will make one.
    owned: bool,
    established: bool,
    peer_shutdown: bool,
    /// The places that it was opened to, and over.
    pub(crate) peer: PeerPlaces,
    pub(crate) inbox: Inbox,
    send_wakers: Wakers,
    /// Waiting until at most that number of bytes is unsent.
    drain_wakers: Vec<(usize, Waker)>,
    /// Waiting for it to be established, acknowledged or over.
    state_wakers: Wakers,
    events: Option<broadcast::Sender<Event>>,
}

impl AssocState {
    /// An association that handles own.
    pub(crate) fn owned(peer: PeerPlaces) -> AssocState {
        AssocState { owned: true, peer, ..AssocState::default() }
    }

    pub(crate) fn is_owned(&self) -> bool {
        self.owned
    }

    pub(crate) fn is_established(&self) -> bool {
        self.established
    }

    /// The peer sends no more.
    pub(crate) fn has_peer_shutdown(&self) -> bool {
        self.peer_shutdown
    }

    /// Notes an event of the engine, wakes those who wait for it and tells those who watch.
    pub(crate) fn on_event(&mut self, event: Event, to_wake: &mut Vec<Waker>) {
        match &event {
            Event::Connected { .. } => {
                self.established = true;
                self.state_wakers.wake(to_wake);
            }
            Event::Readable => self.inbox.wake(to_wake),
            Event::Writable => self.send_wakers.wake(to_wake),
            Event::SendBufferEmpty => self.state_wakers.wake(to_wake),
            Event::PeerShutdown => {
                self.peer_shutdown = true;
                self.wake_all(to_wake);
            }
            Event::Closed(_) => self.wake_all(to_wake),
            _ => {}
        }
        let over = matches!(event, Event::Closed(_));
        if let Some(events) = &self.events
            && !matches!(event, Event::Readable | Event::Writable)
        {
            // An error means that nobody watches any more.
            if events.send(event).is_err() || over {
                self.events = None;
            }
        }
    }

    /// The events from now on; none if the association is over.
    pub(crate) fn subscribe(&mut self, over: bool) -> EventStream {
        if let Some(sender) = &self.events {
            return EventStream::new(sender.subscribe());
        }
        let (sender, receiver) = broadcast::channel(EVENT_BACKLOG);
        if !over {
            self.events = Some(sender);
        }
        EventStream::new(receiver)
    }

    /// Has the task woken when there may be room to send.
    pub(crate) fn wait_for_room(&mut self, cx: &Context<'_>) {
        self.send_wakers.register(cx);
    }

    /// Has the task woken when at most `limit` bytes are unsent.
    pub(crate) fn wait_for_drain(&mut self, cx: &Context<'_>, limit: usize) {
        self.drain_wakers.retain(|(_, waker)| !waker.will_wake(cx.waker()));
        self.drain_wakers.push((limit, cx.waker().clone()));
    }

    /// Wakes those who waited for no more than `unsent` bytes. True if others go on waiting.
    pub(crate) fn wake_drained(&mut self, unsent: usize, to_wake: &mut Vec<Waker>) -> bool {
        let woken = self.drain_wakers.extract_if(.., |(limit, _)| unsent <= *limit);
        to_wake.extend(woken.map(|(_, waker)| waker));
        !self.drain_wakers.is_empty()
    }

    /// Has the task woken when the association is established, acknowledged or over.
    pub(crate) fn wait_for_change(&mut self, cx: &Context<'_>) {
        self.state_wakers.register(cx);
    }

    /// No handle is left: drops what was not read, and the watchers.
    pub(crate) fn release(&mut self) {
        self.owned = false;
        self.events = None;
        self.inbox = Inbox::default();
    }

    /// Nothing moves any more: wakes everybody, and ends the events.
    pub(crate) fn stop(&mut self, to_wake: &mut Vec<Waker>) {
        self.wake_all(to_wake);
        self.events = None;
    }

    fn wake_all(&mut self, to_wake: &mut Vec<Waker>) {
        self.inbox.wake(to_wake);
        self.send_wakers.wake(to_wake);
        to_wake.extend(self.drain_wakers.drain(..).map(|(_, waker)| waker));
        self.state_wakers.wake(to_wake);
    }
}
