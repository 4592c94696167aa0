//! Requests of this end: their paths, T-4 and their answers (RFC 5061 §5.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use manypath_wire::{Asconf, AsconfAck, AsconfRequest, AsconfResponse, ErrorCause};

use super::{AddressRequests, MAX_REQUESTS, Sent};
use crate::assoc::recover::timeout::TimeoutCause;
use crate::assoc::send::control::Control;
use crate::assoc::state::State;
use crate::assoc::{AssocTimer, Association, Timer};
use crate::event::{AddressChange, AddressOutcome, Event};
use crate::path::{Address, Path};
use crate::time::Instant;
use crate::view::{PathId, PathState};

/// The code of the error cause "Unrecognized Parameters" (RFC 9260 §3.3.10.8).
const UNRECOGNIZED_PARAMETERS: u16 = 8;

impl Association {
    /// ASCONF and its answer may be sent (§5.1.1).
    pub(super) fn may_change_addresses(&self) -> bool {
        matches!(
            self.state,
            State::Established
                | State::ShutdownPending
                | State::ShutdownReceived { .. }
                | State::ShutdownSent { .. }
        )
    }

    /// Sends the next request if there is one and no other is in flight (§5.1, A3).
    #[inline]
    pub(in crate::assoc) fn change_addresses_if_due(&mut self, now: Instant) {
        if self.addresses.as_ref().is_some_and(|a| a.sent.is_none() && a.has_work()) {
            self.send_next_addresses(now);
        }
    }

