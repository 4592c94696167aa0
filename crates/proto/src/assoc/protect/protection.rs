//! Protection of an association's packets (draft-ietf-tsvwg-sctp-dtls-chunk): what the ends agreed
//! on, the keys in use, and which packets count.
//!
//! | phase | our packets | the peer's packets |
//! | --- | --- | --- |
//! | handshake | unprotected | unprotected |
//! | key management, without keys | unprotected | unprotected; of DATA its messages only |
//! | with keys | protected; earlier messages again in plain | protected; some control in plain |
//! | the peer has shown its keys | protected | protected |
//!
//! [`keys`](super::keys) runs the key management, [`outgoing`](crate::assoc::send::outgoing) seals
//! packets.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use manypath_dtls::manage::{KeyManagement, KeySession, Peer, Role};
use manypath_dtls::{Epochs, OpenError, SealingKeys};
use manypath_wire::{
    COMMON_HEADER_LEN, Chunk, DtlsKeyManagement, ErrorCause, IntoChunks, Packet, Tsn, chunk_type,
    into_chunks_of,
};

use super::lost_state::LostState;
use crate::assoc::Association;
use crate::assoc::state::State;
use crate::time::Instant;

/// Payload protocol identifier of key management (draft, section "SCTP Payload Protocol
/// Identifier"). Its messages are on stream 0.
pub(crate) const KEY_MANAGEMENT_PPID: u32 = 4242;

/// The protection of one association.
#[derive(Debug)]
pub(crate) struct Protection {
    pub(super) management: Arc<dyn KeyManagement>,
    /// Our parameter, as it is on the wire.
    pub(crate) own: DtlsKeyManagement,
    /// The peer's parameter, once known.
    pub(crate) peers: Option<DtlsKeyManagement>,
    pub(super) session: Option<Box<dyn KeySession>>,
    pub(crate) sealing: Option<SealingKeys>,
    opening: Epochs,
    /// The newest epoch of which a record could be opened.
    pub(super) newest_opened: Option<u64>,
    /// The peer, once it is authenticated.
    pub(crate) peer: Option<Peer>,
    /// True once a protected packet was sent.
    pub(super) has_shown_keys: bool,
    /// True once the application's data may flow.
    pub(crate) is_released: bool,
    /// The peer opened the association.
    pub(crate) is_incoming: bool,
    /// Our last TSN that was sent unprotected.
    pub(super) last_in_plain: Option<Tsn>,
    /// True if an unprotected chunk was repeated after there were keys: the peer may have had none
    /// until then.
    pub(super) repeated_in_plain: bool,
    pub(crate) deadlines: Deadlines,
    pub(crate) lost_state: LostState,
    /// The sealed packet that ended the association.
    last_words: Option<Bytes>,
    /// The beginning of a message of the peer's key management.
    pub(crate) message: Vec<u8>,
}

/// Time limits of keys.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Deadlines {
    /// Until then the peer must have shown its keys.
    pub(crate) confirm: Option<Instant>,
    /// From then on keys of old epochs open nothing.
    pub(super) drop_old: Option<Instant>,
    /// Then the keys are to be replaced.
    pub(crate) renew: Option<Instant>,
    /// Then the peer must have answered that it still has its state.
    pub(crate) ask: Option<Instant>,
}

impl Deadlines {
    pub(crate) fn next(&self) -> Option<Instant> {
        [self.confirm, self.drop_old, self.renew, self.ask].into_iter().flatten().min()
    }
}

/// A packet of the peer, ready to be handled.
pub(crate) struct Received {
    pub(crate) chunks: IntoChunks,
    /// Bytes of the buffer that its chunks keep alive.
    pub(crate) len: usize,
    /// False if it came unprotected although the association is to be protected.
    pub(crate) counts_fully: bool,
    /// True if it was protected: it is the peer's, wherever it came from.
    pub(crate) is_sealed: bool,
}

impl Protection {
    /// The state of an association that announces `own`.
    pub(crate) fn new(management: Arc<dyn KeyManagement>, own: DtlsKeyManagement) -> Protection {
        Protection {
            management,
            own,
            peers: None,
            session: None,
            sealing: None,
            opening: Epochs::default(),
            newest_opened: None,
            peer: None,
            has_shown_keys: false,
            is_released: false,
            is_incoming: false,
            last_in_plain: None,
            repeated_in_plain: false,
            deadlines: Deadlines::default(),
            lost_state: LostState::default(),
            last_words: None,
            message: Vec::new(),
        }
    }

