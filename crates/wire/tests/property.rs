//! Properties: what is encoded decodes to itself and encodes to the same bytes again, and no bytes
//! whatever make decoding panic.

use bytes::Bytes;
use manypath_wire::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

const HEADER: CommonHeader =
    CommonHeader { source_port: 9899, destination_port: 1, verification_tag: 0xdead_beef };

/// A chunk to be written.
#[derive(Debug, Clone)]
enum Spec {
    Data(Data),
    IData(IData),
    Sack { cum: u32, a_rwnd: u32, flags: u8, gaps: Vec<(u16, u16)>, dups: Vec<u32> },
    NrSack { cum: u32, a_rwnd: u32, flags: u8, blocks: [Vec<(u16, u16)>; 2], dups: Vec<u32> },
    Init { ack: bool, numbers: (u32, u32, u16, u16, u32), params: Vec<Parameter> },
    Heartbeat { ack: bool, info: Vec<u8> },
    Abort { tag_reflected: bool, causes: Vec<ErrorCause> },
    Error { causes: Vec<ErrorCause> },
    Shutdown(u32),
    CookieEcho(Vec<u8>),
    Bare(Chunk),
    Unknown { ty: u8, flags: u8, value: Vec<u8> },
}

impl Spec {
    fn push(&self, packet: &mut PacketBuilder<'_>) -> bool {
        match self {
            Spec::Data(Data { tsn, stream, ssn, ppid, flags, payload }) => {
                packet.push_data(*tsn, *stream, *ssn, *ppid, *flags, payload)
            }
            Spec::IData(IData { tsn, stream, mid, ppid_or_fsn, flags, payload }) => {
                packet.push_i_data(*tsn, *stream, *mid, *ppid_or_fsn, *flags, payload)
            }
            Spec::Sack { cum, a_rwnd, flags, gaps, dups } => packet.push_sack(
                Tsn(*cum),
                *a_rwnd,
                *flags,
                gaps.iter().copied(),
                dups.iter().map(|tsn| Tsn(*tsn)),
            ),
            Spec::NrSack { cum, a_rwnd, flags, blocks: [gaps, nr], dups } => {
                let dups: Vec<Tsn> = dups.iter().copied().map(Tsn).collect();
                packet.push_nr_sack(Tsn(*cum), *a_rwnd, *flags, [gaps, nr], dups.iter().copied())
            }
            Spec::Init { ack, .. } if *ack => packet.push_init_ack(&self.init()),
            Spec::Init { .. } => packet.push_init(&self.init()),
            Spec::Heartbeat { ack, info } if *ack => packet.push_heartbeat_ack(info),
            Spec::Heartbeat { info, .. } => packet.push_heartbeat(info),
            Spec::Abort { tag_reflected, causes } => packet.push_abort(*tag_reflected, causes),
            Spec::Error { causes } => packet.push_error(causes),
            Spec::Shutdown(cum) => packet.push_shutdown(Tsn(*cum)),
            Spec::CookieEcho(cookie) => packet.push_cookie_echo(cookie),
            Spec::Bare(chunk) => packet.push(chunk),
            Spec::Unknown { ty, flags, value } => packet.push_chunk(*ty, *flags, value),
        }
    }

    fn init(&self) -> Init {
        let Spec::Init { numbers, params, .. } = self else { unreachable!("asked for an INIT") };
        let (initiate_tag, a_rwnd, outbound_streams, inbound_streams, tsn) = *numbers;
        let params = params.iter().cloned().collect();
        let initial_tsn = Tsn(tsn);
        Init { initiate_tag, a_rwnd, outbound_streams, inbound_streams, initial_tsn, params }
    }