    #[inline(never)]
    fn send_next_addresses(&mut self, now: Instant) {
        if !self.may_change_addresses() {
            return;
        }
        let (Some(on), is_from_known) = self.address_path() else { return };
        let is_protected = self.is_protected();
        let Some(p) = self.paths.get(on) else { return };
        let (source, is_v4) = (p.local.ip(), p.local.is_ipv4());
        let Some(a) = self.addresses.as_mut() else { return };
        if is_from_known {
            a.to_delete.retain(|ip| a.known.contains(ip));
        }
        let changes = if is_from_known { a.named() } else { a.by_source(source) };
        if changes.is_empty() {
            a.primary = None; // an address that the peer does not know
            return;
        }
        let of_any: IpAddr =
            if is_v4 { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let all_go = !is_from_known && a.known.iter().all(|ip| a.to_delete.contains(ip));
        let sources = (!is_from_known).then(Vec::new);
        let requests = requests(&changes, sources.as_ref().map(|_| of_any), all_go);
        // The peer finds a protected association by its tag: only what opens a packet can read the
        // address in it (draft-ietf-tsvwg-sctp-dtls-chunk).
        let of_family = a.known.iter().find(|ip| ip.is_ipv4() == is_v4).or(a.known.first());
        let address = if is_protected { of_any } else { of_family.copied().unwrap_or(of_any) };
        let chunk = Asconf { serial: a.next, address, requests };
        a.next = a.next.wrapping_add(1);
        a.to_add.retain(|ip| !changes.contains(&AddressChange::Added(*ip)));
        a.to_delete.retain(|ip| !changes.contains(&AddressChange::Deleted(*ip)));
        a.primary = a.primary.filter(|ip| !changes.contains(&AddressChange::Primary(*ip)));
        a.sent = Some(Sent { chunk, changes, on, wait: Duration::ZERO, sources });
        let wait = self.rto_of_remote(on);
        self.send_addresses(now, on, wait);
    }

    /// The path for the next request, and if it starts from an address that the peer knows: one
    /// that works, or else one from a new address (§5.3, F1, F6).
    fn address_path(&self) -> (Option<PathId>, bool) {
        let Some(a) = self.addresses.as_ref() else { return (None, false) };
        let is_known = |p: &&Path| a.knows(p.local.ip()) && !p.liveness.is_away();
        let works = |p: &&Path| p.liveness.state == PathState::Active && !p.role.is_barred;
        let order = |p: &&Path| (!p.role.usable, p.id != self.primary, p.role.rank, p.id);
        let known = || self.paths.iter().filter(is_known);
        if let Some(p) = known().filter(works).min_by_key(order) {
            return (Some(p.id), true);
        }
        let is_new = |p: &&Path| a.to_add.contains(&p.local.ip()) && !p.liveness.is_away();
        let new = self.paths.iter().filter(is_new).min_by_key(|p| (p.role.rank, p.id));
        match new {
            Some(p) => (Some(p.id), false),
            None => (known().min_by_key(order).map(|p| p.id), true),
        }
    }

    /// The RTO of a path, or of another to the same destination if that has measured one: RFC 5061
    /// §5.1, A4, means the RTO of the destination.
    fn rto_of_remote(&self, id: PathId) -> Duration {
        let Some(p) = self.paths.get(id) else { return self.config.rto_initial };
        let same = self.paths.iter().filter(|other| other.remote == p.remote);
        let measured = same.filter(|p| p.rto.srtt().is_some()).map(|p| p.rto.rto()).min();
        if p.rto.srtt().is_some() { p.rto.rto() } else { measured.unwrap_or(p.rto.rto()) }
    }

    /// Sends the request on a path and starts T-4 (§5.1, A4, B5).
    fn send_addresses(&mut self, now: Instant, on: PathId, wait: Duration) {
        let source = self.paths.get(on).map(|p| p.local.ip());
        let Some(sent) = self.addresses.as_mut().and_then(|a| a.sent.as_mut()) else { return };
        (sent.on, sent.wait) = (on, wait);
        if let (Some(sources), Some(source)) = (&mut sent.sources, source)
            && !sources.contains(&source)
        {
            sources.push(source);
        }
        if !self.control.iter().any(|c| matches!(c, Control::Asconf { .. })) {
            self.control.push_back(Control::Asconf { on });
        }
        self.timers.set(Timer::Assoc(AssocTimer::T4), now + wait);
    }

    /// The chunk that is not answered, if there is one.
    pub(in crate::assoc) fn asconf_chunk(&self) -> Option<&Asconf> {
        self.addresses.as_ref()?.sent.as_ref().map(|sent| &sent.chunk)
    }

    /// T-4 expired: repeats the request on another path if there is one, with twice the wait, and
    /// counts the failure (§5.1, B1 to B5).
    pub(in crate::assoc) fn on_t4(&mut self, now: Instant) {
        if !self.may_change_addresses() {
            return;
        }
        let Some(sent) = self.addresses.as_ref().and_then(|a| a.sent.as_ref()) else { return };
        let (failed, wait) = (sent.on, (sent.wait * 2).min(self.config.rto_max));
        let is_by_source = sent.sources.is_some();
        // Without a path nothing was lost: the address went before the packet did.
        let is_there = |p: &&Path| !p.liveness.is_away();
        if self.paths.get(failed).filter(is_there).is_some() {
            self.count_timeout(now, failed, TimeoutCause::Data);
        }
        if self.closed().is_some() {
            return;
        }
        match self.address_path_after(failed, is_by_source) {
            Some(next) => self.send_addresses(now, next, wait),
            None => self.timers.set(Timer::Assoc(AssocTimer::T4), now + wait),
        }
    }

    /// The path for a request that was not answered on this one. After a known address a new one
    /// has its turn, because the known one may be dead. A request for the source of its packet
    /// leaves from new addresses only.
    fn address_path_after(&self, failed: PathId, is_by_source: bool) -> Option<PathId> {
        let a = self.addresses.as_ref()?;
        let is_unknown = |p: &Path| !a.knows(p.local.ip()) && !p.liveness.is_away();
        let was_new = self.paths.get(failed).is_some_and(is_unknown);
        let is_new = |p: &&Path| is_unknown(p) && (is_by_source || !was_new);
        let new = self.paths.iter().filter(is_new).min_by_key(|p| (p.id <= failed, p.id));
        let next = match new {
            Some(p) => p.id,
            None if is_by_source => return None,
            None => self.control_path_after(failed),
        };
        self.paths.get(next).filter(|p| !p.liveness.is_away()).map(|p| p.id)
    }

    /// Repeats a request at once if the path on which it was sent is gone.
    pub(in crate::assoc) fn reroute_addresses(&mut self, now: Instant) {
        let Some(sent) = self.addresses.as_ref().and_then(|a| a.sent.as_ref()) else { return };
        let (on, is_by_source) = (sent.on, sent.sources.is_some());
        let is_there = self.paths.get(on).is_some_and(|p| !p.liveness.is_away());
        if is_there || !self.may_change_addresses() {
            return;
        }
        if let Some(next) = self.address_path_after(on, is_by_source) {
            let wait = self.rto_of_remote(next);
            self.send_addresses(now, next, wait);
        }
    }

    /// Handles the answer to a request (§5.1, A5 to A8; §5.3, F0).
    pub(in crate::assoc) fn on_asconf_ack(&mut self, now: Instant, ack: &AsconfAck) {
        let Some(a) = self.addresses.as_mut() else { return };
        if a.sent.as_ref().is_none_or(|sent| sent.chunk.serial != ack.serial) {
            let is_ahead = ack.serial.wrapping_sub(a.next) < 1 << 31;
            if is_ahead && self.may_change_addresses() {
                self.abort_with(ErrorCause::IllegalAsconfAck, "an ASCONF-ACK that answers nothing");
            }
            return;
        }
        let Some(sent) = a.sent.take() else { return };
        self.timers.stop(Timer::Assoc(AssocTimer::T4));
        self.control.retain(|c| !matches!(c, Control::Asconf { .. }));
        self.error_count = 0;
        if let Some(p) = self.paths.get_mut(sent.on) {
            p.liveness.error_count = 0;
        }
        let outcomes = outcomes(&sent.chunk.requests, &ack.responses);
        for change in &sent.changes {
            let of_change = sent.chunk.requests.iter().zip(&outcomes);
            let mut of_change = of_change.filter(|(asked, _)| makes(asked, *change));
            // A change may be asked for in two ways, of which the peer knows one.
            let first =
                of_change.clone().next().map_or(AddressOutcome::Done, |(_, outcome)| *outcome);
            let is_done = of_change.any(|(_, outcome)| *outcome == AddressOutcome::Done);
            let outcome = if is_done { AddressOutcome::Done } else { first };
            self.end_address_change(now, *change, outcome);
        }
        self.settle_source(&sent);
    }

    /// The peer does not know the chunk (§5.1, A9). New addresses are used as without the
    /// extension.
    pub(in crate::assoc) fn on_asconf_unknown(&mut self, now: Instant) {
        let Some(a) = self.addresses.as_mut() else { return };
        let Some(sent) = a.sent.take() else { return };
        (a.may_change, a.may_set_primary) = (false, false);
        (a.to_add, a.to_delete, a.primary) = (Vec::new(), Vec::new(), None);
        self.timers.stop(Timer::Assoc(AssocTimer::T4));
        self.control.retain(|c| !matches!(c, Control::Asconf { .. }));
        for change in sent.changes {
            let outcome = AddressOutcome::NotSupported;
            self.events.push(Event::AddressRequest { change, outcome });
        }
        self.release(now, |_| true);
    }

    fn end_address_change(&mut self, now: Instant, change: AddressChange, outcome: AddressOutcome) {
        let Some(a) = self.addresses.as_mut() else { return };
        let is_done = outcome == AddressOutcome::Done;
        match change {
            AddressChange::Added(_) | AddressChange::Deleted(_) => {
                a.may_change &= outcome != AddressOutcome::NotSupported;
            }
            AddressChange::Primary(_) => {
                a.may_set_primary &= outcome != AddressOutcome::NotSupported;
            }
        }
        match change {
            AddressChange::Added(ip) if is_done && !a.known.contains(&ip) => a.known.push(ip),
            // A peer that refuses to delete it did not have it, or goes on sending there in vain.
            AddressChange::Deleted(ip) if a.known.len() > 1 => a.known.retain(|own| *own != ip),
            _ => {}
        }
        self.events.push(Event::AddressRequest { change, outcome });
        if let AddressChange::Added(ip) = change {
            if is_done {
                self.release(now, |local| local == ip);
            } else {
                self.drop_untold(now, ip);
            }
        }
    }

    /// Of a request for the source of its packet that left from several addresses nobody knows
    /// which one the peer took. It is asked again, from the one that is left.
    fn settle_source(&mut self, sent: &Sent) {
        let Some([first, others @ ..]) = sent.sources.as_deref() else { return };
        let here: Vec<IpAddr> = self.paths.iter().map(|p| p.local.ip()).collect();
        let Some(a) = self.addresses.as_mut() else { return };
        for ip in others {
            if !a.known.contains(ip) {
                a.known.push(*ip);
            }
        }
        if others.is_empty() {
            return;
        }
        for ip in std::iter::once(first).chain(others) {
            if !here.contains(ip) && !a.to_delete.contains(ip) {
                a.to_delete.push(*ip);
            }
        }
        for ip in others.iter().filter(|ip| here.contains(ip)) {
            a.known.retain(|own| own != ip);
            if !a.to_add.contains(ip) {
                a.to_add.push(*ip);
            }
        }
    }

    /// Lets paths from addresses that the peer knows now be verified and used (§5.3, F2).
    fn release(&mut self, now: Instant, is_told: impl Fn(IpAddr) -> bool) {
        let untold = |p: &&Path| p.liveness.is_untold() && is_told(p.local.ip());
        let ids: Vec<_> = self.paths.iter().filter(untold).map(|p| p.id).collect();
        for id in ids {
            self.release_path(now, id);
        }
    }

    /// A packet of the peer shows that it knows the local address. One with its own tag shows
    /// nothing of the kind: it may be an ABORT to a stranger.
    #[inline]
    pub(in crate::assoc) fn heard_at_untold(&mut self, now: Instant, path: Option<PathId>) {
        let waits = |id| self.paths.get(id).is_some_and(|p| p.liveness.is_untold());
        if self.addresses.is_some()
            && let Some(id) = path.filter(|id| waits(*id))
        {
            self.release_path(now, id);
        }
    }

    #[cold]
    pub(in crate::assoc) fn release_path(&mut self, now: Instant, id: PathId) {
        let Some(p) = self.paths.get_mut(id).filter(|p| p.liveness.is_untold()) else { return };
        p.liveness.address = Address::Ours;
        self.refresh_usable(now);
        self.probe_now(now, id);
        self.start_size_search(now, id);
        self.begin_trial(now, id);
    }

    /// The peer refused an address (§5.3, F10). Its paths are removed. If nothing else is left, the
    /// old way is tried, which costs nothing then.
    fn drop_untold(&mut self, now: Instant, ip: IpAddr) {
        let untold = |p: &&Path| p.liveness.is_untold() && p.local.ip() == ip;
        let ids: Vec<_> = self.paths.iter().filter(untold).map(|p| p.id).collect();
        for id in ids {
            let has_other = self.paths.iter().any(|p| {
                p.id != id && !p.liveness.is_away() && p.liveness.state == PathState::Active
            });
            if has_other { self.remove_path(now, id) } else { self.release_path(now, id) }
        }
    }
}

impl AddressRequests {
    /// The requests of a packet from an address that the peer does not know (§5.3.2): to add its
    /// source, and to delete what is gone.
    fn by_source(&self, source: IpAddr) -> Vec<AddressChange> {
        let mut changes = vec![AddressChange::Added(source)];
        let deleted = self.to_delete.iter().filter(|ip| self.known.contains(ip));
        changes.extend(deleted.copied().map(AddressChange::Deleted).take(MAX_REQUESTS / 2));
        changes
    }
}

/// The requests for these changes, numbered from 1. Those of a packet that comes from a new address
/// also have the unspecified one, `of_any`, for its source. Behind a NAT only that is right, and
/// some stacks know named addresses only, such as usrsctp by default. If `all_go`, all addresses
/// but the source are deleted.
fn requests(changes: &[AddressChange], of_any: Option<IpAddr>, all_go: bool) -> Vec<AsconfRequest> {
    let mut requests = Vec::new();
    let mut next = 1..;
    let mut number = || next.next().unwrap_or(0);
    let mut deletes_all = false;
    for change in changes {
        match *change {
            AddressChange::Added(address) => {
                requests.push(AsconfRequest::Add { request: number(), address });
                if let Some(address) = of_any {
                    requests.push(AsconfRequest::Add { request: number(), address });
                }
            }
            AddressChange::Deleted(address) => {
                if let Some(address) = of_any
                    && all_go
                    && !std::mem::replace(&mut deletes_all, true)
                {
                    requests.push(AsconfRequest::Delete { request: number(), address });
                }
                requests.push(AsconfRequest::Delete { request: number(), address });
            }
            AddressChange::Primary(address) => {
                requests.push(AsconfRequest::SetPrimary { request: number(), address });
            }
        }
    }
    requests
}

/// True if a request makes this change.
fn makes(asked: &AsconfRequest, change: AddressChange) -> bool {
    let is_it = |asked: IpAddr, ip: IpAddr| asked == ip || asked.is_unspecified();
    match (asked, change) {
        (AsconfRequest::Add { address, .. }, AddressChange::Added(ip))
        | (AsconfRequest::Delete { address, .. }, AddressChange::Deleted(ip))
        | (AsconfRequest::SetPrimary { address, .. }, AddressChange::Primary(ip)) => {
            is_it(*address, ip)
        }
        _ => false,
    }
}

/// The outcome of each request (§5.1, A7, A8): without a response it is that of the chunk so far.
fn outcomes(requests: &[AsconfRequest], responses: &[AsconfResponse]) -> Vec<AddressOutcome> {
    let mut of_rest = AddressOutcome::Done;
    let outcome_of = |number: u32, of_rest: &mut AddressOutcome| {
        for response in responses {
            match response {
                AsconfResponse::Success { request } if *request == number => {
                    return AddressOutcome::Done;
                }
                AsconfResponse::Error { request, causes } if *request == number => {
                    let cause = causes.iter().find_map(Result::ok).map_or(0, |cause| cause.code());
                    *of_rest = AddressOutcome::Refused { cause };
                    return match cause {
                        UNRECOGNIZED_PARAMETERS => AddressOutcome::NotSupported,
                        _ => *of_rest,
                    };
                }
                _ => {}
            }
        }
        *of_rest
    };
    requests.iter().map(|request| outcome_of(request.request(), &mut of_rest)).collect()
}