    /// Forgets the keys. Before the association is open, another INIT may come with another
    /// parameter, which makes keys for the earlier one useless.
    pub(super) fn forget_keys(&mut self) {
        self.opening = Epochs::default();
        (self.sealing, self.newest_opened, self.peer) = (None, None, None);
        self.message.clear();
    }

    /// The keys that open the peer's records.
    pub(crate) fn opening(&mut self) -> &mut Epochs {
        &mut self.opening
    }

    /// Drops the keys of epochs before those in use.
    pub(super) fn drop_old_keys(&mut self) {
        let sealing = self.sealing.as_ref().map(SealingKeys::epoch);
        if let (Some(sealing), Some(opened)) = (sealing, self.newest_opened) {
            self.opening.retire_before(sealing.min(opened));
        }
    }

    /// True once a packet was opened that the peer sealed with the right keys.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.newest_opened.is_some()
    }

    /// Checks a record and decrypts it in place. Returns where its chunks are.
    fn open(&mut self, record: &mut [u8]) -> Result<Range<usize>, OpenError> {
        let (opened, chunks) = self.opening.open(record)?;
        if self.newest_opened.is_none_or(|newest| opened.epoch > newest) {
            self.newest_opened = Some(opened.epoch);
            if let Some(session) = &mut self.session {
                session.opened(opened.epoch);
            }
        }
        Ok(chunks)
    }

    /// True if a chunk counts although it came unprotected.
    fn counts_in_plain(&self, chunk: &Chunk) -> bool {
        let has_keys = self.sealing.is_some();
        match chunk {
            Chunk::InitAck(_) | Chunk::CookieEcho(_) | Chunk::CookieAck => true,
            Chunk::Abort(_) | Chunk::Error(_) => true,
            Chunk::Data(data) => {
                !has_keys && data.stream.0 == 0 && data.ppid == KEY_MANAGEMENT_PPID
            }
            // Only the first fragment of a message has the PPID. Others are refused: nothing may
            // wait incomplete when the keys come.
            Chunk::IData(data) => {
                let is_right = data.ppid().is_none_or(|ppid| ppid == KEY_MANAGEMENT_PPID);
                !has_keys && data.stream.0 == 0 && is_right
            }
            Chunk::Sack(sack) if has_keys => {
                let limit = self.last_in_plain;
                let is_within = limit.is_some_and(|last| sack.cum_tsn_ack.le(last));
                is_within && sack.gap_ack_blocks().next().is_none()
            }
            Chunk::Sack(_) | Chunk::Heartbeat(_) => !has_keys,
            _ => false,
        }
    }
}

impl Association {
    /// The peer, once it is authenticated; `None` also if the association is not protected.
    pub fn peer(&self) -> Option<&Peer> {
        self.protection.as_ref()?.peer.as_ref()
    }

    /// True if packets are protected, or will be.
    pub fn is_protected(&self) -> bool {
        self.protection.is_some()
    }

    /// True if the application may know of the association. If the peer opened it, the peer must be
    /// authenticated first.
    #[inline]
    pub(crate) fn is_announced(&self) -> bool {
        self.protection.as_ref().is_none_or(|p| p.is_released || !p.is_incoming)
    }

    /// True if nothing that comes unprotected counts any more.
    pub(crate) fn refuses_plain(&self) -> bool {
        self.protection.as_ref().is_some_and(|p| p.is_confirmed())
    }

    /// Handles a packet of a protected association that is not sealed, or not as it should be.
    /// `None` if it does not count.
    #[inline(never)]
    pub(crate) fn receive_in_plain(&mut self, now: Instant, packet: Packet) -> Option<Received> {
        let p = self.protection.as_ref()?;
        let begins_with_record = packet.bytes().get(COMMON_HEADER_LEN) == Some(&chunk_type::DTLS);
        let is_record = |chunk| matches!(chunk, Ok(Chunk::Dtls(_)));
        if begins_with_record || packet.chunks().any(is_record) {
            // The packet has other chunks too, or asks for a restart, which is not supported.
            self.stats.records_refused += 1;
            return None;
        }
        if p.is_confirmed() {
            self.stats.unprotected_dropped += 1;
            if matches!(packet.chunks().next(), Some(Ok(Chunk::Abort(_)))) {
                self.doubt_peer(now);
            }
            return None;
        }
        let len = packet.bytes().len();
        let chunks = packet.into_chunks();
        Some(Received { chunks, len, counts_fully: false, is_sealed: false })
    }

