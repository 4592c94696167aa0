//! Finds the packet size of each path (RFC 8899): sends the probes, and acts on their outcome.
//!
//! A probe is a HEARTBEAT with a nonce and a PAD chunk (RFC 8899 §6.2.1) in a packet of its own.
//! Only its answer proves something: its loss is no sign of congestion or failure. `path::Pmtu`
//! decides which sizes to try.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use manypath_wire::Tsn;

use crate::assoc::send::outgoing::OutgoingPacket;
use crate::assoc::{Association, LinkMtus, PathTimer, Timer};
use crate::datagram::AddressPair;
use crate::datagram::Transmit;
use crate::event::Event;
use crate::path::{MIN_MTU, MtuReason, RAISE_AFTER_S, Wait};
use crate::rng::Rng;
use crate::sizes;
use crate::time::Instant;
use crate::view::{PathId, PathState};

/// Shortest time between two messages of routers that may shrink a path's packets. It limits an
/// attacker who sees our packets and forges such messages.
const TOLD_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The search state shared by all paths; each path has its own in `path::Pmtu`.
#[derive(Debug)]
pub(crate) struct SizeSearch {
    /// False if no probe is due.
    pub(crate) may_owe_probe: bool,
    /// The nonces of probes.
    rng: Rng,
    /// The MTUs that the driver has reported.
    link_mtus: Arc<LinkMtus>,
}

/// Length of the Heartbeat Information of a probe: a nonce and the path.
const SIZE_PROBE_INFO_LEN: usize = 12;

fn size_probe_info(nonce: u64, id: PathId) -> Vec<u8> {
    let mut info = Vec::with_capacity(SIZE_PROBE_INFO_LEN);
    info.put_u64(nonce);
    info.put_u32(id.0.into());
    info
}

impl SizeSearch {
    pub(crate) fn new(rng: Rng) -> SizeSearch {
        SizeSearch { may_owe_probe: false, rng, link_mtus: Arc::default() }
    }
}

impl Association {
    /// The longest IP packet, in bytes, that a path can have: the MTU of the local interface, and
    /// on a protected path what a record holds.
    pub(crate) fn link_mtu(&self, pair: AddressPair) -> Option<usize> {
        let link = self.size_search.link_mtus.get(&pair.local).copied();
        let outer = sizes::outer_headers(pair.remote, self.config.udp_encapsulation);
        let record = if self.is_protected() { sizes::longest_protected(outer) } else { usize::MAX };
        link.map(|link| link.min(record))
    }

    /// Begins the search for a path's size. The path is verified, or the application named it, so
    /// large packets cannot flood a stranger (RFC 9260 §5.4).
    pub(crate) fn start_size_search(&mut self, now: Instant, id: PathId) {
        if !self.config.pmtu_discovery || !self.state.is_open() || self.state.is_ending() {
            return;
        }
        let Some(p) = self.paths.get_mut(id).filter(|p| !p.liveness.is_untold()) else { return };
        if p.origin.is_named() || p.liveness.state != PathState::Unconfirmed {
            p.size.pmtu.start();
            self.follow_size(now, id, MtuReason::Confirmed);
        }
    }

    /// Begins the search on all paths, when the association opens.
    pub(crate) fn start_size_searches(&mut self, now: Instant) {
        for id in self.paths.ids() {
            self.start_size_search(now, id);
        }
    }

    /// Stops all probes, because the association ends.
    pub(super) fn stop_size_searches(&mut self) {
        for p in self.paths.iter_mut() {
            p.size.pmtu.stop();
            self.timers.stop(Timer::Path(p.id, PathTimer::Pmtu));
        }
    }

