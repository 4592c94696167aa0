//! A NAT: mapping, filtering and port assignment as RFC 4787 sorts them (§4 and §5).
//!
//! Like a link it is a state machine: it is told the time, it draws from random numbers that it is
//! given, and packets themselves are none of its business.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use manypath_proto::{Instant, Rng};
use serde::Serialize;

use crate::packet::DropCause;

#[cfg(test)]
mod tests;

/// Mappings of a NAT at most. A packet that needs one more does not get out.
pub const MOST_MAPPINGS: usize = 16_384;

/// Peers that a NAT keeps in mind at most, those of all its mappings together.
const MOST_CONTACTS: usize = 65_536;

/// The lowest port that a NAT assigns by itself; those below have owners (RFC 6335 §6).
const LOWEST_PORT: u16 = 1024;
/// Ports that a NAT may assign by itself.
const PORTS: u32 = 65_536 - LOWEST_PORT as u32;

/// Says on what part of a peer's address a NAT's behaviour depends (RFC 4787 §4.1 and §5).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NatBehaviour {
    /// On nothing of it. Mapping: all peers see the same address. Filtering: anybody may send.
    EndpointIndependent,
    /// On its IP address.
    AddressDependent,
    /// On its IP address and port.
    AddressAndPortDependent,
}

impl NatBehaviour {
    /// All of them, from the most to the least permissive.
    pub const ALL: [NatBehaviour; 3] = [
        NatBehaviour::EndpointIndependent,
        NatBehaviour::AddressDependent,
        NatBehaviour::AddressAndPortDependent,
    ];

    /// The name in scenario files: `endpoint-independent`, `address-dependent` or
    /// `address-and-port-dependent`.
    pub fn name(self) -> &'static str {
        match self {
            NatBehaviour::EndpointIndependent => "endpoint-independent",
            NatBehaviour::AddressDependent => "address-dependent",
            NatBehaviour::AddressAndPortDependent => "address-and-port-dependent",
        }
    }

    /// The part of a peer's address that counts.
    fn part_of(self, peer: SocketAddr) -> Part {
        match self {
            NatBehaviour::EndpointIndependent => Part::Nothing,
            NatBehaviour::AddressDependent => Part::Address(peer.ip()),
            NatBehaviour::AddressAndPortDependent => Part::Endpoint(peer),
        }
    }
}

/// Says which port a NAT assigns to a new mapping (RFC 4787 §4.2.1).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortAssignment {
    /// The inner port; if another mapping has it, the next one that is free. So a NAT whose
    /// mappings depend on peers counts its ports upwards.
    Preserved,
    /// Any port from 1024 on.
    Random,
}

impl PortAssignment {
    /// The name in scenario files: `preserved` or `random`.
    pub fn name(self) -> &'static str {
        match self {
            PortAssignment::Preserved => "preserved",
            PortAssignment::Random => "random",
        }
    }
}

/// Describes a NAT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatSpec {
    /// The address outside, which all mappings have.
    pub public: IpAddr,
    /// When a host gets another port outside.
    pub mapping: NatBehaviour,
    /// The peers that may send to a mapping.
    pub filtering: NatBehaviour,
    /// Which port a mapping gets.
    pub ports: PortAssignment,
    /// A mapping that nothing was sent from for so long is gone, and so is the permission of a
    /// peer that nothing was sent to. What comes in refreshes neither (RFC 4787 §4.3).
    pub timeout: Duration,
    /// Hosts behind it reach each other by their addresses outside (RFC 4787 §6).
    pub hairpin: bool,
}

impl NatSpec {
    /// A NAT as RFC 4787 wants it, but that only peers which were sent to may send, from the very
    /// port: mappings are endpoint-independent, ports preserved, and mappings last two minutes
    /// (§4.3).
    pub fn new(public: IpAddr) -> NatSpec {
        NatSpec {
            public,
            mapping: NatBehaviour::EndpointIndependent,
            filtering: NatBehaviour::AddressAndPortDependent,
            ports: PortAssignment::Preserved,
            timeout: Duration::from_secs(120),
            hairpin: false,
        }
    }
}

/// Counters of a NAT.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NatStats {
    /// Mappings made.
    pub mappings: u64,
    /// Packets that it let out.
    pub outbound: u64,
    /// Packets that it let in.
    pub inbound: u64,
    /// Packets from outside that it dropped: their port had no mapping.
    pub unmapped: u64,
    /// Packets from outside that it dropped: the mapping did not admit their sender.
    pub filtered: u64,
    /// Packets from inside that it dropped: its table was full, or they had to turn round at a NAT
    /// that does no hairpinning.
    pub refused: u64,
    /// Reboots.
    pub reboots: u64,
}

