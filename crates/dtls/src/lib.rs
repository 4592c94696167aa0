//! The records inside SCTP's DTLS chunk, without I/O (draft-ietf-tsvwg-sctp-dtls-chunk).
//!
//! A protected SCTP packet is its common header and one DTLS chunk, which holds one record of DTLS
//! 1.3 (RFC 9147) in a single configuration: a 16-bit sequence number, no length, no connection ID.
//!
//! ```text
//! +---------------+---------------+---------------+
//! |0 0 1 0 1 0 E E|    sequence number, masked    |   the header, 3 bytes
//! +---------------+---------------+---------------+---------------+
//! | chunks, then the content type 23; encrypted                   |
//! +---------------+---------------+---------------+---------------+
//! | authentication tag, 16 bytes                                  |
//! +---------------------------------------------------------------+
//! ```
//!
//! - [`SealingKeys`] protect what one endpoint sends in one epoch.
//! - [`OpeningKeys`] check and decrypt what it receives, each record once.
//! - [`Epochs`] choose the keys by a record's epoch, and keep old ones until they are retired.
//! - [`capture::CaptureKeys`] read records of a capture, as often as they come. They are for tools,
//!   never for an association.
//! - [`RecordCipher`] is the part of a library of cryptography. The feature `aws-lc` has one; a
//!   program may give its own.
//!
//! Whoever uses them puts records into packets, and replaces keys before their
//! [limit](CipherSuite::seal_limit). Keys come from a method behind the interface in [`manage`].

pub mod capture;
mod cipher;
mod epochs;
mod exporter;
mod header;
pub mod manage;
mod open;
mod replay;
mod seal;

#[cfg(feature = "aws-lc")]
pub mod aws_lc;

pub use cipher::{CipherSuite, KeyMaterial, NONCE_LEN, RecordCipher, TAG_LEN};
pub use epochs::{Epochs, FIRST_EPOCH};
pub use exporter::{Direction, EXPORTER_LABEL, KeyKind, KeyRole, exporter_context};
pub use header::HEADER_LEN;
pub use open::{OpenError, Opened, OpeningKeys};
pub use seal::{SealError, SealingKeys};

/// Bytes that a record adds to the chunks in it: header, content type and tag.
pub const RECORD_OVERHEAD: usize = HEADER_LEN + 1 + TAG_LEN;