    /// Checks a sealed packet and decrypts it in place. It must have one DTLS chunk and nothing
    /// else (draft, section "DTLS Chunk Handling"). `None` if it does not count.
    pub(crate) fn open_packet(
        &mut self,
        now: Instant,
        mut packet: BytesMut,
        record: Range<usize>,
    ) -> Option<Received> {
        let p = self.protection.as_mut()?;
        // During the handshake the packet has overtaken an answer, or the answer was lost. It will
        // be repeated.
        if matches!(self.state, State::CookieWait(_) | State::CookieEchoed { .. }) {
            return None;
        }
        let was_confirmed = p.is_confirmed();
        let Ok(chunks) = p.open(&mut packet[record.clone()]) else {
            self.stats.records_refused += 1;
            return None;
        };
        if !was_confirmed {
            self.confirm_keys(now);
        }
        self.peer_is_there(now);
        let (start, len) = (record.start + chunks.start, chunks.len());
        let mut content = packet.freeze();
        content.advance(start);
        content.truncate(len);
        let chunks = into_chunks_of(content);
        Some(Received { chunks, len, counts_fully: true, is_sealed: true })
    }

    /// True if some of our packets may have to leave unprotected although there are keys.
    #[inline]
    pub(crate) fn may_send_in_plain(&self) -> bool {
        self.protection.as_ref().is_some_and(|p| !p.is_confirmed())
    }

    /// True if this chunk of ours left unprotected.
    pub(crate) fn was_in_plain(&self, tsn: Tsn) -> bool {
        let last = self.protection.as_ref().and_then(|p| p.last_in_plain);
        last.is_some_and(|last| tsn.le(last))
    }

    /// Keeps the last packet of the association, to repeat it if it is lost: without the keys it
    /// cannot be made again.
    pub(crate) fn keep_last_words(&mut self, packet: &[u8]) {
        if let Some(p) = &mut self.protection {
            p.last_words = Some(Bytes::copy_from_slice(packet));
        }
    }

    /// Takes the last packet, which ended the association.
    pub(crate) fn take_last_words(&mut self) -> Option<Bytes> {
        self.protection.as_mut()?.last_words.take()
    }

    /// Acknowledges a chunk that came unprotected, does not count and was received before, such as
    /// the peer's last message of key management: its SACK was lost.
    pub(crate) fn acknowledge_again(&mut self, chunk: &Chunk) {
        let tsn = match chunk {
            Chunk::Data(data) => data.tsn,
            Chunk::IData(data) => data.tsn,
            _ => return,
        };
        if let Some(r) = self.rx.receiver.as_mut().filter(|r| r.tracker.contains(tsn)) {
            r.delayed.demand_now();
        }
    }

    /// True if a chunk is to be handled although it came unprotected.
    pub(crate) fn counts_in_plain(&self, chunk: &Chunk) -> bool {
        self.protection.as_ref().is_none_or(|p| p.counts_in_plain(chunk))
    }
}

/// The role and the method that follow from both parameters (draft, section "Establishment of a
/// Protected Association"). The error goes into an ABORT.
pub(crate) fn agree(
    own: &DtlsKeyManagement,
    peers: Option<&DtlsKeyManagement>,
) -> Result<(Role, u8), ErrorCause> {
    let Some(peers) = peers else { return Err(ErrorCause::MissingDtlsChunkSupport) };
    let roles = |p: &DtlsKeyManagement| (p.flags().client(), p.flags().server());
    let role = match (roles(own), roles(peers)) {
        ((true, true), (true, true)) => match own.tie_breaker().cmp(&peers.tie_breaker()) {
            std::cmp::Ordering::Greater => Role::Server,
            std::cmp::Ordering::Less => Role::Client,
            std::cmp::Ordering::Equal => {
                return Err(ErrorCause::DtlsKeyManagementTieBreakerCollision);
            }
        },
        ((true, false), (_, true)) | ((true, true), (false, true)) => Role::Client,
        ((false, true), (true, _)) | ((true, true), (true, false)) => Role::Server,
        _ => return Err(ErrorCause::IncompatibleDtlsKeyManagementRoles),
    };
    let (of_server, of_client) = match role {
        Role::Server => (own, peers),
        Role::Client => (peers, own),
    };
    let common = of_server.methods().iter().find(|method| of_client.methods().contains(method));
    let method = common.ok_or(ErrorCause::NoCommonDtlsKeyManagementMethod)?;
    Ok((role, *method))
}

#[cfg(test)]
mod tests;