    /// Follows any change of the probes that are due, or of the size that was found.
    fn follow_size(&mut self, now: Instant, id: PathId, reason: MtuReason) {
        let timer = Timer::Path(id, PathTimer::Pmtu);
        let Some(p) = self.paths.get_mut(id) else { return };
        let (old, new) = (p.size.mtu, p.size.pmtu.size());
        let rto = p.rto.rto();
        match (p.size.pmtu.is_due(), p.size.pmtu.wait()) {
            (true, _) => self.size_search.may_owe_probe = true,
            (false, Wait::ForAnswer) => self.timers.start(timer, now + rto),
            (false, Wait::ToRaise) => {
                self.timers.set(timer, now + Duration::from_secs(RAISE_AFTER_S));
            }
            (false, Wait::Never) => self.timers.stop(timer),
        }
        if old == new {
            return;
        }
        p.resize(&self.config);
        self.paths.renew_least_usable();
        self.events.push(Event::PathMtu { path: id, mtu: new, reason });
        if new < old {
            // Larger packets do not pass. Their loss is known before any timer tells, and is no
            // sign of congestion (RFC 8899 §3, 7).
            self.out.mark_larger(id, new);
            self.renew_t3(now, id, false);
        }
    }

    /// Sends the next probe of a path's size that is due.
    #[cold]
    pub(crate) fn size_probe_packet(
        &mut self,
        now: Instant,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let due = self.paths.iter().find(|p| p.size.pmtu.is_due()).map(|p| p.id);
        self.size_search.may_owe_probe = due.is_some();
        let id = due?;
        let nonce = self.size_search.rng.next_u64();
        let p = self.paths.get_mut(id)?;
        let mut len = p.size.pmtu.take_due(nonce)? - p.headers(&self.config);
        if self.authentication.is_some() {
            // Not every packet gets an AUTH chunk where others do.
            len = len + self.paths.get(id)?.size.overhead - self.auth_in_probe();
        }
        let mut packet = OutgoingPacket::new(buf, self.ends.header(), len, self.seals());
        packet.push_heartbeat(&size_probe_info(nonce, id));
        packet.push_pad_to(len);
        let len = self.finish(packet)?;
        let p = self.paths.get_mut(id)?;
        p.counters.packets_sent += 1;
        p.counters.bytes_sent += len as u64;
        p.counters.size_probes_sent += 1;
        p.size.pmtu.asked_at = Some(now);
        self.timers.set(Timer::Path(id, PathTimer::Pmtu), now + p.rto.rto());
        Some(Transmit::new(p.local, p.remote, len))
    }

    /// Handles a HEARTBEAT ACK that may answer a probe of a path's size. True if it does.
    pub(super) fn on_size_answer(&mut self, now: Instant, info: &Bytes) -> bool {
        let mut info = info.clone();
        if info.len() != SIZE_PROBE_INFO_LEN {
            return false;
        }
        let nonce = info.get_u64();
        let Ok(id) = u8::try_from(info.get_u32()).map(PathId) else { return false };
        let Some(p) = self.paths.get_mut(id) else { return false };
        let before = p.size.pmtu.size();
        if p.size.pmtu.on_answer(nonce).is_none() {
            return false;
        }
        let is_less = p.size.pmtu.size() < before;
        p.liveness.last_active = now;
        let reason = if is_less { MtuReason::BlackHole } else { MtuReason::Confirmed };
        self.follow_size(now, id, reason);
        true
    }

    pub(crate) fn on_size_timer(&mut self, now: Instant, id: PathId) {
        if !self.state.is_open() {
            return;
        }
        let Some(p) = self.paths.get_mut(id) else { return };
        // On a path that does not work, unanswered probes prove nothing about larger sizes. A doubt
        // of the size in use goes on, because that size may be the reason. It waits while even
        // small packets are unanswered: then the size is not the likely reason, and long probes
        // would fill a link that became slow.
        let is_heard = p.size.pmtu.asked_at.is_none_or(|at| p.liveness.last_active > at);
        let is_to_go_on = if p.size.pmtu.is_in_doubt() {
            is_heard || !self.policies.in_doubt.probed_with_data
        } else {
            p.liveness.state == PathState::Active
        };
        if is_to_go_on {
            p.size.pmtu.on_timer();
        }
        self.follow_size(now, id, MtuReason::BlackHole);
    }

    /// Goes on with a doubt of the size after a silent path answers, unless the data that is sent
    /// now settles it.
    pub(super) fn go_on_with_doubt(&mut self, now: Instant, id: PathId) {
        if let Some(p) = self.paths.get(id).filter(|p| p.size.pmtu.is_in_doubt()) {
            self.timers.bring_forward(Timer::Path(id, PathTimer::Pmtu), now + p.rto.rto());
        }
    }

