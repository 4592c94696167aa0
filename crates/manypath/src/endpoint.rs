//! Endpoints: sockets, and the associations that run over them.

use std::fmt;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;

#[cfg(feature = "relay")]
use manypath_net::RelayStatus;
use manypath_net::{
    BindTo, BoundAddresses, Clock, Pairs, RELAY_OVERHEAD, RELAY_OVERHEAD_MAX, Relays, SendFailures,
    UdpSockets, Uplinks, unmapped,
};
use manypath_proto as proto;
use manypath_proto::{
    AssocId, ConnectTo, Instant, KeyManagement, PathId, PathRank, PathStats, Rng, SendOptions,
    is_raw_ip,
};
use tokio::runtime;

use crate::association::Association;
use crate::driver::Driver;
use crate::error::{BindError, ConnectError};
use crate::memory;
use crate::options::{ConnectTarget, DEFAULT_PORT, EndpointOptions};
use crate::ranks::{RankPlaceError, addresses_of_interface};
#[cfg(feature = "relay")]
use crate::relay_use::{self, RelayUse};
use crate::roaming::Roaming;
#[cfg(feature = "relay")]
use crate::shared::Inner;
use crate::shared::{AcceptLimits, Below, PeerPlaces, Shared};
use crate::uplinks;

/// Local UDP sockets, or raw ones beside them, and the associations that run over them.
///
/// Clones are handles of the same endpoint. When the last one is dropped, no association is opened
/// or accepted any more and those that wait to be accepted are aborted; the others go on until they
/// end by themselves or by their own handles. When the runtime is dropped, all associations end at
/// once, and peers are told as far as one packet to each can do that.
#[derive(Clone)]
pub struct Endpoint {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    accept: bool,
    keys: Option<Arc<dyn KeyManagement>>,
    #[cfg(feature = "relay")]
    direct_paths: bool,
    #[cfg(feature = "relay")]
    relay_use: RelayUse,
    /// It has relays of its own.
    #[cfg(feature = "relay")]
    has_relays: bool,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.with(|inner, now| inner.endpoint_dropped(now));
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&self.handle.shared.bound()).finish()
    }
}

impl Endpoint {
    /// Opens the sockets and starts the task that drives them. Must be called within a tokio
    /// runtime whose I/O and time drivers are enabled.
    pub fn bind(options: EndpointOptions) -> Result<Endpoint, BindError> {
        let runtime = runtime::Handle::try_current().map_err(|_| BindError::NoRuntime)?;
        #[cfg(feature = "relay")]
        let has_relays = !options.relays.is_empty();
        #[cfg(not(feature = "relay"))]
        let has_relays = false;
        let header = if options.accept { RELAY_OVERHEAD_MAX } else { RELAY_OVERHEAD };
        let relay_header = if has_relays { header } else { 0 };
        let mut config = options.config.for_sockets(relay_header)?;
        let hides = hides_addresses(&options);
        config.advertise_addresses &= !hides;
        let config = Arc::new(config);
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|_| BindError::Random)?;

        let mut sockets = UdpSockets::bind(&options.bind, options.udp_port)?;
        if !config.pmtu_discovery {
            // Without path MTU discovery, IP must fragment packets that are too long.
            sockets.let_fragment();
        }
        let sctp_port = match options.sctp_port {
            wanted if options.raw_ip => sockets.add_raw_ip(wanted)?,
            0 => DEFAULT_PORT, // UDP ports keep endpoints apart
            wanted => wanted,
        };
        let bound = sockets.bound().clone();
        let mut engine = proto::Endpoint::new(
            proto::EndpointConfig {
                config: Arc::clone(&config),
                sctp_port,
                accept: options.accept,
                max_associations: options.max_associations,
                // A socket on every address adds none: the peer is told of the addresses that
                // packets come to, as a list of all interfaces would hold many that it cannot
                // reach.
                local_addresses: if hides { Vec::new() } else { bound.concrete_of_all() },
            },
            Rng::from_seed(seed),
        );
        engine.set_buffer_reserve(options.buffer_reserve.unwrap_or_else(memory::quarter_of_free));
        let keys = options.security.keys();
        engine.set_key_management(keys.clone());
        engine.set_auth_keys(options.auth_keys.clone());
        if let Some(limits) = options.strangers {
            engine.set_incoming_window(limits.receive_buffer);
        }
        let clock = Clock::start();
        let (relays, said) = open_relays(&options, clock.now(), &bound);
        let notes = sockets.notes().iter().cloned().chain(said).collect();
        let limits = AcceptLimits { backlog: options.accept_backlog, strangers: options.strangers };
        let follows = sockets.follows_uplinks() && options.follow_network;
        let shared = Shared::new(
            engine,
            clock,
            Below { bound, raw_ip_port: sockets.raw_ip_port(), notes, follows_uplinks: follows },
            relays.status(),
            limits,
        );
        shared.with(|inner, now| {
            for (place, rank) in &options.ranks {
                inner.ranks.want(place.clone(), *rank)?;
            }
            inner.apply_ranks(now);
            inner.hides_addresses = hides;
            inner.takes_relays_only = hides && has_relays;
            #[cfg(feature = "relay")]
            begin_search(inner, now, &options);
            Ok::<_, BindError>(())
        })?;
        let roaming = options.follow_network.then(|| Roaming::start(&mut sockets));
        let driver = Driver::new(Arc::clone(&shared), sockets, relays, roaming, &config);
        runtime.spawn(driver.run());
        let handle = Handle {
            shared,
            accept: options.accept,
            keys,
            #[cfg(feature = "relay")]
            direct_paths: options.direct_paths,
            #[cfg(feature = "relay")]
            relay_use: options.relay_use,
            #[cfg(feature = "relay")]
            has_relays,
        };
        Ok(Endpoint { handle: Arc::new(handle) })
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// Opens an association. Dropping the future gives the attempt up.
    pub async fn connect(
        &self,
        target: impl Into<ConnectTarget>,
    ) -> Result<Association, ConnectError> {
        self.connect_to(target.into(), None).await
    }

