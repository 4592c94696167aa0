//! Captures of every kind, copied with their protected packets opened.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use etherparse::{IpNumber, PacketBuilder, SlicedPacket, TransportSlice};
use manypath_trace::{Answer, OPENED, RewriteError, Rewritten, rewrite_capture};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::SectionHeaderBlock;
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgWriter};
use pcap_file::{DataLink, Endianness};
use proptest::prelude::*;

/// Bytes that protection adds in these tests, as in real packets.
const OVERHEAD: usize = 28;

const TAG: u32 = 0x0102_0304;
const UNKNOWN_TAG: u32 = 0x0909_0909;

/// A packet whose chunks are hidden: no cipher is needed to take it from a capture.
fn protected(tag: u32, chunks: &[u8]) -> Vec<u8> {
    let len = (chunks.len() + OVERHEAD - 3) as u16;
    let header = [&[0x26, 0xab, 0x26, 0xac][..], &tag.to_be_bytes(), &[0; 4]].concat();
    let [high, low] = len.to_be_bytes();
    let hidden: Vec<u8> = chunks.iter().map(|byte| byte ^ 0x55).collect();
    [&header[..], &[0x41, 0, high, low, 0, 0x2b, 1, 2], &hidden[..], &[7; 17], &[0; 3]].concat()
}

/// The same packet without protection.
fn plain(tag: u32, chunks: &[u8]) -> Vec<u8> {
    [&protected(tag, chunks)[..12], chunks].concat()
}

fn open(packet: &Bytes) -> Answer {
    if packet.get(12) != Some(&0x41) {
        return Answer::Plain;
    }
    if packet[4..8] == UNKNOWN_TAG.to_be_bytes() {
        return Answer::Left("no_keys");
    }
    let len = packet.get(14..16).map_or(0, |len| usize::from(len[0]) << 8 | usize::from(len[1]));
    if packet.len() != 12 + len + 3 || len < OVERHEAD - 3 {
        return Answer::Left("malformed");
    }
    let chunks: Vec<u8> = packet[20..packet.len() - 20].iter().map(|byte| byte ^ 0x55).collect();
    Answer::Opened(plain(TAG, &chunks).into())
}

fn rewrite(capture: &[u8]) -> (Vec<u8>, Result<Rewritten, RewriteError>) {
    let mut out = Vec::new();
    let result = rewrite_capture(capture, &mut out, open);
    (out, result)
}

/// An IP packet with this SCTP packet in it.
fn ip(is_v6: bool, is_udp: bool, sctp: &[u8]) -> Vec<u8> {
    let builder = if is_v6 {
        PacketBuilder::ipv6([0x20; 16], [0x30; 16], 64)
    } else {
        PacketBuilder::ipv4([192, 0, 2, 1], [198, 51, 100, 7], 64)
    };
    let mut out = Vec::new();
    if is_udp {
        builder.udp(40_000, 9899).write(&mut out, sctp).unwrap();
    } else {
        builder.write(&mut out, IpNumber::SCTP, sctp).unwrap();
    }
    out
}

fn udp4(sctp: &[u8]) -> Vec<u8> {
    ip(false, true, sctp)
}

/// The bytes before an IP packet on a link, by the link's type.
fn links(is_v6: bool) -> Vec<(DataLink, Vec<u8>)> {
    let ethertype: [u8; 2] = if is_v6 { [0x86, 0xdd] } else { [8, 0] };
    let ethernet = |tags: &[u8]| [&[2; 12][..], tags, &ethertype].concat();
    vec![
        (DataLink::ETHERNET, ethernet(&[])),
        (DataLink::ETHERNET, ethernet(&[0x81, 0, 0, 5])),
        (DataLink::ETHERNET, ethernet(&[0x88, 0xa8, 0, 6, 0x81, 0, 0, 5])),
        (DataLink::RAW, Vec::new()),
        (DataLink::LINUX_SLL, [&[0; 14][..], &ethertype].concat()),
        (DataLink::LINUX_SLL2, [&ethertype[..], &[0; 18]].concat()),
        (DataLink::NULL, vec![if is_v6 { 24 } else { 2 }, 0, 0, 0]),
        (DataLink::LOOP, vec![0, 0, 0, if is_v6 { 30 } else { 2 }]),
        (if is_v6 { DataLink::IPV6 } else { DataLink::IPV4 }, Vec::new()),
    ]
}

