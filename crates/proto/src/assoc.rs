//! One association: its state and the surface that applications and the endpoint use.
//!
//! The folders are its phases: [`open`], [`send`], [`receive`], [`recover`], [`paths`] and
//! [`protect`]. Beside them stand [`addresses`], [`authentication`], [`ecn`], [`reconfigure`] and
//! [`shutdown`]. All of them use [`state`], [`timers`], [`events`], [`buffers`].

mod addresses;
mod authentication;
mod buffers;
mod changes;
mod ecn;
mod events;
mod open;
mod paths;
mod policy_calls;
mod protect;
mod receive;
mod reconfigure;
mod recover;
mod send;
mod shutdown;
mod state;
mod stats;
mod timers;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use manypath_wire::{StreamId, Tsn};

pub use addresses::AddressError;
pub(crate) use authentication::draw;
pub(crate) use buffers::Reserve;
pub use changes::{CHANGEABLE, CHANGEABLE_OF_PATHS};
pub(crate) use open::agreed::Extensions;
pub(crate) use open::cookie;
pub(crate) use open::ends::{Identity, PeerEnd, TagAndPort};
pub(crate) use open::existing::CookieAction;
pub(crate) use open::init::{PeerInit, init_ack};
pub use paths::direct::Candidate;
pub use paths::direct::only::Directness;
pub(crate) use paths::direct::{Direct, PeerTrust};
pub(crate) use paths::rank::LocalRanks;
pub(crate) use protect::keys::own_parameter;
pub(crate) use protect::protection::agree;
pub use reconfigure::ReconfigureError;
pub use stats::AssocStats;

use crate::config::Config;
use crate::event::{AssocClosed, Event};
use crate::path::{PathStats, PathTable};
use crate::policy::Policies;
use crate::policy::recovery::Recovery;
use crate::rng::Rng;
use crate::sizes;
use crate::time::Instant;
use crate::tx::{Outstanding, SackDigest, SendError, SendOptions, SendQueue};
use crate::view::{PathId, PathState};
use addresses::AddressRequests;
use authentication::Authentication;
use buffers::Buffers;
use events::Events;
use open::agreed::Agreed;
use open::ends::Ends;
use paths::candidates::Candidates;
use paths::heartbeat::Heartbeats;
use paths::pmtu::SizeSearch;
use paths::rank::Ranks;
use policy_calls::PolicyCalls;
use protect::protection::Protection;
use receive::receiving::Receiving;
use reconfigure::Reconfigure;
use recover::false_acks::FalseAcks;
use send::abandon::Abandoning;
use send::control::Control;
use send::peer_window::PeerWindow;
use send::redundant::Redundancy;
use state::{Opening, State};
use timers::{AssocTimer, PathTimer, Timer, TimerTable};

/// MTUs of the interfaces of local addresses, in bytes of an IP packet.
pub(crate) type LinkMtus = BTreeMap<SocketAddr, usize>;

