//! ASCONF and ASCONF-ACK: the chunks by which an end changes its addresses (RFC 5061).

use std::net::IpAddr;

use super::{CHUNK_HEADER_LEN, RawChunk, UnknownChunk, chunk_type};
use crate::builder::PacketBuilder;
use crate::cause::{Causes, ErrorCause};
use crate::error::{DecodeError, DecodeErrorKind};
use crate::parameter::{Parameter, UnknownParameter};
use crate::tlv::{self, RawTlv, TLV_HEADER_LEN, TlvList};

/// The types of the parameters (RFC 5061 §4.2).
mod ty {
    pub(super) const ADD: u16 = 0xc001;
    pub(super) const DELETE: u16 = 0xc002;
    pub(super) const ERROR: u16 = 0xc003;
    pub(super) const SET_PRIMARY: u16 = 0xc004;
    pub(super) const SUCCESS: u16 = 0xc005;
}

/// Length of a parameter's header and number, in bytes.
const PARAMETER_HEADER_LEN: usize = TLV_HEADER_LEN + 4;

/// Requests of an end to change its addresses (RFC 5061 §4.1.1).
///
/// The chunk type asks a receiver that does not know it to skip and report it.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |  type = 0xc1  |     flags     |            length             |
/// +---------------+---------------+---------------+---------------+
/// |                         serial number                         |
/// +---------------+---------------+---------------+---------------+
/// | an address of the sender, as a parameter of type 5 or 6       |
/// +---------------+---------------+---------------+---------------+
/// | requests …                                                    |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asconf {
    /// The number of the chunk: that of the first one is the sender's initial TSN.
    pub serial: u32,
    /// An address of the sender that its peer knows already, so that it finds the association if
    /// the packet comes from another one. Unspecified addresses say nothing.
    pub address: IpAddr,
    /// The requests, in the order in which they are carried out.
    pub requests: Vec<AsconfRequest>,
}

/// A request of an ASCONF chunk (RFC 5061 §4.2).
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |   type = 0xc001, 2 or 4       |      length = 16 or 28        |
/// +---------------+---------------+---------------+---------------+
/// |                     number of the request                     |
/// +---------------+---------------+---------------+---------------+
/// | an address, as a parameter of type 5 or 6                     |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AsconfRequest {
    /// Type 0xc001: the sender has this address, too. An unspecified one stands for the source of
    /// the packet (§4.2.1).
    Add {
        /// The number of the request, which the response repeats.
        request: u32,
        /// The address.
        address: IpAddr,
    },
    /// Type 0xc002: the sender does not have this address any more. An unspecified one stands for
    /// all but the source of the packet (§4.2.2).
    Delete {
        /// The number of the request, which the response repeats.
        request: u32,
        /// The address.
        address: IpAddr,
    },
    /// Type 0xc004: the receiver shall send to this address by preference. An unspecified one
    /// stands for the source of the packet (§4.2.4).
    SetPrimary {
        /// The number of the request, which the response repeats.
        request: u32,
        /// The address.
        address: IpAddr,
    },
    /// A parameter of a type that this crate does not know.
    Unknown(UnknownParameter),
}

/// The answers to the requests of an ASCONF chunk (RFC 5061 §4.1.2).
///
/// The chunk type asks a receiver that does not know it to skip it in silence.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |  type = 0x80  |     flags     |            length             |
/// +---------------+---------------+---------------+---------------+
/// |                         serial number                         |
/// +---------------+---------------+---------------+---------------+
/// | responses …                                                   |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsconfAck {
    /// The number of the ASCONF chunk.
    pub serial: u32,
    /// The responses. Requests without one succeeded, unless they stand behind one that failed.
    pub responses: Vec<AsconfResponse>,
}

/// A response to a request of an ASCONF chunk (RFC 5061 §4.2.3, §4.2.5).
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |    type = 0xc003 or 0xc005    |            length             |
/// +---------------+---------------+---------------+---------------+
/// |                     number of the request                     |
/// +---------------+---------------+---------------+---------------+
/// | with type 0xc003: error causes …                              |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AsconfResponse {
    /// Type 0xc003: the request failed.
    Error {
        /// The number of the request.
        request: u32,
        /// The reasons.
        causes: Causes,
    },
    /// Type 0xc005: the request succeeded.
    Success {
        /// The number of the request.
        request: u32,
    },
    /// A parameter of a type that this crate does not know.
    Unknown(UnknownParameter),
}

impl Asconf {
    pub(super) fn decode(raw: &RawChunk<'_>) -> Result<Self, DecodeError> {
        let serial = u32::from_be_bytes(*raw.fixed()?);
        let list = TlvList { bytes: raw.value_from(4), offset: raw.value_offset(4) };
        let mut parameters = list.iter();
        let address = parameters.next().transpose()?.map(|tlv| address_of(&tlv)).transpose()?;
        let Some(address) = address else {
            let (ty, length) = (chunk_type::ASCONF, CHUNK_HEADER_LEN + 4);
            let minimum = length + TLV_HEADER_LEN + 4;
            return Err(DecodeErrorKind::ChunkTooShort { ty, length, minimum }.at(list.offset));
        };
        let requests = parameters.map(|tlv| AsconfRequest::decode(&tlv?)).collect::<Result<_, _>>();
        Ok(Self { serial, address, requests: requests? })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.serial.to_be_bytes());
        Parameter::from(self.address).encode(out);
        tlv::put_list(out, &self.requests, AsconfRequest::encode);
    }
}

impl AsconfRequest {
    /// The number of the request; 0 if a parameter of an unknown type is too short for one.
    #[must_use]
    pub fn request(&self) -> u32 {
        match self {
            AsconfRequest::Add { request, .. }
            | AsconfRequest::Delete { request, .. }
            | AsconfRequest::SetPrimary { request, .. } => *request,
            AsconfRequest::Unknown(unknown) => {
                unknown.value().first_chunk().map_or(0, |number| u32::from_be_bytes(*number))
            }
        }
    }