    /// Compares with what was decoded, field by field.
    fn check(&self, chunk: &Chunk) {
        match (self, chunk) {
            (Spec::Data(sent), Chunk::Data(data)) => assert_eq!(sent, data),
            (Spec::IData(sent), Chunk::IData(data)) => {
                assert_eq!(sent, data);
                let number = (data.ppid(), data.fsn());
                let begin = (Some(sent.ppid_or_fsn), 0);
                let later = (None, sent.ppid_or_fsn);
                assert_eq!(number, if sent.flags.begin() { begin } else { later });
            }
            (Spec::Sack { cum, a_rwnd, flags, gaps, dups }, Chunk::Sack(sack)) => {
                let blocks: Vec<_> = sack.gap_ack_blocks().map(|b| (b.start, b.end)).collect();
                let duplicates: Vec<_> = sack.duplicate_tsns().map(|tsn| tsn.0).collect();
                assert_eq!((&blocks, &duplicates), (gaps, dups));
                assert_eq!((sack.cum_tsn_ack.0, sack.a_rwnd, sack.flags), (*cum, *a_rwnd, *flags));
            }
            (Spec::NrSack { cum, a_rwnd, flags, blocks, dups }, Chunk::NrSack(sack)) => {
                let read = [sack.gap_ack_blocks(), sack.nr_gap_ack_blocks()]
                    .map(|b| b.map(|b| (b.start, b.end)).collect::<Vec<_>>());
                let duplicates: Vec<_> = sack.duplicate_tsns().map(|tsn| tsn.0).collect();
                assert_eq!((&read, &duplicates), (blocks, dups));
                assert_eq!((sack.cum_tsn_ack.0, sack.a_rwnd, sack.flags), (*cum, *a_rwnd, *flags));
            }
            (Spec::Init { ack: false, params, .. }, Chunk::Init(init))
            | (Spec::Init { ack: true, params, .. }, Chunk::InitAck(init)) => {
                assert_eq!(&self.init(), init);
                let decoded: Result<Vec<_>, _> = init.params.iter().collect();
                assert_eq!(decoded.as_ref(), Ok(params));
            }
            (Spec::Heartbeat { ack: false, info: sent }, Chunk::Heartbeat(info))
            | (Spec::Heartbeat { ack: true, info: sent }, Chunk::HeartbeatAck(info)) => {
                assert_eq!(info.0, sent);
            }
            (Spec::Abort { tag_reflected, causes }, Chunk::Abort(abort)) => {
                assert_eq!(abort.tag_reflected, *tag_reflected);
                assert_eq!(abort.causes.iter().collect::<Result<Vec<_>, _>>().as_ref(), Ok(causes));
            }
            (Spec::Error { causes }, Chunk::Error(error)) => {
                assert_eq!(error.causes.iter().collect::<Result<Vec<_>, _>>().as_ref(), Ok(causes));
            }
            (Spec::Shutdown(cum), Chunk::Shutdown(shutdown)) => {
                assert_eq!(shutdown.cum_tsn_ack.0, *cum);
            }
            (Spec::CookieEcho(sent), Chunk::CookieEcho(cookie)) => assert_eq!(cookie, sent),
            (Spec::Bare(sent), chunk) => assert_eq!(sent, chunk),
            (Spec::Unknown { ty, flags, value }, Chunk::Unknown(chunk)) => {
                assert_eq!((chunk.ty(), chunk.flags()), (*ty, *flags));
                assert_eq!(chunk.value(), value);
            }
            _ => panic!("{self:?} became {chunk:?}"),
        }
    }
}

fn some_bytes(max: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..max).prop_map(Bytes::from)
}

fn parameter() -> impl Strategy<Value = Parameter> {
    let unknown = any::<u16>().prop_filter(
        "a type that is not known",
        |ty| !matches!(ty, 1 | 5..=9 | 11 | 12 | 0x8001..=0x8004 | 0x8006 | 0x8008 | 0xc000),
    );
    prop_oneof![
        some_bytes(40).prop_map(Parameter::HeartbeatInfo),
        any::<[u8; 4]>().prop_map(|octets| Parameter::Ipv4(octets.into())),
        any::<[u8; 16]>().prop_map(|octets| Parameter::Ipv6(octets.into())),
        some_bytes(100).prop_map(Parameter::StateCookie),
        some_bytes(20).prop_map(Parameter::UnrecognizedParameter),
        any::<u32>().prop_map(Parameter::CookiePreservative),
        any::<u32>().prop_map(Parameter::ZeroChecksumAcceptable),
        some_bytes(40).prop_map(Parameter::Random),
        some_bytes(40).prop_map(Parameter::AuthenticatedChunks),
        vec(any::<u16>(), 0..5).prop_map(Parameter::HmacAlgorithms),
        some_bytes(20).prop_map(Parameter::HostNameAddress),
        vec(any::<u16>(), 0..5).prop_map(Parameter::SupportedAddressTypes),
        some_bytes(9).prop_map(Parameter::SupportedExtensions),
        (any::<(u32, u8)>(), vec(any::<u8>(), 1..9)).prop_map(|((tie_breaker, flags), methods)| {
            let flags = DtlsKeyManagementFlags(flags);
            let offer = DtlsKeyManagement::new(tie_breaker, flags, &methods);
            Parameter::DtlsKeyManagement(offer.expect("at least one method"))
        }),
        (unknown, vec(any::<u8>(), 0..20))
            .prop_map(|(ty, value)| Parameter::Unknown(UnknownParameter::new(ty, &value))),
    ]
}

