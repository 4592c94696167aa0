//! Parameters: the optional and variable-length fields of INIT and INIT ACK.

mod key_management;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;

pub use key_management::{DtlsKeyManagement, DtlsKeyManagementFlags};

use crate::error::{DecodeError, DecodeErrorKind};
use crate::tlv::{self, RawTlv, TLV_HEADER_LEN, TlvIter, TlvList, put_tlv};
use crate::unknown::UnknownAction;

/// Parameter types (RFC 9260 §3.3.2, §3.3.3, §3.3.5, RFC 4895, RFC 5061, RFC 9653, and
/// draft-ietf-tsvwg-sctp-dtls-chunk).
pub mod parameter_type {
    /// Heartbeat Information (§3.3.5).
    pub const HEARTBEAT_INFO: u16 = 1;
    /// IPv4 Address (§3.3.2.1.1).
    pub const IPV4_ADDRESS: u16 = 5;
    /// IPv6 Address (§3.3.2.1.2).
    pub const IPV6_ADDRESS: u16 = 6;
    /// State Cookie (§3.3.3.1.1).
    pub const STATE_COOKIE: u16 = 7;
    /// Unrecognized Parameter (§3.3.3.1.2).
    pub const UNRECOGNIZED_PARAMETER: u16 = 8;
    /// Cookie Preservative (§3.3.2.1.3).
    pub const COOKIE_PRESERVATIVE: u16 = 9;
    /// Host Name Address, deprecated (§3.3.2.1.4).
    pub const HOST_NAME_ADDRESS: u16 = 11;
    /// Supported Address Types (§3.3.2.1.5).
    pub const SUPPORTED_ADDRESS_TYPES: u16 = 12;
    /// ECN Capable (RFC 4960, appendix A).
    pub const ECN_CAPABLE: u16 = 0x8000;
    /// Zero Checksum Acceptable (RFC 9653 §4).
    pub const ZERO_CHECKSUM_ACCEPTABLE: u16 = 0x8001;
    /// Random (RFC 4895 §3.1).
    pub const RANDOM: u16 = 0x8002;
    /// Chunk List (RFC 4895 §3.2).
    pub const CHUNKS: u16 = 0x8003;
    /// Requested HMAC Algorithm (RFC 4895 §3.3).
    pub const HMAC_ALGO: u16 = 0x8004;
    /// Padding (RFC 4820 §4).
    pub const PADDING: u16 = 0x8005;
    /// DTLS Key Management (draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.1).
    pub const DTLS_KEY_MANAGEMENT: u16 = 0x8006;
    /// Supported Extensions (RFC 5061 §4.2.7).
    pub const SUPPORTED_EXTENSIONS: u16 = 0x8008;
    /// Forward-TSN-Supported (RFC 3758 §3.1).
    pub const FORWARD_TSN_SUPPORTED: u16 = 0xc000;
}

/// The Error Detection Method Identifier of SCTP over DTLS (RFC 8261, RFC 9653 §6).
pub const EDMID_DTLS: u32 = 1;

/// One parameter.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |        parameter type         |       parameter length        |
/// +---------------+---------------+---------------+---------------+
/// | value, see the variants …                                     |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parameter {
    /// Type 1: bytes that only the sender of a HEARTBEAT understands. Not expected in INIT.
    HeartbeatInfo(Bytes),
    /// Type 5: an address of the sender.
    Ipv4(Ipv4Addr),
    /// Type 6: an address of the sender.
    Ipv6(Ipv6Addr),
    /// Type 7: what the receiver shall return in COOKIE ECHO.
    StateCookie(Bytes),
    /// Type 8: a parameter of the INIT that was not recognized, whole: type, length and value.
    UnrecognizedParameter(Bytes),
    /// Type 9: by how much the sender wants its cookie to live longer, in milliseconds.
    CookiePreservative(u32),
    /// Type 11, deprecated: a host name. Must not be sent, and is answered with an ABORT.
    HostNameAddress(Bytes),
    /// Type 12: the address types the sender can use, as parameter types (5 for IPv4, 6 for IPv6).
    SupportedAddressTypes(Vec<u16>),
    /// Type 0x8000: the sender echoes marks of congestion, and acts on echoes (RFC 4960, appendix
    /// A).
    EcnCapable,
    /// Type 0x8001: packets with checksum 0 are accepted, because the method with this identifier
    /// detects errors (RFC 9653 §4). [`EDMID_DTLS`](crate::EDMID_DTLS) is the only one registered.
    ZeroChecksumAcceptable(u32),
    /// Type 0x8002: a random number of the sender (RFC 4895 §3.1).
    Random(Bytes),
    /// Type 0x8003: the chunk types that the sender takes only if they are authenticated (RFC 4895
    /// §3.2).
    AuthenticatedChunks(Bytes),
    /// Type 0x8004: the HMAC algorithms that the sender takes, the preferred first (RFC 4895 §3.3).
    /// With half an identifier it is [`Unknown`](Self::Unknown): its receiver skips it silently.
    HmacAlgorithms(Vec<u16>),
    /// Type 0x8006: the offer to protect the association with DTLS chunks
    /// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.1). Without a method it is
    /// [`Unknown`](Self::Unknown): its receiver skips it silently.
    DtlsKeyManagement(DtlsKeyManagement),
    /// Type 0x8008: the extensions the sender supports, as chunk types (RFC 5061 §4.2.7).
    SupportedExtensions(Bytes),
    /// Type 0xc000: the sender supports FORWARD TSN (RFC 3758 §3.1).
    ForwardTsnSupported,
    /// A type this crate does not know.
    Unknown(UnknownParameter),
}

