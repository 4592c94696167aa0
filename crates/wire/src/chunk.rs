//! Chunks: the items of a packet, one file for each kind.
//!
//! ```text
//!  0               1               2               3
//! +---------------+---------------+---------------+---------------+
//! |     type      |     flags     |            length             |
//! +---------------+---------------+---------------+---------------+
//! | value … padded with zeros to a multiple of four bytes         |
//! +---------------+---------------+---------------+---------------+
//! ```
//! The length counts the header and the value, not the padding (RFC 9260 §3.2).

mod abort;
mod asconf;
mod auth;
mod candidates;
mod cookie;
mod data;
mod dtls;
mod ecn;
mod forward_tsn;
mod heartbeat;
mod i_data;
mod init;
mod pad;
mod re_config;
mod sack;
mod sack_path;
mod shutdown;
mod timestamp;
mod unknown;

use bytes::Bytes;

pub use abort::{Abort, ErrorChunk};
pub use asconf::{Asconf, AsconfAck, AsconfRequest, AsconfResponse};
pub use auth::{AUTH_HEADER_LEN, Auth, hmac_id};
pub use candidates::{CANDIDATES_MAX, CandidateKind, Candidates, NamedAddress};
pub use data::{DATA_HEADER_LEN, Data, DataFlags};
pub use dtls::{
    DTLS_CONTENT_OFFSET, DTLS_OVERHEAD, DTLS_PADDED_OVERHEAD, DTLS_RECORD_HEADER_LEN,
    DTLS_RECORD_MIN_LEN, DTLS_RECORD_OFFSET, DTLS_TRAILER_LEN, Dtls,
};
pub use ecn::{Cwr, Ecne};
pub use forward_tsn::{
    FORWARD_TSN_ENTRY_LEN, FORWARD_TSN_HEADER_LEN, ForwardTsn, I_FORWARD_TSN_ENTRY_LEN,
    SkippedMessage,
};
pub use heartbeat::HeartbeatInfo;
pub use i_data::{I_DATA_HEADER_LEN, IData};
pub use init::Init;
pub use pad::Pad;
pub use re_config::{OutgoingReset, ReConfig, ReConfigParameter, ReConfigResponse, ReConfigResult};
pub use sack::{DuplicateTsns, GapAckBlock, GapAckBlocks, Sack};
pub use sack_path::{SACK_PATH_LEN, SackPath};
pub use shutdown::Shutdown;
pub use timestamp::{TIMESTAMP_LEN, Timestamp};
pub use unknown::UnknownChunk;

use crate::builder::PacketBuilder;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::header::CHUNK_HEADER_LEN;

/// The T bit of ABORT and SHUTDOWN COMPLETE: the verification tag is the receiver's own, reflected.
const FLAG_T: u8 = 1;

