//! Dynamic address reconfiguration (RFC 5061): this end tells the peer which addresses it has.
//! [`request`] sends that, and [`answer`] carries out the requests of the peer.
//!
//! The state says which addresses the peer knows, and what it is to learn. One ASCONF chunk at a
//! time is sent and repeated until it is answered; the next is made of what is left to say then.
//!
//! While a path from a known address works, requests take it and name addresses. Otherwise they
//! leave from a new address and also ask for "the source of this packet". So they work behind a
//! NAT, too, which gives the packet another source than this host knows of (§4.2).

mod answer;
mod request;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use manypath_wire::{Asconf, chunk_type as ty};

use super::Association;
use super::open::init::is_link_local;
use crate::event::AddressChange;
use crate::path::{Address, Path};
use crate::time::Instant;
use crate::view::PathId;
use answer::PeerRequests;

/// Most requests of one ASCONF chunk, so that chunk and answer fit a packet of 1280 bytes.
const MAX_REQUESTS: usize = 16;

/// Most addresses that wait to be told. More stay unknown to the peer.
const MAX_WAITING: usize = 32;

/// Why the peer cannot be asked to prefer an address.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// This end or its peer does not have the extension (`address_reconfiguration`), or the peer
    /// does not know this request.
    #[error("one end cannot change addresses (address_reconfiguration)")]
    NotSupported,
    /// The association is not open yet, or it is over.
    #[error("the association is not open")]
    NotOpen,
    /// The peer does not know the address as one of this end.
    #[error("{address} is none of the addresses that the peer knows")]
    UnknownAddress {
        /// The address.
        address: IpAddr,
    },
}

/// An ASCONF chunk that was sent and is not answered.
#[derive(Debug)]
struct Sent {
    chunk: Asconf,
    /// The change that each request makes, by this host's addresses.
    changes: Vec<AddressChange>,
    /// The path on which it was sent last.
    on: PathId,
    /// How long the next answer is waited for.
    wait: Duration,
    /// The local addresses from which it was sent, if it stands for the source of its packet.
    sources: Option<Vec<IpAddr>>,
}

/// The state of the extension in an association in which both ends have it.
#[derive(Debug)]
pub(crate) struct AddressRequests {
    /// The number of the next ASCONF chunk.
    next: u32,
    /// The local port of the addresses that can be told. RFC 5061 names no ports, so the peer takes
    /// the one that it knows.
    port: u16,
    /// Addresses of this end that the peer knows.
    known: Vec<IpAddr>,
    to_add: Vec<IpAddr>,
    to_delete: Vec<IpAddr>,
    /// The address that the peer shall prefer, if it was not asked yet.
    primary: Option<IpAddr>,
    sent: Option<Sent>,
    /// False once the peer did not know requests to add and delete (§5.3, F3a).
    may_change: bool,
    /// False once the peer did not know requests to prefer an address (§5.3, F3b).
    may_set_primary: bool,
    peers: PeerRequests,
}

impl AddressRequests {
    fn is_adding(&self, ip: IpAddr) -> bool {
        self.is_asked(AddressChange::Added(ip))
    }

    fn is_deleting(&self, ip: IpAddr) -> bool {
        self.is_asked(AddressChange::Deleted(ip))
    }

    fn is_asked(&self, change: AddressChange) -> bool {
        self.sent.as_ref().is_some_and(|sent| sent.changes.contains(&change))
    }

    /// True if the peer takes packets from this address for ours.
    fn knows(&self, ip: IpAddr) -> bool {
        self.known.contains(&ip) && !self.is_deleting(ip) && !self.to_delete.contains(&ip)
    }

    /// True if there is something to ask for.
    fn has_work(&self) -> bool {
        !self.to_add.is_empty() || !self.to_delete.is_empty() || self.primary.is_some()
    }

    /// The requests that name their addresses: new ones, then those that are gone, then the
    /// preferred one (§5.4: an address is added before it is preferred).
    fn named(&self) -> Vec<AddressChange> {
        let added = self.to_add.iter().take(MAX_REQUESTS / 2 - 1);
        let mut changes: Vec<_> = added.copied().map(AddressChange::Added).collect();
        let deleted = self.to_delete.iter().filter(|ip| self.known.contains(ip));
        let deleted = deleted.copied().map(AddressChange::Deleted).take(MAX_REQUESTS / 2);
        // F5: one address must be left.
        let is_left = |ip: &IpAddr| !self.to_delete.contains(ip);
        if self.known.iter().any(is_left) || !changes.is_empty() {
            changes.extend(deleted);
        }
        let is_there =
            |ip: &IpAddr| self.knows(*ip) || changes.contains(&AddressChange::Added(*ip));
        changes.extend(self.primary.filter(is_there).map(AddressChange::Primary));
        changes
    }
}

impl Association {
    // ---- Commands and reading ----

    /// True if both ends can change their addresses (RFC 5061). Known once the association is
    /// established.
    pub fn reconfigures_addresses(&self) -> bool {
        self.addresses.is_some()
    }

    /// Takes note that this host has got a local transport address, and tells the peer if both ends
    /// have the extension (RFC 5061). The peer may then make a path to it.
    /// [`add_path`](Self::add_path) does the same for the local address of a path, and
    /// [`local_gone`](Self::local_gone) the opposite.
    /// [`Event::AddressRequest`](crate::Event::AddressRequest) tells the answer.
    ///
    /// RFC 5061 has no ports: an address with another UDP port than that of the first path is not
    /// told. Neither are loopback and link-local addresses to peers elsewhere.
    pub fn local_added(&mut self, _now: Instant, local: SocketAddr) {
        self.ends.local_added(local);
        self.tell_of(local);
    }

