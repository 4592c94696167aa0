//! The peer's requests to change its addresses, and their answers (RFC 5061 §5.2, §5.3).

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use manypath_wire::{Asconf, AsconfAck, AsconfRequest, AsconfResponse, ErrorCause, Tsn};

use super::MAX_REQUESTS;
use crate::assoc::Association;
use crate::assoc::open::cookie::MAX_ADDRESSES;
use crate::assoc::open::init::{can_mean_a_host, is_in_scope_of};
use crate::datagram::AddressPair;
use crate::event::{AddressChange, Event};
use crate::path::{Origin, Path};
use crate::time::Instant;
use crate::view::{PathId, PathState};

/// Answers that are kept, for requests that come again.
const MAX_ANSWERS: usize = 4;

/// Addresses that a peer may add at once, and the time after which it may add one more. Each of
/// them gets heartbeats, and may be a third party's.
const MAX_ADDED: u32 = 8;
const ADD_AGAIN: Duration = Duration::from_secs(1);

/// Deleted addresses that are remembered, so that late packets make no path there.
const MAX_DELETED: usize = 16;

/// The numbers of the peer's requests, and the latest answers.
#[derive(Debug)]
pub(super) struct PeerRequests {
    /// The number of the next ASCONF chunk.
    expected: u32,
    answers: VecDeque<AsconfAck>,
    /// Addresses that the peer may still add, and since when the number holds.
    may_add: (u32, Instant),
    /// Addresses that the peer deleted.
    deleted: VecDeque<IpAddr>,
    /// The address that the peer prefers, until it is verified.
    preferred: Option<IpAddr>,
}

/// A request that fails, and why.
type Refusal = fn(Bytes) -> ErrorCause;

impl PeerRequests {
    pub(super) fn new(peers_initial_tsn: Tsn, now: Instant) -> PeerRequests {
        PeerRequests {
            expected: peers_initial_tsn.0,
            answers: VecDeque::new(),
            may_add: (MAX_ADDED, now),
            deleted: VecDeque::new(),
            preferred: None,
        }
    }

    /// Counts an address that the peer adds. False if it adds too many.
    fn take_addition(&mut self, now: Instant) -> bool {
        let (left, since) = self.may_add;
        let passed = (now - since).as_millis() / ADD_AGAIN.as_millis();
        let passed = u32::try_from(passed).unwrap_or(u32::MAX).min(MAX_ADDED);
        let left = (left + passed).min(MAX_ADDED);
        let since = if left == MAX_ADDED { now } else { since + ADD_AGAIN * passed };
        self.may_add = (left.saturating_sub(1), since);
        left > 0
    }

    fn note_deleted(&mut self, ip: IpAddr) {
        if self.deleted.len() == MAX_DELETED {
            self.deleted.pop_front();
        }
        self.deleted.push_back(ip);
    }
}

impl Association {
    /// True if the peer has deleted this address of its own: what comes from there is out of the
    /// blue (RFC 5061 §5.3, F13), except the request to add it again.
    pub(crate) fn is_deleted(&self, remote: IpAddr) -> bool {
        self.addresses.as_ref().is_some_and(|a| a.peers.deleted.contains(&remote))
    }

    /// Handles an ASCONF chunk, which is authenticated. Gives the answer for it; `None` if there is
    /// none (§5.2, E1 to E5).
    pub(crate) fn on_asconf(
        &mut self,
        now: Instant,
        from: AddressPair,
        chunk: &Asconf,
    ) -> Option<AsconfAck> {
        if !self.may_change_addresses() {
            return None;
        }
        let peers = &self.addresses.as_ref()?.peers;
        if chunk.serial != peers.expected {
            return peers.answers.iter().find(|answer| answer.serial == chunk.serial).cloned();
        }
        let answer =
            AsconfAck { serial: chunk.serial, responses: self.answer_all(now, from, chunk) };
        let peers = &mut self.addresses.as_mut()?.peers;
        peers.expected = peers.expected.wrapping_add(1);
        if peers.answers.len() == MAX_ANSWERS {
            peers.answers.pop_front();
        }
        peers.answers.push_back(answer.clone());
        Some(answer)
    }

