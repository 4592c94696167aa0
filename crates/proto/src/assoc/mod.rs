//! One association: its state and the surface that applications and the endpoint use.
//!
//! The phases are files: [`handshake`], [`input`], [`ack`], [`output`], [`control`], [`paths`], [`timeout`] and
//! [`shutdown`].

mod ack;
mod ack_test;
mod control;
pub(crate) mod cookie;
mod failure;
mod handshake;
mod input;
mod outage;
mod output;
mod path_set;
mod paths;
mod pmtu;
mod redundant;
mod roam;
mod sack_path;
mod shutdown;
mod state;
mod stats;
mod timeout;
mod timers;
mod timestamp;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use manypath_wire::Tsn;

pub(crate) use handshake::{CookieAction, PeerInit, init_ack};
pub use stats::AssocStats;

use crate::config::Config;
use crate::event::{AssocClosed, Event};
use crate::path::{PathId, PathState, PathStats, PathTable, PathView};
use crate::policy::recovery::Recovery;
use crate::policy::{Policies, PolicyCx};
use crate::rng::Rng;
use crate::rx::{DelayedAck, Inbound, Limits, Message, SackConfig, TsnTracker};
use crate::sizes;
use crate::time::Instant;
use crate::tx::{Outstanding, SackDigest, SendError, SendOptions, SendQueue};
use ack_test::AckTest;
use control::Control;
use redundant::Redundancy;
use sack_path::SackPaths;
use state::State;
use timers::{AssocTimer, PathTimer, Timer, TimerTable};
use timestamp::Timestamps;

/// The least receive buffer, in bytes: no INIT may announce less (RFC 9260 §3.3.2).
const MIN_RECEIVE_BUFFER: usize = 1500;
/// What the interfaces of local addresses take, in bytes of an IP packet.
pub(crate) type LinkMtus = BTreeMap<SocketAddr, usize>;

/// What both ends agreed, or will.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Our verification tag: packets to us carry it.
    pub(crate) local_tag: u32,
    /// The peer's: packets from us carry it. 0 until known.
    pub(crate) peer_tag: u32,
    pub(crate) local_port: u16,
    pub(crate) peer_port: u16,
    /// The first TSN we use.
    pub(crate) initial_tsn: Tsn,
}

/// The receiving side, once the peer's initial TSN is known.
#[derive(Debug)]
struct Receiver {
    tracker: TsnTracker,
    delayed: DelayedAck,
    inbound: Inbound,
    /// The path on which the latest DATA arrived.
    last_data: Option<PathId>,
    /// The paths on which DATA has arrived, a bit each.
    data_paths: u32,
    /// a_rwnd of the last SACK.
    advertised: usize,
    /// Data packets since `window_start`, to see how fast they come.
    window_packets: u32,
    window_start: Instant,
}

/// A multihomed SCTP association (RFC 9260), driven by its [`Endpoint`](crate::Endpoint).
///
/// - Commands: [`send`](Self::send), [`recv`](Self::recv), [`shutdown`](Self::shutdown),
///   [`abort`](Self::abort), [`add_path`](Self::add_path), [`remove_path`](Self::remove_path),
///   [`local_gone`](Self::local_gone), [`network_changed`](Self::network_changed),
///   [`set_primary`](Self::set_primary). Reach them through
///   [`Endpoint::assoc_mut`](crate::Endpoint::assoc_mut), and drain the endpoint's outputs afterwards.
/// - Everything else only reads.
#[derive(Debug)]
pub struct Association {
    config: Arc<Config>,
    state: State,
    id: Identity,
    /// Random stand-ins for the verification tags in a cookie, which anyone on its way can read
    /// (RFC 9260 §5.2.2).
    tie_tags: (u32, u32),
    /// Addresses that INIT lists and that paths may start from.
    local_addresses: Vec<SocketAddr>,
    /// Addresses that the peer listed.
    peer_addresses: Vec<std::net::IpAddr>,
    paths: PathTable,
    primary: PathId,
    timers: TimerTable,
    policies: Policies,
    rng: Rng,
    policy_rng: Rng,
    // Sending.
    queue: SendQueue,
    out: Outstanding,
    digest: SackDigest,
    /// a_rwnd of the latest SACK, in bytes.
    a_rwnd: usize,
    streams_out: u16,
    /// The application was told that the send buffer is full and waits for room.
    writable_wanted: bool,
    /// The last chunk probed a zero window (RFC 9260 §6.1, rule A), and no SACK came since.
    probing_window: bool,
    /// A SACK arrived since T3-rtx last expired.
    probe_answered: bool,
    recovery: Recovery,
    ack_test: AckTest,
    /// Both ends use timestamps.
    timestamps: Option<Timestamps>,
    redundancy: Redundancy,
    /// Both ends use NR-SACKs.
    nr_sack: bool,
    // Receiving.
    receiver: Option<Receiver>,
    /// What is in force instead of `receive_buffer` of the configuration.
    receive_buffer: usize,
    readable_told: bool,
    // Whole association.
    error_count: u32,
    control: VecDeque<Control>,
    /// When a heartbeat was last answered on other paths than its own.
    answered_elsewhere: Option<Instant>,
    /// False if no path's heartbeat is due.
    may_owe_heartbeat: bool,
    /// When a change of the network last repeated an attempt to open the association.
    probed_at: Option<Instant>,
    /// False if no probe of a path's size is due.
    may_owe_size_probe: bool,
    /// The nonces of such probes.
    size_rng: Rng,
    /// What the interfaces of local addresses take, in bytes of an IP packet, as far as the driver
    /// has said.
    link_mtus: Arc<LinkMtus>,
    events: VecDeque<Event>,
    stats: AssocStats,
    /// Since when data waits for the peer's receive buffer alone.
    blocked_since: Option<Instant>,
    views: Vec<PathView>,
    sack_paths: SackPaths,
}