    /// [`connect`](Endpoint::connect) with a first message, which need not wait until the
    /// association is open. If the configuration has `data_with_cookie` and the message fits, it
    /// arrives a round trip sooner, and a lost one is repeated as often as the handshake.
    ///
    /// # Errors
    /// Those of [`connect`](Endpoint::connect), and [`ConnectError::FirstMessage`].
    pub async fn connect_with(
        &self,
        target: impl Into<ConnectTarget>,
        options: SendOptions,
        first: Bytes,
    ) -> Result<Association, ConnectError> {
        self.connect_to(target.into(), Some((options, first))).await
    }

    async fn connect_to(
        &self,
        target: ConnectTarget,
        first: Option<(SendOptions, Bytes)>,
    ) -> Result<Association, ConnectError> {
        let ConnectTarget { remotes, relayed, sctp_port, security, limit } = target;
        let begun = tokio::time::Instant::now();
        let relays: Vec<_> = relayed.iter().map(|relayed| unmapped(relayed.relay)).collect();
        let relayed = without_repeats(relayed.into_iter().map(|relayed| relayed.address));
        let mut others = without_repeats(remotes);
        others.retain(|remote| !relayed.contains(remote));
        if self.hides_addresses() && !relayed.is_empty() {
            others.clear();
        }
        let remotes = [&relayed[..], &others].concat();
        if remotes.is_empty() {
            return Err(ConnectError::NoRemote);
        }
        if let Some(remote) = remotes.iter().find(|remote| is_raw_ip(**remote))
            && !self.shared().bound().has_raw_ip()
        {
            return Err(ConnectError::NoRawIp { remote: remote.ip() });
        }
        let Ways { uplinks, paths, candidates } = self.ways_to(&relayed, &others).await?;
        let limit = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
        let relayed = if self.seeks_direct_paths(relays) { relayed } else { Vec::new() };
        let to = ConnectTo::new(paths, sctp_port);
        let to = ConnectTo { candidates, limit, relayed, ..to };
        let keys = security.map_or_else(|| self.handle.keys.clone(), |security| security.keys());
        let peer = PeerPlaces { remotes, uplinks };
        let id = self.shared().with(|inner, now| inner.connect(now, to, keys, peer, first))?;
        let association = self.handle_for(id);
        poll_fn(|cx| {
            association
                .shared()
                .with(|inner, _| inner.assocs.poll_established(cx, association.id()))
        })
        .await?;
        Ok(association)
    }

    /// The pairs of addresses for an association with a peer that has some on relays, and others.
    async fn ways_to(
        &self,
        relayed: &[SocketAddr],
        others: &[SocketAddr],
    ) -> Result<Ways, ConnectError> {
        let remotes = [relayed, others].concat();
        #[cfg(feature = "relay")]
        if self.hides_addresses() && self.handle.has_relays {
            let paths = relay_use::ways_to(self.shared(), &remotes).await;
            let ways = Ways { uplinks: None, paths, candidates: Vec::new() };
            return if ways.paths.is_empty() {
                Err(ConnectError::NoRelay { remotes })
            } else {
                Ok(ways)
            };
        }
        if self.hides_addresses() && relayed.is_empty() {
            return Err(ConnectError::NoRelay { remotes });
        }
        let (uplinks, pairs) = uplinks::find(self.shared(), relayed, others).await;
        if pairs.paths.is_empty() {
            let locals = self.shared().bound().sources_for(&remotes);
            return Err(ConnectError::NoPath { locals, remotes });
        }
        let Pairs { paths, candidates, .. } = pairs;
        let uplinks = self.shared().follows_uplinks.then_some(uplinks);
        Ok(Ways { uplinks, paths, candidates })
    }

