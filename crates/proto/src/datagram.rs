//! Packets with their addresses: the input and the output of an endpoint.
//!
//! A transport address with UDP port 0 is of SCTP over IP itself (protocol 132), without the UDP
//! header of RFC 6951. Both ends of a packet have such an address, or neither.

use std::net::SocketAddr;

use bytes::BytesMut;

/// The local and the remote address of a packet or a path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct AddressPair {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
}

/// True for an address of SCTP over IP itself (protocol 132): it has no UDP port.
#[inline]
pub const fn is_raw_ip(address: SocketAddr) -> bool {
    address.port() == 0
}

impl AddressPair {
    /// True for one address over UDP and one over IP: no packet has these.
    pub(crate) fn is_mixed(&self) -> bool {
        is_raw_ip(self.local) != is_raw_ip(self.remote)
    }

    /// True if the two pairs differ in encapsulation only.
    pub(crate) fn differs_in_encapsulation(&self, other: &AddressPair) -> bool {
        self.local.ip() == other.local.ip()
            && self.remote.ip() == other.remote.ip()
            && is_raw_ip(self.remote) != is_raw_ip(other.remote)
    }
}

/// A received datagram: one SCTP packet.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Datagram {
    /// Our address to which it was sent.
    pub local: SocketAddr,
    /// The address it came from.
    pub remote: SocketAddr,
    /// The SCTP packet. A protected one is decrypted in place.
    pub payload: BytesMut,
    /// The IP header says that the packet met congestion: CE (RFC 3168 §5).
    pub has_ce: bool,
}

impl Datagram {
    /// An SCTP packet that came from `remote` to `local`.
    ///
    /// The bytes are copied only if they are shared.
    pub fn new(local: SocketAddr, remote: SocketAddr, payload: impl Into<BytesMut>) -> Datagram {
        Datagram { local, remote, payload: payload.into(), has_ce: false }
    }
}

/// Packets to send, in the buffer given to
/// [`Endpoint::poll_transmit`](crate::Endpoint::poll_transmit).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transmit {
    /// Our address to send from.
    pub local: SocketAddr,
    /// The address to send to.
    pub remote: SocketAddr,
    /// Length of every packet in the buffer except the last, which may be shorter.
    pub segment_size: usize,
    /// True if IP may fragment the packet. It is a single packet, which is longer than the path's
    /// packets may be and cannot be made shorter. All other packets must have the DF bit, which
    /// forbids fragmentation.
    pub may_fragment: bool,
    /// True if routers may mark the packets instead of dropping them: their IP header shall say
    /// ECT(0) (RFC 3168 §5).
    pub is_ect: bool,
}

impl Transmit {
    /// Packets of that length that IP must not fragment.
    pub fn new(local: SocketAddr, remote: SocketAddr, segment_size: usize) -> Transmit {
        Transmit { local, remote, segment_size, may_fragment: false, is_ect: false }
    }
}
