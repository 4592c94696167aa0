//! A host: an engine, its applications, and a place in the network.

mod commands;
mod direct;
mod driver;
mod nats;
mod planned;
mod roaming;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use manypath_dtls::manage::KeyManagement;
use manypath_proto::config::Config;
use manypath_proto::{
    AssocClosed, AssocId, AssocStats, Association, Endpoint, EndpointConfig, Event, Instant,
    PathRank, PathStats, Rng, SharedEvidence,
};

use crate::ids::NodeId;
use crate::ledger::Ledger;
use crate::traffic::{Receiver, Sender};
use crate::transitions::{Cause, Transitions, Watched};
use direct::Search;
pub use nats::ReflexiveAddress;
use planned::Schedule;

/// How a host is set up.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The engine's configuration.
    pub config: Arc<Config>,
    /// Its transport addresses.
    pub addresses: Vec<SocketAddr>,
    /// The paths over which it associates, primary first; none if it waits for its peer.
    pub connect: Vec<(SocketAddr, SocketAddr)>,
    /// More pairs, which take the place of paths that are not answered.
    pub candidates: Vec<(SocketAddr, SocketAddr)>,
    /// Addresses that relays have lent to the host or its peer. With some, it looks for direct
    /// paths.
    pub relayed: Vec<SocketAddr>,
    /// Most packets that the engine may hand over at once.
    pub max_segments: usize,
    /// Protects its associations, if there is one.
    pub keys: Option<Arc<dyn KeyManagement>>,
    /// Counts spurious retransmissions.
    pub has_ledger: bool,
    /// Where its randomness comes from.
    pub rng: Rng,
}

/// The SCTP port of every host.
pub(crate) const SCTP_PORT: u16 = 9899;

impl HostConfig {
    /// The engine of a host that has lost all its state `restarts` times.
    fn endpoint(&self, config: Arc<Config>, restarts: u32) -> Endpoint {
        let config = EndpointConfig {
            config,
            sctp_port: SCTP_PORT,
            accept: self.connect.is_empty(),
            max_associations: 16,
            local_addresses: self.addresses.clone(),
        };
        let mut endpoint = Endpoint::new(config, self.rng.fork(&format!("endpoint {restarts}")));
        endpoint.set_key_management(self.keys.clone());
        if !self.relayed.is_empty() {
            endpoint.set_candidates(Instant::ZERO, Vec::new());
        }
        endpoint
    }
}

/// How far the association is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Not established yet, or open for data in both directions.
    Open,
    /// This end or the peer has begun a shutdown (RFC 9260 §9.2).
    ShuttingDown,
}

/// Commands that the engine has not carried out, and facts that it does not know yet.
#[derive(Debug, Default)]
struct Pending {
    /// Commands were given since the host was last driven.
    commands: bool,
    /// Associate.
    associate: bool,
    /// Shut the association down once it is established and everything is sent.
    shutdown: bool,
    /// Abort the association for this reason.
    abort: Option<Vec<u8>>,
    /// The engine does not know the MTUs of its interfaces.
    link_mtus: bool,
    /// Ask for the addresses that NATs give the host.
    gather: bool,
    /// The engine does not know all ranks of paths.
    ranks: bool,
}

/// How the application of a host behaves.
#[derive(Debug)]
struct Application {
    /// It reads messages as they arrive.
    reads: bool,
    /// It gives the peer the configured receive buffer after the peer's first message.
    admits: bool,
    /// It associates again when the association is lost.
    reconnects: bool,
}

/// Tells the engine the true loss rates of links: for RTX-LOSSRATE only.
#[derive(Debug)]
enum LossOracle {
    /// The retransmission policy does not want them.
    Unused,
    /// Paths, or the loss of a link, have changed since the oracle was asked.
    Outdated,
    /// The engine knew all loss rates after this many changes of loss in the network.
    Asked { changes: u64 },
}

impl LossOracle {
    fn outdate(&mut self) {
        if let LossOracle::Asked { .. } = self {
            *self = LossOracle::Outdated;
        }
    }
}

/// How often a host, and its association, began again.
#[derive(Copy, Clone, Debug, Default)]
struct Beginnings {
    /// Times the host lost all its state.
    restarts: u32,
    /// Associations and peer restarts so far: the counters of sender and receiver are of the
    /// latest.
    epoch: u32,
}

/// A host with one association at a time, and the applications that use it.
///
/// Commands such as [`send`](Self::send) take effect at the present time, when the run goes on.
#[derive(Debug)]
pub struct Host {
    node: NodeId,
    setup: HostConfig,
    /// The configuration of the setup, adapted to simulations.
    engine_config: Arc<Config>,
    endpoint: Endpoint,
    assoc: Option<AssocId>,
    beginnings: Beginnings,
    phase: Phase,
    /// Work for the next [`drive`](Self::drive).
    pending: Pending,
    /// How the application behaves.
    application: Application,
    /// The ranks of paths by local address.
    ranks: BTreeMap<IpAddr, PathRank>,
    schedule: Schedule,
    /// The search for direct paths, if it looks for any.
    search: Option<Search>,
    oracle: LossOracle,
    /// Bytes received by each moment that concerned it.
    received_at: Vec<(Instant, u64)>,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) ledger: Option<Ledger>,
    events: Vec<(Instant, Event)>,
    text: String,
    /// The state machines of its associations, if they are watched.
    watched: Option<Box<Watched>>,
}

impl Host {
    /// A host at that node.
    pub fn new(node: NodeId, setup: HostConfig) -> Host {
        let engine_config = Arc::new(setup.config.for_simulation());
        Host::with_engine_config(node, setup, engine_config)
    }