fn interface(linktype: DataLink) -> InterfaceDescriptionBlock<'static> {
    let options = vec![
        InterfaceDescriptionOption::IfName(Cow::Borrowed("wlan0")),
        InterfaceDescriptionOption::IfTsResol(9),
    ];
    InterfaceDescriptionBlock { linktype, snaplen: 65_535, options }
}

fn packet(data: &[u8], number: u64) -> EnhancedPacketBlock<'_> {
    EnhancedPacketBlock {
        interface_id: 0,
        timestamp: Duration::from_nanos(1_700_000_000_123_456_789 + number),
        original_len: data.len() as u32,
        data: Cow::Borrowed(data),
        options: vec![
            EnhancedPacketOption::Comment(Cow::Borrowed("from before")),
            EnhancedPacketOption::Hash(Cow::Borrowed(b"\x02hash")),
            EnhancedPacketOption::Flags(1),
        ],
    }
}

fn capture_of(endianness: Endianness, linktype: DataLink, frames: &[Vec<u8>]) -> Vec<u8> {
    let section = SectionHeaderBlock { endianness, ..SectionHeaderBlock::default() };
    let mut file = PcapNgWriter::with_section_header(Vec::new(), section).unwrap();
    file.write_pcapng_block(interface(linktype)).unwrap();
    for (number, frame) in frames.iter().enumerate() {
        file.write_pcapng_block(packet(frame, number as u64)).unwrap();
    }
    file.into_inner()
}

fn raw_capture(frames: &[Vec<u8>]) -> Vec<u8> {
    capture_of(Endianness::Little, DataLink::RAW, frames)
}

/// The packets of a pcapng file.
fn packets(capture: &[u8]) -> Vec<EnhancedPacketBlock<'static>> {
    let mut reader = PcapNgReader::new(capture).expect("a pcapng file");
    let mut found = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.expect("a block") {
            found.push(packet.into_owned());
        }
    }
    found
}

fn comments<'p>(packet: &'p EnhancedPacketBlock<'_>) -> Vec<&'p str> {
    let comment = |option: &'p EnhancedPacketOption<'_>| match option {
        EnhancedPacketOption::Comment(text) => Some(&**text),
        _ => None,
    };
    packet.options.iter().filter_map(comment).collect()
}

/// The SCTP packet in an IP packet, whose lengths and checksums must be right.
fn sctp_of(packet: &[u8], is_udp: bool) -> Vec<u8> {
    let sliced = SlicedPacket::from_ip(packet).expect("right lengths");
    let ip = sliced.net.as_ref().and_then(|net| net.ip_payload_ref()).expect("an IP packet");
    if let Some(etherparse::NetSlice::Ipv4(ip)) = &sliced.net {
        let header = ip.header().to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
    }
    let Some(TransportSlice::Udp(udp)) = &sliced.transport else {
        assert!(!is_udp && ip.ip_number == IpNumber::SCTP);
        return ip.payload.to_vec();
    };
    let header = udp.to_header();
    let expected = match &sliced.net {
        Some(etherparse::NetSlice::Ipv4(ip)) => {
            header.calc_checksum_ipv4(&ip.header().to_header(), udp.payload())
        }
        Some(etherparse::NetSlice::Ipv6(ip)) => {
            header.calc_checksum_ipv6(&ip.header().to_header(), udp.payload())
        }
        _ => panic!("no IP"),
    };
    assert!(is_udp);
    assert_eq!(header.checksum, expected.unwrap());
    udp.payload().to_vec()
}