impl From<IpAddr> for Parameter {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Parameter::Ipv4(address),
            IpAddr::V6(address) => Parameter::Ipv6(address),
        }
    }
}

impl Parameter {
    /// The parameter type, one of [`parameter_type`] unless unknown.
    #[must_use]
    pub fn ty(&self) -> u16 {
        match self {
            Parameter::HeartbeatInfo(_) => parameter_type::HEARTBEAT_INFO,
            Parameter::Ipv4(_) => parameter_type::IPV4_ADDRESS,
            Parameter::Ipv6(_) => parameter_type::IPV6_ADDRESS,
            Parameter::StateCookie(_) => parameter_type::STATE_COOKIE,
            Parameter::UnrecognizedParameter(_) => parameter_type::UNRECOGNIZED_PARAMETER,
            Parameter::CookiePreservative(_) => parameter_type::COOKIE_PRESERVATIVE,
            Parameter::HostNameAddress(_) => parameter_type::HOST_NAME_ADDRESS,
            Parameter::SupportedAddressTypes(_) => parameter_type::SUPPORTED_ADDRESS_TYPES,
            Parameter::EcnCapable => parameter_type::ECN_CAPABLE,
            Parameter::ZeroChecksumAcceptable(_) => parameter_type::ZERO_CHECKSUM_ACCEPTABLE,
            Parameter::Random(_) => parameter_type::RANDOM,
            Parameter::AuthenticatedChunks(_) => parameter_type::CHUNKS,
            Parameter::HmacAlgorithms(_) => parameter_type::HMAC_ALGO,
            Parameter::DtlsKeyManagement(_) => parameter_type::DTLS_KEY_MANAGEMENT,
            Parameter::SupportedExtensions(_) => parameter_type::SUPPORTED_EXTENSIONS,
            Parameter::ForwardTsnSupported => parameter_type::FORWARD_TSN_SUPPORTED,
            Parameter::Unknown(unknown) => unknown.ty(),
        }
    }

    /// Appends the parameter without padding: for reporting it whole, as in "Unresolvable Address".
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_tlv(out, self.ty(), |out| match self {
            Parameter::Ipv4(address) => out.extend_from_slice(&address.octets()),
            Parameter::Ipv6(address) => out.extend_from_slice(&address.octets()),
            Parameter::CookiePreservative(number) | Parameter::ZeroChecksumAcceptable(number) => {
                out.extend_from_slice(&number.to_be_bytes());
            }
            Parameter::SupportedAddressTypes(types) | Parameter::HmacAlgorithms(types) => {
                out.extend(types.iter().flat_map(|ty| ty.to_be_bytes()));
            }
            Parameter::HeartbeatInfo(bytes)
            | Parameter::StateCookie(bytes)
            | Parameter::UnrecognizedParameter(bytes)
            | Parameter::HostNameAddress(bytes)
            | Parameter::Random(bytes)
            | Parameter::AuthenticatedChunks(bytes)
            | Parameter::SupportedExtensions(bytes) => out.extend_from_slice(bytes),
            Parameter::EcnCapable | Parameter::ForwardTsnSupported => {}
            Parameter::DtlsKeyManagement(offer) => out.extend_from_slice(offer.value()),
            Parameter::Unknown(unknown) => out.extend_from_slice(&unknown.value()),
        });
    }

    pub(crate) fn decode(tlv: &RawTlv) -> Result<Self, DecodeError> {
        let bad_length = || {
            DecodeErrorKind::ParameterLength { ty: tlv.ty, length: tlv.raw.len() }.at(tlv.offset)
        };
        Ok(match tlv.ty {
            parameter_type::HEARTBEAT_INFO => Parameter::HeartbeatInfo(tlv.value()),
            parameter_type::IPV4_ADDRESS => {
                Parameter::Ipv4(tlv.value_exact::<4>().ok_or_else(bad_length)?.into())
            }
            parameter_type::IPV6_ADDRESS => {
                Parameter::Ipv6(tlv.value_exact::<16>().ok_or_else(bad_length)?.into())
            }
            parameter_type::STATE_COOKIE => Parameter::StateCookie(tlv.value()),
            parameter_type::UNRECOGNIZED_PARAMETER => Parameter::UnrecognizedParameter(tlv.value()),
            parameter_type::COOKIE_PRESERVATIVE => {
                let ms = tlv.value_exact().ok_or_else(bad_length)?;
                Parameter::CookiePreservative(u32::from_be_bytes(ms))
            }
            parameter_type::ECN_CAPABLE => Parameter::EcnCapable,
            parameter_type::ZERO_CHECKSUM_ACCEPTABLE => {
                let method = tlv.value_exact().ok_or_else(bad_length)?;
                Parameter::ZeroChecksumAcceptable(u32::from_be_bytes(method))
            }
            parameter_type::HOST_NAME_ADDRESS => Parameter::HostNameAddress(tlv.value()),
            parameter_type::SUPPORTED_ADDRESS_TYPES => {
                let (types, []) = tlv.raw[TLV_HEADER_LEN..].as_chunks::<2>() else {
                    return Err(bad_length());
                };
                let types = types.iter().map(|ty| u16::from_be_bytes(*ty)).collect();
                Parameter::SupportedAddressTypes(types)
            }
            parameter_type::RANDOM => Parameter::Random(tlv.value()),
            parameter_type::CHUNKS => Parameter::AuthenticatedChunks(tlv.value()),
            parameter_type::HMAC_ALGO => match tlv.raw[TLV_HEADER_LEN..].as_chunks::<2>() {
                (ids, []) => {
                    let ids = ids.iter().map(|id| u16::from_be_bytes(*id)).collect();
                    Parameter::HmacAlgorithms(ids)
                }
                _ => Parameter::Unknown(UnknownParameter::of(tlv)),
            },
            parameter_type::DTLS_KEY_MANAGEMENT => match DtlsKeyManagement::decode(tlv) {
                Some(offer) => Parameter::DtlsKeyManagement(offer),
                None => Parameter::Unknown(UnknownParameter::of(tlv)),
            },
            parameter_type::SUPPORTED_EXTENSIONS => Parameter::SupportedExtensions(tlv.value()),
            parameter_type::FORWARD_TSN_SUPPORTED => Parameter::ForwardTsnSupported,
            _ => Parameter::Unknown(UnknownParameter::of(tlv)),
        })
    }
}

