//! Error causes: what ABORT and ERROR report (RFC 9260 §3.3.10, RFC 4895 §4.1, RFC 5061
//! §4.3, draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.3).

use std::fmt;

use bytes::Bytes;

use crate::error::{DecodeError, DecodeErrorKind};
use crate::tlv::{self, RawTlv, TLV_HEADER_LEN, TlvIter, TlvList, put_tlv};
use crate::types::{StreamId, Tsn};

mod code {
    pub(super) const INVALID_STREAM_IDENTIFIER: u16 = 1;
    pub(super) const MISSING_MANDATORY_PARAMETER: u16 = 2;
    pub(super) const STALE_COOKIE: u16 = 3;
    pub(super) const OUT_OF_RESOURCE: u16 = 4;
    pub(super) const UNRESOLVABLE_ADDRESS: u16 = 5;
    pub(super) const UNRECOGNIZED_CHUNK_TYPE: u16 = 6;
    pub(super) const INVALID_MANDATORY_PARAMETER: u16 = 7;
    pub(super) const UNRECOGNIZED_PARAMETERS: u16 = 8;
    pub(super) const NO_USER_DATA: u16 = 9;
    pub(super) const COOKIE_RECEIVED_WHILE_SHUTTING_DOWN: u16 = 10;
    pub(super) const RESTART_WITH_NEW_ADDRESSES: u16 = 11;
    pub(super) const USER_INITIATED_ABORT: u16 = 12;
    pub(super) const PROTOCOL_VIOLATION: u16 = 13;
    pub(super) const MISSING_DTLS_CHUNK_SUPPORT: u16 = 100;
    pub(super) const NO_COMMON_DTLS_KEY_MANAGEMENT_METHOD: u16 = 101;
    pub(super) const DTLS_KEY_MANAGEMENT_TIE_BREAKER_COLLISION: u16 = 102;
    pub(super) const INCOMPATIBLE_DTLS_KEY_MANAGEMENT_ROLES: u16 = 103;
    pub(super) const DELETE_LAST_ADDRESS: u16 = 0x00a0;
    pub(super) const RESOURCE_SHORTAGE: u16 = 0x00a1;
    pub(super) const DELETE_SOURCE_ADDRESS: u16 = 0x00a2;
    pub(super) const ILLEGAL_ASCONF_ACK: u16 = 0x00a3;
    pub(super) const NO_AUTHORIZATION: u16 = 0x00a4;
    pub(super) const UNSUPPORTED_HMAC_IDENTIFIER: u16 = 0x0105;
}