    /// True if no peer is told an address of this host.
    fn hides_addresses(&self) -> bool {
        #[cfg(feature = "relay")]
        let hides = self.handle.relay_use == RelayUse::Only;
        #[cfg(not(feature = "relay"))]
        let hides = false;
        hides
    }

    /// Begins to look for direct paths, if that is wanted, and there are relays to ask where we
    /// are. True if so, or if it has begun.
    #[cfg(feature = "relay")]
    fn seeks_direct_paths(&self, relays: Vec<SocketAddr>) -> bool {
        let seeks = match self.handle.relay_use {
            RelayUse::Only => false,
            RelayUse::Beside => self.handle.direct_paths && !relays.is_empty(),
            RelayUse::ToMeet => true,
        };
        if seeks {
            self.shared().with(|inner, now| inner.seek_direct_paths(now, relays));
        }
        seeks
    }

    #[cfg(not(feature = "relay"))]
    fn seeks_direct_paths(&self, _relays: Vec<SocketAddr>) -> bool {
        false
    }

    /// The next association that a peer opened; `None` if the endpoint was closed or its options do
    /// not let it accept any. Cancel safe.
    pub async fn accept(&self) -> Option<Association> {
        if !self.handle.accept {
            return None;
        }
        let poll = |cx: &mut Context<'_>| -> Poll<Option<AssocId>> {
            self.shared().with(|inner, _| inner.poll_accept(cx))
        };
        poll_fn(poll).await.map(|id| self.handle_for(id))
    }

    fn handle_for(&self, id: AssocId) -> Association {
        Association::new(Arc::clone(self.shared()), id)
    }

    /// The UDP addresses that peers can reach this endpoint at: those it is bound to, or those of
    /// the interfaces that are up now if it is bound to every address.
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        self.shared().bound().reachable()
    }

    /// The UDP port of all its sockets.
    pub fn udp_port(&self) -> u16 {
        self.shared().bound().port()
    }

    /// The SCTP port under which it is reached over IP itself, with [`EndpointOptions::raw_ip`].
    pub fn raw_ip_port(&self) -> Option<u16> {
        self.shared().raw_ip_port
    }

    /// Says that this host's network has changed, where the application hears of it sooner than
    /// this library: on systems that tell a program nothing, it looks once a second. Sockets and
    /// paths are brought up to date at once, unless [`EndpointOptions::follow_network`] is off, and
    /// what does not work is tried again.
    pub fn network_changed(&self) {
        self.shared().look.store(true, Ordering::Relaxed);
        self.shared().with(|inner, now| {
            inner.assocs.engine.network_changed(now);
            inner.assocs.kick();
        });
    }

    /// Gives the paths from an address or an interface a rank, in all associations of now and
    /// later: which paths carry data before they do. An interface keeps it when its address
    /// changes.
    ///
    /// # Errors
    /// There is no such interface now, or the place means every address.
    pub fn set_rank(&self, place: BindTo, rank: PathRank) -> Result<(), RankPlaceError> {
        if let BindTo::Interface(name) = &place
            && addresses_of_interface(name).is_empty()
        {
            return Err(RankPlaceError::NoInterface(name.clone()));
        }
        self.shared().with(|inner, now| {
            inner.ranks.want(place, rank)?;
            inner.apply_ranks(now);
            Ok(())
        })
    }

    /// Gives one path of an association a rank, as [`Association::set_path_rank`] does. Returns
    /// false if there is no such path.
    pub fn set_path_rank(&self, association: AssocId, path: PathId, rank: PathRank) -> bool {
        self.shared().with(|inner, now| {
            let assoc = inner.assocs.engine.assoc_mut(association);
            let is_set = assoc.is_some_and(|assoc| assoc.set_path_rank(now, path, rank));
            inner.assocs.kick();
            is_set
        })
    }

    /// The rank of the paths from a local address.
    pub fn rank(&self, local: IpAddr) -> PathRank {
        self.shared().with(|inner, _| inner.assocs.engine.local_rank(local.to_canonical()))
    }

    /// The paths of every association that is not over, by the association's number.
    pub fn paths(&self) -> Vec<(AssocId, Vec<PathStats>)> {
        self.shared().with(|inner, _| {
            let engine = &inner.assocs.engine;
            let paths = |id| engine.assoc(id).map(|assoc| (id, assoc.paths().collect()));
            inner.assocs.open().into_iter().filter_map(paths).collect()
        })
    }

    /// Notes for the user on how the sockets were opened, for instance that one could not be kept
    /// to its interface.
    pub fn notes(&self) -> &[String] {
        &self.shared().notes
    }

    /// How its relays are doing, in the order of [`EndpointOptions::relays`]. Behind them are those
    /// that [joined](EndpointOptions::relay_peers).
    #[cfg(feature = "relay")]
    pub fn relays(&self) -> Vec<RelayStatus> {
        self.shared().relays.borrow().clone()
    }

    /// Waits until `settled` says true of the relays' states, the present ones first; what they
    /// were then. For instance until each has an address or an error. Cancel safe.
    #[cfg(feature = "relay")]
    pub async fn relays_until(
        &self,
        mut settled: impl FnMut(&[RelayStatus]) -> bool,
    ) -> Vec<RelayStatus> {
        let mut watch = self.shared().relays.subscribe();
        // An error means that nothing will change any more.
        let settled = watch.wait_for(|relays| settled(relays)).await.map(|r| r.clone());
        settled.unwrap_or_else(|_| self.relays())
    }

    /// Packets that the system refused to send, by reason.
    pub fn send_failures(&self) -> SendFailures {
        self.shared().with(|inner, _| inner.send_failures)
    }

    /// Closes the endpoint: takes no more associations, shuts all down, and waits until they are
    /// over. What is queued is delivered first; a peer that does not answer holds this up until its
    /// association fails. If the future is dropped the shutdowns go on.
    pub async fn close(&self) {
        self.shared().with(|inner, now| {
            inner.stop_accepting(now);
            inner.assocs.shutdown_all(now);
        });
        poll_fn(|cx| self.shared().with(|inner, _| inner.assocs.poll_all_closed(cx))).await;
    }

    /// Closes the endpoint at once: every association is aborted, and its peer told the reason.
    pub fn abort(&self, reason: impl AsRef<[u8]>) {
        self.shared().with(|inner, now| {
            inner.stop_accepting(now);
            inner.assocs.abort_all(now, reason.as_ref());
        });
    }
}