    /// T3-rtx expired: perhaps only large packets get lost (RFC 8899 §4.3, black hole detection).
    pub(crate) fn doubt_size(&mut self, now: Instant, id: PathId, had_large: bool) {
        if !had_large {
            return;
        }
        let Some(p) = self.paths.get_mut(id) else { return };
        if p.size.pmtu.doubt() {
            self.follow_size(now, id, MtuReason::BlackHole);
        }
    }

    /// True if a packet in flight on a path may be too long for it.
    pub(crate) fn has_large_in_flight(&self, id: PathId) -> bool {
        self.config.pmtu_discovery && self.out.has_larger(id, MIN_MTU)
    }

    /// Notes the size of the packet in which chunks left, headers included. A packet that IP may
    /// fragment proves nothing about the path's size.
    pub(crate) fn note_packet_size(&mut self, id: PathId, tsns: &[Tsn], len: usize) {
        let Some(p) = self.paths.get(id) else { return };
        let len = if len > p.size.max_packet { 0 } else { len + p.headers(&self.config) };
        self.out.note_packet(tsns, len);
    }

    /// Takes the largest packets on a path that a SACK acknowledged, and that it made lost.
    pub(crate) fn note_sacked_sizes(&mut self, now: Instant, id: PathId, acked: u16, lost: u16) {
        let Some(p) = self.paths.get_mut(id) else { return };
        if p.size.pmtu.note_sack(acked.into(), lost.into()) {
            self.follow_size(now, id, MtuReason::BlackHole);
        } else if p.size.pmtu.is_due() {
            self.size_search.may_owe_probe = true;
        }
    }

    // ---- What the driver says ----

    /// Takes note of the MTUs of the interfaces of local addresses.
    pub(crate) fn set_link_mtus(&mut self, now: Instant, link_mtus: Arc<LinkMtus>) {
        self.size_search.link_mtus = link_mtus;
        for id in self.paths.ids() {
            let Some(pair) = self.paths.get(id).map(|p| p.pair()) else { continue };
            let Some(mtu) = self.link_mtu(pair) else { continue };
            self.set_path_link(now, id, mtu);
        }
    }

    /// Takes note of the longest IP packet, in bytes, that a path can have.
    pub(super) fn set_path_link(&mut self, now: Instant, id: PathId, mtu: usize) {
        let config = self.config_rc();
        let Some(p) = self.paths.get_mut(id) else { return };
        p.size.pmtu.set_link(&config, mtu);
        self.follow_size(now, id, MtuReason::Interface);
    }

    /// Handles a packet that the system refused for its length; `len` is that of the SCTP packet,
    /// in bytes.
    pub(crate) fn packet_refused(&mut self, now: Instant, pair: AddressPair, len: usize) {
        let config = self.config_rc();
        let Some(id) = self.paths.find(&pair) else { return };
        let Some(p) = self.paths.get_mut(id) else { return };
        p.size.pmtu.on_refused(len + p.headers(&config) - p.size.overhead);
        self.follow_size(now, id, MtuReason::Interface);
    }

    /// Handles a router's message that a packet of ours was too big.
    /// [`Endpoint::packet_too_big`](crate::Endpoint::packet_too_big) has compared its verification
    /// tag.
    pub(crate) fn packet_too_big(&mut self, now: Instant, pair: AddressPair, mtu: usize) {
        let Some(id) = self.paths.find(&pair) else { return };
        let Some(p) = self.paths.get_mut(id) else { return };
        let lowers = mtu < p.size.pmtu.size();
        let too_soon = p.size.pmtu.told_at.is_some_and(|at| now - at < TOLD_AGAIN_AFTER);
        if lowers && too_soon {
            return;
        }
        p.size.pmtu.on_packet_too_big(mtu);
        if lowers {
            p.size.pmtu.told_at = Some(now);
        }
        self.follow_size(now, id, MtuReason::PacketTooBig);
    }
}