fn cause() -> impl Strategy<Value = ErrorCause> {
    prop_oneof![
        any::<u16>().prop_map(|id| ErrorCause::InvalidStreamIdentifier(StreamId(id))),
        vec(any::<u16>(), 0..5).prop_map(ErrorCause::MissingMandatoryParameter),
        any::<u32>().prop_map(ErrorCause::StaleCookie),
        Just(ErrorCause::OutOfResource),
        some_bytes(24).prop_map(ErrorCause::UnresolvableAddress),
        some_bytes(24).prop_map(ErrorCause::UnrecognizedChunkType),
        Just(ErrorCause::InvalidMandatoryParameter),
        some_bytes(24).prop_map(ErrorCause::UnrecognizedParameters),
        any::<u32>().prop_map(|tsn| ErrorCause::NoUserData(Tsn(tsn))),
        Just(ErrorCause::CookieReceivedWhileShuttingDown),
        some_bytes(40).prop_map(ErrorCause::RestartWithNewAddresses),
        some_bytes(24).prop_map(ErrorCause::UserInitiatedAbort),
        some_bytes(24).prop_map(ErrorCause::ProtocolViolation),
        Just(ErrorCause::MissingDtlsChunkSupport),
        Just(ErrorCause::NoCommonDtlsKeyManagementMethod),
        Just(ErrorCause::DtlsKeyManagementTieBreakerCollision),
        Just(ErrorCause::IncompatibleDtlsKeyManagementRoles),
        any::<u16>().prop_map(ErrorCause::UnsupportedHmacIdentifier),
        some_bytes(24).prop_map(ErrorCause::DeleteLastAddress),
        some_bytes(24).prop_map(ErrorCause::ResourceShortage),
        some_bytes(24).prop_map(ErrorCause::DeleteSourceAddress),
        Just(ErrorCause::IllegalAsconfAck),
        some_bytes(24).prop_map(ErrorCause::NoAuthorization),
        (
            prop_oneof![14..=99_u16, 104..=0x9f_u16, 0xa5..=0x0104_u16, 0x0106..=u16::MAX],
            some_bytes(24)
        )
            .prop_map(|(code, value)| ErrorCause::Unknown { code, value }),
    ]
}

fn data() -> impl Strategy<Value = Spec> {
    let numbers = (any::<u32>(), any::<u16>(), any::<u16>(), any::<u32>(), any::<u8>());
    (numbers, some_bytes(80)).prop_map(|((tsn, stream, ssn, ppid, flags), payload)| {
        let (tsn, stream, ssn, flags) = (Tsn(tsn), StreamId(stream), Ssn(ssn), DataFlags(flags));
        Spec::Data(Data { tsn, stream, ssn, ppid, flags, payload })
    })
}

fn i_data() -> impl Strategy<Value = Spec> {
    let numbers = (any::<u32>(), any::<u16>(), any::<u32>(), any::<u32>(), any::<u8>());
    (numbers, some_bytes(80)).prop_map(|((tsn, stream, mid, ppid_or_fsn, flags), payload)| {
        let (tsn, stream, mid, flags) = (Tsn(tsn), StreamId(stream), Mid(mid), DataFlags(flags));
        Spec::IData(IData { tsn, stream, mid, ppid_or_fsn, flags, payload })
    })
}

fn named_address() -> impl Strategy<Value = NamedAddress> {
    let kinds = [
        CandidateKind::Host,
        CandidateKind::Reflexive,
        CandidateKind::Mapped,
        CandidateKind::Relayed,
    ];
    let kind = proptest::sample::select(kinds.to_vec());
    (kind, any::<(u8, std::net::IpAddr, u16)>()).prop_map(|(kind, (base, ip, port))| NamedAddress {
        kind,
        base,
        address: (ip, port).into(),
    })
}

