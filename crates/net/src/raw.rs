//! SCTP over IP itself (protocol 132): sockets that get whole packets, and the ports among them.
//!
//! A raw socket gets a copy of every SCTP packet for its address, whatever the port. Two programs
//! of one host therefore must not use one SCTP port; the kernel does not know SCTP ports, so
//! [`SctpPort`] keeps them apart.

mod icmp;
#[cfg(target_os = "linux")]
mod linux;
mod port;

use std::ops::Range;

pub use icmp::IcmpReport;
#[cfg(target_os = "linux")]
pub(crate) use linux::{IcmpSockets, note_of_kernel, open};
pub(crate) use port::SctpPort;

/// The IP protocol number of SCTP.
pub(crate) const SCTP: u8 = 132;

/// Bytes of an IPv4 header without options.
const IPV4_HEADER: usize = manypath_proto::sizes::IPV4_HEADER;

/// The SCTP port of an endpoint over IP, and the sockets that get messages about its packets.
#[derive(Debug)]
pub(crate) struct RawIp {
    pub(crate) port: SctpPort,
    pub(crate) icmp: IcmpSockets,
}

/// The payload of an IPv4 packet of this protocol, as a range of its bytes. `None` if it is another
/// protocol's, a fragment, or its header says what cannot be: the packet may be cut short, or lie
/// about its length.
pub(crate) fn ipv4_payload(packet: &[u8], protocol: u8) -> Option<Range<usize>> {
    let header = packet.first_chunk::<IPV4_HEADER>()?;
    let header_len = ipv4_header_len(header)?;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let is_whole = header_len <= total && total <= packet.len();
    (is_whole && header[9] == protocol && !is_fragment(header)).then_some(header_len..total)
}

/// The length of an IPv4 header, options included; `None` if it is no IPv4 header.
fn ipv4_header_len(header: &[u8; IPV4_HEADER]) -> Option<usize> {
    let words = usize::from(header[0] & 0x0f);
    (header[0] >> 4 == 4 && words * 4 >= IPV4_HEADER).then_some(words * 4)
}

/// True for any fragment but a whole packet. The kernel puts fragments together.
fn is_fragment(header: &[u8; IPV4_HEADER]) -> bool {
    u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::task::{Context, Poll};

    use super::IcmpReport;
    use crate::bind::{BindError, Bound, Place};

    /// Raw sockets are used on Linux only.
    pub(crate) fn open(_: &Place) -> Result<Bound, BindError> {
        Err(BindError::NoRawIp)
    }

    pub(crate) fn note_of_kernel() -> Option<String> {
        None
    }

    #[derive(Debug)]
    pub(crate) struct IcmpSockets;

    impl IcmpSockets {
        pub(crate) fn open() -> IcmpSockets {
            IcmpSockets
        }

        pub(crate) fn poll(&mut self, _: &mut Context<'_>, _: &mut Vec<IcmpReport>) -> Poll<()> {
            Poll::Pending
        }
    }
}
#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{IcmpSockets, note_of_kernel, open};

#[cfg(test)]
mod tests;
