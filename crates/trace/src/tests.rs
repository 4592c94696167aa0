//! Every event through the writer, the reader and the schema.

use std::net::SocketAddr;
use std::path::Path;

use bytes::Bytes;
use manypath_proto::Instant;
use manypath_wire::{
    Asconf, AsconfAck, AsconfRequest, AsconfResponse, Auth, CandidateKind, Candidates,
    CommonHeader, DataFlags, ErrorCause, Init, NamedAddress, PacketBuilder, Pad, Params, ReConfig,
    ReConfigParameter, ReConfigResponse, ReConfigResult, SackPath, Ssn, StreamId, Timestamp, Tsn,
};
use pcap_file::pcapng::{Block, PcapNgReader};

use crate::*;

const HEADER: CommonHeader =
    CommonHeader { source_port: 9899, destination_port: 9899, verification_tag: 7 };

/// A packet without a checksum.
fn packet(push: impl FnOnce(&mut PacketBuilder<'_>)) -> Bytes {
    let mut out = Vec::new();
    let mut builder = PacketBuilder::new(&mut out, HEADER, 1400);
    push(&mut builder);
    builder.finish(false);
    Bytes::from(out)
}

fn data_packet(tsn: u32) -> Bytes {
    packet(|p| {
        assert!(p.push_data(Tsn(tsn), StreamId(3), Ssn(4), 0, DataFlags::BEGIN, b"hello"));
    })
}

/// A packet with a chunk of every type.
fn all_chunks() -> Bytes {
    packet(|p| {
        let init = Init {
            initiate_tag: 1,
            a_rwnd: 65_536,
            outbound_streams: 2,
            inbound_streams: 3,
            initial_tsn: Tsn(4),
            params: Params::default(),
        };
        assert!(p.push_init(&init) && p.push_init_ack(&init));
        let flags = DataFlags::UNORDERED | DataFlags::END | DataFlags::IMMEDIATE;
        assert!(p.push_data(Tsn(1), StreamId(0), Ssn(0), 0, flags, b"abc"));
        assert!(p.push_chunk(3, 0, &[0, 0, 0, 9, 0, 0, 4, 0, 0, 1, 0, 1, 0, 2, 0, 3, 0, 0, 0, 8]));
        assert!(p.push_heartbeat(b"nonce") && p.push_heartbeat_ack(b"nonce"));
        assert!(p.push_abort(false, &[]) && p.push_error(&[ErrorCause::StaleCookie(1)]));
        assert!(p.push_shutdown(Tsn(9)) && p.push_shutdown_ack());
        assert!(p.push_shutdown_complete(false));
        assert!(p.push_cookie_echo(b"cookie") && p.push_cookie_ack());
        assert!(p.push_timestamp(Timestamp { timestamp: 7, echo: Some(8) }));
        assert!(p.push_sack_path(SackPath { serial: 5, failed: true }));
        let (kind, address) = (CandidateKind::Host, ends().0);
        let list = vec![NamedAddress { kind, base: 0, address }];
        assert!(p.push_candidates(&Candidates {
            asks: true,
            direct_only: false,
            serial: 2,
            seen: 1,
            list
        }));
        assert!(p.push_pad(Pad { length: 6 }));
        let request = ReConfigParameter::AddIncoming { request: 3, streams: 2 };
        let result = ReConfigResult::DENIED;
        let response = ReConfigResponse { request: 4, result, next_tsns: None };
        let parameters = vec![ReConfigParameter::Response(response), request];
        assert!(p.push_re_config(&ReConfig { parameters }));
        assert!(p.push_dtls(true, &[0x2f; 24]));
        let hmac = Bytes::from_static(&[9; 32]);
        assert!(p.push_auth(&Auth { flags: 0, key: 1, algorithm: 3, hmac }));
        let (address, other) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let requests = vec![
            AsconfRequest::Add { request: 1, address: other },
            AsconfRequest::Delete { request: 2, address },
        ];
        assert!(p.push_asconf(&Asconf { serial: 5, address, requests }));
        let refused = AsconfResponse::error(2, ErrorCause::DeleteSourceAddress(Bytes::new()));
        let responses = vec![AsconfResponse::Success { request: 1 }, refused];
        assert!(p.push_asconf_ack(&AsconfAck { serial: 5, responses }));
        assert!(p.push_chunk(0xc3, 0, b"1234") && p.push_chunk(3, 0, b"short"));
    })
}

fn ends() -> (SocketAddr, SocketAddr) {
    ("10.0.1.1:9899".parse().unwrap(), "10.0.1.2:9899".parse().unwrap())
}

/// One of each.
#[expect(clippy::too_many_lines, reason = "a list of cases")]
fn all_events() -> Vec<Event> {
    let (path, bytes, total_bytes) = (2, 1452, 2904);
    let (local, remote) = ends();
    let packet = PacketSummary::of(12, Some(1), local, remote, &all_chunks());
    vec![
        Event::Run {
            schema: SCHEMA_VERSION,
            scenario: "two \"paths\"".to_owned(),
            profile: "2006".to_owned(),
            preset: "cmt".to_owned(),
            seed: u64::MAX,
        },
        Event::PacketSent(packet.clone()),
        Event::PacketReceived(PacketSummary { path: None, ..packet }),
        Event::PacketDropped { packet: 1, cause: "loss".to_owned(), link: Some(0) },
        Event::PacketDropped { packet: 2, cause: "no_route".to_owned(), link: None },
        Event::PathAdded {
            path,
            local: "[::1]:1".to_owned(),
            remote: "[::2]:2".to_owned(),
            state: "unconfirmed".to_owned(),
        },
        Event::PathState { path, from: "active".to_owned(), to: "inactive".to_owned() },
        Event::SharedBottleneck {
            paths: (1, path),
            sign: "delays".to_owned(),
            events: (7, 9),
            matched: 6,
            ratio: 6.0 / 7.0,
            threshold: 0.5,
            needed: Some(5),
            chance: 0.007,
            lag_s: -0.02,
            suppressed: Some(path),
        },
        Event::PathRank { path, rank: "cost=3".to_owned() },
        Event::PathSuppressed { path, reason: "shared_bottleneck".to_owned() },
        Event::SharedHops { path, with: 1, disjoint: 0.25 },
        Event::PathRestored { path, reason: "better".to_owned() },
        Event::PrimaryElected { path, by_peer: true, reason: "failed".to_owned() },
        Event::NoAnswer {
            path,
            local: "10.0.2.1:9899".to_owned(),
            remote: "172.17.0.1:9899".to_owned(),
        },
        Event::AddressGone { path, local: "10.0.2.1:9899".to_owned() },
        Event::PathMtu { path, mtu_bytes: 1420, reason: "confirmed".to_owned() },
        Event::PathRemoved { path },
        Event::PathMetrics(PathMetrics {
            path,
            cwnd_bytes: 3000,
            ssthresh_bytes: u64::MAX,
            flight_size_bytes: 0,
            rto_s: 1.000_000_001,
            srtt_s: Some(0.1),
            rttvar_s: 1.0 / 3.0,
            error_count: 0,
        }),
        Event::T3Expired { path },
        Event::FastRetransmit { path, chunks: 3 },
        Event::TailLossProbe { path },
        Event::Queued { bytes, total_bytes },
        Event::Acknowledged { bytes, total_bytes },
        Event::Delivered { bytes, total_bytes },
        Event::ReceiveBufferBlocked,
        Event::ReceiveBufferUnblocked { blocked_s: 0.25 },
        Event::Connected { incoming: true },
        Event::SendBufferEmpty,
        Event::PeerShutdown,
        Event::Restarted,
        Event::StreamsReconfigured {
            request: "reset_outgoing".to_owned(),
            streams: vec![0, 9],
            added: 0,
            outcome: "performed".to_owned(),
            by_peer: true,
        },
        Event::IncomingStreamsReset { streams: vec![] },
        Event::IncomingStreamsAdded { added: 3, streams: 13 },
        Event::PeerError { cause: 12 },
        Event::MessageAbandoned { stream: 3, ppid: 7, was_sent: true },
        Event::Closed { reason: "aborted by this side".to_owned() },
        Event::Recording(Recording {
            schema: SCHEMA_VERSION,
            version: "0.1.0".to_owned(),
            started_s: 1_750_000_000.5,
            profile: "fast".to_owned(),
            preset: "cmt".to_owned(),
            parameters: [("rto_min".to_owned(), "300 ms".to_owned())].into(),
            is_protected: true,
            header_bytes: 28,
            rate_bps: Some(5_000_000),
        }),
        Event::PathSample(PathSample {
            path,
            since_s: 0.25,
            state: "active".to_owned(),
            suppressed: Some("slow".to_owned()),
            packets_sent: 10,
            packets_received: 5,
            bytes_sent: 14_000,
            data_chunks_sent: 9,
            retransmissions: 1,
            redundant_chunks_sent: 0,
            chunks_lost: 1,
            t3_expirations: 0,
            acked_bytes: 11_616,
            rtt_samples: 4,
            rtt_s: Some(0.041),
            rtt_via: Some(1),
            rtt_heartbeat_s: Some(0.04),
            cwnd_bytes: 30_000,
            flight_size_bytes: 2904,
            mtu_bytes: 1500,
        }),
        Event::TransferSample(TransferSample {
            since_s: 0.25,
            queued_bytes: 20_000,
            acked_bytes: 11_616,
            peer_window_bytes: 8_000_000,
            receive_buffer_blocked_s: 0.0,
        }),
        Event::Recorded(Recorded {
            completed: true,
            content_bytes: Some(20_000),
            transfer_time_s: Some(1.25),
        }),
    ]
}

fn written(events: &[Event]) -> Vec<u8> {
    let mut lines = JsonLines::new(Vec::new());
    for (i, event) in events.iter().enumerate() {
        // Nanoseconds survive.
        let at = Instant::from_nanos(1_000_000_000_000_000 + i as u64);
        lines.write(at, "a", event).unwrap();
    }
    lines.into_inner()
}

#[test]
fn what_is_written_is_read() {
    let events = all_events();
    let lines = written(&events);
    let records: Vec<Record> = Records::new(lines.as_slice()).map(Result::unwrap).collect();
    assert_eq!(records.len(), events.len());
    for (i, (record, event)) in records.iter().zip(&events).enumerate() {
        assert_eq!(record.event, *event);
        assert_eq!(record.time, Instant::from_nanos(1_000_000_000_000_000 + i as u64));
    }
}

#[test]
fn chunks_are_summed_up() {
    let chunks = ChunkSummary::of_packet(&all_chunks());
    assert_eq!(chunks.len(), 24);
    assert_eq!(
        chunks[2],
        ChunkSummary::Data { tsn: 1, stream: 0, ssn: 0, bytes: 3, flags: "IUE".to_owned() }
    );
    assert_eq!(
        chunks[3],
        ChunkSummary::Sack {
            cum_tsn_ack: 9,
            a_rwnd: 1024,
            gap_ack_blocks: vec![(2, 3)],
            duplicate_tsns: vec![8],
        }
    );
    assert_eq!(chunks[7], ChunkSummary::Error { causes: vec![3] });
    assert_eq!(chunks[13], ChunkSummary::Timestamp { timestamp: 7, echo: Some(8) });
    assert_eq!(chunks[14], ChunkSummary::SackPath { serial: 5, failed: true });
    let candidates = ChunkSummary::Candidates { serial: 2, seen: 1, candidates: 1 };
    assert_eq!(chunks[15], candidates);
    assert_eq!(chunks[16], ChunkSummary::Pad { bytes: 6 });
    let re_config = ChunkSummary::ReConfig {
        parameters: vec!["response".to_owned(), "add_incoming".to_owned()],
        requests: vec![4, 3],
        results: vec![2],
    };
    assert_eq!(chunks[17], re_config);
    assert_eq!(chunks[18], ChunkSummary::Dtls { restart: true, bytes: 24 });
    assert_eq!(chunks[19], ChunkSummary::Auth { key: 1, algorithm: 3, bytes: 32 });
    let asconf = ChunkSummary::Asconf {
        serial: 5,
        address: "10.0.0.1".to_owned(),
        requests: vec!["add".to_owned(), "delete".to_owned()],
        addresses: vec!["10.0.0.2".to_owned(), "10.0.0.1".to_owned()],
    };
    assert_eq!(chunks[20], asconf);
    let ack = ChunkSummary::AsconfAck { serial: 5, failed: vec![2], causes: vec![0xa2] };
    assert_eq!(chunks[21], ack);
    assert_eq!(chunks[22], ChunkSummary::Unknown { code: 0xc3, bytes: 8 });
    assert!(matches!(&chunks[23], ChunkSummary::Malformed { .. }), "{:?}", chunks[23]);
}

#[test]
fn a_packet_that_is_none_is_told() {
    let chunks = ChunkSummary::of_packet(&Bytes::from_static(b"no"));
    assert!(matches!(&chunks[..], [ChunkSummary::Malformed { .. }]), "{chunks:?}");
}

#[test]
fn errors_name_the_line_and_the_next_is_read() {
    let good = String::from_utf8(written(&[Event::SendBufferEmpty])).unwrap();
    let early = r#"{"time_s":-1,"host":"a","event":"restarted"}"#;
    let text = format!("{good}\n{{\"time_s\": 1}}\n{good}{early}\nnonsense");
    let all: Vec<_> = Records::new(text.as_bytes()).collect();
    let wrong: Vec<String> =
        all.iter().filter_map(|r| r.as_ref().err()).map(ToString::to_string).collect();
    assert_eq!(all.iter().filter(|r| r.is_ok()).count(), 2);
    assert_eq!(wrong.len(), 3);
    assert!(wrong[0].starts_with("line 3: not a record of a trace: missing field"), "{wrong:?}");
    assert!(wrong[1].contains("line 5") && wrong[1].contains("-1"), "{wrong:?}");
    assert!(wrong[2].starts_with("line 6: "), "{wrong:?}");
}

#[test]
fn a_line_without_end_is_not_kept_in_memory() {
    let endless = std::io::BufReader::new(std::io::repeat(b'x'));
    let all: Vec<_> = Records::new(endless).collect();
    assert_eq!(all.len(), 1);
    let error = all[0].as_ref().unwrap_err();
    assert!(matches!(error.kind, ReadErrorKind::TooLong), "{error}");
}

// ---- The schema ----

/// The schema in `docs`; renewed by a run with `UPDATE_SCHEMA=1`.
fn schema_in_docs() -> serde_json::Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/trace.schema.json");
    let mut current = schemars::schema_for!(Record);
    current.insert("title".to_owned(), "A line of a manypath trace".into());
    let current = format!("{}\n", serde_json::to_string_pretty(&current).unwrap());
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(&file, &current).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    let renew = "docs/trace.schema.json is old; renew it with \
                 UPDATE_SCHEMA=1 cargo test -p manypath-trace schema";
    assert!(kept == current, "{renew}");
    serde_json::from_str(&kept).unwrap()
}

