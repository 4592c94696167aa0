use std::net::SocketAddr;

use manypath_proto::IcmpKind;
use proptest::prelude::*;

use super::icmp::checksum;
use super::*;
use crate::bind::BindError;

/// An IPv4 packet.
fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, protocol, 0, 0];
    packet.extend([192, 0, 2, 1, 198, 51, 100, 2]);
    packet.extend(payload);
    let total = (packet.len() as u16).to_be_bytes();
    packet[2..4].copy_from_slice(&total);
    packet
}

fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next_header, 64]);
    for last in [1, 2] {
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(payload);
    packet
}

/// An ICMP message about a packet, with these bytes behind type and code.
fn icmp(kind: [u8; 2], more: [u8; 4], about: &[u8]) -> Vec<u8> {
    let mut message = [&kind[..], &[0, 0], &more, about].concat();
    let sum = checksum(&message).to_be_bytes();
    message[2..4].copy_from_slice(&sum);
    message
}

const PACKET: &[u8] = &[0x26, 0xab, 0x13, 0x89, 1, 2, 3, 4, 0, 0, 0, 0, 0, 3, 0, 16, 9, 9, 9, 9, 7];

#[test]
fn the_payload_of_an_ipv4_packet_is_what_its_header_says() {
    let packet = ipv4(SCTP, b"payload");
    assert_eq!(ipv4_payload(&packet, SCTP), Some(20..27));
    assert_eq!(ipv4_payload(&packet, 17), None, "of another protocol");
    let padded = [&packet[..], &[0; 9]].concat();
    assert_eq!(ipv4_payload(&padded, SCTP), Some(20..27), "what a link adds is none of it");
    let mut options = packet.clone();
    options[0] = 0x46;
    assert_eq!(ipv4_payload(&options, SCTP), Some(24..27));
    assert_eq!(ipv4_payload(&ipv4(SCTP, b""), SCTP), Some(20..20));
}

#[test]
fn ipv4_headers_that_lie_are_refused() {
    let packet = ipv4(SCTP, b"payload");
    for len in 0..packet.len() {
        assert_eq!(ipv4_payload(&packet[..len], SCTP), None, "cut to {len}");
    }
    let with = |at: usize, value: u8| {
        let mut packet = packet.clone();
        packet[at] = value;
        ipv4_payload(&packet, SCTP)
    };
    assert_eq!(with(3, 28), None, "longer than it is");
    assert_eq!(with(3, 19), None, "shorter than its header");
    assert_eq!(with(3, 0), None);
    assert_eq!(with(0, 0x44), None, "a header of 16 bytes");
    assert_eq!(with(0, 0x40), None);
    assert_eq!(with(0, 0x47), None, "options that are not there");
    assert_eq!(with(0, 0x4f), None);
    assert_eq!(with(0, 0x65), None, "IPv6");
    assert_eq!(with(6, 0x20), None, "a first fragment");
    assert_eq!(with(7, 1), None, "a later fragment");
}

fn reported(kind: IcmpKind) -> (SocketAddr, SocketAddr, IcmpKind) {
    ("192.0.2.1:0".parse().unwrap(), "198.51.100.2:0".parse().unwrap(), kind)
}

fn report(packet: &[u8]) -> Option<(SocketAddr, SocketAddr, IcmpKind)> {
    let report = IcmpReport::of_ipv4(packet)?;
    let message = report.message();
    assert_eq!(message.quoted, &PACKET[..message.quoted.len()]);
    assert!(message.quoted.len() >= 8);
    Some((message.local, message.remote, message.kind))
}

#[test]
fn icmp_about_sctp_is_read() {
    let about = ipv4(SCTP, PACKET);
    let unreachable = ipv4(1, &icmp([3, 2], [0; 4], &about));
    assert_eq!(report(&unreachable), Some(reported(IcmpKind::NoSuchProtocol)));
    let too_big = |mtu: [u8; 2]| ipv4(1, &icmp([3, 4], [0, 0, mtu[0], mtu[1]], &about));
    let kind = IcmpKind::TooBig { mtu: 1300 };
    assert_eq!(report(&too_big(1300u16.to_be_bytes())), Some(reported(kind)));
    assert_eq!(report(&too_big([0, 0])), None, "an old router (RFC 1191 §5): it tells nothing");
    assert_eq!(report(&too_big([0, 67])), None);
    let short = ipv4(1, &icmp([3, 2], [0; 4], &about[..28]));
    assert_eq!(report(&short), Some(reported(IcmpKind::NoSuchProtocol)), "8 bytes suffice");
}