    /// The same with a given configuration for simulations: hosts may share it.
    pub(crate) fn with_engine_config(
        node: NodeId,
        setup: HostConfig,
        engine_config: Arc<Config>,
    ) -> Host {
        let pending = Pending {
            commands: true,
            associate: !setup.connect.is_empty(),
            link_mtus: true,
            ..Pending::default()
        };
        let wants_oracle = knows_true_loss(&setup.config);
        let relayed = Some(setup.relayed.clone()).filter(|relayed| !relayed.is_empty());
        let mut host = Host {
            node,
            endpoint: setup.endpoint(Arc::clone(&engine_config), 0),
            engine_config,
            assoc: None,
            beginnings: Beginnings::default(),
            phase: Phase::Open,
            pending,
            application: Application { reads: true, admits: false, reconnects: false },
            ranks: BTreeMap::new(),
            schedule: Schedule::default(),
            search: relayed.map(Search::new),
            oracle: if wants_oracle { LossOracle::Outdated } else { LossOracle::Unused },
            received_at: Vec::new(),
            sender: Sender::default(),
            receiver: Receiver::default(),
            ledger: setup.has_ledger.then(Ledger::default),
            events: Vec::new(),
            text: String::new(),
            watched: None,
            setup,
        };
        host.begin_search();
        host
    }

    /// Notes the transitions of all associations from now on.
    pub(crate) fn watch_transitions(&mut self) {
        self.watched = Some(Box::default());
    }

    /// The transitions of all associations so far, if they are noted.
    pub(crate) fn transitions(&self) -> Option<&Transitions> {
        self.watched.as_ref().map(|watched| watched.transitions())
    }

    /// Puts changes of the associations since the last look down to `cause`.
    #[inline]
    fn look(&mut self, cause: &Cause) {
        if let Some(watched) = &mut self.watched {
            watched.look(&self.endpoint, cause);
        }
    }

    /// Its place in the network.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Its transport addresses.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.setup.addresses
    }

    /// The engine's configuration.
    pub fn config(&self) -> &Config {
        &self.setup.config
    }

    /// The association, open or closed.
    pub fn assoc(&self) -> Option<&Association> {
        self.endpoint.assoc(self.assoc?)
    }

    /// True while the association is established.
    pub fn is_established(&self) -> bool {
        self.assoc().is_some_and(Association::is_established)
    }

    /// Why the association ended, if it did.
    pub fn closed(&self) -> Option<&AssocClosed> {
        self.assoc()?.closed()
    }

    /// The paths as the engine reports them.
    pub fn paths(&self) -> Vec<PathStats> {
        self.assoc().map(|assoc| assoc.paths().collect()).unwrap_or_default()
    }

    /// The engine's evidence on paths that may share a bottleneck.
    pub fn shared_pairs(&self) -> &[SharedEvidence] {
        self.assoc().map_or(&[], Association::shared_pairs)
    }

    /// The counters of the association.
    pub fn stats(&self) -> Option<AssocStats> {
        self.assoc().map(Association::stats)
    }

    /// User bytes handed to the association since it, or the peer, started.
    pub fn sent_bytes(&self) -> u64 {
        self.sender.bytes
    }

    /// User bytes handed to the association since it, or the peer, started, of messages that may
    /// not be given up.
    pub fn sent_reliable_bytes(&self) -> u64 {
        self.sender.reliable_bytes
    }

    /// Messages handed to the association since it, or the peer, started.
    pub fn sent_messages(&self) -> u64 {
        self.sender.messages
    }

    /// User bytes received since the association, or the peer, started.
    pub fn received_bytes(&self) -> u64 {
        self.receiver.bytes
    }

    /// User bytes received since the association, or the peer, started, of messages that may not be
    /// given up.
    pub fn received_reliable_bytes(&self) -> u64 {
        self.receiver.reliable_bytes
    }

    /// Messages received since the association, or the peer, started.
    pub fn received_messages(&self) -> u64 {
        self.receiver.messages
    }

    /// When the last bytes were received.
    pub fn last_received(&self) -> Option<Instant> {
        self.receiver.last
    }

    /// True if the association took everything that was to be sent.
    pub fn has_sent_all(&self) -> bool {
        self.sender.is_done() && !self.schedule.will_send()
    }

    /// True if everything that was to be sent, if anything was, is acknowledged.
    pub fn has_been_acked_all(&self) -> bool {
        self.has_sent_all() && self.assoc().is_none_or(|assoc| assoc.unacked_bytes() == 0)
    }

    /// Its preset.
    pub fn preset(&self) -> &'static str {
        self.setup.config.preset
    }

    /// True if a shutdown was asked for or begun and the association is not over.
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.pending.shutdown || self.phase == Phase::ShuttingDown
    }

    /// Associations and peer restarts so far.
    pub fn epoch(&self) -> u32 {
        self.beginnings.epoch
    }

    /// Everything the engine reported but that there is data to read or room to write.
    pub fn events(&self) -> &[(Instant, Event)] {
        &self.events
    }

    /// Checks what must always hold in the engine.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub fn check_invariants(&self) {
        for id in self.endpoint.associations() {
            if let Some(assoc) = self.endpoint.assoc(id) {
                assoc.check_invariants();
            }
        }
    }
}

/// True if the engine is told what links lose: by RTX-LOSSRATE, an oracle.
pub(crate) fn knows_true_loss(config: &Config) -> bool {
    config.rtx_policy.build(config).needs_true_loss()
}