impl Association {
    /// An association in COOKIE-WAIT without paths; the callers complete it.
    fn new(
        config: Arc<Config>,
        id: Identity,
        local_addresses: Vec<SocketAddr>,
        mut rng: Rng,
    ) -> Association {
        let tie_tags = (rng.next_u32() | 1, rng.next_u32());
        Association {
            tie_tags,
            state: State::CookieWait { attempts: 0, stale_cookies: 0 },
            peer_addresses: Vec::new(),
            paths: PathTable::default(),
            primary: PathId(0),
            timers: TimerTable::default(),
            policies: Policies::new(&config),
            policy_rng: rng.fork("policy"),
            size_rng: rng.fork("packet sizes"),
            rng,
            queue: SendQueue::default(),
            out: Outstanding::new(id.initial_tsn).counting(&config),
            digest: SackDigest::default(),
            a_rwnd: 0,
            streams_out: config.outbound_streams,
            writable_wanted: false,
            probing_window: false,
            probe_answered: false,
            recovery: Recovery::new(&config),
            ack_test: AckTest::default(),
            timestamps: None,
            redundancy: Redundancy::default(),
            nr_sack: false,
            receiver: None,
            receive_buffer: config.receive_buffer,
            readable_told: false,
            error_count: 0,
            control: VecDeque::new(),
            answered_elsewhere: None,
            may_owe_heartbeat: false,
            probed_at: None,
            may_owe_size_probe: false,
            link_mtus: Arc::default(),
            events: VecDeque::new(),
            stats: AssocStats::default(),
            blocked_since: None,
            views: Vec::new(),
            sack_paths: SackPaths::new(&config),
            config,
            id,
            local_addresses,
        }
    }

    fn start_receiver(&mut self, peer_tsn: Tsn, streams_in: u16, now: Instant) {
        let c = &self.config;
        self.receiver = Some(Receiver {
            tracker: TsnTracker::new(peer_tsn),
            delayed: DelayedAck::new(SackConfig {
                sack_delay: c.sack_delay,
                sack_every: c.sack_every,
                dac: false,
                first_at_once: c.sack_first_at_once,
                filled_gap_at_once: c.sack_filled_gap_at_once,
                counts_duplicates: self.recovery.rules.duplicates_count,
            }),
            inbound: self.new_inbound(streams_in),
            last_data: None,
            data_paths: 0,
            advertised: self.receive_buffer,
            window_packets: 0,
            window_start: now,
        });
    }

    fn new_inbound(&self, streams_in: u16) -> Inbound {
        let limits = Limits::for_receive_buffer(self.receive_buffer);
        let mut inbound =
            Inbound::new(streams_in, limits).counting_headers(self.recovery.rules.room.of_headers);
        inbound.copy_all(self.receive_buffer < self.config.receive_buffer);
        inbound
    }

    // ---- Commands ----

    /// Queues a message. It is sent as soon as a path has room; before the association is established
    /// it waits.
    ///
    /// # Errors
    /// Says why the message was not taken; nothing of it is kept then.
    pub fn send(
        &mut self,
        _now: Instant,
        options: SendOptions,
        payload: Bytes,
    ) -> Result<(), SendError> {
        if !self.state.accepts_messages() {
            return Err(SendError::Closed);
        }
        if payload.is_empty() {
            return Err(SendError::Empty);
        }
        if options.stream.0 >= self.streams_out {
            let (stream, streams) = (options.stream.0, self.streams_out);
            return Err(SendError::NoSuchStream { stream, streams });
        }
        if payload.len() > self.config.send_buffer {
            return Err(SendError::TooLarge { limit: self.config.send_buffer });
        }
        if payload.len() > self.send_space() {
            self.writable_wanted = true;
            return Err(SendError::Full);
        }
        self.stats.messages_sent += 1;
        self.stats.bytes_queued += payload.len() as u64;
        self.queue.push(options, payload);
        Ok(())
    }