    /// Carries out the requests in their order (§5.2, V1 to V3).
    fn answer_all(
        &mut self,
        now: Instant,
        from: AddressPair,
        chunk: &Asconf,
    ) -> Vec<AsconfResponse> {
        let mut responses = Vec::new();
        let (mut has_failed, mut changes_fail) = (false, false);
        for (n, asked) in chunk.requests.iter().enumerate() {
            let is_change =
                matches!(asked, AsconfRequest::Add { .. } | AsconfRequest::Delete { .. });
            let result = match asked {
                _ if n >= MAX_REQUESTS => Err(ErrorCause::ResourceShortage as Refusal),
                // F11: after one that failed, all that add or delete do.
                _ if is_change && changes_fail => Err(ErrorCause::ResourceShortage as Refusal),
                AsconfRequest::Add { address, .. } => self.add_remote(now, from, *address),
                AsconfRequest::Delete { address, .. } => self.delete_remote(now, from, *address),
                AsconfRequest::SetPrimary { address, .. } => self.prefer_remote(from, *address),
                AsconfRequest::Unknown(unknown) => {
                    let action = unknown.action();
                    if action.report {
                        has_failed = true;
                        let cause = ErrorCause::UnrecognizedParameters(unknown.raw().clone());
                        responses.push(AsconfResponse::error(asked.request(), cause));
                    }
                    if action.stop {
                        break;
                    }
                    continue;
                }
            };
            match result {
                Err(refusal) => {
                    has_failed = true;
                    changes_fail |= is_change;
                    let mut whole = Vec::new();
                    asked.encode(&mut whole);
                    responses.push(AsconfResponse::error(asked.request(), refusal(whole.into())));
                }
                // A7: behind a failure success must be said.
                Ok(()) if has_failed => {
                    responses.push(AsconfResponse::Success { request: asked.request() });
                }
                Ok(()) => {}
            }
            if n >= MAX_REQUESTS {
                break;
            }
        }
        responses
    }

    /// The peer has another address (§4.2.1). It is verified before it gets anything but answers
    /// and heartbeats (F1).
    fn add_remote(
        &mut self,
        now: Instant,
        from: AddressPair,
        address: IpAddr,
    ) -> Result<(), Refusal> {
        let source = from.remote.ip();
        let ip = if address.is_unspecified() { source } else { address.to_canonical() };
        if !can_mean_a_host(ip) || !is_in_scope_of(ip, source) {
            return Err(ErrorCause::UnresolvableAddress);
        }
        if self.is_of_peer(ip) && !self.is_deleted(ip) {
            return Ok(());
        }
        let is_full = self.ends.peer_addresses().len() >= MAX_ADDRESSES;
        let Some(a) = self.addresses.as_mut() else { return Err(ErrorCause::ResourceShortage) };
        if is_full || !a.peers.take_addition(now) {
            return Err(ErrorCause::ResourceShortage);
        }
        a.peers.deleted.retain(|deleted| *deleted != ip);
        if self.paths.iter().all(|p| p.remote.ip() != ip) {
            let pair = if ip == source { Some(from) } else { self.pair_to(from, ip) };
            let pair = pair.ok_or(ErrorCause::ResourceShortage as Refusal)?;
            let has_room = self.make_room(now);
            let created = if has_room { self.create_path(now, pair, Origin::Listed) } else { None };
            let id = created.ok_or(ErrorCause::ResourceShortage as Refusal)?;
            self.ends.peer_lists(ip);
            self.probe_now(now, id);
        }
        self.ends.peer_lists(ip);
        self.events.push(Event::PeerAddress(AddressChange::Added(ip)));
        Ok(())
    }

    /// The pair of addresses for a path to another address of the peer. RFC 5061 names no port: the
    /// peer is taken to have the same one there.
    fn pair_to(&self, from: AddressPair, ip: IpAddr) -> Option<AddressPair> {
        let is_used = |a| self.paths.iter().any(|p| p.local == a);
        let same_family = from.local.is_ipv4() == ip.is_ipv4();
        let remote = SocketAddr::new(ip, from.remote.port());
        let listed =
            self.ends.local_for(remote, is_used).filter(|local| local.port() == from.local.port());
        let local = listed.or(same_family.then_some(from.local))?;
        Some(AddressPair { local, remote })
    }

