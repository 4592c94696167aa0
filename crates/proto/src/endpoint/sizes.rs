//! Packet sizes that the driver reports: of its interfaces, of packets that its system refused, of
//! routers' messages.

use std::net::SocketAddr;
use std::sync::Arc;

use super::Endpoint;
use crate::datagram::AddressPair;
use crate::time::Instant;

/// Somebody on the way could not forward a packet: ICMP "fragmentation needed" or ICMPv6 "packet
/// too big".
#[derive(Copy, Clone, Debug)]
pub struct PacketTooBig<'a> {
    /// Our address that the packet was sent from.
    pub local: SocketAddr,
    /// The address it was sent to.
    pub remote: SocketAddr,
    /// The most that passes, in bytes of an IP packet.
    pub mtu: usize,
    /// The beginning of the SCTP packet, as far as the message quotes it. Without its first 8
    /// bytes, ports and verification tag, the message counts for nothing.
    pub quoted: &'a [u8],
}

impl Endpoint {
    /// The interface of one of our addresses takes IP packets of `mtu` bytes from now on. Paths
    /// from there try no larger ones. Without it they try those of the configuration's `mtu`.
    ///
    /// Of an address that a relay gave us: what the interface to the relay takes, less the relay's
    /// own header.
    pub fn set_link_mtu(&mut self, now: Instant, local: SocketAddr, mtu: usize) {
        if self.link_mtus.get(&local) == Some(&mtu) {
            return;
        }
        Arc::make_mut(&mut self.link_mtus).insert(local, mtu);
        for index in self.assocs.slots() {
            let link_mtus = Arc::clone(&self.link_mtus);
            let Some(assoc) = self.assocs.get_mut(index) else { continue };
            assoc.set_link_mtus(now, link_mtus);
            self.dirty.add(index);
        }
    }

    /// The system did not take a packet of ours because it is longer than its interface takes
    /// (EMSGSIZE). `len` is the length of the SCTP packet in bytes.
    /// [`set_link_mtu`](Self::set_link_mtu) says more, if the driver can.
    pub fn packet_refused(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        len: usize,
    ) {
        for index in self.assocs.slots() {
            if let Some(assoc) = self.assocs.get_mut(index) {
                assoc.packet_refused(now, AddressPair { local, remote }, len);
                self.dirty.add(index);
            }
        }
    }

    /// A message of a router about a packet of ours. Anybody can send one: it counts only if it
    /// quotes the ports and the verification tag of an association over these addresses (RFC 8899
    /// §4.6.1), and by itself it makes a path's packets no smaller than 1280 bytes.
    pub fn packet_too_big(&mut self, now: Instant, message: PacketTooBig<'_>) {
        let Some(header) = message.quoted.first_chunk::<8>() else { return };
        let [s0, s1, d0, d1, tag @ ..] = *header;
        let (source, destination) = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
        let Some(index) = self.assocs.by_peer(message.remote, destination) else { return };
        let Some(assoc) = self.assocs.get_mut(index) else { return };
        let identity = assoc.identity();
        let tag = u32::from_be_bytes(tag);
        if source != identity.local_port || tag == 0 || tag != identity.peer_tag {
            return;
        }
        let pair = AddressPair { local: message.local, remote: message.remote };
        assoc.packet_too_big(now, pair, message.mtu);
        self.dirty.add(index);
    }
}
