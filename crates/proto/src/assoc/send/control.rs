//! Control chunks that are sent in packets of their own.

use std::net::SocketAddr;

use bytes::Bytes;
use manypath_wire::{COMMON_HEADER_LEN, ErrorCause, PacketBuilder, SackPath, Tsn};

use super::outgoing::OutgoingPacket;
use crate::assoc::Association;
use crate::assoc::state::State;
use crate::datagram::Transmit;
use crate::path::Path;
use crate::sizes;
use crate::time::Instant;
use crate::view::{PathId, PathState};

/// A control chunk that waits to be sent, in a packet of its own.
#[derive(Clone, Debug)]
pub(crate) enum Control {
    Init { on: PathId },
    CookieEcho,
    CookieAck { to: (SocketAddr, SocketAddr) },
    HeartbeatAck { info: Bytes, to: (SocketAddr, SocketAddr) },
    Error(ErrorCause),
    SackPathFailed { serial: u32, to: (SocketAddr, SocketAddr) },
    Shutdown,
    ShutdownAck { on: PathId },
    ShutdownComplete { to: (SocketAddr, SocketAddr) },
    Abort { cause: Option<ErrorCause>, to: (SocketAddr, SocketAddr) },
}

impl Control {
    /// It opens the association, and is never protected.
    fn is_of_handshake(&self) -> bool {
        matches!(self, Control::Init { .. } | Control::CookieEcho | Control::CookieAck { .. })
    }
}

/// The SCTP packet that fits the size with which every path begins, over IPv6 and UDP.
const BASE_PACKET: usize = sizes::IPV6_MIN_MTU - sizes::UDP_IPV6_HEADERS;

/// Control chunks that may wait. More come only from a peer that floods us; they are dropped.
pub(crate) const MAX_CONTROL: usize = 64;

impl Association {
    #[inline(never)]
    pub(super) fn control_packet(
        &mut self,
        now: Instant,
        c: Control,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let to = match &c {
            Control::CookieAck { to }
            | Control::HeartbeatAck { to, .. }
            | Control::SackPathFailed { to, .. }
            | Control::ShutdownComplete { to }
            | Control::Abort { to, .. } => *to,
            Control::Init { on } | Control::ShutdownAck { on } if self.paths.get(*on).is_some() => {
                let p = self.paths.get(*on)?;
                (p.local, p.remote)
            }
            _ => {
                let p = self.paths.get(self.control_path())?;
                (p.local, p.remote)
            }
        };
        let mut header = self.ends.header();
        // RFC 9260 §3.3.3: an INIT ACK without a tag is answered with our own.
        let reflect = matches!(c, Control::Abort { .. }) && self.ends.id.peer_tag == 0;
        if matches!(c, Control::Init { .. }) {
            header.verification_tag = 0; // RFC 9260 §8.5.1, A
        } else if reflect {
            header.verification_tag = self.ends.id.local_tag;
        }
        let path = self.paths.find(&to.0, &to.1);
        let room = path.and_then(|id| self.paths.get(id)).map(|p| p.size.max_packet);
        let room = room.unwrap_or(self.config.mtu - sizes::UDP_IPV6_HEADERS);
        let max = match (&c, path.and_then(|id| self.paths.get(id))) {
            (Control::CookieEcho, Some(p)) if self.may_join_cookie(p) => room,
            // A peer's cookie may be long, and so may the list of our addresses; IP fragments them.
            (Control::CookieEcho | Control::Init { .. }, _) => usize::from(u16::MAX),
            _ => room,
        };
        // To a path we want verified, the question goes with the answer: then the peer's answer
        // arrives before the data it sends on the path it has just verified.
        let probe = match (&c, path) {
            // RFC 9260 §5.4: COOKIE ACK goes to an address that is not verified only together with
            // a probe.
            (Control::HeartbeatAck { .. } | Control::CookieAck { .. }, Some(id))
                if self.paths.get(id).is_some_and(|p| p.probing.is_due && self.may_probe(p))
                    && !(c.is_of_handshake() && self.is_protected()) =>
            {
                Some((id, self.new_probe(now, id)))
            }
            _ => None,
        };
        let cum_tsn = self.rx.receiver.as_ref().map_or(Tsn(0), |r| r.tracker.cum_tsn());
        let is_sealed = self.seals() && !c.is_of_handshake();
        let mut packet = OutgoingPacket::new(buf, header, max, is_sealed);
        let fits = match &c {
            Control::Init { .. } => packet.push_init(&self.init_chunk(room)),
            Control::CookieEcho => match &self.state {
                State::CookieEchoed { cookie, .. } => packet.push_cookie_echo(cookie),
                _ => false,
            },
            Control::CookieAck { .. } => packet.push_cookie_ack(),
            Control::HeartbeatAck { info, .. } => packet.push_heartbeat_ack(info),
            Control::Error(cause) => packet.push_error(std::slice::from_ref(cause)),
            Control::SackPathFailed { serial, .. } => {
                packet.push_sack_path(SackPath { serial: *serial, failed: true })
            }
            Control::Shutdown => packet.push_shutdown(cum_tsn),
            Control::ShutdownAck { .. } => packet.push_shutdown_ack(),
            Control::ShutdownComplete { .. } => packet.push_shutdown_complete(false),
            Control::Abort { cause, .. } => packet.push_abort(reflect, cause.as_slice()),
        };
        if !fits {
            packet.discard();
            return None;
        }
        // What was wrong with INIT ACK goes with COOKIE ECHO (RFC 9260 §3.2.2).
        while let (Control::CookieEcho, Some(Control::Error(cause))) = (&c, self.control.front()) {
            packet.push_error(std::slice::from_ref(cause));
            self.control.pop_front();
        }
        if let (Control::CookieEcho, Some(id)) = (&c, path) {
            let before = self.out.counted(id);
            self.push_first_data(now, id, &mut packet);
            let after = self.out.counted(id);
            if let Some(p) = self.paths.get_mut(id).filter(|_| after > before) {
                p.note_sent(now, self.out.last_order(), (before, after));
            }
        }
        let probed = probe.is_some_and(|(_, info)| packet.push_heartbeat(&info));
        let before = packet.len();
        let len = self.finish(packet)?;
        if is_sealed && matches!(c, Control::Abort { .. } | Control::ShutdownComplete { .. }) {
            self.keep_last_words(&buf[buf.len() - len..]);
        }
        if let Some(p) = path.and_then(|id| self.paths.get_mut(id)) {
            p.counters.heartbeats_sent += u64::from(probed);
            p.counters.packets_sent += 1;
            p.counters.bytes_sent += len as u64;
        }
        let fits =
            path.and_then(|id| self.paths.get(id)).map_or(BASE_PACKET, |p| p.size.max_packet);
        let may_fragment = before > fits;
        Some(Transmit { may_fragment, ..Transmit::new(to.0, to.1, len) })
    }

