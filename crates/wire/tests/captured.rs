//! Packets of a real peer (see `data/README.md`): each decodes to what it says, and encodes to the
//! same bytes again.

use std::net::{Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use manypath_wire::*;

/// Decodes a capture with its checksum verified, and checks that it encodes to the same bytes.
fn chunks(hex: &str) -> (CommonHeader, Vec<Chunk>) {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let bytes: Bytes = digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let packet = Packet::parse(bytes.clone(), Checksum::Verify).expect("a valid header");
    let chunks: Vec<Chunk> = packet.chunks().map(|chunk| chunk.expect("a valid chunk")).collect();

    let mut again = Vec::new();
    let mut builder = PacketBuilder::new(&mut again, packet.header, bytes.len());
    for chunk in &chunks {
        assert!(builder.push(chunk), "{} fits as it did", chunk.name());
    }
    builder.finish(true);
    assert_eq!(bytes, again, "encoding what was decoded");
    (packet.header, chunks)
}

macro_rules! capture {
    ($name:literal) => {
        chunks(include_str!(concat!("data/", $name, ".hex")))
    };
}

/// The only chunk of a packet, of the kind the pattern names.
macro_rules! only {
    ($name:literal, $pattern:pat => $value:expr) => {{
        let (header, mut chunks) = capture!($name);
        assert_eq!(chunks.len(), 1, "one chunk");
        let $pattern = chunks.remove(0) else { panic!("another chunk type") };
        (header, $value)
    }};
}

fn params(init: &Init) -> Vec<Parameter> {
    init.params.iter().map(|parameter| parameter.expect("a valid parameter")).collect()
}

fn causes(causes: &Causes) -> Vec<ErrorCause> {
    causes.iter().map(|cause| cause.expect("a valid cause")).collect()
}

/// Collecting the decoded parameters gives the bytes that were received.
fn assert_params_collect(init: &Init) {
    let collected: Params = params(init).into_iter().collect();
    assert_eq!(collected.as_bytes(), init.params.as_bytes());
}

#[test]
fn init() {
    let (header, init) = only!("init", Chunk::Init(init) => init);
    let expected = CommonHeader { source_port: 5000, destination_port: 5001, verification_tag: 0 };
    assert_eq!(header, expected);
    assert_eq!(init.initiate_tag, 0x96d9_3b75);
    assert_eq!(init.a_rwnd, 131_072);
    assert_eq!((init.outbound_streams, init.inbound_streams), (10, 2048));
    assert_eq!(init.initial_tsn, Tsn(0x87a4_3e70));
    assert_params_collect(&init);

    let params = params(&init);
    let v6 = |net| Parameter::Ipv6(Ipv6Addr::new(0xfd09, net, 0, 0, 0, 0, 0, 2));
    let v4 = |net| Parameter::Ipv4(Ipv4Addr::new(10, 9, net, 2));
    assert_eq!(params[params.len() - 4..], [v6(2), v4(2), v6(1), v4(1)]);
    assert!(params.contains(&Parameter::SupportedAddressTypes(vec![
        parameter_type::IPV4_ADDRESS,
        parameter_type::IPV6_ADDRESS,
    ])));
    let extensions = [0xc0, 0x0f, 0xc1, 0x80, 0x82];
    assert!(params.contains(&Parameter::SupportedExtensions(Bytes::copy_from_slice(&extensions))));
    assert_eq!(params[0], Parameter::ForwardTsnSupported);
}

#[test]
fn init_ack() {
    let (header, init) = only!("init_ack", Chunk::InitAck(init) => init);
    assert_eq!(header.verification_tag, 0x96d9_3b75, "the INIT's initiate tag");
    assert_params_collect(&init);
    let cookie = params(&init)
        .into_iter()
        .find_map(|p| if let Parameter::StateCookie(cookie) = p { Some(cookie) } else { None });

    let (echo_header, echo) = only!("cookie_echo", Chunk::CookieEcho(cookie) => cookie);
    assert_eq!(Some(echo), cookie, "the cookie comes back as it was sent");
    assert_eq!(echo_header.verification_tag, init.initiate_tag);
}

#[test]
fn init_with_unknown_parameters_and_its_answer() {
    let (_, init) = only!("init_unknown_parameters", Chunk::Init(init) => init);
    let [Parameter::Unknown(report), Parameter::Unknown(skip), preservative] = &params(&init)[..]
    else {
        panic!("two unknown parameters and a known one");
    };
    assert_eq!(report.value(), "report me");
    assert_eq!(report.action(), UnknownAction { stop: false, report: true });
    assert_eq!(skip.action(), UnknownAction { stop: false, report: false });
    assert_eq!(*preservative, Parameter::CookiePreservative(5000));

    let (_, answer) = only!("init_ack_unrecognized", Chunk::InitAck(init) => init);
    let expected = Parameter::UnrecognizedParameter(report.raw().clone());
    assert!(params(&answer).contains(&expected));
    assert_params_collect(&answer);
}

#[test]
fn cookie_ack() {
    let (_, chunks) = capture!("cookie_ack");
    assert_eq!(chunks, [Chunk::CookieAck]);
}

#[test]
fn heartbeat_and_its_answer() {
    let (_, sent) = only!("heartbeat", Chunk::Heartbeat(info) => info);
    assert_eq!(sent.0.len(), 36);
    let (_, answered) = only!("heartbeat_ack", Chunk::HeartbeatAck(info) => info);
    assert_eq!(sent, answered);
}

#[test]
fn bundled_sack_and_data() {
    let (_, chunks) = capture!("sack_data_data");
    let [Chunk::Sack(sack), Chunk::Data(last), Chunk::Data(first)] = &chunks[..] else {
        panic!("a SACK and two DATA");
    };
    assert_eq!(sack.gap_ack_blocks().len(), 0);
    assert_eq!(sack.duplicate_tsns().len(), 0);
    assert!(last.flags.end() && !last.flags.begin() && !last.flags.unordered());
    assert!(first.flags.begin() && !first.flags.end());
    assert_eq!(first.tsn, last.tsn.next());
    assert_eq!((last.stream, first.stream), (StreamId(0), StreamId(1)));
    assert!(first.payload.iter().all(|byte| *byte == b'x') && !first.payload.is_empty());
}

#[test]
fn sack_with_gaps_and_duplicates() {
    let (_, sack) = only!("sack_gaps_duplicates", Chunk::Sack(sack) => sack);
    assert_eq!(sack.cum_tsn_ack, Tsn(1000));
    let blocks: Vec<_> = sack.gap_ack_blocks().map(|b| (b.start, b.end)).collect();
    assert_eq!(blocks, [(2, 3), (6, 6)]);
    assert!(sack.gap_ack_blocks_ascend());
    assert_eq!(sack.duplicate_tsns().collect::<Vec<_>>(), [Tsn(1006)]);
}

#[test]
fn error_with_bundled_sack_and_data() {
    let (_, chunks) = capture!("error_sack_data");
    let [Chunk::Error(error), Chunk::Sack(sack), data @ ..] = &chunks[..] else {
        panic!("ERROR, SACK, DATA");
    };
    assert_eq!(causes(&error.causes), [ErrorCause::InvalidStreamIdentifier(StreamId(77))]);
    assert_eq!(sack.cum_tsn_ack, Tsn(1003));
    assert_eq!(data.len(), 4);
    assert!(data.iter().all(|chunk| matches!(chunk, Chunk::Data(d) if d.payload == "gap")));
}

#[test]
fn unknown_chunks_and_the_error_that_reports_one() {
    let (_, chunks) = capture!("unknown_chunks");
    let [Chunk::Unknown(report), Chunk::Unknown(skip)] = &chunks[..] else {
        panic!("two unknown chunks");
    };
    assert_eq!((report.ty(), report.flags()), (0xc5, 5));
    assert_eq!(report.value(), "an odd chunk");
    assert_eq!(report.action(), UnknownAction { stop: false, report: true });
    assert_eq!(skip.action(), UnknownAction { stop: false, report: false });

    let (_, error) = only!("error_unrecognized_chunk", Chunk::Error(error) => error);
    assert_eq!(causes(&error.causes), [ErrorCause::UnrecognizedChunkType(report.raw().clone())]);
}

#[test]
fn graceful_end() {
    let (_, shutdown) = only!("shutdown", Chunk::Shutdown(shutdown) => shutdown);
    assert_ne!(shutdown.cum_tsn_ack, Tsn(0));
    assert_eq!(capture!("shutdown_ack").1, [Chunk::ShutdownAck]);
    let complete = |tag_reflected| [Chunk::ShutdownComplete { tag_reflected }];
    assert_eq!(capture!("shutdown_complete").1, complete(false));
    let (header, chunks) = capture!("shutdown_complete_reflected");
    assert_eq!(chunks, complete(true));
    assert_eq!(header.verification_tag, 0x5555_5555, "the tag of the packet it answers");
}

#[test]
fn aborts() {
    let (_, abort) = only!("abort_by_user", Chunk::Abort(abort) => abort);
    assert!(!abort.tag_reflected);
    let reason = ErrorCause::UserInitiatedAbort("enough of it".into());
    assert_eq!(causes(&abort.causes), [reason]);

    let (_, abort) = only!("abort_port_unused", Chunk::Abort(abort) => abort);
    assert_eq!(causes(&abort.causes), []);

    let (_, abort) = only!("abort_no_user_data", Chunk::Abort(abort) => abort);
    assert_eq!(causes(&abort.causes), [ErrorCause::NoUserData(Tsn(1004))]);

    let (_, abort) = only!("abort_protocol_violation", Chunk::Abort(abort) => abort);
    let [ErrorCause::ProtocolViolation(text)] = &causes(&abort.causes)[..] else {
        panic!("a protocol violation");
    };
    assert!(text.starts_with(b"Delivered SSN=0000, got TSN=000003e9"));
}
