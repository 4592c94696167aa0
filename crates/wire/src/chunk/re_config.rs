//! RE-CONFIG: the chunk by which ends reset and add streams (RFC 6525).

use bytes::Bytes;

use super::{RawChunk, chunk_type};
use crate::builder::PacketBuilder;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::tlv::{self, RawTlv, TlvList};
use crate::types::{StreamId, Tsn};

/// The types of the parameters (RFC 6525 §4).
mod ty {
    pub(super) const OUTGOING_RESET: u16 = 13;
    pub(super) const INCOMING_RESET: u16 = 14;
    pub(super) const ASSOCIATION_RESET: u16 = 15;
    pub(super) const RESPONSE: u16 = 16;
    pub(super) const ADD_OUTGOING: u16 = 17;
    pub(super) const ADD_INCOMING: u16 = 18;
}

/// Requests to reset or add streams, and responses to such requests (RFC 6525 §3.1).
///
/// The chunk type asks a receiver that does not know it to skip it in silence.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |  type = 0x82  |     flags     |            length             |
/// +---------------+---------------+---------------+---------------+
/// | one or two parameters …                                       |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReConfig {
    /// The parameters up to the first of an unknown type, which ends their list (§4).
    pub parameters: Vec<ReConfigParameter>,
}

/// A parameter of a RE-CONFIG chunk (RFC 6525 §4).
///
/// The requests of an end are numbered, starting with the initial TSN of that end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReConfigParameter {
    /// Type 13: the sender resets streams that it sends on (§4.1).
    OutgoingReset(OutgoingReset),
    /// Type 14: the receiver shall reset streams that it sends on (§4.2).
    IncomingReset {
        /// The number of the request.
        request: u32,
        /// The streams; all if there are none.
        streams: Vec<StreamId>,
    },
    /// Type 15: all streams in both directions begin again, with other TSNs (§4.3).
    AssociationReset {
        /// The number of the request.
        request: u32,
    },
    /// Type 16: the answer to a request (§4.4).
    Response(ReConfigResponse),
    /// Type 17: the sender adds streams that it sends on (§4.5).
    AddOutgoing {
        /// The number of the request.
        request: u32,
        /// The number of streams to add.
        streams: u16,
    },
    /// Type 18: the receiver shall add streams that it sends on (§4.6).
    AddIncoming {
        /// The number of the request.
        request: u32,
        /// The number of streams to add.
        streams: u16,
    },
}

/// Outgoing SSN Reset Request (RFC 6525 §4.1).
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |           type = 13           |      length = 16 + 2 · n      |
/// +---------------+---------------+---------------+---------------+
/// |                     number of the request                     |
/// +---------------+---------------+---------------+---------------+
/// |            number of the request that it answers              |
/// +---------------+---------------+---------------+---------------+
/// |                    last TSN of the sender                     |
/// +---------------+---------------+---------------+---------------+
/// | n stream identifiers of two bytes …                           |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutgoingReset {
    /// The number of the request.
    pub request: u32,
    /// The number of the Incoming SSN Reset Request that this request answers. Without one, the
    /// number of the last request that came from the receiver.
    pub response: u32,
    /// The last TSN that the sender has assigned. All up to it belong to the time before.
    pub last_tsn: Tsn,
    /// The streams; all if there are none.
    pub streams: Vec<StreamId>,
}

/// Re-configuration Response (RFC 6525 §4.4).
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |           type = 16           |        length = 12, 20        |
/// +---------------+---------------+---------------+---------------+
/// |                     number of the request                     |
/// +---------------+---------------+---------------+---------------+
/// |                            result                             |
/// +---------------+---------------+---------------+---------------+
/// |               next TSN of the sender (optional)               |
/// +---------------+---------------+---------------+---------------+
/// |              next TSN of the receiver (optional)              |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReConfigResponse {
    /// The number of the request.
    pub request: u32,
    /// The result.
    pub result: ReConfigResult,
    /// The answer to an SSN/TSN Reset Request: the next TSN of this chunk's sender, and that of its
    /// receiver.
    pub next_tsns: Option<(Tsn, Tsn)>,
}

/// The result of a request (RFC 6525 §4.4, table 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReConfigResult(pub u32);

impl ReConfigResult {
    /// Success: there was nothing to do.
    pub const NOTHING_TO_DO: ReConfigResult = ReConfigResult(0);
    /// Success: it was done.
    pub const PERFORMED: ReConfigResult = ReConfigResult(1);
    /// The receiver does not want it.
    pub const DENIED: ReConfigResult = ReConfigResult(2);
    /// Error: a stream is wrong.
    pub const WRONG_SSN: ReConfigResult = ReConfigResult(3);
    /// Error: another request is in progress.
    pub const REQUEST_IN_PROGRESS: ReConfigResult = ReConfigResult(4);
    /// Error: the number of the request is not the next.
    pub const BAD_SEQUENCE_NUMBER: ReConfigResult = ReConfigResult(5);
    /// The request waits; it must be sent again.
    pub const IN_PROGRESS: ReConfigResult = ReConfigResult(6);

    /// True for both kinds of success.
    #[must_use]
    pub const fn is_success(self) -> bool {
        self.0 <= Self::PERFORMED.0
    }
}

