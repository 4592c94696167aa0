//! HEARTBEAT and HEARTBEAT ACK (RFC 9260 §3.3.5, §3.3.6).

use bytes::Bytes;

use super::{RawChunk, chunk_type};
use crate::builder::PacketBuilder;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::parameter::parameter_type;
use crate::tlv::{TLV_HEADER_LEN, split_first};

/// The contents of a HEARTBEAT or HEARTBEAT ACK chunk: bytes that only the prober understands and
/// that the answer returns unchanged. Here without the header of the parameter that carries them.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// | type = 4 or 5 |   flags = 0   |            length             |
/// +---------------+---------------+---------------+---------------+
/// |      parameter type = 1       |       parameter length        |
/// +---------------+---------------+---------------+---------------+
/// | heartbeat information …                                       |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HeartbeatInfo(pub Bytes);

impl HeartbeatInfo {
    pub(super) fn decode(raw: &RawChunk<'_>) -> Result<Self, DecodeError> {
        let parameter = split_first(&raw.value_from(0), raw.value_offset(0))?;
        if parameter.ty != parameter_type::HEARTBEAT_INFO {
            return Err(DecodeErrorKind::NoHeartbeatInfo { ty: parameter.ty }.at(parameter.offset));
        }
        Ok(Self(parameter.value()))
    }
}

impl PacketBuilder<'_> {
    /// Appends a HEARTBEAT chunk.
    pub fn push_heartbeat(&mut self, info: &[u8]) -> bool {
        self.push_heartbeat_info(chunk_type::HEARTBEAT, info)
    }

    /// Appends a HEARTBEAT ACK chunk with the information of the HEARTBEAT it answers.
    pub fn push_heartbeat_ack(&mut self, info: &[u8]) -> bool {
        self.push_heartbeat_info(chunk_type::HEARTBEAT_ACK, info)
    }

    fn push_heartbeat_info(&mut self, ty: u8, info: &[u8]) -> bool {
        let Ok(length) = u16::try_from(TLV_HEADER_LEN + info.len()) else { return false };
        let [t0, t1] = parameter_type::HEARTBEAT_INFO.to_be_bytes();
        let [l0, l1] = length.to_be_bytes();
        self.push_parts(ty, 0, [t0, t1, l0, l1], info)
    }
}