/// A multihomed SCTP association (RFC 9260), driven by its [`Endpoint`](crate::Endpoint).
///
/// - Commands: [`send`](Self::send), [`recv`](Self::recv), [`shutdown`](Self::shutdown),
///   [`abort`](Self::abort), [`add_path`](Self::add_path),
///   [`add_candidate`](Self::add_candidate), [`remove_path`](Self::remove_path),
///   [`local_added`](Self::local_added), [`local_gone`](Self::local_gone),
///   [`set_peer_primary`](Self::set_peer_primary), [`network_changed`](Self::network_changed),
///   [`set_primary`](Self::set_primary), [`set_path_rank`](Self::set_path_rank),
///   [`set_stream_priority`](Self::set_stream_priority), [`reset_streams`](Self::reset_streams),
///   [`request_stream_reset`](Self::request_stream_reset), [`add_streams`](Self::add_streams).
///   Reach them through [`Endpoint::assoc_mut`](crate::Endpoint::assoc_mut), and drain the
///   endpoint's outputs afterwards.
/// - Everything else only reads.
#[derive(Debug)]
pub struct Association {
    config: Arc<Config>,
    state: State,
    ends: Ends,
    agreed: Agreed,
    paths: PathTable,
    candidates: Candidates,
    /// The search for direct paths, if this end wants them.
    direct: Option<Box<Direct>>,
    primary: PathId,
    ranks: Ranks,
    timers: TimerTable,
    policies: Policies,
    policy_calls: PolicyCalls,
    rng: Rng,
    // Sending.
    queue: SendQueue,
    out: Outstanding,
    /// The facts of the latest SACK; kept so that no SACK allocates.
    digest: SackDigest,
    peer_window: PeerWindow,
    recovery: Recovery,
    false_acks: FalseAcks,
    redundancy: Redundancy,
    abandoning: Abandoning,
    /// The latest chunk that asked for a SACK because data waited for it.
    sack_asked: Option<Tsn>,
    // Receiving.
    rx: Receiving,
    buffers: Buffers,
    // Whole association.
    /// The state of stream reconfiguration, once it is used.
    reconfigure: Option<Box<Reconfigure>>,
    begun: Instant,
    /// When the cookie was made that opened the association, if a COOKIE ECHO of the peer did.
    opened_by: Option<Instant>,
    /// When the attempt to open it ends, if the application has set a limit.
    open_until: Option<Instant>,
    error_count: u32,
    /// See [`Association::note_unheeded`].
    unheeded: u32,
    /// When an authentic packet of the peer last arrived, on any path.
    last_heard: Option<Instant>,
    control: VecDeque<Control>,
    heartbeats: Heartbeats,
    size_search: SizeSearch,
    /// Set if packets are to be protected.
    protection: Option<Box<Protection>>,
    /// Set if this end authenticates chunks.
    authentication: Option<Box<Authentication>>,
    /// Set if both ends can change their addresses.
    addresses: Option<Box<AddressRequests>>,
    events: Events,
    stats: AssocStats,
}

impl Association {
    /// An association in COOKIE-WAIT without paths; the callers complete it.
    fn new(
        config: Arc<Config>,
        id: Identity,
        local_addresses: Vec<SocketAddr>,
        mut rng: Rng,
    ) -> Association {
        Association {
            state: State::CookieWait(Opening::default()),
            agreed: Agreed::new(&config),
            paths: PathTable::default(),
            candidates: Candidates::default(),
            direct: None,
            primary: PathId(0),
            ranks: Ranks::default(),
            timers: TimerTable::default(),
            policies: config.policies(),
            policy_calls: PolicyCalls::new(rng.fork("policy")),
            queue: SendQueue::new(config.stream_scheduler.build(&config)),
            out: Outstanding::new(id.initial_tsn).counting(&config),
            digest: SackDigest::default(),
            peer_window: PeerWindow::default(),
            recovery: Recovery::new(config.recovery.build(&config), &config),
            false_acks: FalseAcks::default(),
            redundancy: Redundancy::default(),
            abandoning: Abandoning::default(),
            sack_asked: None,
            rx: Receiving::new(&config),
            buffers: Buffers::new(&config),
            reconfigure: None,
            begun: Instant::ZERO,
            opened_by: None,
            open_until: None,
            error_count: 0,
            unheeded: 0,
            last_heard: None,
            control: VecDeque::new(),
            heartbeats: Heartbeats::new(rng.fork("heartbeats")),
            size_search: SizeSearch::new(rng.fork("packet sizes")),
            protection: None,
            authentication: None,
            addresses: None,
            events: Events::default(),
            stats: AssocStats::default(),
            ends: Ends::new(id, local_addresses, &mut rng),
            rng,
            config,
        }
    }

    // ---- Commands ----