impl ReConfig {
    pub(super) fn decode(raw: &RawChunk<'_>) -> Result<Self, DecodeError> {
        let list = TlvList { bytes: raw.value_from(0), offset: raw.value_offset(0) };
        let mut parameters = Vec::new();
        for tlv in list.iter() {
            // The types say to process no more of the chunk if they are not known.
            let Some(parameter) = ReConfigParameter::decode(&tlv?)? else { break };
            parameters.push(parameter);
        }
        Ok(Self { parameters })
    }
}

impl ReConfigParameter {
    /// The number of the request; `None` for a response.
    #[must_use]
    pub fn request(&self) -> Option<u32> {
        match self {
            ReConfigParameter::OutgoingReset(reset) => Some(reset.request),
            ReConfigParameter::IncomingReset { request, .. }
            | ReConfigParameter::AssociationReset { request }
            | ReConfigParameter::AddOutgoing { request, .. }
            | ReConfigParameter::AddIncoming { request, .. } => Some(*request),
            ReConfigParameter::Response(_) => None,
        }
    }

    /// `None` if the type is not known.
    fn decode(tlv: &RawTlv) -> Result<Option<Self>, DecodeError> {
        let bad_length = || {
            DecodeErrorKind::ParameterLength { ty: tlv.ty, length: tlv.raw.len() }.at(tlv.offset)
        };
        let value = tlv.value();
        let number = |at| number(&value, at).ok_or_else(bad_length);
        let parameter = match tlv.ty {
            ty::OUTGOING_RESET => ReConfigParameter::OutgoingReset(OutgoingReset {
                request: number(0)?,
                response: number(1)?,
                last_tsn: Tsn(number(2)?),
                streams: streams(&value[12..]).ok_or_else(bad_length)?,
            }),
            ty::INCOMING_RESET => ReConfigParameter::IncomingReset {
                request: number(0)?,
                streams: streams(&value[4..]).ok_or_else(bad_length)?,
            },
            ty::ASSOCIATION_RESET if value.len() == 4 => {
                ReConfigParameter::AssociationReset { request: number(0)? }
            }
            ty::RESPONSE if matches!(value.len(), 8 | 16) => {
                ReConfigParameter::Response(ReConfigResponse {
                    request: number(0)?,
                    result: ReConfigResult(number(1)?),
                    next_tsns: match value.len() {
                        16 => Some((Tsn(number(2)?), Tsn(number(3)?))),
                        _ => None,
                    },
                })
            }
            ty::ADD_OUTGOING if value.len() == 8 => ReConfigParameter::AddOutgoing {
                request: number(0)?,
                streams: (number(1)? >> 16) as u16,
            },
            ty::ADD_INCOMING if value.len() == 8 => ReConfigParameter::AddIncoming {
                request: number(0)?,
                streams: (number(1)? >> 16) as u16,
            },
            ty::ASSOCIATION_RESET | ty::RESPONSE | ty::ADD_OUTGOING | ty::ADD_INCOMING => {
                return Err(bad_length());
            }
            _ => return Ok(None),
        };
        Ok(Some(parameter))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let (ty, numbers, streams): (_, &[u32], &[StreamId]) = match self {
            ReConfigParameter::OutgoingReset(r) => {
                (ty::OUTGOING_RESET, &[r.request, r.response, r.last_tsn.0], &r.streams)
            }
            ReConfigParameter::IncomingReset { request, streams } => {
                (ty::INCOMING_RESET, &[*request], streams)
            }
            ReConfigParameter::AssociationReset { request } => {
                (ty::ASSOCIATION_RESET, &[*request], &[])
            }
            ReConfigParameter::Response(r) => match r.next_tsns {
                Some((own, peers)) => (ty::RESPONSE, &[r.request, r.result.0, own.0, peers.0], &[]),
                None => (ty::RESPONSE, &[r.request, r.result.0], &[]),
            },
            ReConfigParameter::AddOutgoing { request, streams } => {
                (ty::ADD_OUTGOING, &[*request, u32::from(*streams) << 16], &[])
            }
            ReConfigParameter::AddIncoming { request, streams } => {
                (ty::ADD_INCOMING, &[*request, u32::from(*streams) << 16], &[])
            }
        };
        tlv::put_tlv(out, ty, |out| {
            out.extend(numbers.iter().flat_map(|n| n.to_be_bytes()));
            out.extend(streams.iter().flat_map(|stream| stream.0.to_be_bytes()));
        });
    }
}

/// The number at a place of a value that begins with 32-bit numbers.
fn number(value: &Bytes, at: usize) -> Option<u32> {
    value.get(at * 4..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// A list of streams that fills the rest of a value.
fn streams(rest: &[u8]) -> Option<Vec<StreamId>> {
    let (pairs, []) = rest.as_chunks::<2>() else { return None };
    Some(pairs.iter().map(|pair| StreamId(u16::from_be_bytes(*pair))).collect())
}

impl PacketBuilder<'_> {
    /// Appends a RE-CONFIG chunk.
    pub fn push_re_config(&mut self, chunk: &ReConfig) -> bool {
        let mut value = Vec::new();
        tlv::put_list(&mut value, &chunk.parameters, ReConfigParameter::encode);
        self.push_chunk(chunk_type::RE_CONFIG, 0, &value)
    }
}

#[cfg(test)]
mod tests;