    /// COOKIE ECHO leaves room for data in a packet for this path.
    fn may_join_cookie(&self, p: &Path) -> bool {
        let State::CookieEchoed { cookie, .. } = &self.state else { return false };
        let reports = matches!(self.control.front(), Some(Control::Error(_)));
        let needs = COMMON_HEADER_LEN + 4 + sizes::padded(cookie.len());
        let has_data = self.config.data_with_cookie || self.is_protected();
        has_data && !reports && needs <= p.size.max_packet
    }

    /// Adds the first data to COOKIE ECHO, as much as its packet has room for (RFC 9260 §5.1, C);
    /// with a repeated cookie the same data again. Until the association is open T1 watches it, not
    /// T3-rtx.
    fn push_first_data(&mut self, now: Instant, path: PathId, packet: &mut PacketBuilder<'_>) {
        if !self.paths.get(path).is_some_and(|p| self.may_join_cookie(p)) {
            return;
        }
        let base = self.out.cum_tsn_ack_point();
        loop {
            let ids = self.paths.ids();
            let marked = ids.filter_map(|id| self.out.next_marked(id));
            let Some(tsn) = marked.min_by_key(|tsn| tsn.distance_from(base)) else { break };
            if !self.push_again(now, path, tsn, packet) {
                return;
            }
        }
        while self.new_data_allowed()
            && (!self.is_protected() || self.queue.is_next_in_plain())
            && self.push_new(now, path, packet)
        {}
        self.queue.packet_ended();
    }

    /// Queues ABORT, on every path that may carry data and instead of all other control chunks. It
    /// is never repeated; and the peer's packets that still come are answered with an ABORT that
    /// names no cause, which could overtake this one on another path.
    pub(crate) fn push_abort(&mut self, cause: Option<ErrorCause>) {
        self.control.clear();
        let fallback = self.control_path();
        let any_usable = self.paths.iter().any(|p| p.role.usable);
        let chosen =
            self.paths.iter().filter(|p| if any_usable { p.role.usable } else { p.id == fallback });
        for p in chosen {
            let to = (p.local, p.remote);
            self.control.push_back(Control::Abort { cause: cause.clone(), to });
        }
    }

    /// Where control chunks go that answer nothing: the primary, or another path if it is not
    /// usable.
    pub(crate) fn control_path(&self) -> PathId {
        let usable = |id: PathId| self.paths.get(id).is_some_and(|p| p.role.usable);
        if !self.state.is_open() || usable(self.primary) {
            return self.primary;
        }
        // With data_before_verification a path may carry data that never works.
        let usable = self.paths.iter().filter(|p| p.role.usable);
        let first =
            usable.min_by_key(|p| (p.liveness.state == PathState::Unconfirmed, p.role.rank, p.id));
        first.map_or(self.primary, |p| p.id)
    }
}
