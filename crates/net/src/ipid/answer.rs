//! Reads ICMP messages as raw sockets hand them out. Anybody can send them: any bytes are possible.

use std::net::Ipv4Addr;

/// Length of an IPv4 header without options, in bytes (RFC 791).
const HEADER: usize = 20;
/// Length of the ICMP header before the quoted packet, in bytes (RFC 792).
const ICMP_HEADER: usize = 8;
/// Protocol number of ICMP.
const ICMP: u8 = 1;
/// Protocol number of UDP.
const UDP: u8 = 17;
/// ICMP type and code: nobody listens on the port.
const PORT_UNREACHABLE: [u8; 2] = [3, 3];

/// A message that nobody listens on a UDP port.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Unreachable {
    /// The sender of the message.
    pub(super) from: Ipv4Addr,
    /// Identification of the message's packet.
    pub(super) id: u16,
    /// Identification of the quoted packet.
    pub(super) quoted_id: u16,
    /// The destination of the quoted packet.
    pub(super) asked: Ipv4Addr,
    /// Source and destination port of the quoted packet.
    pub(super) ports: (u16, u16),
}

/// Reads an IPv4 packet with its header; `None` for anything but a port unreachable message.
pub(super) fn read(packet: &[u8]) -> Option<Unreachable> {
    let (header, message) = split(packet, ICMP)?;
    if message.get(..2)? != PORT_UNREACHABLE {
        return None;
    }
    let (quoted, datagram) = split(message.get(ICMP_HEADER..)?, UDP)?;
    Some(Unreachable {
        from: address(header, 12)?,
        id: number(header, 4)?,
        quoted_id: number(quoted, 4)?,
        asked: address(quoted, 16)?,
        ports: (number(datagram, 0)?, number(datagram, 2)?),
    })
}

/// The header and the rest of an IPv4 packet of that protocol that is no later fragment.
fn split(packet: &[u8], protocol: u8) -> Option<(&[u8], &[u8])> {
    let first = *packet.first()?;
    let length = usize::from(first & 15) * 4;
    let is_first = number(packet, 6)? & 0x1fff == 0;
    if first >> 4 != 4 || length < HEADER || *packet.get(9)? != protocol || !is_first {
        return None;
    }
    packet.split_at_checked(length)
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn address(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    let bytes: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(bytes.into())
}
