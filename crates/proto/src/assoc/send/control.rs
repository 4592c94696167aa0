//! Control chunks that are sent in packets of their own.

use bytes::Bytes;
use manypath_wire::{
    AsconfAck, COMMON_HEADER_LEN, CommonHeader, ErrorCause, ForwardTsn, PacketBuilder, ReConfig,
    SackPath, Tsn,
};

use super::outgoing::OutgoingPacket;
use crate::assoc::Association;
use crate::assoc::paths::heartbeat_info::CHECK_INFO_LEN;
use crate::assoc::state::State;
use crate::datagram::{AddressPair, Transmit};
use crate::path::{InFlight, Path};
use crate::sizes;
use crate::time::Instant;
use crate::view::{PathId, PathState};

/// A control chunk that waits to be sent, in a packet of its own.
#[derive(Clone, Debug)]
pub(crate) enum Control {
    Init { on: PathId },
    CookieEcho,
    CookieAck { to: AddressPair },
    HeartbeatAck { info: Bytes, to: AddressPair },
    Error(ErrorCause),
    SackPathFailed { serial: u32, to: AddressPair },
    Candidates { on: PathId },
    ForwardTsn { chunk: ForwardTsn, on: PathId },
    ReConfig { on: PathId },
    ReConfigured { chunk: ReConfig, to: AddressPair },
    Asconf { on: PathId },
    AsconfAcks { chunks: Vec<AsconfAck>, to: AddressPair },
    Check { info: [u8; CHECK_INFO_LEN], to: AddressPair },
    Shutdown,
    ShutdownAck { on: PathId },
    ShutdownComplete { to: AddressPair },
    Abort { cause: Option<ErrorCause>, to: AddressPair },
}

impl Control {
    /// True if the chunk opens the association. Such chunks are never protected.
    fn is_of_handshake(&self) -> bool {
        matches!(self, Control::Init { .. } | Control::CookieEcho | Control::CookieAck { .. })
    }
}

/// The largest SCTP packet over IPv6 and UDP in an IP packet of the size with which every path
/// begins.
const BASE_PACKET: usize = sizes::IPV6_MIN_MTU - sizes::UDP_IPV6_HEADERS;

/// Most control chunks that may wait. Only a peer that floods us draws more; they are dropped.
pub(crate) const MAX_CONTROL: usize = 64;

impl Association {
    /// Writes the packet of a control chunk and of what may travel with it: error causes and the
    /// first data with COOKIE ECHO, a heartbeat with an answer.
    #[inline(never)]
    pub(super) fn control_packet(
        &mut self,
        now: Instant,
        chunk: Control,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let to = self.address_of(&chunk)?;
        let path = self.paths.find(&to);
        let probe = self.probe_beside(now, &chunk, path);
        let is_sealed = self.seals() && !chunk.is_of_handshake();
        let (header, limit) = (self.control_header(&chunk), self.control_limit(&chunk, path));
        let mut packet = OutgoingPacket::new(buf, header, limit, is_sealed);
        if !self.push_control(&chunk, path, &mut packet) {
            packet.discard();
            return None;
        }
        if matches!(chunk, Control::Asconf { .. }) {
            packet.require_checksum(); // RFC 9653 §5.2
        }
        if matches!(chunk, Control::CookieEcho) {
            self.push_beside_cookie(now, path, &mut packet);
        }
        let is_probed = probe.is_some_and(|info| packet.push_heartbeat(&info));
        let plain_len = packet.len();
        let len = self.finish(packet)?;
        if is_sealed && matches!(chunk, Control::Abort { .. } | Control::ShutdownComplete { .. }) {
            self.keep_last_words(&buf[buf.len() - len..]);
        }
        let mut fits = BASE_PACKET;
        if let Some(p) = path.and_then(|id| self.paths.get_mut(id)) {
            p.counters.heartbeats_sent += u64::from(is_probed);
            p.counters.packets_sent += 1;
            p.counters.bytes_sent += len as u64;
            fits = p.size.max_packet;
        }
        let may_fragment = plain_len + self.room_for_auth() > fits;
        Some(Transmit { may_fragment, ..Transmit::new(to.local, to.remote, len) })
    }

