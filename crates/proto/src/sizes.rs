//! Sizes of packets in bytes: headers, padding, and the room for user data. All code that adds or
//! subtracts headers calls this module.
//!
//! ```text
//! IP | UDP | relay's ChannelData | SCTP common header | DATA header | user data, padded
//!                        of a protected packet: behind | and at the end
//! ```

use std::net::SocketAddr;

pub use manypath_wire::{COMMON_HEADER_LEN, DATA_HEADER_LEN, I_DATA_HEADER_LEN, TIMESTAMP_LEN};

use crate::config::Config;
use crate::datagram::is_raw_ip;

/// An IPv4 header without options.
pub const IPV4_HEADER: usize = 20;
/// An IPv6 header without extensions.
pub const IPV6_HEADER: usize = 40;
/// A UDP header, where SCTP travels in UDP (RFC 6951).
pub const UDP_HEADER: usize = 8;
/// The headers of UDP over IPv4.
pub const UDP_IPV4_HEADERS: usize = IPV4_HEADER + UDP_HEADER;
/// The headers of UDP over IPv6, the most that an SCTP packet has around it without a relay.
pub const UDP_IPV6_HEADERS: usize = IPV6_HEADER + UDP_HEADER;
/// The header of a TURN relay's ChannelData message (RFC 8656 §12.4). Packets to and from a relay
/// have it in addition to the other headers.
pub const CHANNEL_DATA_HEADER: usize = 4;

/// Bytes that a DTLS chunk adds to the chunks in it.
pub const PROTECTION: usize = manypath_wire::DTLS_PADDED_OVERHEAD;

/// Most bytes of chunks that a record of a protected packet holds (RFC 9147 §4).
const RECORD_MAX: usize = 1 << 14;

/// The longest IP packet with this many bytes of IP and UDP headers whose chunks fit in one record.
pub const fn longest_protected(outer: usize) -> usize {
    outer + COMMON_HEADER_LEN + PROTECTION + RECORD_MAX
}

/// The IP packet that an Ethernet interface takes.
pub const ETHERNET_MTU: usize = 1500;
/// The IP packet that every IPv6 link carries (RFC 8200 §5), and nearly every IPv4 path.
pub const IPV6_MIN_MTU: usize = 1280;
/// The IP packet that every host must be able to receive over IPv4 (RFC 1122 §3.3.2).
pub const IPV4_MIN_MTU: usize = 576;

/// The IP header of packets to this address.
#[inline]
pub fn ip_header(remote: SocketAddr) -> usize {
    if remote.is_ipv4() { IPV4_HEADER } else { IPV6_HEADER }
}

/// The headers around an SCTP packet to this address. Without `in_udp` no address has a UDP header;
/// with it, those of [raw IP](crate::is_raw_ip) have none.
#[inline]
pub fn outer_headers(remote: SocketAddr, in_udp: bool) -> usize {
    let udp = if in_udp && !is_raw_ip(remote) { UDP_HEADER } else { 0 };
    ip_header(remote) + udp
}

/// The length with padding: chunks and packets have a multiple of four bytes (RFC 9260 §3.2).
#[inline]
pub const fn padded(len: usize) -> usize {
    len.next_multiple_of(4)
}

/// The largest multiple of four that fits `room`.
#[inline]
pub const fn unpadded(room: usize) -> usize {
    room & !3
}

/// The chunks that carry the user data of an association.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum DataKind {
    /// DATA (RFC 9260 §3.3.1).
    #[default]
    Data,
    /// I-DATA (RFC 8260 §2.1): messages are interleaved.
    IData,
}

impl DataKind {
    /// Bytes before the user data of a chunk.
    #[inline]
    pub const fn header(self) -> usize {
        match self {
            DataKind::Data => DATA_HEADER_LEN,
            DataKind::IData => I_DATA_HEADER_LEN,
        }
    }
}

/// The size of a chunk with `user_data` bytes, header and padding included.
#[inline]
pub const fn data_chunk(kind: DataKind, user_data: usize) -> usize {
    padded(kind.header() + user_data)
}

/// The most user data that fits a chunk of `chunk` bytes without padding.
#[inline]
pub const fn user_data(kind: DataKind, chunk: usize) -> usize {
    unpadded(chunk - kind.header())
}