    /// Asks the peer to send to this address of ours by preference (RFC 5061 §5.4). It need not do
    /// so. [`Event::AddressRequest`](crate::Event::AddressRequest) tells its answer. A request that
    /// was not sent yet is replaced.
    ///
    /// # Errors
    /// Gives the reason why nothing was done.
    pub fn set_peer_primary(&mut self, _now: Instant, local: IpAddr) -> Result<(), AddressError> {
        if !self.state.is_open() {
            return Err(AddressError::NotOpen);
        }
        let Some(a) = self.addresses.as_mut().filter(|a| a.may_set_primary) else {
            return Err(AddressError::NotSupported);
        };
        if !a.knows(local) && !a.is_adding(local) && !a.to_add.contains(&local) {
            return Err(AddressError::UnknownAddress { address: local });
        }
        a.primary = Some(local);
        Ok(())
    }

    /// Asks the peer to prefer the local address of a path that is primary now, if that is another
    /// one than before.
    pub(super) fn prefer_local_of(&mut self, before: PathId, path: PathId) {
        let ip = |id| self.paths.get(id).map(|p: &Path| p.local.ip());
        let (before, ip) = (ip(before), ip(path));
        let Some(a) = self.addresses.as_mut().filter(|a| a.may_set_primary) else { return };
        if before != ip {
            a.primary = ip.filter(|ip| a.knows(*ip) || a.to_add.contains(ip) || a.is_adding(*ip));
        }
    }

    // ---- What the peer knows ----

    /// Begins to use the extension, if both ends have it and packets with it are authenticated by
    /// one way or the other (RFC 5061 §4.1.1).
    pub(super) fn begin_address_requests(&mut self, now: Instant) {
        let is_safe =
            self.is_protected() || self.authenticates_both_ways(&[ty::ASCONF, ty::ASCONF_ACK]);
        let Some(receiver) = self.rx.receiver.as_ref() else { return };
        if !self.agreed.address_reconfiguration || !is_safe {
            return;
        }
        let Some(first) = self.paths.get(self.primary).map(|p| p.local) else { return };
        let mut known = vec![first.ip()];
        let listed = self.listed_addresses();
        if self.config.advertise_addresses && listed.len() > 1 {
            known.extend(listed.iter().map(SocketAddr::ip).filter(|ip| *ip != first.ip()));
        }
        self.addresses = Some(Box::new(AddressRequests {
            next: self.ends.id.initial_tsn.0,
            port: first.port(),
            known,
            to_add: Vec::new(),
            to_delete: Vec::new(),
            primary: None,
            sent: None,
            may_change: true,
            may_set_primary: true,
            peers: PeerRequests::new(receiver.initial_tsn, now),
        }));
        for id in self.paths.ids() {
            self.tell_of_path(id);
        }
    }

    /// Lets the peer be told of a local address. True if it does not know the address yet.
    fn tell_of(&mut self, local: SocketAddr) -> bool {
        let ip = local.ip();
        let is_in_scope = self.is_in_scope(ip);
        let Some(a) = self.addresses.as_mut().filter(|a| a.may_change) else { return false };
        if local.port() != a.port || !is_in_scope {
            return false;
        }
        a.to_delete.retain(|gone| *gone != ip);
        if a.known.contains(&ip) && !a.is_deleting(ip) {
            return false;
        }
        if !a.is_adding(ip) && !a.to_add.contains(&ip) && a.to_add.len() < MAX_WAITING {
            a.to_add.push(ip);
        }
        true
    }

    /// True if the peer can mean this host by such an address.
    fn is_in_scope(&self, ip: IpAddr) -> bool {
        let peer = self.paths.get(self.primary).map(|p| p.remote.ip());
        let is_near = peer.is_some_and(|peer| peer.is_loopback());
        !ip.is_unspecified() && !is_link_local(ip) && ip.is_loopback() == is_near
    }

    /// Lets the peer be told of the local address of a path. Until it has answered, nothing but
    /// ASCONF leaves from there (§5.3, F1). True if the path waits for that.
    pub(super) fn tell_of_path(&mut self, id: PathId) -> bool {
        let Some(local) = self.paths.get(id).map(|p| p.local) else { return false };
        let waits = self.addresses.is_some() && self.tell_of(local);
        if waits && let Some(p) = self.paths.get_mut(id).filter(|p| !p.liveness.is_away()) {
            p.liveness.address = Address::Untold;
        }
        waits
    }

    /// Takes note that a local address is gone. The peer is told as soon as there is another.
    pub(super) fn tell_of_loss(&mut self, local: SocketAddr) {
        let ip = local.ip();
        // A host may have an address with several ports.
        let is_left = self.ends.local_addresses().iter().any(|a| a.ip() == ip);
        let Some(a) = self.addresses.as_mut().filter(|a| local.port() == a.port && !is_left) else {
            return;
        };
        a.to_add.retain(|added| *added != ip);
        let is_known = a.known.contains(&ip) || a.is_adding(ip);
        if is_known && !a.to_delete.contains(&ip) && !a.is_deleting(ip) {
            a.to_delete.push(ip);
        }
    }

    /// True if an ABORT to this local address says nothing, because the peer may have taken a
    /// packet from there for a stranger's (§5.3.1): the address is on its way out, or in while the
    /// peer knows another one. If it knows no other, it has lost the association.
    pub(super) fn is_changing(&self, local: IpAddr) -> bool {
        let Some(a) = self.addresses.as_ref() else { return false };
        let is_known = |p: &Path| a.knows(p.local.ip()) && !p.liveness.is_away();
        a.is_deleting(local)
            || a.to_delete.contains(&local)
            || (a.is_adding(local) && self.paths.iter().any(is_known))
    }
}