fn re_config() -> impl Strategy<Value = ReConfigParameter> {
    let streams = || vec(any::<u16>().prop_map(StreamId), 0..9);
    prop_oneof![
        (any::<(u32, u32, u32)>(), streams()).prop_map(|((request, response, tsn), streams)| {
            let last_tsn = Tsn(tsn);
            ReConfigParameter::OutgoingReset(OutgoingReset { request, response, last_tsn, streams })
        }),
        (any::<u32>(), streams())
            .prop_map(|(request, streams)| ReConfigParameter::IncomingReset { request, streams }),
        any::<u32>().prop_map(|request| ReConfigParameter::AssociationReset { request }),
        any::<(u32, u32, Option<(u32, u32)>)>().prop_map(|(request, result, next)| {
            let result = ReConfigResult(result);
            let next_tsns = next.map(|(own, peers)| (Tsn(own), Tsn(peers)));
            ReConfigParameter::Response(ReConfigResponse { request, result, next_tsns })
        }),
        any::<(u32, u16)>()
            .prop_map(|(request, streams)| ReConfigParameter::AddOutgoing { request, streams }),
        any::<(u32, u16)>()
            .prop_map(|(request, streams)| ReConfigParameter::AddIncoming { request, streams }),
    ]
}

fn asconf_request() -> impl Strategy<Value = AsconfRequest> {
    let unknown = any::<u16>()
        .prop_filter("a type that is not known", |ty| !matches!(ty, 0xc001 | 0xc002 | 0xc004));
    let value = || any::<(u32, std::net::IpAddr)>();
    prop_oneof![
        value().prop_map(|(request, address)| AsconfRequest::Add { request, address }),
        value().prop_map(|(request, address)| AsconfRequest::Delete { request, address }),
        value().prop_map(|(request, address)| AsconfRequest::SetPrimary { request, address }),
        (unknown, vec(any::<u8>(), 0..20))
            .prop_map(|(ty, value)| AsconfRequest::Unknown(UnknownParameter::new(ty, &value))),
    ]
}

fn asconf_response() -> impl Strategy<Value = AsconfResponse> {
    let unknown =
        any::<u16>().prop_filter("a type that is not known", |ty| !matches!(ty, 0xc003 | 0xc005));
    prop_oneof![
        any::<u32>().prop_map(|request| AsconfResponse::Success { request }),
        (any::<u32>(), vec(cause(), 0..3)).prop_map(|(request, causes)| AsconfResponse::Error {
            request,
            causes: causes.into_iter().collect()
        }),
        (unknown, vec(any::<u8>(), 0..20))
            .prop_map(|(ty, value)| AsconfResponse::Unknown(UnknownParameter::new(ty, &value))),
    ]
}

fn asconf() -> impl Strategy<Value = Spec> {
    prop_oneof![
        (any::<(u32, std::net::IpAddr)>(), vec(asconf_request(), 0..5)).prop_map(
            |((serial, address), requests)| Spec::Bare(Chunk::Asconf(Asconf {
                serial,
                address,
                requests
            }))
        ),
        (any::<u32>(), vec(asconf_response(), 0..5)).prop_map(|(serial, responses)| Spec::Bare(
            Chunk::AsconfAck(AsconfAck { serial, responses })
        )),
    ]
}