/// Chunk types (RFC 9260 §3.2).
pub mod chunk_type {
    /// User data.
    pub const DATA: u8 = 0;
    /// First message of the handshake.
    pub const INIT: u8 = 1;
    /// Answer to INIT, with the state cookie.
    pub const INIT_ACK: u8 = 2;
    /// Selective acknowledgement.
    pub const SACK: u8 = 3;
    /// Probe of a path.
    pub const HEARTBEAT: u8 = 4;
    /// Answer to HEARTBEAT.
    pub const HEARTBEAT_ACK: u8 = 5;
    /// Immediate end of the association.
    pub const ABORT: u8 = 6;
    /// Start of a graceful end.
    pub const SHUTDOWN: u8 = 7;
    /// Answer to SHUTDOWN.
    pub const SHUTDOWN_ACK: u8 = 8;
    /// Report of errors that do not end the association by themselves.
    pub const ERROR: u8 = 9;
    /// The state cookie, returned.
    pub const COOKIE_ECHO: u8 = 10;
    /// Last message of the handshake.
    pub const COOKIE_ACK: u8 = 11;
    /// A packet met congestion (RFC 4960, appendix A).
    pub const ECNE: u8 = 12;
    /// Answer to ECNE: the congestion window was reduced (RFC 4960, appendix A).
    pub const CWR: u8 = 13;
    /// Last message of a graceful end.
    pub const SHUTDOWN_COMPLETE: u8 = 14;
    /// The HMAC over the chunks that follow (RFC 4895).
    pub const AUTH: u8 = 15;
    /// Selective acknowledgement that tells what the receiver will not take back
    /// (draft-tuexen-tsvwg-sctp-multipath).
    pub const NR_SACK: u8 = 0x10;
    /// User data whose messages may be interleaved (RFC 8260).
    pub const I_DATA: u8 = 0x40;
    /// The chunks of a packet, protected (draft-ietf-tsvwg-sctp-dtls-chunk).
    pub const DTLS: u8 = 0x41;
    /// Answers to requests to change addresses (RFC 5061).
    pub const ASCONF_ACK: u8 = 0x80;
    /// Requests to reset or add streams, and the answers (RFC 6525).
    pub const RE_CONFIG: u8 = 0x82;
    /// Padding (RFC 4820).
    pub const PAD: u8 = 0x84;
    /// When the packet was sent; private, to be skipped in silence where it is not known.
    pub const TIMESTAMP: u8 = 0xb5;
    /// Which path SACKs take; private, to be skipped in silence where it is not known.
    pub const SACK_PATH: u8 = 0xb6;
    /// Never sent: in Supported Extensions it says that the end needs no SACK for every second
    /// packet (RFC 9260 §6.2); private, to be skipped in silence where it is not known.
    pub const RARE_SACKS: u8 = 0xb7;
    /// Where an end may be reached directly; private, to be skipped in silence where it is not
    /// known.
    pub const CANDIDATES: u8 = 0xb8;
    /// All TSNs up to one count as received (RFC 3758).
    pub const FORWARD_TSN: u8 = 0xc0;
    /// Requests to change addresses (RFC 5061).
    pub const ASCONF: u8 = 0xc1;
    /// FORWARD TSN of an association whose messages may be interleaved (RFC 8260).
    pub const I_FORWARD_TSN: u8 = 0xc2;
}

/// One decoded chunk.
///
/// Flags a type does not define are ignored, as is what follows the fields of a type of fixed size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunk {
    /// User data (§3.3.1).
    Data(Data),
    /// User data whose messages may be interleaved (RFC 8260 §2.1).
    IData(IData),
    /// Initiation (§3.3.2).
    Init(Init),
    /// Initiation acknowledgement (§3.3.3).
    InitAck(Init),
    /// Selective acknowledgement (§3.3.4).
    Sack(Sack),
    /// Selective acknowledgement with non-renegable gap ack blocks
    /// (draft-tuexen-tsvwg-sctp-multipath).
    NrSack(Sack),
    /// Heartbeat request (§3.3.5).
    Heartbeat(HeartbeatInfo),
    /// Heartbeat acknowledgement (§3.3.6).
    HeartbeatAck(HeartbeatInfo),
    /// Abort (§3.3.7).
    Abort(Abort),
    /// Shutdown (§3.3.8).
    Shutdown(Shutdown),
    /// Shutdown acknowledgement (§3.3.9).
    ShutdownAck,
    /// Operation error (§3.3.10).
    Error(ErrorChunk),
    /// State cookie, returned to its sender (§3.3.11).
    CookieEcho(Bytes),
    /// Cookie acknowledgement (§3.3.12).
    CookieAck,
    /// A packet met congestion (RFC 4960, appendix A).
    Ecne(Ecne),
    /// The congestion window was reduced (RFC 4960, appendix A).
    Cwr(Cwr),
    /// Shutdown complete (§3.3.13).
    ShutdownComplete {
        /// The T bit: the packet's verification tag is the receiver's own, reflected (§8.5.1).
        tag_reflected: bool,
    },
    /// The HMAC over the chunks that follow (RFC 4895 §5.1).
    Auth(Auth),
    /// The chunks of a packet, protected (draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.2).
    Dtls(Dtls),
    /// Requests to reset or add streams, and the answers (RFC 6525 §3.1).
    ReConfig(ReConfig),
    /// Requests to change addresses (RFC 5061 §4.1.1).
    Asconf(Asconf),
    /// The answers to them (RFC 5061 §4.1.2).
    AsconfAck(AsconfAck),
    /// Padding (RFC 4820).
    Pad(Pad),
    /// When the packet was sent: private.
    Timestamp(Timestamp),
    /// Which path SACKs take: private.
    SackPath(SackPath),
    /// Where an end may be reached directly: private.
    Candidates(Candidates),
    /// TSNs that the sender has given up (RFC 3758 §3.2, RFC 8260 §2.3.1).
    ForwardTsn(ForwardTsn),
    /// A type this crate does not know.
    Unknown(UnknownChunk),
}

