use bytes::Bytes;

use super::*;
use crate::{Chunk, CommonHeader, chunks_of};

const HEADER: CommonHeader =
    CommonHeader { source_port: 1, destination_port: 2, verification_tag: 3 };

/// The chunk that these bytes are.
fn read(bytes: &[u8]) -> Result<Chunk, DecodeError> {
    chunks_of(&Bytes::copy_from_slice(bytes)).next().expect("a chunk")
}

fn written(chunk: &Chunk) -> Vec<u8> {
    let mut out = Vec::new();
    let mut packet = PacketBuilder::new(&mut out, HEADER, 1000);
    assert!(packet.push(chunk));
    packet.finish(false);
    out.split_off(12)
}

fn ipv4(last: u8) -> IpAddr {
    [10, 0, 0, last].into()
}

fn ipv6(last: u8) -> IpAddr {
    std::net::Ipv6Addr::from([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]).into()
}

#[test]
fn requests_are_laid_out_as_rfc_5061_draws_them() {
    let chunk = Chunk::Asconf(Asconf {
        serial: 0x0102_0304,
        address: ipv4(1),
        requests: vec![
            AsconfRequest::Add { request: 7, address: ipv4(2) },
            AsconfRequest::Delete { request: 8, address: ipv6(3) },
            AsconfRequest::SetPrimary { request: 9, address: ipv4(2) },
        ],
    });
    let bytes = [
        &[0xc1, 0, 0, 76, 1, 2, 3, 4, 0, 5, 0, 8, 10, 0, 0, 1][..],
        &[0xc0, 1, 0, 16, 0, 0, 0, 7, 0, 5, 0, 8, 10, 0, 0, 2],
        &[0xc0, 2, 0, 28, 0, 0, 0, 8, 0, 6, 0, 20, 0x20, 1, 0xd, 0xb8],
        &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3],
        &[0xc0, 4, 0, 16, 0, 0, 0, 9, 0, 5, 0, 8, 10, 0, 0, 2],
    ]
    .concat();
    assert_eq!(written(&chunk), bytes);
    assert_eq!(read(&bytes), Ok(chunk.clone()));
    let Chunk::Asconf(chunk) = chunk else { unreachable!("it was made so") };
    assert_eq!(UnknownChunk::from(chunk).raw()[..], bytes);
}

#[test]
fn responses_are_laid_out_as_rfc_5061_draws_them() {
    let mut refused = Vec::new();
    AsconfRequest::Add { request: 7, address: ipv4(2) }.encode(&mut refused);
    let cause = ErrorCause::ResourceShortage(refused.clone().into());
    let chunk = Chunk::AsconfAck(AsconfAck {
        serial: 5,
        responses: vec![AsconfResponse::error(7, cause), AsconfResponse::Success { request: 9 }],
    });
    let bytes = [
        &[0x80, 0, 0, 44, 0, 0, 0, 5, 0xc0, 3, 0, 28, 0, 0, 0, 7, 0, 0xa1, 0, 20][..],
        &refused,
        &[0xc0, 5, 0, 8, 0, 0, 0, 9],
    ]
    .concat();
    assert_eq!(written(&chunk), bytes);
    assert_eq!(read(&bytes), Ok(chunk));
    let empty = AsconfAck { serial: 5, responses: vec![] };
    assert_eq!(written(&Chunk::AsconfAck(empty)), [0x80, 0, 0, 8, 0, 0, 0, 5]);
}

#[test]
fn a_parameter_of_an_unknown_type_is_kept_whole_and_has_a_number() {
    let head = [0xc1, 0, 0, 26, 0, 0, 0, 1, 0, 5, 0, 8, 10, 0, 0, 1];
    let bytes = [&head[..], &[0x80, 1, 0, 10, 0, 0, 0, 7, 1, 2, 0, 0]].concat();
    let Ok(Chunk::Asconf(chunk)) = read(&bytes) else { panic!("an ASCONF") };
    assert_eq!(chunk.requests.len(), 1);
    assert_eq!(chunk.requests[0].request(), 7);
    assert_eq!(written(&Chunk::Asconf(chunk)), bytes);
    let short = AsconfRequest::Unknown(UnknownParameter::new(0x8001, &[1, 2]));
    assert_eq!(short.request(), 0);
}

#[test]
fn a_chunk_that_is_cut_short_anywhere_is_refused() {
    let whole = written(&Chunk::Asconf(Asconf {
        serial: 1,
        address: ipv6(1),
        requests: vec![AsconfRequest::Add { request: 7, address: ipv6(2) }],
    }));
    for len in 4..whole.len() {
        let mut cut = whole[..len].to_vec();
        cut[3] = len as u8;
        // Only between parameters is it whole again.
        assert_eq!(read(&cut).is_ok(), len == 28, "{len}: {:?}", read(&cut));
    }
    // The length within the parameter counts, too.
    for (at, wrong) in [(11, 19), (11, 24), (31, 27), (31, 8), (39, 19), (39, 24), (39, 3)] {
        let mut bytes = whole.clone();
        bytes[at] = wrong;
        assert!(read(&bytes).is_err(), "{wrong} at {at}");
    }
    assert!(read(&[0x80, 0, 0, 7, 0, 0, 0, 0]).is_err());
    assert!(read(&[0x80, 0, 0, 14, 0, 0, 0, 1, 0xc0, 3, 0, 6, 0, 0, 0, 0]).is_err());
    assert!(read(&[0x80, 0, 0, 14, 0, 0, 0, 1, 0xc0, 5, 0, 6, 0, 0, 0, 0]).is_err());
}

#[test]
fn a_host_name_is_no_address() {
    let bytes = [0xc1, 0, 0, 16, 0, 0, 0, 1, 0, 11, 0, 8, b'h', b'o', b's', b't'];
    assert!(read(&bytes).is_err());
}