fn chunk() -> impl Strategy<Value = Spec> {
    let is_known = |ty: &u8| {
        use chunk_type::{
            ASCONF, ASCONF_ACK, DTLS, FORWARD_TSN, I_DATA, I_FORWARD_TSN, NR_SACK, PAD, RE_CONFIG,
            SACK_PATH, TIMESTAMP,
        };
        let is_of_rfc_9260 = matches!(*ty, 0..=15);
        is_of_rfc_9260
            || matches!(*ty, NR_SACK | I_DATA | DTLS | RE_CONFIG | PAD | TIMESTAMP | SACK_PATH)
            || matches!(*ty, FORWARD_TSN | I_FORWARD_TSN | ASCONF | ASCONF_ACK)
    };
    let unknown_ty = any::<u8>().prop_filter("a type that is not known", move |ty| !is_known(ty));
    let blocks = || vec(any::<(u16, u16)>(), 0..9);
    prop_oneof![
        data(),
        i_data(),
        (any::<(u32, u32, u8)>(), blocks(), blocks(), vec(any::<u32>(), 0..9)).prop_map(
            |((cum, a_rwnd, flags), gaps, nr, dups)| Spec::NrSack {
                cum,
                a_rwnd,
                flags,
                blocks: [gaps, nr],
                dups
            }
        ),
        (any::<(u32, u32, u8)>(), vec(any::<(u16, u16)>(), 0..9), vec(any::<u32>(), 0..9))
            .prop_map(|((cum, a_rwnd, flags), gaps, dups)| Spec::Sack {
                cum,
                a_rwnd,
                flags,
                gaps,
                dups
            }),
        (any::<bool>(), any::<(u32, u32, u16, u16, u32)>(), vec(parameter(), 0..6))
            .prop_map(|(ack, numbers, params)| Spec::Init { ack, numbers, params }),
        (any::<bool>(), vec(any::<u8>(), 0..50))
            .prop_map(|(ack, info)| Spec::Heartbeat { ack, info }),
        (any::<bool>(), vec(cause(), 0..4))
            .prop_map(|(tag_reflected, causes)| Spec::Abort { tag_reflected, causes }),
        vec(cause(), 0..4).prop_map(|causes| Spec::Error { causes }),
        any::<u32>().prop_map(Spec::Shutdown),
        vec(any::<u8>(), 0..200).prop_map(Spec::CookieEcho),
        Just(Spec::Bare(Chunk::ShutdownAck)),
        any::<(u32, Option<u32>)>().prop_map(|(timestamp, echo)| Spec::Bare(Chunk::Timestamp(
            Timestamp { timestamp, echo }
        ))),
        any::<(u32, bool)>()
            .prop_map(|(serial, failed)| Spec::Bare(Chunk::SackPath(SackPath { serial, failed }))),
        (any::<(bool, bool, u32, u32)>(), vec(named_address(), 0..=CANDIDATES_MAX)).prop_map(
            |((asks, direct_only, serial, seen), list)| Spec::Bare(Chunk::Candidates(Candidates {
                asks,
                direct_only,
                serial,
                seen,
                list
            }))
        ),
        (any::<(u32, bool)>(), vec(skipped(), 0..20)).prop_map(|((cum, interleaved), list)| {
            Spec::Bare(Chunk::ForwardTsn(ForwardTsn::new(Tsn(cum), interleaved, list)))
        }),
        Just(Spec::Bare(Chunk::CookieAck)),
        any::<u32>().prop_map(|tsn| Spec::Bare(Chunk::Ecne(Ecne { lowest_tsn: Tsn(tsn) }))),
        any::<u32>().prop_map(|tsn| Spec::Bare(Chunk::Cwr(Cwr { lowest_tsn: Tsn(tsn) }))),
        any::<bool>()
            .prop_map(|tag_reflected| Spec::Bare(Chunk::ShutdownComplete { tag_reflected })),
        (any::<bool>(), vec(any::<u8>(), DTLS_RECORD_MIN_LEN..200)).prop_map(
            |(restart, record)| Spec::Bare(Chunk::Dtls(Dtls { restart, record: record.into() }))
        ),
        (any::<(u8, u16, u16)>(), some_bytes(40)).prop_map(|((flags, key, algorithm), hmac)| {
            Spec::Bare(Chunk::Auth(Auth { flags, key, algorithm, hmac }))
        }),
        (0..2000_u16).prop_map(|length| Spec::Bare(Chunk::Pad(Pad { length }))),
        vec(re_config(), 0..3)
            .prop_map(|parameters| Spec::Bare(Chunk::ReConfig(ReConfig { parameters }))),
        asconf(),
        (unknown_ty, any::<u8>(), vec(any::<u8>(), 0..30))
            .prop_map(|(ty, flags, value)| Spec::Unknown { ty, flags, value }),
    ]
}

fn skipped() -> impl Strategy<Value = SkippedMessage> {
    any::<(u16, bool, u32)>().prop_map(|(stream, unordered, mid)| SkippedMessage {
        stream: StreamId(stream),
        unordered,
        mid: Mid(mid),
    })
}

fn encode(specs: &[Spec]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut packet = PacketBuilder::new(&mut out, HEADER, 65536);
    for spec in specs {
        assert!(spec.push(&mut packet), "a small chunk fits");
    }
    packet.finish(true);
    out
}