/// The size of an SCTP packet with one chunk of `chunk` bytes, optionally behind a time stamp.
#[inline]
pub const fn packet_of(chunk: usize, has_timestamp: bool) -> usize {
    padded(COMMON_HEADER_LEN + timestamp(has_timestamp) + chunk)
}

/// The room for chunks in an SCTP packet of `packet` bytes, optionally behind a time stamp.
#[inline]
pub const fn room_for_chunks(packet: usize, has_timestamp: bool) -> usize {
    packet - COMMON_HEADER_LEN - timestamp(has_timestamp)
}

const fn timestamp(has_timestamp: bool) -> usize {
    if has_timestamp { TIMESTAMP_LEN } else { 0 }
}

/// The user data of a DATA chunk that fills an IP packet of `mtu` bytes with `outer` bytes of
/// headers around SCTP; 0 if there is no room.
#[inline]
pub const fn user_data_within(mtu: usize, outer: usize) -> usize {
    unpadded(mtu.saturating_sub(outer + COMMON_HEADER_LEN + DATA_HEADER_LEN))
}

/// The user data of a chunk that fills a packet of the configured size over UDP; at least 4. If the
/// configuration asks for I-DATA, the result fits I-DATA too, whatever the peer agrees to.
pub fn bulk_chunk(config: &Config, is_ipv6: bool, is_relayed: bool, is_protected: bool) -> usize {
    let ip = if is_ipv6 { IPV6_HEADER } else { IPV4_HEADER };
    let relay = if is_relayed { CHANNEL_DATA_HEADER } else { 0 };
    let protection = if is_protected { PROTECTION } else { 0 };
    let interleaving =
        if config.message_interleaving { I_DATA_HEADER_LEN - DATA_HEADER_LEN } else { 0 };
    let outer = ip + UDP_HEADER + relay + protection + interleaving;
    let fits = user_data_within(config.mtu, outer);
    config.pmdcs_limit.map_or(fits, |limit| fits.min(limit)).max(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ethernet_packet_over_ipv4_and_udp_carries_1444_bytes() {
        assert_eq!(user_data_within(ETHERNET_MTU, UDP_IPV4_HEADERS), 1444);
        assert_eq!(data_chunk(DataKind::Data, 1444), 1460);
        let packet = packet_of(data_chunk(DataKind::Data, 1444), false);
        assert_eq!(packet + UDP_IPV4_HEADERS, ETHERNET_MTU);
        assert_eq!(user_data(DataKind::Data, room_for_chunks(1472, false)), 1444);
        assert_eq!(user_data(DataKind::IData, room_for_chunks(1472, false)), 1440);
        assert_eq!(data_chunk(DataKind::IData, 1440), 1460);
        assert_eq!(user_data_within(20, UDP_IPV4_HEADERS), 0);
    }

    #[test]
    fn packets_over_ip_itself_have_8_bytes_more_for_sctp() {
        let [v4, v6]: [SocketAddr; 2] =
            ["192.0.2.1:0", "[2001:db8::1]:0"].map(|a| a.parse().unwrap());
        assert_eq!([outer_headers(v4, true), outer_headers(v6, true)], [IPV4_HEADER, IPV6_HEADER]);
        let in_udp: SocketAddr = "192.0.2.1:9899".parse().unwrap();
        assert_eq!(outer_headers(in_udp, true), UDP_IPV4_HEADERS);
        assert_eq!(user_data_within(ETHERNET_MTU, outer_headers(v4, true)), 1452);
    }

    #[test]
    fn bulk_chunks_leave_room_for_ipv6_and_relays() {
        let config = Config::default();
        let of = |is_ipv6, is_relayed| bulk_chunk(&config, is_ipv6, is_relayed, false);
        assert_eq!(bulk_chunk(&config, false, false, true), 1444 - PROTECTION);
        let interleaved = Config::default().with(|c| c.message_interleaving = true);
        assert_eq!(bulk_chunk(&interleaved, false, false, false), 1440);
        assert_eq!([of(false, false), of(true, false)], [1444, 1424]);
        assert_eq!([of(false, true), of(true, true)], [1440, 1420]);
        assert_eq!(bulk_chunk(&config.with(|c| c.pmdcs_limit = Some(500)), true, true, true), 500);
    }
}
