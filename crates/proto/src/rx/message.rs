//! Messages that the receiver delivers.

use bytes::{Bytes, BytesMut};
use manypath_wire::{Ssn, StreamId};
use smallvec::SmallVec;

/// The user data of a message: the slices it arrived in, not copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload(SmallVec<[Bytes; 1]>);

impl Payload {
    /// A payload of no chunks with room for `chunks` of them.
    pub(super) fn with_capacity(chunks: usize) -> Payload {
        Payload(SmallVec::with_capacity(chunks))
    }

    pub(super) fn push(&mut self, chunk: Bytes) {
        self.0.push(chunk);
    }

    /// Bytes of user data.
    #[inline]
    pub fn len(&self) -> usize {
        match self.chunks() {
            [whole] => whole.len(),
            chunks => chunks.iter().map(Bytes::len).sum(),
        }
    }

    /// True if there is no user data.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slices in order, one for each DATA chunk.
    #[inline]
    pub fn chunks(&self) -> &[Bytes] {
        &self.0
    }

    /// A copy in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        self.0.concat()
    }

    /// The data in one piece; copied only if it came in several chunks.
    pub fn into_bytes(mut self) -> Bytes {
        if self.0.len() == 1 {
            return self.0.remove(0);
        }
        let mut whole = BytesMut::with_capacity(self.len());
        for chunk in &self.0 {
            whole.extend_from_slice(chunk);
        }
        whole.freeze()
    }
}

impl From<Bytes> for Payload {
    #[inline]
    fn from(chunk: Bytes) -> Payload {
        Payload(SmallVec::from_buf([chunk]))
    }
}

impl IntoIterator for Payload {
    type Item = Bytes;
    type IntoIter = smallvec::IntoIter<[Bytes; 1]>;

    /// The slices in order, by value.
    #[inline]
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// A user message, or one part of a message too large to hold as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The stream it came on.
    pub stream: StreamId,
    /// Its number in the stream; without meaning if `unordered`. With I-DATA, the lower 16 bits of
    /// its MID (RFC 8260 §4.1).
    pub ssn: Ssn,
    /// The payload protocol identifier of its first DATA chunk, in host order.
    pub ppid: u32,
    /// True if it was sent without regard to the order of its stream (RFC 9260 §6.6).
    pub unordered: bool,
    /// Its data.
    pub payload: Payload,
    /// False for a part that more parts follow (partial delivery, RFC 9260 §6.9). Until the last
    /// part, nothing else is delivered from the stream. If messages are interleaved, parts of
    /// messages of other streams may come between.
    pub end_of_message: bool,
    /// The sender gave up the message after parts of it were delivered (RFC 3758): this part is
    /// empty, and the rest never comes.
    pub is_cut_off: bool,
}