#[test]
fn the_schema_knows_every_event_and_its_fields() {
    let schema = schema_in_docs();
    assert_eq!(schema["required"], serde_json::json!(["time_s", "host"]));
    let variants = schema["oneOf"].as_array().unwrap();
    for line in written(&all_events()).split(|&b| b == b'\n').filter(|line| !line.is_empty()) {
        let value: serde_json::Value = serde_json::from_slice(line).unwrap();
        let is_it = |v: &&serde_json::Value| v["properties"]["event"]["const"] == value["event"];
        let variant = variants.iter().find(is_it).unwrap_or_else(|| panic!("{value}"));
        // A variant may say that its fields are those of a definition.
        let shared = variant["$ref"].as_str().and_then(|name| schema.pointer(&name[1..]));
        let parts = [Some(&schema), Some(variant), shared];
        for name in value.as_object().unwrap().keys() {
            let is_known = parts.iter().flatten().any(|s| s["properties"].get(name).is_some());
            assert!(is_known, "{name} of {value}");
        }
        let needed =
            parts.iter().flatten().filter_map(|part| part["required"].as_array()).flatten();
        for name in needed {
            assert!(value.get(name.as_str().unwrap()).is_some(), "{name} is missing in {value}");
        }
    }
}

// ---- pcapng ----

