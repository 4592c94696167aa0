//! Items of type, length and value with 16-bit types: parameters and error causes.
//!
//! ```text
//! +---------------+---------------+---------------+---------------+
//! |             type              |            length             |
//! +---------------+---------------+---------------+---------------+
//! | value … padded with zeros to a multiple of four bytes         |
//! +---------------+---------------+---------------+---------------+
//! ```
//! The length counts the header and the value, not the padding (RFC 9260 §3.2.1, §3.3.10). The
//! last item's padding is the padding of the chunk around it.

use bytes::Bytes;

use crate::error::{DecodeError, DecodeErrorKind};

/// Length of an item's type and length fields in bytes.
pub(crate) const TLV_HEADER_LEN: usize = 4;

/// A sequence of items as it was received, or as it will be sent.
#[derive(Clone, Default)]
pub(crate) struct TlvList {
    pub(crate) bytes: Bytes,
    /// Where `bytes` begins in the packet; only for error reports.
    pub(crate) offset: usize,
}

/// One item, whole: header and value.
pub(crate) struct RawTlv {
    pub(crate) ty: u16,
    /// Header and value, without padding.
    pub(crate) raw: Bytes,
    /// Where the item begins in the packet.
    pub(crate) offset: usize,
}

impl RawTlv {
    pub(crate) fn value(&self) -> Bytes {
        self.raw.slice(TLV_HEADER_LEN..)
    }

    /// The value if it has exactly `N` bytes.
    pub(crate) fn value_exact<const N: usize>(&self) -> Option<[u8; N]> {
        self.raw[TLV_HEADER_LEN..].try_into().ok()
    }
}

/// Walks the items of a list; after an error it ends.
#[derive(Debug, Clone)]
pub(crate) struct TlvIter {
    rest: Bytes,
    offset: usize,
}

impl TlvList {
    pub(crate) fn iter(&self) -> TlvIter {
        TlvIter { rest: self.bytes.clone(), offset: self.offset }
    }
}

impl TlvIter {
    /// Yields nothing more.
    pub(crate) fn end(&mut self) {
        self.rest = Bytes::new();
    }
}

impl Iterator for TlvIter {
    type Item = Result<RawTlv, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let item = split_first(&self.rest, self.offset);
        match &item {
            Ok(tlv) => {
                let advance = padded(tlv.raw.len()).min(self.rest.len());
                self.rest = self.rest.slice(advance..);
                self.offset += advance;
            }
            Err(_) => self.end(),
        }
        Some(item)
    }
}

/// The first item of `bytes`, which begin at `offset` of the packet.
pub(crate) fn split_first(bytes: &Bytes, offset: usize) -> Result<RawTlv, DecodeError> {
    let available = bytes.len();
    let Some(&[t0, t1, l0, l1]) = bytes.first_chunk::<TLV_HEADER_LEN>() else {
        return Err(DecodeErrorKind::TlvHeaderTruncated { available }.at(offset));
    };
    let ty = u16::from_be_bytes([t0, t1]);
    let length = u16::from_be_bytes([l0, l1]);
    if usize::from(length) < TLV_HEADER_LEN || usize::from(length) > available {
        return Err(DecodeErrorKind::TlvLength { ty, length, available }.at(offset));
    }
    Ok(RawTlv { ty, raw: bytes.slice(..usize::from(length)), offset })
}

/// Appends one item; `write_value` appends its value. The length field holds what fits in 16
/// bits: a list beyond that is refused when it is put into a chunk.
pub(crate) fn put_tlv(out: &mut Vec<u8>, ty: u16, write_value: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&ty.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    write_value(out);
    let length = u16::try_from(out.len() - start).unwrap_or(u16::MAX);
    out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends items, each padded except the last.
pub(crate) fn put_list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    put_item: impl Fn(T, &mut Vec<u8>),
) {
    let start = out.len();
    for item in items {
        put_padding(out, start);
        put_item(item, out);
    }
}

/// Appends zeros until the length since `start` is a multiple of four.
#[inline]
pub(crate) fn put_padding(out: &mut Vec<u8>, start: usize) {
    let length = out.len() - start;
    out.extend_from_slice(&[0; 3][..padded(length) - length]);
}

/// `length` rounded up to a multiple of four.
pub(crate) const fn padded(length: usize) -> usize {
    (length + 3) & !3
}
