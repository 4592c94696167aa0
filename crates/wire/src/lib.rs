//! SCTP on the wire (RFC 9260): bytes to values and back.
//!
//! This crate holds no state and knows no time. It reads one packet at a time without copying
//! (payloads are [`bytes::Bytes`] slices of the datagram) and writes packets by appending to a
//! buffer the caller owns.
//!
//! - [`Packet::parse`] checks the common header and the checksum; [`Packet::chunks`] then yields
//!   one [`Chunk`] at a time and stops at the first malformed one.
//! - [`chunks_of`] does the same for chunks without a common header, as a DTLS chunk protects them.
//! - [`PacketBuilder`] writes a common header and chunks, never more than the size it was given.
//! - [`Parameter`]s (of INIT and INIT ACK) and [`ErrorCause`]s (of ABORT and ERROR) are decoded
//!   lazily, from [`Params`] and [`Causes`].
//! - A type this crate does not know becomes an "unknown" value, and [`UnknownAction`] says what
//!   RFC 9260 §3.2 wants done with it.
//!
//! ```
//! use bytes::Bytes;
//! use manypath_wire::*;
//!
//! let header = CommonHeader { source_port: 9, destination_port: 10, verification_tag: 11 };
//! let mut buffer = Vec::new();
//! let mut packet = PacketBuilder::new(&mut buffer, header, 1200);
//! let whole = DataFlags::BEGIN | DataFlags::END;
//! assert!(packet.push_data(Tsn(1), StreamId(0), Ssn(0), 0, whole, b"hello"));
//! packet.finish(true);
//!
//! let packet = Packet::parse(Bytes::from(buffer), Checksum::Verify)?;
//! let Some(Ok(Chunk::Data(data))) = packet.chunks().next() else { panic!("one DATA chunk") };
//! assert_eq!(data.payload, "hello");
//! # Ok::<(), DecodeError>(())
//! ```
//!
//! To add a chunk type: one file under `chunk/` with its layout, its `decode` and its `push_…`
//! method on [`PacketBuilder`], and one arm in each `match` of `chunk.rs`.

mod builder;
mod cause;
mod checksum;
mod chunk;
mod error;
mod header;
mod packet;
mod parameter;
mod tlv;
mod types;
mod unknown;

pub use builder::PacketBuilder;
pub use cause::{CauseIter, Causes, ErrorCause};
pub use checksum::{fill_checksum, has_zero_checksum};
pub use chunk::{
    AUTH_HEADER_LEN, Abort, Asconf, AsconfAck, AsconfRequest, AsconfResponse, Auth, CANDIDATES_MAX,
    CandidateKind, Candidates, Chunk, Cwr, DATA_HEADER_LEN, DTLS_CONTENT_OFFSET, DTLS_OVERHEAD,
    DTLS_PADDED_OVERHEAD, DTLS_RECORD_HEADER_LEN, DTLS_RECORD_MIN_LEN, DTLS_RECORD_OFFSET,
    DTLS_TRAILER_LEN, Data, DataFlags, Dtls, DuplicateTsns, Ecne, ErrorChunk,
    FORWARD_TSN_ENTRY_LEN, FORWARD_TSN_HEADER_LEN, ForwardTsn, GapAckBlock, GapAckBlocks,
    HeartbeatInfo, I_DATA_HEADER_LEN, I_FORWARD_TSN_ENTRY_LEN, IData, Init, NamedAddress,
    OutgoingReset, Pad, ReConfig, ReConfigParameter, ReConfigResponse, ReConfigResult,
    SACK_PATH_LEN, Sack, SackPath, Shutdown, SkippedMessage, TIMESTAMP_LEN, Timestamp,
    UnknownChunk, chunk_type, hmac_id,
};
pub use error::{DecodeError, DecodeErrorKind};
pub use header::{COMMON_HEADER_LEN, CommonHeader};
pub use packet::{Checksum, ChunkIter, IntoChunks, Packet, chunks_of, into_chunks_of};
pub use parameter::{
    DtlsKeyManagement, DtlsKeyManagementFlags, EDMID_DTLS, ParamIter, Parameter, Params,
    UnknownParameter, parameter_type,
};
pub use types::{Mid, Ssn, StreamId, Tsn};
pub use unknown::UnknownAction;
