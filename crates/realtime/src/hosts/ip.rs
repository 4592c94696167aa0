//! IPv4 packets as they come from an interface.

use std::net::Ipv4Addr;

use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::{Icmpv4Type, Ipv4HeaderSlice, PacketBuilder};

/// Hops that messages of a link may take.
const TTL: u8 = 64;

/// The part of an IPv4 header that decides where a packet goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) source: Ipv4Addr,
    pub(super) destination: Ipv4Addr,
    /// True without the DF bit.
    pub(super) may_fragment: bool,
}

/// Reads the header of a packet; `None` if it is no IPv4 packet.
pub(super) fn read(packet: &[u8]) -> Option<Header> {
    let header = Ipv4HeaderSlice::from_slice(packet).ok()?;
    Some(Header {
        source: header.source_addr(),
        destination: header.destination_addr(),
        may_fragment: !header.dont_fragment(),
    })
}

/// The message that a packet was too long for a link (RFC 1191): it names the link's MTU and quotes
/// the packet's beginning. It seems to come from the packet's destination, since routers of a
/// scenario have no addresses. `None` if `quoted` is no packet.
pub(super) fn too_big(quoted: &[u8], mtu: u32) -> Option<Vec<u8>> {
    let Header { source, destination, .. } = read(quoted)?;
    let next_hop_mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
    let message = DestUnreachableHeader::FragmentationNeeded { next_hop_mtu };
    let packet = PacketBuilder::ipv4(destination.octets(), source.octets(), TTL)
        .icmpv4(Icmpv4Type::DestinationUnreachable(message));
    let mut bytes = Vec::with_capacity(packet.size(quoted.len()));
    packet.write(&mut bytes, quoted).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};
    use proptest::prelude::*;

    use super::*;

    fn packet(length: usize) -> Vec<u8> {
        let packet = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(1, 2);
        let mut bytes = Vec::new();
        packet.write(&mut bytes, &vec![7; length]).unwrap();
        bytes
    }

    #[test]
    fn a_message_goes_back_to_the_sender_and_quotes_its_packet() {
        let long = packet(1400);
        let message = too_big(&long[..68], 1280).unwrap();
        let header = read(&message).unwrap();
        assert_eq!(header.source, Ipv4Addr::new(10, 0, 0, 2));
        assert_eq!(header.destination, Ipv4Addr::new(10, 0, 0, 1));
        let parsed = SlicedPacket::from_ip(&message).unwrap();
        let Some(TransportSlice::Icmpv4(icmp)) = parsed.transport else { panic!("{parsed:?}") };
        let wanted = DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1280 };
        assert_eq!(icmp.icmp_type(), Icmpv4Type::DestinationUnreachable(wanted));
        assert_eq!(icmp.payload(), &long[..68]);
        assert_eq!(icmp.checksum(), icmp.icmp_type().calc_checksum(icmp.payload()));
        let Some(NetSlice::Ipv4(ip)) = parsed.net else { panic!("no IPv4") };
        assert_eq!(ip.header().header_checksum(), ip.header().to_header().calc_header_checksum());
    }

    #[test]
    fn the_df_bit_is_read() {
        let mut bytes = packet(10);
        let is_set = |bytes: &[u8]| read(bytes).map(|header| !header.may_fragment);
        bytes[6] = 0x40;
        assert_eq!(is_set(&bytes), Some(true));
        bytes[6] = 0;
        assert_eq!(is_set(&bytes), Some(false));
    }

    proptest! {
        #[test]
        fn nothing_that_an_interface_yields_is_a_panic(bytes: Vec<u8>, mtu: u32) {
            if read(&bytes).is_none() {
                prop_assert!(too_big(&bytes, mtu).is_none());
            }
        }

        #[test]
        fn a_header_cut_short_is_none(length in 0usize..20) {
            prop_assert_eq!(read(&packet(100)[..length]), None);
        }
    }
}