/// Captured packets: interface, nanoseconds, direction, comment, bytes.
type Packets = Vec<(u32, u64, u32, Option<String>, Vec<u8>)>;

/// The contents of a capture file: the names of its interfaces, and its packets.
fn read(file: &[u8]) -> (Vec<String>, Packets) {
    use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption as Packet;
    use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption as Interface;
    let mut reader = PcapNgReader::new(file).unwrap();
    let (mut names, mut packets) = (Vec::new(), Vec::new());
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(interface) => {
                assert!(interface.options.contains(&Interface::IfTsResol(9)));
                names.extend(interface.options.iter().find_map(|option| match option {
                    Interface::IfName(name) => Some(name.to_string()),
                    _ => None,
                }));
            }
            Block::EnhancedPacket(packet) => {
                let (mut direction, mut comment) = (0, None);
                for option in &packet.options {
                    match option {
                        Packet::Flags(flags) => direction = *flags,
                        Packet::Comment(text) => comment = Some(text.to_string()),
                        _ => {}
                    }
                }
                let at = packet.timestamp.as_nanos() as u64;
                packets.push((packet.interface_id, at, direction, comment, packet.data.to_vec()));
            }
            block => panic!("{block:?}"),
        }
    }
    (names, packets)
}

fn capture(encapsulation: Encapsulation) -> Capture<Vec<u8>> {
    let mut capture = Capture::new(Vec::new(), "a", "a test", encapsulation).unwrap();
    capture.name_path(1, ends());
    capture
}

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