/// One error cause.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |          cause code           |         cause length          |
/// +---------------+---------------+---------------+---------------+
/// | cause-specific information, see the variants …                |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorCause {
    /// Code 1 (§3.3.10.1): a DATA chunk came on a stream that does not exist. Its identifier, then
    /// 16 reserved bits.
    InvalidStreamIdentifier(StreamId),
    /// Code 2 (§3.3.10.2): the types of the parameters an INIT or INIT ACK lacks: a 32-bit count,
    /// then 16 bits each.
    MissingMandatoryParameter(Vec<u16>),
    /// Code 3 (§3.3.10.3): the cookie had expired by this many microseconds.
    StaleCookie(u32),
    /// Code 4 (§3.3.10.4): no resources for an association.
    OutOfResource,
    /// Code 5 (§3.3.10.5): an address parameter, whole, of an unusable kind.
    UnresolvableAddress(Bytes),
    /// Code 6 (§3.3.10.6): a chunk, whole, of a type that is not known and asks to be reported.
    UnrecognizedChunkType(Bytes),
    /// Code 7 (§3.3.10.7): a mandatory parameter has an invalid value.
    InvalidMandatoryParameter,
    /// Code 8 (§3.3.10.8): parameters of an INIT ACK, whole, that are not known and ask to be
    /// reported.
    UnrecognizedParameters(Bytes),
    /// Code 9 (§3.3.10.9): the DATA chunk with this TSN had no payload.
    NoUserData(Tsn),
    /// Code 10 (§3.3.10.10): a COOKIE ECHO came in SHUTDOWN-ACK-SENT.
    CookieReceivedWhileShuttingDown,
    /// Code 11 (§3.3.10.11): an INIT would restart the association and add these addresses, as
    /// whole parameters.
    RestartWithNewAddresses(Bytes),
    /// Code 12 (§3.3.10.12): the peer's user aborted, and gave this reason.
    UserInitiatedAbort(Bytes),
    /// Code 13 (§3.3.10.13): the peer saw a violation of the protocol, described in free form.
    ProtocolViolation(Bytes),
    /// Code 100 (draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.3.1), in ABORT only: the receiver of the
    /// INIT requires DTLS chunks, and the INIT has no DTLS Key Management parameter.
    MissingDtlsChunkSupport,
    /// Code 101 (the draft's §4.3.2), in ABORT only: none of the key management methods that the
    /// INIT offers is supported.
    NoCommonDtlsKeyManagementMethod,
    /// Code 102 (the draft's §4.3.3), in ABORT only: both sides chose the same tie breaker.
    DtlsKeyManagementTieBreakerCollision,
    /// Code 103 (the draft's §4.3.4), in ABORT only: both sides can only be the client, or both
    /// only the server.
    IncompatibleDtlsKeyManagementRoles,
    /// Code 0x00a0 (RFC 5061 §4.3.1): the request, whole, would have deleted the last address of
    /// its sender.
    DeleteLastAddress(Bytes),
    /// Code 0x00a1 (RFC 5061 §4.3.2): there is no room for the address of the request, whole.
    ResourceShortage(Bytes),
    /// Code 0x00a2 (RFC 5061 §4.3.3): the request, whole, would have deleted the address from which
    /// it came.
    DeleteSourceAddress(Bytes),
    /// Code 0x00a3 (RFC 5061 §4.3.4), in ABORT only: an ASCONF-ACK came that answers nothing.
    IllegalAsconfAck,
    /// Code 0x00a4 (RFC 5061 §4.3.5): the receiver does not grant the request, whole.
    NoAuthorization(Bytes),
    /// Code 0x0105 (RFC 4895 §4.1): the algorithm of an AUTH chunk, which its receiver has not
    /// asked for.
    UnsupportedHmacIdentifier(u16),
    /// A code this crate does not know.
    Unknown {
        /// Cause code.
        code: u16,
        /// Cause-specific information.
        value: Bytes,
    },
}