    /// Takes the next message, or part of a message too long to buffer whole.
    pub fn recv(&mut self, now: Instant) -> Option<Message> {
        let receiver = self.receiver.as_mut()?;
        let message = receiver.inbound.pop();
        match &message {
            Some(m) => {
                self.stats.bytes_received += m.payload.len() as u64;
                self.stats.messages_received += u64::from(m.end_of_message);
                self.update_window(now);
            }
            None => self.readable_told = false,
        }
        message
    }

    /// Tells the peer of room that opened in a receive buffer that was nearly full (RFC 9260 §6.2). Small
    /// steps are not worth a packet: that is silly-window avoidance.
    fn update_window(&mut self, now: Instant) {
        let advertised = self.receiver.as_ref().map_or(usize::MAX, |r| r.advertised);
        if advertised >= self.receive_buffer / 4 {
            return;
        }
        let worth = (self.receive_buffer / 2).min(2 * self.config.mtu);
        let window = self.advertised_window();
        let Some(receiver) = self.receiver.as_mut() else { return };
        if self.config.window_updates
            && window >= receiver.advertised + worth
            && self.state.may_receive_data()
        {
            receiver.delayed.demand_now();
            self.timers.set(Timer::Assoc(AssocTimer::Sack), now);
        }
    }

    /// What the next SACK advertises, in bytes.
    fn advertised_window(&self) -> usize {
        let free = self.receiver.as_ref().map_or(0, |r| r.inbound.available_bytes());
        // A window too small for a packet would draw tiny chunks.
        if free < self.config.mtu.min(self.receive_buffer / 4) { 0 } else { free }
    }

    /// Sets the receive buffer, in bytes, from now on: a server gives a stranger little
    /// ([`Endpoint::set_incoming_window`](crate::Endpoint::set_incoming_window)), and more once it
    /// knows who it is. Values below 1500 (RFC 9260 §3.3.2) count as 1500.
    ///
    /// A larger one is told to the peer at once, with a SACK that shares its packet with what is
    /// sent now. With a smaller one, what arrived out of order may be discarded again; the peer
    /// keeps it until then (RFC 9260 §6.2). While it is below that of the configuration, what waits
    /// is copied, so that it keeps nothing else alive.
    pub fn set_receive_buffer(&mut self, now: Instant, bytes: usize) {
        let bytes = bytes.max(MIN_RECEIVE_BUFFER);
        let grows = bytes > self.receive_buffer;
        self.receive_buffer = bytes;
        let Some(r) = self.receiver.as_mut() else { return };
        r.inbound.set_limits(Limits::for_receive_buffer(bytes));
        r.inbound.copy_all(bytes < self.config.receive_buffer);
        r.advertised = r.advertised.min(bytes);
        if grows && self.state.may_receive_data() {
            r.delayed.demand_now();
            self.timers.set(Timer::Assoc(AssocTimer::Sack), now);
        }
    }

    /// The receive buffer in force, in bytes.
    pub fn receive_buffer(&self) -> usize {
        self.receive_buffer
    }

    /// Makes a path the primary.
    pub fn set_primary(&mut self, _now: Instant, path: PathId) {
        if self.paths.get(path).is_some() {
            self.primary = path;
        }
    }

    /// The simulation's true loss rate of a path, for RTX-LOSSRATE; a real network has no such oracle.
    pub fn set_loss_oracle(&mut self, path: PathId, loss_rate: f64) {
        if let Some(p) = self.paths.get_mut(path) {
            p.loss_oracle = Some(loss_rate);
        }
    }

    // ---- Reading ----

    /// Bytes that [`send`](Self::send) takes now.
    pub fn send_space(&self) -> usize {
        self.config.send_buffer.saturating_sub(self.unacked_bytes())
    }

    /// User bytes queued, or sent and not acknowledged cumulatively.
    pub fn unacked_bytes(&self) -> usize {
        self.queue.bytes() + self.out.user_bytes()
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
        self.streams_out
    }

    /// The largest message that fits one packet on every path that carries data, in bytes. Of a
    /// path whose size is not known yet, that is what it most likely will be.
    pub fn fragment_size(&self) -> usize {
        let of_path = |p: &crate::path::Path| match p.pmtu.is_settled() {
            true => p.pmdcs,
            false => p.pmdcs.max(p.likely_pmdcs(&self.config)),
        };
        let any_usable = self.paths.iter().any(|p| p.usable);
        let counts = |p: &&crate::path::Path| p.usable || !any_usable;
        match self.config.pmtu_discovery {
            true => self.paths.iter().filter(counts).map(of_path).min(),
            false => None,
        }
        .map_or_else(|| self.fragmentation_point(), sizes::user_data)
    }

