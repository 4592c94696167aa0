//! ICMP messages about packets over IP itself (RFC 9260 §10).

use std::net::SocketAddr;

use manypath_wire::{COMMON_HEADER_LEN, chunk_type};

use super::{Endpoint, PacketTooBig};
use crate::time::Instant;

/// A message of ICMP or ICMPv6 that a packet of ours has drawn.
#[derive(Copy, Clone, Debug)]
pub struct IcmpMessage<'a> {
    /// Our address that the packet was sent from.
    pub local: SocketAddr,
    /// The address it was sent to.
    pub remote: SocketAddr,
    /// The news.
    pub kind: IcmpKind,
    /// The beginning of the SCTP packet, as far as the message quotes it. Without its first 8
    /// bytes, ports and verification tag, the message counts for nothing.
    pub quoted: &'a [u8],
}

/// The news of an ICMP message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum IcmpKind {
    /// The packet was too big: ICMP "fragmentation needed", ICMPv6 "packet too big".
    TooBig {
        /// The largest IP packet that passes, in bytes.
        mtu: usize,
    },
    /// The host does not know SCTP: ICMP "protocol unreachable", ICMPv6 "unrecognized next header".
    NoSuchProtocol,
}

/// Chunk type and Initiate Tag of INIT, the first chunk of a packet.
const INIT_TYPE_AT: usize = COMMON_HEADER_LEN;
const INIT_TAG_AT: usize = COMMON_HEADER_LEN + 4;

impl Endpoint {
    /// Handles an ICMP message. Anybody can send one, so it counts only if it quotes ports and
    /// verification tag of an association over these addresses, or our INIT (RFC 9260 §10).
    pub fn handle_icmp(&mut self, now: Instant, message: IcmpMessage<'_>) {
        let IcmpMessage { local, remote, kind, quoted } = message;
        match kind {
            IcmpKind::TooBig { mtu } => {
                self.packet_too_big(now, PacketTooBig { local, remote, mtu, quoted });
            }
            IcmpKind::NoSuchProtocol => {
                let Some(index) = self.quoted_association(remote, quoted) else { return };
                self.deliver(index, |assoc| assoc.peer_has_no_sctp(now));
            }
        }
    }

    /// The association that sent a quoted packet to this address. The tag is compared with the
    /// peer's, that of an INIT, which is 0, by its Initiate Tag with ours (RFC 9260 §10, ICMP5 and
    /// ICMP6).
    pub(super) fn quoted_association(&self, remote: SocketAddr, quoted: &[u8]) -> Option<u32> {
        let [s0, s1, d0, d1, tag @ ..] = *quoted.first_chunk::<8>()?;
        let (source, destination) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
        let index = self.assocs.by_peer(remote, destination)?;
        let assoc = self.assocs.get(index)?;
        let identity = assoc.identity();
        let is_ours = match u32::from_be_bytes(tag) {
            0 => {
                let initiate_tag = quoted.get(INIT_TAG_AT..).and_then(<[u8]>::first_chunk);
                quoted.get(INIT_TYPE_AT) == Some(&chunk_type::INIT)
                    && initiate_tag.map(|tag| u32::from_be_bytes(*tag)) == Some(identity.local_tag)
                    && assoc.awaits_init_ack()
            }
            tag => tag == identity.peer_tag,
        };
        (source == identity.local_port && is_ours).then_some(index)
    }
}
