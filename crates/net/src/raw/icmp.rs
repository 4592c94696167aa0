//! ICMP messages about SCTP packets of this host (RFC 792, RFC 1191, RFC 4443).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use manypath_proto::{IcmpKind, IcmpMessage};

use super::{IPV4_HEADER, SCTP, ipv4_header_len, ipv4_payload};

/// The IP protocol number of ICMP.
const ICMP: u8 = 1;
/// Bytes of ICMP and ICMPv6 before the quoted packet.
const ICMP_HEADER: usize = 8;
/// Bytes of an IPv6 header without extensions.
const IPV6_HEADER: usize = manypath_proto::sizes::IPV6_HEADER;
/// Most bytes of a quoted SCTP packet that are kept: its header, and that of its first chunk with
/// the tag of INIT.
const QUOTED_MAX: usize = 20;
/// Smallest MTU that a router can mean (RFC 791 §3.2).
const MTU_MIN: usize = 68;

/// A message of ICMP or ICMPv6 that a packet of this host has drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IcmpReport {
    local: SocketAddr,
    remote: SocketAddr,
    kind: IcmpKind,
    quoted: Vec<u8>,
}

impl IcmpReport {
    /// The message as the engine takes it.
    pub fn message(&self) -> IcmpMessage<'_> {
        let IcmpReport { local, remote, kind, ref quoted } = *self;
        IcmpMessage { local, remote, kind, quoted }
    }

    /// Reads a packet of IPv4. `None` for messages of other kinds, about other protocols, damaged
    /// or cut ones.
    pub(super) fn of_ipv4(packet: &[u8]) -> Option<IcmpReport> {
        let message = &packet[ipv4_payload(packet, ICMP)?];
        let (header, quoted) = message.split_first_chunk::<ICMP_HEADER>()?;
        if checksum(message) != 0 {
            return None;
        }
        let mtu = u32::from(u16::from_be_bytes([header[6], header[7]]));
        // RFC 9260 §10, ICMP1 and ICMP3: of the others none counts.
        let kind = match (header[0], header[1]) {
            (3, 2) => IcmpKind::NoSuchProtocol,
            (3, 4) => too_big(mtu)?,
            _ => return None,
        };
        let inner = quoted.first_chunk::<IPV4_HEADER>()?;
        let is_first = u16::from_be_bytes([inner[6], inner[7]]) & 0x1fff == 0;
        if inner[9] != SCTP || !is_first {
            return None;
        }
        let ip = |at: usize| {
            let bytes = [inner[at], inner[at + 1], inner[at + 2], inner[at + 3]];
            IpAddr::from(Ipv4Addr::from(bytes))
        };
        IcmpReport::new(ip(12), ip(16), kind, quoted.get(ipv4_header_len(inner)?..)?)
    }

    /// Reads an ICMPv6 message, without the IPv6 header before it, whose checksum the kernel has
    /// compared.
    pub(super) fn of_ipv6(message: &[u8]) -> Option<IcmpReport> {
        let (header, quoted) = message.split_first_chunk::<ICMP_HEADER>()?;
        let mtu = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        // RFC 9260 §10, ICMP2 to ICMP4: of the others none counts.
        let kind = match (header[0], header[1]) {
            (2, _) => too_big(mtu)?,
            (4, 1) => IcmpKind::NoSuchProtocol,
            _ => return None,
        };
        let (inner, sctp) = quoted.split_first_chunk::<IPV6_HEADER>()?;
        if inner[0] >> 4 != 6 || inner[6] != SCTP {
            return None;
        }
        let ip = |at: usize| {
            let bytes: [u8; 16] = std::array::from_fn(|i| inner[at + i]);
            IpAddr::from(Ipv6Addr::from(bytes))
        };
        IcmpReport::new(ip(8), ip(24), kind, sctp)
    }

    fn new(local: IpAddr, remote: IpAddr, kind: IcmpKind, quoted: &[u8]) -> Option<IcmpReport> {
        let quoted = quoted[..quoted.len().min(QUOTED_MAX)].to_vec();
        let [local, remote] = [local, remote].map(|ip| SocketAddr::new(ip, 0));
        (quoted.len() >= 8).then_some(IcmpReport { local, remote, kind, quoted })
    }
}

fn too_big(mtu: u32) -> Option<IcmpKind> {
    let mtu = usize::try_from(mtu).ok()?;
    (mtu >= MTU_MIN).then_some(IcmpKind::TooBig { mtu })
}

/// The checksum of a message (RFC 1071); 0 over one with its own.
pub(super) fn checksum(message: &[u8]) -> u16 {
    let words = message.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or(0);
        u32::from(u16::from_be_bytes([pair[0], low]))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