#[test]
fn packets_keep_their_order_and_dropped_ones_say_why() {
    let mut capture = capture(Encapsulation::Ip);
    capture.sent(at(1), 10, ends(), &data_packet(1), None);
    capture.sent(at(2), 11, ends(), &data_packet(2), None);
    capture.received(at(3), ends(), &data_packet(90), None).unwrap();
    capture.settle(11, Some("dropped: loss".to_owned())).unwrap();
    capture.settle(11, None).unwrap(); // known already
    capture.settle(10, None).unwrap();
    capture.settle(999, None).unwrap(); // another host's
    capture.sent(at(4), 12, ends(), &data_packet(3), None);
    capture.finish().unwrap();
    let (names, packets) = read(&capture.into_inner());
    assert_eq!(names, ["a path 1"]);
    let seen: Vec<_> = packets.iter().map(|p| (p.1, p.2, p.3.as_deref())).collect();
    assert_eq!(
        seen,
        [
            (1, 2, None),
            (2, 2, Some("dropped: loss")),
            (3, 1, None),
            (4, 2, Some("under way at the end of the run")),
        ]
    );
}

#[test]
fn headers_and_checksums_are_right() {
    for (encapsulation, header, protocol) in
        [(Encapsulation::Ip, 20, 132), (Encapsulation::Udp, 28, 17)]
    {
        let sctp = data_packet(1);
        let mut capture = capture(encapsulation);
        capture.received(at(1), ends(), &sctp, None).unwrap();
        capture.finish().unwrap();
        let (_, packets) = read(&capture.into_inner());
        let ip = &packets[0].4;
        assert_eq!(ip.len(), header + sctp.len());
        assert_eq!(u16::from_be_bytes([ip[2], ip[3]]) as usize, ip.len());
        assert_eq!(ip[9], protocol);
        assert_eq!(ip[12..20], [10, 0, 1, 2, 10, 0, 1, 1], "from the peer to the host");
        let sliced = etherparse::SlicedPacket::from_ip(ip).unwrap();
        if let Some(etherparse::TransportSlice::Udp(udp)) = sliced.transport {
            assert_eq!((udp.source_port(), udp.destination_port()), (9899, 9899));
            assert_eq!(usize::from(udp.length()), 8 + sctp.len());
        }
        let carried = Bytes::copy_from_slice(&ip[header..]);
        manypath_wire::Packet::parse(carried, manypath_wire::Checksum::Verify).unwrap();
    }
}

