//! INIT and INIT ACK (RFC 9260 §3.3.2, §3.3.3).

use super::{CHUNK_HEADER_LEN, RawChunk, chunk_type};
use crate::builder::PacketBuilder;
use crate::error::DecodeError;
use crate::header::COMMON_HEADER_LEN;
use crate::parameter::{Parameter, Params, UnknownParameter, parameter_type};
use crate::tlv::TLV_HEADER_LEN;
use crate::types::Tsn;

const FIXED_LEN: usize = 16;

/// An INIT or INIT ACK chunk: what one side brings to the association.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// | type = 1 or 2 |   flags = 0   |            length             |
/// +---------------+---------------+---------------+---------------+
/// |                         initiate tag                          |
/// +---------------+---------------+---------------+---------------+
/// |          advertised receiver window credit (a_rwnd)           |
/// +---------------+---------------+---------------+---------------+
/// |  number of outbound streams   |   number of inbound streams   |
/// +---------------+---------------+---------------+---------------+
/// |                          initial TSN                          |
/// +---------------+---------------+---------------+---------------+
/// | parameters …                                                  |
/// +---------------+---------------+---------------+---------------+
/// ```
///
/// The values are as received: whether a tag or a number of streams is zero is for the receiver to
/// judge (§5.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Init {
    /// The verification tag the other side shall put into its packets; not zero in a valid chunk.
    pub initiate_tag: u32,
    /// Receive buffer space in bytes; at least 1500 in a valid chunk.
    pub a_rwnd: u32,
    /// Streams the sender wishes to send on; not zero in a valid chunk.
    pub outbound_streams: u16,
    /// Streams the sender can receive on; not zero in a valid chunk.
    pub inbound_streams: u16,
    /// The TSN of the sender's first DATA chunk.
    pub initial_tsn: Tsn,
    /// Optional and variable-length parameters. To build them, collect
    /// [`Parameter`](crate::Parameter)s.
    pub params: Params,
}

impl Init {
    pub(super) fn decode(raw: &RawChunk<'_>) -> Result<Self, DecodeError> {
        let [t0, t1, t2, t3, a0, a1, a2, a3, o0, o1, i0, i1, n0, n1, n2, n3] =
            *raw.fixed::<FIXED_LEN>()?;
        Ok(Self {
            initiate_tag: u32::from_be_bytes([t0, t1, t2, t3]),
            a_rwnd: u32::from_be_bytes([a0, a1, a2, a3]),
            outbound_streams: u16::from_be_bytes([o0, o1]),
            inbound_streams: u16::from_be_bytes([i0, i1]),
            initial_tsn: Tsn(u32::from_be_bytes([n0, n1, n2, n3])),
            params: Params::received(raw.value_from(FIXED_LEN), raw.value_offset(FIXED_LEN)),
        })
    }

    /// This INIT, made so long that a packet with it alone has `len` bytes, a multiple of 4, by a
    /// parameter that receivers skip (RFC 4820 §4). One that leaves no room for it stays as it is.
    #[must_use]
    pub fn padded_to(self, len: usize) -> Init {
        let params = self.params.as_bytes().len().next_multiple_of(4);
        let taken = COMMON_HEADER_LEN + CHUNK_HEADER_LEN + FIXED_LEN + params + TLV_HEADER_LEN;
        let Some(padding) = len.checked_sub(taken) else { return self };
        let padding = UnknownParameter::new(parameter_type::PADDING, &vec![0; padding]);
        let all = self.params.iter().map_while(Result::ok);
        Init { params: all.chain([Parameter::Unknown(padding)]).collect(), ..self }
    }

    fn push(&self, ty: u8, packet: &mut PacketBuilder<'_>) -> bool {
        let mut fixed = [0; FIXED_LEN];
        fixed[..4].copy_from_slice(&self.initiate_tag.to_be_bytes());
        fixed[4..8].copy_from_slice(&self.a_rwnd.to_be_bytes());
        fixed[8..10].copy_from_slice(&self.outbound_streams.to_be_bytes());
        fixed[10..12].copy_from_slice(&self.inbound_streams.to_be_bytes());
        fixed[12..].copy_from_slice(&self.initial_tsn.0.to_be_bytes());
        packet.push_parts(ty, 0, fixed, self.params.as_bytes())
    }
}

impl PacketBuilder<'_> {
    /// Appends an INIT chunk, which must be alone in its packet (§6.10).
    pub fn push_init(&mut self, init: &Init) -> bool {
        init.push(chunk_type::INIT, self)
    }

    /// Appends an INIT ACK chunk, which like INIT must be alone in its packet (§6.10).
    pub fn push_init_ack(&mut self, init: &Init) -> bool {
        init.push(chunk_type::INIT_ACK, self)
    }
}