/// A parameter of a type this crate does not know, or whose contents it cannot read, whole, so that
/// it can be reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownParameter {
    /// At least a parameter header.
    raw: Bytes,
}

impl UnknownParameter {
    /// A parameter to send. A value of more than 65531 bytes makes the chunk too long to send.
    #[must_use]
    pub fn new(ty: u16, value: &[u8]) -> Self {
        let mut raw = Vec::with_capacity(TLV_HEADER_LEN + value.len());
        put_tlv(&mut raw, ty, |out| out.extend_from_slice(value));
        Self { raw: raw.into() }
    }

    /// The parameter as it came.
    pub(crate) fn of(tlv: &RawTlv) -> Self {
        Self { raw: tlv.raw.clone() }
    }

    /// The parameter type.
    #[must_use]
    pub fn ty(&self) -> u16 {
        u16::from_be_bytes([self.raw[0], self.raw[1]])
    }

    /// The bytes after the parameter header, without padding.
    #[must_use]
    pub fn value(&self) -> Bytes {
        self.raw.slice(TLV_HEADER_LEN..)
    }

    /// The whole parameter without padding, as "Unrecognized Parameter" returns it (§3.3.3.1.2).
    #[must_use]
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// The action that the type's upper bits ask for.
    #[must_use]
    pub fn action(&self) -> UnknownAction {
        UnknownAction::of_parameter(self.ty())
    }
}

/// The parameters of an INIT or INIT ACK: received bytes that are decoded when iterated, or
/// collected from [`Parameter`]s to be sent.
#[derive(Clone, Default)]
pub struct Params(TlvList);

impl Params {
    pub(crate) fn received(bytes: Bytes, offset: usize) -> Self {
        Self(TlvList { bytes, offset })
    }

    /// The parameters in order. After an error the iterator ends.
    #[must_use]
    pub fn iter(&self) -> ParamIter {
        ParamIter(self.0.iter())
    }

    /// All parameters, padded except the last.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        &self.0.bytes
    }
}

impl FromIterator<Parameter> for Params {
    fn from_iter<I: IntoIterator<Item = Parameter>>(parameters: I) -> Self {
        let mut out = Vec::new();
        tlv::put_list(&mut out, parameters, |parameter, out| parameter.encode(out));
        Self::received(out.into(), 0)
    }
}

impl PartialEq for Params {
    /// Compares the bytes; where in a packet they were found does not matter.
    fn eq(&self, other: &Self) -> bool {
        self.0.bytes == other.0.bytes
    }
}

impl Eq for Params {}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl IntoIterator for &Params {
    type Item = Result<Parameter, DecodeError>;
    type IntoIter = ParamIter;

    fn into_iter(self) -> ParamIter {
        self.iter()
    }
}

/// The parameters of [`Params`], decoded one at a time.
#[derive(Debug, Clone)]
pub struct ParamIter(TlvIter);

impl Iterator for ParamIter {
    type Item = Result<Parameter, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let parameter = self.0.next()?.and_then(|tlv| Parameter::decode(&tlv));
        if parameter.is_err() {
            self.0.end();
        }
        Some(parameter)
    }
}

impl std::iter::FusedIterator for ParamIter {}

#[cfg(test)]
mod tests;