/// True if no peer is to be told an address of this host.
#[cfg(feature = "relay")]
fn hides_addresses(options: &EndpointOptions) -> bool {
    options.relay_use == RelayUse::Only
}

#[cfg(not(feature = "relay"))]
fn hides_addresses(_options: &EndpointOptions) -> bool {
    false
}

/// Begins to ask the relays for addresses. With them come notes for the user.
#[cfg(feature = "relay")]
fn open_relays(
    options: &EndpointOptions,
    now: Instant,
    bound: &BoundAddresses,
) -> (Relays, Vec<String>) {
    let open = match (options.accept, options.relay_numbers) {
        (true, true) => Relays::numbered,
        (true, false) => Relays::accepting,
        (false, _) => Relays::new,
    };
    let (mut relays, notes) = open(now, &options.relays, bound);
    if options.relay_peers {
        relays.follow_overlay(bound);
    }
    (relays, notes)
}

#[cfg(not(feature = "relay"))]
fn open_relays(_: &EndpointOptions, _: Instant, _: &BoundAddresses) -> (Relays, Vec<String>) {
    (Relays::default(), Vec::new())
}

/// Begins to look for direct paths, if that is wanted from the start.
#[cfg(feature = "relay")]
fn begin_search(inner: &mut Inner, now: Instant, options: &EndpointOptions) {
    let has_relays = !options.relays.is_empty();
    let seeks = match options.relay_use {
        RelayUse::Only => false,
        RelayUse::Beside => options.direct_paths && options.accept && has_relays,
        // Without relays, too: the peer's lists say which of its addresses are on relays.
        RelayUse::ToMeet => true,
    };
    if seeks {
        let relays = options.relays.iter().map(|relay| unmapped(relay.address));
        inner.seek_direct_paths(now, relays.collect());
    }
    inner.assocs.engine.set_direct_only(options.relay_use == RelayUse::ToMeet);
}

/// Pairs of addresses for an association, and the uplinks that it follows.
struct Ways {
    uplinks: Option<Uplinks>,
    paths: Vec<(SocketAddr, SocketAddr)>,
    candidates: Vec<(SocketAddr, SocketAddr)>,
}

/// Addresses in their order, each once, IPv4 ones as such.
fn without_repeats(given: impl IntoIterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut addresses = Vec::new();
    for address in given.into_iter().map(unmapped) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}
