//! The size of a path's packets.

use std::net::SocketAddr;

use super::pmtu::Pmtu;
use crate::config::{Config, Units};
use crate::sizes;

/// How large packets and chunks may be, in bytes.
#[derive(Debug)]
pub(crate) struct Size {
    /// The search for a larger packet.
    pub(crate) pmtu: Pmtu,
    /// Largest IP packet.
    pub(crate) mtu: usize,
    /// Bytes that protection or authentication adds to its packets.
    pub(crate) overhead: usize,
    /// Largest SCTP packet before it is protected or authenticated: the MTU less all headers.
    pub(crate) max_packet: usize,
    /// Path maximum DATA chunk size, header included (RFC 9260 §1.3).
    pub(crate) pmdcs: usize,
}

impl Size {
    /// The initial sizes of a path to `remote`. `link_mtu` is the MTU of the local interface, if
    /// known.
    pub(super) fn new(
        config: &Config,
        remote: SocketAddr,
        link_mtu: Option<usize>,
        overhead: usize,
    ) -> Size {
        let pmtu = Pmtu::new(config, link_mtu);
        let mut size = Size { pmtu, mtu: 0, overhead, max_packet: 0, pmdcs: 0 };
        size.renew(config, remote);
        size
    }

    /// Takes over the size that the search found.
    pub(super) fn renew(&mut self, config: &Config, remote: SocketAddr) {
        self.mtu = self.pmtu.size();
        self.max_packet = self.max_packet_of(config, remote, self.mtu);
        self.pmdcs = pmdcs_of(config, self.max_packet);
    }

    /// The largest DATA chunk in packets of the size that is tried first.
    pub(super) fn likely_pmdcs(&self, config: &Config, remote: SocketAddr) -> usize {
        pmdcs_of(config, self.max_packet_of(config, remote, config.mtu))
    }

    /// The largest SCTP packet that fits an IP packet of `mtu` bytes.
    fn max_packet_of(&self, config: &Config, remote: SocketAddr, mtu: usize) -> usize {
        let outer = sizes::outer_headers(remote, config.udp_encapsulation) + self.overhead;
        sizes::unpadded(mtu - outer)
    }

    /// An amount on this path, in bytes.
    pub(crate) fn bytes(&self, amount: Units) -> usize {
        usize::try_from(amount.bytes(self.pmdcs, self.mtu)).unwrap_or(usize::MAX)
    }
}

/// The largest DATA chunk in an SCTP packet of that size.
fn pmdcs_of(config: &Config, max_packet: usize) -> usize {
    let fits = sizes::room_for_chunks(max_packet, config.timestamp);
    config.pmdcs_limit.map_or(fits, |user| fits.min(user + sizes::DATA_HEADER_LEN))
}