fn left(reasons: &[(&'static str, u64)]) -> BTreeMap<&'static str, u64> {
    reasons.iter().copied().collect()
}

#[test]
fn packets_of_all_links_are_opened_and_the_rest_of_them_stays() {
    let chunks = [3, 0, 0, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    for is_v6 in [false, true] {
        for (link, before) in links(is_v6) {
            for (is_udp, endianness) in [(true, Endianness::Big), (false, Endianness::Little)] {
                let ip_packet = ip(is_v6, is_udp, &protected(TAG, &chunks));
                // Ethernet frames may have padding behind the packet.
                let frame = [&before[..], &ip_packet, &[0; 6]].concat();
                let (out, done) =
                    rewrite(&capture_of(endianness, link, std::slice::from_ref(&frame)));
                let done = done.unwrap();
                let counts = (done.packets, done.written, done.opened, done.plain);
                assert_eq!(counts, (1, 1, 1, 0), "{link:?} {done:?}");
                let found = packets(&out);
                let [found] = &found[..] else { panic!("one packet") };
                let (link_header, rest) = found.data.split_at(before.len());
                assert_eq!(link_header, before);
                let (ip_packet, padding) = rest.split_at(rest.len() - 6);
                assert_eq!(padding, [0; 6]);
                assert_eq!(sctp_of(ip_packet, is_udp), plain(TAG, &chunks), "{link:?}");
                assert_eq!(found.data.len() + OVERHEAD, frame.len());
                assert_eq!(found.original_len as usize, found.data.len());
                assert_eq!(found.timestamp, packet(&frame, 0).timestamp);
                assert_eq!(comments(found), [OPENED, "from before"]);
                assert_eq!(found.options.last(), Some(&EnhancedPacketOption::Flags(1)));
                assert_eq!(found.options.len(), 3, "without the hash");
            }
        }
    }
}

#[test]
fn what_is_not_opened_is_copied_to_the_byte_and_counted() {
    let sealed = protected(TAG, &[11, 0, 0, 4]);
    let mut fragment = udp4(&sealed);
    fragment[6] = 0x20; // more fragments
    let mut bad_udp = udp4(&sealed);
    bad_udp[24] = 0xff; // the length of the UDP datagram
    let mut bad_ip = udp4(&sealed);
    bad_ip[0] = 0x41; // a header of 4 bytes
    let mut tcp = Vec::new();
    let builder = PacketBuilder::ipv4([192, 0, 2, 1], [198, 51, 100, 7], 64).tcp(1, 2, 3, 4);
    builder.write(&mut tcp, &sealed).unwrap();
    let frames = vec![
        udp4(&plain(TAG, &[11, 0, 0, 4])),
        udp4(&protected(UNKNOWN_TAG, &[11, 0, 0, 4])),
        udp4(&sealed)[..40].to_vec(),
        fragment,
        bad_udp,
        bad_ip,
        tcp,
        udp4(b"no SCTP"),
        vec![],
        vec![0xff; 60],
    ];
    let mut capture = raw_capture(&frames);
    // A block of an unknown type, a simple packet, and an enhanced one that is too short.
    let odd = |ty: u8, body: &[u8]| {
        let len = (body.len() as u32 + 12).to_le_bytes();
        [&[ty, 0, 0, 0], &len[..], body, &len].concat()
    };
    for block in [odd(0x77, b"what?..."), odd(3, &[0; 8]), odd(6, &[0xff; 24])] {
        capture.extend_from_slice(&block);
    }
    let (out, done) = rewrite(&capture);
    let done = done.unwrap();
    assert_eq!(out, capture);
    assert_eq!((done.packets, done.written, done.opened, done.plain), (12, 12, 0, 5));
    let expected =
        [("block_type", 1), ("cut_short", 1), ("fragment", 1), ("malformed", 3), ("no_keys", 1)];
    assert_eq!(done.left, left(&expected));

    let other_link = capture_of(Endianness::Big, DataLink::IEEE802_11, &frames[..1]);
    let (out, done) = rewrite(&other_link);
    assert_eq!((out, done.unwrap().left), (other_link, left(&[("link_type", 1)])));
}

/// GSO and GRO: a capture at the host has several packets in one datagram.
#[test]
fn batches_are_split() {
    let chunks = |number: u8| [3, 0, 0, 8, number, 0, 0, 0];
    let mut sealed: Vec<Vec<u8>> = (0..3).map(|n| protected(TAG, &chunks(n))).collect();
    sealed.push(protected(TAG, &[11, 0, 0, 4]));
    let batch = sealed.concat();
    let unknown: Vec<u8> = protected(UNKNOWN_TAG, &chunks(0)).repeat(2);
    let capture = raw_capture(&[udp4(&batch), udp4(&unknown)]);
    let (out, done) = rewrite(&capture);
    let done = done.unwrap();
    assert_eq!((done.packets, done.written, done.opened, done.batches), (2, 5, 4, 2));
    assert_eq!(done.left, left(&[("no_keys", 2)]));
    let found = packets(&out);
    let expected = [&chunks(0)[..], &chunks(1), &chunks(2), &[11, 0, 0, 4]];
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(sctp_of(&found.data, true), plain(TAG, expected));
        let comment = format!("{OPENED}; {} of 4 captured as one packet", number + 1);
        let before: &[&str] = if number == 0 { &["from before"] } else { &[] };
        assert_eq!(comments(found), [&[&*comment], before].concat(), "options are copied once");
    }
    assert_eq!(*found[4].data, udp4(&unknown), "nothing of it was opened");
    // Packets of two associations in one datagram are no batch.
    let mixed = [protected(TAG, &chunks(0)), protected(UNKNOWN_TAG, &chunks(0))].concat();
    let (_, done) = rewrite(&raw_capture(&[udp4(&mixed)]));
    assert_eq!(done.unwrap().left, left(&[("malformed", 1)]));
}

#[test]
fn an_absent_udp_checksum_stays_absent() {
    let mut frame = udp4(&protected(TAG, &[11, 0, 0, 4]));
    frame[26..28].fill(0);
    let (out, _) = rewrite(&raw_capture(&[frame]));
    assert_eq!(packets(&out)[0].data[26..28], [0, 0]);
}

/// A pcap file by hand: its packets have the time 1000 and 5 units.
fn pcap(is_big: bool, magic: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let order = |number: u32| if is_big { number.to_be_bytes() } else { number.to_le_bytes() };
    let version = if is_big { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
    let mut out = [order(magic), version].concat();
    // The upper bits say that frames have a check sequence of 4 bytes.
    for field in [0, 0, 65_535, 0x4400_0000 | 101] {
        out.extend_from_slice(&order(field));
    }
    for frame in frames {
        for field in [1000, 5, frame.len() as u32, frame.len() as u32 + 1] {
            out.extend_from_slice(&order(field));
        }
        out.extend_from_slice(frame);
    }
    out
}

#[test]
fn pcap_files_become_pcapng_files() {
    let frames = [udp4(&protected(TAG, &[11, 0, 0, 4])), udp4(b"something else")];
    for is_big in [false, true] {
        for (magic, ticks) in [(0xa1b2_c3d4, 1_000_000_005), (0xa1b2_3c4d, 1_000_000_000_005)] {
            let capture = pcap(is_big, magic, &frames);
            let (out, done) = rewrite(&capture);
            let done = done.unwrap();
            assert_eq!((done.packets, done.opened, done.plain, done.is_cut_off), (2, 1, 1, false));
            let found = packets(&out);
            assert_eq!(sctp_of(&found[0].data, true), plain(TAG, &[11, 0, 0, 4]));
            assert_eq!(*found[1].data, frames[1]);
            for found in &found {
                assert_eq!(found.original_len as usize - found.data.len(), 1);
                // The library takes ticks of any length for nanoseconds.
                assert_eq!(found.timestamp, Duration::from_nanos(ticks));
            }
            assert_eq!((comments(&found[0]), comments(&found[1])), (vec![OPENED], vec![]));
        }
    }
}

#[test]
fn sections_may_have_their_own_byte_order_and_interfaces() {
    let frame = udp4(&protected(TAG, &[11, 0, 0, 4]));
    let little = raw_capture(std::slice::from_ref(&frame));
    let ethernet = [&[2; 12][..], &[8, 0], &frame].concat();
    let big = capture_of(Endianness::Big, DataLink::ETHERNET, &[ethernet]);
    let (out, done) = rewrite(&[&little[..], &big, &little].concat());
    assert_eq!(done.unwrap().opened, 3);
    let (alone, _) = rewrite(&big);
    assert!(out.windows(alone.len()).any(|part| part == alone));
}

#[test]
fn a_file_that_ends_early_is_copied_so_far() {
    let frames = vec![udp4(&protected(TAG, &[11, 0, 0, 4])); 3];
    for capture in [raw_capture(&frames), pcap(false, 0xa1b2_c3d4, &frames)] {
        let (whole, _) = rewrite(&capture);
        let mut clean = 0;
        for len in 0..capture.len() {
            let (out, done) = rewrite(&capture[..len]);
            assert!(whole.starts_with(&out), "at {len}");
            match done {
                Ok(done) => clean += u32::from(!done.is_cut_off),
                Err(error) => assert!(matches!(error, RewriteError::NoCapture) && len < 24),
            }
        }
        assert!((3..6).contains(&clean), "between packets, and between blocks: {clean}");
    }
}

#[test]
fn damaged_blocks_end_the_copy_with_an_error() {
    let frame = udp4(&protected(TAG, &[11, 0, 0, 4]));
    let good = raw_capture(&[frame]);
    let (copy, _) = rewrite(&good);
    for (wrong, what) in [
        (&[6, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0][..], "length that none can have"),
        (&[6, 0, 0, 0, 0, 0, 0, 0x7f, 0, 0, 0, 0], "length that none can have"),
        (&[6, 0, 0, 0, 12, 0, 0, 0, 16, 0, 0, 0], "does not end with its length"),
        (&[10, 13, 13, 10, 12, 0, 0, 0, 12, 0, 0, 0], "no byte-order magic"),
    ] {
        let (out, done) = rewrite(&[&good, wrong].concat());
        assert_eq!(out, copy, "what comes before");
        let error = done.unwrap_err().to_string();
        assert!(error.starts_with("after 1 packets ") && error.contains(what), "{error}");
    }
    for junk in [&b""[..], b"x", b"a text that is no capture at all"] {
        assert!(matches!(rewrite(junk).1, Err(RewriteError::NoCapture)));
    }
}

#[test]
fn errors_of_the_writer_are_told() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("disk full"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let capture = raw_capture(&[udp4(b"x")]);
    let error = rewrite_capture(&capture[..], Full, open).unwrap_err();
    assert_eq!(error.to_string(), "cannot write the copy: disk full");
}

proptest! {
    /// Bytes of a capture that are changed at random: no panic, and no long copy.
    #[test]
    fn damage_is_taken(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        link in 0..9usize,
        is_v6 in any::<bool>(),
        is_pcapng in any::<bool>(),
    ) {
        let (link, before) = links(is_v6)[link].clone();
        let sealed = protected(TAG, &[3, 0, 0, 8, 1, 2, 3, 4]);
        let frame = |payload: &[u8]| [&before[..], &ip(is_v6, true, payload)].concat();
        let frames = [frame(&sealed), frame(&sealed.repeat(3)), frame(b"plain")];
        let mut capture = if is_pcapng {
            capture_of(Endianness::Big, link, &frames)
        } else {
            pcap(true, 0xa1b2_c3d4, &frames)
        };
        for (index, value) in changes {
            let index = index.index(capture.len());
            capture[index] = value;
        }
        let (out, _) = rewrite(&capture);
        prop_assert!(out.len() < 2 * capture.len() + 1000);
    }

    #[test]
    fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = rewrite(&bytes);
        let header = &raw_capture(&[])[..];
        let (out, _) = rewrite(&[header, &bytes].concat());
        prop_assert!(out.starts_with(header));
    }
}