    /// Where messages are cut now (RFC 9260 §6.9, the association's fragmentation point), in user
    /// bytes: a multiple of four, so that no padding is sent inside a message.
    fn fragmentation_point(&self) -> usize {
        sizes::user_data(self.paths.least_pmdcs().unwrap_or(self.config.mtu / 2))
    }

    /// The configuration in force.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// The peer's SCTP port.
    pub fn peer_port(&self) -> u16 {
        self.id.peer_port
    }

    /// Every path as it stands.
    pub fn paths(&self) -> impl Iterator<Item = PathStats> + '_ {
        self.paths.iter().map(|p| p.stats(self.out.flight_size(p.id)))
    }

    /// Counters of the association.
    pub fn stats(&self) -> AssocStats {
        AssocStats {
            duplicates_received: self.stats.duplicates_received,
            peer_window: self.a_rwnd,
            receive_buffer_blocked_since: self.blocked_since,
            chunks_reneged: self.receiver.as_ref().map_or(0, |r| r.inbound.chunks_reneged()),
            receive_buffered: self.receiver.as_ref().map_or(0, |r| r.inbound.buffered_bytes()),
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
        let active = self.paths.iter().any(|p| p.state == PathState::Active);
        assert!(
            !active || self.paths.iter().all(|p| !p.usable || p.state != PathState::Inactive),
            "an inactive path is usable beside an active one"
        );
        self.paths.iter().for_each(|p| p.pmtu.check_invariants());
        for id in self.paths.ids() {
            // Until the association is open T1 watches what left with COOKIE ECHO.
            let runs = self.timers.is_running(Timer::Path(id, PathTimer::T3Rtx));
            let runs = runs || !self.state.is_open();
            assert!(runs || !self.out.needs_t3(id), "nothing watches what is outstanding on {id}");
        }
        if let Some(r) = &self.receiver {
            // One chunk may exceed the buffer: the one that is next in order (RFC 9260 §6.2).
            let limit = self.receive_buffer.max(self.config.receive_buffer) + 65_535;
            assert!(r.inbound.buffered_bytes() <= limit, "the receive buffer overflows");
        }
        assert!(self.unacked_bytes() <= self.config.send_buffer, "the send buffer overflows");
    }

    // ---- For the endpoint ----

    pub(crate) fn identity(&self) -> &Identity {
        &self.id
    }

    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The peer's addresses as far as they are verified; before the association is open, those that the
    /// application gave.
    pub(crate) fn known_remotes(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        let opening = !self.state.is_open();
        let known = move |p: &&crate::path::Path| opening || p.state != PathState::Unconfirmed;
        self.paths.iter().filter(known).map(|p| p.remote)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    // ---- Helpers of the phases ----

    /// With `combined_window`: what happened to the window of one path happened to that of all.
    fn share_window(&mut self, id: PathId) {
        if !self.config.combined_window {
            return;
        }
        let Some(window) = self.paths.get(id).map(|p| p.window) else { return };
        for p in self.paths.iter_mut() {
            p.window = window;
            self.recovery.policy.share(id, p.id);
        }
    }

    fn config_rc(&self) -> Arc<Config> {
        Arc::clone(&self.config)
    }

    /// Calls a policy with a view of every path.
    fn decide<T>(
        &mut self,
        now: Instant,
        decision: impl FnOnce(&mut Policies, &mut PolicyCx<'_>) -> T,
    ) -> T {
        let mut views = std::mem::take(&mut self.views);
        views.clear();
        for p in self.paths.iter() {
            let mut view = p.view(self.out.in_use(p.id));
            if self.recovery.past_cwnd.is_allowed_on(p.id) {
                view.cwnd_space = view.cwnd_space.max(1);
            }
            views.push(view);
        }
        let rng = &mut self.policy_rng;
        let mut cx = PolicyCx { now, paths: &views, primary: self.primary, rng };
        let result = decision(&mut self.policies, &mut cx);
        self.views = views;
        result
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
            p.heartbeat_due = false;
            p.pmtu.stop();
        }
        self.blocked_since = None;
        self.events.push_back(Event::Closed(reason));
    }

    fn tell_if_writable(&mut self) {
        // Half of the buffer: waking the application for every packet would cost more than it gains.
        let room = self.send_space() >= self.config.send_buffer / 2;
        if self.writable_wanted && room && self.state.accepts_messages() {
            self.writable_wanted = false;
            self.events.push_back(Event::Writable);
        }
    }

    fn tell_if_readable(&mut self) {
        let ready = self.receiver.as_ref().is_some_and(|r| r.inbound.has_ready());
        if ready && !self.readable_told {
            self.readable_told = true;
            self.events.push_back(Event::Readable);
        }
    }
}