impl NatStats {
    /// Packets dropped, from outside and from inside.
    pub fn dropped(&self) -> u64 {
        self.unmapped + self.filtered + self.refused
    }
}

/// The part of a peer's address that counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Nothing,
    Address(IpAddr),
    Endpoint(SocketAddr),
}

/// Two packets with the same key leave by one mapping.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    inside: SocketAddr,
    peer: Part,
}

#[derive(Debug)]
struct Mapping {
    port: u16,
    /// When the last packet left by it.
    last: Instant,
    /// Peers that were sent to, by the part of them that the filter looks at, and when last.
    contacts: BTreeMap<Part, Instant>,
}

/// A NAT without clock, random numbers of its own, or I/O.
///
/// ```
/// use manypath_proto::{Instant, Rng};
/// use manypath_sim::{NatBox, NatSpec};
///
/// let mut nat = NatBox::new(NatSpec::new("198.51.100.1".parse()?), Rng::from_number(1));
/// let (inside, peer) = ("10.0.0.2:5000".parse()?, "192.0.2.9:3478".parse()?);
/// let outside = nat.outbound(Instant::ZERO, inside, peer).ok_or("a full table")?;
/// assert_eq!(outside, "198.51.100.1:5000".parse()?);
/// assert_eq!(nat.inbound(Instant::ZERO, outside, peer), Ok(inside));
/// assert!(nat.inbound(Instant::ZERO, outside, "192.0.2.9:1".parse()?).is_err(), "not sent to");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NatBox {
    spec: NatSpec,
    mappings: BTreeMap<Key, Mapping>,
    /// The mapping of each port.
    ports: BTreeMap<u16, Key>,
    /// Entries of all [`Mapping::contacts`].
    contacts: usize,
    /// Nothing that is in the table is over before.
    fresh_until: Instant,
    rng: Rng,
    stats: NatStats,
}

impl NatBox {
    /// A NAT without mappings, which draws random ports from `rng`.
    pub fn new(spec: NatSpec, rng: Rng) -> NatBox {
        NatBox {
            spec,
            mappings: BTreeMap::new(),
            ports: BTreeMap::new(),
            contacts: 0,
            fresh_until: Instant::ZERO,
            rng,
            stats: NatStats::default(),
        }
    }

    /// The description of this NAT.
    pub fn spec(&self) -> &NatSpec {
        &self.spec
    }

    /// Counters so far.
    pub fn stats(&self) -> NatStats {
        self.stats
    }

    /// Lets a packet out. Makes its mapping, or refreshes it, and lets the peer answer. Returns the
    /// source that the peer sees; `None` if the table is full, and the packet is dropped.
    pub fn outbound(
        &mut self,
        now: Instant,
        source: SocketAddr,
        destination: SocketAddr,
    ) -> Option<SocketAddr> {
        let key = Key { inside: source, peer: self.spec.mapping.part_of(destination) };
        let contact = self.spec.filtering.part_of(destination);
        if self.mappings.get(&key).is_some_and(|mapping| self.is_over(now, mapping.last)) {
            self.remove(key);
        }
        if self.is_full_for(key, contact) {
            self.forget_old(now);
            if self.is_full_for(key, contact) {
                self.stats.refused += 1;
                return None;
            }
        }
        if !self.mappings.contains_key(&key) {
            let port = self.assign(now, source.port())?;
            self.ports.insert(port, key);
            self.mappings.insert(key, Mapping { port, last: now, contacts: BTreeMap::new() });
            self.stats.mappings += 1;
        }
        let mapping = self.mappings.get_mut(&key)?;
        mapping.last = now;
        if mapping.contacts.insert(contact, now).is_none() {
            self.contacts += 1;
        }
        self.stats.outbound += 1;
        Some(SocketAddr::new(self.spec.public, mapping.port))
    }