impl ErrorCause {
    /// The cause code.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            ErrorCause::InvalidStreamIdentifier(_) => code::INVALID_STREAM_IDENTIFIER,
            ErrorCause::MissingMandatoryParameter(_) => code::MISSING_MANDATORY_PARAMETER,
            ErrorCause::StaleCookie(_) => code::STALE_COOKIE,
            ErrorCause::OutOfResource => code::OUT_OF_RESOURCE,
            ErrorCause::UnresolvableAddress(_) => code::UNRESOLVABLE_ADDRESS,
            ErrorCause::UnrecognizedChunkType(_) => code::UNRECOGNIZED_CHUNK_TYPE,
            ErrorCause::InvalidMandatoryParameter => code::INVALID_MANDATORY_PARAMETER,
            ErrorCause::UnrecognizedParameters(_) => code::UNRECOGNIZED_PARAMETERS,
            ErrorCause::NoUserData(_) => code::NO_USER_DATA,
            ErrorCause::CookieReceivedWhileShuttingDown => {
                code::COOKIE_RECEIVED_WHILE_SHUTTING_DOWN
            }
            ErrorCause::RestartWithNewAddresses(_) => code::RESTART_WITH_NEW_ADDRESSES,
            ErrorCause::UserInitiatedAbort(_) => code::USER_INITIATED_ABORT,
            ErrorCause::ProtocolViolation(_) => code::PROTOCOL_VIOLATION,
            ErrorCause::MissingDtlsChunkSupport => code::MISSING_DTLS_CHUNK_SUPPORT,
            ErrorCause::NoCommonDtlsKeyManagementMethod => {
                code::NO_COMMON_DTLS_KEY_MANAGEMENT_METHOD
            }
            ErrorCause::DtlsKeyManagementTieBreakerCollision => {
                code::DTLS_KEY_MANAGEMENT_TIE_BREAKER_COLLISION
            }
            ErrorCause::IncompatibleDtlsKeyManagementRoles => {
                code::INCOMPATIBLE_DTLS_KEY_MANAGEMENT_ROLES
            }
            ErrorCause::DeleteLastAddress(_) => code::DELETE_LAST_ADDRESS,
            ErrorCause::ResourceShortage(_) => code::RESOURCE_SHORTAGE,
            ErrorCause::DeleteSourceAddress(_) => code::DELETE_SOURCE_ADDRESS,
            ErrorCause::IllegalAsconfAck => code::ILLEGAL_ASCONF_ACK,
            ErrorCause::NoAuthorization(_) => code::NO_AUTHORIZATION,
            ErrorCause::UnsupportedHmacIdentifier(_) => code::UNSUPPORTED_HMAC_IDENTIFIER,
            ErrorCause::Unknown { code, .. } => *code,
        }
    }

    /// Appends causes, each padded except the last.
    pub(crate) fn put_list<'c>(
        causes: impl IntoIterator<Item = &'c ErrorCause>,
        out: &mut Vec<u8>,
    ) {
        tlv::put_list(out, causes, ErrorCause::encode);
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_tlv(out, self.code(), |out| match self {
            ErrorCause::InvalidStreamIdentifier(stream) => {
                out.extend_from_slice(&stream.0.to_be_bytes());
                out.extend_from_slice(&[0, 0]);
            }
            ErrorCause::MissingMandatoryParameter(types) => {
                // More types than 32 bits can count do not fit into a chunk, which is then refused.
                let count = u32::try_from(types.len()).unwrap_or(u32::MAX);
                out.extend_from_slice(&count.to_be_bytes());
                out.extend(types.iter().flat_map(|ty| ty.to_be_bytes()));
            }
            ErrorCause::StaleCookie(microseconds) => {
                out.extend_from_slice(&microseconds.to_be_bytes());
            }
            ErrorCause::NoUserData(tsn) => out.extend_from_slice(&tsn.0.to_be_bytes()),
            ErrorCause::UnsupportedHmacIdentifier(id) => out.extend_from_slice(&id.to_be_bytes()),
            ErrorCause::OutOfResource
            | ErrorCause::InvalidMandatoryParameter
            | ErrorCause::CookieReceivedWhileShuttingDown
            | ErrorCause::MissingDtlsChunkSupport
            | ErrorCause::NoCommonDtlsKeyManagementMethod
            | ErrorCause::DtlsKeyManagementTieBreakerCollision
            | ErrorCause::IncompatibleDtlsKeyManagementRoles
            | ErrorCause::IllegalAsconfAck => {}
            ErrorCause::UnresolvableAddress(bytes)
            | ErrorCause::UnrecognizedChunkType(bytes)
            | ErrorCause::UnrecognizedParameters(bytes)
            | ErrorCause::RestartWithNewAddresses(bytes)
            | ErrorCause::UserInitiatedAbort(bytes)
            | ErrorCause::ProtocolViolation(bytes)
            | ErrorCause::DeleteLastAddress(bytes)
            | ErrorCause::ResourceShortage(bytes)
            | ErrorCause::DeleteSourceAddress(bytes)
            | ErrorCause::NoAuthorization(bytes)
            | ErrorCause::Unknown { value: bytes, .. } => out.extend_from_slice(bytes),
        });
    }

    fn decode(tlv: &RawTlv) -> Result<Self, DecodeError> {
        let bad_length =
            || DecodeErrorKind::CauseLength { code: tlv.ty, length: tlv.raw.len() }.at(tlv.offset);
        Ok(match tlv.ty {
            code::INVALID_STREAM_IDENTIFIER => {
                let [s0, s1, _, _] = tlv.value_exact().ok_or_else(bad_length)?;
                ErrorCause::InvalidStreamIdentifier(StreamId(u16::from_be_bytes([s0, s1])))
            }
            code::MISSING_MANDATORY_PARAMETER => {
                let types = missing_parameters(&tlv.raw[TLV_HEADER_LEN..]);
                ErrorCause::MissingMandatoryParameter(types.ok_or_else(bad_length)?)
            }
            code::STALE_COOKIE => {
                let microseconds = tlv.value_exact().ok_or_else(bad_length)?;
                ErrorCause::StaleCookie(u32::from_be_bytes(microseconds))
            }
            code::OUT_OF_RESOURCE => ErrorCause::OutOfResource,
            code::UNRESOLVABLE_ADDRESS => ErrorCause::UnresolvableAddress(tlv.value()),
            code::UNRECOGNIZED_CHUNK_TYPE => ErrorCause::UnrecognizedChunkType(tlv.value()),
            code::INVALID_MANDATORY_PARAMETER => ErrorCause::InvalidMandatoryParameter,
            code::UNRECOGNIZED_PARAMETERS => ErrorCause::UnrecognizedParameters(tlv.value()),
            code::NO_USER_DATA => {
                let tsn = tlv.value_exact().ok_or_else(bad_length)?;
                ErrorCause::NoUserData(Tsn(u32::from_be_bytes(tsn)))
            }
            code::COOKIE_RECEIVED_WHILE_SHUTTING_DOWN => {
                ErrorCause::CookieReceivedWhileShuttingDown
            }
            code::RESTART_WITH_NEW_ADDRESSES => ErrorCause::RestartWithNewAddresses(tlv.value()),
            code::USER_INITIATED_ABORT => ErrorCause::UserInitiatedAbort(tlv.value()),
            code::PROTOCOL_VIOLATION => ErrorCause::ProtocolViolation(tlv.value()),
            code::MISSING_DTLS_CHUNK_SUPPORT => ErrorCause::MissingDtlsChunkSupport,
            code::NO_COMMON_DTLS_KEY_MANAGEMENT_METHOD => {
                ErrorCause::NoCommonDtlsKeyManagementMethod
            }
            code::DTLS_KEY_MANAGEMENT_TIE_BREAKER_COLLISION => {
                ErrorCause::DtlsKeyManagementTieBreakerCollision
            }
            code::INCOMPATIBLE_DTLS_KEY_MANAGEMENT_ROLES => {
                ErrorCause::IncompatibleDtlsKeyManagementRoles
            }
            code::DELETE_LAST_ADDRESS => ErrorCause::DeleteLastAddress(tlv.value()),
            code::RESOURCE_SHORTAGE => ErrorCause::ResourceShortage(tlv.value()),
            code::DELETE_SOURCE_ADDRESS => ErrorCause::DeleteSourceAddress(tlv.value()),
            code::ILLEGAL_ASCONF_ACK => ErrorCause::IllegalAsconfAck,
            code::NO_AUTHORIZATION => ErrorCause::NoAuthorization(tlv.value()),
            code::UNSUPPORTED_HMAC_IDENTIFIER => {
                let id = tlv.value_exact().ok_or_else(bad_length)?;
                ErrorCause::UnsupportedHmacIdentifier(u16::from_be_bytes(id))
            }
            code => ErrorCause::Unknown { code, value: tlv.value() },
        })
    }
}