#[test]
fn other_icmp_is_not_read() {
    let about = ipv4(SCTP, PACKET);
    for kind in [[3, 0], [3, 1], [3, 3], [3, 13], [0, 0], [8, 0], [11, 0], [12, 0], [5, 1]] {
        assert_eq!(report(&ipv4(1, &icmp(kind, [0, 0, 5, 20], &about))), None, "{kind:?}");
    }
    let udp = ipv4(17, PACKET);
    assert_eq!(report(&ipv4(1, &icmp([3, 2], [0; 4], &udp))), None);
    let mut later = about.clone();
    later[7] = 1;
    assert_eq!(report(&ipv4(1, &icmp([3, 2], [0; 4], &later))), None, "a later fragment");
    let good = ipv4(1, &icmp([3, 2], [0; 4], &about));
    for at in 20..good.len() {
        let mut damaged = good.clone();
        damaged[at] ^= 4;
        assert_eq!(report(&damaged), None, "damaged at {at}");
    }
    for len in 0..good.len() {
        assert_eq!(report(&good[..len]), None, "cut to {len}");
    }
    let mut lying = about.clone();
    lying[0] = 0x4f; // the header fills all that is quoted
    assert_eq!(report(&ipv4(1, &icmp([3, 2], [0; 4], &lying))), None);
}

#[test]
fn icmpv6_about_sctp_is_read() {
    let about = ipv6(SCTP, PACKET);
    let kind = |message: &[u8]| IcmpReport::of_ipv6(message).map(|report| report.message().kind);
    let too_big = icmp([2, 0], 1300u32.to_be_bytes(), &about);
    assert_eq!(kind(&too_big), Some(IcmpKind::TooBig { mtu: 1300 }));
    let unknown = icmp([4, 1], [0, 0, 0, 6], &about);
    assert_eq!(kind(&unknown), Some(IcmpKind::NoSuchProtocol));
    let report = IcmpReport::of_ipv6(&unknown).unwrap();
    let (local, remote) = (report.message().local, report.message().remote);
    assert_eq!(
        (local, remote),
        ("[2001:db8::1]:0".parse().unwrap(), "[2001:db8::2]:0".parse().unwrap())
    );
    for other in [[1, 0], [1, 3], [1, 4], [3, 0], [4, 0], [4, 2], [128, 0]] {
        assert_eq!(kind(&icmp(other, [0, 0, 5, 20], &about)), None, "{other:?}");
    }
    assert_eq!(kind(&icmp([4, 1], [0; 4], &ipv6(17, PACKET))), None);
    for len in 0..8 + 40 + 8 {
        assert_eq!(kind(&unknown[..len]), None, "cut to {len}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_port_is_one_endpoints_at_an_address() {
    let take = |port, ips: &[&str]| {
        let ips: Vec<_> = ips.iter().map(|ip| ip.parse().unwrap()).collect();
        SctpPort::take(port, &ips)
    };
    let first = take(0, &["127.0.0.1"]).unwrap();
    let port = first.number;
    assert!(port >= 49_152);
    let error = take(port, &["127.0.0.1"]).unwrap_err();
    assert!(matches!(error, BindError::SctpPortInUse(p) if p == port), "{error}");
    assert!(take(port, &["0.0.0.0", "::"]).is_err(), "every address is that one, too");
    drop(take(port, &["127.0.0.2", "::1"]).unwrap());
    drop(first);
    let any = take(port, &["0.0.0.0"]).unwrap();
    assert!(take(port, &["127.0.0.1"]).is_err() && take(port, &["::1"]).is_ok());
    drop(any);
    assert!(take(port, &["127.0.0.1"]).is_ok(), "it is free again");
}

proptest! {
    #[test]
    fn whatever_arrives_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Some(range) = ipv4_payload(&bytes, SCTP) {
            prop_assert!(range.start >= 20 && range.end <= bytes.len());
        }
        let _ = (IcmpReport::of_ipv4(&bytes), IcmpReport::of_ipv6(&bytes));
        let _ = IcmpReport::of_ipv4(&ipv4(1, &icmp([3, 2], [0; 4], &bytes)));
        let _ = IcmpReport::of_ipv6(&icmp([4, 1], [0; 4], &bytes));
    }
}