    /// Lets a packet from `source` to `destination` outside in, and returns the inner address that
    /// it is for.
    ///
    /// # Errors
    ///
    /// [`DropCause::Unmapped`] if that destination is no mapping's, [`DropCause::Filtered`] if the
    /// mapping does not admit the source.
    pub fn inbound(
        &mut self,
        now: Instant,
        destination: SocketAddr,
        source: SocketAddr,
    ) -> Result<SocketAddr, DropCause> {
        let Some((key, mapping)) = self.living(now, destination) else {
            self.stats.unmapped += 1;
            return Err(DropCause::Unmapped);
        };
        let inside = key.inside;
        let contact = mapping.contacts.get(&self.spec.filtering.part_of(source));
        if contact.is_none_or(|last| self.is_over(now, *last)) {
            self.stats.filtered += 1;
            return Err(DropCause::Filtered);
        }
        self.stats.inbound += 1;
        Ok(inside)
    }

    /// The inner address whose mapping an address outside is, whoever may send to it.
    pub fn holder(&self, now: Instant, outside: SocketAddr) -> Option<SocketAddr> {
        self.living(now, outside).map(|(key, _)| key.inside)
    }

    /// Reboots: all mappings are gone.
    pub fn forget(&mut self) {
        self.mappings.clear();
        self.ports.clear();
        self.contacts = 0;
        self.stats.reboots += 1;
    }

    /// Counts a packet from inside that is dropped for want of hairpinning.
    pub fn refuse(&mut self) {
        self.stats.refused += 1;
    }

    /// The mapping of an address outside, unless it is over.
    fn living(&self, now: Instant, outside: SocketAddr) -> Option<(&Key, &Mapping)> {
        let key = self.ports.get(&outside.port())?;
        let mapping = self.mappings.get(key)?;
        let is_living = outside.ip() == self.spec.public && !self.is_over(now, mapping.last);
        is_living.then_some((key, mapping))
    }

    fn is_over(&self, now: Instant, last: Instant) -> bool {
        now.saturating_since(last) >= self.spec.timeout
    }

    fn is_full_for(&self, key: Key, contact: Part) -> bool {
        let mapping = self.mappings.get(&key);
        let is_known = mapping.is_some_and(|mapping| mapping.contacts.contains_key(&contact));
        (mapping.is_none() && self.mappings.len() >= MOST_MAPPINGS)
            || (!is_known && self.contacts >= MOST_CONTACTS)
    }

    /// A port for a new mapping of a host that sends from `inner`.
    fn assign(&mut self, now: Instant, inner: u16) -> Option<u16> {
        let port = self.choose_port(now, inner)?;
        if let Some(old) = self.ports.get(&port).copied() {
            self.remove(old); // it is over
        }
        Some(port)
    }

    fn choose_port(&mut self, now: Instant, inner: u16) -> Option<u16> {
        let first = match self.spec.ports {
            PortAssignment::Preserved if inner != 0 && self.is_free(now, inner) => {
                return Some(inner);
            }
            PortAssignment::Preserved => inner.saturating_add(1),
            PortAssignment::Random => LOWEST_PORT + self.rng.below(u64::from(PORTS)) as u16,
        };
        let offset = u32::from(first.saturating_sub(LOWEST_PORT));
        let mut upwards = (0..PORTS).map(|step| LOWEST_PORT + ((offset + step) % PORTS) as u16);
        upwards.find(|port| self.is_free(now, *port))
    }

    /// True if no mapping has the port, or one that is over.
    fn is_free(&self, now: Instant, port: u16) -> bool {
        let mapping = self.ports.get(&port).and_then(|key| self.mappings.get(key));
        mapping.is_none_or(|mapping| self.is_over(now, mapping.last))
    }

    fn remove(&mut self, key: Key) {
        if let Some(mapping) = self.mappings.remove(&key) {
            self.ports.remove(&mapping.port);
            self.contacts -= mapping.contacts.len();
        }
    }

    /// Forgets what is over. It looks at the whole table, but only when something there can be.
    fn forget_old(&mut self, now: Instant) {
        if now < self.fresh_until {
            return;
        }
        let timeout = self.spec.timeout;
        let is_living = |last: Instant| now.saturating_since(last) < timeout;
        self.mappings.retain(|_, mapping| is_living(mapping.last));
        self.ports.retain(|_, key| self.mappings.contains_key(key));
        let mut oldest = now;
        for mapping in self.mappings.values_mut() {
            mapping.contacts.retain(|_, last| is_living(*last));
            oldest = mapping.contacts.values().copied().fold(oldest, Instant::min);
        }
        self.contacts = self.mappings.values().map(|mapping| mapping.contacts.len()).sum();
        self.fresh_until = oldest + timeout;
    }
}
