//! Two hosts and the paths between them: what most tests need.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use manypath_proto::config::Config;
use manypath_proto::sizes::{IPV4_HEADER, UDP_IPV4_HEADERS};
use manypath_proto::{ConnectTo, Datagram, Event, Instant, PathId, PathRank, PathState, Rng};

use crate::host::{Host, HostConfig, SCTP_PORT};
use crate::network::Network;
use crate::paths::PathEnds;
use crate::protection::Keys;
use crate::result;
use crate::result::TransferResult;
use crate::sent::Sent;
use crate::spec::{Loss, PathSpec, QueueLimit};
use crate::testing::Side;
use crate::testing::tamper::{Middle, Next, Passing};
use crate::traffic::Lateness;
use crate::world::{advance, drive_waiting, handle, note_received};

/// The instant `seconds` after the start of the run.
pub const fn secs(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1000)
}

/// The instant `milliseconds` after the start of the run.
pub const fn millis(milliseconds: u64) -> Instant {
    Instant::from_millis(milliseconds)
}

/// Accepts the event that a path enters a state; for [`Pair::run_until_event`].
pub fn path_state(path: PathId, state: PathState) -> impl Fn(&Event) -> bool {
    move |event| matches!(event, Event::PathState { path: p, to, .. } if *p == path && *to == state)
}

/// Two hosts, `a` which associates and `z` which waits, with independent paths between them.
///
/// ```
/// use manypath_proto::{PathId, PathState};
/// use manypath_sim::{Pair, chunk_type::DATA, path_state, secs};
///
/// let mut t = Pair::two_paths("cmt-pf").rate_mbps(10.0).delay_ms(45.0).seed(7).connect();
/// t.a.send_file(8 << 20);
/// t.run_until(secs(2));
/// t.net.path(1).cut(); // both directions, for good
///
/// let pf = t.run_until_event(path_state(PathId(1), PathState::PotentiallyFailed));
/// let data = t.run_to_end(secs(60)).sent(DATA).on(PathId(1)).since(pf);
/// assert_eq!(data.count(), 0);
/// assert_eq!(t.z.received_bytes(), 8 << 20);
/// ```
#[derive(Debug)]
pub struct Pair {
    /// The host that associates.
    pub a: Host,
    /// The host that waits.
    pub z: Host,
    /// Everything between them.
    pub net: Network,
    middle: Option<Box<Middle>>,
    seed: u64,
    checks_invariants: bool,
}

impl Pair {
    /// Begins a pair with one path of 10 Mbit/s and 45 ms, on the `rfc9260` profile.
    pub fn one_path(preset: &str) -> PairBuilder {
        Pair::paths(preset, vec![PathSpec::new()])
    }

    /// Begins a pair with two such paths.
    pub fn two_paths(preset: &str) -> PairBuilder {
        Pair::paths(preset, vec![PathSpec::new(); 2])
    }

    /// Begins a pair with these paths; path 0 is the primary.
    pub fn paths(preset: &str, paths: Vec<PathSpec>) -> PairBuilder {
        assert!((1..=200).contains(&paths.len()), "{} paths", paths.len());
        PairBuilder {
            profile: "rfc9260".to_owned(),
            preset: preset.to_owned(),
            paths,
            overrides: Vec::new(),
            only_a: Vec::new(),
            only_z: Vec::new(),
            own_a: None,
            keys_a: None,
            keys_z: None,
            seed: 1,
            header_bytes: None,
            max_segments: 1,
            is_logged: true,
            has_ledger: true,
            has_one_far_address: false,
            over: None,
            has_fixed_links: false,
            has_middle: false,
            checks_invariants: cfg!(debug_assertions),
            ranks_a: Vec::new(),
            ranks_z: Vec::new(),
        }
    }

    /// Runs to that time.
    pub fn run_until(&mut self, limit: Instant) {
        while self.step(limit) {}
    }

    /// Runs for that long.
    pub fn run_for(&mut self, length: Duration) {
        self.run_until(self.net.now() + length);
    }

    /// Runs until host `a` reports an event that `accepts` does, and returns when.
    ///
    /// # Panics
    ///
    /// If none comes within ten minutes.
    pub fn run_until_event(&mut self, accepts: impl Fn(&Event) -> bool) -> Instant {
        let limit = self.net.now() + Duration::from_secs(600);
        let mut seen = self.a.events().len();
        let mut found = None;
        self.run_until_true(limit, |t| {
            let new = t.a.events().get(seen..).unwrap_or_default();
            found = new.iter().find(|(_, event)| accepts(event)).map(|(at, _)| *at);
            seen = t.a.events().len();
            found.is_some()
        });
        let report = || format!("no such event until {limit:?}; events: {:?}", self.a.events());
        found.unwrap_or_else(|| panic!("{}", report()))
    }

