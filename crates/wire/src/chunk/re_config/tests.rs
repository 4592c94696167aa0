use super::*;
use crate::{Chunk, CommonHeader, chunks_of};

const HEADER: CommonHeader =
    CommonHeader { source_port: 1, destination_port: 2, verification_tag: 3 };

/// The chunk that these bytes are.
fn read(bytes: &[u8]) -> Result<Chunk, DecodeError> {
    chunks_of(&Bytes::copy_from_slice(bytes)).next().expect("a chunk")
}

fn written(parameters: Vec<ReConfigParameter>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut packet = PacketBuilder::new(&mut out, HEADER, 1000);
    assert!(packet.push_re_config(&ReConfig { parameters }));
    packet.finish(false);
    out.split_off(12)
}

/// A parameter, and its bytes as RFC 6525 draws it.
fn drawn() -> [(ReConfigParameter, &'static [u8]); 7] {
    let response = |next_tsns| {
        ReConfigParameter::Response(ReConfigResponse {
            request: 1,
            result: ReConfigResult::IN_PROGRESS,
            next_tsns,
        })
    };
    let reset = OutgoingReset {
        request: 1,
        response: 2,
        last_tsn: Tsn(3),
        streams: vec![StreamId(4), StreamId(0x0506)],
    };
    [
        (
            ReConfigParameter::OutgoingReset(reset),
            &[0, 13, 0, 20, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 4, 5, 6],
        ),
        (
            ReConfigParameter::IncomingReset { request: 1, streams: vec![] },
            &[0, 14, 0, 8, 0, 0, 0, 1],
        ),
        (ReConfigParameter::AssociationReset { request: 9 }, &[0, 15, 0, 8, 0, 0, 0, 9]),
        (response(None), &[0, 16, 0, 12, 0, 0, 0, 1, 0, 0, 0, 6]),
        (
            response(Some((Tsn(7), Tsn(8)))),
            &[0, 16, 0, 20, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 8],
        ),
        (
            ReConfigParameter::AddOutgoing { request: 1, streams: 0x0203 },
            &[0, 17, 0, 12, 0, 0, 0, 1, 2, 3, 0, 0],
        ),
        (
            ReConfigParameter::AddIncoming { request: 1, streams: 0x0203 },
            &[0, 18, 0, 12, 0, 0, 0, 1, 2, 3, 0, 0],
        ),
    ]
}

#[test]
fn parameters_are_laid_out_as_rfc_6525_draws_them() {
    for (parameter, bytes) in drawn() {
        let length = 4 + bytes.len() as u8;
        let chunk = [&[0x82, 0, 0, length], bytes].concat();
        assert_eq!(written(vec![parameter.clone()]), chunk, "RFC 6525 §4");
        let parameters = vec![parameter];
        assert_eq!(read(&chunk), Ok(Chunk::ReConfig(ReConfig { parameters })));
    }
}

#[test]
fn a_parameter_of_odd_length_is_padded_if_another_follows() {
    let streams = vec![StreamId(7)];
    let parameters = vec![
        ReConfigParameter::IncomingReset { request: 1, streams },
        ReConfigParameter::AssociationReset { request: 2 },
    ];
    let bytes = written(parameters.clone());
    let expected = [0x82, 0, 0, 24, 0, 14, 0, 10, 0, 0, 0, 1, 0, 7, 0, 0, 0, 15, 0, 8, 0, 0, 0, 2];
    assert_eq!(bytes, expected);
    assert_eq!(read(&bytes), Ok(Chunk::ReConfig(ReConfig { parameters })));
}

#[test]
fn an_unknown_parameter_ends_the_list() {
    let bytes = [0x82, 0, 0, 20, 0, 15, 0, 8, 0, 0, 0, 2, 0, 19, 0, 8, 0, 0, 0, 3];
    let parameters = vec![ReConfigParameter::AssociationReset { request: 2 }];
    assert_eq!(read(&bytes), Ok(Chunk::ReConfig(ReConfig { parameters })), "RFC 6525 §4");
}

#[test]
fn no_parameter_has_another_length_than_its_own() {
    for (ty, length) in
        [(13, 15), (13, 17), (14, 7), (14, 9), (15, 9), (16, 16), (16, 24), (17, 8), (18, 13)]
    {
        let mut bytes = vec![0x82, 0, 0, 4 + length, 0, ty, 0, length];
        bytes.resize(4 + usize::from(length), 0);
        let kind = DecodeErrorKind::ParameterLength { ty: ty.into(), length: length.into() };
        assert_eq!(read(&bytes).map_err(|error| error.kind), Err(kind));
    }
}

#[test]
fn both_kinds_of_success_are_success() {
    let successes: Vec<_> = (0..9).filter(|n| ReConfigResult(*n).is_success()).collect();
    assert_eq!(successes, [0, 1], "RFC 6525 §4.4");
}