/// Reads everything there is to read.
fn walk(bytes: Bytes) -> Result<(), DecodeError> {
    let packet = Packet::parse(bytes, Checksum::Ignore)?;
    let mut first_error = None;
    for chunk in packet.chunks() {
        match chunk {
            Ok(Chunk::Init(init) | Chunk::InitAck(init)) => {
                first_error = first_error.or(init.params.iter().find_map(Result::err));
                for parameter in init.params.iter().map_while(Result::ok) {
                    if let Parameter::DtlsKeyManagement(offer) = parameter {
                        assert!((1..=255).contains(&offer.methods().len()));
                        assert!(offer.raw().len() >= 9 + offer.methods().len());
                        _ = (offer.tie_breaker(), offer.flags());
                    }
                }
            }
            Ok(Chunk::Dtls(dtls)) => {
                assert!(dtls.record.len() >= DTLS_RECORD_MIN_LEN);
                let content = dtls.record.slice(DTLS_RECORD_HEADER_LEN..);
                assert!(chunks_of(&content).count() <= content.len().div_ceil(4));
            }
            Ok(Chunk::Abort(Abort { causes, .. }) | Chunk::Error(ErrorChunk { causes })) => {
                first_error = first_error.or(causes.iter().find_map(Result::err));
            }
            Ok(Chunk::Sack(sack) | Chunk::NrSack(sack)) => {
                for blocks in [sack.gap_ack_blocks(), sack.nr_gap_ack_blocks()] {
                    assert_eq!(blocks.len(), blocks.count());
                }
                let duplicates = sack.duplicate_tsns();
                assert_eq!(duplicates.len(), duplicates.count());
                let _ = sack.gap_ack_blocks_ascend();
            }
            Ok(_) => {}
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    first_error.map_or(Ok(()), Err)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_encoded_decodes_to_itself(specs in vec(chunk(), 0..6)) {
        let bytes = Bytes::from(encode(&specs));
        let packet = Packet::parse(bytes.clone(), Checksum::Verify).expect("a valid header");
        prop_assert_eq!(packet.header, HEADER);
        let chunks: Vec<Chunk> = packet.chunks().collect::<Result<_, _>>().expect("valid chunks");
        prop_assert_eq!(chunks.len(), specs.len());
        for (spec, chunk) in specs.iter().zip(&chunks) {
            spec.check(chunk);
        }

        let mut again = Vec::new();
        let mut builder = PacketBuilder::new(&mut again, HEADER, bytes.len());
        for chunk in &chunks {
            prop_assert!(builder.push(chunk));
        }
        builder.finish(true);
        prop_assert_eq!(bytes, again);
    }

    #[test]
    fn chunks_decode_the_same_without_a_common_header(
        specs in vec(chunk(), 0..6),
        damage in vec((any::<Index>(), any::<u8>()), 0..3),
        cut in any::<Index>(),
    ) {
        let mut bytes = encode(&specs);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(COMMON_HEADER_LEN + cut.index(bytes.len() - COMMON_HEADER_LEN + 1));
        bytes[..2].copy_from_slice(&[1, 1]); // the ports are not zero, whatever the damage
        bytes[2..4].copy_from_slice(&[1, 1]);
        let bytes = Bytes::from(bytes);
        let packet = Packet::parse(bytes.clone(), Checksum::Ignore).expect("a valid header");
        let content = bytes.slice(COMMON_HEADER_LEN..);
        let kinds = |chunks: Vec<Result<Chunk, DecodeError>>| {
            chunks.into_iter().map(|chunk| chunk.map_err(|error| error.kind)).collect::<Vec<_>>()
        };
        let expected = kinds(packet.chunks().collect());
        prop_assert_eq!(kinds(chunks_of(&content).collect()), &expected[..]);
        prop_assert_eq!(kinds(into_chunks_of(content).collect()), &expected[..]);
    }

    #[test]
    fn a_dtls_chunk_decodes_whatever_is_reserved(
        record in vec(any::<u8>(), 0..100),
        flags in any::<u8>(),
        padding in any::<[u8; 4]>(),
    ) {
        let mut bytes = encode(&[]);
        let [before, after @ ..] = padding;
        let length = u8::try_from(DTLS_RECORD_OFFSET + record.len()).expect("a short record");
        bytes.extend_from_slice(&[chunk_type::DTLS, flags, 0, length, before]);
        bytes.extend_from_slice(&record);
        bytes.extend_from_slice(&after[..bytes.len().next_multiple_of(4) - bytes.len()]);
        let packet = Packet::parse(bytes.into(), Checksum::Ignore).expect("a valid header");
        let chunks: Vec<_> = packet.chunks().collect();
        if record.len() < DTLS_RECORD_MIN_LEN {
            prop_assert!(matches!(chunks[..], [Err(_)]));
        } else {
            let expected = Chunk::Dtls(Dtls { restart: flags & 1 != 0, record: record.into() });
            prop_assert_eq!(chunks, [Ok(expected)]);
        }
    }

    #[test]
    fn a_key_management_parameter_of_any_bytes_keeps_them(value in vec(any::<u8>(), 0..400)) {
        let sent = Parameter::Unknown(UnknownParameter::new(0x8006, &value));
        let params: Params = [sent].into_iter().collect();
        let decoded: Vec<_> = params.iter().map(|p| p.expect("never malformed")).collect();
        match &decoded[..] {
            [Parameter::DtlsKeyManagement(offer)] => {
                prop_assert!(value.len() > 5);
                prop_assert_eq!(offer.raw(), params.as_bytes());
                let methods = &value[5..];
                prop_assert_eq!(offer.methods(), &methods[..methods.len().min(255)]);
                prop_assert_eq!(offer.tie_breaker().to_be_bytes(), &value[..4]);
                prop_assert_eq!(offer.flags().0, value[4]);
            }
            [Parameter::Unknown(unknown)] => {
                prop_assert!(value.len() <= 5);
                prop_assert_eq!(unknown.raw(), params.as_bytes());
            }
            other => prop_assert!(false, "{:?}", other),
        }
        let again: Params = decoded.into_iter().collect();
        prop_assert_eq!(again.as_bytes(), params.as_bytes());
    }

    #[test]
    fn a_builder_never_exceeds_its_limit(specs in vec(chunk(), 1..8), max_len in 0usize..400) {
        let mut out = vec![7; 5];
        let mut packet = PacketBuilder::new(&mut out, HEADER, max_len);
        let mut pushed = 0;
        for spec in &specs {
            let (before, room) = (packet.len(), packet.remaining());
            if spec.push(&mut packet) {
                pushed += 1;
                prop_assert!(packet.len() - before <= room);
                prop_assert_eq!(packet.len() % 4, 0);
            } else {
                prop_assert_eq!(packet.len(), before, "nothing is written");
            }
        }
        let length = packet.finish(true);
        prop_assert!(length <= max_len.max(COMMON_HEADER_LEN));
        prop_assert_eq!(out.len(), 5 + length);
        let packet = Packet::parse(out.split_off(5).into(), Checksum::Verify).expect("valid");
        prop_assert_eq!(packet.chunks().filter(Result::is_ok).count(), pushed);
    }

    #[test]
    fn truncations_and_damage_never_panic(
        specs in vec(chunk(), 1..6),
        cut in any::<Index>(),
        damage in vec((any::<Index>(), any::<u8>()), 0..4),
    ) {
        let mut bytes = encode(&specs);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let bytes = Bytes::from(bytes);
        let cut = cut.index(bytes.len() + 1);
        for bytes in [bytes.clone(), bytes.slice(..cut)] {
            if let Err(error) = walk(bytes.clone()) {
                prop_assert!(error.offset <= bytes.len());
            }
        }
    }

    #[test]
    fn random_bytes_never_panic(mut bytes in vec(any::<u8>(), 0..300)) {
        let _ = walk(bytes.clone().into());
        // Once more with a plausible first chunk, which random bytes seldom have.
        if let Some(chunk) = bytes.get_mut(COMMON_HEADER_LEN..COMMON_HEADER_LEN + 4) {
            chunk[0] %= 17;
            chunk[2] = 0;
            let _ = walk(bytes.into());
        }
    }

    #[test]
    fn one_flipped_bit_fails_the_checksum(specs in vec(chunk(), 1..4), bit in any::<Index>()) {
        let mut bytes = encode(&specs);
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = Packet::parse(bytes.into(), Checksum::Verify).expect_err("damaged");
        let bad_checksum = matches!(error.kind, DecodeErrorKind::BadChecksum { .. });
        prop_assert!(bad_checksum);
    }
}
