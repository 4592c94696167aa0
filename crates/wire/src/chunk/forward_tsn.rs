//! FORWARD TSN (RFC 3758 §3.2) and I-FORWARD-TSN (RFC 8260 §2.3.1).

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::{CHUNK_HEADER_LEN, RawChunk, UnknownChunk, chunk_type};
use crate::builder::PacketBuilder;
use crate::error::DecodeError;
use crate::types::{Mid, StreamId, Tsn};

/// Length of FORWARD TSN and I-FORWARD-TSN without entries, in bytes.
pub const FORWARD_TSN_HEADER_LEN: usize = CHUNK_HEADER_LEN + 4;
/// Length of an entry of FORWARD TSN, in bytes.
pub const FORWARD_TSN_ENTRY_LEN: usize = 4;
/// Length of an entry of I-FORWARD-TSN, in bytes.
pub const I_FORWARD_TSN_ENTRY_LEN: usize = 8;

/// The U bit of an entry of I-FORWARD-TSN.
const FLAG_UNORDERED: u16 = 1;

/// A message that the sender has given up: the last one of its stream and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SkippedMessage {
    /// The stream.
    pub stream: StreamId,
    /// The message is unordered. Always false in FORWARD TSN, which does not list such messages.
    pub unordered: bool,
    /// The number of the message. In FORWARD TSN it is the SSN, and the upper 16 bits are 0.
    pub mid: Mid,
}

/// A FORWARD TSN or I-FORWARD-TSN chunk: its receiver takes all TSNs up to one as received.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// | type 192, 194 |     flags     |            length             |
/// +---------------+---------------+---------------+---------------+
/// |                    new cumulative TSN                         |
/// +---------------+---------------+---------------+---------------+
/// |       stream identifier       |    stream sequence number     |  192: for each stream
/// +---------------+---------------+---------------+---------------+
/// |       stream identifier       |         reserved            |U|  194: for each stream
/// +---------------+---------------+---------------+---------------+  and kind of messages
/// |                       message identifier                      |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardTsn {
    /// The new cumulative TSN.
    pub new_cum_tsn: Tsn,
    /// True for I-FORWARD-TSN.
    pub is_interleaved: bool,
    /// The entries as they came: a multiple of their length.
    entries: Bytes,
}

impl ForwardTsn {
    /// A chunk that lists these messages.
    pub fn new(
        new_cum_tsn: Tsn,
        is_interleaved: bool,
        skipped: impl IntoIterator<Item = SkippedMessage>,
    ) -> Self {
        let mut entries = BytesMut::new();
        for SkippedMessage { stream, unordered, mid } in skipped {
            entries.put_u16(stream.0);
            if is_interleaved {
                entries.put_u16(if unordered { FLAG_UNORDERED } else { 0 });
                entries.put_u32(mid.0);
            } else {
                entries.put_u16(mid.0 as u16);
            }
        }
        ForwardTsn { new_cum_tsn, is_interleaved, entries: entries.freeze() }
    }

    /// The messages that are listed.
    pub fn skipped(&self) -> impl Iterator<Item = SkippedMessage> + '_ {
        let length = entry_len(self.is_interleaved);
        self.entries.chunks_exact(length).map(|mut entry| {
            let (stream, second) = (StreamId(entry.get_u16()), entry.get_u16());
            if self.is_interleaved {
                let unordered = second & FLAG_UNORDERED != 0;
                SkippedMessage { stream, unordered, mid: Mid(entry.get_u32()) }
            } else {
                SkippedMessage { stream, unordered: false, mid: Mid(second.into()) }
            }
        })
    }

    /// The chunk type.
    pub(super) fn ty(&self) -> u8 {
        if self.is_interleaved { chunk_type::I_FORWARD_TSN } else { chunk_type::FORWARD_TSN }
    }

    /// Bytes behind the last whole entry are ignored.
    pub(super) fn decode(raw: &RawChunk<'_>) -> Result<Self, DecodeError> {
        let fixed: &[u8; 4] = raw.fixed()?;
        let is_interleaved = raw.ty == chunk_type::I_FORWARD_TSN;
        let mut entries = raw.value_from(4);
        entries.truncate(entries.len() / entry_len(is_interleaved) * entry_len(is_interleaved));
        Ok(Self { new_cum_tsn: Tsn(u32::from_be_bytes(*fixed)), is_interleaved, entries })
    }
}

impl From<ForwardTsn> for UnknownChunk {
    /// The chunk for an endpoint that does not support it, which reports it whole.
    fn from(chunk: ForwardTsn) -> Self {
        let length = FORWARD_TSN_HEADER_LEN + chunk.entries.len();
        let mut raw = BytesMut::with_capacity(length);
        raw.put_slice(&[chunk.ty(), 0]);
        // It came in a chunk whose length has 16 bits.
        raw.put_u16(u16::try_from(length).unwrap_or(u16::MAX));
        raw.put_u32(chunk.new_cum_tsn.0);
        raw.put_slice(&chunk.entries);
        Self::from_raw(raw.freeze())
    }
}

fn entry_len(is_interleaved: bool) -> usize {
    if is_interleaved { I_FORWARD_TSN_ENTRY_LEN } else { FORWARD_TSN_ENTRY_LEN }
}

impl PacketBuilder<'_> {
    /// Appends a FORWARD TSN or I-FORWARD-TSN chunk.
    pub fn push_forward_tsn(&mut self, chunk: &ForwardTsn) -> bool {
        self.push_parts(chunk.ty(), 0, chunk.new_cum_tsn.0.to_be_bytes(), &chunk.entries)
    }
}