impl Chunk {
    #[inline]
    pub(crate) fn decode(raw: &RawChunk<'_>) -> Result<Chunk, DecodeError> {
        Ok(match raw.ty {
            chunk_type::DATA => Chunk::Data(Data::decode(raw)?),
            chunk_type::I_DATA => Chunk::IData(IData::decode(raw)?),
            chunk_type::SACK => Chunk::Sack(Sack::decode(raw)?),
            chunk_type::NR_SACK => Chunk::NrSack(Sack::decode_nr(raw)?),
            chunk_type::INIT => Chunk::Init(Init::decode(raw)?),
            chunk_type::INIT_ACK => Chunk::InitAck(Init::decode(raw)?),
            chunk_type::HEARTBEAT => Chunk::Heartbeat(HeartbeatInfo::decode(raw)?),
            chunk_type::HEARTBEAT_ACK => Chunk::HeartbeatAck(HeartbeatInfo::decode(raw)?),
            chunk_type::ABORT => Chunk::Abort(Abort::decode(raw)),
            chunk_type::SHUTDOWN => Chunk::Shutdown(Shutdown::decode(raw)?),
            chunk_type::SHUTDOWN_ACK => Chunk::ShutdownAck,
            chunk_type::ERROR => Chunk::Error(ErrorChunk::decode(raw)),
            chunk_type::COOKIE_ECHO => Chunk::CookieEcho(raw.value_from(0)),
            chunk_type::COOKIE_ACK => Chunk::CookieAck,
            chunk_type::ECNE => Chunk::Ecne(Ecne::decode(raw)?),
            chunk_type::CWR => Chunk::Cwr(Cwr::decode(raw)?),
            chunk_type::SHUTDOWN_COMPLETE => {
                Chunk::ShutdownComplete { tag_reflected: raw.flags & FLAG_T != 0 }
            }
            chunk_type::AUTH => match Auth::decode(raw) {
                Some(auth) => Chunk::Auth(auth),
                None => Chunk::Unknown(UnknownChunk::decode(raw)),
            },
            chunk_type::DTLS => Chunk::Dtls(Dtls::decode(raw)?),
            chunk_type::RE_CONFIG => Chunk::ReConfig(ReConfig::decode(raw)?),
            chunk_type::ASCONF => Chunk::Asconf(Asconf::decode(raw)?),
            chunk_type::ASCONF_ACK => Chunk::AsconfAck(AsconfAck::decode(raw)?),
            chunk_type::PAD => Chunk::Pad(Pad::decode(raw)),
            chunk_type::TIMESTAMP => match Timestamp::decode(raw) {
                Some(timestamp) => Chunk::Timestamp(timestamp),
                None => Chunk::Unknown(UnknownChunk::decode(raw)),
            },
            chunk_type::SACK_PATH => match SackPath::decode(raw) {
                Some(path) => Chunk::SackPath(path),
                None => Chunk::Unknown(UnknownChunk::decode(raw)),
            },
            chunk_type::CANDIDATES => match Candidates::decode(raw) {
                Some(candidates) => Chunk::Candidates(candidates),
                None => Chunk::Unknown(UnknownChunk::decode(raw)),
            },
            chunk_type::FORWARD_TSN | chunk_type::I_FORWARD_TSN => {
                Chunk::ForwardTsn(ForwardTsn::decode(raw)?)
            }
            _ => Chunk::Unknown(UnknownChunk::decode(raw)),
        })
    }

