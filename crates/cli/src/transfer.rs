//! The transfer of files: protocol, reading, writing, and the receiving end. The sending end is
//! `commands/send`.
//! `docs/protocol-transfer.md` describes the protocol.

pub(crate) mod receiver;
pub(crate) mod report;
pub(crate) mod secret;
pub(crate) mod source;
pub(crate) mod stall;
pub(crate) mod target;

pub(crate) use manypath_files::{frame, relative, sink};

use manypath::AssocClosed;

use crate::failure::{Exit, Failure};

/// The failure when the association ends during a transfer. The transfer can go on later, unless
/// one side does not trust or understand the other.
pub(crate) fn resumable(closed: &AssocClosed, failure: Failure, go_on: &str) -> Failure {
    let protocol = frame::reason::PROTOCOL.as_bytes();
    match closed {
        AssocClosed::PeerAborted { reason, .. } if reason.starts_with(protocol) => failure,
        _ if failure.exit == Exit::NotAuthorised => failure,
        _ => Failure::interrupted(failure.message).hint(go_on),
    }
}