    /// Appends the request without padding: for reporting it whole in an error cause.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (ty, request, address) = match self {
            AsconfRequest::Add { request, address } => (ty::ADD, request, address),
            AsconfRequest::Delete { request, address } => (ty::DELETE, request, address),
            AsconfRequest::SetPrimary { request, address } => (ty::SET_PRIMARY, request, address),
            AsconfRequest::Unknown(unknown) => return out.extend_from_slice(unknown.raw()),
        };
        tlv::put_tlv(out, ty, |out| {
            out.extend_from_slice(&request.to_be_bytes());
            Parameter::from(*address).encode(out);
        });
    }

    fn decode(tlv: &RawTlv) -> Result<Self, DecodeError> {
        if !matches!(tlv.ty, ty::ADD | ty::DELETE | ty::SET_PRIMARY) {
            return Ok(AsconfRequest::Unknown(UnknownParameter::of(tlv)));
        }
        let request = number_of(tlv)?;
        let inner = tlv.raw.slice(PARAMETER_HEADER_LEN..);
        let address = address_of(&tlv::split_first(&inner, tlv.offset + PARAMETER_HEADER_LEN)?)?;
        Ok(match tlv.ty {
            ty::ADD => AsconfRequest::Add { request, address },
            ty::DELETE => AsconfRequest::Delete { request, address },
            _ => AsconfRequest::SetPrimary { request, address },
        })
    }
}

impl AsconfAck {
    pub(super) fn decode(raw: &RawChunk<'_>) -> Result<Self, DecodeError> {
        let serial = u32::from_be_bytes(*raw.fixed()?);
        let list = TlvList { bytes: raw.value_from(4), offset: raw.value_offset(4) };
        let responses = list.iter().map(|tlv| AsconfResponse::decode(&tlv?));
        Ok(Self { serial, responses: responses.collect::<Result<_, _>>()? })
    }
}

impl AsconfResponse {
    /// The response that a request failed for this reason.
    #[must_use]
    pub fn error(request: u32, cause: ErrorCause) -> Self {
        AsconfResponse::Error { request, causes: std::iter::once(cause).collect() }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let (ty, request, causes) = match self {
            AsconfResponse::Error { request, causes } => (ty::ERROR, request, Some(causes)),
            AsconfResponse::Success { request } => (ty::SUCCESS, request, None),
            AsconfResponse::Unknown(unknown) => return out.extend_from_slice(unknown.raw()),
        };
        tlv::put_tlv(out, ty, |out| {
            out.extend_from_slice(&request.to_be_bytes());
            out.extend_from_slice(causes.map_or(&[], |causes| causes.as_bytes()));
        });
    }

    fn decode(tlv: &RawTlv) -> Result<Self, DecodeError> {
        Ok(match tlv.ty {
            ty::ERROR => {
                let (request, bytes) = (number_of(tlv)?, tlv.raw.slice(PARAMETER_HEADER_LEN..));
                let causes = Causes::received(bytes, tlv.offset + PARAMETER_HEADER_LEN);
                AsconfResponse::Error { request, causes }
            }
            ty::SUCCESS => AsconfResponse::Success { request: number_of(tlv)? },
            _ => AsconfResponse::Unknown(UnknownParameter::of(tlv)),
        })
    }
}

/// The number at the beginning of a parameter's value.
fn number_of(tlv: &RawTlv) -> Result<u32, DecodeError> {
    let number = tlv.raw[TLV_HEADER_LEN..].first_chunk();
    number.map(|number| u32::from_be_bytes(*number)).ok_or_else(|| bad_length(tlv))
}

/// The address of an address parameter (RFC 9260 §3.3.2.1.1, §3.3.2.1.2). Host names are none (RFC
/// 5061 §4.1.1).
fn address_of(tlv: &RawTlv) -> Result<IpAddr, DecodeError> {
    match Parameter::decode(tlv)? {
        Parameter::Ipv4(address) => Ok(address.into()),
        Parameter::Ipv6(address) => Ok(address.into()),
        _ => Err(bad_length(tlv)),
    }
}

fn bad_length(tlv: &RawTlv) -> DecodeError {
    DecodeErrorKind::ParameterLength { ty: tlv.ty, length: tlv.raw.len() }.at(tlv.offset)
}

impl From<Asconf> for UnknownChunk {
    /// The chunk for an endpoint that does not support it, which reports it whole.
    fn from(chunk: Asconf) -> Self {
        let mut raw = vec![chunk_type::ASCONF, 0, 0, 0];
        chunk.encode(&mut raw);
        // It came in a chunk whose length has 16 bits.
        let length = u16::try_from(raw.len()).unwrap_or(u16::MAX);
        raw[2..4].copy_from_slice(&length.to_be_bytes());
        Self::from_raw(raw.into())
    }
}

impl PacketBuilder<'_> {
    /// Appends an ASCONF chunk.
    pub fn push_asconf(&mut self, chunk: &Asconf) -> bool {
        let mut value = Vec::new();
        chunk.encode(&mut value);
        self.push_chunk(chunk_type::ASCONF, 0, &value)
    }

    /// Appends an ASCONF-ACK chunk.
    pub fn push_asconf_ack(&mut self, chunk: &AsconfAck) -> bool {
        let mut value = chunk.serial.to_be_bytes().to_vec();
        tlv::put_list(&mut value, &chunk.responses, AsconfResponse::encode);
        self.push_chunk(chunk_type::ASCONF_ACK, 0, &value)
    }
}

#[cfg(test)]
mod tests;