    /// The address pair for a control chunk. An answer returns to where the question came from.
    fn address_of(&self, chunk: &Control) -> Option<AddressPair> {
        let on = match chunk {
            Control::CookieAck { to }
            | Control::HeartbeatAck { to, .. }
            | Control::SackPathFailed { to, .. }
            | Control::Check { to, .. }
            | Control::ReConfigured { to, .. }
            | Control::AsconfAcks { to, .. }
            | Control::ShutdownComplete { to }
            | Control::Abort { to, .. } => return Some(*to),
            Control::Init { on }
            | Control::ShutdownAck { on }
            | Control::Candidates { on }
            | Control::ForwardTsn { on, .. }
            | Control::ReConfig { on } => self.paths.get(*on),
            // It may mean the source of its packet.
            Control::Asconf { on } => return self.paths.get(*on).map(Path::pair),
            Control::CookieEcho | Control::Error(_) | Control::Shutdown => None,
        };
        on.or_else(|| self.paths.get(self.control_path())).map(Path::pair)
    }

    fn control_header(&self, chunk: &Control) -> CommonHeader {
        let mut header = self.ends.header();
        if matches!(chunk, Control::Init { .. }) {
            header.verification_tag = 0; // RFC 9260 §8.5.1, A
        } else if self.reflects_tag(chunk) {
            header.verification_tag = self.ends.id.local_tag;
        }
        header
    }

    /// True if the packet carries our own tag: for an INIT ACK without a tag (RFC 9260 §3.3.3).
    fn reflects_tag(&self, chunk: &Control) -> bool {
        matches!(chunk, Control::Abort { .. }) && self.ends.id.peer_tag == 0
    }

    /// The largest SCTP packet on a path, or to an address that is on none of our paths.
    pub(super) fn control_room(&self, path: Option<PathId>) -> usize {
        let p = path.and_then(|id| self.paths.get(id));
        let room = p.map_or(self.config.mtu - sizes::UDP_IPV6_HEADERS, |p| p.size.max_packet);
        room - self.room_for_auth()
    }

    /// The largest packet for a control chunk. A peer's cookie and the list of our addresses may be
    /// long, so IP may fragment these packets.
    fn control_limit(&self, chunk: &Control, path: Option<PathId>) -> usize {
        let room = self.control_room(path);
        let joins = |id| self.paths.get(id).is_some_and(|p| self.may_join_cookie(p));
        match chunk {
            Control::CookieEcho if path.is_some_and(joins) => room,
            Control::CookieEcho | Control::Init { .. } => usize::from(u16::MAX),
            // The list of streams may be longer than a path takes whose packets are very short.
            Control::ReConfig { .. } => room.max(BASE_PACKET),
            _ => room,
        }
    }

    /// The heartbeat that travels with an answer, for a path to be verified: the peer's answer then
    /// arrives before the data that it sends on the newly verified path. COOKIE ACK goes to an
    /// unverified address only with a heartbeat (RFC 9260 §5.4).
    fn probe_beside(
        &mut self,
        now: Instant,
        chunk: &Control,
        path: Option<PathId>,
    ) -> Option<Vec<u8>> {
        let is_answer = matches!(
            chunk,
            Control::HeartbeatAck { .. } | Control::CookieAck { .. } | Control::AsconfAcks { .. }
        );
        let is_plain = chunk.is_of_handshake() && self.is_protected();
        let p = self.paths.get(path?)?;
        if !is_answer || is_plain || !p.probing.is_due || !self.may_probe(p) {
            return None;
        }
        Some(self.new_probe(now, p.id))
    }