/// The list in "Missing Mandatory Parameter", if its count is that of the bytes that follow.
fn missing_parameters(value: &[u8]) -> Option<Vec<u16>> {
    let (count, types) = value.split_first_chunk()?;
    let (types, []) = types.as_chunks::<2>() else { return None };
    let count = usize::try_from(u32::from_be_bytes(*count)).ok()?;
    (count == types.len()).then(|| types.iter().map(|ty| u16::from_be_bytes(*ty)).collect())
}

impl fmt::Display for ErrorCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ErrorCause::InvalidStreamIdentifier(stream) => {
                write!(f, "invalid stream identifier {stream}")
            }
            ErrorCause::MissingMandatoryParameter(types) => {
                write!(f, "missing mandatory parameters of types {types:?}")
            }
            ErrorCause::StaleCookie(microseconds) => {
                write!(f, "stale cookie, expired {microseconds} µs ago")
            }
            ErrorCause::OutOfResource => f.write_str("out of resource"),
            ErrorCause::UnresolvableAddress(_) => f.write_str("unresolvable address"),
            ErrorCause::UnrecognizedChunkType(chunk) => match chunk.first() {
                Some(ty) => write!(f, "unrecognized chunk type {ty}"),
                None => f.write_str("unrecognized chunk type"),
            },
            ErrorCause::InvalidMandatoryParameter => f.write_str("invalid mandatory parameter"),
            ErrorCause::UnrecognizedParameters(_) => f.write_str("unrecognized parameters"),
            ErrorCause::NoUserData(tsn) => write!(f, "no user data in TSN {tsn}"),
            ErrorCause::CookieReceivedWhileShuttingDown => {
                f.write_str("cookie received while shutting down")
            }
            ErrorCause::RestartWithNewAddresses(_) => {
                f.write_str("restart of an association with new addresses")
            }
            ErrorCause::UserInitiatedAbort(reason) => {
                write!(f, "user-initiated abort: \"{}\"", reason.escape_ascii())
            }
            ErrorCause::ProtocolViolation(details) => {
                write!(f, "protocol violation: \"{}\"", details.escape_ascii())
            }
            ErrorCause::MissingDtlsChunkSupport => f.write_str("missing DTLS chunk support"),
            ErrorCause::NoCommonDtlsKeyManagementMethod => {
                f.write_str("no common DTLS key management method")
            }
            ErrorCause::DtlsKeyManagementTieBreakerCollision => {
                f.write_str("collision of DTLS key management tie breakers")
            }
            ErrorCause::IncompatibleDtlsKeyManagementRoles => {
                f.write_str("incompatible DTLS key management roles")
            }
            ErrorCause::DeleteLastAddress(_) => f.write_str("request to delete the last address"),
            ErrorCause::ResourceShortage(_) => f.write_str("no room for the address"),
            ErrorCause::DeleteSourceAddress(_) => {
                f.write_str("request to delete the source address")
            }
            ErrorCause::NoAuthorization(_) => f.write_str("request refused"),
            ErrorCause::IllegalAsconfAck => f.write_str("an ASCONF-ACK that answers nothing"),
            ErrorCause::UnsupportedHmacIdentifier(id) => {
                write!(f, "unsupported HMAC identifier {id}")
            }
            ErrorCause::Unknown { code, .. } => write!(f, "error cause {code}"),
        }
    }
}

