//! DTLS Key Management (draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.1).

use std::ops::BitOr;

use bytes::Bytes;

use super::parameter_type;
use crate::tlv::{RawTlv, TLV_HEADER_LEN, put_tlv};

/// Length of the tie breaker and the flags.
const FIXED_LEN: usize = 5;

/// Where the flags are, and where the methods begin.
const FLAGS: usize = TLV_HEADER_LEN + 4;
const METHODS: usize = TLV_HEADER_LEN + FIXED_LEN;

/// The offer of an endpoint to protect the association with DTLS chunks (§4.1). It stands in INIT
/// and INIT ACK only.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |    parameter type = 0x8006    |       parameter length        |
/// +---------------+---------------+---------------+---------------+
/// |                          tie breaker                          |
/// +---------------+---------------+---------------+---------------+
/// |reserved |R|S|C|   method 1    |   method 2    | …             |
/// +---------------+---------------+---------------+---------------+
/// ```
///
/// The parameter is kept as its bytes, because keys are derived from them (§10.3). What was
/// received is a slice of the datagram: copy [`raw`](Self::raw) to keep it for long.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DtlsKeyManagement {
    /// Header, tie breaker, flags and at least one method.
    raw: Bytes,
}

impl DtlsKeyManagement {
    /// The most methods that are sent, and read of a received parameter: one for each identifier
    /// but 255, which is reserved (§9.1).
    pub const MAX_METHODS: usize = 255;

    /// A parameter to send, with its methods in order of preference, the best first. Reserved flags
    /// are not sent. `None` if there is no method or if there are more than
    /// [`MAX_METHODS`](Self::MAX_METHODS).
    #[must_use]
    pub fn new(tie_breaker: u32, flags: DtlsKeyManagementFlags, methods: &[u8]) -> Option<Self> {
        if methods.is_empty() || methods.len() > Self::MAX_METHODS {
            return None;
        }
        let mut raw = Vec::with_capacity(METHODS + methods.len());
        put_tlv(&mut raw, parameter_type::DTLS_KEY_MANAGEMENT, |out| {
            out.extend_from_slice(&tie_breaker.to_be_bytes());
            out.push(flags.0 & DtlsKeyManagementFlags::ALL.0);
            out.extend_from_slice(methods);
        });
        Some(Self { raw: raw.into() })
    }

    /// The parameter with these [bytes](Self::raw); `None` if they are not exactly one.
    #[must_use]
    pub fn from_raw(raw: Bytes) -> Option<Self> {
        let header = raw.first_chunk::<TLV_HEADER_LEN>()?;
        let [t0, t1, l0, l1] = *header;
        let is_whole = usize::from(u16::from_be_bytes([l0, l1])) == raw.len();
        let is_one = u16::from_be_bytes([t0, t1]) == parameter_type::DTLS_KEY_MANAGEMENT;
        (is_whole && is_one && raw.len() > METHODS).then_some(Self { raw })
    }

    /// `None` without a method: such a parameter offers nothing, as if it were not known.
    pub(super) fn decode(tlv: &RawTlv) -> Option<Self> {
        (tlv.raw.len() > METHODS).then(|| Self { raw: tlv.raw.clone() })
    }

    /// The random number that decides the roles if both endpoints can take both: the larger one is
    /// the server's (§5.1).
    #[must_use]
    pub fn tie_breaker(&self) -> u32 {
        u32::from_be_bytes([self.raw[4], self.raw[5], self.raw[6], self.raw[7]])
    }

    /// R, S and C bits.
    #[must_use]
    pub fn flags(&self) -> DtlsKeyManagementFlags {
        DtlsKeyManagementFlags(self.raw[FLAGS])
    }

    /// The identifiers of the key management methods, the preferred first: at least one. Of a
    /// received list, those behind the first [`MAX_METHODS`](Self::MAX_METHODS) are ignored.
    #[must_use]
    pub fn methods(&self) -> &[u8] {
        let end = self.raw.len().min(METHODS + Self::MAX_METHODS);
        &self.raw[METHODS..end]
    }

    /// The exact bytes of the parameter for key derivation: its header included, padding excluded,
    /// reserved bits as they were received. Those of the parameter that is sent and of the one that
    /// the peer receives are the same, unless somebody changed it on the way.
    #[must_use]
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// The bytes after the parameter header.
    pub(super) fn value(&self) -> &[u8] {
        &self.raw[TLV_HEADER_LEN..]
    }
}

/// The flags of a DTLS Key Management parameter (§4.1). Reserved bits are kept as received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DtlsKeyManagementFlags(pub u8);

impl DtlsKeyManagementFlags {
    /// C: the sender can be the client of the key management method.
    pub const CLIENT: Self = Self(1);
    /// S: the sender can be the server of the key management method.
    pub const SERVER: Self = Self(2);
    /// R: the sender supports protected restarts of the association.
    pub const RESTART: Self = Self(4);

    /// All bits that are not reserved.
    const ALL: Self = Self(7);

    /// True if the sender can be the client.
    #[must_use]
    pub const fn client(self) -> bool {
        self.0 & Self::CLIENT.0 != 0
    }

    /// True if the sender can be the server.
    #[must_use]
    pub const fn server(self) -> bool {
        self.0 & Self::SERVER.0 != 0
    }

    /// True if the sender supports protected restarts.
    #[must_use]
    pub const fn restart(self) -> bool {
        self.0 & Self::RESTART.0 != 0
    }
}

impl BitOr for DtlsKeyManagementFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests;
