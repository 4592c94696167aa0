//! Sets up one association between manypath and another stack, whichever opens it.

#[path = "../../common/namespace.rs"]
#[allow(dead_code, reason = "the socket tests use the rest of it")]
mod common_namespace;
mod namespace;
mod pattern;
mod programs;
mod rewriter;
mod wire;

use std::future::Future;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use manypath::{
    Association, AuthKeys, BindError, BindTo, Config, ConnectTarget, DEFAULT_PORT, Endpoint,
    EndpointOptions, Security, SocketError,
};

pub use namespace::{Link, in_namespace, in_two_namespaces};
pub use pattern::{Pattern, Verifier};
pub use programs::{Peer, Pion, Relay, Report, free_udp_port, pause};
pub use rewriter::{Change, Chunk, Rewriter, Seen, nothing};
pub use wire::{AUTH, DATA, FORWARD_TSN, I_FORWARD_TSN, Log, RE_CONFIG, SACK, Wire};

/// Longer than any test takes on a busy machine; the C programs end by themselves a little later.
const TEST_LIMIT: Duration = Duration::from_secs(40);

/// The SCTP port of usrsctp_peer.
pub const PEER_SCTP_PORT: u16 = 5001;

/// True if the environment variable `name` is set to `value`.
fn env_is(name: &str, value: &str) -> bool {
    std::env::var_os(name).is_some_and(|v| v == value)
}

/// Says something past libtest's capture, which would hide it in a test that passes.
pub fn say(what: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "\n*** {what}");
}

/// True, and said, if these tests were told not to run.
fn skipped(variable: &str) -> bool {
    let skip = env_is(variable, "1");
    if skip {
        say(format_args!("SKIPPED, as {variable}=1 demands: manypath against this stack"));
    }
    skip
}

/// Runs one test within its time, with the C programs built; or skips it.
pub fn interop(test: impl Future<Output = ()>) {
    if !skipped("MANYPATH_SKIP_USRSCTP") {
        programs::build();
        run(test);
    }
}

/// Runs one test against pion within its time, with the programs built; or skips it.
pub fn pion_interop(test: impl Future<Output = ()>) {
    if !skipped("MANYPATH_SKIP_PION") {
        programs::build();
        programs::build_pion();
        run(test);
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let done = runtime.block_on(async { tokio::time::timeout(TEST_LIMIT, test).await });
    assert!(done.is_ok(), "not done within {TEST_LIMIT:?}");
}

/// The future's result, or a panic that says what did not happen within ten seconds.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(10);
    tokio::time::timeout(limit, future)
        .await
        .unwrap_or_else(|_| panic!("not within {limit:?}: {what}"))
}

/// Who sends INIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opens {
    Manypath,
    Usrsctp,
}

/// The two configurations that every kind of transfer runs with.
#[derive(Clone, Copy, Debug)]
pub enum Setting {
    /// The default: profile `fast`, preset `adaptive`.
    Fast,
    /// The most conservative one: profile `rfc9260`, preset `sctp`.
    Plain,
}

impl Setting {
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Setting::Fast => ("fast", "adaptive"),
            Setting::Plain => ("rfc9260", "sctp"),
        }
    }
}

fn peer_at(addresses: impl IntoIterator<Item = SocketAddr>) -> ConnectTarget {
    ConnectTarget { sctp_port: PEER_SCTP_PORT, ..ConnectTarget::new(addresses) }
}

/// The set-up of a case, see [`Case::start`].
#[derive(Debug)]
pub struct Case {
    opens: Opens,
    setting: Setting,
    overrides: Vec<(String, String)>,
    ours: Vec<IpAddr>,
    /// Our sockets, instead of one for each of our addresses.
    bind: Option<BindTo>,
    theirs: Vec<IpAddr>,
    relays: Vec<String>,
    peer_prefix: Vec<String>,
    peer: String,
    auth_keys: AuthKeys,
    raw_ip: bool,
}

/// An association that is up. Everything ends when this is dropped.
pub struct Running {
    pub association: Association,
    pub peer: Peer,
    pub endpoint: Endpoint,
    /// One for each address of whoever is connected to, if relays were asked for.
    pub relays: Vec<Relay>,
}

impl Case {
    /// A case with one loopback address on each side; `peer` is usrsctp_peer's task, with its
    /// options.
    pub fn new(opens: Opens, setting: Setting, peer: &str) -> Case {
        Case {
            opens,
            setting,
            overrides: Vec::new(),
            ours: vec![[127, 0, 0, 1].into()],
            bind: None,
            theirs: vec![[127, 0, 0, 1].into()],
            relays: Vec::new(),
            peer_prefix: Vec::new(),
            peer: peer.to_owned(),
            auth_keys: AuthKeys::default(),
            raw_ip: false,
        }
    }