/// The causes of an ABORT or ERROR: received bytes that are decoded when iterated, or collected
/// from [`ErrorCause`]s.
#[derive(Clone, Default)]
pub struct Causes(TlvList);

impl Causes {
    pub(crate) fn received(bytes: Bytes, offset: usize) -> Self {
        Self(TlvList { bytes, offset })
    }

    /// The causes in order. After an error the iterator ends.
    #[must_use]
    pub fn iter(&self) -> CauseIter {
        CauseIter(self.0.iter())
    }

    /// All causes, padded except the last.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        &self.0.bytes
    }
}

impl FromIterator<ErrorCause> for Causes {
    fn from_iter<I: IntoIterator<Item = ErrorCause>>(causes: I) -> Self {
        let mut out = Vec::new();
        tlv::put_list(&mut out, causes, |cause, out| cause.encode(out));
        Self::received(out.into(), 0)
    }
}

impl PartialEq for Causes {
    /// Compares the bytes; where in a packet they were found does not matter.
    fn eq(&self, other: &Self) -> bool {
        self.0.bytes == other.0.bytes
    }
}

impl Eq for Causes {}

impl fmt::Debug for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl IntoIterator for &Causes {
    type Item = Result<ErrorCause, DecodeError>;
    type IntoIter = CauseIter;

    fn into_iter(self) -> CauseIter {
        self.iter()
    }
}

/// The causes of [`Causes`], decoded one at a time.
#[derive(Debug, Clone)]
pub struct CauseIter(TlvIter);

impl Iterator for CauseIter {
    type Item = Result<ErrorCause, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let cause = self.0.next()?.and_then(|tlv| ErrorCause::decode(&tlv));
        if cause.is_err() {
            self.0.end();
        }
        Some(cause)
    }
}

impl std::iter::FusedIterator for CauseIter {}

#[cfg(test)]
mod tests;