    /// Runs until `is_true`, at most to `limit`. Returns whether it became true.
    pub fn run_until_true(
        &mut self,
        limit: Instant,
        mut is_true: impl FnMut(&Pair) -> bool,
    ) -> bool {
        loop {
            if is_true(self) {
                return true;
            }
            if !self.step(limit) {
                return is_true(self);
            }
        }
    }

    /// Runs until everything is delivered, both ways, and a shutdown that was asked for is over;
    /// until the association is lost; or to `limit`.
    pub fn run_to_end(&mut self, limit: Instant) -> &Pair {
        self.run_until_true(limit, |t| t.is_at_end() || t.is_lost());
        self
    }

    /// Everything is delivered, both ways, and a shutdown that was begun is over.
    pub fn is_at_end(&self) -> bool {
        if !self.has_delivered_all() {
            return false;
        }
        let is_open = |host: &Host| host.closed().is_none();
        match (is_open(&self.a), is_open(&self.z)) {
            (true, true) => !self.a.is_shutting_down() && !self.z.is_shutting_down(),
            (false, false) => true,
            _ => false,
        }
    }

    /// Everything that was to be sent has been delivered, both ways.
    pub fn has_delivered_all(&self) -> bool {
        let is_done = |from: &Host, to: &Host| {
            from.has_sent_all() && from.sent_reliable_bytes() == to.received_reliable_bytes()
        };
        is_done(&self.a, &self.z) && is_done(&self.z, &self.a)
    }

    /// The times of the messages of `a` that may be given up, in the order in which they were sent.
    pub fn lateness(&self) -> Vec<Lateness> {
        result::lateness(&self.a, &self.z)
    }

    /// Both ends gave the association up.
    fn is_lost(&self) -> bool {
        self.a.closed().is_some() && self.z.closed().is_some()
    }

    /// Asks about packets with a chunk of this type; see [`Sent`].
    pub fn sent(&self, chunk: u8) -> Sent<'_> {
        Sent::new(&self.net, chunk)
    }

    /// Result so far of the transfer from `a` to `z`.
    pub fn result(&self) -> TransferResult {
        TransferResult::of(&self.a, &self.z, &self.net, self.seed)
    }

    /// Does what happens next, if that is not beyond `limit`. False if nothing is left to do until
    /// then.
    pub fn step(&mut self, limit: Instant) -> bool {
        if self.middle.is_some() {
            return self.step_with_middle(limit);
        }
        let mut hosts = [&mut self.a, &mut self.z];
        drive_waiting(&mut hosts, &mut self.net);
        advance(&mut hosts, &mut self.net, limit, self.checks_invariants)
    }

    /// The man in the middle, to give him orders.
    ///
    /// # Panics
    ///
    /// If there is none: see [`PairBuilder::with_middle`].
    pub fn middle(&mut self) -> &mut Middle {
        self.middle.as_mut().expect("a pair made `with_middle`")
    }

    /// Both ends know who the other is, and not both are through: from then on the man in the
    /// middle must not be able to do any harm.
    fn is_authenticated(&self) -> bool {
        let knows = |host: &Host| host.assoc().is_some_and(|assoc| assoc.peer().is_some());
        let is_over = self.a.closed().is_some() && self.z.closed().is_some();
        knows(&self.a) && knows(&self.z) && !is_over
    }

    fn step_with_middle(&mut self, limit: Instant) -> bool {
        let is_active = self.is_authenticated();
        let Pair { a, z, net, middle: Some(middle), .. } = self else { return false };
        let mut hosts = [a, z];
        drive_waiting(&mut hosts, net);
        let next = middle.next(net, limit, is_active);
        note_received(&mut hosts, net);
        let Some(next) = next else { return false };
        match next {
            Next::Nothing => {}
            Next::Other(happening) => handle(&mut hosts, net, happening),
            Next::Arrives(Passing { to, local, remote, payload, .. }) => {
                let host = match to {
                    Side::A => &mut hosts[0],
                    Side::Z => &mut hosts[1],
                };
                host.handle_datagram(Datagram::new(local, remote, payload), net);
            }
        }
        note_received(&mut hosts, net);
        if self.checks_invariants {
            self.a.check_invariants();
            self.z.check_invariants();
        }
        true
    }
}