    /// The chunk type, one of [`chunk_type`] unless unknown.
    #[must_use]
    pub fn ty(&self) -> u8 {
        match self {
            Chunk::Data(_) => chunk_type::DATA,
            Chunk::IData(_) => chunk_type::I_DATA,
            Chunk::Init(_) => chunk_type::INIT,
            Chunk::InitAck(_) => chunk_type::INIT_ACK,
            Chunk::Sack(_) => chunk_type::SACK,
            Chunk::NrSack(_) => chunk_type::NR_SACK,
            Chunk::Heartbeat(_) => chunk_type::HEARTBEAT,
            Chunk::HeartbeatAck(_) => chunk_type::HEARTBEAT_ACK,
            Chunk::Abort(_) => chunk_type::ABORT,
            Chunk::Shutdown(_) => chunk_type::SHUTDOWN,
            Chunk::ShutdownAck => chunk_type::SHUTDOWN_ACK,
            Chunk::Error(_) => chunk_type::ERROR,
            Chunk::CookieEcho(_) => chunk_type::COOKIE_ECHO,
            Chunk::CookieAck => chunk_type::COOKIE_ACK,
            Chunk::Ecne(_) => chunk_type::ECNE,
            Chunk::Cwr(_) => chunk_type::CWR,
            Chunk::ShutdownComplete { .. } => chunk_type::SHUTDOWN_COMPLETE,
            Chunk::Auth(_) => chunk_type::AUTH,
            Chunk::Dtls(_) => chunk_type::DTLS,
            Chunk::ReConfig(_) => chunk_type::RE_CONFIG,
            Chunk::Asconf(_) => chunk_type::ASCONF,
            Chunk::AsconfAck(_) => chunk_type::ASCONF_ACK,
            Chunk::Pad(_) => chunk_type::PAD,
            Chunk::Timestamp(_) => chunk_type::TIMESTAMP,
            Chunk::SackPath(_) => chunk_type::SACK_PATH,
            Chunk::Candidates(_) => chunk_type::CANDIDATES,
            Chunk::ForwardTsn(chunk) => chunk.ty(),
            Chunk::Unknown(chunk) => chunk.ty(),
        }
    }

    /// The name that its RFC or draft gives the chunk, or `"unknown"`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Chunk::Data(_) => "DATA",
            Chunk::IData(_) => "I-DATA",
            Chunk::Init(_) => "INIT",
            Chunk::InitAck(_) => "INIT ACK",
            Chunk::Sack(_) => "SACK",
            Chunk::NrSack(_) => "NR-SACK",
            Chunk::Heartbeat(_) => "HEARTBEAT",
            Chunk::HeartbeatAck(_) => "HEARTBEAT ACK",
            Chunk::Abort(_) => "ABORT",
            Chunk::Shutdown(_) => "SHUTDOWN",
            Chunk::ShutdownAck => "SHUTDOWN ACK",
            Chunk::Error(_) => "ERROR",
            Chunk::CookieEcho(_) => "COOKIE ECHO",
            Chunk::CookieAck => "COOKIE ACK",
            Chunk::Ecne(_) => "ECNE",
            Chunk::Cwr(_) => "CWR",
            Chunk::ShutdownComplete { .. } => "SHUTDOWN COMPLETE",
            Chunk::Auth(_) => "AUTH",
            Chunk::Dtls(_) => "DTLS",
            Chunk::ReConfig(_) => "RE-CONFIG",
            Chunk::Asconf(_) => "ASCONF",
            Chunk::AsconfAck(_) => "ASCONF-ACK",
            Chunk::Pad(_) => "PAD",
            Chunk::Timestamp(_) => "TIMESTAMP",
            Chunk::SackPath(_) => "SACK PATH",
            Chunk::Candidates(_) => "CANDIDATES",
            Chunk::ForwardTsn(chunk) if chunk.is_interleaved => "I-FORWARD-TSN",
            Chunk::ForwardTsn(_) => "FORWARD TSN",
            Chunk::Unknown(_) => "unknown",
        }
    }
}