    /// True if an address is known as one of the peer.
    fn is_of_peer(&self, ip: IpAddr) -> bool {
        let is_its = |p: &Path| p.remote.ip() == ip && !self.is_stranger(p.id);
        self.ends.has_peer_listed(ip) || self.paths.iter().any(is_its)
    }

    /// The peer does not have an address any more, or none but the source of its packet (§4.2.2).
    fn delete_remote(
        &mut self,
        now: Instant,
        from: AddressPair,
        address: IpAddr,
    ) -> Result<(), Refusal> {
        let source = from.remote.ip();
        if address.is_unspecified() {
            if !self.has_path_beside(|ip| ip != source) {
                return Err(ErrorCause::DeleteLastAddress);
            }
            let mut all: Vec<IpAddr> = self.ends.peer_addresses().to_vec();
            all.extend(self.paths.iter().map(|p| p.remote.ip()));
            all.sort();
            all.dedup();
            for ip in all.into_iter().filter(|ip| *ip != source) {
                self.delete_address(now, ip);
            }
            return Ok(());
        }
        let ip = address.to_canonical();
        if !self.is_of_peer(ip) {
            return Err(ErrorCause::UnresolvableAddress);
        }
        // F7 goes before F8.
        if !self.has_path_beside(|deleted| deleted == ip) {
            return Err(ErrorCause::DeleteLastAddress);
        }
        if ip == source {
            return Err(ErrorCause::DeleteSourceAddress);
        }
        self.delete_address(now, ip);
        Ok(())
    }

    /// True if there is a path to an address of the peer that is not deleted.
    fn has_path_beside(&self, is_deleted: impl Fn(IpAddr) -> bool) -> bool {
        self.paths
            .iter()
            .any(|p| !is_deleted(p.remote.ip()) && !self.is_stranger(p.id) && !p.liveness.is_away())
    }

    /// F13: nothing goes to the address any more, and nothing from there counts. The primary path
    /// is then another one, one that works if possible (F12).
    fn delete_address(&mut self, now: Instant, ip: IpAddr) {
        self.ends.peer_unlists(ip);
        let to_there: Vec<PathId> =
            self.paths.iter().filter(|p| p.remote.ip() == ip).map(|p| p.id).collect();
        for id in to_there {
            self.remove_path(now, id);
        }
        if let Some(a) = self.addresses.as_mut() {
            a.peers.note_deleted(ip);
            a.peers.preferred.take_if(|preferred| *preferred == ip);
        }
        self.events.push(Event::PeerAddress(AddressChange::Deleted(ip)));
    }

    /// The peer prefers an address (§4.2.4, §5.4): a path there is primary once it works.
    fn prefer_remote(&mut self, from: AddressPair, address: IpAddr) -> Result<(), Refusal> {
        let ip = if address.is_unspecified() { from.remote.ip() } else { address.to_canonical() };
        if !self.is_of_peer(ip) || self.paths.iter().all(|p| p.remote.ip() != ip) {
            return Err(ErrorCause::UnresolvableAddress);
        }
        if let Some(a) = self.addresses.as_mut() {
            a.peers.preferred = Some(ip);
        }
        self.honour_preference();
        Ok(())
    }

    /// Makes a path to the address that the peer prefers primary, if one works.
    pub(crate) fn honour_preference(&mut self) {
        let Some(ip) = self.addresses.as_ref().and_then(|a| a.peers.preferred) else { return };
        let fits = |p: &&Path| p.remote.ip() == ip && p.liveness.state == PathState::Active;
        let order = |p: &&Path| (!p.role.usable, p.id != self.primary, p.id);
        let Some(id) = self.paths.iter().filter(fits).min_by_key(order).map(|p| p.id) else {
            return;
        };
        self.primary = id;
        if let Some(a) = self.addresses.as_mut() {
            a.peers.preferred = None;
        }
        self.events.push(Event::PeerAddress(AddressChange::Primary(ip)));
    }
}
