//! Packets that the system refused to send.

use std::io;
use std::net::SocketAddr;

/// Packets that the system refused to send, by reason. They count as lost on their path.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendFailures {
    /// No route, or the interface is gone or down (ENETUNREACH, EHOSTUNREACH, ENETDOWN, ENODEV,
    /// EADDRNOTAVAIL).
    pub unreachable: u64,
    /// A firewall of this host forbids it (EPERM, EACCES).
    pub not_permitted: u64,
    /// Longer than the path's MTU (EMSGSIZE).
    pub too_long: u64,
    /// Anything else, such as ECONNREFUSED or ENOBUFS.
    pub other: u64,
    /// No socket has the local address any more, or too much waited for one that is blocked.
    pub dropped: u64,
}

impl SendFailures {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.unreachable + self.not_permitted + self.too_long + self.other + self.dropped
    }

    pub(crate) fn count(&mut self, error: &io::Error, packets: u64) {
        use io::ErrorKind as Kind;
        let field = match error.kind() {
            Kind::NetworkUnreachable
            | Kind::HostUnreachable
            | Kind::NetworkDown
            | Kind::NotFound
            | Kind::AddrNotAvailable => &mut self.unreachable,
            Kind::PermissionDenied => &mut self.not_permitted,
            _ if quinn_udp::is_msg_size_err(error) => &mut self.too_long,
            _ => &mut self.other,
        };
        *field += packets;
    }
}

/// A packet that the system did not take because it is longer than its interface's.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Our address, as the engine knows it.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// Bytes of the SCTP packet.
    pub len: usize,
}