    /// Queues a message. It is sent as soon as a path has room; before the association is
    /// established it waits.
    ///
    /// # Errors
    /// Gives the reason why the message was not taken. Nothing of it is kept then.
    pub fn send(
        &mut self,
        now: Instant,
        options: SendOptions,
        payload: Bytes,
    ) -> Result<(), SendError> {
        if !self.state.accepts_messages() {
            return Err(SendError::Closed);
        }
        if payload.is_empty() {
            return Err(SendError::Empty);
        }
        if options.stream.0 >= self.agreed.streams_out {
            let (stream, streams) = (options.stream.0, self.agreed.streams_out);
            return Err(SendError::NoSuchStream { stream, streams });
        }
        if payload.len() > self.config.send_buffer {
            return Err(SendError::TooLarge { limit: self.config.send_buffer });
        }
        // A message may be longer than a buffer that has not grown yet.
        self.buffers.send = self.buffers.send.max(payload.len());
        if payload.len() > self.send_space() && options.priority.is_some() {
            self.make_space(payload.len(), options.priority);
        }
        if payload.len() > self.send_space_for(&options) {
            self.events.want_writable();
            return Err(SendError::Full);
        }
        self.stats.messages_sent += 1;
        self.stats.bytes_queued += payload.len() as u64;
        self.queue.push(now, options, payload);
        if let Some(lifetime) = options.lifetime {
            self.note_expiry_of(now + lifetime);
        }
        Ok(())
    }

    /// Sets how important a stream is among those with something to send: the greater, the more.
    /// With `stream_scheduler = prio` streams of a greater priority send first; with `wfq` it is
    /// the weight by which streams share the capacity, and 0 counts as 1. The other stream
    /// schedulers do not look at it. A stream that was given none has 256
    /// ([`DEFAULT_PRIORITY`](crate::policy::stream_sched::DEFAULT_PRIORITY)).
    pub fn set_stream_priority(&mut self, stream: StreamId, priority: u16) {
        self.queue.set_priority(stream, priority);
    }

    /// Makes a path the primary. If both ends can change addresses (RFC 5061), the peer is asked to
    /// prefer its local address, if that is another one than before.
    pub fn set_primary(&mut self, _now: Instant, path: PathId) {
        if self.paths.get(path).is_some() {
            self.prefer_local_of(self.primary, path);
            self.primary = path;
        }
    }

    /// The simulation's true loss rate of a path, for RTX-LOSSRATE; a real network has no such
    /// oracle.
    #[cfg(feature = "testing")]
    pub fn set_loss_oracle(&mut self, path: PathId, loss_rate: f64) {
        if let Some(p) = self.paths.get_mut(path) {
            p.loss_oracle = Some(loss_rate);
        }
    }

    // ---- Reading ----

    /// Bytes that [`send`](Self::send) takes now.
    pub fn send_space(&self) -> usize {
        self.buffers.send.saturating_sub(self.unacked_bytes())
    }

    /// Bytes that [`send`](Self::send) takes now of such a message. Messages with a lifetime may
    /// exceed the buffer by an eighth: those that wait for room behind a file would be late.
    fn send_space_for(&self, options: &SendOptions) -> usize {
        let spare = options.lifetime.map_or(0, |_| self.buffers.send / 8);
        (self.buffers.send + spare).saturating_sub(self.unacked_bytes())
    }

    /// User bytes queued, or sent and not acknowledged cumulatively.
    pub fn unacked_bytes(&self) -> usize {
        self.queue.bytes() + self.out.user_bytes()
    }

    /// User bytes queued that were not sent yet.
    pub fn unsent_bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// The handshake is complete and the association is not over.
    pub fn is_established(&self) -> bool {
        self.state.is_open()
    }

    /// Why the association ended, if it did.
    pub fn closed(&self) -> Option<&AssocClosed> {
        match &self.state {
            State::Closed(reason) => Some(reason),
            _ => None,
        }
    }

    /// The primary path.
    pub fn primary(&self) -> PathId {
        self.primary
    }

