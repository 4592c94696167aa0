use super::*;

fn decode(bytes: &'static [u8]) -> Vec<Result<Parameter, DecodeError>> {
    Params::received(Bytes::from_static(bytes), 32).iter().collect()
}

#[test]
fn parameters_are_laid_out_as_the_rfc_draws_them() {
    let params: Params = [
        Parameter::Ipv4(Ipv4Addr::new(10, 0, 0, 1)),
        Parameter::CookiePreservative(258),
        Parameter::SupportedExtensions(Bytes::from_static(&[0xc0])),
        Parameter::SupportedAddressTypes(vec![5]),
    ]
    .into_iter()
    .collect();
    #[rustfmt::skip]
    let expected = [
        0, 5, 0, 8, 10, 0, 0, 1,
        0, 9, 0, 8, 0, 0, 1, 2,
        0x80, 0x08, 0, 5, 0xc0, 0, 0, 0,
        0, 12, 0, 6, 0, 5, // the chunk around it pads the last
    ];
    assert_eq!(params.as_bytes(), &expected[..]);
}

#[test]
fn the_parameters_of_authentication_are_laid_out_as_rfc_4895_draws_them() {
    let params: Params = [
        Parameter::Random(Bytes::from_static(&[1, 2, 3, 4])),
        Parameter::AuthenticatedChunks(Bytes::from_static(&[0xc1, 0x80])),
        Parameter::HmacAlgorithms(vec![3, 1]),
    ]
    .into_iter()
    .collect();
    #[rustfmt::skip]
    let expected = [
        0x80, 0x02, 0, 8, 1, 2, 3, 4,
        0x80, 0x03, 0, 6, 0xc1, 0x80, 0, 0,
        0x80, 0x04, 0, 8, 0, 3, 0, 1,
    ];
    assert_eq!(params.as_bytes(), &expected[..]);
}

#[test]
fn half_an_hmac_identifier_makes_the_list_unknown() {
    let decoded = decode(&[0x80, 0x04, 0, 7, 0, 3, 0, 0]);
    assert_eq!(decoded, [Ok(Parameter::Unknown(UnknownParameter::new(0x8004, &[0, 3, 0])))]);
}

#[test]
fn addresses_must_have_their_length() {
    for bytes in [
        &[0, 5, 0, 7, 10, 0, 0, 0][..],
        &[0, 5, 0, 9, 10, 0, 0, 0, 1, 0, 0, 0],
        &[0, 6, 0, 8, 10, 0, 0, 0],
        &[0, 9, 0, 4],
        &[0, 12, 0, 7, 0, 5, 0, 0],
    ] {
        let decoded = decode(bytes);
        let (ty, length) = (u16::from(bytes[1]), usize::from(bytes[3]));
        let expected = DecodeErrorKind::ParameterLength { ty, length }.at(32);
        assert_eq!(decoded, [Err(expected)]);
    }
}

#[test]
fn an_error_ends_the_parameters() {
    let decoded =
        decode(&[0, 5, 0, 8, 10, 0, 0, 1, 0, 9, 0, 5, 0, 0, 0, 0, 0, 9, 0, 8, 0, 0, 0, 1]);
    assert_eq!(decoded.len(), 2);
    assert_eq!(decoded[0], Ok(Parameter::Ipv4(Ipv4Addr::new(10, 0, 0, 1))));
    let expected = DecodeErrorKind::ParameterLength { ty: 9, length: 5 }.at(40);
    assert_eq!(decoded[1], Err(expected));
}

#[test]
fn lengths_beyond_the_chunk_are_found() {
    let kind = |bytes| decode(bytes)[0].as_ref().expect_err("malformed").kind;
    assert_eq!(kind(&[0, 7, 0]), DecodeErrorKind::TlvHeaderTruncated { available: 3 });
    let past = DecodeErrorKind::TlvLength { ty: 7, length: 9, available: 8 };
    assert_eq!(kind(&[0, 7, 0, 9, 1, 2, 3, 4]), past);
    let small = DecodeErrorKind::TlvLength { ty: 7, length: 3, available: 4 };
    assert_eq!(kind(&[0, 7, 0, 3]), small);
}

#[test]
fn the_last_parameter_may_or_may_not_count_its_padding() {
    let cookie = Parameter::StateCookie(Bytes::from_static(&[9]));
    assert_eq!(decode(&[0, 7, 0, 5, 9]), [Ok(cookie.clone())]);
    assert_eq!(decode(&[0, 7, 0, 5, 9, 0, 0, 0]), [Ok(cookie)]);
}

#[test]
fn an_unknown_parameter_is_kept_whole() {
    let decoded = decode(&[0xc0, 0x06, 0, 6, 1, 2, 0, 0, 0x40, 0, 0, 4]);
    let [Ok(Parameter::Unknown(first)), Ok(Parameter::Unknown(second))] = &decoded[..] else {
        panic!("two unknown parameters");
    };
    assert_eq!(first, &UnknownParameter::new(0xc006, &[1, 2]));
    assert_eq!(first.raw(), &[0xc0, 0x06, 0, 6, 1, 2][..]);
    assert_eq!(first.value(), &[1, 2][..]);
    assert!(!first.action().stop && first.action().report);
    assert_eq!(second.ty(), 0x4000);
    assert!(second.action().stop && second.action().report);
}

#[test]
fn received_and_collected_lists_compare_by_their_bytes() {
    let parameter = Parameter::from(IpAddr::from([10, 0, 0, 1]));
    let collected: Params = [parameter].into_iter().collect();
    let received = Params::received(Bytes::from_static(&[0, 5, 0, 8, 10, 0, 0, 1]), 32);
    assert_eq!(received, collected);
    assert_ne!(received, Params::default());
    assert_eq!(format!("{received:?}"), "[Ok(Ipv4(10.0.0.1))]");
}

#[test]
fn zero_checksum_acceptable_is_laid_out_as_rfc_9653_draws_it() {
    let mut bytes = Vec::new();
    Parameter::ZeroChecksumAcceptable(crate::EDMID_DTLS).encode(&mut bytes);
    assert_eq!(bytes, [0x80, 1, 0, 8, 0, 0, 0, 1]);
    let decoded = Params::received(Bytes::from_static(&[0x80, 1, 0, 6, 0, 1, 0, 0]), 0);
    assert!(matches!(decoded.iter().next(), Some(Err(_))), "§4: the length must be 8");
}