/// A pair in the making.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `connect` or `start`"]
pub struct PairBuilder {
    profile: String,
    preset: String,
    paths: Vec<PathSpec>,
    overrides: Vec<(String, String)>,
    only_a: Vec<(String, String)>,
    only_z: Vec<(String, String)>,
    own_a: Option<Config>,
    keys_a: Option<Keys>,
    keys_z: Option<Keys>,
    seed: u64,
    header_bytes: Option<u32>,
    max_segments: usize,
    is_logged: bool,
    has_ledger: bool,
    has_one_far_address: bool,
    over: Option<ConnectTo>,
    has_fixed_links: bool,
    has_middle: bool,
    checks_invariants: bool,
    ranks_a: Vec<(usize, PathRank)>,
    ranks_z: Vec<(usize, PathRank)>,
}

impl PairBuilder {
    /// Uses this profile: `rfc9260`, `fast`, `2006`, `ns2`, or `ns2-3.4` to `ns2-3.7`.
    pub fn profile(mut self, name: &str) -> Self {
        name.clone_into(&mut self.profile);
        self
    }

    /// Sets a parameter of the engine by name, at both ends.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.overrides.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets a parameter of the engine at host `a` only.
    pub fn set_a(mut self, name: &str, value: &str) -> Self {
        self.only_a.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets a parameter of the engine at host `z` only.
    pub fn set_z(mut self, name: &str, value: &str) -> Self {
        self.only_z.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Gives host `a` this configuration, which may have policies of a program's own, in place of
    /// profile, preset and parameters.
    pub fn config_a(mut self, config: Config) -> Self {
        self.own_a = Some(config);
        self
    }

    /// Protects the association: these are the keys of both ends.
    pub fn keys(mut self, keys: Keys) -> Self {
        self.keys_a = Some(Arc::clone(&keys));
        self.keys_z = Some(keys);
        self
    }

    /// Sets the keys of host `a`, or that it protects nothing.
    pub fn keys_a(mut self, keys: Option<Keys>) -> Self {
        self.keys_a = keys;
        self
    }

    /// Sets the keys of host `z`, or that it protects nothing.
    pub fn keys_z(mut self, keys: Option<Keys>) -> Self {
        self.keys_z = keys;
        self
    }

    /// Sets the rate of all paths.
    pub fn rate_mbps(self, megabits: f64) -> Self {
        self.each_path(|path| path.rate_mbps(megabits))
    }

    /// Sets the one-way delay of all paths.
    pub fn delay_ms(self, millis: f64) -> Self {
        self.each_path(|path| path.delay_ms(millis))
    }

    /// Sets the loss of all paths, both ways: a probability, or a model.
    pub fn loss(self, loss: impl Into<Loss>) -> Self {
        let loss = loss.into();
        self.each_path(|path| path.loss(loss))
    }

    /// Sets the queues of all paths.
    pub fn queue(self, queue: QueueLimit) -> Self {
        self.each_path(|path| path.queue(queue))
    }

    /// Changes one path, by its number.
    pub fn path(mut self, number: usize, change: impl FnOnce(PathSpec) -> PathSpec) -> Self {
        self.paths[number] = change(std::mem::take(&mut self.paths[number]));
        self
    }

    /// Sets the rank of a path at host `a`.
    pub fn rank_a(mut self, number: usize, rank: PathRank) -> Self {
        self.ranks_a.push((number, rank));
        self
    }

    /// Sets the rank of a path at host `z`.
    pub fn rank_z(mut self, number: usize, rank: PathRank) -> Self {
        self.ranks_z.push((number, rank));
        self
    }

    /// Sets the seed of the run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the bytes of headers around each packet: 28 unless said, 20 on the profile `2006` and
    /// those of ns-2, whose SCTP runs over IP.
    pub fn header_bytes(mut self, bytes: u32) -> Self {
        self.header_bytes = Some(bytes);
        self
    }

    /// Lets the engine hand over up to this many packets at once; 1 unless said.
    pub fn max_segments(mut self, packets: usize) -> Self {
        self.max_segments = packets;
        self
    }

    /// Gives `z` one address for all paths, as a server with one uplink has.
    pub fn one_far_address(mut self) -> Self {
        self.has_one_far_address = true;
        self
    }

    /// Sets the pairs of addresses over which `a` associates, which are those of the paths unless
    /// said. Packets between other addresses than those have no route.
    pub fn connect_over(mut self, to: ConnectTo) -> Self {
        self.over = Some(to);
        self
    }

    /// Says that no link will be changed while packets are under way, which saves time: see
    /// [`Network::fix_links`].
    pub fn fix_links(mut self) -> Self {
        self.has_fixed_links = true;
        self
    }

    /// Puts a man in the middle on all paths; give him orders with [`Pair::middle`]. Spurious
    /// retransmissions are not counted then.
    pub fn with_middle(mut self) -> Self {
        self.has_middle = true;
        self.has_ledger = false;
        self
    }

    /// Keeps no packets, counts no spurious retransmissions and checks no invariants: for long
    /// runs.
    pub fn lean(mut self) -> Self {
        (self.is_logged, self.has_ledger, self.checks_invariants) = (false, false, false);
        self
    }

    /// Sets whether spurious retransmissions are counted; by default they are.
    pub fn count_spurious(mut self, counts: bool) -> Self {
        self.has_ledger = counts;
        self
    }

    /// Sets whether packets are kept to ask about; by default they are.
    pub fn packet_log(mut self, is_kept: bool) -> Self {
        self.is_logged = is_kept;
        self
    }

    /// Sets whether the engine's invariants are checked after every step; by default in debug
    /// builds only.
    pub fn check_invariants(mut self, checks: bool) -> Self {
        self.checks_invariants = checks;
        self
    }

    /// Builds the pair and runs until both ends are established and every path is verified.
    ///
    /// # Panics
    ///
    /// If they are not within two minutes, or the configuration is not valid.
    pub fn connect(self) -> Pair {
        let mut pair = self.start();
        let is_ready = |t: &Pair| {
            let is_verified =
                |host: &Host| host.paths().iter().all(|p| p.state != PathState::Unconfirmed);
            t.a.is_established() && t.z.is_established() && is_verified(&t.a)
        };
        let is_connected = pair.run_until_true(secs(120), is_ready);
        assert!(is_connected, "not established within two minutes: {:?}", pair.a.paths());
        pair
    }

    /// Builds the pair; the first INIT is sent when it runs.
    ///
    /// # Panics
    ///
    /// If the configuration is not valid.
    pub fn start(self) -> Pair {
        let config_a = self.own_a.clone().unwrap_or_else(|| self.config(&self.only_a));
        let config_z = self.config(&self.only_z);
        let header_bytes = self.header_bytes.unwrap_or(match config_a.profile {
            profile if profile.is_of_the_papers() => IPV4_HEADER as u32,
            _ => UDP_IPV4_HEADERS as u32,
        });
        let rng = Rng::from_number(self.seed);
        let mut net = Network::new(rng.fork("network"), header_bytes);
        if self.is_logged {
            net.keep_packet_log();
        }
        let (node_a, node_z) = (net.add_node(), net.add_node());
        let (mut near, mut far, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
        for (number, spec) in self.paths.iter().enumerate() {
            let (local, remote) = self.addresses(number);
            near.push(local);
            if !far.contains(&remote) {
                far.push(remote);
            }
            pairs.push((local, remote));
            net.add_path(PathEnds { near: (node_a, local), far: (node_z, remote) }, spec);
        }
        if self.has_fixed_links {
            net.fix_links();
        }
        let over = self.over.clone().unwrap_or_else(|| ConnectTo::new(pairs, SCTP_PORT));
        let host =
            |node, (config, keys): (Config, Option<Keys>), addresses, to: ConnectTo, name| {
                let setup = HostConfig {
                    config: Arc::new(config),
                    addresses,
                    connect: to.paths,
                    candidates: to.candidates,
                    relayed: Vec::new(),
                    max_segments: self.max_segments,
                    keys,
                    has_ledger: self.has_ledger,
                    rng: rng.fork(name),
                };
                Host::new(node, setup)
            };
        let mut a = host(node_a, (config_a, self.keys_a.clone()), near, over, "host a");
        let waits = ConnectTo::new(Vec::new(), SCTP_PORT);
        let mut z = host(node_z, (config_z, self.keys_z.clone()), far, waits, "host z");
        for &(number, rank) in &self.ranks_a {
            a.set_rank(self.addresses(number).0.ip(), rank);
        }
        for &(number, rank) in &self.ranks_z {
            z.set_rank(self.addresses(number).1.ip(), rank);
        }
        let middle =
            self.has_middle.then(|| Box::new(Middle::new(&mut net, &a, &z, rng.fork("middle"))));
        Pair { a, z, net, middle, seed: self.seed, checks_invariants: self.checks_invariants }
    }

    fn config(&self, more: &[(String, String)]) -> Config {
        let all: Vec<_> = self.overrides.iter().chain(more).cloned().collect();
        let config = Config::build(&self.profile, &self.preset, &all);
        config.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The two addresses of a path: 10.0.N.1 and 10.0.N.2, N counted from 1.
    pub(crate) fn addresses(&self, number: usize) -> (SocketAddr, SocketAddr) {
        let at = |net: u8, host| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, net, host)), 9899);
        let net = number as u8 + 1;
        let far = if self.has_one_far_address { at(0, 2) } else { at(net, 2) };
        (at(net, 1), far)
    }

    fn each_path(mut self, change: impl Fn(PathSpec) -> PathSpec) -> Self {
        self.paths = self.paths.into_iter().map(change).collect();
        self
    }
}