#[test]
fn a_wrong_checksum_stays_wrong() {
    let mut sctp = data_packet(1).to_vec();
    sctp[8..12].copy_from_slice(&[1, 2, 3, 4]);
    let mut capture = capture(Encapsulation::Ip);
    capture.received(at(1), ends(), &Bytes::from(sctp), None).unwrap();
    capture.finish().unwrap();
    assert_eq!(read(&capture.into_inner()).1[0].4[28..32], [1, 2, 3, 4]);
}

#[test]
fn packets_wait_for_the_names_of_the_paths_but_not_for_ever() {
    let mut capture = Capture::new(Vec::new(), "z", "", Encapsulation::Ip).unwrap();
    capture.received(at(1), ends(), &data_packet(1), None).unwrap();
    capture.name_path(1, ends());
    let other = ("10.0.9.1:1".parse().unwrap(), "10.0.9.2:1".parse().unwrap());
    capture.received(at(2), other, &data_packet(2), None).unwrap();
    capture.finish().unwrap();
    assert_eq!(read(&capture.into_inner()).0, ["z path 1", "z 10.0.9.1 to 10.0.9.2"]);

    let mut capture = Capture::new(Vec::new(), "z", "", Encapsulation::Ip).unwrap();
    for i in 0..200 {
        capture.received(at(i), ends(), &data_packet(1), None).unwrap();
    }
    // Not finished: what is in the file was written without knowing a path.
    let (names, packets) = read(&capture.into_inner());
    assert_eq!(names, ["z 10.0.1.1 to 10.0.1.2"]);
    assert!(packets.len() >= 200 - 64, "{}", packets.len());
}

#[test]
fn addresses_of_two_families_are_an_error() {
    let mut capture = capture(Encapsulation::Ip);
    let mixed = ("10.0.1.1:1".parse().unwrap(), "[::1]:1".parse().unwrap());
    let error = capture.received(at(1), mixed, &data_packet(1), None).unwrap_err();
    assert!(error.to_string().contains("two families"), "{error}");
}