    /// Appends the control chunk itself. Returns false if the packet has no room for it.
    fn push_control(
        &self,
        chunk: &Control,
        path: Option<PathId>,
        packet: &mut PacketBuilder<'_>,
    ) -> bool {
        match chunk {
            Control::Init { .. } => packet.push_init(&self.init_chunk(self.control_room(path))),
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
            Control::Candidates { .. } => {
                self.candidates_chunk().is_some_and(|chunk| packet.push_candidates(&chunk))
            }
            Control::ForwardTsn { chunk, .. } => packet.push_forward_tsn(chunk),
            Control::ReConfig { .. } => {
                self.request_chunk().is_some_and(|chunk| packet.push_re_config(chunk))
            }
            Control::ReConfigured { chunk, .. } => packet.push_re_config(chunk),
            Control::Asconf { .. } => {
                self.asconf_chunk().is_some_and(|chunk| packet.push_asconf(chunk))
            }
            // RFC 5061 §5.2, E7: what does not fit is asked for again.
            Control::AsconfAcks { chunks, .. } => {
                chunks.iter().take_while(|chunk| packet.push_asconf_ack(chunk)).count() > 0
            }
            Control::Check { info, .. } => packet.push_heartbeat(info),
            Control::Shutdown => {
                let receiver = self.rx.receiver.as_ref();
                packet.push_shutdown(receiver.map_or(Tsn(0), |r| r.tracker.cum_tsn()))
            }
            Control::ShutdownAck { .. } => packet.push_shutdown_ack(),
            Control::ShutdownComplete { .. } => packet.push_shutdown_complete(false),
            Control::Abort { cause, .. } => {
                packet.push_abort(self.reflects_tag(chunk), cause.as_slice())
            }
        }
    }

    /// Errors found in INIT ACK go with COOKIE ECHO (RFC 9260 §3.2.2), and so may data.
    fn push_beside_cookie(
        &mut self,
        now: Instant,
        path: Option<PathId>,
        packet: &mut PacketBuilder<'_>,
    ) {
        while let Some(Control::Error(cause)) = self.control.front() {
            packet.push_error(std::slice::from_ref(cause));
            self.control.pop_front();
        }
        let Some(id) = path else { return };
        let before = self.out.counted(id);
        self.push_first_data(now, id, packet);
        let after = self.out.counted(id);
        if after > before
            && let Some(p) = self.paths.get_mut(id)
        {
            p.note_sent(now, self.out.last_order(), InFlight { before, after });
        }
    }

    /// True if COOKIE ECHO leaves room for data in a packet for this path.
    fn may_join_cookie(&self, p: &Path) -> bool {
        let State::CookieEchoed { cookie, .. } = &self.state else { return false };
        let reports = matches!(self.control.front(), Some(Control::Error(_)));
        let needs = COMMON_HEADER_LEN + 4 + sizes::padded(cookie.len()) + self.room_for_auth();
        let has_data = self.config.data_with_cookie || self.is_protected();
        has_data && !reports && needs <= p.size.max_packet
    }

    /// Adds the first data to COOKIE ECHO, as much as fits (RFC 9260 §5.1, C). A repeated cookie
    /// carries the same data again. Until the association is open, T1 watches this data, not
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

    /// Queues ABORT on every path that may carry data, and drops all other control chunks. It is
    /// not repeated. Later packets of the peer draw an ABORT without a cause, which may overtake
    /// this one on another path.
    pub(crate) fn push_abort(&mut self, cause: Option<ErrorCause>) {
        self.control.clear();
        let fallback = self.control_path();
        let any_usable = self.paths.iter().any(|p| p.role.usable);
        let chosen =
            self.paths.iter().filter(|p| if any_usable { p.role.usable } else { p.id == fallback });
        for p in chosen {
            let to = p.pair();
            self.control.push_back(Control::Abort { cause: cause.clone(), to });
        }
    }

    /// The path for control chunks that answer nothing: the primary, or another one if the primary
    /// is not usable.
    pub(crate) fn control_path(&self) -> PathId {
        let usable = |id: PathId| self.paths.get(id).is_some_and(|p| p.role.usable);
        if !self.state.is_open() || usable(self.primary) {
            return self.primary;
        }
        // With `data_before_verification` a usable path may never work.
        let usable = self.paths.iter().filter(|p| p.role.usable);
        let first =
            usable.min_by_key(|p| (p.liveness.state == PathState::Unconfirmed, p.role.rank, p.id));
        first.map_or(self.primary, |p| p.id)
    }
}