impl PacketBuilder<'_> {
    /// Appends a decoded chunk. What decoding ignored is zero or absent.
    pub fn push(&mut self, chunk: &Chunk) -> bool {
        match chunk {
            Chunk::Data(data) => data.push(self),
            Chunk::IData(data) => data.push(self),
            Chunk::Init(init) => self.push_init(init),
            Chunk::InitAck(init) => self.push_init_ack(init),
            Chunk::Sack(sack) => sack.push(self),
            Chunk::NrSack(sack) => sack.push_nr(self),
            Chunk::Heartbeat(info) => self.push_heartbeat(&info.0),
            Chunk::HeartbeatAck(info) => self.push_heartbeat_ack(&info.0),
            Chunk::Abort(abort) => abort.push(self),
            Chunk::Shutdown(shutdown) => self.push_shutdown(shutdown.cum_tsn_ack),
            Chunk::ShutdownAck => self.push_shutdown_ack(),
            Chunk::Error(error) => error.push(self),
            Chunk::CookieEcho(cookie) => self.push_cookie_echo(cookie),
            Chunk::CookieAck => self.push_cookie_ack(),
            Chunk::Ecne(chunk) => self.push_ecne(*chunk),
            Chunk::Cwr(chunk) => self.push_cwr(*chunk),
            Chunk::ShutdownComplete { tag_reflected } => {
                self.push_shutdown_complete(*tag_reflected)
            }
            Chunk::Auth(auth) => self.push_auth(auth),
            Chunk::Dtls(dtls) => self.push_dtls(dtls.restart, &dtls.record),
            Chunk::ReConfig(chunk) => self.push_re_config(chunk),
            Chunk::Asconf(chunk) => self.push_asconf(chunk),
            Chunk::AsconfAck(chunk) => self.push_asconf_ack(chunk),
            Chunk::Pad(pad) => self.push_pad(*pad),
            Chunk::Timestamp(timestamp) => self.push_timestamp(*timestamp),
            Chunk::SackPath(path) => self.push_sack_path(*path),
            Chunk::Candidates(candidates) => self.push_candidates(candidates),
            Chunk::ForwardTsn(chunk) => self.push_forward_tsn(chunk),
            Chunk::Unknown(chunk) => self.push_chunk(chunk.ty(), chunk.flags(), &chunk.value()),
        }
    }
}

/// A chunk whose header is valid, inside its packet.
pub(crate) struct RawChunk<'a> {
    packet: &'a Bytes,
    /// Where the chunk begins in the packet.
    offset: usize,
    ty: u8,
    flags: u8,
    /// Header and value, without padding; at least [`CHUNK_HEADER_LEN`], and within the packet.
    pub(crate) length: usize,
}

impl<'a> RawChunk<'a> {
    /// The chunk that begins at `offset`, which is at most the packet's length.
    #[inline]
    pub(crate) fn split(packet: &'a Bytes, offset: usize) -> Result<Self, DecodeError> {
        let available = packet.len() - offset;
        let Some(&[ty, flags, l0, l1]) = packet[offset..].first_chunk::<CHUNK_HEADER_LEN>() else {
            return Err(DecodeErrorKind::ChunkHeaderTruncated { available }.at(offset));
        };
        let length = u16::from_be_bytes([l0, l1]);
        if usize::from(length) < CHUNK_HEADER_LEN {
            return Err(DecodeErrorKind::ChunkLengthTooSmall { ty, length }.at(offset));
        }
        if usize::from(length) > available {
            return Err(DecodeErrorKind::ChunkPastEnd { ty, length, available }.at(offset));
        }
        Ok(Self { packet, offset, ty, flags, length: usize::from(length) })
    }

    #[inline]
    pub(crate) fn is_data(&self) -> bool {
        self.ty == chunk_type::DATA
    }

    #[inline]
    pub(crate) fn is_i_data(&self) -> bool {
        self.ty == chunk_type::I_DATA
    }

    /// The first `N` bytes of the value, its fixed fields.
    #[inline]
    fn fixed<const N: usize>(&self) -> Result<&'a [u8; N], DecodeError> {
        let value = &self.packet[self.offset + CHUNK_HEADER_LEN..self.offset + self.length];
        value.first_chunk().ok_or_else(|| {
            let (ty, length, minimum) = (self.ty, self.length, CHUNK_HEADER_LEN + N);
            DecodeErrorKind::ChunkTooShort { ty, length, minimum }.at(self.offset)
        })
    }

    /// The value from its byte `start` on, which the caller knows to exist.
    #[inline]
    fn value_from(&self, start: usize) -> Bytes {
        self.packet.slice(self.offset + CHUNK_HEADER_LEN + start..self.offset + self.length)
    }

    /// Where byte `start` of the value is in the packet.
    fn value_offset(&self, start: usize) -> usize {
        self.offset + CHUNK_HEADER_LEN + start
    }
}