    /// The streams messages may be sent on: 0 up to this number, exclusive.
    pub fn outbound_streams(&self) -> u16 {
        self.agreed.streams_out
    }

    /// The largest message that fits one packet on every path that carries data, in bytes. Of a
    /// path whose size is not known yet, that is what it most likely will be.
    #[inline]
    pub fn fragment_size(&self) -> usize {
        let of_path = |p: &crate::path::Path| {
            if p.size.pmtu.is_settled() {
                p.size.pmdcs
            } else {
                p.size.pmdcs.max(p.likely_pmdcs(&self.config))
            }
        };
        let any_usable = self.paths.iter().any(|p| p.role.usable);
        let counts = |p: &&crate::path::Path| p.role.usable || !any_usable;
        if self.config.pmtu_discovery {
            self.paths.iter().filter(counts).map(of_path).min()
        } else {
            None
        }
        .map_or_else(
            || self.fragmentation_point(),
            |chunk| sizes::user_data(self.agreed.data_kind, chunk),
        )
    }

    /// Where messages are cut now (RFC 9260 §6.9, the association's fragmentation point), in user
    /// bytes: a multiple of four, so that no padding is sent inside a message.
    fn fragmentation_point(&self) -> usize {
        let chunk = self.paths.least_pmdcs().unwrap_or(self.config.mtu / 2);
        sizes::user_data(self.agreed.data_kind, chunk)
    }

    /// The configuration in force.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// The peer's SCTP port.
    pub fn peer_port(&self) -> u16 {
        self.ends.id.peer_port
    }

