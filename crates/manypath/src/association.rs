//! One association, as an application sees it.

use std::fmt;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use manypath_net::{Uplinks, unmapped};
use manypath_proto::{
    AddressError, AssocClosed, AssocId, AssocStats, Config, ConfigError, Instant, Message, PathId,
    PathRank, PathStats, Peer, PeerIdentity, ReconfigureError, SendOptions, StreamId,
};
use tokio::task::coop;

use crate::error::{DirectPathError, SendError};
use crate::events::EventStream;
use crate::relay_use;
use crate::shared::Shared;

/// An association with a peer: messages on streams, over several paths at once.
///
/// Clones are handles of the same association, for any number of tasks. When the last one is
/// dropped, the association shuts down in the background: what was sent is still delivered as long
/// as the runtime runs, what arrives is discarded. To know that it was delivered, wait for
/// [`shutdown`](Association::shutdown).
#[derive(Clone)]
pub struct Association {
    handle: Arc<Handle>,
}

/// State that all clones share; releases the association when dropped.
struct Handle {
    shared: Arc<Shared>,
    id: AssocId,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.with(|inner, now| inner.release(now, self.id));
    }
}

impl fmt::Debug for Association {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Association").field(&self.handle.id).finish()
    }
}

impl Association {
    /// The one handle of an association that is owned from now on.
    pub(crate) fn new(shared: Arc<Shared>, id: AssocId) -> Association {
        Association { handle: Arc::new(Handle { shared, id }) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// The number of this association within its endpoint.
    pub fn id(&self) -> AssocId {
        self.handle.id
    }

    /// Queues a message for sending. Waits while the send buffer (`send_buffer`) is full; returns
    /// when the message is in it, not when it is delivered.
    ///
    /// A message is delivered whole or not at all. Messages of one stream arrive in order unless
    /// sent `unordered`. Cancel safe: if the future is dropped before it is ready, nothing was
    /// queued.
    pub async fn send(&self, options: SendOptions, payload: Bytes) -> Result<(), SendError> {
        poll_fn(|cx| {
            let coop = ready!(coop::poll_proceed(cx));
            let result = ready!(self.poll_send(cx, options, &payload));
            coop.made_progress();
            Poll::Ready(result)
        })
        .await
    }

    pub(crate) fn poll_send(
        &self,
        cx: &Context<'_>,
        options: SendOptions,
        payload: &Bytes,
    ) -> Poll<Result<(), SendError>> {
        self.shared()
            .with(|inner, now| inner.assocs.poll_send(cx, now, self.id(), options, payload))
    }

    /// The next message, of any stream that is not open as a byte stream; `None` when the peer has
    /// shut down and everything was received. What arrived before a failure is given out before the
    /// failure is reported.
    ///
    /// A message larger than the receive buffer comes in parts, see
    /// [`Message::end_of_message`]. Cancel safe. Reading makes room for the peer to send.
    pub async fn recv(&self) -> Result<Option<Message>, AssocClosed> {
        poll_fn(|cx| {
            let coop = ready!(coop::poll_proceed(cx));
            let poll = |inner: &mut crate::shared::Inner, now| {
                inner.assocs.poll_message(cx, now, self.id())
            };
            let result = ready!(self.shared().with(poll));
            coop.made_progress();
            Poll::Ready(result)
        })
        .await
    }

    /// Says that the peer is known, for instance by what it showed in its first message. Where the
    /// endpoint limits [strangers](crate::EndpointOptions::strangers), it is none any more, and
    /// gets the whole receive buffer: the peer hears of that in the packet of what is sent next.
    /// Elsewhere nothing changes.
    pub fn admit(&self) {
        self.shared().with(|inner, now| inner.admit(now, self.id()));
    }

    /// Waits until content may be sent, for `limit` at most. If this end or its peer wants relays
    /// [to meet only](crate::RelayUse::ToMeet), that is when a direct path works and both ends know
    /// of the wish: relayed paths carry nothing that is sent later. Elsewhere it is at once.
    ///
    /// Both ends have to call this before their first content, or the peer's wish goes unheeded. A
    /// peer that is not [admitted](Self::admit) yet finds no direct path.
    ///
    /// # Errors
    /// No direct path works in time, or the association is over.
    pub async fn direct_path(&self, limit: Duration) -> Result<(), DirectPathError> {
        relay_use::direct_path(self, limit).await
    }

    /// Waits until the peer knows that this end wants relays [to meet
    /// only](crate::RelayUse::ToMeet), for `limit` at most: for those who ask it for content with
    /// their first message. At once if this end does not want that, or the peer looks for no direct
    /// paths.
    ///
    /// # Errors
    /// The peer does not say so in time, or the association is over.
    pub async fn direct_only_told(&self, limit: Duration) -> Result<(), DirectPathError> {
        relay_use::direct_only_told(self, limit).await
    }

    /// Waits until the peer has acknowledged everything sent so far. Its application may not have
    /// read it yet.
    pub async fn acknowledged(&self) -> Result<(), AssocClosed> {
        poll_fn(|cx| self.shared().with(|inner, _| inner.assocs.poll_acknowledged(cx, self.id())))
            .await
    }

    /// Shuts down: sends what is queued, no more is taken, and waits until both sides have
    /// everything. The error says why that failed.
    ///
    /// What the peer still sends must be received meanwhile, or a full receive buffer holds the end
    /// up. If the future is dropped the shutdown goes on.
    pub async fn shutdown(&self) -> Result<(), AssocClosed> {
        self.shared().with(|inner, now| inner.assocs.shutdown(now, self.id()));
        match self.closed().await {
            AssocClosed::Shutdown => Ok(()),
            other => Err(other),
        }
    }

    /// Ends the association at once. What is not delivered yet is lost; the peer learns the reason
    /// (it sees at most 256 bytes of it).
    pub fn abort(&self, reason: impl AsRef<[u8]>) {
        self.shared().with(|inner, now| inner.assocs.abort(now, self.id(), reason.as_ref()));
    }

    /// Waits until the association is over, and says why.
    pub async fn closed(&self) -> AssocClosed {
        poll_fn(|cx| self.shared().with(|inner, _| inner.assocs.poll_closed(cx, self.id()))).await
    }

    /// Why the association is over; `None` while it is not.
    pub fn close_reason(&self) -> Option<AssocClosed> {
        self.shared().with(|inner, _| inner.assocs.closed(self.id()))
    }

    /// The events from now on: paths that come, go and change state, and what else
    /// [`Event`](crate::Event) lists, but for the buffer events that `send` and `recv` stand for. A
    /// reader more than 256 events behind loses the oldest.
    pub fn events(&self) -> EventStream {
        self.shared().with(|inner, _| inner.assocs.subscribe(self.id()))
    }

    /// The state and counters of every path.
    pub fn paths(&self) -> Vec<PathStats> {
        self.shared().with(|inner, _| {
            inner.assocs.engine.assoc(self.id()).map(|a| a.paths().collect()).unwrap_or_default()
        })
    }

    /// The configuration that it runs with; `None` once nothing is known of the association any
    /// more.
    pub fn config(&self) -> Option<Arc<Config>> {
        self.shared()
            .with(|inner, _| Some(Arc::clone(inner.assocs.engine.assoc(self.id())?.config())))
    }

    /// The name of the relay that a path with this local address goes through; `None` for a direct
    /// path.
    #[cfg(feature = "relay")]
    pub fn relay(&self, local: SocketAddr) -> Option<String> {
        self.shared().with(|inner, _| inner.relay_paths.name(local))
    }

    /// Counters of the association as a whole.
    pub fn stats(&self) -> AssocStats {
        self.shared().with(|inner, _| {
            inner.assocs.engine.assoc(self.id()).map(|a| a.stats()).unwrap_or_default()
        })
    }

    /// The peer's UDP address on the primary path; `None` when the association is over and has no
    /// paths any more.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.shared().with(|inner, _| {
            let assoc = inner.assocs.engine.assoc(self.id())?;
            let primary = assoc.primary();
            assoc.paths().find(|p| p.id == primary).map(|p| p.remote)
        })
    }

    /// The interfaces that lead to the peer, as of the last change of this host's network, and
    /// those that are left out with the reason. `None` if the peer opened the association, or the
    /// endpoint is not bound by [`BindTo::Auto`](crate::BindTo::Auto).
    pub fn uplinks(&self) -> Option<Uplinks> {
        self.shared().with(|inner, _| inner.assocs.uplinks(self.id()).cloned())
    }

    /// Packets are protected: encrypted and authenticated.
    pub fn is_protected(&self) -> bool {
        self.shared()
            .with(|inner, _| inner.assocs.engine.assoc(self.id()).is_some_and(|a| a.is_protected()))
    }

    /// Who the peer of a protected association has proved to be; `None` if it is not protected, or
    /// nothing is known of it any more.
    pub fn identity(&self) -> Option<PeerIdentity> {
        self.with_peer(|peer| peer.identity.clone())
    }

    /// A secret that only the two ends of a protected association know, for protocols that prove
    /// more of the peer than its [identity](Self::identity) does; the same at both ends.
    pub fn binding(&self) -> Option<[u8; 32]> {
        self.with_peer(|peer| peer.binding)
    }

    fn with_peer<T>(&self, read: impl FnOnce(&Peer) -> T) -> Option<T> {
        self.shared().with(|inner, _| inner.assocs.engine.assoc(self.id())?.peer().map(read))
    }

    /// Bytes that may be queued now without waiting.
    pub fn send_space(&self) -> usize {
        self.shared()
            .with(|inner, _| inner.assocs.engine.assoc(self.id()).map_or(0, |a| a.send_space()))
    }

    /// Bytes queued or not yet acknowledged.
    pub fn unacked_bytes(&self) -> usize {
        self.shared()
            .with(|inner, _| inner.assocs.engine.assoc(self.id()).map_or(0, |a| a.unacked_bytes()))
    }

    /// Bytes queued that were not sent yet.
    pub fn unsent_bytes(&self) -> usize {
        self.shared()
            .with(|inner, _| inner.assocs.engine.assoc(self.id()).map_or(0, |a| a.unsent_bytes()))
    }

    /// Waits until at most `limit` bytes are queued that were not sent yet. What is queued leaves
    /// in order, so an application that shares an association among many flows waits for this
    /// before it chooses whose data is next. Cancel safe.
    pub async fn drained(&self, limit: usize) -> Result<(), AssocClosed> {
        poll_fn(|cx| self.shared().with(|inner, _| inner.assocs.poll_drained(cx, self.id(), limit)))
            .await
    }

    /// Adds a path from one of this endpoint's addresses to one of the peer's; `None` if there is
    /// no room for it (`max_paths`) or it exists. It carries data once it is verified.
    pub fn add_path(&self, local: SocketAddr, remote: SocketAddr) -> Option<PathId> {
        let (local, remote) = (unmapped(local), unmapped(remote));
        self.shared().with(|inner, now| {
            let path = inner.assocs.engine.assoc_mut(self.id())?.add_path(now, local, remote);
            inner.assocs.kick();
            path
        })
    }

    /// Removes a path; what was sent on it and is not acknowledged goes over the others. The peer
    /// is not told: if it still sends on the path, the path comes back. The last path stays.
    pub fn remove_path(&self, path: PathId) {
        self.shared().with(|inner, now| {
            if let Some(assoc) = inner.assocs.engine.assoc_mut(self.id()) {
                assoc.remove_path(now, path);
            }
            inner.assocs.kick();
        });
    }

    /// Gives a path a rank: which paths carry data before it does. Returns false if there is no
    /// such path. [`Endpoint::set_rank`](crate::Endpoint::set_rank) sets that of all paths from an
    /// address or an interface, those of later included.
    ///
    /// It concerns what this side sends. The peer is not told, since SCTP has no chunk for it.
    pub fn set_path_rank(&self, path: PathId, rank: PathRank) -> bool {
        self.shared().with(|inner, now| {
            let assoc = inner.assocs.engine.assoc_mut(self.id());
            let is_set = assoc.is_some_and(|assoc| assoc.set_path_rank(now, path, rank));
            inner.assocs.kick();
            is_set
        })
    }

    /// The rank of a path; `None` if there is no such path.
    pub fn path_rank(&self, path: PathId) -> Option<PathRank> {
        self.shared().with(|inner, _| inner.assocs.engine.assoc(self.id())?.path_rank(path))
    }

    /// Sets how important a stream is among those with something to send: the greater, the more.
    /// With `stream_scheduler = prio` streams of a greater priority send first; with `wfq` it is
    /// the weight by which streams share the capacity, and 0 counts as 1. The other stream
    /// schedulers do not look at it. A stream that was given none has 256.
    ///
    /// It concerns what this side sends, and what is queued already, too. The peer is not told.
    pub fn set_stream_priority(&self, stream: StreamId, priority: u16) {
        self.shared().with(|inner, _| {
            if let Some(assoc) = inner.assocs.engine.assoc_mut(self.id()) {
                assoc.set_stream_priority(stream, priority);
            }
        });
    }

    /// Messages of different streams are interleaved, as both ends have `message_interleaving`
    /// (RFC 8260).
    pub fn interleaves(&self) -> bool {
        self.shared()
            .with(|inner, _| inner.assocs.engine.assoc(self.id()).is_some_and(|a| a.interleaves()))
    }

    /// Resets streams that this end sends on; all, if none is named: the numbers of their messages
    /// begin again (RFC 6525 §5.1.2). Messages given before are sent before, and those given from
    /// now on wait until the peer has answered. The event
    /// [`StreamsReconfigured`](crate::Event::StreamsReconfigured) tells the answer; the peer gets
    /// [`IncomingStreamsReset`](crate::Event::IncomingStreamsReset). Both ends need
    /// `stream_reconfiguration`.
    ///
    /// # Errors
    /// Gives the reason why nothing was done.
    pub fn reset_streams(&self, streams: &[StreamId]) -> Result<(), ReconfigureError> {
        self.reconfigure(|assoc, now| assoc.reset_streams(now, streams))
    }

    /// Asks the peer to reset streams that it sends on; all, if none is named (RFC 6525 §5.1.3).
    /// The event [`StreamsReconfigured`](crate::Event::StreamsReconfigured) tells whether it
    /// agrees, and [`IncomingStreamsReset`](crate::Event::IncomingStreamsReset) when it has done
    /// it.
    ///
    /// # Errors
    /// Gives the reason why nothing was done.
    pub fn request_stream_reset(&self, streams: &[StreamId]) -> Result<(), ReconfigureError> {
        self.reconfigure(|assoc, now| assoc.request_stream_reset(now, streams))
    }

    /// Adds streams that this end sends on, and asks the peer to add streams that it sends on (RFC
    /// 6525 §5.1.5, §5.1.6). The event
    /// [`StreamsReconfigured`](crate::Event::StreamsReconfigured) tells the answer for each
    /// direction; from then on the new streams can be used.
    ///
    /// # Errors
    /// Gives the reason why nothing was done.
    pub fn add_streams(&self, outgoing: u16, incoming: u16) -> Result<(), ReconfigureError> {
        self.reconfigure(|assoc, now| assoc.add_streams(now, outgoing, incoming))
    }

    fn reconfigure(
        &self,
        ask: impl FnOnce(&mut manypath_proto::Association, Instant) -> Result<(), ReconfigureError>,
    ) -> Result<(), ReconfigureError> {
        self.shared().with(|inner, now| {
            let assoc = inner.assocs.engine.assoc_mut(self.id());
            let result = assoc.map_or(Err(ReconfigureError::NotOpen), |assoc| ask(assoc, now));
            inner.assocs.kick();
            result
        })
    }

    /// Both ends can reset and add streams (RFC 6525).
    pub fn reconfigures(&self) -> bool {
        self.shared()
            .with(|inner, _| inner.assocs.engine.assoc(self.id()).is_some_and(|a| a.reconfigures()))
    }

    /// The numbers of streams that this end and the peer may send on; `None` once the association
    /// is forgotten.
    pub fn streams(&self) -> Option<(u16, usize)> {
        self.shared().with(|inner, _| {
            let assoc = inner.assocs.engine.assoc(self.id())?;
            Some((assoc.outbound_streams(), assoc.inbound_streams()))
        })
    }

    /// Changes parameters by name, from now on, and for all paths: those that
    /// [`CHANGEABLE`](crate::CHANGEABLE) lists, such as `("hb_interval", "5 s")`. They are of this
    /// association; [`config`](Self::config) has the new values.
    ///
    /// # Errors
    /// Names the first that cannot change, or whose value is not allowed, by itself or beside the
    /// others. Nothing has changed then.
    pub fn set_parameters(&self, values: &[(&str, &str)]) -> Result<(), ConfigError> {
        self.change(|assoc, now| assoc.set_parameters(now, values))
    }

    /// Changes parameters of one path by name, from now on: those that
    /// [`CHANGEABLE_OF_PATHS`](crate::CHANGEABLE_OF_PATHS) lists. Without effect if there is no
    /// such path.
    ///
    /// # Errors
    /// As [`set_parameters`](Self::set_parameters).
    pub fn set_path_parameters(
        &self,
        path: PathId,
        values: &[(&str, &str)],
    ) -> Result<(), ConfigError> {
        self.change(|assoc, now| assoc.set_path_parameters(now, path, values))
    }

    /// The value on a path of a parameter that [`CHANGEABLE_OF_PATHS`](crate::CHANGEABLE_OF_PATHS)
    /// lists, as text. `None` if there is no such path or parameter.
    pub fn path_parameter(&self, path: PathId, name: &str) -> Option<String> {
        self.shared()
            .with(|inner, _| inner.assocs.engine.assoc(self.id())?.path_parameter(path, name))
    }

    fn change(
        &self,
        change: impl FnOnce(&mut manypath_proto::Association, Instant) -> Result<(), ConfigError>,
    ) -> Result<(), ConfigError> {
        self.shared().with(|inner, now| {
            let assoc = inner.assocs.engine.assoc_mut(self.id());
            let result = assoc.map_or(Ok(()), |assoc| change(assoc, now));
            inner.assocs.kick();
            result
        })
    }

    /// Both ends tell each other of addresses that come and go (RFC 5061), as both have
    /// `address_reconfiguration`.
    pub fn reconfigures_addresses(&self) -> bool {
        self.shared().with(|inner, _| {
            inner.assocs.engine.assoc(self.id()).is_some_and(|a| a.reconfigures_addresses())
        })
    }

    /// Asks the peer to send to this address of ours by preference (RFC 5061 §5.4). It need not do
    /// so. The event [`AddressRequest`](crate::Event::AddressRequest) tells its answer.
    ///
    /// # Errors
    /// Gives the reason why nothing was done.
    pub fn set_peer_primary(&self, local: IpAddr) -> Result<(), AddressError> {
        self.shared().with(|inner, now| {
            let assoc = inner.assocs.engine.assoc_mut(self.id());
            let ask = |assoc: &mut manypath_proto::Association| assoc.set_peer_primary(now, local);
            let result = assoc.map_or(Err(AddressError::NotOpen), ask);
            inner.assocs.kick();
            result
        })
    }

    /// The state of the association by its name in RFC 9260 §4, such as `ESTABLISHED`.
    pub fn state(&self) -> &'static str {
        self.shared().with(|inner, _| {
            let assoc = inner.assocs.engine.assoc(self.id());
            assoc.map_or("CLOSED", |assoc| assoc.state_name())
        })
    }

    /// Makes a path the primary one. Where both ends have `address_reconfiguration`, the peer is
    /// asked to prefer the local address of that path.
    pub fn set_primary(&self, path: PathId) {
        self.shared().with(|inner, now| {
            if let Some(assoc) = inner.assocs.engine.assoc_mut(self.id()) {
                assoc.set_primary(now, path);
            }
            inner.assocs.kick();
        });
    }
}
