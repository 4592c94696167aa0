use super::*;
use crate::{Parameter, Params, UnknownAction};

const BOTH: DtlsKeyManagementFlags =
    DtlsKeyManagementFlags(DtlsKeyManagementFlags::CLIENT.0 | DtlsKeyManagementFlags::SERVER.0);

fn decode(bytes: &[u8]) -> Parameter {
    let received = Params::received(Bytes::copy_from_slice(bytes), 32);
    let mut parameters = received.iter();
    let first = parameters.next().expect("an item").expect("valid");
    assert_eq!(parameters.next(), None);
    first
}

fn offer(bytes: &[u8]) -> DtlsKeyManagement {
    let Parameter::DtlsKeyManagement(offer) = decode(bytes) else { panic!("an offer") };
    offer
}

#[test]
fn it_is_laid_out_as_the_draft_draws_it() {
    let flags = DtlsKeyManagementFlags::RESTART | DtlsKeyManagementFlags::CLIENT;
    let sent = DtlsKeyManagement::new(0x0102_0304, flags, &[7, 0]).expect("valid");
    let expected = [0x80, 0x06, 0, 11, 1, 2, 3, 4, 0b101, 7, 0];
    assert_eq!(sent.raw(), &expected[..]);
    assert_eq!((sent.tie_breaker(), sent.methods()), (0x0102_0304, &[7, 0][..]));
    assert_eq!(sent.flags(), flags);

    let cookie = Parameter::StateCookie(Bytes::from_static(b"c"));
    let params: Params =
        [Parameter::DtlsKeyManagement(sent.clone()), cookie.clone()].into_iter().collect();
    let padded = [&expected[..], &[0], &[0, 7, 0, 5, b'c']].concat();
    assert_eq!(params.as_bytes(), &padded, "padded in front of another");
    let decoded: Vec<_> = params.iter().map(|p| p.expect("valid")).collect();
    assert_eq!(decoded, [Parameter::DtlsKeyManagement(sent), cookie]);
}

#[test]
fn its_bytes_are_the_same_at_both_ends() {
    for methods in 1..=DtlsKeyManagement::MAX_METHODS {
        let methods: Vec<u8> = (0..methods).map(|i| i as u8).collect();
        let sent = DtlsKeyManagement::new(9, BOTH, &methods).expect("valid");
        let params: Params = [Parameter::DtlsKeyManagement(sent.clone())].into_iter().collect();
        let received = offer(params.as_bytes());
        assert_eq!(received, sent);
        assert_eq!(received.raw(), sent.raw());
        assert_eq!(received.methods(), methods);
    }
}

#[test]
fn received_bytes_are_kept_with_reserved_bits_and_without_padding() {
    let bytes = [0x80, 0x06, 0, 10, 0xff, 0, 0, 1, 0xfa, 3, 0xee, 0xee];
    let offer = offer(&bytes);
    assert_eq!(offer.raw(), &bytes[..10]);
    assert_eq!((offer.tie_breaker(), offer.methods()), (0xff00_0001, &[3][..]));
    let flags = offer.flags();
    assert!(flags.server() && !flags.client() && !flags.restart());
    let mut encoded = Vec::new();
    Parameter::DtlsKeyManagement(offer).encode(&mut encoded);
    assert_eq!(encoded, bytes[..10]);
}

#[test]
fn each_flag_has_its_bit() {
    let of = |flags: DtlsKeyManagementFlags| (flags.restart(), flags.server(), flags.client());
    assert_eq!(of(DtlsKeyManagementFlags(0b100)), (true, false, false));
    assert_eq!(of(DtlsKeyManagementFlags(0b010)), (false, true, false));
    assert_eq!(of(DtlsKeyManagementFlags(0b001)), (false, false, true));
    assert_eq!(of(DtlsKeyManagementFlags(0b1111_1000)), (false, false, false));
    let sent = DtlsKeyManagement::new(0, DtlsKeyManagementFlags(0xff), &[0]).expect("valid");
    assert_eq!(sent.flags().0, 0b111, "reserved bits are sent as zeros");
}

#[test]
fn a_parameter_to_send_has_methods_but_not_too_many() {
    let methods = |count: usize| DtlsKeyManagement::new(0, BOTH, &vec![1; count]);
    assert_eq!(methods(0), None);
    assert!(methods(1).is_some() && methods(255).is_some());
    assert_eq!(methods(256), None);
    assert_eq!(methods(70_000), None);
}

#[test]
fn without_a_method_it_is_unknown_and_skipped() {
    for length in 4..=9_u8 {
        let mut bytes = vec![0x80, 0x06, 0, length, 1, 2, 3, 4, 5];
        bytes.truncate(length.into());
        let Parameter::Unknown(unknown) = decode(&bytes) else { panic!("length {length}") };
        assert_eq!(unknown.raw(), &bytes);
        assert_eq!(unknown.action(), UnknownAction { stop: false, report: false });
    }
}

#[test]
fn methods_beyond_the_limit_are_ignored_and_their_bytes_kept() {
    let length = 65_000_u16;
    let mut bytes = vec![5; length.into()];
    bytes[..4].copy_from_slice(&[0x80, 0x06, 0xfd, 0xe8]);
    let offer = offer(&bytes);
    assert_eq!(offer.methods(), [5; DtlsKeyManagement::MAX_METHODS]);
    assert_eq!(offer.raw().len(), length.into());
}
