use super::*;

fn decode(bytes: &'static [u8]) -> Vec<Result<ErrorCause, DecodeError>> {
    Causes::received(Bytes::from_static(bytes), 16).iter().collect()
}

#[test]
fn causes_are_laid_out_as_the_rfc_draws_them() {
    let causes: Causes = [
        ErrorCause::InvalidStreamIdentifier(StreamId(0x0102)),
        ErrorCause::MissingMandatoryParameter(vec![7]),
        ErrorCause::OutOfResource,
        ErrorCause::NoUserData(Tsn(3)),
    ]
    .into_iter()
    .collect();
    #[rustfmt::skip]
    let expected = [
        0, 1, 0, 8, 1, 2, 0, 0,
        0, 2, 0, 10, 0, 0, 0, 1, 0, 7, 0, 0,
        0, 4, 0, 4,
        0, 9, 0, 8, 0, 0, 0, 3,
    ];
    assert_eq!(causes.as_bytes(), &expected[..]);
}

#[test]
fn a_count_of_missing_parameters_must_match() {
    let valid = decode(&[0, 2, 0, 12, 0, 0, 0, 2, 0, 7, 0, 8]);
    assert_eq!(valid, [Ok(ErrorCause::MissingMandatoryParameter(vec![7, 8]))]);
    // A count of 2^32 - 1 allocates nothing.
    for bytes in [
        &[0, 2, 0, 12, 0, 0, 0, 3, 0, 7, 0, 8][..],
        &[0, 2, 0, 12, 0xff, 0xff, 0xff, 0xff, 0, 7, 0, 8],
        &[0, 2, 0, 11, 0, 0, 0, 1, 0, 7, 0],
        &[0, 2, 0, 7, 0, 0, 0],
    ] {
        let length = usize::from(bytes[3]);
        assert_eq!(decode(bytes), [Err(DecodeErrorKind::CauseLength { code: 2, length }.at(16))]);
    }
}

#[test]
fn causes_of_fixed_size_must_have_it() {
    for bytes in [&[0, 1, 0, 6, 0, 1, 0, 0][..], &[0, 3, 0, 4], &[0, 9, 0, 4]] {
        let (code, length) = (u16::from(bytes[1]), usize::from(bytes[3]));
        assert_eq!(decode(bytes), [Err(DecodeErrorKind::CauseLength { code, length }.at(16))]);
    }
}

#[test]
fn an_unsupported_hmac_is_named_by_its_identifier() {
    let cause = ErrorCause::UnsupportedHmacIdentifier(2);
    let causes: Causes = [cause.clone()].into_iter().collect();
    assert_eq!(causes.as_bytes(), &[1, 5, 0, 6, 0, 2][..]);
    assert_eq!(decode(&[1, 5, 0, 6, 0, 2, 0, 0]), [Ok(cause.clone())]);
    assert_eq!(cause.to_string(), "unsupported HMAC identifier 2");
    let short = DecodeErrorKind::CauseLength { code: 0x0105, length: 5 }.at(16);
    assert_eq!(decode(&[1, 5, 0, 5, 0, 0, 0, 0]), [Err(short)]);
}

#[test]
fn the_causes_about_dtls_are_headers_only() {
    use ErrorCause::*;
    let causes = [
        (100, MissingDtlsChunkSupport, "missing DTLS chunk support"),
        (101, NoCommonDtlsKeyManagementMethod, "no common DTLS key management method"),
        (
            102,
            DtlsKeyManagementTieBreakerCollision,
            "collision of DTLS key management tie breakers",
        ),
        (103, IncompatibleDtlsKeyManagementRoles, "incompatible DTLS key management roles"),
    ];
    for (code, cause, text) in causes {
        let list: Causes = [cause.clone()].into_iter().collect();
        assert_eq!(list.as_bytes(), &[0, code, 0, 4][..]);
        assert_eq!(list.iter().collect::<Vec<_>>(), [Ok(cause.clone())]);
        assert_eq!((cause.code(), cause.to_string()), (code.into(), text.to_owned()));
        // A value that a later draft may add is ignored.
        let longer = Causes::received(Bytes::copy_from_slice(&[0, code, 0, 6, 1, 2, 0, 0]), 16);
        assert_eq!(longer.iter().collect::<Vec<_>>(), [Ok(cause)]);
    }
}

#[test]
fn an_error_ends_the_causes() {
    let decoded = decode(&[0, 9, 0, 4, 0, 4, 0, 4]);
    assert_eq!(decoded.len(), 1);
    assert!(decoded[0].is_err());
}

#[test]
fn causes_read_as_sentences() {
    let cause = ErrorCause::UserInitiatedAbort(Bytes::from_static(b"disk \x00 full"));
    assert_eq!(cause.to_string(), r#"user-initiated abort: "disk \x00 full""#);
    let cause = ErrorCause::StaleCookie(70);
    assert_eq!(cause.to_string(), "stale cookie, expired 70 µs ago");
    let chunk = |bytes: &'static [u8]| ErrorCause::UnrecognizedChunkType(bytes.into());
    assert_eq!(chunk(&[0xc5, 0, 0, 4]).to_string(), "unrecognized chunk type 197");
    assert_eq!(chunk(&[]).to_string(), "unrecognized chunk type");
}
