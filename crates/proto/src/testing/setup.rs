//! The endpoint that a script drives, before it starts.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use manypath_wire::Tsn;

use super::{PORT, Script};
use crate::{Config, Endpoint, EndpointConfig, Instant, Rng};

/// Builder of a script's endpoint:
/// `Setup::client().paths(2).preset("cmt").start()`.
///
/// Unless told otherwise it has one path, the profile `rfc9260` and the preset `sctp`.
#[derive(Clone, Debug)]
pub struct Setup {
    accept: bool,
    pairs: Vec<(SocketAddr, SocketAddr)>,
    candidates: Vec<(SocketAddr, SocketAddr)>,
    profile: String,
    preset: String,
    overrides: Vec<(String, String)>,
    max_associations: usize,
    lists_nothing: bool,
    limit: Option<Duration>,
    relayed: Vec<SocketAddr>,
    seed: u64,
}

impl Setup {
    /// An endpoint that opens associations.
    pub fn client() -> Setup {
        Setup {
            accept: false,
            pairs: vec![pair_v4(0)],
            candidates: Vec::new(),
            profile: "rfc9260".to_owned(),
            preset: "sctp".to_owned(),
            overrides: Vec::new(),
            max_associations: 100,
            lists_nothing: false,
            limit: None,
            relayed: Vec::new(),
            seed: 1,
        }
    }

    /// An endpoint that accepts associations.
    pub fn server() -> Setup {
        Setup { accept: true, ..Setup::client() }
    }

    /// Sets the number of paths: pairs of one local and one remote address each. With several, all
    /// are probed at once after the handshake.
    pub fn paths(mut self, count: u8) -> Setup {
        self.pairs = (0..count).map(pair_v4).collect();
        self.set("hb_max_burst", "32")
    }

    /// Uses IPv6 addresses.
    pub fn v6(mut self) -> Setup {
        self.pairs = (0..self.pairs.len() as u8).map(pair_v6).collect();
        self
    }

    /// Sets the pairs of local and remote addresses.
    pub fn pairs(mut self, pairs: &[(SocketAddr, SocketAddr)]) -> Setup {
        self.pairs = pairs.to_vec();
        self.set("hb_max_burst", "32")
    }

    /// Sets the pairs that take the place of those that are not answered.
    pub fn candidates(mut self, pairs: &[(SocketAddr, SocketAddr)]) -> Setup {
        self.candidates = pairs.to_vec();
        self
    }

    /// Sets the profile.
    pub fn profile(mut self, name: &str) -> Setup {
        self.profile = name.to_owned();
        self
    }

    /// Sets the preset.
    pub fn preset(mut self, name: &str) -> Setup {
        self.preset = name.to_owned();
        self
    }

    /// Sets a parameter of the configuration.
    pub fn set(mut self, name: &str, value: &str) -> Setup {
        self.overrides.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the number of associations that the endpoint allows.
    pub fn max_associations(mut self, count: usize) -> Setup {
        self.max_associations = count;
        self
    }

    /// The endpoint knows no addresses of its own, as one with sockets on every address.
    pub fn on_every_address(mut self) -> Setup {
        self.lists_nothing = true;
        self
    }

    /// Addresses of the peer on relays.
    pub fn relayed(mut self, relayed: &[SocketAddr]) -> Setup {
        self.relayed = relayed.to_vec();
        self
    }

    /// Sets the time within which associations must be open.
    pub fn limit(mut self, limit: Duration) -> Setup {
        self.limit = Some(limit);
        self
    }

    /// Sets the seed of the endpoint's randomness.
    pub fn seed(mut self, seed: u64) -> Setup {
        self.seed = seed;
        self
    }

    /// The endpoint, with nothing sent yet.
    pub fn start(self) -> Script {
        let config = Config::build(&self.profile, &self.preset, &self.overrides);
        let local = self.pairs.iter().map(|&(local, _)| local).filter(|_| !self.lists_nothing);
        let config = config.expect("a valid configuration");
        let zero_checksum = config.zero_checksum;
        let config = EndpointConfig {
            config: Arc::new(config),
            sctp_port: PORT,
            accept: self.accept,
            max_associations: self.max_associations,
            local_addresses: local.collect(),
        };
        Script {
            endpoint: Endpoint::new(config, Rng::from_number(self.seed)),
            pairs: self.pairs,
            candidates: self.candidates,
            limit: self.limit,
            relayed: self.relayed,
            zero_checksum,
            now: Instant::ZERO,
            id: None,
            tag: 0,
            base: Tsn(0),
            sent: VecDeque::new(),
            events: VecDeque::new(),
            last: None,
        }
    }

    /// The endpoint after a handshake without loss, all paths verified, 100 ms after the start. A
    /// client has opened the association, a server has accepted it; the peer lists no addresses.
    pub fn established(self) -> Script {
        let accept = self.accept;
        let mut script = self.start();
        if accept {
            script.accept(super::init());
        } else {
            script.connect_to(super::init_ack());
        }
        script
    }
}

/// The addresses of path `i`, counted from 0: 10.0.i.1 here, 10.0.i.2 there.
fn pair_v4(i: u8) -> (SocketAddr, SocketAddr) {
    let address = |last| SocketAddr::from(([10, 0, i, last], PORT));
    (address(1), address(2))
}

/// The addresses of path `i`, counted from 0: 2001:db8:i::1 here, 2001:db8:i::2 there.
fn pair_v6(i: u8) -> (SocketAddr, SocketAddr) {
    let address = |last| SocketAddr::from(([0x2001, 0xdb8, u16::from(i), 0, 0, 0, 0, last], PORT));
    (address(1), address(2))
}
