//! Packet sizes that the driver reports: MTUs of interfaces, refused packets, and routers'
//! messages.

use std::net::SocketAddr;
use std::sync::Arc;

use super::Endpoint;
use crate::datagram::AddressPair;
use crate::time::Instant;

/// A router's message that it could not forward a packet: ICMP "fragmentation needed" or ICMPv6
/// "packet too big".
#[derive(Copy, Clone, Debug)]
pub struct PacketTooBig<'a> {
    /// Our address that the packet was sent from.
    pub local: SocketAddr,
    /// The address it was sent to.
    pub remote: SocketAddr,
    /// The largest IP packet that passes, in bytes.
    pub mtu: usize,
    /// The beginning of the SCTP packet, as far as the message quotes it. Without its first 8
    /// bytes, ports and verification tag, the message counts for nothing.
    pub quoted: &'a [u8],
}

impl Endpoint {
    /// Sets the MTU of the interface of a local address: paths from there try no larger IP packets.
    /// By default they try those of the configuration's `mtu`.
    ///
    /// For an address from a relay, it is the MTU of the interface to the relay less the relay's
    /// header.
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

    /// Handles a packet that the system refused because it is longer than its interface takes
    /// (EMSGSIZE). `len` is the length of the SCTP packet in bytes.
    /// [`set_link_mtu`](Self::set_link_mtu) is more exact, if the driver knows the MTU.
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

    /// Handles a router's message about a packet of ours. Anybody can send one, so it counts only
    /// if it quotes the ports and the verification tag of an association over these addresses (RFC
    /// 8899 §4.6.1). Alone it never makes a path's packets smaller than 1280 bytes.
    pub fn packet_too_big(&mut self, now: Instant, message: PacketTooBig<'_>) {
        let Some(index) = self.quoted_association(message.remote, message.quoted) else { return };
        let Some(assoc) = self.assocs.get_mut(index) else { return };
        let pair = AddressPair { local: message.local, remote: message.remote };
        assoc.packet_too_big(now, pair, message.mtu);
        self.dirty.add(index);
    }
}