    /// Sets parameters of manypath.
    pub fn set(mut self, overrides: &[(&str, &str)]) -> Case {
        self.overrides.extend(overrides.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())));
        self
    }

    /// Authenticates with this key.
    pub fn auth_key(mut self, number: u16, secret: &'static str) -> Case {
        self.auth_keys.set(number, secret.as_bytes()).expect("room for a key");
        self.auth_keys.activate(number).expect("it is there");
        self
    }

    /// Everything goes over IP itself. The peer must be in another namespace: it answers all SCTP
    /// packets that it sees.
    pub fn over_ip(mut self) -> Case {
        self.raw_ip = true;
        self
    }

    /// The UDP port of an end; 0 over IP itself.
    fn port(&self, udp_port: u16) -> u16 {
        if self.raw_ip { 0 } else { udp_port }
    }

    /// Other addresses.
    pub fn addresses(mut self, ours: &[&str], theirs: &[&str]) -> Case {
        let parse = |list: &[&str]| list.iter().map(|ip| ip.parse().expect("an address")).collect();
        (self.ours, self.theirs) = (parse(ours), parse(theirs));
        self
    }

    /// Our sockets follow all addresses of this host.
    pub fn on_all_addresses(mut self) -> Case {
        self.bind = Some(BindTo::Auto);
        self
    }

    /// Everything goes through relays with these options of udp_lossy, one for each address of
    /// whoever is connected to.
    pub fn relays(mut self, options: &[&str]) -> Case {
        self.relays = options.iter().map(|&o| o.to_owned()).collect();
        self
    }

    /// The command that starts usrsctp_peer elsewhere.
    pub fn peer_prefix(mut self, prefix: &[String]) -> Case {
        self.peer_prefix = prefix.to_vec();
        self
    }

    /// Options for an endpoint of this case.
    pub fn endpoint_options(&self) -> EndpointOptions {
        let (profile, preset) = self.setting.names();
        let config = Config::build(profile, preset, &self.overrides).expect("a configuration");
        EndpointOptions {
            config: Arc::new(config),
            bind: match &self.bind {
                Some(bind) => vec![bind.clone()],
                None => self.ours.iter().map(|&ip| BindTo::Address(ip)).collect(),
            },
            accept: self.opens == Opens::Usrsctp,
            auth_keys: self.auth_keys.clone(),
            raw_ip: self.raw_ip,
            sctp_port: DEFAULT_PORT,
            ..EndpointOptions::client(Security::Plain)
        }
    }

    /// Opens the association, with someone on the path who writes down what passes by.
    pub async fn start_watched(self) -> (Running, Wire) {
        let (wire, usrsctp, manypath) = Wire::new();
        let endpoint = Endpoint::bind(self.endpoint_options()).expect("an endpoint");
        let manypath = (endpoint.udp_port(), manypath);
        match self.opens {
            Opens::Manypath => {
                let peer = Peer::listen(&[], &self.theirs, &self.peer).await;
                let (relays, port) = self.start_relays(&self.theirs, peer.udp_port).await;
                let watcher = Rewriter::start((port, usrsctp), manypath, Duration::ZERO).await;
                let at = SocketAddr::new(self.theirs[0], watcher.manypath_side);
                let association = soon("manypath connects", endpoint.connect(peer_at([at])));
                let association = association.await.expect("connected");
                (Running { association, peer, endpoint, relays }, wire.held_by(watcher))
            }
            Opens::Usrsctp => {
                // Nothing goes to usrsctp before it has sent something.
                let watcher = Rewriter::start((0, usrsctp), manypath, Duration::ZERO).await;
                let (relays, port) = self.start_relays(&self.ours, watcher.usrsctp_side).await;
                let (peer, association) = self.connect_peer(&endpoint, port).await;
                (Running { association, peer, endpoint, relays }, wire.held_by(watcher))
            }
        }
    }

    /// Opens the association.
    pub async fn start(self) -> Running {
        let endpoint = self.endpoint().await;
        match self.opens {
            Opens::Manypath => {
                let port = self.port(free_udp_port());
                let peer = Peer::listen_on(port, &self.peer_prefix, &self.theirs, &self.peer).await;
                let (relays, port) = self.start_relays(&self.theirs, peer.udp_port).await;
                let remotes = self.theirs.iter().map(|&ip| SocketAddr::new(ip, port));
                let association = soon("manypath connects", endpoint.connect(peer_at(remotes)));
                let association = association.await.expect("connected");
                Running { association, peer, endpoint, relays }
            }
            Opens::Usrsctp => {
                let (relays, port) =
                    self.start_relays(&self.ours, self.port(endpoint.udp_port())).await;
                let (peer, association) = self.connect_peer(&endpoint, port).await;
                Running { association, peer, endpoint, relays }
            }
        }
    }

    /// The endpoint, once that of the case before has given its SCTP port back.
    async fn endpoint(&self) -> Endpoint {
        let binding = async {
            loop {
                match Endpoint::bind(self.endpoint_options()) {
                    Err(BindError::Socket(SocketError::SctpPortInUse(_))) => pause(5).await,
                    bound => return bound.expect("an endpoint"),
                }
            }
        };
        soon("the SCTP port is free", binding).await
    }

    /// Has usrsctp connect to `port` of our addresses, from a port of its own.
    async fn connect_peer(&self, endpoint: &Endpoint, port: u16) -> (Peer, Association) {
        let (from, to) = (self.port(free_udp_port()), (&self.ours[..], port));
        let peer = Peer::connect_from(from, &self.peer_prefix, &self.theirs, to, &self.peer).await;
        let association = soon("usrsctp connects", endpoint.accept()).await.expect("accepted");
        (peer, association)
    }

    /// Starts the relays in front of `target`; returns the port to connect to.
    async fn start_relays(&self, target: &[IpAddr], target_port: u16) -> (Vec<Relay>, u16) {
        let mut relays = Vec::new();
        if self.relays.is_empty() {
            return (relays, target_port);
        }
        assert_eq!(self.relays.len(), target.len(), "one relay for each address");
        let port = free_udp_port();
        for (ip, options) in target.iter().zip(&self.relays) {
            relays.push(Relay::start(*ip, port, target_port, options).await);
        }
        (relays, port)
    }
}
