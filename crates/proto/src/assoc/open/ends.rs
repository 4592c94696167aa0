//! The two ends of an association: their tags, ports and addresses.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use manypath_wire::{CommonHeader, Tsn};

use super::cookie::Cookie;
use super::existing::CookieAction;
use crate::datagram::is_raw_ip;
use crate::rng::Rng;

/// Tags, ports and the first TSN, as both ends agreed on them, or will.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Our verification tag: packets to us carry it.
    pub(crate) local_tag: u32,
    /// The peer's verification tag: packets from us carry it. 0 until known.
    pub(crate) peer_tag: u32,
    pub(crate) local_port: u16,
    pub(crate) peer_port: u16,
    /// The first TSN we use.
    pub(crate) initial_tsn: Tsn,
}

impl Identity {
    pub(crate) fn tag_and_port(&self) -> TagAndPort {
        TagAndPort { local_tag: self.local_tag, peer_port: self.peer_port }
    }
}

/// The tag and port by which a packet names its association. Answers to packets for a finished
/// association need them, too.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TagAndPort {
    pub(crate) local_tag: u32,
    pub(crate) peer_port: u16,
}

/// A peer, by its transport address and its SCTP port.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PeerEnd {
    pub(crate) address: SocketAddr,
    pub(crate) port: u16,
}

/// The two ends: their tags, ports and addresses.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) id: Identity,
    /// Random values that stand for the verification tags in a cookie, because anyone between the
    /// ends can read a cookie (RFC 9260 §5.2.2).
    tie_tags: (u32, u32),
    /// Addresses that INIT lists and that paths may start from.
    local_addresses: Vec<SocketAddr>,
    /// Local addresses from which no path may be learnt.
    avoided: BTreeSet<IpAddr>,
    /// Addresses that the peer listed.
    peer_addresses: Vec<IpAddr>,
}

impl Ends {
    pub(crate) fn new(id: Identity, local_addresses: Vec<SocketAddr>, rng: &mut Rng) -> Ends {
        let tie_tags = new_tie_tags(rng);
        Ends { id, tie_tags, local_addresses, avoided: BTreeSet::new(), peer_addresses: Vec::new() }
    }

    /// The header of a packet to the peer.
    pub(crate) fn header(&self) -> CommonHeader {
        CommonHeader {
            source_port: self.id.local_port,
            destination_port: self.id.peer_port,
            verification_tag: self.id.peer_tag,
        }
    }

    // ---- Addresses ----

    pub(crate) fn local_addresses(&self) -> &[SocketAddr] {
        &self.local_addresses
    }

    /// Removes a local address that this host no longer has.
    pub(crate) fn local_gone(&mut self, local: SocketAddr) {
        self.local_addresses.retain(|address| *address != local);
    }

    /// Adds a local address that this host has got.
    pub(crate) fn local_added(&mut self, local: SocketAddr) {
        if !self.local_addresses.contains(&local) {
            self.local_addresses.push(local);
        }
    }

    pub(crate) fn avoid(&mut self, locals: BTreeSet<IpAddr>) {
        self.avoided = locals;
    }

    pub(crate) fn avoids(&self, local: IpAddr) -> bool {
        self.avoided.contains(&local)
    }

    /// The local address for a path to `remote`: an unused one of the same family and
    /// encapsulation, or else the first such.
    pub(crate) fn local_for(
        &self,
        remote: SocketAddr,
        is_used: impl Fn(SocketAddr) -> bool,
    ) -> Option<SocketAddr> {
        let fits =
            |a: &SocketAddr| a.is_ipv4() == remote.is_ipv4() && is_raw_ip(*a) == is_raw_ip(remote);
        let candidates = || self.local_addresses.iter().copied().filter(fits);
        candidates().find(|a| !is_used(*a)).or_else(|| candidates().next())
    }

    /// Notes an address that the peer lists.
    pub(crate) fn peer_lists(&mut self, ip: IpAddr) {
        if !self.has_peer_listed(ip) {
            self.peer_addresses.push(ip);
        }
    }

    /// Forgets an address that the peer no longer has.
    pub(crate) fn peer_unlists(&mut self, ip: IpAddr) {
        self.peer_addresses.retain(|listed| *listed != ip);
    }

    /// The addresses that the peer listed.
    pub(crate) fn peer_addresses(&self) -> &[IpAddr] {
        &self.peer_addresses
    }

    pub(crate) fn has_peer_listed(&self, ip: IpAddr) -> bool {
        self.peer_addresses.contains(&ip)
    }

    // ---- Cookies ----

    /// The cookie for an INIT that crossed ours: it carries the tag and TSN of our INIT (RFC 9260
    /// §5.2.1).
    pub(super) fn cookie_while_opening(&self, fresh: Cookie) -> Cookie {
        Cookie { local_tag: self.id.local_tag, local_tsn: self.id.initial_tsn, ..fresh }
    }

    /// The cookie with the tie tags: that for an INIT of a peer that may have restarted (RFC 9260
    /// §5.2.2), or that for an INIT in COOKIE-ECHOED (§5.2.1).
    pub(super) fn tied(&self, cookie: Cookie) -> Cookie {
        Cookie { tie_local: self.tie_tags.0, tie_peer: self.tie_tags.1, ..cookie }
    }

    /// True if the cookie was made with the tie tags of this association.
    pub(super) fn ties(&self, cookie: &Cookie) -> bool {
        (cookie.tie_local, cookie.tie_peer) == self.tie_tags
    }

    /// Draws other tie tags, so that no cookie made before has them.
    pub(super) fn renew_tie_tags(&mut self, rng: &mut Rng) {
        self.tie_tags = new_tie_tags(rng);
    }

    /// The row of RFC 9260 §5.2.4, Table 12, that a valid cookie is in.
    pub(super) fn classify(&self, cookie: &Cookie) -> CookieAction {
        let local = cookie.local_tag == self.id.local_tag;
        let peer = cookie.peer_tag == self.id.peer_tag;
        match (local, peer) {
            (true, true) => CookieAction::Duplicate,
            (true, false) => CookieAction::Collision,
            (false, false) if self.ties(cookie) => CookieAction::Restart,
            _ => CookieAction::Discard,
        }
    }
}

/// Random tie tags. 0 stands for none (RFC 9260 §5.2.2).
fn new_tie_tags(rng: &mut Rng) -> (u32, u32) {
    (rng.next_u32() | 1, rng.next_u32())
}