    /// Every path as it stands.
    pub fn paths(&self) -> impl Iterator<Item = PathStats> + '_ {
        self.paths.iter().map(|p| p.stats(self.out.flight_size(p.id)))
    }

    /// Counters of the association.
    pub fn stats(&self) -> AssocStats {
        AssocStats {
            duplicates_received: self.stats.duplicates_received,
            chunks_outstanding: self.out.len(),
            peer_window: self.peer_window.a_rwnd(),
            receive_buffer_blocked_since: self.peer_window.blocked_since(),
            chunks_reneged: self.rx.receiver.as_ref().map_or(0, |r| r.inbound.chunks_reneged()),
            receive_buffered: self.rx.buffered_bytes(),
            ..self.stats.clone()
        }
    }

    /// Checks what must hold after every step; for tests and debug builds.
    ///
    /// # Panics
    /// With a description, if an invariant is broken.
    pub fn check_invariants(&self) {
        self.out.check_invariants();
        if matches!(self.state, State::Closed(_)) {
            assert_eq!(self.timers.next(), None, "a closed association runs no timer");
            return;
        }
        let open = || self.paths.iter().filter(|p| !p.role.is_barred);
        let active = open().any(|p| p.liveness.state == PathState::Active);
        assert!(
            !active || open().all(|p| !p.role.usable || p.liveness.state != PathState::Inactive),
            "an inactive path is usable beside an active one"
        );
        self.paths.iter().for_each(|p| p.size.pmtu.check_invariants());
        for id in self.paths.ids() {
            // Until the association is open T1 watches what left with COOKIE ECHO.
            let runs = self.timers.is_running(Timer::Path(id, PathTimer::T3Rtx));
            let runs = runs || !self.state.is_open();
            assert!(runs || !self.out.needs_t3(id), "nothing watches what is outstanding on {id}");
        }
        // A single chunk may exceed the buffer: the next one in order (RFC 9260 §6.2).
        let limit = self.rx.buffer.max(self.config.receive_buffer) + 65_535;
        assert!(self.rx.buffered_bytes() <= limit, "the receive buffer overflows");
        // An eighth more for messages with a lifetime. Messages of the key management do not count
        // as the user's.
        let limit = self.config.send_buffer * 9 / 8 + if self.is_protected() { 1 << 17 } else { 0 };
        assert!(self.unacked_bytes() <= limit, "the send buffer overflows");
    }

    // ---- For the endpoint ----

    pub(crate) fn identity(&self) -> &Identity {
        &self.ends.id
    }

    /// True if the association is closed and its last packets are sent.
    pub(crate) fn is_over(&self) -> bool {
        self.closed().is_some() && self.control.is_empty()
    }

    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// True if the association wants another verification tag, and has not got it yet.
    pub(crate) fn take_tag_wanted(&mut self) -> bool {
        self.events.take_tag_wanted()
    }

    /// Sets the verification tag of an association that begins its handshake again. Returns the old
    /// one.
    pub(crate) fn set_local_tag(&mut self, tag: u32) -> u32 {
        std::mem::replace(&mut self.ends.id.local_tag, tag)
    }

    /// The peer's verified addresses; before the association is open, the remote addresses of all
    /// paths.
    pub(crate) fn known_remotes(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        let opening = !self.state.is_open();
        let known =
            move |p: &&crate::path::Path| opening || p.liveness.state != PathState::Unconfirmed;
        self.paths.iter().filter(known).map(|p| p.remote)
    }

    /// The peer's verified addresses, each with its SCTP port.
    pub(crate) fn verified_ends(&self) -> impl Iterator<Item = PeerEnd> + '_ {
        let verified = self.paths.iter().filter(|p| p.liveness.state != PathState::Unconfirmed);
        verified.map(|p| PeerEnd { address: p.remote, port: self.ends.id.peer_port })
    }

    /// True if a newer association is with the same host: each of the two has a verified address
    /// that the other one's peer names, too. Unverified names prove nothing, because hosts behind
    /// different NATs may have the same private addresses.
    pub(crate) fn is_succeeded_by(&self, newer: &Association) -> bool {
        let names_one_of = |a: &Association, b: &Association| {
            b.verified_ends().any(|end| end.port == a.ends.id.peer_port && a.names(end.address))
        };
        self.begun < newer.begun && names_one_of(self, newer) && names_one_of(newer, self)
    }

    /// True if the peer listed this transport address, or packets came from it.
    fn names(&self, remote: SocketAddr) -> bool {
        let is_listed = self.ends.has_peer_listed(remote.ip());
        let mut remotes = self.paths.iter().map(|p| p.remote);
        remotes.any(|known| known == remote || (is_listed && known.port() == remote.port()))
    }

    /// When the cookie of the association was made, or its first INIT was sent.
    pub(crate) fn begun(&self) -> Instant {
        self.begun
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    // ---- Helpers of the phases ----

    /// With `combined_window`: copies a change of one path's window to all paths.
    fn share_window(&mut self, id: PathId) {
        if !self.config.combined_window {
            return;
        }
        let Some(window) = self.paths.get(id).map(|p| p.flow.window) else { return };
        for p in self.paths.iter_mut() {
            p.flow.window = window;
            self.recovery.policy.share(id, p.id);
        }
    }

    fn config_rc(&self) -> Arc<Config> {
        Arc::clone(&self.config)
    }

    fn close(&mut self, reason: AssocClosed) {
        if matches!(self.state, State::Closed(_)) {
            return;
        }
        self.timers.stop_all();
        self.state = State::Closed(reason.clone());
        self.queue = SendQueue::default();
        self.out = Outstanding::new(self.out.next_tsn());
        for id in self.paths.ids() {
            self.out.add_path(id);
        }
        for p in self.paths.iter_mut() {
            p.probing.is_due = false;
            p.size.pmtu.stop();
        }
        self.peer_window.end_blocked();
        self.events.push(Event::Closed(reason));
    }

    fn tell_if_writable(&mut self) {
        // Wakes the application once half of the buffer is free: waking it for every packet would
        // cost more than it gains.
        let room = self.send_space() >= self.buffers.send / 2;
        if room && self.state.accepts_messages() {
            self.events.writable();
        }
    }

    fn tell_if_readable(&mut self) {
        if self.rx.has_ready() {
            self.events.readable();
        }
    }
}
