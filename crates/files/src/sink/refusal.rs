//! Reasons why an entry is not stored, as the sender gets them.

use std::io;

use crate::frame::Outcome;

/// The outcome of an entry that is not stored, and its explanation.
pub(super) type Refusal = (Outcome, String);

/// The refusal of a file that its sender gave up.
pub(super) fn abandoned() -> Refusal {
    (Outcome::Abandoned, "the sender could not send all of it".to_owned())
}

/// The refusal after an error of creating or naming.
pub(super) fn create_refusal(error: &io::Error) -> Refusal {
    match disk_full(error) {
        true => (Outcome::DiskFull, format!("the receiver's disk is full: {error}")),
        false => (Outcome::CannotCreate, format!("the receiver cannot create it: {error}")),
    }
}

/// The refusal after an error of writing.
pub(super) fn write_refusal(error: &io::Error) -> Refusal {
    match disk_full(error) {
        true => (Outcome::DiskFull, format!("the receiver's disk is full: {error}")),
        false => (Outcome::WriteFailed, format!("the receiver cannot write it: {error}")),
    }
}

fn disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
